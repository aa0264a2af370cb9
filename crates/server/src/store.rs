//! What commands do to data: the one place where the keyspace and the log meet.
//!
//! A handler asks for the shards of its keys and works on entries. Every change goes through
//! [`Shard`] or [`Entry`], ends in `changed` there, counts as a change, is told to who observes the key, and is
//! written to the log ([`crate::journal`]) under the same lock, so log order is execution order for every key. Hits and misses are counted here too:
//! [`Shard::read`] is what a read does, [`Shard::find`] is a look before a write.
//!
//! Lock order, for everybody: databases ascending, shards ascending inside a database. A transaction locks what all of its
//! commands use before the first of them runs ([`Store::hold`]); they are lent from that, and lock nothing themselves.

mod batch;

use std::ops::Range;

use ferrite_log::Appender;
use keyspace::{
    ChangeKind, Database, Detached, Encoding, EntryMut, Expiry, Form, Guard, Key, Keyspace, Kind,
    LargeValue, Policy, ShardId, ShardSet, Stored, Turn,
};

use crate::journal::Journal;
use crate::limits::{EVICT_PACKS, EVICTED_KEY_BYTES, PACK_SHARE};
use crate::metrics::WorkerStats;
use crate::notify::{Event, Notifier};
use crate::observe::{Alone, Observers};
use crate::persistence::Persistence;

