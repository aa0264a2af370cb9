//! Linux' epoll: one system call per wait and one per change of interest.
//!
//! Sockets are level-triggered. Wakers are edge-triggered: the event is reported once per wake, so
//! nobody has to read the descriptor to silence it.

use super::event::{Event, Interest, MAX_EVENTS};
use crate::syscall::check;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

pub(super) struct Epoll {
    fd: OwnedFd,
    /// Where the kernel puts what is ready; only meaningful during a wait.
    ready: Box<[libc::epoll_event; MAX_EVENTS]>,
    /// The kernel has `epoll_pwait2` (Linux 5.11) and nothing filters it out. Assumed until it says
    /// otherwise.
    has_nanosecond_wait: bool,
}

impl Epoll {
    pub(super) fn new() -> io::Result<Epoll> {
        // SAFETY: the call takes a flag and returns a descriptor.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is open and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let ready = Box::new([libc::epoll_event { events: 0, u64: 0 }; MAX_EVENTS]);
        Ok(Epoll {
            fd,
            ready,
            has_nanosecond_wait: true,
        })
    }

    pub(super) fn add(
        &mut self,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, mask(interest))
    }

    pub(super) fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, mask(interest))
    }

    pub(super) fn remove(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    pub(super) fn add_waker(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.control(
            libc::EPOLL_CTL_ADD,
            fd,
            token,
            bits(libc::EPOLLIN | libc::EPOLLET),
        )
    }

    fn control(
        &mut self,
        operation: libc::c_int,
        fd: BorrowedFd<'_>,
        token: u64,
        events: u32,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: both descriptors are open, and the event is read during the call only.
        check(unsafe {
            libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd.as_raw_fd(), &mut event)
        })?;
        Ok(())
    }

    /// Appends to `events`. A signal is an error here (`Interrupted`), which the caller forgives.
    #[inline]
    pub(super) fn wait(
        &mut self,
        events: &mut Vec<Event>,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let count = match timeout {
            Some(timeout) if self.has_nanosecond_wait && !is_whole_ms(timeout) => {
                self.wait_ns(timeout)?
            }
            timeout => self.wait_ms(timeout.map_or(-1, ceil_ms))?,
        };
        events.extend(self.ready[..count].iter().map(translate));
        Ok(())
    }

    /// Waits for a number of milliseconds, -1 for ever.
    fn wait_ms(&mut self, timeout_ms: libc::c_int) -> io::Result<usize> {
        let capacity = self.ready.len() as libc::c_int;
        // SAFETY: the kernel writes at most `capacity` events, which is how many `ready` holds.
        let count = check(unsafe {
            libc::epoll_wait(
                self.fd.as_raw_fd(),
                self.ready.as_mut_ptr(),
                capacity,
                timeout_ms,
            )
        })?;
        Ok(count as usize)
    }

    /// Waits with the precision of the clock, or from the first refusal on with that of
    /// [`Epoll::wait_ms`].
    fn wait_ns(&mut self, timeout: Duration) -> io::Result<usize> {
        let capacity = self.ready.len() as libc::c_int;
        let limit = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            // Below 10^9, which every type of this field holds.
            tv_nsec: timeout.subsec_nanos() as _,
        };
        let no_signals: *const libc::sigset_t = std::ptr::null();
        // By number, because the C library has had a wrapper for a shorter time than the kernel has
        // had the call.
        // SAFETY: the arguments are those of epoll_pwait2(2): the kernel writes at most `capacity`
        // events, which is how many `ready` holds, reads `limit`, and leaves the signal mask alone
        // as there is no set (of size 0).
        let result = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                self.ready.as_mut_ptr(),
                capacity,
                &raw const limit,
                no_signals,
                0_usize,
            )
        };
        if let Ok(count) = usize::try_from(result) {
            return Ok(count);
        }
        let error = io::Error::last_os_error();
        // Older seccomp filters answer EPERM for calls that they have never heard of.
        if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) {
            self.has_nanosecond_wait = false;
            return self.wait_ms(ceil_ms(timeout));
        }
        Err(error)
    }
}

impl fmt::Debug for Epoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoll")
            .field("fd", &self.fd)
            .finish_non_exhaustive()
    }
}

/// The constants are defined as signed; the interface takes them unsigned.
const fn bits(mask: libc::c_int) -> u32 {
    mask as u32
}

fn mask(interest: Interest) -> u32 {
    let mut mask = 0;
    if interest.readable {
        mask |= bits(libc::EPOLLIN);
    }
    if interest.writable {
        mask |= bits(libc::EPOLLOUT);
    }
    if interest.ends {
        mask |= bits(libc::EPOLLRDHUP);
    }
    mask
}

fn translate(ready: &libc::epoll_event) -> Event {
    // Copied out first: the structure is packed on x86-64.
    let (events, token) = (ready.events, ready.u64);
    Event {
        token,
        readable: events & bits(libc::EPOLLIN) != 0,
        writable: events & bits(libc::EPOLLOUT) != 0,
        hangup: events & bits(libc::EPOLLHUP | libc::EPOLLERR) != 0,
        finished: events & bits(libc::EPOLLRDHUP) != 0,
    }
}

fn is_whole_ms(timeout: Duration) -> bool {
    timeout.subsec_nanos().is_multiple_of(1_000_000)
}

/// The timeout in milliseconds, rounded up: a wait that ends before its deadline would only be
/// repeated, and one of less than a millisecond would turn into a busy loop.
fn ceil_ms(timeout: Duration) -> libc::c_int {
    let ms = u64::from(timeout.subsec_nanos().div_ceil(1_000_000));
    let ms = timeout.as_secs().saturating_mul(1_000).saturating_add(ms);
    libc::c_int::try_from(ms).unwrap_or(libc::c_int::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_round_up_and_saturate() {
        for (timeout, ms) in [
            (Duration::ZERO, 0),
            (Duration::from_nanos(1), 1),
            (Duration::from_micros(999), 1),
            (Duration::from_millis(1), 1),
            (Duration::from_nanos(1_000_001), 2),
            (Duration::new(1, 999_999_999), 2_000),
            (Duration::from_millis(i32::MAX as u64), i32::MAX),
            (Duration::from_millis(i32::MAX as u64 + 1), i32::MAX),
            (Duration::MAX, i32::MAX),
        ] {
            assert_eq!(ceil_ms(timeout), ms, "{timeout:?}");
        }
    }

    #[test]
    fn both_ways_of_waiting_end_no_earlier_than_asked() {
        for has_nanosecond_wait in [true, false] {
            let mut epoll = Epoll::new().expect("a descriptor");
            epoll.has_nanosecond_wait = has_nanosecond_wait;
            for timeout in [
                Duration::from_nanos(1),
                Duration::from_micros(1_700),
                Duration::from_millis(3),
            ] {
                let start = std::time::Instant::now();
                let mut events = Vec::new();
                epoll
                    .wait(&mut events, Some(timeout))
                    .expect("an open poller waits");
                assert!(events.is_empty());
                assert!(
                    start.elapsed() >= timeout,
                    "{:?} of {timeout:?}",
                    start.elapsed()
                );
            }
        }
    }

    #[test]
    fn an_interest_is_its_mask() {
        assert_eq!(mask(Interest::NONE), 0);
        assert_eq!(mask(Interest::READ), bits(libc::EPOLLIN));
        assert_eq!(mask(Interest::WRITE), bits(libc::EPOLLOUT));
        assert_eq!(mask(Interest::BOTH), bits(libc::EPOLLIN | libc::EPOLLOUT));
    }
}
