//! Who waits for something to be in a key: a line for each key, in the order in which they came.
//!
//! A connection joins the lines of all its keys while it holds their shards, after it has seen that there is nothing for it,
//! and has the shards observed ([`keyspace::reason::AWAITED`]): whoever puts something there comes later, and hears that
//! somebody waits. What ends a wait (something to take, its time, CLIENT UNBLOCK, the end of the connection) has to *claim*
//! it first, which only one can: so nothing is taken for a connection that has stopped waiting, and a connection
//! that something was taken for does not also hear that its time is up.
//!
//! Invariants:
//! 1. A line has a wait at most once, and waits in order of their numbers.
//! 2. Waits that were claimed may stand in lines; they are passed over, and leave when their connection goes on.
//! 3. The lock of a shard's lines is taken under the shard's lock or without any. Nothing is locked beneath it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use keyspace::{Change, ChangeKind, ShardId};
use parking_lot::Mutex;

use super::{Key, KeyWait, ready};

/// The lines of the keys of a shard, in all databases.
type Lines = HashMap<Box<[u8]>, VecDeque<Place>>;

/// Somebody in the line of a key of a database.
struct Place {
    db: usize,
    wait: Arc<KeyWait>,
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
    pub(super) fn join(&self, shard: ShardId, db: usize, key: &[u8], wait: &Arc<KeyWait>) {
        let mut lines = self.shards[shard.0].lock();
        let line = match lines.get_mut(key) {
            Some(line) => line,
            None => lines.entry(key.into()).or_default(),
        };
        line.push_back(Place {
            db,
            wait: Arc::clone(wait),
        });
        self.count.fetch_add(1, Relaxed);
    }

    /// Leaves the line of a key.
    pub(super) fn leave(&self, shard: ShardId, db: usize, key: &[u8], wait: &KeyWait) {
        let mut lines = self.shards[shard.0].lock();
        let Some(line) = lines.get_mut(key) else {
            return;
        };
        let before = line.len();
        line.retain(|place| place.db != db || place.wait.number != wait.number);
        self.count.fetch_sub(before - line.len(), Relaxed);
        if line.is_empty() {
            lines.remove(key);
        }
    }

    /// The first in the line of a key that still waits.
    pub(super) fn first(&self, shard: ShardId, db: usize, key: &[u8]) -> Option<Arc<KeyWait>> {
        let mut lines = self.shards[shard.0].lock();
        let line = lines.get_mut(key)?;
        // So that not everybody passes all who were served before.
        while line.front().is_some_and(|place| !place.wait.is_waiting()) {
            line.pop_front();
            self.count.fetch_sub(1, Relaxed);
        }
        line.iter()
            .find(|place| place.db == db && place.wait.is_waiting())
            .map(|place| Arc::clone(&place.wait))
    }

    /// A key of an awaited shard, which is locked, has changed. Returns whether the shard is still to be observed.
    pub(crate) fn changed(&self, change: &Change<'_>) -> bool {
        let lines = self.shards[change.shard.0].lock();
        let is_meant =
            |line: &VecDeque<Place>| line.iter().any(|place| place.db == change.database);
        if change.kind == ChangeKind::Written && lines.get(change.key.bytes).is_some_and(is_meant) {
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
            let here = lines
                .iter()
                .filter(|(_, line)| line.iter().any(|place| place.db == db));
            found.extend(here.map(|(key, _)| key.clone()));
        }
        found
    }
}
