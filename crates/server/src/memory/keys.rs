//! Making room by evicting keys, or by leaving values in the log: a slice of one shard after the other, until there is enough or time is
//! up.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use keyspace::{Key, Policy, ShardId};

use super::Budget;
use crate::command::{Command, Context, Failure, failure, flag};
use crate::config::Setting;
use crate::limits::{
    BARREN_PASSES, EVICT_SLICE, EVICT_SLICE_SHARE, FORESEEN_BYTES, FORESEEN_TRIES,
};
use crate::server::Server;
use crate::store::Store;
use crate::worker::Worker;

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
    /// Shards in a row in which no value could leave memory, or will soon.
    barren: AtomicUsize,
}

impl Context<'_> {
    /// Whether a command may run as far as memory is concerned, after making room for it if it takes any.
    #[cold]
    #[inline(never)]
    pub(crate) fn has_room(&self, command: &Command, need: usize) -> bool {
        !command.spec.has(flag::DENYOOM) || self.make_room(need) == Room::Enough
    }

    /// Makes room for a command that needs about `need` bytes, within what `maxmemory-eviction-tenacity` allows.
    pub(crate) fn make_room(&self, need: usize) -> Room {
        make_room(self.server, &self.store, self.worker, need)
    }
}

impl Context<'_> {
    /// Makes room for a value of so many bytes that a small request asks for, as far as it is not there yet. Nothing is locked.
    ///
    /// # Errors
    /// There is none.
    #[inline]
    pub(crate) fn foresee(&self, key: Key<'_>, len: usize) -> Result<(), Failure> {
        if len < FORESEEN_BYTES || self.in_transaction {
            return Ok(());
        }
        self.foresee_large(key, len)
    }

    #[cold]
    fn foresee_large(&self, key: Key<'_>, len: usize) -> Result<(), Failure> {
        let mut shard = self.store.lock(key);
        let bytes = shard.find(key).map_or(len, |entry| entry.growth(len));
        drop(shard);
        if bytes == 0 {
            return Ok(());
        }
        for _ in 0..FORESEEN_TRIES {
            match self.make_room(bytes) {
                Room::Enough => return Ok(()),
                Room::Later => std::thread::yield_now(),
                Room::No => break,
            }
        }
        Err(failure::OUT_OF_MEMORY)
    }
}

impl Worker {
    /// Makes room outside of any command: for what is about to be read, or because there is too much. Whether there is
    /// more to do.
    #[cold]
    #[inline(never)]
    pub(crate) fn make_room(&mut self, need: usize) -> bool {
        let store = Store::new(
            self.server,
            &mut self.turn,
            self.stats,
            self.journal.as_ref(),
            self.now,
        );
        let room = make_room(self.server, &store, self.number, need);
        if let Some(journal) = &self.journal {
            // Nobody waits for these, and the turn may be at its end.
            let _ = journal.commit();
        }
        room == Room::Later
    }
}

/// See [`Context::make_room`].
pub(crate) fn make_room(server: &Server, store: &Store<'_>, worker: usize, need: usize) -> Room {
    let budget = &server.memory;
    if budget.excess(need) <= 0 {
        return Room::Enough;
    }
    let relief = match server.policy() {
        Some(policy) => Relief::Evict(policy),
        None if server.offloads() && server.may_offload() => {
            if !server.cold.is_offloading() {
                // The control thread sees that too, and begins.
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
    let evictor = &server.workers[worker].evictor;
    // Among many keys whose values are too small to go, those that may are not found at once.
    let shards = store.keyspace.databases() * store.keyspace.shards() * BARREN_PASSES;
    // To find out that no value may go takes longer than one command may.
    let mut barren = match relief {
        Relief::Evict(_) => 0,
        Relief::Offload => evictor.barren.load(Relaxed),
    };
    while barren <= shards {
        let (gone, waits) = relieve_slice(store, evictor, relief);
        barren = if gone > 0 || waits { 0 } else { barren + 1 };
        evictor.barren.store(barren.min(shards), Relaxed);
        if budget.excess(need) <= 0 {
            return Room::Enough;
        }
        let spent = sys::clock::ticks().saturating_sub(began);
        if sys::clock::ticks_to_ns(spent) > limit_ns || is_enough_soon(budget, store, need) {
            return Room::Later;
        }
    }
    let has_more = match relief {
        Relief::Evict(policy) => has_candidates(store, policy),
        Relief::Offload => false,
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

/// Nanoseconds that one command may spend on it, as Redis has them: 500 us by default, and any time with a tenacity of 100.
fn time_limit_ns(server: &Server) -> u64 {
    match server.settings.int(Setting::MaxMemoryEvictionTenacity) {
        tenacity @ 0..=10 => tenacity.max(1) as u64 * 50_000,
        100 => u64::MAX,
        tenacity => (500_000.0 * 1.15f64.powi(tenacity as i32 - 10)) as u64,
    }
}

/// Makes room in the next shard that can be locked at once, with a few of its keys: as many as its part of all. Returns how many went, and
/// whether some may go soon that may not yet.
fn relieve_slice(store: &Store<'_>, evictor: &Evictor, relief: Relief) -> (usize, bool) {
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
        return (0, false);
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
        _ if len == 0 => (0, false),
        Relief::Evict(_) if count == 0 => (0, false),
        Relief::Evict(policy) => (store.evict(db, shard, policy, count), false),
        Relief::Offload => store.offload(db, shard, count.max(1)),
    }
}
