//! Replay: records become entries at the start.
//!
//! Records of one shard are applied by one thread at a time, in the order of the log. No key expires
//! meanwhile, because a later record may extend an expiry that has passed. A patch of an unavailable value
//! waits until the end ([`super::amendments`]).
//!
//! Under the policy `offload`, values that don't fit into memory are left in the log. Of a large log all
//! values are, so that the server is ready soon; they are loaded in the background (`warming`). Collections
//! whose items expire are not left.

mod memory;
mod trees;
mod values;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use ferrite_log::{
    Address, Appender, Change, DbId, Liveness, Lsn, Record, Recovery, Replayed, Replayer, Tag,
    Value, ValueReader,
};
use keyspace::collection::Base;
use keyspace::collection::run::Damage;
use keyspace::{COLD_MIN_BYTES, EntryMut, Guard, Key, New, Offloading, Turn};
use parking_lot::Mutex;

use super::amendments::{Amendments, Part, What};
use super::large::Large;
use super::libraries::ReplayedLibraries;
use super::options::directory;
use super::sizes;
use super::spill::Spill;
use super::tile_store::ReplayStore;
use super::tree_replay::{Claim, TreeReplay, message, waiting_bytes};
use super::warming;
use crate::config::Setting;
use crate::limits::{BARREN_SKIPS, PACK_SHARE, PATCH_MIN_BYTES, REPLAY_FETCHES};
use crate::persistence::durable::Durable;
use crate::persistence::journal::{address_of, is_expiring, stored, type_of};

pub(super) use memory::LoadMemory;
use memory::is_short;
use trees::Unfilled;

/// Spreads numbers of instances over all hashes.
const INSTANCE_SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Time at which a replay decides about expiry: before everything.
const BEFORE_ALL: i64 = 0;

/// Applies records to the keyspace.
pub(super) struct Loader {
    server: &'static Durable,
    /// Current numbers of the databases of the log.
    numbers: Vec<u16>,
    /// Turns that are not in use.
    turns: Mutex<Vec<Turn<'static>>>,
    /// Access time of all entries, Unix ms.
    now: i64,
    /// First error; the state is useless then.
    problem: Mutex<Option<String>>,
    /// Instances that lack records, or have some that make no sense.
    lacking: Mutex<Vec<(DbId, u64, Tag)>>,
    /// Whether values may be left in the log; whether all are; the reader for them.
    may_leave: bool,
    leaves_all: bool,
    /// Attempts to offload that are skipped next.
    barren: AtomicUsize,
    reader: ValueReader,
    /// Changes of parts of values that are not at hand.
    amendments: Amendments,
    libraries: ReplayedLibraries,
    trees: TreeReplay,
    /// Number of values that were read back for a patch.
    fetches: AtomicUsize,
    /// Whether values were left in the log.
    has_left: AtomicBool,
    /// Whether there are values with files of their own, which stay there.
    has_blobs: AtomicBool,
    /// Values that were changed in part and have left memory; whether there was one.
    spill: Spill,
    has_spilled: AtomicBool,
}

/// Values that a replay has left in the log.
pub(super) struct Left {
    /// Values for lack of memory.
    pub(super) values: bool,
    /// Large values, in files of their own.
    pub(super) blobs: bool,
    /// Records of trees on which nothing rests.
    pub(super) bases: Vec<Base>,
    /// Keys whose tree a repair has found damaged. They are gone.
    pub(super) gone: Vec<(DbId, Box<[u8]>)>,
    /// Trees that the keys get when the log takes records.
    pub(super) large: Option<Large>,
}

/// Why a replay has come to nothing.
pub(super) struct Unfinished {
    pub(super) problem: String,
    /// Instances that a repair has to end.
    pub(super) lacking: Vec<(DbId, u64, Tag)>,
}

