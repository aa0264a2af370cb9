//! The first word of a shard: its lock, where it is, and who wants to hear of changes.
//!
//! ```text
//!  byte 0   the lock                    byte 2..4   number of the database
//!  byte 1   observed ([`crate::observe`])  4..6     number of the shard
//!                                            6      a guard is lent ([`crate::hold`])
//! ```
//!
//! Builds with debug assertions check that each thread takes its locks in ascending order, databases first:
//! that is what makes waiting in a circle impossible.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, Ordering::Relaxed};

use parking_lot::RawMutex;
use parking_lot::lock_api::RawMutex as _;

use crate::hash::Key;
use crate::observe::{Change, ChangeKind};
use crate::shard_set::ShardId;
use crate::shared::Shared;

/// See the module.
pub(super) struct Lock {
    raw: RawMutex,
    /// Read and written under the lock.
    observed: AtomicU8,
    /// Written in exclusive tasks only.
    database: AtomicU16,
    shard: u16,
    /// Read and written under the lock.
    is_lent: AtomicBool,
}

const _: () = assert!(size_of::<Lock>() == 8);

impl Lock {
    pub(super) fn new(database: usize, shard: usize, observed: u8) -> Lock {
        Lock {
            raw: RawMutex::INIT,
            observed: AtomicU8::new(observed),
            database: AtomicU16::new(database as u16),
            shard: shard as u16,
            is_lent: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(super) fn lock(&self) {
        #[cfg(debug_assertions)]
        order::lock(self);
        self.raw.lock();
    }

    /// Locks it if nobody has. Nobody waits, so the order does not matter; what is locked behind it must be.
    pub(super) fn try_lock(&self) -> bool {
        let is_locked = self.raw.try_lock();
        #[cfg(debug_assertions)]
        if is_locked {
            order::lock(self);
        }
        is_locked
    }

    /// # Safety
    /// The caller locked it, and uses nothing that it guards any more.
    #[inline]
    pub(super) unsafe fn unlock(&self) {
        #[cfg(debug_assertions)]
        order::unlock(self);
        // SAFETY: by the caller's contract.
        unsafe { self.raw.unlock() }
    }

    /// Notes that a guard is lent: one at a time, for two could change what the other refers to.
    pub(super) fn lend(&self) {
        let was_lent = self.is_lent.swap(true, Relaxed);
        assert!(!was_lent, "a shard is lent once at a time");
    }

    /// Notes that the guard that was lent is back.
    pub(super) fn take_back(&self) {
        self.is_lent.store(false, Relaxed);
    }

    pub(super) fn database(&self) -> usize {
        usize::from(self.database.load(Relaxed))
    }

    pub(super) fn set_database(&self, number: usize) {
        self.database.store(number as u16, Relaxed);
    }

    #[inline]
    pub(super) fn observed(&self) -> u8 {
        self.observed.load(Relaxed)
    }

    pub(super) fn observe(&self, reasons: u8) {
        self.observed.store(self.observed() | reasons, Relaxed);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn tell_observer(&self, shared: &Shared, key: Key<'_>, kind: ChangeKind) {
        let observed = self.observed();
        let stay = shared.observer.get().map_or(0, |observer| {
            observer.changed(&Change {
                database: usize::from(self.database.load(Relaxed)),
                shard: ShardId(usize::from(self.shard)),
                key,
                observed,
                kind,
            })
        });
        self.observed.store(observed & stay, Relaxed);
    }
}

#[cfg(debug_assertions)]
mod order {
    use std::cell::RefCell;
    use std::sync::atomic::Ordering::Relaxed;

    use super::Lock;

    thread_local! {
        /// What this thread has locked, ascending: database and shard, and which lock that is. The end of a
        /// snapshot is no turn, so the number of the database may change while it holds a lock.
        static LOCKED: RefCell<Vec<((u16, u16), *const Lock)>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn lock(lock: &Lock) {
        let position = (lock.database.load(Relaxed), lock.shard);
        LOCKED.with_borrow_mut(|locked| {
            assert!(
                locked.last().is_none_or(|&(last, _)| last < position),
                "shards are locked in ascending order: {position:?} behind {locked:?}"
            );
            locked.push((position, lock));
        });
    }

    pub(super) fn unlock(lock: &Lock) {
        LOCKED.with_borrow_mut(|locked| locked.retain(|&(_, other)| !std::ptr::eq(other, lock)));
    }
}
