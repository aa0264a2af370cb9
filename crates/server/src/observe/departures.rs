//! Keys on their way to another server: whether one changes before the target has it.
//!
//! MIGRATE sends values as they were when it read them, and no lock is held while they travel. A key is
//! removed only if nothing has changed it since. A *departure* is the set of keys of one MIGRATE, each with
//! the answer to that.
//!
//! Invariants:
//!
//! 1. A departure is registered, and the shards of its keys are observed (`keyspace::reason::SENT`), while
//!    the shards are locked under which its values were read. So every later change of one of its keys is
//!    recorded, under the same lock.
//! 2. When databases are emptied or exchanged, every key of a departure has changed. No worker is inside a
//!    turn then.
//!
//! Not here: what is sent, and what becomes of the keys (`command::key::migrate`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use keyspace::{Change, Key};
use parking_lot::RwLock;

use crate::names::ByHash;

/// The running departures.
#[derive(Default)]
pub(crate) struct Departures {
    running: RwLock<Vec<Arc<Departure>>>,
}

impl Departures {
    /// Registers a departure, until what it returns is dropped.
    pub(crate) fn begin(&'static self, departure: Departure) -> Underway {
        let departure = Arc::new(departure);
        self.running.write().push(Arc::clone(&departure));
        Underway {
            departures: self,
            departure,
        }
    }

    /// Number of running departures.
    pub(crate) fn len(&self) -> usize {
        self.running.read().len()
    }

    /// Records a change. Returns whether the shard has to stay observed. The shard is locked.
    pub(crate) fn changed(&self, change: &Change<'_>) -> bool {
        let running = self.running.read();
        for departure in running.iter().filter(|it| it.db == change.database) {
            let Key { bytes, hash } = change.key;
            if let Some(is_changed) = departure.keys.get(hash, bytes) {
                is_changed.store(true, Relaxed);
            }
        }
        !running.is_empty()
    }

    /// Records that a database was replaced. No other worker is inside a turn.
    pub(crate) fn replaced(&self, db: usize) {
        let running = self.running.read();
        for departure in running.iter().filter(|it| it.db == db) {
            let flags = departure.keys.iter().map(|(_, is_changed)| is_changed);
            flags.for_each(|is_changed| is_changed.store(true, Relaxed));
        }
    }
}

/// Keys of a database, and of each whether it has changed.
pub(crate) struct Departure {
    pub(crate) db: usize,
    keys: ByHash<Box<[u8]>, AtomicBool>,
}

impl Departure {
    /// No keys of a database.
    pub(crate) fn of(db: usize) -> Departure {
        Departure {
            db,
            keys: ByHash::default(),
        }
    }

    /// Adds a key, which may be there.
    pub(crate) fn add(&mut self, key: Key<'_>) {
        if !self.keys.contains(key.hash, key.bytes) {
            let is_changed = AtomicBool::new(false);
            self.keys.insert(key.hash, key.bytes.into(), is_changed);
        }
    }
}

/// A registered departure.
pub(crate) struct Underway {
    departures: &'static Departures,
    departure: Arc<Departure>,
}

impl Underway {
    /// The number of its database.
    pub(crate) fn db(&self) -> usize {
        self.departure.db
    }

    /// Whether a key of it has changed. The key's shard is locked.
    pub(crate) fn is_changed(&self, key: Key<'_>) -> bool {
        let is_changed = self.departure.keys.get(key.hash, key.bytes);
        is_changed.is_none_or(|is_changed| is_changed.load(Relaxed))
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let mut running = self.departures.running.write();
        running.retain(|other| !Arc::ptr_eq(other, &self.departure));
    }
}

#[cfg(test)]
mod tests {
    use keyspace::{ChangeKind, ShardId};

    use super::*;

    fn key(hash: u64, bytes: &[u8]) -> Key<'_> {
        Key { bytes, hash }
    }

    #[test]
    fn a_departure_hears_of_its_own_keys_in_its_own_database() {
        let departures: &'static Departures = Box::leak(Box::default());
        let changed = |database, key| {
            departures.changed(&Change {
                database,
                shard: ShardId(0),
                key,
                observed: 0,
                kind: ChangeKind::Written,
            })
        };
        assert!(!changed(0, key(1, b"a")));
        let mut departure = Departure::of(0);
        // Two names of one hash, and one of them twice.
        for name in [b"a", b"b", b"a"] {
            departure.add(key(1, name));
        }
        let underway = departures.begin(departure);
        assert_eq!((departures.len(), underway.db()), (1, 0));
        assert!(changed(1, key(1, b"a")) && changed(0, key(1, b"c")));
        assert!(!underway.is_changed(key(1, b"a")) && !underway.is_changed(key(1, b"b")));
        assert!(changed(0, key(1, b"b")));
        assert!(!underway.is_changed(key(1, b"a")) && underway.is_changed(key(1, b"b")));
        departures.replaced(1);
        assert!(!underway.is_changed(key(1, b"a")));
        departures.replaced(0);
        assert!(underway.is_changed(key(1, b"a")));
        drop(underway);
        assert!(!changed(0, key(1, b"a")));
    }
}
