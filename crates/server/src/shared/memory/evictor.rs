//! How far each worker has got with making room.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::Budget;
use crate::limits::{BARREN_MS, BARREN_STALE_MS};
use crate::shared::Shared;

/// What came of making room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// The command may run.
    Enough,
    /// More has to go first: it waits.
    Later,
    /// Nothing may go: it is refused.
    No,
}

/// How far one worker's evictions have got. Written by that worker.
#[derive(Default)]
pub(crate) struct Evictor {
    /// The shard to go on with, over all databases.
    pub(crate) hand: AtomicUsize,
    /// About the most entries that any shard has.
    pub(crate) most: AtomicUsize,
    /// Shards in a row in which no value could leave memory, or will soon; when (Unix, ms) the first of them
    /// was looked at, and the last.
    barren: AtomicUsize,
    barren_since: AtomicI64,
    looked: AtomicI64,
    /// Bytes that the worker has claimed.
    claim: AtomicI64,
    /// In this turn a command was let have what there is no room for.
    has_made_exception: AtomicBool,
    /// Ticks spent in vain on making room in this turn.
    pub(crate) spent: AtomicU64,
}

impl Evictor {
    /// Whether there is room for what a worker needs. What is more than its share of the margin is claimed.
    pub(crate) fn finds_room(&self, budget: &Budget, need: usize) -> bool {
        match i64::try_from(need) {
            Ok(bytes) if bytes > budget.share.load(Relaxed) => {
                let is_claimed = budget.claim(bytes);
                if is_claimed {
                    self.claim.store(bytes, Relaxed);
                }
                is_claimed
            }
            _ => budget.excess(need) <= 0,
        }
    }

    /// Gives up what was claimed: it was taken, or is not wanted.
    #[inline]
    pub(crate) fn release(&self, budget: &Budget) {
        let claim = self.claim.load(Relaxed);
        if claim > 0 {
            self.claim.store(0, Relaxed);
            budget.claimed.fetch_sub(claim, Relaxed);
        }
    }

    /// Whether a command may have what there is no room for: one in a turn.
    pub(crate) fn makes_exception(&self) -> bool {
        !self.has_made_exception.swap(true, Relaxed)
    }

    /// There is time again to make room.
    pub(crate) fn begin_turn(&self) {
        self.spent.store(0, Relaxed);
    }

    /// Shards in a row in which no value could leave memory. What was seen long ago says nothing any more.
    pub(crate) fn barren(&self, now: i64) -> usize {
        if (0..BARREN_STALE_MS).contains(&(now - self.looked.load(Relaxed))) {
            return self.barren.load(Relaxed);
        }
        0
    }

    /// Notes how many they are by now.
    pub(crate) fn set_barren(&self, barren: usize, now: i64) {
        if barren <= 1 {
            self.barren_since.store(now, Relaxed);
        }
        self.barren.store(barren, Relaxed);
        self.looked.store(now, Relaxed);
    }

    /// Whether it has been so for long enough that nobody should wait for a value to leave.
    pub(crate) fn is_barren_for_long(&self, now: i64) -> bool {
        // Somebody may have set the clock back.
        !(0..BARREN_MS).contains(&(now - self.barren_since.load(Relaxed)))
    }
}

impl Shared {
    /// A worker's turn is over: what it had claimed was taken, and it may spend time on making room again.
    #[inline]
    pub(crate) fn end_making_room(&self, worker: usize) {
        let evictor = &self.workers[worker].evictor;
        evictor.release(&self.memory);
        evictor.has_made_exception.store(false, Relaxed);
        evictor.begin_turn();
    }
}
