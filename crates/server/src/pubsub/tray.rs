//! Tray: a queue that is filled under a lock and emptied all at once. Its fill is readable without the lock.
//!
//! A tray above a bound is *crowded*. While any tray is crowded, producers are to throttle. The consumer that
//! empties the last crowded tray learns that from [`Tray::take`], and lets them continue.
//!
//! A tray does not wake its consumer. The producer does that afterwards. The consumer drains its waker before
//! it takes ([`sys::poller`]'s waker), so an addition is either seen or ends its next wait at once.
//!
//! The file is compiled twice: here, and with loom's locks and atomics in `tests/inbox_model.rs`, which
//! explores all interleavings that the memory model allows.

use super::sync::{AtomicUsize, Mutex, Ordering::Relaxed};

/// Content of a tray.
pub(super) trait Contents: Default {
    /// Bytes of the content.
    fn memory(&self) -> usize;
}

/// Queue that is emptied all at once.
pub(super) struct Tray<C> {
    guarded: Mutex<Guarded<C>>,
    /// Bytes of the content, readable without the lock.
    bytes: AtomicUsize,
}

struct Guarded<C> {
    contents: C,
    is_crowded: bool,
}

/// Number of crowded trays.
pub(crate) struct Crowd(AtomicUsize);

impl Default for Crowd {
    fn default() -> Crowd {
        Crowd(AtomicUsize::new(0))
    }
}

impl Crowd {
    /// Whether producers are to throttle.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.0.load(Relaxed) > 0
    }

    /// Counts one more crowded tray.
    pub(crate) fn enter(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// Counts one crowded tray less. Returns whether it was the last.
    pub(crate) fn leave(&self) -> bool {
        self.0.fetch_sub(1, Relaxed) == 1
    }
}

impl<C: Contents> Default for Tray<C> {
    fn default() -> Tray<C> {
        Tray {
            guarded: Mutex::new(Guarded {
                contents: C::default(),
                is_crowded: false,
            }),
            bytes: AtomicUsize::new(0),
        }
    }
}

impl<C: Contents> Tray<C> {
    /// Bytes of the content.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Swaps the content for `empty`. Returns whether this was the last crowded tray.
    pub(super) fn take(&self, crowd: &Crowd, empty: &mut C) -> bool {
        let mut guarded = self.guarded.lock();
        std::mem::swap(&mut guarded.contents, empty);
        self.bytes.store(0, Relaxed);
        std::mem::take(&mut guarded.is_crowded) && crowd.leave()
    }

    /// Adds to the content. The tray is crowded from `most` bytes on.
    pub(super) fn add(&self, crowd: &Crowd, most: usize, write: impl FnOnce(&mut C)) {
        let mut guarded = self.guarded.lock();
        write(&mut guarded.contents);
        let bytes = guarded.contents.memory();
        self.bytes.store(bytes, Relaxed);
        if bytes > most && !guarded.is_crowded {
            guarded.is_crowded = true;
            crowd.enter();
        }
    }
}
