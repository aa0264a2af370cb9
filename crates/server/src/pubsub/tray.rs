//! What one leaves for another: it is added under a lock, taken all at once, and whether there is anything
//! can be told without the lock.
//!
//! A tray with more than a bound is *crowded*, and as long as any is, whoever adds is to hold back what it
//! can. Whoever takes the last crowded one out is told, to let those go on.
//!
//! Waking whoever takes is not done here. Who adds does it afterwards, and who takes has been silent about it
//! before it looks ([`sys::poller`]'s waker): so what was added is seen, or the next wait ends at once.
//!
//! The file is compiled twice: here, and with loom's locks and atomics in `tests/inbox_model.rs`, which runs
//! all interleavings that the memory model allows.

use super::sync::{AtomicUsize, Mutex, Ordering::Relaxed};

/// What lies in a tray.
pub(super) trait Contents: Default {
    /// Bytes that it takes.
    fn memory(&self) -> usize;
}

/// See the module.
pub(super) struct Tray<C> {
    lying: Mutex<Lying<C>>,
    /// The bytes in it, to be looked at without the lock.
    bytes: AtomicUsize,
}

struct Lying<C> {
    contents: C,
    is_crowded: bool,
}

/// How many trays are crowded.
pub(crate) struct Crowd(AtomicUsize);

impl Default for Crowd {
    fn default() -> Crowd {
        Crowd(AtomicUsize::new(0))
    }
}

impl Crowd {
    /// Whether those who add have to hold back.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.0.load(Relaxed) > 0
    }

    /// One more is crowded.
    pub(crate) fn enter(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// One is crowded no longer. Returns whether it was the last, and those who held back may go on.
    pub(crate) fn leave(&self) -> bool {
        self.0.fetch_sub(1, Relaxed) == 1
    }
}

impl<C: Contents> Default for Tray<C> {
    fn default() -> Tray<C> {
        Tray {
            lying: Mutex::new(Lying {
                contents: C::default(),
                is_crowded: false,
            }),
            bytes: AtomicUsize::new(0),
        }
    }
}

impl<C: Contents> Tray<C> {
    /// Bytes that lie in it.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Exchanges what lies in it for `empty`. Returns whether others held back for it alone, and may go on.
    pub(super) fn take(&self, crowd: &Crowd, empty: &mut C) -> bool {
        let mut lying = self.lying.lock();
        std::mem::swap(&mut lying.contents, empty);
        self.bytes.store(0, Relaxed);
        std::mem::take(&mut lying.is_crowded) && crowd.leave()
    }

    /// Adds something. It is crowded from `most` bytes on.
    pub(super) fn add(&self, crowd: &Crowd, most: usize, write: impl FnOnce(&mut C)) {
        let mut lying = self.lying.lock();
        write(&mut lying.contents);
        let bytes = lying.contents.memory();
        self.bytes.store(bytes, Relaxed);
        if bytes > most && !lying.is_crowded {
            lying.is_crowded = true;
            crowd.enter();
        }
    }
}
