//! The count of bytes in use: see [`crate::memory`].

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

/// Bytes that a thread's count may differ from what it has published.
pub const SLACK: i64 = 16 * 1024;

/// Threads that count for themselves.
const SLOTS: usize = 512;

/// A thread's count, alone on its cache lines.
#[repr(align(128))]
struct Slot(AtomicI64);

static TOTAL: AtomicI64 = AtomicI64::new(0);
static PENDING: [Slot; SLOTS] = [const { Slot(AtomicI64::new(0)) }; SLOTS];
/// Threads that have come so far.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The thread's slot; [`usize::MAX`] until it has one. Needs no destructor, so the allocator may use it
    /// at any time.
    static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Counts `bytes` more, or fewer where they are negative.
#[inline]
pub fn charge(bytes: i64) {
    let number = SLOT.get();
    if number >= SLOTS {
        return charge_without_slot(bytes);
    }
    let pending = &PENDING[number].0;
    let sum = pending.load(Relaxed) + bytes;
    if (-SLACK..=SLACK).contains(&sum) {
        pending.store(sum, Relaxed);
    } else {
        pending.store(0, Relaxed);
        TOTAL.fetch_add(sum, Relaxed);
    }
}

/// Gives the thread a slot, if one is left.
#[cold]
fn charge_without_slot(bytes: i64) {
    if SLOT.get() == usize::MAX {
        SLOT.set(THREADS.fetch_add(1, Relaxed));
        if SLOT.get() < SLOTS {
            return charge(bytes);
        }
    }
    TOTAL.fetch_add(bytes, Relaxed);
}

/// Bytes in use, as far as threads have published them: one load.
#[inline]
pub fn published() -> i64 {
    TOTAL.load(Relaxed)
}

/// Bytes in use: a load for each thread that ever was.
pub fn used() -> i64 {
    let threads = THREADS.load(Relaxed).min(SLOTS);
    let pending = PENDING[..threads].iter().map(|slot| slot.0.load(Relaxed));
    published() + pending.sum::<i64>()
}

/// The most that [`published`] may be below [`used`].
pub fn unpublished_max() -> i64 {
    THREADS.load(Relaxed).min(SLOTS) as i64 * SLACK
}
