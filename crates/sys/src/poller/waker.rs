//! Ending another thread's wait: an eventfd on Linux, a pipe elsewhere, and a flag that makes
//! repeated wakes free.
//!
//! The flag is set from the first wake until the drain that follows it. While it is set, a wake is
//! one atomic operation and no system call. What makes this safe is the order in [`Waker::drain`]:
//! the descriptor is silenced first and the flag cleared last, so a wake in between is one that the
//! drainer is still about to see, and a wake after it rings again. The flag's operations carry
//! everything the waking thread wrote before it.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(not(target_os = "linux"))]
use PipeBell as Bell;

/// Wakes the thread that waits in the poller it is registered with. Any number of threads may share
/// it.
#[derive(Debug)]
pub struct Waker {
    /// Somebody has rung and the owner has not drained since.
    is_pending: AtomicBool,
    bell: Bell,
}

impl Waker {
    /// Opens a waker, which has to be registered with
    /// [`Poller::add_waker`](super::Poller::add_waker) to have an effect. A wake that comes before
    /// that is not lost.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn new() -> io::Result<Waker> {
        Ok(Waker {
            is_pending: AtomicBool::new(false),
            bell: Bell::new()?,
        })
    }

    /// Ends the current wait of the poller, or else its next. Costs a system call only if it is the
    /// first wake since the last drain.
    pub fn wake(&self) {
        if !self.is_pending.swap(true, Ordering::AcqRel) {
            self.bell.ring();
        }
    }

    /// Called by the thread that waits, after the event and *before* it looks at whatever the
    /// wakers left for it: all that was left before a wake that this drain covers is then visible.
    pub fn drain(&self) {
        self.bell.silence();
        self.is_pending.swap(false, Ordering::AcqRel);
    }

    /// What the poller registers.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.bell.descriptor()
    }
}

/// An eventfd, registered edge-triggered: the write is the event, so there is nothing to read. The
/// counter would take 2^64 wakes to fill up.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Bell {
    counter: std::fs::File,
}

#[cfg(target_os = "linux")]
impl Bell {
    fn new() -> io::Result<Bell> {
        use rustix::event::{EventfdFlags, eventfd};
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Bell { counter: fd.into() })
    }

    fn ring(&self) {
        use std::io::Write;
        // Eight bytes on an eventfd that is far from full: there is no way to fail but a signal,
        // which `write_all` gets over.
        let written = (&self.counter).write_all(&1_u64.to_ne_bytes());
        debug_assert!(written.is_ok(), "{written:?}");
    }

    fn silence(&self) {}

    fn descriptor(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.counter.as_fd()
    }
}

/// A pipe with a byte in it while it rings. Built on Linux for its tests only.
#[cfg(any(not(target_os = "linux"), test))]
#[derive(Debug)]
struct PipeBell {
    read: std::fs::File,
    write: std::fs::File,
}

#[cfg(any(not(target_os = "linux"), test))]
impl PipeBell {
    fn new() -> io::Result<PipeBell> {
        let (read, write) = crate::syscall::pipe()?;
        Ok(PipeBell { read, write })
    }

    fn ring(&self) {
        use std::io::Write;
        // The one failure that can happen is a full pipe, and a full pipe rings already.
        let _ = (&self.write).write_all(&[0]);
    }

