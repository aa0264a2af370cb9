//! Instances: the trees of the log, by their numbers.
//!
//! A collection that is too large for its entry is an instance of the log: its leaves are records of their
//! own, and the record of its key names it. The records of an instance have its number in place of a key,
//! so this table says to which key they belong.
//!
//! A number is not used again as long as a record has it. A key that moves to another database gets another
//! instance, because FLUSHDB drops records by their database.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ferrite_log::{Address, Appender, DbId, Lsn, Tag};
use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::log::ledger::Ledger;
use keyspace::{Guard, Key};
use parking_lot::Mutex;

use super::journal::tag_of;
use crate::shared::ColdLeaves;

/// Parts of the table, each with a lock.
const PARTS: usize = 16;

/// Key of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) hash: u64,
    name: Arc<[u8]>,
}

impl Owner {
    fn key(&self) -> Key<'_> {
        Key {
            bytes: &self.name,
            hash: self.hash,
        }
    }

    /// Shows the tree, if the key still has this instance in the locked shard.
    pub(super) fn with_tree<R>(
        &self,
        guard: &mut Guard<'_>,
        instance: u64,
        db: DbId,
        with: impl FnOnce(&Collection, Tag) -> R,
    ) -> Option<R> {
        let entry = guard.find(self.key())?;
        let tree = entry.tree()?;
        let is_it = tree.logged().place() == Some((instance, db.0));
        is_it.then(|| with(tree, tag_of(entry.as_ref())))
    }
}

/// See the module.
pub(crate) struct Instances {
    last: AtomicU64,
    owners: [Mutex<HashMap<u64, Owner>>; PARTS],
    /// Reports records on which no leaf rests any more; `None` without a log.
    lost: Arc<Mutex<Option<Appender>>>,
    cold: Arc<ColdLeaves>,
}

impl Instances {
    /// `lost` reports dead records.
    pub(super) fn new(lost: Arc<Mutex<Option<Appender>>>, cold: &Arc<ColdLeaves>) -> Instances {
        Instances {
            cold: Arc::clone(cold),
            last: AtomicU64::new(0),
            owners: Default::default(),
            lost,
        }
    }

    fn part(&self, instance: u64) -> &Mutex<HashMap<u64, Owner>> {
        &self.owners[instance as usize % PARTS]
    }

    /// Notes that a record has this number.
    pub(super) fn see(&self, instance: u64) {
        if self.last.load(Relaxed) < instance {
            self.last.fetch_max(instance, Relaxed);
        }
    }

    /// The number of a new instance.
    pub(super) fn fresh(&self) -> u64 {
        1 + self.last.fetch_add(1, Relaxed)
    }

    /// Key of an instance.
    pub(super) fn owner(&self, instance: u64) -> Option<Owner> {
        self.part(instance).lock().get(&instance).cloned()
    }

    /// Notes the key of an instance.
    pub(super) fn own(&self, instance: u64, key: Key<'_>) {
        let mut part = self.part(instance).lock();
        let is_known = part
            .get(&instance)
            .is_some_and(|owner| &*owner.name == key.bytes);
        if !is_known {
            let (hash, name) = (key.hash, key.bytes.into());
            part.insert(instance, Owner { hash, name });
        }
    }

    /// Forgets all keys: there is no log any more, or another one.
    pub(super) fn clear(&self) {
        for part in &self.owners {
            part.lock().clear();
        }
    }

    /// Makes a tree an instance of a database of the log, if it is none. Returns its number if its leaves
    /// have to be written. The shard of the key is locked.
    pub(crate) fn adopt(
        self: &Arc<Self>,
        db: DbId,
        key: Key<'_>,
        tree: &Collection,
    ) -> Option<u64> {
        let earlier = tree.logged().place();
        if let Some((instance, _)) = earlier.filter(|&(_, other)| other == db.0) {
            self.own(instance, key);
            return None;
        }
        if let Some((instance, _)) = earlier {
            self.gone(instance);
        }
        let instance = self.fresh();
        self.own(instance, key);
        let ledger: Arc<dyn Ledger> = Arc::clone(self) as _;
        tree.logged().begin(instance, db.0, &ledger);
        Some(instance)
    }

    /// [`Instances::adopt`], and writes the leaves: then the record of its key can name it.
    pub(crate) fn log_tree(
        self: &Arc<Self>,
        appender: &mut Appender,
        db: DbId,
        key: Key<'_>,
        tag: Tag,
        tree: &Collection,
    ) {
        let Some(instance) = self.adopt(db, key, tree) else {
            return;
        };
        let mut lost = Vec::new();
        let is_written = tree.write_leaves(&mut lost, &mut |contents| {
            Some(write_leaf(appender, db, instance, tag, contents))
        });
        assert!(is_written, "an appender takes all records");
        mark_dead(appender, &lost);
    }
}

impl Ledger for Instances {
    fn lost(&self, bases: &mut dyn Iterator<Item = Base>) {
        if let Some(appender) = self.lost.lock().as_mut() {
            for base in bases {
                let liveness = appender.liveness();
                liveness.dead_leaf(Lsn::new(base.at), base.share.into());
            }
            appender.commit();
        }
    }

    fn gone(&self, instance: u64) {
        self.part(instance).lock().remove(&instance);
    }

    fn cold(&self, leaves: i64, bytes: i64) {
        self.cold.add(leaves, bytes);
    }
}

/// Appends a leaf record. Returns what its leaf rests on.
pub(super) fn write_leaf(
    appender: &mut Appender,
    db: DbId,
    instance: u64,
    tag: Tag,
    contents: &[u8],
) -> Base {
    let at = appender.leaf(db, instance, tag, contents).get();
    let share = leaf_share(contents.len());
    Base { at, share }
}

/// The number of an instance as its records have it in place of a key.
pub(crate) fn instance_key(instance: u64) -> [u8; 8] {
    instance.to_le_bytes()
}

/// Bytes of a leaf record in the log, by the bytes of its contents.
pub(super) fn leaf_share(contents: usize) -> u32 {
    let bytes = u32::try_from(Appender::leaf_bytes(contents));
    bytes.expect("a record has less than 4 GiB")
}

/// Whether the record on which a leaf rests can be read.
pub(super) fn is_written(appender: &Appender, base: Base) -> bool {
    let address = Address::from_bits(base.at);
    // The share of a leaf that is all of its record is that record's length.
    let contents = u64::from(base.share) - Appender::leaf_bytes(0);
    let key = size_of::<u64>();
    address.is_some_and(|address| appender.is_written(address, key, contents as usize))
}

/// Reports records on which no leaf rests any more.
pub(super) fn mark_dead(appender: &mut Appender, lost: &[Base]) {
    let liveness = appender.liveness();
    for base in lost {
        liveness.dead_leaf(Lsn::new(base.at), base.share.into());
    }
}