impl Loader {
    pub(super) fn new(server: &'static Durable, recovery: &Recovery) -> Loader {
        let bindings = recovery.bindings();
        let number = |id| bindings.number_of(DbId(id));
        let waiting = waiting_bytes(server.settings.int(Setting::MaxMemory).unsigned_abs());
        let may_leave = server.offloads();
        let store = ReplayStore::new(
            directory(server),
            Some(recovery.value_reader()),
            waiting,
            Box::new(LoadMemory { server, may_leave }),
        );
        Loader {
            server,
            numbers: (0..=u16::MAX).map(number).collect(),
            turns: Mutex::default(),
            now: sys::clock::realtime_ms(),
            problem: Mutex::default(),
            lacking: Mutex::default(),
            may_leave,
            leaves_all: warming::leaves_all(server, recovery),
            barren: AtomicUsize::new(0),
            reader: recovery.value_reader(),
            amendments: Amendments::default(),
            libraries: ReplayedLibraries::default(),
            trees: TreeReplay::new(waiting, store),
            fetches: AtomicUsize::new(0),
            has_left: AtomicBool::new(false),
            has_blobs: AtomicBool::new(false),
            spill: Spill::new(directory(server).join("SPILL-VALUES.tmp")),
            has_spilled: AtomicBool::new(false),
        }
    }

    /// Gives trees to the keys whose trees wait for the log, and writes values from the spill file to it.
    /// Returns the records on which nothing rests.
    ///
    /// # Errors
    /// The spill file cannot be read.
    pub(super) fn fill_large(
        self,
        claims: Vec<Claim>,
        appender: &mut Appender,
    ) -> Result<Vec<Base>, String> {
        let claims = Mutex::new(claims.into_iter());
        self.fill_some(&claims, &Mutex::default(), Some(appender));
        self.log_spilled(appender)
            .map_err(|problem| format!("cannot load the log: {problem}"))?;
        match self.trees.problem() {
            None => Ok(self.trees.finish()),
            Some(problem) => Err(format!("cannot load the log: {problem}")),
        }
    }

    /// Reserves tables for the keys of a log of `log_bytes` bytes.
    pub(super) fn reserve(&self, log_bytes: u64) {
        let mut turn = self.server.keyspace.turns().register();
        turn.enter();
        sizes::reserve(self.server, &turn, log_bytes, |id| {
            self.numbers[usize::from(id)].into()
        });
        turn.leave();
    }

    /// Ends the replay after the last record. Returns the kinds of values that were left in the log.
    ///
    /// # Errors
    /// The log has data that this server can't hold, or lacks data.
    pub(super) fn finish(mut self) -> Result<Left, Unfinished> {
        let mut outcome = Unfilled::default();
        let is_sound = self.problem.lock().is_none() && self.settle_instances();
        if is_sound {
            self.amend_all();
            outcome = self.fill_trees();
        }
        if let Some(problem) = self.trees.problem() {
            self.give_up(format!("cannot load the log: {problem}"));
        }
        if let Some(problem) = self.problem.lock().take() {
            return Err(Unfinished {
                problem,
                lacking: std::mem::take(&mut self.lacking.lock()),
            });
        }
        std::mem::take(&mut self.libraries).settle(self.server);
        let gone = outcome.gone.into_iter().map(|its| (its.id, its.name));
        let (values, blobs) = (self.has_left.load(Relaxed), self.has_blobs.load(Relaxed));
        let mut left = Left {
            values: values || !outcome.large.is_empty(),
            blobs,
            bases: Vec::new(),
            gone: gone.collect(),
            large: None,
        };
        if outcome.large.is_empty() && !self.has_spilled.load(Relaxed) {
            left.bases = self.trees.finish();
        } else {
            left.large = Some(Large::new(self, outcome.large));
        }
        Ok(left)
    }