    /// Empties the pipe. Wakes are at most one per drain, so this is rarely more than two reads; it
    /// ends at the latest when the capacity of a pipe has been read.
    fn silence(&self) {
        use std::io::Read;
        let mut buffer = [0; 64];
        while matches!((&self.read).read(&mut buffer), Ok(count) if count > 0) {}
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.read.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::on_each_backend;
    use super::super::{Backend, Event, Interest, Poller};
    use super::*;
    use std::collections::HashSet;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// How long to wait for what must happen: a lost wake then fails instead of hanging.
    const LONG: Option<Duration> = Some(Duration::from_secs(60));

    on_each_backend! {
        wakes_before_the_drain_are_one_event,
        a_waker_ends_a_wait_that_has_no_limit,
        no_wake_is_lost_between_threads,
        two_threads_wake_each_other_in_turn,
        a_pipe_rings_until_it_is_silenced,
        a_full_pipe_does_not_block_and_still_rings,
    }

    fn new_poller(backend: Backend) -> Poller {
        Poller::new(backend).expect("a poller")
    }

    fn wait(poller: &mut Poller, timeout: Option<Duration>) -> Vec<Event> {
        let mut events = Vec::new();
        poller
            .wait(&mut events, timeout)
            .expect("an open poller waits");
        events
    }

    fn poll(poller: &mut Poller) -> Vec<Event> {
        wait(poller, Some(Duration::ZERO))
    }

    fn is_woken(poller: &mut Poller, token: u64) -> bool {
        let events = wait(poller, LONG);
        matches!(events[..], [event] if event.token == token && event.readable && !event.hangup)
    }

    fn wakes_before_the_drain_are_one_event(backend: Backend) {
        let (mut poller, waker) = (new_poller(backend), Waker::new().expect("a waker"));
        // Also one that comes before the registration.
        waker.wake();
        poller.add_waker(&waker, 42).expect("an open waker");
        for _ in 0..3 {
            for _ in 0..1_000 {
                waker.wake();
            }
            assert!(is_woken(&mut poller, 42));
            waker.drain();
            assert!(poll(&mut poller).is_empty());
            waker.wake();
        }
        assert!(is_woken(&mut poller, 42));
        waker.drain();
        waker.drain();
        assert!(poll(&mut poller).is_empty());
    }

    fn a_waker_ends_a_wait_that_has_no_limit(backend: Backend) {
        let (mut poller, waker) = (
            new_poller(backend),
            Arc::new(Waker::new().expect("a waker")),
        );
        poller.add_waker(&waker, 1).expect("an open waker");
        let other = std::thread::spawn({
            let waker = Arc::clone(&waker);
            move || waker.wake()
        });
        assert_eq!(wait(&mut poller, None).len(), 1);
        other.join().expect("the other thread ends");
    }

    /// Several threads hand over numbers and wake; were one wake lost, the last number would not
    /// arrive.
    fn no_wake_is_lost_between_threads(backend: Backend) {
        const THREADS: u64 = 4;
        const EACH: u64 = 20_000;
        let (mut poller, waker) = (
            new_poller(backend),
            Arc::new(Waker::new().expect("a waker")),
        );
        poller.add_waker(&waker, 1).expect("an open waker");
        let queue: Arc<Mutex<Vec<u64>>> = Arc::default();
        let producers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (waker, queue) = (Arc::clone(&waker), Arc::clone(&queue));
                std::thread::spawn(move || {
                    for index in 0..EACH {
                        queue
                            .lock()
                            .expect("nobody panics")
                            .push(thread * EACH + index);
                        waker.wake();
                        if index % 64 == 0 {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let mut received = HashSet::new();
        while received.len() < (THREADS * EACH) as usize {
            assert!(
                !wait(&mut poller, LONG).is_empty(),
                "a wake was lost after {}",
                received.len()
            );
            waker.drain();
            received.extend(std::mem::take(&mut *queue.lock().expect("nobody panics")));
        }
        for producer in producers {
            producer.join().expect("the producer ends");
        }
        assert_eq!(received.len(), (THREADS * EACH) as usize);
    }

    /// Two threads take turns, each waking the other and then waiting to be woken.
    fn two_threads_wake_each_other_in_turn(backend: Backend) {
        const TURNS: usize = 10_000;
        let wakers = Arc::new([
            Waker::new().expect("a waker"),
            Waker::new().expect("a waker"),
        ]);
        let play = move |wakers: &[Waker; 2], me: usize| {
            let mut poller = new_poller(backend);
            poller.add_waker(&wakers[me], 1).expect("an open waker");
            for _ in 0..TURNS {
                wakers[1 - me].wake();
                assert!(!wait(&mut poller, LONG).is_empty(), "a wake was lost");
                wakers[me].drain();
            }
            // The other may still wait for an answer to its last turn.
            wakers[1 - me].wake();
        };
        let other = std::thread::spawn({
            let wakers = Arc::clone(&wakers);
            move || play(&wakers, 1)
        });
        play(&wakers, 0);
        other.join().expect("the other thread ends");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_first_wake_before_a_drain_is_a_system_call() {
        use std::io::Read;
        let waker = Waker::new().expect("a waker");
        for _ in 0..3 {
            for _ in 0..1_000 {
                waker.wake();
            }
            waker.drain();
        }
        // The counter holds one for each write since it was last read.
        let mut count = [0; 8];
        (&waker.bell.counter)
            .read_exact(&mut count)
            .expect("it has rung");
        assert_eq!(u64::from_ne_bytes(count), 3);
    }

    fn a_pipe_rings_until_it_is_silenced(backend: Backend) {
        let bell = PipeBell::new().expect("a pipe");
        let mut poller = new_poller(backend);
        poller
            .add(bell.descriptor(), 1, Interest::READ)
            .expect("a pipe can be polled");
        assert!(poll(&mut poller).is_empty());
        for _ in 0..2 {
            bell.ring();
            bell.ring();
            assert_eq!(poll(&mut poller).len(), 1);
            assert_eq!(poll(&mut poller).len(), 1);
            bell.silence();
            assert!(poll(&mut poller).is_empty());
        }
    }

    fn a_full_pipe_does_not_block_and_still_rings(backend: Backend) {
        let bell = PipeBell::new().expect("a pipe");
        // More than the 64 KiB that a pipe holds.
        for _ in 0..100_000 {
            bell.ring();
        }
        let mut poller = new_poller(backend);
        poller
            .add(bell.descriptor(), 1, Interest::READ)
            .expect("a pipe can be polled");
        assert_eq!(poll(&mut poller).len(), 1);
        bell.silence();
        assert!(poll(&mut poller).is_empty());
    }
}
