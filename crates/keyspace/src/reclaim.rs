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

/// Anything whose drop is slow.
struct Garbage {
    thing: Box<dyn Send>,
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
                for Garbage { thing, bytes } in receiver {
                    drop(thing);
                    counter.bytes.fetch_sub(bytes, Ordering::Relaxed);
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
        self.pending.things.fetch_add(1, Ordering::Relaxed);
        self.pending.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(sender) = &self.sender {
            let thing = Box::new(thing);
            sender
                .send(Garbage { thing, bytes })
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