    /// Applies the waiting patches.
    fn amend_all(&self) {
        let (mut first, mut failures) = (None, 0);
        let waiting = self.amendments.take();
        if waiting.is_empty() {
            return;
        }
        let mut turn = self.server.keyspace.turns().register();
        for ((db, name), parts) in waiting {
            let Some(number) = self.number(db) else {
                return;
            };
            let hash = self.server.keyspace.hash(&name);
            let key = Key { bytes: &name, hash };
            turn.enter();
            let database = self.server.keyspace.database(&turn, number);
            let amended = self.amend(&mut database.lock(hash, BEFORE_ALL), key, &parts);
            turn.leave();
            if let Err(reason) = amended {
                failures += 1;
                let name = name.escape_ascii();
                first.get_or_insert_with(|| {
                    format!("the key \"{name}\" in database {number} has no value: {reason}")
                });
            }
        }
        let Some(mut reason) = first else { return };
        if failures > 1 {
            reason += &format!("; so it is with {} other keys", failures - 1);
        }
        self.give_up(format!(
            "cannot load the log: {reason}; ferrite-server --repair-log deletes what cannot be read"
        ));
    }

    /// Applies the waiting patches of a key.
    fn amend(&self, guard: &mut Guard<'_>, key: Key<'_>, parts: &[Part]) -> Result<(), String> {
        self.fetch(guard, key)?;
        for part in parts {
            let bytes = self.read(part.lsn, key, part.len)?;
            amend(guard, key, part, &bytes).map_err(|damage| message(part.lsn, damage))?;
        }
        Ok(())
    }

    /// Whether all values are left in the log, to be loaded later.
    pub(super) fn leaves_all(&self) -> bool {
        self.leaves_all
    }

    /// Whether a value of `len` bytes is left in the log. Values that later records patch are left only up to
    /// a limit, because each of them has to be read back.
    fn is_left(&self, len: usize) -> bool {
        self.leaves_all
            && len >= COLD_MIN_BYTES
            && (len < PATCH_MIN_BYTES || self.fetches.load(Relaxed) < REPLAY_FETCHES)
    }

    /// Offloads the value that was just set, if memory is short.
    fn leave(&self, guard: &mut Guard<'_>, key: Key<'_>) {
        if self.may_leave
            && is_short(self.server, 0)
            && guard.find(key).is_some_and(EntryMut::offload)
        {
            self.has_left.store(true, Relaxed);
        }
    }

    /// Offloads as many earlier values of a shard as were added, if memory is short, because keys take memory
    /// too.
    fn relieve(&self, guard: &mut Guard<'_>, came: usize) {
        if !self.may_leave || !is_short(self.server, 0) {
            return;
        }
        // After a failure the next attempts are skipped.
        if self.barren.load(Relaxed) > 0 {
            self.barren.fetch_sub(1, Relaxed);
            return;
        }
        let (gone, _) = guard.offload(came, |entry, leaf| match leaf {
            Some(leaf) if leaf.record.is_some() => Offloading::Goes,
            Some(_) => Offloading::Stays,
            None => self.let_go(entry),
        });
        if gone > 0 {
            self.has_left.store(true, Relaxed);
        } else {
            self.barren.store(BARREN_SKIPS, Relaxed);
        }
        guard.pack(PACK_SHARE);
    }

    /// Loads the value of a key that was left in the log or is in the spill file.
    fn fetch(&self, guard: &mut Guard<'_>, key: Key<'_>) -> Result<(), String> {
        let Some(entry) = guard.find(key) else {
            return Ok(());
        };
        match entry.cold() {
            Some(cold) => self.bring_back(guard, key, cold),
            None => Ok(()),
        }
    }

    /// Reads the value of a record on the disk.
    fn read(&self, lsn: Lsn, key: Key<'_>, len: u64) -> Result<Vec<u8>, String> {
        let read = self.reader.read(lsn, key.bytes, len);
        let bytes = read.map_err(|error| error.to_string())?;
        bytes.ok_or_else(|| format!("the record at {lsn} is not there"))
    }

    fn apply_to_library(&self, its: &Replayed<'_>) {
        let record = &its.record;
        let key = Key {
            bytes: record.key,
            hash: its.hash,
        };
        let read = |len| self.read(record.lsn, key, len);
        if let Err(problem) = self.libraries.apply(record, &read) {
            self.give_up(format!("cannot load the log: {problem}"));
        }
    }

    fn give_up(&self, reason: String) {
        self.problem.lock().get_or_insert(reason);
    }

