//! Queues of blocked connections, one for each key, in order of arrival.
//!
//! A connection joins the queues of all its keys while it holds their shards, after it has found nothing to
//! take, and has the shards observed ([`keyspace::reason::AWAITED`]). So every later write to one of the keys
//! finds the wait. The end of a wait (a value, the timeout, CLIENT UNBLOCK, the end of the connection) has to
//! *claim* it first, which succeeds once. So no value is taken for a connection that has stopped waiting, and
//! a connection that gets a value gets no timeout.
//!
//! Invariants:
//!
//! 1. A queue has a wait at most once, and waits in order of their numbers.
//! 2. Claimed waits may be in queues. They are skipped, and leave when their connection is resumed.
//! 3. The lock of a shard's queues is taken under the shard's lock or without any. No lock is taken under it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use keyspace::{Change, ChangeKind, ShardId};
use parking_lot::Mutex;

use super::{Key, KeyWait, ready};
use crate::names::{ByHash, steps};

/// Queues of the keys of a shard.
type Queues = ByHash<Key, Queue>;

/// Queue of a key.
#[derive(Default)]
struct Queue {
    /// Its waits by database and number.
    waits: BTreeMap<(usize, u64), Arc<KeyWait>>,
    /// How many of them end when the key is removed.
    hear_removal: usize,
}

impl Queue {
    fn insert(&mut self, db: usize, wait: &Arc<KeyWait>) {
        let before = self.waits.insert((db, wait.number), Arc::clone(wait));
        if before.is_none() {
            self.hear_removal += usize::from(wait.asks.hears_removal());
        }
    }

    /// Whether it was there.
    fn remove(&mut self, place: (usize, u64)) -> bool {
        let gone = self.waits.remove(&place);
        if let Some(wait) = &gone {
            self.hear_removal -= usize::from(wait.asks.hears_removal());
        }
        gone.is_some()
    }

    fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// Whether a connection waits in a database.
    fn has(&self, db: usize) -> bool {
        self.waits.range((db, 0)..=(db, u64::MAX)).next().is_some()
    }
}

/// Queues of all keys.
pub(crate) struct Waiters {
    shards: Box<[Mutex<Queues>]>,
    /// Number of waits in queues, readable without a lock when a database is emptied.
    count: AtomicUsize,
}

impl Waiters {
    pub(crate) fn new(shards: usize) -> Waiters {
        Waiters {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            count: AtomicUsize::new(0),
        }
    }

    /// Joins the queue of a key, whose shard is locked and observed.
    pub(crate) fn join(
        &self,
        shard: ShardId,
        db: usize,
        key: keyspace::Key<'_>,
        wait: &Arc<KeyWait>,
    ) {
        steps::add(1);
        let mut queues = self.shards[shard.0].lock();
        match queues.get_mut(key.hash, key.bytes) {
            Some(queue) => queue.insert(db, wait),
            None => {
                let mut queue = Queue::default();
                queue.insert(db, wait);
                queues.insert(key.hash, key.bytes.into(), queue);
            }
        }
        self.count.fetch_add(1, Relaxed);
    }

    /// Leaves the queue of a key.
    pub(crate) fn leave(&self, shard: ShardId, db: usize, key: keyspace::Key<'_>, wait: &KeyWait) {
        steps::add(1);
        let mut queues = self.shards[shard.0].lock();
        let Some(queue) = queues.get_mut(key.hash, key.bytes) else {
            return;
        };
        let was_there = queue.remove((db, wait.number));
        self.count.fetch_sub(usize::from(was_there), Relaxed);
        if queue.is_empty() {
            queues.remove(key.hash, key.bytes);
        }
    }