use batch::Reached;
pub(crate) use batch::{Pair, Shards};

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
    /// Who is told of events.
    pub(crate) notifier: Notifier,
    pub(crate) observers: &'static Observers,
    pub(crate) persistence: &'static Persistence,
    /// The way into the log, if there is one.
    pub(crate) journal: Option<&'c Journal>,
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
        Shard {
            guard: self.keyspace.lock(self.turn, db, key.hash, self.now),
            store: self,
            db,
        }
    }

    /// Whether a key of a database is there. One whose time has come goes.
    pub(crate) fn contains_in(&self, db: usize, key: Key<'_>) -> bool {
        self.lock_in(db, key).contains(key)
    }

    /// Bytes that a key of a database takes in all, if it is there. No access, and neither hit nor miss.
    pub(crate) fn memory_in(&self, db: usize, key: Key<'_>) -> Option<usize> {
        let mut shard = self.lock_in(db, key);
        shard.find(key).map(|entry| entry.memory())
    }

    /// Locks the shards of several keys, all before any is read.
    pub(crate) fn lock_keys<'k>(&self, keys: impl Iterator<Item = Key<'k>>) -> Shards<'_> {
        let mut set = ShardSet::default();
        keys.for_each(|key| set.add(self.keyspace.shard_of(key.hash)));
        if let Some(journal) = self.journal {
            journal.begin_batch();
        }
        Shards {
            locked: self.keyspace.lock_set(self.turn, self.db, set, self.now),
            store: self,
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

    /// Locks all that is wanted, until [`Store::release`]. Meanwhile every lock that is asked for is lent from it.
    pub(crate) fn hold(&mut self) {
        self.keyspace.hold(self.turn);
    }

    /// Unlocks what is held, and forgets what was wanted.
    pub(crate) fn release(&mut self) {
        self.keyspace.release(self.turn);
    }

    /// Waits until no other worker is inside a turn, and keeps it so until [`Store::end_alone`].
    pub(crate) fn begin_alone(&mut self) {
        self.turn.begin_alone();
    }

    /// Lets the other workers in again.
    pub(crate) fn end_alone(&mut self) {
        self.turn.end_alone();
    }

    /// What changes from here to [`Store::end_batch`] is one change to everybody, also after a crash: the log gets one record for
    /// all of it. A command on several keys is such a batch too, for as long as its [`Shards`] are locked.
    pub(crate) fn begin_batch(&mut self) {
        if let Some(journal) = self.journal {
            journal.begin_transaction();
        }
    }

    /// Ends what [`Store::begin_batch`] began. The shards of all that was changed are still locked, or nobody else is inside.
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

    /// What those who observe need of a store that is alone.
    fn while_alone(&self) -> Alone<'_> {
        Alone {
            keyspace: self.keyspace,
            turn: self.turn,
            now: self.now,
        }
    }

    /// Empties databases for everybody at once. Returns how many keys they had.
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

    /// Databases were replaced by what was loaded: who observes their keys does so from here on as well.
    pub(crate) fn watch_over_all(&mut self) {
        let keyspace = self.keyspace;
        self.alone(|store| {
            for db in 0..keyspace.databases() {
                store.observers.after_replacement(store.while_alone(), db);
            }
        });
    }

    /// Exchanges two databases for everybody at once.
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
    /// Entries of a shard; `None` if the database was never used.
    pub(crate) fn shard_len(&self, db: usize, shard: ShardId) -> Option<usize> {
        let database = self.keyspace.existing(self.turn, db)?;
        Some(database.shard_len(shard))
    }

    /// Evicts up to `most` keys of a shard if nobody else has it locked, and gives back what they leave. For whoever observes or logs it is
    /// as if they were deleted. Returns how many went.
    pub(crate) fn evict(&self, db: usize, shard: ShardId, policy: Policy, most: usize) -> usize {
        if let Some(journal) = self.journal {
            let bytes = Appender::bytes_of(EVICTED_KEY_BYTES, 0) * most as u64;
            if journal.ensure(bytes).is_err() {
                // What cannot be logged stays.
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

/// One locked shard.
pub(crate) struct Shard<'a> {
    guard: Guard<'a>,
    store: &'a Store<'a>,
    /// The database it is in.
    db: usize,
}

impl<'a> Shard<'a> {
    /// Tells whoever wants to know of what happened to a key.
    #[inline]
    pub(crate) fn tell(&self, event: Event, key: Key<'_>) {
        self.store.notifier.tell(event, self.db, key.bytes);
    }

    /// Tells whoever wants to know that a key is about to be made, if it is.
    #[inline]
    fn tell_if_new(&mut self, key: Key<'_>) {
        if self.store.notifier.wants(Event::NEW) && !self.guard.contains(key) {
            self.tell(Event::NEW, key);
        }
    }

    /// What every change of a key ends in.
    #[inline]
    fn changed(&mut self, key: Key<'_>, kind: ChangeKind) {
        self.store.stats.dirty.add(1);
        self.guard.note_change(key, kind);
    }

    /// Looks a key up for a reading command: counts a hit or a miss and notes the access.
    #[inline(always)]
    pub(crate) fn read(&mut self, key: Key<'_>) -> Option<Entry<'_, 'a>> {
        match self.guard.find(key) {
            Some(mut inner) => {
                self.store.stats.hits.add(1);
                if self.store.touch {
                    inner.touch();
                }
                Some(Entry {
                    inner,
                    store: self.store,
                })
            }
            None => {
                miss(self.store.stats, &self.store.notifier, self.db, key);
                None
            }
        }
    }

    /// Looks a key up for a command that reports on it: counts a hit or a miss, but it is no access.
    pub(crate) fn peek(&mut self, key: Key<'_>) -> Option<Entry<'_, 'a>> {
        if self.store.notifier.wants(Event::MISSED) && !self.guard.contains(key) {
            self.tell(Event::MISSED, key);
        }
        self.peek_quietly(key)
    }

    /// [`Shard::peek`], but nobody is told that a key is missed.
    pub(crate) fn peek_quietly(&mut self, key: Key<'_>) -> Option<Entry<'_, 'a>> {
        match self.guard.find(key) {
            Some(inner) => {
                self.store.stats.hits.add(1);
                Some(Entry {
                    inner,
                    store: self.store,
                })
            }
            None => {
                self.store.stats.misses.add(1);
                None
            }
        }
    }

    /// Looks a key up for a command that changes it: notes the access, but counts neither hit nor miss.
    pub(crate) fn find_to_change(&mut self, key: Key<'_>) -> Option<Entry<'_, 'a>> {
        let mut inner = self.guard.find(key)?;
        if self.store.touch {
            inner.touch();
        }
        Some(Entry {
            inner,
            store: self.store,
        })
    }

    /// Looks a key up without counting and without noting the access.
    #[inline]
    pub(crate) fn find(&mut self, key: Key<'_>) -> Option<Entry<'_, 'a>> {
        self.guard.find(key).map(|inner| Entry {
            inner,
            store: self.store,
        })
    }

    /// Lets the observers hear of every change to a key from here on, for some of the reasons in [`keyspace::reason`]. If its time
    /// has come it goes before, which is no change that they hear of.
    pub(crate) fn observe(&mut self, key: Key<'_>, reasons: u8) {
        self.guard.contains(key);
        self.guard.observe(reasons);
    }

    /// Whether a key is there.
    pub(crate) fn contains(&mut self, key: Key<'_>) -> bool {
        self.guard.contains(key)
    }

    /// Sets a key to a string, whatever it was before.
    #[inline]
    pub(crate) fn set(&mut self, key: Key<'_>, value: &[u8], expiry: Expiry) {
        self.tell_if_new(key);
        match self.store.journal {
            None => self.guard.set(key, value, expiry),
            Some(journal) => self.set_logged(journal, key, value, expiry),
        }
        self.store.stats.sets.add(1);
        self.changed(key, ChangeKind::Written);
    }

    #[inline(never)]
    fn set_logged(&mut self, journal: &Journal, key: Key<'_>, value: &[u8], expiry: Expiry) {
        let db = self.db;
        self.guard.set_logged(key, value, expiry, |entry, old| {
            journal.wrote(db, key, entry, old)
        });
    }

    /// [`Shard::set`] with a value that already has a buffer of its own.
    pub(crate) fn set_large(&mut self, key: Key<'_>, value: LargeValue, expiry: Expiry) {
        self.set_made(key, value, expiry, Form::Whole);
    }

    /// [`Shard::set_large`] with a value that was made here. `form` is how it counts as written.
    pub(crate) fn set_made(&mut self, key: Key<'_>, value: LargeValue, expiry: Expiry, form: Form) {
        self.tell_if_new(key);
        let (journal, db) = (self.store.journal, self.db);
        self.guard
            .set_formed(key, value, expiry, form, |entry, old| {
                Some(journal?.wrote(db, key, entry, old))
            });
        self.store.stats.sets.add(1);
        self.changed(key, ChangeKind::Written);
    }

    /// Makes the value of a key, empty if it is missing, at least as long as `part` reaches (zeroes are added behind), then lets
    /// `change` write to that part of it; `change` gets the whole value and says whether it did. Returns what else it says, and
    /// whether the key is another than before: it is new, or its value is longer or was written to.
    pub(crate) fn grow<R>(
        &mut self,
        key: Key<'_>,
        part: Range<usize>,
        change: impl FnOnce(&mut [u8]) -> (R, bool),
    ) -> (R, bool) {
        let before = self.guard.find(key).map(|inner| inner.value_len());
        if before.is_none() {
            self.tell(Event::NEW, key);
            self.guard.set_large(
                key,
                LargeValue::new(vec![0; part.end].into()),
                Expiry::Clear,
            );
        }
        let mut inner = self
            .guard
            .find(key)
            .expect("it was there or has just been set");
        let len = part.end.max(inner.value_len());
        let old = inner.overwritten();
        let (result, is_written) = change(inner.resize_value(len, Form::Part));
        inner.touch();
        let is_changed = is_written || before != Some(len);
        if is_changed {
            if let Some(journal) = self.store.journal {
                journal.patched(&mut inner, old, part);
            }
            self.store.stats.sets.add(1);
            self.changed(key, ChangeKind::Written);
        }
        (result, is_changed)
    }

    /// Removes a key; whether it was there.
    pub(crate) fn remove(&mut self, key: Key<'_>) -> bool {
        let Some(inner) = self.guard.find(key) else {
            return false;
        };
        if let Some(journal) = self.store.journal {
            journal.removed(&inner);
        }
        inner.remove();
        self.store.stats.dels.add(1);
        self.changed(key, ChangeKind::Removed);
        true
    }

    /// Takes a key's value away, to put it elsewhere with [`Shard::attach`]; both together count as one change.
    pub(crate) fn detach(&mut self, key: Key<'_>) -> Option<Detached> {
        let inner = self.guard.find(key)?;
        if let Some(journal) = self.store.journal {
            journal.removed(&inner);
        }
        let detached = self.guard.detach(key)?;
        self.guard.note_change(key, ChangeKind::Removed);
        Some(detached)
    }

    /// Gives a key a value that was taken or copied from another, expiry included. As far as anybody is told it is a new key.
    pub(crate) fn attach(&mut self, key: Key<'_>, value: Detached) {
        self.tell(Event::NEW, key);
        let (journal, db) = (self.store.journal, self.db);
        self.guard.attach(key, value, |entry, old| {
            Some(journal?.wrote(db, key, entry, old))
        });
        self.changed(key, ChangeKind::Written);
    }
}

/// What every read that finds nothing ends in. Apart, so that [`Shard::read`] is small.
#[inline(never)]
fn miss(stats: &WorkerStats, notifier: &Notifier, db: usize, key: Key<'_>) {
    stats.misses.add(1);
    notifier.tell(Event::MISSED, db, key.bytes);
}

/// One entry of a locked shard.
pub(crate) struct Entry<'g, 'a> {
    inner: EntryMut<'g, 'a>,
    store: &'a Store<'a>,
}

impl Entry<'_, '_> {
    /// What every change of an entry ends in; comes before the entry goes.
    #[inline]
    fn changed(&mut self, kind: ChangeKind) {
        self.store.stats.dirty.add(1);
        self.inner.note_change(kind);
    }

    /// The value.
    #[inline]
    pub(crate) fn value(&self) -> Stored<'_> {
        self.inner.value()
    }

    /// Bytes of the value.
    #[inline]
    pub(crate) fn value_len(&self) -> usize {
        self.inner.value_len()
    }

    /// The type of the value.
    pub(crate) fn kind(&self) -> Kind {
        self.inner.kind()
    }

    /// When the key expires (Unix, ms).
    #[inline]
    pub(crate) fn expiry(&self) -> Option<i64> {
        self.inner.expiry()
    }

    /// How Redis would hold the value.
    pub(crate) fn encoding(&self) -> Encoding {
        self.inner.encoding()
    }

    /// Seconds since the last access.
    pub(crate) fn idle_seconds(&self) -> u32 {
        self.inner.idle_seconds()
    }

    /// How often it is used, on a logarithmic scale.
    pub(crate) fn frequency(&self) -> u8 {
        self.inner.frequency()
    }

    /// Bytes the key takes in all.
    pub(crate) fn memory(&self) -> usize {
        self.inner.memory()
    }

    /// Notes an access.
    pub(crate) fn touch(&mut self) {
        self.inner.touch();
    }

    /// A copy of value and expiry.
    pub(crate) fn copy(&self) -> Detached {
        self.inner.copy()
    }

    /// Sets or removes the expiry.
    pub(crate) fn set_expiry(&mut self, expiry: Option<i64>) {
        self.inner.set_expiry(expiry);
        if let Some(journal) = self.store.journal {
            journal.rescheduled(&mut self.inner);
        }
        self.changed(ChangeKind::Written);
    }

    /// Makes the value `len` bytes long (zeroes are added behind), then lets `change` write to it, in that `part` alone. `form` is how
    /// the value counts as written from here on.
    #[inline]
    pub(crate) fn update<R>(
        &mut self,
        len: usize,
        part: Range<usize>,
        form: Form,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        let journal = self.store.journal;
        let old = journal.and_then(|_| self.inner.overwritten());
        let result = change(self.inner.resize_value(len, form));
        if let Some(journal) = journal {
            journal.patched(&mut self.inner, old, part);
        }
        self.inner.touch();
        self.store.stats.sets.add(1);
        self.changed(ChangeKind::Written);
        result
    }

    /// Removes the key.
    pub(crate) fn remove(mut self) {
        self.changed(ChangeKind::Removed);
        if let Some(journal) = self.store.journal {
            journal.removed(&self.inner);
        }
        self.inner.remove();
        self.store.stats.dels.add(1);
    }
}
