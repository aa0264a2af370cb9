//! Making room by evicting keys, or by leaving values in the log: a slice of one shard after the other, until
//! there is enough or time is up.

use std::sync::atomic::Ordering::Relaxed;

use keyspace::{Policy, ShardId};

use crate::config::Setting;
use crate::limits::{BARREN_PASSES, EVICT_SLICE, EVICT_SLICE_SHARE, TRIES_PER_TURN};
use crate::shared::memory::{Budget, Evictor, Room};
use crate::store::Store;
use crate::values::Values;

/// See the module.
pub(crate) fn make_room(server: &Values, store: &Store<'_>, worker: usize, need: usize) -> Room {
    let (budget, evictor) = (&server.memory, &server.workers[worker].evictor);
    if budget.look_again(store.now) {
        server.control.wake();
    }
    // The command of the last claim has run.
    evictor.release(budget);
    if evictor.finds_room(budget, need) {
        return Room::Enough;
    }
    let relief = match server.policy() {
        Some(policy) => Relief::Evict(policy),
        None if server.offloads() && server.may_offload() => {
            if !server.offload.is_offloading() {
                server.offload.want_offloading();
                return Room::Later;
            }
            Relief::Offload
        }
        None => return Room::No,
    };
    if is_enough_soon(budget, store, need) {
        return Room::Later;
    }
    if matches!(relief, Relief::Offload) && evictor.rests(store.now) {
        return Room::No;
    }
    let (began, limit_ns) = (sys::clock::ticks(), time_limit_ns(server));
    // After a failed attempt the next request does not try again at once: hundreds of attempts in one turn
    // take too long.
    let spent_before = evictor.spent.load(Relaxed);
    if sys::clock::ticks_to_ns(spent_before) > limit_ns.saturating_mul(TRIES_PER_TURN) {
        return Room::Later;
    }
    // Among many keys whose values are too small to go, those that may are not found at once.
    let pass = pass_len(store);
    let shards = pass * BARREN_PASSES;
    // To find out that no value may go takes longer than one command may.
    let mut barren = match relief {
        Relief::Evict(_) => 0,
        Relief::Offload => evictor.barren(store.now),
    };
    while barren <= shards {
        // A locked shard gives no evidence.
        if let Some((gone, waits)) = relieve_slice(store, evictor, relief) {
            barren = if gone > 0 || waits { 0 } else { barren + 1 };
            evictor.set_barren(barren.min(shards), store.now);
        }
        if evictor.finds_room(budget, need) {
            // That was time well spent.
            evictor.spent.store(spent_before, Relaxed);
            return Room::Enough;
        }
        // A look at all shards may take longer than a command may. If no shard has anything to remove, the
        // look ends early.
        if let Relief::Evict(policy) = relief
            && barren == 1
            && !has_candidates(store, policy)
        {
            return Room::No;
        }
        let spent = sys::clock::ticks().saturating_sub(began);
        evictor.spent.store(spent_before + spent, Relaxed);
        if is_enough_soon(budget, store, need) {
            return Room::Later;
        }
        if sys::clock::ticks_to_ns(spent) > limit_ns {
            return match relief {
                Relief::Evict(_) => Room::Later,
                Relief::Offload => found_nothing(evictor, store.now, barren, pass),
            };
        }
    }
    match relief {
        Relief::Evict(policy) if has_candidates(store, policy) => Room::Later,
        Relief::Evict(_) => Room::No,
        Relief::Offload => found_nothing(evictor, store.now, barren, pass),
    }
}

/// What a command gets when a search has ended behind `barren` shards in a row without a value that can
/// leave memory: it is refused if there was none for long, in as many passes over all shards as that takes.
/// The next commands are refused without a search then.
fn found_nothing(evictor: &Evictor, now: i64, barren: usize, pass: usize) -> Room {
    let known = pass * (BARREN_PASSES - 1);
    if barren <= known || !evictor.is_barren_for_long(now) {
        return Room::Later;
    }
    // The next search is the last pass once more.
    evictor.set_barren(known, now);
    evictor.rest(now);
    Room::No
}

/// Way to free memory.
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

/// Slices in one pass over all shards: one for each shard of the databases that were used, and one for each
/// other database ([`relieve_slice`]). To count the shards of databases that were never used would take a
/// large server many seconds.
fn pass_len(store: &Store<'_>) -> usize {
    let (keyspace, turn) = (store.keyspace, &*store.turn);
    let slices = |db| keyspace.existing(turn, db).map_or(1, |_| keyspace.shards());
    (0..keyspace.databases()).map(slices).sum()
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
fn time_limit_ns(server: &Values) -> u64 {
    match server.settings.int(Setting::MaxMemoryEvictionTenacity) {
        tenacity @ 0..=10 => tenacity.max(1) as u64 * 50_000,
        100 => u64::MAX,
        tenacity => (500_000.0 * 1.15f64.powi(tenacity as i32 - 10)) as u64,
    }
}

/// Frees memory in the next shard by a few of its keys, in proportion to the shard's part of all keys.
/// Returns the number of removed keys, and whether further ones can be removed soon; `None` if the shard is
/// locked.
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
