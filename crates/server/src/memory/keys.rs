//! Making room by evicting keys, or by leaving values in the log: a slice of one shard after the other, until
//! there is enough or time is up.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

use keyspace::{Policy, ShardId};

use super::Budget;
use crate::config::Setting;
use crate::limits::{
    BARREN_MS, BARREN_PASSES, BARREN_STALE_MS, EVICT_SLICE, EVICT_SLICE_SHARE, TRIES_PER_TURN,
};
use crate::server::Server;
use crate::store::Store;

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
    hand: AtomicUsize,
    /// About the most entries that any shard has.
    most: AtomicUsize,
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
    spent: AtomicU64,
}

impl Evictor {
    /// Whether there is room for what a worker needs. What is more than its share of the margin is claimed.
    fn finds_room(&self, budget: &Budget, need: usize) -> bool {
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
    fn release(&self, budget: &Budget) {
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
    fn barren(&self, now: i64) -> usize {
        if (0..BARREN_STALE_MS).contains(&(now - self.looked.load(Relaxed))) {
            return self.barren.load(Relaxed);
        }
        0
    }

    /// Notes how many they are by now.
    fn set_barren(&self, barren: usize, now: i64) {
        if barren <= 1 {
            self.barren_since.store(now, Relaxed);
        }
        self.barren.store(barren, Relaxed);
        self.looked.store(now, Relaxed);
    }

    /// Whether it has been so for long enough that nobody should wait for a value to leave.
    fn is_barren_for_long(&self, now: i64) -> bool {
        // Somebody may have set the clock back.
        !(0..BARREN_MS).contains(&(now - self.barren_since.load(Relaxed)))
    }
}

impl Server {
    /// A worker's turn is over: what it had claimed was taken, and it may spend time on making room again.
    #[inline]
    pub(crate) fn end_making_room(&self, worker: usize) {
        let evictor = &self.workers[worker].evictor;
        evictor.release(&self.memory);
        evictor.has_made_exception.store(false, Relaxed);
        evictor.begin_turn();
    }
}

/// See [`make_room`].
pub(crate) fn make_room(server: &Server, store: &Store<'_>, worker: usize, need: usize) -> Room {
    let (budget, evictor) = (&server.memory, &server.workers[worker].evictor);
    if budget.look_again(store.now) {
        server.control.wake();
    }
    // What the last claim was for has run.
    evictor.release(budget);
    if evictor.finds_room(budget, need) {
        return Room::Enough;
    }
    let relief = match server.policy() {
        Some(policy) => Relief::Evict(policy),
        None if server.offloads() && server.may_offload() => {
            if !server.cold.is_offloading() {
                server.cold.want_offloading();
                return Room::Later;
            }
            Relief::Offload
        }
        None => return Room::No,
    };
    if is_enough_soon(budget, store, need) {
        return Room::Later;
    }
    let (began, limit_ns) = (sys::clock::ticks(), time_limit_ns(server));
    // Whoever comes behind those that it was not enough for does not try again at once: a turn in which
    // hundreds do is too long.
    let spent_before = evictor.spent.load(Relaxed);
    if sys::clock::ticks_to_ns(spent_before) > limit_ns.saturating_mul(TRIES_PER_TURN) {
        return Room::Later;
    }
    // Among many keys whose values are too small to go, those that may are not found at once.
    let shards = store.keyspace.databases() * store.keyspace.shards() * BARREN_PASSES;
    // To find out that no value may go takes longer than one command may.
    let mut barren = match relief {
        Relief::Evict(_) => 0,
        Relief::Offload => evictor.barren(store.now),
    };
    while barren <= shards {
        // What somebody else has locked says nothing.
        if let Some((gone, waits)) = relieve_slice(store, evictor, relief) {
            barren = if gone > 0 || waits { 0 } else { barren + 1 };
            evictor.set_barren(barren.min(shards), store.now);
        }
        if evictor.finds_room(budget, need) {
            // That was time well spent.
            evictor.spent.store(spent_before, Relaxed);
            return Room::Enough;
        }
        // A look at all shards may take longer than a command has: where there is nothing at all, nobody
        // waits for the end of it.
        if let Relief::Evict(policy) = relief
            && barren == 1
            && !has_candidates(store, policy)
        {
            return Room::No;
        }
        let spent = sys::clock::ticks().saturating_sub(began);
        evictor.spent.store(spent_before + spent, Relaxed);
        if sys::clock::ticks_to_ns(spent) > limit_ns || is_enough_soon(budget, store, need) {
            return Room::Later;
        }
    }
    let has_more = match relief {
        Relief::Evict(policy) => has_candidates(store, policy),
        Relief::Offload => !evictor.is_barren_for_long(store.now),
    };
    if has_more { Room::Later } else { Room::No }
}

/// What is done to make room.
#[derive(Clone, Copy)]
enum Relief {
    /// Keys go.
    Evict(Policy),
    /// Values go, as far as the log has them.
    Offload,
}

/// Whether there is enough once everything is freed that waits for the background.
fn is_enough_soon(budget: &Budget, store: &Store<'_>, need: usize) -> bool {
    let pending = store.keyspace.pending_bytes() as i64;
    pending > 0 && budget.excess(need) <= pending
}

/// Whether any key may go.
fn has_candidates(store: &Store<'_>, policy: Policy) -> bool {
    let (keyspace, turn) = (store.keyspace, &*store.turn);
    (0..keyspace.databases())
        .filter_map(|db| keyspace.existing(turn, db))
        .any(|database| {
            if policy.volatile_only {
                database.volatile() > 0
            } else {
                !database.is_empty()
            }
        })
}

/// Nanoseconds that one command may spend on it, as Redis has them: 500 us by default, and any time with a
/// tenacity of 100.
fn time_limit_ns(server: &Server) -> u64 {
    match server.settings.int(Setting::MaxMemoryEvictionTenacity) {
        tenacity @ 0..=10 => tenacity.max(1) as u64 * 50_000,
        100 => u64::MAX,
        tenacity => (500_000.0 * 1.15f64.powi(tenacity as i32 - 10)) as u64,
    }
}

/// Makes room in the next shard with a few of its keys: as many as its part of all. Returns how many went,
/// and whether some may go soon that may not yet; `None` if somebody has locked the shard.
fn relieve_slice(store: &Store<'_>, evictor: &Evictor, relief: Relief) -> Option<(usize, bool)> {
    let shards = store.keyspace.shards();
    let hand = evictor.hand.load(Relaxed);
    let (db, shard) = (
        hand / shards % store.keyspace.databases(),
        ShardId(hand % shards),
    );
    let len = match relief {
        Relief::Evict(_) => store.shard_len(db, shard),
        Relief::Offload => store.shard_resident(db, shard),
    };
    let Some(len) = len else {
        // A database that was never used: on to the next.
        evictor.hand.store((hand / shards + 1) * shards, Relaxed);
        return Some((0, false));
    };
    evictor.hand.store(hand + 1, Relaxed);
    // The largest is forgotten slowly, for it may have gone.
    let most = evictor.most.load(Relaxed);
    let most = len.max(most - most / 256);
    evictor.most.store(most, Relaxed);
    let slice = (most / EVICT_SLICE_SHARE).clamp(1, EVICT_SLICE);
    // By chance rounded up or down, so that a shard of few keys gives few.
    let scaled = slice * len;
    let chance = fastrand::usize(..most.max(1));
    let count = (scaled + chance) / most.max(1);
    match relief {
        _ if len == 0 => Some((0, false)),
        Relief::Evict(_) if count == 0 => Some((0, false)),
        Relief::Evict(policy) => Some((store.evict(db, shard, policy, count), false)),
        Relief::Offload => store.offload(db, shard, count.max(1)),
    }
}
