//! Collections of the store: small ones in their entries, and instances, whose leaves are as opaque to the
//! log as those of a server. An instance has a few leaves, each of which is a string of bytes; an edit puts
//! some more behind them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ferrite_log::{
    Address, Appender, Batch, Change, DbId, Liveness, Lsn, Record, Report, Tag, Value, Verdict,
};

use sys::file::Files;

use super::store::{Entry, FullKey, State};

pub(crate) const HASH: Tag = Tag {
    kind: Tag::HASH,
    form: 2,
    is_tree: false,
};
pub(crate) const TREE: Tag = Tag {
    is_tree: true,
    ..HASH
};
/// Leaves of an instance.
pub(crate) const LEAVES: u8 = 4;
/// Bytes that a collection, or a leaf, keeps: the last ones.
const KEEPS: usize = 1500;

/// A leaf of an instance; two are equal if what is in them is.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) value: Vec<u8>,
    /// The record that it rests on, and how long that is.
    pub(crate) base: Lsn,
    pub(crate) bytes: u64,
}

impl PartialEq for Leaf {
    fn eq(&self, other: &Leaf) -> bool {
        self.value == other.value
    }
}

/// Leaves by their numbers.
pub(crate) type Leaves = BTreeMap<u8, Leaf>;

/// What an edit does to a collection, or to a leaf.
pub(crate) fn edit(value: &mut Vec<u8>, bytes: &[u8]) {
    value.extend_from_slice(bytes);
    let surplus = value.len().saturating_sub(KEEPS);
    value.drain(..surplus);
}

/// The data of a leaf, or of an edit of one.
fn data(leaf: u8, bytes: &[u8]) -> Vec<u8> {
    [&[leaf], bytes].concat()
}

/// A value without the number of its instance: it, or the leaves.
pub(crate) type Contents = Vec<Vec<u8>>;

impl Entry {
    /// What it has.
    pub(crate) fn contents(&self) -> Contents {
        match self.tag.is_tree {
            true => self
                .leaves
                .values()
                .map(|leaf| leaf.value.clone())
                .collect(),
            false => vec![self.value.clone()],
        }
    }

    /// The number of its instance.
    pub(crate) fn instance(&self) -> Option<u64> {
        let number = self.value[..]
            .try_into()
            .ok()
            .filter(|_| self.tag.is_tree)?;
        Some(u64::from_le_bytes(number))
    }

    /// Its leaves are dead.
    pub(crate) fn mark_leaves_dead(&self, liveness: &mut Liveness) {
        mark_dead(&self.leaves, liveness);
    }

    /// An entry that names a new instance, of equal leaves.
    fn of_instance(number: u64, value: &[u8]) -> Entry {
        let leaf = Leaf {
            value: value.to_vec(),
            base: Lsn::FIRST,
            bytes: Appender::leaf_bytes(1 + value.len()),
        };
        Entry {
            value: number.to_le_bytes().to_vec(),
            tag: TREE,
            expiry: None,
            address: None,
            leaves: (0..LEAVES).map(|number| (number, leaf.clone())).collect(),
        }
    }
}

fn mark_dead(leaves: &Leaves, liveness: &mut Liveness) {
    for leaf in leaves.values() {
        liveness.dead_leaf(leaf.base, leaf.bytes);
    }
}

/// Makes a key's value a new instance. Returns the instance that the key had.
pub(crate) fn grow(
    state: &mut State,
    appender: &mut Appender,
    full: &FullKey,
    value: &[u8],
) -> Option<(DbId, u64)> {
    let (db, key) = full;
    let number = appender.tail().get();
    let mut entry = Entry::of_instance(number, value);
    for (leaf, its) in &mut entry.leaves {
        its.base = appender.leaf(*db, number, TREE, &data(*leaf, value));
    }
    entry.address = Some(appender.set(*db, key, TREE, None, &entry.value));
    let before = state.entries.get(full).and_then(Entry::instance);
    state.put(full.clone(), Some(entry), appender.liveness());
    before.map(|number| (*db, number))
}

/// The same in a batch. The leaves get their places in [`place`].
pub(crate) fn grow_in(
    batch: &mut Batch<'_>,
    number: u64,
    (db, key): &FullKey,
    value: &[u8],
) -> Entry {
    let entry = Entry::of_instance(number, value);
    for leaf in entry.leaves.keys() {
        batch.leaf(*db, number, TREE, &data(*leaf, value));
    }
    batch.set(*db, key, TREE, None, &entry.value);
    entry
}

/// Gives a leaf that a batch has made its place, unless the batch has replaced it again.
pub(crate) fn place(state: &mut State, record: &Record<'_>, liveness: &mut Liveness) {
    let Change::Leaf {
        bytes: Value::Bytes(bytes),
        ..
    } = record.change
    else {
        return;
    };
    let number = record.instance().expect("it is a leaf");
    if let Some(entry) = of_instance(state, record.db, number) {
        let leaf = entry.leaves.get_mut(&bytes[0]).expect("it was made");
        leaf.base = record.lsn;
    } else {
        liveness.dead_leaf(record.lsn, record.bytes());
    }
}

