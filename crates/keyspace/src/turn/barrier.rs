//! The part of turns that takes no lock: who is inside, and whether anybody may come in.
//!
//! Each worker has a counter, odd while it is inside, which only that worker changes. Whoever wants to be
//! alone closes the door and waits until all counters are even. Both sides write first and look at the
//! other's word then, with a fence in between: so either a worker sees that the door is closed, or whoever
//! closed it sees the worker.
//!
//! Nothing here waits. The file is compiled twice: here, and with loom's atomics in `tests/barrier_model.rs`,
//! which runs all interleavings that the memory model allows.

use super::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// One worker's counter, alone on its cache lines.
#[repr(align(128))]
struct Slot(AtomicU64);

/// See the module.
pub(crate) struct Barrier {
    slots: Box<[Slot]>,
    closed: AtomicBool,
}

impl Barrier {
    /// A door for so many workers, open, with nobody inside.
    pub(crate) fn new(workers: usize) -> Barrier {
        Barrier {
            slots: (0..workers).map(|_| Slot(AtomicU64::new(0))).collect(),
            closed: AtomicBool::new(false),
        }
    }

    /// Steps in, unless the door is closed.
    #[inline]
    pub(crate) fn try_enter(&self, slot: usize) -> bool {
        let counter = &self.slots[slot].0;
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // Either this worker sees `closed`, or whoever closed it sees the odd counter.
        fence(Ordering::SeqCst);
        // Acquire: what was done while the door was closed is seen by everybody who comes in afterwards.
        if !self.closed.load(Ordering::Acquire) {
            return true;
        }
        self.step(slot);
        false
    }

    /// Steps out, or back in past the closed door: only who closed it may do that.
    #[inline]
    pub(crate) fn step(&self, slot: usize) {
        let counter = &self.slots[slot].0;
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Whether the worker of that slot, which asks this itself, is inside.
    #[inline]
    pub(crate) fn is_inside(&self, slot: usize) -> bool {
        self.slots[slot].0.load(Ordering::Relaxed) % 2 == 1
    }

    /// Closes the door, which is open: one at a time does this.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Behind [`Barrier::close`]: whether the worker of that slot is outside, and so will be until the door
    /// opens.
    pub(crate) fn is_outside(&self, slot: usize) -> bool {
        self.slots[slot].0.load(Ordering::Acquire).is_multiple_of(2)
    }

    /// How many slots there are.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Opens the door.
    pub(crate) fn open(&self) {
        self.closed.store(false, Ordering::Release);
    }

    /// Whether the door is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// What every counter says now, for [`Barrier::has_passed`].
    pub(crate) fn snapshot(&self) -> Box<[u64]> {
        // Orders the retirement (a store to the table's word) before the reads of the counters.
        fence(Ordering::SeqCst);
        self.slots
            .iter()
            .map(|slot| slot.0.load(Ordering::Acquire))
            .collect()
    }

    /// Whether every worker that was inside at `snapshot` has left since.
    pub(crate) fn has_passed(&self, snapshot: &[u64]) -> bool {
        self.slots
            .iter()
            .zip(snapshot)
            .all(|(slot, &then)| then % 2 == 0 || slot.0.load(Ordering::Acquire) != then)
    }
}