    /// Current number of a record's database, if it is within `databases`.
    fn number(&self, id: DbId) -> Option<usize> {
        let number = usize::from(self.numbers[usize::from(id.0)]);
        let databases = self.server.keyspace.databases();
        if number >= databases {
            self.give_up(format!(
                "cannot load the log: it has keys in database {number}; raise 'databases', which is {databases}"
            ));
            return None;
        }
        Some(number)
    }

    /// Applies a record that gives a key a value.
    fn set(
        &self,
        guard: &mut Guard<'_>,
        key: Key<'_>,
        record: &Record<'_>,
        liveness: &mut Liveness,
    ) {
        let Change::Set { tag, expiry, value } = record.change else {
            unreachable!("it sets a value");
        };
        self.amendments.settle(record.db, record.key);
        let (len, stays) = (value.len(), is_expiring(tag));
        let read;
        let value = match value {
            Value::Stored(len) if stays && !tag.is_tree => match self.read(record.lsn, key, len) {
                Ok(bytes) => {
                    read = bytes;
                    Value::Bytes(&read)
                }
                Err(reason) => return self.give_up(format!("cannot load the log: {reason}")),
            },
            value => value,
        };
        let is_here = !tag.is_tree && (stays || !self.is_left(len as usize));
        let may_leave = is_here && matches!(value, Value::Bytes(_));
        let new = match value {
            _ if tag.is_tree => match self.unfilled(record, key.hash) {
                Some(new) => new,
                None => return,
            },
            Value::Bytes(bytes) if is_here => New::bytes(bytes),
            Value::Blob(_) => {
                note(&self.has_blobs);
                New::cold(len)
            }
            _ => {
                note(&self.has_left);
                New::cold(len)
            }
        };
        let new = new.of(type_of(tag)).expiry(expiry).used(self.now);
        guard.write(key, new, |_, old| {
            if let Some(old) = self.replaced(old) {
                old.mark_dead(key.bytes.len(), liveness);
            }
            record.address().map(stored)
        });
        if may_leave {
            self.leave(guard, key);
        }
    }

    /// Reports the record of a key as dead, before the key is removed.
    fn note_dead(&self, guard: &mut Guard<'_>, key: Key<'_>, liveness: &mut Liveness) {
        let old = guard.find(key).and_then(|entry| entry.overwritten());
        if let Some(old) = self.replaced(old) {
            old.mark_dead(key.bytes.len(), liveness);
        }
    }

    fn apply_one(&self, guard: &mut Guard<'_>, replayed: &Replayed<'_>, liveness: &mut Liveness) {
        let record = &replayed.record;
        let key = Key {
            bytes: record.key,
            hash: replayed.hash,
        };
        match record.change {
            Change::Set { .. } => self.set(guard, key, record, liveness),
            Change::Delete => {
                self.amendments.settle(record.db, record.key);
                self.note_dead(guard, key, liveness);
                guard.remove(key);
            }
            Change::Expire(expiry) => {
                if let Some(mut entry) = guard.find(key) {
                    entry.set_expiry(expiry);
                }
            }
            Change::Leaf { .. } => unreachable!("it is about no key"),
            Change::Edit { tag, bytes } | Change::Patch { tag, bytes, .. } => {
                let what = match record.change {
                    Change::Patch { offset, total, .. } => What::Bytes {
                        offset: offset as usize,
                        total: total as usize,
                    },
                    _ => What::Items,
                };
                let part = Part {
                    lsn: record.lsn,
                    tag,
                    what,
                    len: bytes.len(),
                };
                let waits = self.amendments.has(record.db, record.key)
                    || !self.is_amended(guard, key, part, bytes);
                if waits {
                    self.amendments.add(record.db, record.key, part);
                }
            }
        }
    }

