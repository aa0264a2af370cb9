//! Dispatch of changes to observed keys: the server's side of the observed byte (`keyspace::Observer`).
//!
//! Each reason to observe a key has a registry of its own: [`crate::observe::watch`] for WATCH,
//! [`crate::observe::tracking`] for CLIENT TRACKING, [`crate::observe::waits`] for blocked commands,
//! [`crate::observe::multi_read`] for reads of very many keys, [`crate::observe::readings`] for keys that
//! are sent to another server. Common to them, and here: the dispatch of a
//! change, and the emptying or exchange of databases, which changes many keys without touching one.

use keyspace::{Change, ChangeKind, Keyspace, Turn, reason};

use crate::observe::Observed;
use crate::observe::multi_read::MultiReads;
use crate::observe::notify;
use crate::observe::readings::Readings;
use crate::observe::tracking::Tracking;
use crate::observe::waits::{Waiters, ready};
use crate::observe::watch::Watches;

/// Registries of observed keys.
pub(crate) struct Observers {
    pub(crate) watches: Watches,
    pub(crate) tracking: Tracking,
    pub(crate) waiters: Waiters,
    pub(crate) multi_reads: MultiReads,
    pub(crate) readings: Readings,
}

impl Observers {
    /// Registries for a keyspace with `shards` shards per database.
    pub(crate) fn new(shards: usize) -> Observers {
        Observers {
            watches: Watches::new(shards),
            tracking: Tracking::new(shards),
            waiters: Waiters::new(shards),
            multi_reads: MultiReads::default(),
            readings: Readings::default(),
        }
    }
}

/// Exclusive access to the keyspace, at a time (Unix, ms).
#[derive(Clone, Copy)]
pub(crate) struct Alone<'a> {
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) turn: &'a Turn<'static>,
    pub(crate) now: i64,
}

impl Alone<'_> {
    fn contains(&self, db: usize, key: &[u8]) -> bool {
        let hash = self.keyspace.hash(key);
        let key = keyspace::Key { bytes: key, hash };
        // A database that was never used is not created for this.
        self.keyspace
            .existing(self.turn, db)
            .is_some_and(|database| database.lock(hash, self.now).contains(key))
    }
}

impl Observers {
    /// Reports changes before a database is emptied, or replaced by `other`: keys with a value before or
    /// after have changed.
    pub(crate) fn before_replacement(&self, alone: Alone<'_>, db: usize, other: Option<usize>) {
        for key in self.watches.keys_in(db) {
            let is_there = |db| alone.contains(db, &key);
            if is_there(db) || other.is_some_and(is_there) {
                let hash = alone.keyspace.hash(&key);
                let key = keyspace::Key { bytes: &key, hash };
                self.watches.touch(alone.keyspace.shard_of(hash), db, key);
            }
        }
    }

    /// Marks the observed shards of a database after its replacement.
    pub(crate) fn after_replacement(&self, alone: Alone<'_>, db: usize) {
        self.multi_reads.replaced(db);
        self.readings.replaced(db);
        for key in self.watches.keys_in(db) {
            let hash = alone.keyspace.hash(&key);
            let mut guard = alone.keyspace.lock(alone.turn, db, hash, alone.now);
            guard.observe(reason::WATCHED);
        }
        for key in self.waiters.keys_in(db) {
            let hash = alone.keyspace.hash(&key);
            let mut guard = alone.keyspace.lock(alone.turn, db, hash, alone.now);
            guard.observe(reason::AWAITED);
            let place = keyspace::Key { bytes: &key, hash };
            let shard = alone.keyspace.shard_of(hash);
            if guard.contains(place) || self.waiters.hear_removal(shard, place) {
                ready::note(db, &key);
            }
        }
    }
}

impl Observed {
    /// Dispatches a change to an observed key. Its shard is locked. Returns the reasons that remain.
    pub(crate) fn changed(&self, change: &Change<'_>) -> u8 {
        notify::expired(self, change);
        let mut stay = 0;
        // As in Redis: neither WATCH nor tracking takes a change of groups alone for one.
        let is_of_value = !matches!(change.kind, ChangeKind::Groups { .. });
        let watches = &self.observers.watches;
        if change.observed & reason::WATCHED != 0 && (!is_of_value || watches.changed(change)) {
            stay |= reason::WATCHED;
        }
        let tracking = &self.observers.tracking;
        if change.observed & reason::TRACKED != 0
            && (!is_of_value || tracking.changed(self, change))
        {
            stay |= reason::TRACKED;
        }
        let waiters = &self.observers.waiters;
        if change.observed & reason::AWAITED != 0 && waiters.changed(change) {
            stay |= reason::AWAITED;
        }
        let multi_reads = &self.observers.multi_reads;
        if change.observed & reason::MULTI_READ != 0 && multi_reads.changed(change) {
            stay |= reason::MULTI_READ;
        }
        let readings = &self.observers.readings;
        if change.observed & reason::READ != 0 && readings.changed(change) {
            stay |= reason::READ;
        }
        stay
    }
}
