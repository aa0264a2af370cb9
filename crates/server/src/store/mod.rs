//! Data as commands use it: the only place where the keyspace and the log meet.
//!
//! A handler asks for the shards of its keys and works on entries. Every change goes through [`Shard`] or
//! [`Entry`], ends in `changed` there, counts as a change, notifies the observers of the key, and is written
//! to the log ([`crate::persistence::journal`]) under the same lock, so log order is execution order for
//! every key. Hits and misses are counted here too: [`Shard::read`] is what a read does, [`Shard::find`] is a
//! look before a write.
//!
//! Lock order: databases ascending, shards ascending inside a database. A transaction locks the shards of all
//! its commands before the first of them runs ([`Store::hold`]). The commands borrow these locks and take
//! none themselves.

mod batch;
mod items;
mod moment;
mod offloading;
mod room;
mod shard;
mod sorted;
mod streams;
mod taking;
mod text;

use std::ops::Range;

use ferrite_log::Appender;
use keyspace::{ChangeKind, Database, Key, Keyspace, Policy, ShardId, ShardSet, Turn};

use crate::limits::{EVICT_PACKS, EVICTED_KEY_BYTES, FORESEEN_BYTES, PACK_SHARE};
use crate::metrics::WorkerStats;
use crate::metrics::key_scan::Size;
use crate::observe::notify::{Event, Notifier};
use crate::observe::{Alone, Observers};
use crate::persistence::Persistence;
use crate::persistence::journal::Journal;
use crate::request::Failure;
use crate::script::{Hears, Libraries};
use crate::values::Values;
use crate::values::cold::Served;

use batch::Reached;
pub(crate) use batch::{Pair, Shards};
pub(crate) use items::{HashEdit, Items, Kept, List, ListEdit, Set, SetEdit, Stream, StreamEdit};
pub(crate) use moment::HeldMoment;
pub(crate) use room::make_room;
pub(crate) use shard::{Entry, LastUse, Shard, Still};
pub(crate) use sorted::{SortedSet, SortedSetEdit};
pub(crate) use taking::Taking;
pub(crate) use text::Text;

/// The way from a command to the data, for one connection in one turn.
pub(crate) struct Store<'c> {
    pub(crate) keyspace: &'static Keyspace,
    pub(crate) turn: &'c mut Turn<'static>,
    pub(crate) stats: &'static WorkerStats,
    /// The database that SELECT chose.
    pub(crate) db: usize,
    /// The time (Unix, ms) at which this turn decides expiry.
    pub(crate) now: i64,
    /// Whether reads note an access (CLIENT NO-TOUCH says they don't).
    pub(crate) touch: bool,
    /// Receiver of events.
    pub(crate) notifier: Notifier,
    pub(crate) observers: &'static Observers,
    pub(crate) persistence: &'static Persistence,
    /// The way into the log, if there is one.
    pub(crate) journal: Option<&'c Journal>,
    /// Values that the running command gets though their entries are cold.
    pub(crate) served: &'c mut Served,
}

impl<'c> Store<'c> {
    /// The way for what no client asks for: database 0, and nothing that is read counts as used.
    #[inline(always)]
    pub(crate) fn new(
        server: &'static Values,
        turn: &'c mut Turn<'static>,
        stats: &'static WorkerStats,
        journal: Option<&'c Journal>,
        served: &'c mut Served,
        now: i64,
    ) -> Store<'c> {
        Store {
            keyspace: &server.keyspace,
            turn,
            stats,
            db: 0,
            now,
            touch: false,
            notifier: Notifier::new(server),
            observers: &server.observers,
            persistence: &server.persistence,
            journal,
            served,
        }
    }
}

