//! Keys of which a command has read the values, and goes on while nothing is locked: whether one of them
//! changes before it ends.
//!
//! MIGRATE sends values as they were when it read them, and removes a key only if nothing has changed it
//! since. Commands on several large sets (`command::combining`) store what they made of sets that
//! have not changed since. A *reading* is the set of keys of one command, each with the answer to that.
//!
//! Invariants:
//!
//! 1. A reading is registered, and the shards of its keys are observed (`keyspace::reason::READ`), while
//!    the shards are locked under which its values were read. So every later change of one of its keys is
//!    recorded, under the same lock.
//! 2. When databases are emptied or exchanged, every key of a reading has changed. No worker is inside a
//!    turn then.
//!
//! Not here: what is read, and what becomes of the keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use keyspace::{Change, Key};
use parking_lot::RwLock;

use crate::names::ByHash;

/// The running readings.
#[derive(Default)]
pub(crate) struct Readings {
    running: RwLock<Vec<Arc<KeysRead>>>,
    /// Slots that are taken.
    slots: AtomicUsize,
}

impl Readings {
    /// Registers a reading, until what it returns is dropped.
    pub(crate) fn begin(&'static self, reading: KeysRead) -> Underway {
        let reading = Arc::new(reading);
        self.running.write().push(Arc::clone(&reading));
        Underway {
            readings: self,
            reading,
        }
    }

    /// Takes one of `most` slots for commands that make something large. None: all are taken.
    pub(crate) fn slot(&'static self, most: usize) -> Option<Slot> {
        let slot = Slot(self);
        (self.slots.fetch_add(1, Relaxed) < most).then_some(slot)
    }

    /// Number of running readings.
    pub(crate) fn len(&self) -> usize {
        self.running.read().len()
    }

    /// Records a change. Returns whether the shard has to stay observed. The shard is locked.
    pub(crate) fn changed(&self, change: &Change<'_>) -> bool {
        let running = self.running.read();
        for reading in running.iter().filter(|it| it.db == change.database) {
            let Key { bytes, hash } = change.key;
            if let Some(is_changed) = reading.keys.get(hash, bytes) {
                is_changed.store(true, Relaxed);
            }
        }
        !running.is_empty()
    }

    /// Records that a database was replaced. No other worker is inside a turn.
    pub(crate) fn replaced(&self, db: usize) {
        let running = self.running.read();
        for reading in running.iter().filter(|it| it.db == db) {
            let flags = reading.keys.iter().map(|(_, is_changed)| is_changed);
            flags.for_each(|is_changed| is_changed.store(true, Relaxed));
        }
    }
}

/// A slot that is taken. It is free when this is dropped.
pub(crate) struct Slot(&'static Readings);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.slots.fetch_sub(1, Relaxed);
    }
}

/// Keys of a database, and of each whether it has changed.
pub(crate) struct KeysRead {
    pub(crate) db: usize,
    keys: ByHash<Box<[u8]>, AtomicBool>,
}

impl KeysRead {
    /// No keys of a database.
    pub(crate) fn of(db: usize) -> KeysRead {
        KeysRead {
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

/// A registered reading.
pub(crate) struct Underway {
    readings: &'static Readings,
    reading: Arc<KeysRead>,
}

impl Underway {
    /// The number of its database.
    pub(crate) fn db(&self) -> usize {
        self.reading.db
    }

    /// Whether a key of it has changed. The key's shard is locked.
    pub(crate) fn is_changed(&self, key: Key<'_>) -> bool {
        let is_changed = self.reading.keys.get(key.hash, key.bytes);
        is_changed.is_none_or(|is_changed| is_changed.load(Relaxed))
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let mut running = self.readings.running.write();
        running.retain(|other| !Arc::ptr_eq(other, &self.reading));
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
    fn a_reading_hears_of_its_own_keys_in_its_own_database() {
        let readings: &'static Readings = Box::leak(Box::default());
        let changed = |database, key| {
            readings.changed(&Change {
                database,
                shard: ShardId(0),
                key,
                observed: 0,
                kind: ChangeKind::Written,
            })
        };
        assert!(!changed(0, key(1, b"a")));
        let mut reading = KeysRead::of(0);
        // Two names of one hash, and one of them twice.
        for name in [b"a", b"b", b"a"] {
            reading.add(key(1, name));
        }
        let underway = readings.begin(reading);
        assert_eq!((readings.len(), underway.db()), (1, 0));
        assert!(changed(1, key(1, b"a")) && changed(0, key(1, b"c")));
        assert!(!underway.is_changed(key(1, b"a")) && !underway.is_changed(key(1, b"b")));
        assert!(changed(0, key(1, b"b")));
        assert!(!underway.is_changed(key(1, b"a")) && underway.is_changed(key(1, b"b")));
        readings.replaced(1);
        assert!(!underway.is_changed(key(1, b"a")));
        readings.replaced(0);
        assert!(underway.is_changed(key(1, b"a")));
        drop(underway);
        assert!(!changed(0, key(1, b"a")));
    }
}
