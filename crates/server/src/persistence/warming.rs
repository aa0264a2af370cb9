//! Warming: loading of values that a start has left in the log, while the server is in service.
//!
//! A thread reads the log once, from its newest segment to its oldest, and gives each value to the entry that
//! still has its address. Requests for values don't wait for it (`cold`), and values that compaction moves
//! meanwhile are loaded on that way (`compaction`). It is throttled by load. It ends when the whole log is
//! read, or when memory is nearly used up; the rest of the values is loaded when they are used.
//!
//! Invariant: a value is given only to an entry that still has the address from which it was read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use ferrite_log::{Change, DbId, Recovery, Replayed, Sweep, Value};
use keyspace::{Key, Turn};

use crate::config::Setting;
use crate::limits::{BACKGROUND_NICE, WARMING_SHARE, WORK_US};
use crate::persistence::durable::Durable;
use crate::persistence::journal::stored;
use crate::shared::throttle::Throttle;

/// Whether a start leaves all values in the log: if the log is large and the policy allows it.
pub(super) fn leaves_all(server: &Durable, recovery: &Recovery) -> bool {
    let least = server.settings.int(Setting::LogLazyLoadSize).unsigned_abs();
    server.offloads() && least > 0 && recovery.log_bytes() >= least
}

/// Progress of warming.
#[derive(Default)]
pub(crate) struct Warming {
    /// Number of the log whose values are being loaded; 0 if there is none.
    log: AtomicU64,
    /// Whether a caller waits for its end.
    is_urgent: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

impl Warming {
    /// Bytes of the log that were read, and their total; `None` if warming is not in progress.
    pub(crate) fn progress(&self) -> Option<(u64, u64)> {
        let is_on = self.log.load(Relaxed) != 0;
        is_on.then(|| (self.done.load(Relaxed), self.total.load(Relaxed)))
    }

    /// Ends the throttle, because a caller waits for the end.
    pub(super) fn hurry(&self) {
        self.is_urgent.store(true, Relaxed);
    }

    /// Ends warming for a log, unless a new one has begun.
    fn end(&self, log: u64) {
        let _ = self.log.compare_exchange(log, 0, Relaxed, Relaxed);
    }

    /// Whether values read for other purposes are to be given to their entries.
    pub(super) fn takes_along(&self, server: &Durable) -> bool {
        self.log.load(Relaxed) != 0 && !server.memory.is_near()
    }

    fn note(&self, (done, total): (u64, u64)) {
        self.done.store(done, Relaxed);
        self.total.store(total, Relaxed);
    }
}

/// Reason for the end.
enum End {
    All,
    MemoryIsFull,
    /// There is another log, or the server is stopping.
    Cancelled,
}

/// Begins warming on a thread of its own. The log was just opened.
pub(super) fn begin(server: &'static Durable) {
    let own = &server.persistence;
    let Some(sweep) = own.log.read().as_ref().map(ferrite_log::Log::sweep) else {
        return;
    };
    let log = own.current();
    own.warming.note(sweep.progress());
    own.warming.is_urgent.store(false, Relaxed);
    own.warming.log.store(log, Relaxed);
    let thread = std::thread::Builder::new().name("warm".into());
    let spawned = thread.spawn(move || run(server, sweep, log));
    if let Err(error) = spawned {
        own.warming.end(log);
        log::warn!(
            "cannot start the thread that brings values back; they come when they are used: {error}"
        );
    }
}

fn run(server: &'static Durable, mut sweep: Sweep, log: u64) {
    let (own, began) = (&server.persistence, Instant::now());
    let mut turn = server.keyspace.turns().register();
    let end = warm(server, &mut sweep, log, &mut turn);
    drop(turn);
    // A client that waits for the end of warming finds that offloading has ended, too.
    let is_all_here = matches!(end, End::All) && server.end_offloading();
    own.warming.end(log);
    match end {
        End::All => {
            let seconds = began.elapsed().as_secs_f64();
            if is_all_here {
                log::info!("All values are in memory after {seconds:.1} seconds");
            }
        }
        End::MemoryIsFull => {
            log::info!(
                "Memory is nearly used up: the other values stay in the log until they are used"
            );
        }
        End::Cancelled => {}
    }
}

fn warm(server: &Durable, sweep: &mut Sweep, log: u64, turn: &mut Turn<'_>) -> End {
    let own = &server.persistence;
    sys::cpu::give_way(BACKGROUND_NICE);
    let mut throttle = Throttle::new(server, WARMING_SHARE, WORK_US);
    loop {
        if server.is_shutting_down() || own.current() != log {
            return End::Cancelled;
        }
        if server.memory.is_near() {
            return End::MemoryIsFull;
        }
        let hash = |_: DbId, key: &[u8]| server.keyspace.hash(key);
        let read = sweep.next(hash, |records| give_back(server, turn, records));
        match read {
            Ok(Some(_)) => {}
            Ok(None) => return End::All,
            // Later requests for one of the values get the error.
            Err(error) => log::error!("values stay in the log: {error}"),
        }
        own.warming.note(sweep.progress());
        if !own.warming.is_urgent.load(Relaxed) {
            throttle.take(server);
        }
    }
}

/// Gives values to their entries.
pub(super) fn give_back(server: &Durable, turn: &mut Turn<'_>, records: &[Replayed<'_>]) {
    let (keyspace, now) = (&server.keyspace, sys::clock::realtime_ms());
    turn.enter();
    let database = |record: &Replayed<'_>| {
        let number = server.persistence.number_of(record.record.db)?;
        keyspace.existing(turn, number)
    };
    let databases = || {
        records
            .iter()
            .filter_map(|its| Some((database(its)?, its.hash)))
    };
    databases().for_each(|(database, hash)| database.prefetch_bucket(hash));
    databases().for_each(|(database, hash)| database.prefetch_entry(hash));
    let is_near = |one: &Replayed<'_>, other: &Replayed<'_>| {
        one.record.db == other.record.db
            && keyspace.shard_of(one.hash) == keyspace.shard_of(other.hash)
    };
    for near in records.chunk_by(is_near) {
        let Some(database) = database(&near[0]) else {
            continue;
        };
        let mut guard = database.lock(near[0].hash, now);
        if !guard.has_cold() {
            continue;
        }
        for its in near {
            let key = Key {
                bytes: its.record.key,
                hash: its.hash,
            };
            if let Change::Set {
                value: Value::Bytes(value),
                ..
            } = its.record.change
                && let Some(address) = its.record.address()
                && let Some(entry) = guard.find(key)
            {
                entry.warm_copy(stored(address), value);
            }
        }
    }
    turn.leave();
}
