//! State of each worker's evictions.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::Budget;
use crate::limits::{BARREN_MS, BARREN_REST_MS, BARREN_STALE_MS, FORESEEN_TRIES_PER_TURN};
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
///
/// A search for values that can leave memory goes from shard to shard:
///
/// ```text
///  searching  -- no value in any shard, for BARREN_MS -->  resting: writes are refused without a search
///  resting    -- BARREN_REST_MS are over -->               searching all shards once more
///  resting    -- a value came back beyond the limit -->    searching
/// ```
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
    /// Time (Unix ms) of the last search that ended with a refusal; 0 if values have come back since.
    refused: AtomicI64,
    /// Bytes that the worker has claimed.
    claim: AtomicI64,
    /// Whether a command of this turn was allowed to exceed the limit.
    has_made_exception: AtomicBool,
    /// Ticks of this turn that were spent on making room in vain.
    pub(crate) spent: AtomicU64,
    /// Times in this turn that they were reset for a command that cannot wait for the next one.
    again: AtomicUsize,
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
        // What comes back for it can leave again.
        self.refused.store(0, Relaxed);
        !self.has_made_exception.swap(true, Relaxed)
    }

    /// Resets the time spent on making room, for a command that cannot wait for the next turn. `false` if it
    /// was reset too often in this turn: a thousand clients may ask in one, and all others wait for its end.
    pub(crate) fn begins_again(&self) -> bool {
        let again = self.again.load(Relaxed);
        let may = again < FORESEEN_TRIES_PER_TURN;
        if may {
            self.again.store(again + 1, Relaxed);
            self.spent.store(0, Relaxed);
        }
        may
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

    /// A search has ended with a refusal.
    pub(crate) fn rest(&self, now: i64) {
        self.refused.store(now, Relaxed);
    }

    /// Whether a search would be in vain, because one was a moment ago.
    pub(crate) fn rests(&self, now: i64) -> bool {
        (0..BARREN_REST_MS).contains(&(now - self.refused.load(Relaxed)))
    }
}

impl Shared {
    /// Ends a worker's turn: releases its claim and resets its time for making room.
    #[inline]
    pub(crate) fn end_making_room(&self, worker: usize) {
        let evictor = &self.workers[worker].evictor;
        evictor.release(&self.memory);
        evictor.has_made_exception.store(false, Relaxed);
        evictor.spent.store(0, Relaxed);
        evictor.again.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of all requests of a second few search, whatever their number.
    #[test]
    fn a_search_in_vain_is_not_repeated_at_once() {
        const REQUESTS: i64 = 100_000;
        let (evictor, mut searches) = (Evictor::default(), 0);
        assert!(!evictor.rests(1_000_000));
        for request in 0..REQUESTS {
            let now = 5_000_000 + request * 1000 / REQUESTS;
            if !evictor.rests(now) {
                searches += 1;
                evictor.rest(now);
            }
        }
        assert_eq!(searches, 1000 / BARREN_REST_MS);
        // The clock was set back.
        assert!(!evictor.rests(1_000_000));
    }

    /// Few commands of a turn spend their time on it, though all lack room.
    #[test]
    fn a_turn_ends_though_each_of_its_commands_lacks_room() {
        let (evictor, mut spent) = (Evictor::default(), 0);
        for _ in 0..20_000 {
            evictor.begins_again();
            if evictor.spent.fetch_add(1, Relaxed) == 0 {
                spent += 1;
            }
        }
        assert_eq!(spent, FORESEEN_TRIES_PER_TURN);
    }

    #[test]
    fn what_came_back_beyond_the_limit_ends_the_rest() {
        let evictor = Evictor::default();
        evictor.rest(5_000_000);
        assert!(evictor.rests(5_000_001));
        assert!(evictor.makes_exception());
        assert!(!evictor.rests(5_000_001));
    }
}
