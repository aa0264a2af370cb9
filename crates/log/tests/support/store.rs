//! A store as simple as can be on top of a log: what a server does with it, without shards, sockets and
//! haste.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ferrite_log::{
    Address, Appender, Blob, BlobRef, BlobStore, Change, Current, DbId, Liveness, Log, Lsn, Rebind,
    Record, Recovery, Relocate, ReplayOptions, Replayed, Replayer, Tag, Value, ValueReader,
    Verdict, judge,
};
use sys::file::DIRECT_BLOCK;

use super::batches;
use super::trees::{self, HASH, Instances, Leaves, TREE};

/// One key's state. `address` is where it is in the log; two stores are equal without it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Vec<u8>,
    pub(crate) tag: Tag,
    pub(crate) expiry: Option<i64>,
    pub(crate) address: Option<Address>,
    /// Those of its instance, if it is one.
    pub(crate) leaves: Leaves,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        (&self.value, self.tag, self.expiry) == (&other.value, other.tag, other.expiry)
            && self.leaves == other.leaves
    }
}

/// A key of a database's contents.
pub(crate) type FullKey = (DbId, Vec<u8>);

/// All entries, by the identity of their database.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    pub(crate) entries: BTreeMap<FullKey, Entry>,
}

impl State {
    /// Without what has expired at `now`.
    pub(crate) fn living(&self, now: i64) -> State {
        let living = |entry: &Entry| entry.expiry.is_none_or(|expiry| expiry > now);
        let entries = self.entries.iter().filter(|(_, entry)| living(entry));
        State {
            entries: entries
                .map(|(key, entry)| (key.clone(), entry.clone()))
                .collect(),
        }
    }

    /// Puts an entry in place of what was there, which is dead from here on.
    pub(crate) fn put(&mut self, key: FullKey, entry: Option<Entry>, liveness: &mut Liveness) {
        let key_len = key.1.len();
        let old = match entry {
            Some(entry) => self.entries.insert(key, entry),
            None => self.entries.remove(&key),
        };
        if let Some(old) = old
            && let Some(address) = old.address
        {
            liveness.dead(address, key_len, old.value.len());
            old.mark_leaves_dead(liveness);
        }
    }
}

/// A store that changes and logs its changes.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) state: Mutex<State>,
}

impl Entry {
    pub(crate) fn new(value: &[u8], tag: Tag, expiry: Option<i64>) -> Entry {
        Entry {
            value: value.to_vec(),
            tag,
            expiry,
            address: None,
            leaves: Leaves::new(),
        }
    }
}

/// Appends and applies a whole value. Returns the instance that the key had.
fn set(
    state: &mut State,
    appender: &mut Appender,
    full: &FullKey,
    mut entry: Entry,
) -> Option<(DbId, u64)> {
    let (db, key) = full;
    entry.address = Some(append(appender, *db, key, &entry));
    let before = state.entries.get(full).and_then(Entry::instance);
    state.put(full.clone(), Some(entry), appender.liveness());
    before.map(|number| (*db, number))
}

/// The entry of a key whose value is a string.
pub(crate) fn string_of<'s>(state: &'s mut State, full: &FullKey) -> Option<&'s mut Entry> {
    let entry = state.entries.get_mut(full);
    entry.filter(|entry| entry.tag.kind == Tag::STRING)
}

pub(crate) fn patch(value: &mut Vec<u8>, offset: u64, total: u64, bytes: &[u8]) {
    value.resize(total as usize, 0);
    value[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
}

/// A change that a test makes.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Set(FullKey, Vec<u8>, Option<i64>),
    Delete(FullKey),
    Expire(FullKey, Option<i64>),
    Patch(FullKey, u64, Vec<u8>),
    /// The value is a small collection.
    Hash(FullKey, Vec<u8>),
    /// The value is an instance, of leaves like this.
    Grow(FullKey, Vec<u8>),
    /// Some more for a collection, or for a leaf of it.
    Edit(FullKey, u8, Vec<u8>),
    Batch(Vec<Op>),
    /// Sets of values that are no large ones, two at least.
    Series(Vec<(FullKey, Vec<u8>)>),
    Clear(DbId),
    ClearAll,
    Swap(u16, u16),
}

pub(crate) const TAG: Tag = Tag {
    kind: Tag::STRING,
    form: 1,
    is_tree: false,
};

