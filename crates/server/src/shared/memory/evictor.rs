//! State of each worker's evictions.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::Budget;
use crate::limits::{BARREN_MS, BARREN_STALE_MS};
use crate::shared::Shared;

/// Result of an attempt to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// The command may run.
    Enough,
    /// More has to be evicted first: the command waits.
    Later,
    /// Nothing can be evicted: the command is refused.
    No,
}

/// State of one worker's evictions. Only that worker writes it.
#[derive(Default)]
pub(crate) struct Evictor {
    /// Next shard to evict from, counted over all databases.
    pub(crate) hand: AtomicUsize,
    /// Approximate entries of the largest shard.
    pub(crate) most: AtomicUsize,
    /// Consecutive shards without a value that can leave memory now or soon; the times (Unix ms) at which the
    /// first and the last of them were examined.
    barren: AtomicUsize,
    barren_since: AtomicI64,
    looked: AtomicI64,
    /// Bytes that the worker has claimed.
    claim: AtomicI64,
    /// Whether a command of this turn was allowed to exceed the limit.
    has_made_exception: AtomicBool,
    /// Ticks of this turn that were spent on making room in vain.
    pub(crate) spent: AtomicU64,
}

impl Evictor {
    /// Whether there is room for `need` bytes. More than the worker's share of the margin is claimed.
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

    /// Releases the claim: the memory was taken, or is not needed.
    #[inline]
    pub(crate) fn release(&self, budget: &Budget) {
        let claim = self.claim.load(Relaxed);
        if claim > 0 {
            self.claim.store(0, Relaxed);
            budget.claimed.fetch_sub(claim, Relaxed);
        }
    }

    /// Whether a command may exceed the limit: true once in a turn.
    pub(crate) fn makes_exception(&self) -> bool {
        !self.has_made_exception.swap(true, Relaxed)
    }

    /// Resets the time spent on making room.
    pub(crate) fn begin_turn(&self) {
        self.spent.store(0, Relaxed);
    }

    /// Consecutive shards without a value that can leave memory; 0 if the count is stale.
    pub(crate) fn barren(&self, now: i64) -> usize {
        if (0..BARREN_STALE_MS).contains(&(now - self.looked.load(Relaxed))) {
            return self.barren.load(Relaxed);
        }
        0
    }

    /// Stores the number of consecutive barren shards.
    pub(crate) fn set_barren(&self, barren: usize, now: i64) {
        if barren <= 1 {
            self.barren_since.store(now, Relaxed);
        }
        self.barren.store(barren, Relaxed);
        self.looked.store(now, Relaxed);
    }

    /// Whether shards have been barren for so long that no command should wait for a value to leave.
    pub(crate) fn is_barren_for_long(&self, now: i64) -> bool {
        // The clock may have been set back.
        !(0..BARREN_MS).contains(&(now - self.barren_since.load(Relaxed)))
    }
}

impl Shared {
    /// Ends a worker's turn: releases its claim and resets its time for making room.
    #[inline]
    pub(crate) fn end_making_room(&self, worker: usize) {
        let evictor = &self.workers[worker].evictor;
        evictor.release(&self.memory);
        evictor.has_made_exception.store(false, Relaxed);
        evictor.begin_turn();
    }
}