/// An edit of the collection that a key has, if it has one.
pub(crate) fn edit_of<'s>(
    state: &'s mut State,
    full: &FullKey,
    leaf: u8,
    bytes: &[u8],
) -> Option<(&'s mut Entry, Vec<u8>)> {
    let entry = state.entries.get_mut(full)?;
    match (entry.tag.kind, entry.tag.is_tree) {
        (Tag::HASH, false) => {
            edit(&mut entry.value, bytes);
            entry.address = entry.address.map(Address::patched);
            Some((entry, bytes.to_vec()))
        }
        (Tag::HASH, true) => {
            let its = entry.leaves.get_mut(&leaf).expect("it has all of them");
            edit(&mut its.value, bytes);
            Some((entry, data(leaf, bytes)))
        }
        _ => None,
    }
}

fn of_instance(state: &mut State, db: DbId, number: u64) -> Option<&mut Entry> {
    let mut entries = state.entries.iter_mut();
    let is_it = |full: &FullKey, entry: &Entry| full.0 == db && entry.instance() == Some(number);
    entries.find_map(|(full, entry)| is_it(full, entry).then_some(entry))
}

/// Whether compaction has to write a leaf again in place of a record, as far as that is known without its
/// data.
pub(crate) fn judge_instance(state: &mut State, record: &Record<'_>) -> Verdict {
    let number = record.instance().expect("it is of one");
    let Some(entry) = of_instance(state, record.db, number) else {
        return Verdict::Drop;
    };
    let is_edit = matches!(record.change, Change::Edit { .. });
    let rests = |leaf: &Leaf| leaf.base == record.lsn || is_edit && leaf.base < record.lsn;
    if entry.leaves.values().any(rests) {
        Verdict::Rewrite
    } else {
        Verdict::Drop
    }
}

/// Writes the leaf again that a record has or changes, if it has to be.
pub(crate) fn relocate_instance(state: &mut State, appender: &mut Appender, record: &Record<'_>) {
    let number = record.instance().expect("it is of one");
    let (Change::Leaf { bytes, .. } | Change::Edit { bytes, .. }) = record.change else {
        unreachable!("it is of an instance");
    };
    let (Some(entry), Value::Bytes(&[leaf, ..])) = (of_instance(state, record.db, number), bytes)
    else {
        return;
    };
    let its = entry.leaves.get_mut(&leaf).expect("it has all of them");
    let is_edit = matches!(record.change, Change::Edit { .. });
    if its.base == record.lsn || is_edit && its.base < record.lsn {
        appender.liveness().dead_leaf(its.base, its.bytes);
        its.base = appender.leaf(record.db, number, TREE, &data(leaf, &its.value));
        its.bytes = Appender::leaf_bytes(1 + its.value.len());
    }
}

/// Instances that a replay has found.
#[derive(Default)]
pub(crate) struct Instances(BTreeMap<(DbId, u64), Leaves>);

impl Instances {
    /// Applies a record of an instance.
    pub(crate) fn apply(&mut self, record: &Record<'_>, liveness: &mut Liveness) {
        let full = (record.db, record.instance().expect("it is of one"));
        match record.change {
            Change::Leaf {
                bytes: Value::Bytes(&[leaf, ref value @ ..]),
                ..
            } => {
                let its = Leaf {
                    value: value.to_vec(),
                    base: record.lsn,
                    bytes: record.bytes(),
                };
                if let Some(old) = self.0.entry(full).or_default().insert(leaf, its) {
                    liveness.dead_leaf(old.base, old.bytes);
                }
            }
            Change::Edit {
                bytes: Value::Bytes(&[leaf, ref bytes @ ..]),
                ..
            } => {
                let leaves = self.0.get_mut(&full);
                if let Some(its) = leaves.and_then(|leaves| leaves.get_mut(&leaf)) {
                    edit(&mut its.value, bytes);
                }
            }
            Change::Edit { bytes, .. } if bytes.is_empty() => {
                if let Some(leaves) = self.0.remove(&full) {
                    mark_dead(&leaves, liveness);
                }
            }
            change => unreachable!("{change:?} of an instance"),
        }
    }

    pub(crate) fn extend(&mut self, other: Instances) {
        self.0.extend(other.0);
    }

    /// Gives the entries their leaves. One whose leaves are not all there is gone, as after a repair.
    pub(crate) fn claim(mut self, state: &mut State, liveness: &mut Liveness) {
        state.entries.retain(|full, entry| {
            let Some(number) = entry.instance() else {
                return true;
            };
            entry.leaves = self.0.remove(&(full.0, number)).unwrap_or_default();
            entry.leaves.len() == usize::from(LEAVES)
        });
        self.0
            .values()
            .for_each(|leaves| mark_dead(leaves, liveness));
    }
}

/// Which part of an instance a leaf has.
fn range_of(data: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let &leaf = data.first()?;
    let start = if leaf == 0 { Vec::new() } else { vec![leaf] };
    Some((start, (leaf + 1 < LEAVES).then(|| vec![leaf + 1])))
}

/// Mends a log of these.
pub(crate) fn repair(files: Arc<dyn Files>, directory: &Path) -> ferrite_log::Result<Report> {
    ferrite_log::repair(files, directory, range_of)
}
