//! WATCH: which connections want to know that a key has changed before their transaction ran.
//!
//! A registration says: this key, in the database of this number, and this connection. It is made under the lock of the key's shard,
//! whose observed byte is set with it (`keyspace::reason::WATCHED`), so that every change behind it ends in [`Watches::changed`],
//! under the same lock. What that does is to set a bit in the record of each connection that watches the key; EXEC looks at
//! the bit while it holds the shards of all keys it watches. So a transaction fails if and only if one of its own keys changed.
//!
//! A registration is gone when its key has changed: its connection has nothing more to learn.
//!
//! Locks: the registrations of a shard's keys, in all databases, are behind one mutex. It is taken under the shard's lock or
//! without any, and nothing is locked while it is held.
//!
//! What does not live here: what a connection watches in all ([`crate::transaction::WatchList`]), and what EXEC makes of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use keyspace::{Change, ShardId};
use parking_lot::Mutex;

use crate::clients::{Client, status};

/// Those who watch the keys of a shard, by key.
type ByKey = HashMap<Box<[u8]>, Vec<Watcher>>;

struct Watcher {
    db: usize,
    client: Arc<Client>,
}

/// See the module.
pub(crate) struct Watches {
    shards: Box<[Mutex<ByKey>]>,
    /// Registrations, so that who empties a database need not look where there are none.
    count: AtomicUsize,
}

impl Watches {
    pub(crate) fn new(shards: usize) -> Watches {
        Watches {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            count: AtomicUsize::new(0),
        }
    }

    /// Registers a connection, which does not watch the key yet. The key's shard is locked and observed.
    pub(crate) fn add(&self, shard: ShardId, db: usize, key: &[u8], client: &Arc<Client>) {
        let watcher = Watcher {
            db,
            client: Arc::clone(client),
        };
        let mut keys = self.shards[shard.0].lock();
        match keys.get_mut(key) {
            Some(watchers) => watchers.push(watcher),
            None => {
                keys.insert(key.into(), vec![watcher]);
            }
        }
        self.count.fetch_add(1, Relaxed);
    }

    /// Forgets a registration, which is gone already if the key has changed.
    pub(crate) fn remove(&self, shard: ShardId, db: usize, key: &[u8], client: &Client) {
        let is_meant = |watcher: &Watcher| watcher.db == db && watcher.client.id == client.id;
        self.take(&mut self.shards[shard.0].lock(), key, is_meant);
    }

    /// A key of a watched shard has changed. Returns whether any key of that shard is still watched. The shard is locked.
    pub(crate) fn changed(&self, change: &Change<'_>) -> bool {
        let mut keys = self.shards[change.shard.0].lock();
        self.mark(&mut keys, change.database, change.key.bytes);
        !keys.is_empty()
    }

    /// Lets the transactions fail that watch a key.
    pub(crate) fn touch(&self, shard: ShardId, db: usize, key: &[u8]) {
        self.mark(&mut self.shards[shard.0].lock(), db, key);
    }

    fn mark(&self, keys: &mut ByKey, db: usize, key: &[u8]) {
        for watcher in self.take(keys, key, |watcher| watcher.db == db) {
            watcher.client.set_status(status::DIRTY, true);
        }
    }

    /// Takes those registrations of a key that are meant.
    fn take(
        &self,
        keys: &mut ByKey,
        key: &[u8],
        mut is_meant: impl FnMut(&Watcher) -> bool,
    ) -> Vec<Watcher> {
        let Some(watchers) = keys.get_mut(key) else {
            return Vec::new();
        };
        let taken: Vec<Watcher> = watchers
            .extract_if(.., |watcher| is_meant(watcher))
            .collect();
        if watchers.is_empty() {
            keys.remove(key);
        }
        self.count.fetch_sub(taken.len(), Relaxed);
        taken
    }

    /// The keys of a database that are watched.
    pub(crate) fn keys_in(&self, db: usize) -> Vec<Box<[u8]>> {
        let mut found = Vec::new();
        if self.count.load(Relaxed) == 0 {
            return found;
        }
        for keys in &self.shards {
            let keys = keys.lock();
            let here = keys
                .iter()
                .filter(|(_, watchers)| watchers.iter().any(|watcher| watcher.db == db));
            found.extend(here.map(|(key, _)| key.clone()));
        }
        found
    }

    /// How many keys are watched, in all databases.
    pub(crate) fn keys(&self) -> usize {
        if self.count.load(Relaxed) == 0 {
            return 0;
        }
        let keys_of = |watchers: &Vec<Watcher>| {
            let mut databases: Vec<usize> = watchers.iter().map(|watcher| watcher.db).collect();
            databases.sort_unstable();
            databases.dedup();
            databases.len()
        };
        self.shards
            .iter()
            .map(|keys| keys.lock().values().map(keys_of).sum::<usize>())
            .sum()
    }
}
