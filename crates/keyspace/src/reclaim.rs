//! Freeing large things away from the workers.
//!
//! Dropping a value of a gigabyte or a whole database takes milliseconds; a shard lock is held for
//! microseconds. What is large is therefore sent to one background thread that drops it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// Values from this many bytes are dropped in the background.
pub(crate) const BACKGROUND_BYTES: usize = 64 * 1024;

/// What is to be called with the bytes that have become free since the last time.
pub(crate) type Freed<'a> = &'a mut dyn FnMut(usize);

/// Anything whose drop is slow.
struct Garbage {
    /// Drops it.
    free: Box<dyn FnOnce(Freed<'_>) + Send>,
    bytes: usize,
}

/// The background thread and the way to it.
pub(crate) struct Reclaimer {
    sender: Option<Sender<Garbage>>,
    thread: Option<JoinHandle<()>>,
    pending: Arc<Pending>,
}

/// What was sent and is not dropped yet, and what was.
#[derive(Default)]
struct Pending {
    things: AtomicUsize,
    bytes: AtomicUsize,
    /// Things that were dropped.
    dropped: AtomicU64,
}

impl Reclaimer {
    pub(crate) fn new() -> Reclaimer {
        let (sender, receiver) = channel::<Garbage>();
        let pending = Arc::new(Pending::default());
        let counter = Arc::clone(&pending);
        let thread = std::thread::Builder::new()
            .name("reclaim".into())
            .spawn(move || {
                for Garbage { free, bytes } in receiver {
                    let mut left = bytes;
                    free(&mut |freed| {
                        let freed = freed.min(left);
                        left -= freed;
                        counter.bytes.fetch_sub(freed, Ordering::Relaxed);
                    });
                    counter.bytes.fetch_sub(left, Ordering::Relaxed);
                    counter.dropped.fetch_add(1, Ordering::Relaxed);
                    counter.things.fetch_sub(1, Ordering::Relaxed);
                }
            })
            .expect("the operating system can start a thread");
        Reclaimer {
            sender: Some(sender),
            thread: Some(thread),
            pending,
        }
    }

    /// Drops a thing that takes about so many bytes in the background.
    pub(crate) fn send(&self, thing: impl Send + 'static, bytes: usize) {
        self.send_parts(bytes, move |_| drop(thing));
    }

    /// Drops in the background what takes so long that the bytes which wait are counted down meanwhile.
    pub(crate) fn send_parts(&self, bytes: usize, free: impl FnOnce(Freed<'_>) + Send + 'static) {
        self.pending.things.fetch_add(1, Ordering::Relaxed);
        self.pending.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(sender) = &self.sender {
            let free = Box::new(free);
            sender
                .send(Garbage { free, bytes })
                .expect("the thread lives as long as the sender");
        }
    }

    /// Things sent and not yet dropped.
    pub(crate) fn pending(&self) -> usize {
        self.pending.things.load(Ordering::Relaxed)
    }

    /// Things that were sent and dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.pending.dropped.load(Ordering::Relaxed)
    }

    /// The bytes of things sent and not yet dropped.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Reclaimer {
    fn drop(&mut self) {
        self.sender = None;
        // What is dropped in the background may be the last to hold this; the thread cannot wait for itself.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic of the thread was already reported by the panic hook.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Garbage that holds on to the reclaimer, and says so when it is gone.
    struct Last {
        reclaimer: Option<Arc<Reclaimer>>,
        gone: Sender<()>,
    }

    impl Drop for Last {
        fn drop(&mut self) {
            self.reclaimer = None;
            // Nobody listens any more if the test has failed already.
            let _ = self.gone.send(());
        }
    }

    #[test]
    fn bytes_are_counted_down_as_they_are_freed() {
        let reclaimer = Reclaimer::new();
        let (go, wait) = channel::<usize>();
        let (tell, heard) = channel::<()>();
        reclaimer.send_parts(10, move |freed| {
            for bytes in wait {
                freed(bytes);
                tell.send(()).expect("the test waits");
            }
        });
        let mut left = vec![reclaimer.pending_bytes()];
        // More than there was is a mistake of whoever counts, and frees nobody else's.
        for bytes in [4, 5, 7] {
            go.send(bytes).expect("the thread waits");
            heard.recv().expect("the thread answers");
            left.push(reclaimer.pending_bytes());
        }
        assert_eq!(left, [10, 6, 1, 0]);
        drop(go);
        heard.recv().expect_err("the thread is done");
    }

    #[test]
    fn the_last_owner_may_be_what_is_reclaimed() {
        // A flushed database may outlive its keyspace in the queue.
        let (gone, heard) = channel();
        let reclaimer = Arc::new(Reclaimer::new());
        let (go, wait) = channel::<()>();
        struct Gate(std::sync::mpsc::Receiver<()>);
        impl Drop for Gate {
            fn drop(&mut self) {
                let _ = self.0.recv();
            }
        }
        reclaimer.send(std::sync::Mutex::new(Gate(wait)), 3);
        assert_eq!((reclaimer.pending(), reclaimer.pending_bytes()), (1, 3));
        let own = Some(Arc::clone(&reclaimer));
        let last = Last {
            reclaimer: own,
            gone,
        };
        reclaimer.send(last, 0);
        drop(reclaimer);
        drop(go);
        heard.recv().expect("the thread ends in good order");
    }
}