    /// Patches a value, if it exists and all bytes are available. Returns whether the patch is done.
    fn is_amended(
        &self,
        guard: &mut Guard<'_>,
        key: Key<'_>,
        part: Part,
        bytes: Value<'_>,
    ) -> bool {
        let Some(entry) = guard.find(key) else {
            // The record that makes the key follows, or the key is gone.
            return true;
        };
        let is_in_file = |cold| values::record_of(cold).is_some_and(Address::is_blob);
        if entry.cold().is_some_and(is_in_file) {
            return false;
        }
        let read;
        let bytes = match bytes {
            Value::Bytes(bytes) => bytes,
            Value::Stored(len) => match self.read(part.lsn, key, len) {
                Ok(bytes) => {
                    read = bytes;
                    &read
                }
                Err(_) => return false,
            },
            Value::Blob(_) => return false,
        };
        if self.fetch(guard, key).is_err() {
            return false;
        }
        if let Err(damage) = amend(guard, key, &part, bytes) {
            self.give_up(message(part.lsn, damage));
        }
        true
    }
}

/// Whether a record is about a key of a database.
fn is_of_key(record: &Record<'_>) -> bool {
    record.db != DbId::APART && !record.is_of_instance()
}

/// Sets a flag that many threads may set.
fn note(fact: &AtomicBool) {
    if !fact.load(Relaxed) {
        fact.store(true, Relaxed);
    }
}

/// Changes a part of a value. A value of another type is of a moment that never was (see `amendments`): the
/// record of the right one follows.
fn amend(guard: &mut Guard<'_>, key: Key<'_>, part: &Part, bytes: &[u8]) -> Result<(), Damage> {
    let Some(mut entry) = guard.find(key) else {
        return Ok(());
    };
    let form = type_of(part.tag).form;
    match part.what {
        What::Bytes { .. } if !entry.is_string() => return Ok(()),
        What::Items if entry.kind() as u8 != part.tag.kind => return Ok(()),
        What::Items if entry.is_string() || entry.tree().is_some() => return Ok(()),
        What::Bytes { offset, total } => {
            let value = entry.resize_value(total, form);
            value[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        What::Items => {
            entry.amend_run(bytes)?;
            entry.set_form(form);
        }
    }
    if let Some(address) = address_of(&entry) {
        entry.set_log_address(stored(address.patched()));
    }
    Ok(())
}

impl Replayer for Loader {
    fn rest(&self) {
        self.apply_some_to_instances();
    }

    fn hash(&self, record: &Record<'_>) -> u64 {
        // The records of an instance stay in their order, whatever thread applies them.
        match record.instance() {
            Some(instance) => instance.wrapping_mul(INSTANCE_SPREAD),
            None => self.server.keyspace.hash(record.key),
        }
    }

    fn apply(&self, _: usize, records: &[Replayed<'_>], liveness: &mut Liveness) {
        let keyspace = &self.server.keyspace;
        let unused = self.turns.lock().pop();
        let mut turn = unused.unwrap_or_else(|| keyspace.turns().register());
        turn.enter();
        // Most of the time is spent on cache misses, so all are prefetched first.
        let databases = || {
            let keys = records.iter().filter(|its| is_of_key(&its.record));
            keys.filter_map(|replayed| {
                let number = self.number(replayed.record.db)?;
                Some((keyspace.database(&turn, number), replayed.hash))
            })
        };
        databases().for_each(|(database, hash)| database.prefetch_bucket(hash));
        databases().for_each(|(database, hash)| database.prefetch_entry(hash));
        let is_near = |one: &Replayed<'_>, other: &Replayed<'_>| {
            one.record.db == other.record.db
                && one.record.is_of_instance() == other.record.is_of_instance()
                && keyspace.shard_of(one.hash) == keyspace.shard_of(other.hash)
        };
        for near in records.chunk_by(is_near) {
            if near[0].record.db == DbId::APART {
                near.iter().for_each(|its| self.apply_to_library(its));
                continue;
            }
            if near[0].record.is_of_instance() {
                near.iter()
                    .for_each(|its| self.apply_to_instance(&its.record));
                continue;
            }
            if let Some(number) = self.number(near[0].record.db) {
                let mut guard = keyspace
                    .database(&turn, number)
                    .lock(near[0].hash, BEFORE_ALL);
                for replayed in near {
                    self.apply_one(&mut guard, replayed, liveness);
                }
                self.relieve(&mut guard, near.len());
            }
        }
        turn.leave();
        self.turns.lock().push(turn);
    }
}
