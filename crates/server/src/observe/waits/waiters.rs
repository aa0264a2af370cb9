//! Who waits for something to be in a key: a line for each key, in the order in which they came.
//!
//! A connection joins the lines of all its keys while it holds their shards, after it has seen that there is
//! nothing for it, and has the shards observed ([`keyspace::reason::AWAITED`]): whoever puts something there
//! comes later, and hears that somebody waits. What ends a wait (something to take, its time, CLIENT UNBLOCK,
//! the end of the connection) has to *claim* it first, which only one can: so nothing is taken for a
//! connection that has stopped waiting, and a connection that something was taken for does not also hear that
//! its time is up.
//!
//! Invariants:
//! 1. A line has a wait at most once, and waits in order of their numbers.
//! 2. Waits that were claimed may stand in lines; they are passed over, and leave when their connection goes
//!    on.
//! 3. The lock of a shard's lines is taken under the shard's lock or without any. Nothing is locked beneath
//!    it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use keyspace::{Change, ChangeKind, ShardId};
use parking_lot::Mutex;

use super::{Key, KeyWait, ready};
use crate::names::{ByHash, steps};

/// The lines of the keys of a shard.
type Lines = ByHash<Key, Line>;

/// The line of a key in each database, by the numbers of its waits.
type Line = BTreeMap<(usize, u64), Arc<KeyWait>>;

/// Whether somebody stands in the line of a database.
fn has(line: &Line, db: usize) -> bool {
    line.range((db, 0)..=(db, u64::MAX)).next().is_some()
}

/// See the module.
pub(crate) struct Waiters {
    shards: Box<[Mutex<Lines>]>,
    /// Places in lines, so that who empties a database need not look where there are none.
    count: AtomicUsize,
}

impl Waiters {
    pub(crate) fn new(shards: usize) -> Waiters {
        Waiters {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            count: AtomicUsize::new(0),
        }
    }

    /// Joins the line of a key, whose shard is locked and observed.
    pub(crate) fn join(
        &self,
        shard: ShardId,
        db: usize,
        key: keyspace::Key<'_>,
        wait: &Arc<KeyWait>,
    ) {
        steps::add(1);
        let mut lines = self.shards[shard.0].lock();
        let place = ((db, wait.number), Arc::clone(wait));
        match lines.get_mut(key.hash, key.bytes) {
            Some(line) => {
                line.insert(place.0, place.1);
            }
            None => lines.insert(key.hash, key.bytes.into(), Line::from([place])),
        }
        self.count.fetch_add(1, Relaxed);
    }

    /// Leaves the line of a key.
    pub(crate) fn leave(&self, shard: ShardId, db: usize, key: keyspace::Key<'_>, wait: &KeyWait) {
        steps::add(1);
        let mut lines = self.shards[shard.0].lock();
        let Some(line) = lines.get_mut(key.hash, key.bytes) else {
            return;
        };
        let was_there = line.remove(&(db, wait.number)).is_some();
        self.count.fetch_sub(usize::from(was_there), Relaxed);
        if line.is_empty() {
            lines.remove(key.hash, key.bytes);
        }
    }

    /// The first in the line of a key that still waits.
    pub(crate) fn first(
        &self,
        shard: ShardId,
        db: usize,
        key: keyspace::Key<'_>,
    ) -> Option<Arc<KeyWait>> {
        let mut lines = self.shards[shard.0].lock();
        let line = lines.get_mut(key.hash, key.bytes)?;
        while let Some((&place, wait)) = line.range((db, 0)..=(db, u64::MAX)).next() {
            if wait.is_waiting() {
                return Some(Arc::clone(wait));
            }
            // So that not everybody passes all who were served before.
            steps::add(1);
            line.remove(&place);
            self.count.fetch_sub(1, Relaxed);
        }
        if line.is_empty() {
            lines.remove(key.hash, key.bytes);
        }
        None
    }

    /// A key of an awaited shard, which is locked, has changed. Returns whether the shard is still to be
    /// observed.
    pub(crate) fn changed(&self, change: &Change<'_>) -> bool {
        let lines = self.shards[change.shard.0].lock();
        if change.kind == ChangeKind::Written
            && let Some(line) = lines.get(change.key.hash, change.key.bytes)
            && has(line, change.database)
        {
            ready::note(change.database, change.key.bytes);
        }
        !lines.is_empty()
    }

    /// The keys of a database that somebody waits for.
    pub(crate) fn keys_in(&self, db: usize) -> Vec<Key> {
        let mut found = Vec::new();
        if self.count.load(Relaxed) == 0 {
            return found;
        }
        for lines in &self.shards {
            let lines = lines.lock();
            let here = lines.iter().filter(|(_, line)| has(line, db));
            found.extend(here.map(|(key, _)| key.clone()));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::waits::Asks;
    use crate::shared::clients::Client;

    fn wait(number: u64) -> Arc<KeyWait> {
        let client = Arc::new(Client::unconnected(number, 0));
        client.wait.store(number, Relaxed);
        Arc::new(KeyWait {
            number,
            client,
            asks: Asks::Value,
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
                // Those of another database are not passed by those of this one.
                waiters.join(ShardId(0), at % 2, KEY, wait);
            }
            for wait in waits.iter().filter(|wait| wait.number % 2 == 0) {
                let first = waiters.first(ShardId(0), 1, KEY).expect("somebody waits");
                assert_eq!(first.number, wait.number);
                assert!(first.claim());
            }
            assert!(waiters.first(ShardId(0), 1, KEY).is_none());
            let left = waits.iter().rev().filter(|wait| wait.number % 2 == 1);
            left.for_each(|wait| waiters.leave(ShardId(0), 0, KEY, wait));
            assert_eq!(waiters.count.load(Relaxed), 0);
        });
    }
}