impl Store<'_> {
    /// The selected database.
    pub(crate) fn database(&self) -> &Database {
        self.keyspace.database(self.turn, self.db)
    }

    /// Locks the shard of one key.
    #[inline]
    pub(crate) fn lock(&self, key: Key<'_>) -> Shard<'_> {
        self.lock_in(self.db, key)
    }

    /// Locks the shard of one key of a database, or lends it from what a transaction holds.
    #[inline]
    pub(crate) fn lock_in(&self, db: usize, key: Key<'_>) -> Shard<'_> {
        self.lock_hash(db, key.hash)
    }

    /// [`Store::lock_in`] for any key of this hash.
    #[inline]
    pub(crate) fn lock_hash(&self, db: usize, hash: u64) -> Shard<'_> {
        Shard {
            guard: self.keyspace.lock(self.turn, db, hash, self.now),
            store: self,
            db,
        }
    }

    /// Whether a key of a database is there. One whose time has come goes.
    pub(crate) fn contains_in(&self, db: usize, key: Key<'_>) -> bool {
        self.lock_in(db, key).contains(key)
    }

    /// Size of a key of a database, if the key exists. It counts as no access, hit or miss.
    pub(crate) fn size_in(&self, db: usize, key: Key<'_>) -> Option<Size> {
        let mut shard = self.lock_in(db, key);
        shard.find(key).map(|entry| entry.size())
    }

    /// Locks the shards of several keys, all before any is read.
    pub(crate) fn lock_keys<'k>(&self, keys: impl Iterator<Item = Key<'k>>) -> Shards<'_> {
        self.lock_keys_in(self.db, keys)
    }

    /// [`Store::lock_keys`] of a database.
    pub(crate) fn lock_keys_in<'k>(
        &self,
        db: usize,
        keys: impl Iterator<Item = Key<'k>>,
    ) -> Shards<'_> {
        let mut set = ShardSet::default();
        keys.for_each(|key| set.add(self.keyspace.shard_of(key.hash)));
        self.lock_shards_in(db, set)
    }

    /// Locks all shards of the selected database.
    pub(crate) fn lock_all(&self) -> Shards<'_> {
        let mut set = ShardSet::default();
        (0..self.keyspace.shards()).for_each(|shard| set.add(ShardId(shard)));
        self.lock_shards(set)
    }

    /// Locks several shards of the selected database.
    #[inline]
    pub(crate) fn lock_shards(&self, set: ShardSet) -> Shards<'_> {
        self.lock_shards_in(self.db, set)
    }

    /// [`Store::lock_shards`] of a database.
    fn lock_shards_in(&self, db: usize, set: ShardSet) -> Shards<'_> {
        if let Some(journal) = self.journal {
            journal.begin_batch();
        }
        Shards {
            locked: self.keyspace.lock_set(self.turn, db, set, self.now),
            store: self,
            db,
        }
    }

    /// Locks the shards of several keys that get these values, all without expiry. The log knows the whole
    /// batch before the first key is set, so each key is logged as it is set.
    pub(crate) fn lock_pairs<'k>(
        &self,
        pairs: impl Iterator<Item = (Key<'k>, &'k [u8])> + Clone,
    ) -> Shards<'_> {
        let mut set = ShardSet::default();
        pairs
            .clone()
            .for_each(|(key, _)| set.add(self.keyspace.shard_of(key.hash)));
        let mut locked = self.keyspace.lock_set(self.turn, self.db, set, self.now);
        if let Some(journal) = self.journal {
            if journal.has_blobs() || self.keyspace.has_expiring() {
                // A key that has expired with its file, or with all of its fields, is deleted in the log.
                // That record has to come before the place that the series claims.
                for (key, _) in pairs.clone() {
                    locked.shard(key.hash).contains(key);
                }
            }
            let (records, bytes) = pairs.fold((0, 0), |(records, bytes), (key, value)| {
                let own = Appender::set_bytes(key.bytes.len(), value.len());
                (records + 1, bytes + own)
            });
            journal.begin_series(records, bytes);
        }
        Shards {
            locked,
            store: self,
            db: self.db,
        }
    }

    /// Locks the shard of a key in each of two different databases.
    pub(crate) fn lock_across(
        &self,
        first: (usize, Key<'_>),
        second: (usize, Key<'_>),
    ) -> Pair<'_> {
        assert_ne!(first.0, second.0, "one database is locked as a set");
        if let Some(journal) = self.journal {
            journal.begin_batch();
        }
        let lock = |(db, key)| self.lock_in(db, key);
        if first.0 < second.0 {
            let first = lock(first);
            let second = lock(second);
            Pair { first, second }
        } else {
            let second = lock(second);
            let first = lock(first);
            Pair { first, second }
        }
    }

    /// Adds the shard of a key, by its hash, to what [`Store::hold`] will lock.
    pub(crate) fn want(&mut self, db: usize, hash: u64) {
        self.keyspace.want(self.turn, db, hash);
    }

    /// Locks all that is wanted, until [`Store::release`]. Meanwhile every lock that is asked for is lent
    /// from it.
    pub(crate) fn hold(&mut self) {
        self.keyspace.hold(self.turn);
    }

    /// Whether the shard of a hash of the own database is held. With `break_scripts` a script holds none.
    pub(crate) fn is_held(&self, hash: u64) -> bool {
        cfg!(break_scripts) || self.keyspace.is_held(self.turn, self.db, hash)
    }

    /// Unlocks what is held, and forgets what was wanted.
    pub(crate) fn release(&mut self) {
        self.keyspace.release(self.turn);
    }

    /// Waits until no other worker is inside a turn, and keeps it so until [`Store::end_alone`].
    pub(crate) fn begin_alone(&mut self) {
        self.turn.begin_alone();
    }

    /// As [`Store::begin_alone`], for a task that lasts.
    pub(crate) fn begin_alone_last(&mut self) {
        self.turn.begin_alone_last();
    }

    /// Lets the other workers in again. With `break_scripts` a script may not have kept them out.
    pub(crate) fn end_alone(&mut self) {
        if cfg!(not(break_scripts)) || self.turn.is_alone() {
            self.turn.end_alone();
        }
    }

    /// All changes from here to [`Store::end_batch`] are one change for other clients and after a crash: the
    /// log gets one record for all of them. A command on several keys is such a batch too, for as long as its
    /// [`Shards`] are locked.
    pub(crate) fn begin_batch(&mut self) {
        if let Some(journal) = self.journal {
            journal.begin_transaction();
        }
    }

    /// Ends what [`Store::begin_batch`] began. The shards of all changed keys are still locked, or no other
    /// worker is inside a turn.
    pub(crate) fn end_batch(&mut self) {
        if let Some(journal) = self.journal {
            journal.end_transaction(&mut Reached(self));
        }
    }

    /// Runs a task while no other worker is inside a turn.
    fn alone<R>(&mut self, task: impl FnOnce(&mut Self) -> R) -> R {
        if self.turn.is_alone() {
            return task(self);
        }
        self.begin_alone();
        let result = task(self);
        self.end_alone();
        result
    }

    /// Context for observers while no other worker is inside a turn.
    fn while_alone(&self) -> Alone<'_> {
        Alone {
            keyspace: self.keyspace,
            turn: self.turn,
            now: self.now,
        }
    }

    /// Empties databases in one moment for all clients. Returns how many keys they had.
    pub(crate) fn flush(&mut self, databases: Range<usize>) -> usize {
        let keyspace = self.keyspace;
        let keys = self.alone(|store| {
            let existing = databases
                .clone()
                .filter_map(|db| keyspace.existing(store.turn, db));
            let keys = existing.map(Database::len).sum::<usize>();
            if let Some(journal) = store.journal {
                journal.clear(&databases, keyspace.databases());
            }
            for db in databases {
                let observers = store.observers;
                observers.before_replacement(store.while_alone(), db, None);
                store.turn.exclusive(|alone| keyspace.flush(alone, db));
                observers.after_replacement(store.while_alone(), db);
            }
            store.notifier.flushed();
            keys
        });
        self.stats.dirty.add(keys as u64);
        keys
    }

    /// Changes libraries in one moment for all clients. `text_bytes`: of the texts that are new.
    ///
    /// # Errors
    /// The log has no room for them, or `change` fails.
    pub(crate) fn change_libraries<R>(
        &mut self,
        text_bytes: usize,
        change: impl FnOnce(&Libraries, Hears<'_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        if let Some(journal) = self.journal
            && !journal.may_append(0, text_bytes)
        {
            return Err(Failure::no_space(text_bytes));
        }
        let changed = self.alone(|store| {
            let journal = store.journal;
            let hears: Hears<'_> = &mut |name, before| {
                if let Some(journal) = journal {
                    journal.library_changed(name, before);
                }
            };
            let changed = change(&store.persistence.libraries, hears)?;
            if let Some(journal) = journal {
                journal.finish_libraries();
            }
            Ok::<R, Failure>(changed)
        })?;
        self.stats.dirty.add(1);
        Ok(changed)
    }

    /// Databases were replaced by loaded ones: marks the shards of observed keys again.
    pub(crate) fn watch_over_all(&mut self) {
        let keyspace = self.keyspace;
        self.alone(|store| {
            for db in 0..keyspace.databases() {
                store.observers.after_replacement(store.while_alone(), db);
            }
        });
    }

    /// Exchanges two databases in one moment for all clients.
    pub(crate) fn swap(&mut self, first: usize, second: usize) {
        let keyspace = self.keyspace;
        self.alone(|store| {
            let observers = store.observers;
            for (db, other) in [(first, second), (second, first)] {
                observers.before_replacement(store.while_alone(), db, Some(other));
            }
            store
                .turn
                .exclusive(|alone| keyspace.swap(alone, first, second));
            if let Some(journal) = store.journal {
                journal.swap(first, second);
            }
            store.persistence.swap(first, second);
            for db in [first, second] {
                observers.after_replacement(store.while_alone(), db);
            }
            store.notifier.flushed();
        });
        self.stats.dirty.add(1);
    }
}

