//! The same records, put together in a memory that has no room for any item.

use std::collections::{BTreeMap, HashMap};

use keyspace::Keyspace;
use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::log::leaf::LeafRecord;
use keyspace::collection::log::store::{AllInMemory, TileStore};

use super::{Log, Record, contents, verify};

/// Puts a tree together again, and compares it with what it should be.
pub(super) fn replay_too(log: &Log, keyspace: &Keyspace, tree: &Collection) {
    let kind = tree.kind();
    let mut store = NoMemory {
        records: &log.records,
        spilled: HashMap::new(),
        last: 0,
    };
    // Leaves that were spilled are written behind all others, and then it is as if memory had been enough.
    let mut longer = Log {
        records: log.records.clone(),
        ..Log::new()
    };
    let mut last = longer.records.last_key_value().map_or(0, |(&at, _)| at);
    let write = &mut |contents: &[u8]| {
        last += 1;
        let record = Record::Leaf(contents.to_vec());
        longer.records.insert(last, record);
        Some(Base {
            at: last,
            share: contents.len() as u32,
        })
    };
    let (mut other, _) = log.replay_in(keyspace, kind, &mut store, Some(write));
    assert!(store.spilled.is_empty(), "all came back");
    for (&at, record) in &longer.records {
        if let Record::Leaf(bytes) = record {
            let record = LeafRecord::read(bytes).expect("it was written");
            other.warm(at, &record).expect("its leaf is this record");
        }
    }
    assert_eq!(other.cold_leaves(), 0);
    verify(&other);
    assert_eq!(contents(tree), contents(&other));
    let (again, _) = longer.replay_in(keyspace, kind, &mut AllInMemory, None);
    assert_eq!(contents(tree), contents(&again));
}

/// A store for whatever can leave memory.
struct NoMemory<'r> {
    records: &'r BTreeMap<u64, Record>,
    spilled: HashMap<u64, Vec<u8>>,
    last: u64,
}

impl TileStore for NoMemory<'_> {
    fn is_short(&self) -> bool {
        true
    }

    fn is_nearly_short(&self) -> bool {
        true
    }

    fn changes_max(&self) -> usize {
        1
    }

    fn record(&mut self, base: Base) -> Option<Vec<u8>> {
        match &self.records[&base.at] {
            Record::Leaf(bytes) => Some(bytes.clone()),
            Record::Edit(_) => panic!("a cold leaf rests on a leaf record"),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Option<u64> {
        self.last += 1;
        self.spilled.insert(self.last, bytes.to_vec());
        Some(self.last)
    }

    fn take(&mut self, at: u64) -> Option<Vec<u8>> {
        self.spilled.remove(&at)
    }

    fn note_damage(&mut self, base: Base) {
        panic!("nothing is damaged, and a record at {} is", base.at);
    }
}