impl Store {
    /// Appends and applies `op`. Returns where the last record ends that does
    /// something.
    pub(crate) fn run(&self, log: &Log, appender: &mut Appender, op: &Op) -> Lsn {
        let mut state = self.state.lock().expect("no panic inside");
        let state = &mut *state;
        // Ends when its key has another value.
        let mut before = None;
        match op {
            Op::Set(full, value, expiry) => {
                before = set(state, appender, full, Entry::new(value, TAG, *expiry));
            }
            Op::Hash(full, value) => {
                before = set(state, appender, full, Entry::new(value, HASH, None));
            }
            Op::Grow(full, value) => before = trees::grow(state, appender, full, value),
            Op::Edit(full @ (db, key), leaf, bytes) => {
                if let Some((entry, data)) = trees::edit_of(state, full, *leaf, bytes) {
                    match entry.instance() {
                        None => appender.edit(*db, key, HASH, &data),
                        Some(number) => appender.edit_instance(*db, number, TREE, &data),
                    };
                }
            }
            Op::Delete(full @ (db, key)) => {
                if let Some(entry) = state.entries.get(full) {
                    before = entry.instance().map(|number| (*db, number));
                    appender.delete(*db, key);
                    state.put(full.clone(), None, appender.liveness());
                }
            }
            Op::Expire(full @ (db, key), expiry) => {
                if let Some(entry) = state.entries.get_mut(full) {
                    appender.expire(*db, key, *expiry);
                    entry.expiry = *expiry;
                }
            }
            Op::Patch(full @ (db, key), offset, bytes) => {
                if let Some(entry) = string_of(state, full) {
                    let total = (offset + bytes.len() as u64).max(entry.value.len() as u64);
                    appender.patch(*db, key, TAG, *offset, total, bytes);
                    patch(&mut entry.value, *offset, total, bytes);
                    entry.tag = TAG;
                    entry.address = entry.address.map(Address::patched);
                }
            }
            Op::Batch(ops) => batches::run_batch(appender, ops, state),
            Op::Series(sets) => batches::run_series(appender, sets, state),
            Op::Clear(db) => {
                appender.bind(&[Rebind::Clear(*db)]);
                clear(state, Some(*db), appender.liveness());
            }
            Op::ClearAll => {
                appender.bind(&[Rebind::ClearAll]);
                clear(state, None, appender.liveness());
            }
            Op::Swap(a, b) => {
                appender.bind(&swap(log, *a, *b));
            }
        }
        let end = appender.commit();
        if let Some((db, number)) = before {
            appender.edit_instance(db, number, TREE, b"");
            appender.commit();
        }
        end
    }

    /// Forgets what has expired; nothing is logged for it, unless its value has a file of its own.
    pub(crate) fn expire(&self, now: i64, appender: &mut Appender) -> Lsn {
        let mut state = self.state.lock().expect("no panic inside");
        let is_due = |entry: &Entry| entry.expiry.is_some_and(|expiry| expiry <= now);
        let due: Vec<FullKey> = state
            .entries
            .iter()
            .filter(|(_, entry)| is_due(entry))
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            // The file of a large value goes, or leaves do, so its record must not be the last word.
            let entry = &state.entries[&key];
            if entry.tag.is_tree || entry.address.is_some_and(Address::is_blob) {
                appender.delete(key.0, &key.1);
            }
            state.put(key, None, appender.liveness());
        }
        appender.commit()
    }

    pub(crate) fn snapshot(&self) -> State {
        self.state.lock().expect("no panic inside").clone()
    }
}

/// What SWAPDB does to the bindings.
pub(crate) fn swap(log: &Log, a: u16, b: u16) -> [Rebind; 2] {
    let bindings = log.bindings();
    [
        Rebind::Name {
            number: a,
            id: bindings.id_of(b),
        },
        Rebind::Name {
            number: b,
            id: bindings.id_of(a),
        },
    ]
}

fn clear(state: &mut State, db: Option<DbId>, liveness: &mut Liveness) {
    let gone: Vec<FullKey> = state
        .entries
        .keys()
        .filter(|key| db.is_none_or(|db| key.0 == db))
        .cloned()
        .collect();
    for key in gone {
        state.put(key, None, liveness);
    }
}

/// Values from this length on have files of their own, as the options of the tests say.
pub(crate) const BLOB_MIN: usize = 4 << 10;

fn append(appender: &mut Appender, db: DbId, key: &[u8], entry: &Entry) -> Address {
    match blob_of(&appender.blob_store(), &entry.value) {
        None => appender.set(db, key, entry.tag, entry.expiry, &entry.value),
        Some(blob) => appender.set_blob(db, key, entry.tag, entry.expiry, &blob),
    }
}

