//! What is told of changes to keys: the server's end of the observed byte (`keyspace::Observer`).
//!
//! Each reason to observe a key has a registry of its own, which says who is meant: [`crate::observe::watch`]
//! for WATCH, [`crate::observe::tracking`] for CLIENT TRACKING, [`crate::observe::waits`] for commands that
//! wait, [`crate::observe::multi_read`] for those that read very many keys. Here is what they have in common:
//! the dispatch of a change, and what happens when databases are emptied or exchanged, which changes many
//! keys without touching one.

use keyspace::{Change, Keyspace, Turn, reason};

use crate::observe::Observed;
use crate::observe::multi_read::MultiReads;
use crate::observe::notify;
use crate::observe::tracking::Tracking;
use crate::observe::waits::{Waiters, ready};
use crate::observe::watch::Watches;

/// See the module.
pub(crate) struct Observers {
    pub(crate) watches: Watches,
    pub(crate) tracking: Tracking,
    pub(crate) waiters: Waiters,
    pub(crate) multi_reads: MultiReads,
}

impl Observers {
    /// For a keyspace of so many shards.
    pub(crate) fn new(shards: usize) -> Observers {
        Observers {
            watches: Watches::new(shards),
            tracking: Tracking::new(shards),
            waiters: Waiters::new(shards),
            multi_reads: MultiReads::default(),
        }
    }
}

/// A keyspace that nobody else is in, at a time.
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
        // A database that was never used need not be made for this.
        self.keyspace
            .existing(self.turn, db)
            .is_some_and(|database| database.lock(hash, self.now).contains(key))
    }
}

impl Observers {
    /// The database is about to be emptied, or to become what another is: what has a value before or behind
    /// that has changed.
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

    /// The database is another one now: its shards do not know yet that they are observed.
    pub(crate) fn after_replacement(&self, alone: Alone<'_>, db: usize) {
        self.multi_reads.replaced(db);
        for key in self.watches.keys_in(db) {
            let hash = alone.keyspace.hash(&key);
            let mut guard = alone.keyspace.lock(alone.turn, db, hash, alone.now);
            guard.observe(reason::WATCHED);
        }
        for key in self.waiters.keys_in(db) {
            let hash = alone.keyspace.hash(&key);
            let mut guard = alone.keyspace.lock(alone.turn, db, hash, alone.now);
            guard.observe(reason::AWAITED);
            if guard.contains(keyspace::Key { bytes: &key, hash }) {
                ready::note(db, &key);
            }
        }
    }
}

impl Observed {
    /// A key that is observed has changed. Its shard is locked. Returns the reasons that stay.
    pub(crate) fn changed(&self, change: &Change<'_>) -> u8 {
        notify::expired(self, change);
        let mut stay = 0;
        let watches = &self.observers.watches;
        if change.observed & reason::WATCHED != 0 && watches.changed(change) {
            stay |= reason::WATCHED;
        }
        let tracking = &self.observers.tracking;
        if change.observed & reason::TRACKED != 0 && tracking.changed(self, change) {
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
        stay
    }
}
