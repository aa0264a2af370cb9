//! The instances of a damaged log: in which run one is known as a whole.

use std::collections::HashMap;

use super::cover::{Cover, LeafRange};
use crate::address::DbId;
use crate::record::{Change, Record, Value};

/// What the records say of one.
#[derive(Default)]
struct Instance {
    /// The run of the last record, and what the leaves of that run have.
    run: usize,
    cover: Cover,
    /// The key whose `Set` of that run names it last.
    owner: Option<Box<[u8]>>,
    /// The last run in which it is known as a whole, and its key then.
    known: Option<(usize, Box<[u8]>)>,
    /// The run of the last leaf or edit.
    changed: usize,
    /// Whether a `Set` names it, and whether a record says that it is gone.
    is_named: bool,
    is_gone: bool,
}

impl Instance {
    fn enter(&mut self, run: usize) {
        if self.run != run {
            self.settle();
            self.run = run;
            self.cover.clear();
        }
    }

    fn settle(&mut self) {
        let owner = self.owner.take();
        if self.cover.is_whole()
            && let Some(owner) = owner
        {
            self.known = Some((self.run, owner));
        }
    }
}

/// All of them, by database and number.
pub(super) struct Instances {
    all: HashMap<(DbId, u64), Instance>,
    range_of: LeafRange,
}

/// The number of the instance that a `Set` names.
pub(super) fn named_by(change: &Change<'_>) -> Option<u64> {
    match change {
        Change::Set {
            tag,
            value: Value::Bytes(bytes),
            ..
        } if tag.is_tree => bytes
            .first_chunk()
            .map(|number| u64::from_le_bytes(*number)),
        _ => None,
    }
}

impl Instances {
    pub(super) fn new(range_of: LeafRange) -> Instances {
        Instances {
            all: HashMap::new(),
            range_of,
        }
    }

    /// Notes a record of a run.
    pub(super) fn note(&mut self, record: &Record<'_>, run: usize) {
        if let Some(number) = named_by(&record.change) {
            let instance = self.all.entry((record.db, number)).or_default();
            instance.enter(run);
            instance.owner = Some(record.key.into());
            instance.is_named = true;
        }
        let Some(number) = record.instance() else {
            return;
        };
        let instance = self.all.entry((record.db, number)).or_default();
        instance.enter(run);
        match record.change {
            Change::Leaf {
                bytes: Value::Bytes(bytes),
                ..
            } => {
                instance.changed = run;
                if let Some((start, end)) = (self.range_of)(bytes) {
                    instance.cover.add(start, end);
                }
            }
            Change::Edit { bytes, .. } if bytes.is_empty() => instance.is_gone = true,
            _ => instance.changed = run,
        }
    }

    /// Ends the last run.
    pub(super) fn settle(&mut self) {
        self.all.values_mut().for_each(Instance::settle);
    }

    /// Whether a leaf or an edit of a run tells of a state that is not known.
    pub(super) fn is_lost(&self, record: &Record<'_>, run: usize) -> bool {
        let is_end = matches!(record.change, Change::Edit { bytes, .. } if bytes.is_empty());
        let number = record.instance().filter(|_| !is_end);
        let Some(instance) = number.and_then(|number| self.all.get(&(record.db, number))) else {
            return false;
        };
        match &instance.known {
            Some((known, _)) => run > *known,
            None => instance.is_named,
        }
    }

    /// The run in which an instance is known as a whole, if it belongs to this key then.
    pub(super) fn known(&self, db: DbId, number: u64, key: &[u8]) -> Option<usize> {
        let known = self.all.get(&(db, number))?.known.as_ref();
        known
            .filter(|(_, owner)| **owner == *key)
            .map(|(run, _)| *run)
    }

    /// Whether changes of an instance are lost.
    pub(super) fn has_lost(&self, db: DbId, number: u64) -> bool {
        let is_lost = |its: &Instance| its.known.as_ref().is_none_or(|(run, _)| its.changed > *run);
        self.all.get(&(db, number)).is_some_and(is_lost)
    }

    /// Whether an instance is gone.
    pub(super) fn is_gone(&self, db: DbId, number: u64) -> bool {
        self.all.get(&(db, number)).is_some_and(|its| its.is_gone)
    }
}
