//! WATCH: the connections whose transactions fail when a key changes.
//!
//! A registration is a key, the number of its database, and a connection. It is made under the lock of the
//! key's shard, whose observed byte is set with it (`keyspace::reason::WATCHED`). So every later change calls
//! [`Watches::changed`], under the same lock, which sets a bit in the record of each connection that watches
//! the key. EXEC reads the bit while it holds the shards of all watched keys. So a transaction fails if and
//! only if one of its own keys changed.
//!
//! A registration is removed when its key has changed: the bit is set. It carries the round of its
//! connection's watch. Registrations of earlier rounds have no effect; many of them are removed later
//! ([`crate::observe::removals`]).
//!
//! Locks: one mutex protects the registrations of a shard's keys, in all databases. It is taken under the
//! shard's lock or without any. No lock is taken under it.
//!
//! Not here: the list of a connection's watched keys ([`WatchList`]) and EXEC.

mod list;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use keyspace::{Change, Key, ShardId};
use parking_lot::Mutex;

use crate::names::{ByHash, Member, Members, Who};
use crate::observe::Observed;
use crate::shared::clients::Client;

pub(crate) use list::{WatchList, Watched};

/// Connections that watch the keys of a shard, by key.
type ByKey = ByHash<Arc<[u8]>, Members<Watcher>>;

struct Watcher {
    db: u32,
    round: u64,
    client: Arc<Client>,
}

impl Member for Watcher {
    fn who(&self) -> Who {
        (self.db, self.client.id)
    }
}

/// Registrations of all watched keys.
pub(crate) struct Watches {
    shards: Box<[Mutex<ByKey>]>,
    /// Number of registrations, readable without a lock when a database is emptied.
    count: AtomicUsize,
    /// Number of watched keys in all databases.
    keys: AtomicUsize,
}

impl Watches {
    pub(crate) fn new(shards: usize) -> Watches {
        Watches {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            count: AtomicUsize::new(0),
            keys: AtomicUsize::new(0),
        }
    }

    /// Registers a connection that does not watch the key. The key's shard is locked and observed. Returns
    /// the key's name, to be shared with the connection's list.
    pub(crate) fn add(
        &self,
        shard: ShardId,
        db: usize,
        key: Key<'_>,
        client: &Arc<Client>,
    ) -> Arc<[u8]> {
        let watcher = Watcher {
            db: db as u32,
            round: client.watch_round.load(Relaxed),
            client: Arc::clone(client),
        };
        let mut keys = self.shards[shard.0].lock();
        let known = keys.find(key.hash, key.bytes).map(|(name, _)| name);
        let name: Arc<[u8]> = known.map_or_else(|| key.bytes.into(), Arc::clone);
        match keys.get_mut(key.hash, key.bytes) {
            Some(watchers) => {
                // A registration of an earlier round may be present.
                let before = watchers.remove(watcher.who());
                self.count.fetch_sub(before.iter().len(), Relaxed);
                let is_new = before.is_none() && !watchers.has(watcher.db);
                self.keys.fetch_add(usize::from(is_new), Relaxed);
                watchers.insert(watcher);
            }
            None => {
                keys.insert(key.hash, Arc::clone(&name), Members::of(watcher));
                self.keys.fetch_add(1, Relaxed);
            }
        }
        self.count.fetch_add(1, Relaxed);
        name
    }

    /// Removes a registration of a round, unless a change of the key has removed it already.
    pub(crate) fn remove(&self, server: &Observed, watched: &Watched, client: &Client, round: u64) {
        let shard = server.keyspace.shard_of(watched.hash);
        self.remove_in(shard, watched, client, round);
    }

    fn remove_in(&self, shard: ShardId, watched: &Watched, client: &Client, round: u64) {
        let mut keys = self.shards[shard.0].lock();
        let Some(watchers) = keys.get_mut(watched.hash, &watched.key) else {
            return;
        };
        let who = (watched.db as u32, client.id);
        let Some(watcher) = watchers.remove(who) else {
            return;
        };
        if watcher.round != round {
            // It watches the key again in a later round.
            return watchers.insert(watcher);
        }
        self.count.fetch_sub(1, Relaxed);
        let is_last = !watchers.has(who.0);
        self.keys.fetch_sub(usize::from(is_last), Relaxed);
        if watchers.is_empty() {
            keys.remove(watched.hash, &watched.key);
        }
    }