    /// The first unclaimed wait in the queue of a key, of those behind a number.
    pub(crate) fn behind(
        &self,
        shard: ShardId,
        db: usize,
        key: keyspace::Key<'_>,
        number: u64,
    ) -> Option<Arc<KeyWait>> {
        let mut queues = self.shards[shard.0].lock();
        let queue = queues.get_mut(key.hash, key.bytes)?;
        let behind = (db, number + 1)..=(db, u64::MAX);
        while let Some((&place, wait)) = queue.waits.range(behind.clone()).next() {
            if wait.is_waiting() {
                return Some(Arc::clone(wait));
            }
            // Counted because a search must not skip all served waits again.
            steps::add(1);
            queue.remove(place);
            self.count.fetch_sub(1, Relaxed);
        }
        if queue.is_empty() {
            queues.remove(key.hash, key.bytes);
        }
        None
    }

    /// Marks a changed key as ready. Its shard is locked. Returns whether the shard is to stay observed.
    pub(crate) fn changed(&self, change: &Change<'_>) -> bool {
        let queues = self.shards[change.shard.0].lock();
        let is_gone = matches!(change.kind, ChangeKind::Removed | ChangeKind::Expired);
        let is_written = match change.kind {
            ChangeKind::Written => true,
            ChangeKind::Groups { concerns_readers } => concerns_readers,
            ChangeKind::Removed | ChangeKind::Expired | ChangeKind::ItemsExpired { .. } => false,
        };
        if (is_gone || is_written)
            && let Some(queue) = queues.get(change.key.hash, change.key.bytes)
            && (!is_gone || queue.hear_removal > 0)
            && queue.has(change.database)
        {
            ready::note(change.database, change.key.bytes);
        }
        !queues.is_empty()
    }

    /// Whether some of the waits in the queue of a key end when it is removed.
    pub(crate) fn hear_removal(&self, shard: ShardId, key: keyspace::Key<'_>) -> bool {
        let queues = self.shards[shard.0].lock();
        let queue = queues.get(key.hash, key.bytes);
        queue.is_some_and(|queue| queue.hear_removal > 0)
    }

    /// Number of keys with waiting connections.
    pub(crate) fn keys(&self) -> usize {
        let keys = |queues: &Mutex<Queues>| queues.lock().len();
        self.shards.iter().map(keys).sum()
    }

    /// Keys of a database with waiting connections.
    pub(crate) fn keys_in(&self, db: usize) -> Vec<Key> {
        let mut found = Vec::new();
        if self.count.load(Relaxed) == 0 {
            return found;
        }
        for queues in &self.shards {
            let queues = queues.lock();
            let here = queues.iter().filter(|(_, queue)| queue.has(db));
            found.extend(here.map(|(key, _)| key.clone()));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use keyspace::collection::tree::End;
    use resp::reply::Protocol;

    use super::*;
    use crate::observe::waits::Asks;
    use crate::shared::clients::Client;

    fn wait(number: u64) -> Arc<KeyWait> {
        let client = Arc::new(Client::unconnected(number, 0));
        client.wait.store(number, Relaxed);
        Arc::new(KeyWait {
            number,
            client,
            protocol: Protocol::Resp2,
            asks: Asks::Element(End::Front),
        })
    }

    const KEY: keyspace::Key<'_> = keyspace::Key {
        bytes: b"k",
        hash: 1,
    };

    #[test]
    fn twice_as_many_in_a_line_take_twice_the_steps() {
        steps::assert_linear(2_000, |n| {
            let waiters = Waiters::new(1);
            let waits: Vec<Arc<KeyWait>> = (1..=n as u64).map(wait).collect();
            for (at, wait) in waits.iter().enumerate() {
                // Waits of another database are not visited.
                waiters.join(ShardId(0), at % 2, KEY, wait);
            }
            for wait in waits.iter().filter(|wait| wait.number % 2 == 0) {
                let first = waiters.behind(ShardId(0), 1, KEY, 0);
                let first = first.expect("somebody waits");
                assert_eq!(first.number, wait.number);
                assert!(first.claim());
            }
            assert!(waiters.behind(ShardId(0), 1, KEY, 0).is_none());
            let left = waits.iter().rev().filter(|wait| wait.number % 2 == 1);
            left.for_each(|wait| waiters.leave(ShardId(0), 0, KEY, wait));
            assert_eq!(waiters.count.load(Relaxed), 0);
        });
    }
}