impl Store<'_> {
    /// Looks whether the log has room for a value that a small request changes or makes: its record can be
    /// larger than what was reserved for the request, and a record that waits for space waits under the lock
    /// of its shard.
    ///
    /// # Errors
    /// There is no space on the disk.
    #[inline]
    pub(crate) fn check_log(&self, key: Key<'_>, len: usize) -> Result<(), Failure> {
        match self.journal {
            Some(journal) if len >= FORESEEN_BYTES && !journal.may_append(key.bytes.len(), len) => {
                Err(Failure::no_space(len))
            }
            _ => Ok(()),
        }
    }

    /// Entries of a shard; `None` if the database was never used.
    pub(crate) fn shard_len(&self, db: usize, shard: ShardId) -> Option<usize> {
        let database = self.keyspace.existing(self.turn, db)?;
        Some(database.shard_len(shard))
    }

    /// Evicts up to `most` keys of a shard unless the shard is locked, and returns their memory. Observers
    /// and the log see deletions. Returns the number of evicted keys.
    pub(crate) fn evict(&self, db: usize, shard: ShardId, policy: Policy, most: usize) -> usize {
        if let Some(journal) = self.journal {
            let bytes = Appender::bytes_of(EVICTED_KEY_BYTES, 0) * most as u64;
            if journal.ensure(bytes).is_err() {
                // Keys whose deletion cannot be logged stay.
                return 0;
            }
        }
        let database = self.keyspace.existing(self.turn, db);
        let Some(mut guard) =
            database.and_then(|database| database.try_lock_shard(shard, self.now))
        else {
            return 0;
        };
        let keys = guard.evict(policy, most, |guard, key| {
            self.notifier.tell(Event::EVICTED, db, key.bytes);
            guard.note_change(key, ChangeKind::Removed);
            if let Some(journal) = self.journal
                && let Some(entry) = guard.find(key)
            {
                journal.removed(&entry);
            }
        });
        self.stats.evicted.add(keys as u64);
        for _ in 0..EVICT_PACKS {
            if !guard.pack(PACK_SHARE) {
                break;
            }
        }
        keys
    }
}