    /// Reports a change to a key. Returns whether any key of its shard is still watched. The shard is locked.
    pub(crate) fn changed(&self, change: &Change<'_>) -> bool {
        let mut keys = self.shards[change.shard.0].lock();
        self.mark(&mut keys, change.database, change.key);
        !keys.is_empty()
    }

    /// Makes the transactions fail that watch a key.
    pub(crate) fn touch(&self, shard: ShardId, db: usize, key: Key<'_>) {
        self.mark(&mut self.shards[shard.0].lock(), db, key);
    }

    fn mark(&self, keys: &mut ByKey, db: usize, key: Key<'_>) {
        let Some(watchers) = keys.get_mut(key.hash, key.bytes) else {
            return;
        };
        let taken = watchers.take(db as u32);
        if watchers.is_empty() {
            keys.remove(key.hash, key.bytes);
        }
        self.count.fetch_sub(taken.len(), Relaxed);
        self.keys.fetch_sub(usize::from(!taken.is_empty()), Relaxed);
        for watcher in taken {
            if watcher.round == watcher.client.watch_round.load(Relaxed) {
                watcher.client.set_dirty(watcher.round);
            }
        }
    }

    /// Watched keys of a database.
    pub(crate) fn keys_in(&self, db: usize) -> Vec<Arc<[u8]>> {
        let mut found = Vec::new();
        if self.count.load(Relaxed) == 0 {
            return found;
        }
        for keys in &self.shards {
            let keys = keys.lock();
            let here = keys.iter().filter(|(_, watchers)| watchers.has(db as u32));
            found.extend(here.map(|(key, _)| Arc::clone(key)));
        }
        found
    }

    /// Number of watched keys in all databases.
    pub(crate) fn keys(&self) -> usize {
        self.keys.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::steps;

    fn watched(at: usize) -> Watched {
        let key: Arc<[u8]> = at.to_string().into_bytes().into();
        Watched {
            db: 0,
            hash: at as u64,
            key,
        }
    }

    fn add(watches: &Watches, watched: &Watched, client: &Arc<Client>) {
        let (bytes, hash) = (&watched.key[..], watched.hash);
        watches.add(ShardId(0), watched.db, Key { bytes, hash }, client);
    }

    fn touch(watches: &Watches, watched: &Watched) {
        let (bytes, hash) = (&watched.key[..], watched.hash);
        watches.touch(ShardId(0), watched.db, Key { bytes, hash });
    }

    #[test]
    fn a_registration_of_a_round_that_is_over_means_nothing() {
        let watches = Watches::new(1);
        let client = Arc::new(Client::unconnected(1, 0));
        let key = watched(7);
        add(&watches, &key, &client);
        client.watch_round.store(1, Relaxed);
        touch(&watches, &key);
        assert!(!client.is_dirty());
        // The changer did not know yet that the round is over.
        client.set_dirty(0);
        assert!(!client.is_dirty());
        // A new round begins before the old registrations are removed.
        client.watch_round.store(0, Relaxed);
        add(&watches, &key, &client);
        client.watch_round.store(1, Relaxed);
        add(&watches, &key, &client);
        assert_eq!((watches.keys(), watches.count.load(Relaxed)), (1, 1));
        watches.remove_in(ShardId(0), &key, &client, 0);
        touch(&watches, &key);
        assert!(client.is_dirty());
        assert_eq!((watches.keys(), watches.count.load(Relaxed)), (0, 0));
    }

    #[test]
    fn twice_as_many_watched_keys_and_watchers_take_twice_the_steps() {
        // One connection with many keys.
        steps::assert_linear(2_000, |n| {
            let (watches, client) = (Watches::new(1), Arc::new(Client::unconnected(1, 0)));
            (0..n).for_each(|at| add(&watches, &watched(at), &client));
            assert_eq!(watches.keys(), n);
            (0..n).for_each(|at| watches.remove_in(ShardId(0), &watched(at), &client, 0));
            assert_eq!(watches.keys(), 0);
        });
        // Many connections with one key.
        steps::assert_linear(2_000, |n| {
            let (watches, key) = (Watches::new(1), watched(1));
            let clients: Vec<Arc<Client>> = (0..n as u64)
                .map(|id| Arc::new(Client::unconnected(id, 0)))
                .collect();
            clients
                .iter()
                .rev()
                .for_each(|client| add(&watches, &key, client));
            clients
                .iter()
                .for_each(|client| watches.remove_in(ShardId(0), &key, client, 0));
            assert_eq!(watches.keys(), 0);
        });
    }
}