/// Writes a long value to a file of its own, in two pieces: anywhere in memory, or past the page cache with
/// padding behind. `None` for a short one, or if the disk takes nothing.
pub(crate) fn blob_of(store: &BlobStore, value: &[u8]) -> Option<Arc<Blob>> {
    if value.len() < BLOB_MIN {
        return None;
    }
    let mut draft = store.begin(value.len() as u64).ok()?;
    if value.len().is_multiple_of(2) {
        let (first, second) = value.split_at(value.len() / 3);
        draft.write(first).ok()?;
        draft.write(second).ok()?;
    } else {
        let bytes = value.len().next_multiple_of(DIRECT_BLOCK);
        let mut memory = vec![0; bytes + DIRECT_BLOCK];
        let skew = memory.as_ptr().align_offset(DIRECT_BLOCK);
        let blocks = &mut memory[skew..skew + bytes];
        blocks[..value.len()].copy_from_slice(value);
        let (first, second) = blocks.split_at(DIRECT_BLOCK);
        draft.write(first).ok()?;
        draft.write_last(second, bytes - value.len()).ok()?;
    }
    draft.finish().ok()
}

impl Relocate for Store {
    fn hash(&self, record: &Record<'_>) -> u64 {
        hash(record.db, record.key)
    }

    fn relocate(
        &self,
        appender: &mut Appender,
        records: &[Replayed<'_>],
        is_oldest: bool,
    ) -> usize {
        let mut done = 0;
        for replayed in records {
            if done > 0 && !appender.may_relocate(&replayed.record) {
                break;
            }
            self.relocate_one(appender, &replayed.record, is_oldest);
            done += 1;
        }
        done
    }

    fn judge(
        &self,
        records: &[Replayed<'_>],
        is_oldest: bool,
        tell: &mut dyn FnMut(&Record<'_>, Verdict),
    ) {
        let mut state = self.state.lock().expect("no panic inside");
        for Replayed { record, .. } in records {
            if record.is_of_instance() {
                tell(record, trees::judge_instance(&mut state, record));
                continue;
            }
            let entry = state.entries.get(&(record.db, record.key.to_vec()));
            tell(record, judge(record, entry.map(current), is_oldest));
        }
    }
}

/// What compaction wants to know of an entry.
fn current(entry: &Entry) -> Current {
    Current {
        address: entry.address.expect("all is in the log"),
        expiry: entry.expiry,
    }
}

impl Store {
    fn relocate_one(&self, appender: &mut Appender, record: &Record<'_>, is_oldest: bool) {
        let mut state = self.state.lock().expect("no panic inside");
        if record.is_of_instance() {
            trees::relocate_instance(&mut state, appender, record);
            return;
        }
        let entry = state.entries.get_mut(&(record.db, record.key.to_vec()));
        let verdict = judge(record, entry.as_deref().map(current), is_oldest);
        match (verdict, entry) {
            (Verdict::Rewrite, Some(entry)) => {
                let old = entry.address.expect("all is in the log");
                entry.address = Some(if old.is_blob() && !old.is_patched() {
                    appender.keep_blob(record, entry.tag, entry.expiry)
                } else {
                    appender
                        .liveness()
                        .dead(old, record.key.len(), entry.value.len());
                    append(appender, record.db, record.key, entry)
                });
            }
            (Verdict::Expire, Some(entry)) => {
                appender.expire(record.db, record.key, entry.expiry);
            }
            (Verdict::Tombstone, None) => {
                appender.delete(record.db, record.key);
            }
            (Verdict::Drop, _) => {}
            (verdict, entry) => unreachable!("{verdict:?} of {entry:?}"),
        }
    }
}

/// Partitions of a replay, each with the entries whose hashes are in it.
pub(crate) struct Loading {
    partitions: Vec<Mutex<Part>>,
    reader: ValueReader,
}

#[derive(Default)]
struct Part {
    state: State,
    instances: Instances,
    /// Entries whose values are in files, and what changed them since. They are read at the end: a later
    /// record may have replaced one, and then its file is gone.
    blobs: BTreeMap<FullKey, (BlobRef, Vec<Patch>)>,
}

type Patch = (u64, u64, Vec<u8>);

pub(crate) fn hash(db: DbId, key: &[u8]) -> u64 {
    let mut hash = u64::from(db.0) ^ 0xcbf2_9ce4_8422_2325;
    for &byte in key {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Replayer for Loading {
    fn hash(&self, record: &Record<'_>) -> u64 {
        hash(record.db, record.key)
    }

    fn apply(&self, partition: usize, records: &[Replayed<'_>], liveness: &mut Liveness) {
        let mut part = self.partitions[partition].lock().expect("no panic inside");
        let Part {
            state,
            instances,
            blobs,
        } = &mut *part;
        for replayed in records {
            let record = &replayed.record;
            assert_eq!(replayed.hash, hash(record.db, record.key));
            if record.is_of_instance() {
                instances.apply(record, liveness);
                continue;
            }
            let full = (record.db, record.key.to_vec());
            match record.change {
                Change::Set { tag, expiry, value } => {
                    blobs.remove(&full);
                    let value = match value {
                        Value::Bytes(value) => value.to_vec(),
                        Value::Blob(blob) => {
                            blobs.insert(full.clone(), (blob, Vec::new()));
                            vec![0; blob.len as usize]
                        }
                        // A store that leaves values would keep the address; here it shows that it can be
                        // read.
                        Value::Stored(len) => self.fetch(record, len),
                    };
                    let address = record.address();
                    state.put(
                        full,
                        Some(Entry {
                            address,
                            ..Entry::new(&value, tag, expiry)
                        }),
                        liveness,
                    );
                }
                Change::Delete => {
                    blobs.remove(&full);
                    state.put(full, None, liveness);
                }
                Change::Expire(expiry) => {
                    if let Some(entry) = state.entries.get_mut(&full) {
                        entry.expiry = expiry;
                    }
                }
                Change::Edit { bytes, .. } => {
                    let bytes = self.bytes(record, bytes);
                    // Its collection may be written again behind it.
                    if let Some(entry) = state.entries.get_mut(&full)
                        && entry.tag == HASH
                    {
                        trees::edit(&mut entry.value, &bytes);
                        entry.address = entry.address.map(Address::patched);
                    }
                }
                Change::Leaf { .. } => unreachable!("it is of an instance"),
                Change::Patch {
                    tag,
                    offset,
                    total,
                    bytes,
                } => {
                    let bytes = &*self.bytes(record, bytes);
                    if let Some(entry) = string_of(state, &full) {
                        patch(&mut entry.value, offset, total, bytes);
                        entry.tag = tag;
                        entry.address = entry.address.map(Address::patched);
                    }
                    if let Some((_, patches)) = blobs.get_mut(&full) {
                        patches.push((offset, total, bytes.to_vec()));
                    }
                }
            }
        }
    }
}

impl Loading {
    fn bytes(&self, record: &Record<'_>, bytes: Value<'_>) -> Vec<u8> {
        match bytes {
            Value::Bytes(bytes) => bytes.to_vec(),
            _ => self.fetch(record, bytes.len()),
        }
    }

    fn fetch(&self, record: &Record<'_>, len: u64) -> Vec<u8> {
        let value = self.reader.read(record.lsn, record.key, len);
        value.expect("it is whole").expect("it is there")
    }
}

/// Replays everything.
pub(crate) fn load(recovery: &mut Recovery, threads: usize) -> ferrite_log::Result<Store> {
    load_from(recovery, threads, None)
}

/// The same from hints, where there are some.
pub(crate) fn load_from(
    recovery: &mut Recovery,
    threads: usize,
    leave_min: Option<u64>,
) -> ferrite_log::Result<Store> {
    let partitions = 8;
    let loading = Loading {
        partitions: (0..partitions).map(|_| Mutex::default()).collect(),
        reader: recovery.value_reader(),
    };
    recovery.replay(
        ReplayOptions {
            threads,
            partitions,
            leave_min,
        },
        &loading,
        &mut |_| {},
    )?;
    let (mut state, mut instances) = (State::default(), Instances::default());
    for partition in loading.partitions {
        let part = partition.into_inner().expect("no panic inside");
        state.entries.extend(part.state.entries);
        instances.extend(part.instances);
        for (full, (blob, patches)) in part.blobs {
            let mut value = recovery.value_reader().read_blob(blob)?;
            for (offset, total, bytes) in patches {
                patch(&mut value, offset, total, &bytes);
            }
            state.entries.get_mut(&full).expect("it is there").value = value;
        }
    }
    instances.claim(&mut state, &mut recovery.liveness());
    Ok(Store {
        state: Mutex::new(state),
    })
}
