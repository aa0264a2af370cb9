//! Several locked shards, and the log's view of them: all changes made while they are locked are one change
//! after a crash.

use keyspace::{Guard, Key, Locked};

use super::{Shard, Store};
use crate::limits::PREFETCH_KEYS;
use crate::persistence::journal::Held;
use crate::request::Args;

/// How many keys before its own a key's entry is asked for; its bucket twice as many.
const AHEAD: usize = 8;

/// Several locked shards of a database. All changes to them are one change in the log.
pub(crate) struct Shards<'a> {
    pub(super) locked: Locked<'a>,
    pub(super) store: &'a Store<'a>,
    pub(super) db: usize,
}

impl Held for Locked<'_> {
    fn with(&mut self, _: usize, hash: u64, visit: &mut dyn FnMut(&mut Guard<'_>)) {
        visit(&mut self.shard(hash));
    }
}

impl Drop for Shards<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(journal) = self.store.journal {
            journal.finish(&mut self.locked);
        }
    }
}

/// Shards in reach of a transaction: those that it holds, or any while it is alone.
pub(super) struct Reached<'s, 'c>(pub(super) &'s Store<'c>);

impl Held for Reached<'_, '_> {
    fn with(&mut self, db: usize, hash: u64, visit: &mut dyn FnMut(&mut Guard<'_>)) {
        let Store {
            keyspace,
            turn,
            now,
            ..
        } = self.0;
        visit(&mut keyspace.lock(turn, db, hash, *now));
    }
}

/// A locked shard of each of two databases. All changes to them are one change in the log.
pub(crate) struct Pair<'a> {
    pub(crate) first: Shard<'a>,
    pub(crate) second: Shard<'a>,
}

impl Held for Pair<'_> {
    fn with(&mut self, db: usize, _: u64, visit: &mut dyn FnMut(&mut Guard<'_>)) {
        let is_first = self.first.db == db;
        let shard = if is_first {
            &mut self.first
        } else {
            &mut self.second
        };
        visit(&mut shard.guard);
    }
}

impl Drop for Pair<'_> {
    fn drop(&mut self) {
        if let Some(journal) = self.first.store.journal {
            journal.finish(self);
        }
    }
}

impl Store<'_> {
    /// The keys of a command on several, in their order. Of more than are prefetched when a request is parsed
    /// the memory of those that come soon is asked for.
    #[inline]
    pub(crate) fn ahead<'s, 'k>(
        &'s self,
        args: &Args<'k>,
    ) -> impl Iterator<Item = Key<'k>> + use<'s, 'k> {
        let hashes = args.hashes;
        let is_long = hashes.len() > PREFETCH_KEYS;
        let database = is_long.then(|| self.keyspace.unless_held(self.turn, self.db));
        let database = database.flatten();
        args.keys()
            .enumerate()
            .inspect(move |&(number, _)| {
                let Some(database) = database else { return };
                if let Some(&hash) = hashes.get(number + 2 * AHEAD) {
                    database.prefetch_bucket(hash);
                }
                if let Some(&hash) = hashes.get(number + AHEAD) {
                    database.prefetch_entry(hash);
                }
            })
            .map(|(_, key)| key)
    }
}

impl Shards<'_> {
    /// The hash of a key.
    pub(crate) fn hash_of(&self, key: &[u8]) -> u64 {
        self.store.keyspace.hash(key)
    }

    /// The shard of one of the keys that were locked.
    #[inline]
    pub(crate) fn of(&mut self, key: Key<'_>) -> Shard<'_> {
        Shard {
            guard: self.locked.shard(key.hash),
            store: self.store,
            db: self.db,
        }
    }
}
