//! From records to entries, at the start.
//!
//! Records of one shard are applied by one thread at a time, in the order of the log. Nothing expires
//! meanwhile, because a later record may take an expiry back that has passed. A change of part of a value
//! that is not at hand waits until the end ([`super::amendments`]).
//!
//! Under the policy that leaves values in the log, what would not fit into memory is left there at once; of a
//! large log all values are, so that the server serves soon, and come back in the background (`warming`).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use ferrite_log::{
    Address, Change, DbId, Liveness, Lsn, Recovery, Replayed, Replayer, Tag, Value, ValueReader,
};
use keyspace::{COLD_MIN_BYTES, EntryMut, Guard, Key, LargeValue, New, Offloading, Turn};
use parking_lot::Mutex;

use super::amendments::{Amendments, Part};
use super::sizes;
use crate::config::Setting;
use crate::limits::{BARREN_SKIPS, PACK_SHARE, PATCH_MIN_BYTES, REPLAY_FETCHES};
use crate::persistence::Durable;
use crate::persistence::journal::{Replaced, address_of, stored, type_of};

/// The time at which a replay decides expiry: before everything.
const BEFORE_ALL: i64 = 0;

/// See the module.
pub(super) struct Loader {
    server: &'static Durable,
    /// What each database of the log is called now.
    numbers: Vec<u16>,
    /// Turns that no thread uses.
    turns: Mutex<Vec<Turn<'static>>>,
    /// What the access clock of all entries says (Unix, ms).
    now: i64,
    /// Why the state is of no use.
    problem: Mutex<Option<String>>,
    /// Whether values may be left in the log, whether all are, and the way back to them.
    may_leave: bool,
    leaves_all: bool,
    /// How often it is not tried again to let other values leave.
    barren: AtomicUsize,
    reader: ValueReader,
    /// Changes of parts of values that are not at hand.
    amendments: Amendments,
    /// Values that were read back because a part of them has changed.
    fetches: AtomicUsize,
    /// Whether some were.
    has_left: AtomicBool,
    /// Whether there are values in files of their own, which stay there.
    has_blobs: AtomicBool,
}

/// What a replay has left in the log.
pub(super) struct Left {
    /// Values for which there was no room.
    pub(super) values: bool,
    /// Large values, in files of their own.
    pub(super) blobs: bool,
}

impl Loader {
    pub(super) fn new(server: &'static Durable, recovery: &Recovery) -> Loader {
        let bindings = recovery.bindings();
        let number = |id| bindings.number_of(DbId(id));
        Loader {
            server,
            numbers: (0..=u16::MAX).map(number).collect(),
            turns: Mutex::default(),
            now: sys::clock::realtime_ms(),
            problem: Mutex::default(),
            may_leave: server.offloads(),
            leaves_all: leaves_all(server, recovery),
            barren: AtomicUsize::new(0),
            reader: recovery.value_reader(),
            amendments: Amendments::default(),
            fetches: AtomicUsize::new(0),
            has_left: AtomicBool::new(false),
            has_blobs: AtomicBool::new(false),
        }
    }

    /// Makes room for the keys of a log of so many bytes.
    pub(super) fn reserve(&self, log_bytes: u64) {
        let mut turn = self.server.keyspace.turns().register();
        turn.enter();
        sizes::reserve(self.server, &turn, log_bytes, |id| {
            self.numbers[usize::from(id)].into()
        });
        turn.leave();
    }

    /// All records were applied. Whether values were left in the log.
    ///
    /// # Errors
    /// What the log holds that this server cannot, or what it does not hold.
    pub(super) fn finish(self) -> Result<Left, String> {
        if self.problem.lock().is_none() {
            self.amend_all();
        }
        let left = Left {
            values: self.has_left.into_inner(),
            blobs: self.has_blobs.into_inner(),
        };
        self.problem.into_inner().map_or(Ok(left), Err)
    }

    /// Changes the values whose changes have waited: nothing replaces them any more.
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

    /// Changes the value of a key that has waited.
    fn amend(&self, guard: &mut Guard<'_>, key: Key<'_>, parts: &[Part]) -> Result<(), String> {
        self.fetch(guard, key)?;
        for part in parts {
            let bytes = self.read(part.lsn, key, part.len)?;
            patch(guard, key, part.tag, part.offset, part.total, &bytes);
        }
        Ok(())
    }

    /// Whether values are left in the log, to come back later.
    pub(super) fn leaves_all(&self) -> bool {
        self.leaves_all
    }

    /// Whether a value of so many bytes is left in the log. Of those that are changed in part by later
    /// records not too many are: each of these has to be read back.
    fn is_left(&self, len: usize) -> bool {
        self.leaves_all
            && len >= COLD_MIN_BYTES
            && (len < PATCH_MIN_BYTES || self.fetches.load(Relaxed) < REPLAY_FETCHES)
    }

    /// Lets a value leave memory that was just set, if memory is short.
    fn leave(&self, guard: &mut Guard<'_>, key: Key<'_>) {
        let is_short = self.may_leave && self.server.memory.is_near();
        if is_short && guard.find(key).is_some_and(EntryMut::offload) {
            self.has_left.store(true, Relaxed);
        }
    }

    /// Lets values of a shard leave memory that came before, if memory is short: keys take some as well. As
    /// many as came.
    fn relieve(&self, guard: &mut Guard<'_>, came: usize) {
        if !self.may_leave || !self.server.memory.is_near() {
            return;
        }
        // Where nothing may go that is not found out each time.
        if self.barren.load(Relaxed) > 0 {
            self.barren.fetch_sub(1, Relaxed);
            return;
        }
        let (gone, _) = guard.offload(came, |entry| match address_of(entry) {
            Some(address) if !address.is_patched() && !address.is_blob() => Offloading::Goes,
            _ => Offloading::Stays,
        });
        if gone > 0 {
            self.has_left.store(true, Relaxed);
        } else {
            self.barren.store(BARREN_SKIPS, Relaxed);
        }
        guard.pack(PACK_SHARE);
    }

    /// Brings the value of a key back if it was left in the log.
    fn fetch(&self, guard: &mut Guard<'_>, key: Key<'_>) -> Result<(), String> {
        let Some(entry) = guard.find(key) else {
            return Ok(());
        };
        let (Some(cold), Some(address)) = (entry.cold(), address_of(&entry)) else {
            return Ok(());
        };
        let value = self.read(address.lsn(), key, cold.len)?;
        self.fetches.fetch_add(1, Relaxed);
        entry.warm(cold.address, LargeValue::new(value.into()));
        Ok(())
    }

    /// Reads what a record has that was left on the disk.
    fn read(&self, lsn: Lsn, key: Key<'_>, len: u64) -> Result<Vec<u8>, String> {
        let read = self.reader.read(lsn, key.bytes, len);
        let bytes = read.map_err(|error| error.to_string())?;
        bytes.ok_or_else(|| format!("the record at {lsn} is not there"))
    }

    fn give_up(&self, reason: String) {
        self.problem.lock().get_or_insert(reason);
    }

    /// The number of a record's database, if there are as many.
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

    fn apply_one(&self, guard: &mut Guard<'_>, replayed: &Replayed<'_>, liveness: &mut Liveness) {
        let record = &replayed.record;
        let key = Key {
            bytes: record.key,
            hash: replayed.hash,
        };
        match record.change {
            Change::Set { tag, expiry, value } => {
                self.amendments.settle(record.db, record.key);
                let of = type_of(tag);
                let mut bury = |old| {
                    if let Some(old) = Replaced::of(old) {
                        old.bury(key.bytes.len(), liveness);
                    }
                };
                let len = value.len() as usize;
                match value {
                    Value::Bytes(bytes) if !self.is_left(len) => {
                        let new = New::bytes(bytes).of(of).expiry(expiry).used(self.now);
                        guard.write(key, new, |_, old| {
                            bury(old);
                            record.address().map(stored)
                        });
                        self.leave(guard, key);
                        return;
                    }
                    Value::Bytes(_) | Value::Stored(_) => note(&self.has_left),
                    Value::Blob(_) => note(&self.has_blobs),
                }
                let address = record.address().expect("a set has one");
                let new = New::cold(len as u64).of(of).expiry(expiry).used(self.now);
                guard.write(key, new, |_, old| {
                    bury(old);
                    Some(stored(address))
                });
            }
            Change::Delete => {
                self.amendments.settle(record.db, record.key);
                bury(guard, key, liveness);
                guard.remove(key);
            }
            Change::Expire(expiry) => {
                if let Some(mut entry) = guard.find(key) {
                    entry.set_expiry(expiry);
                }
            }
            Change::Patch {
                tag,
                offset,
                total,
                bytes,
            } => {
                let part = Part {
                    lsn: record.lsn,
                    tag,
                    offset: offset as usize,
                    total: total as usize,
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

    /// Changes part of a value, if there is one and all that takes is at hand. Whether nothing is left to do.
    fn is_amended(
        &self,
        guard: &mut Guard<'_>,
        key: Key<'_>,
        part: Part,
        bytes: Value<'_>,
    ) -> bool {
        let Some(entry) = guard.find(key) else {
            // What makes the key follows, or it is gone.
            return true;
        };
        let is_blob = address_of(&entry).is_some_and(Address::is_blob);
        if is_blob && entry.cold().is_some() {
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
        patch(guard, key, part.tag, part.offset, part.total, bytes);
        true
    }
}

/// Whether a start leaves values where they are: if its log is large, and its policy does not mind.
fn leaves_all(server: &Durable, recovery: &Recovery) -> bool {
    let least = server.settings.int(Setting::LogLazyLoadSize).unsigned_abs();
    server.offloads() && least > 0 && recovery.log_bytes() >= least
}

/// Notes that something is so, where many may note it.
fn note(fact: &AtomicBool) {
    if !fact.load(Relaxed) {
        fact.store(true, Relaxed);
    }
}

/// Tells that the record of a key, which is about to change or go, is dead.
fn bury(guard: &mut Guard<'_>, key: Key<'_>, liveness: &mut Liveness) {
    let old = guard.find(key).and_then(|entry| entry.overwritten());
    if let Some(old) = Replaced::of(old) {
        old.bury(key.bytes.len(), liveness);
    }
}

fn patch(guard: &mut Guard<'_>, key: Key<'_>, tag: Tag, offset: usize, total: usize, bytes: &[u8]) {
    let Some(mut entry) = guard.find(key) else {
        return;
    };
    let value = entry.resize_value(total, type_of(tag).form);
    value[offset..offset + bytes.len()].copy_from_slice(bytes);
    if let Some(address) = crate::persistence::journal::address_of(&entry) {
        entry.set_log_address(stored(address.patched()));
    }
}

impl Replayer for Loader {
    fn hash(&self, _: DbId, key: &[u8]) -> u64 {
        self.server.keyspace.hash(key)
    }

    fn apply(&self, _: usize, records: &[Replayed<'_>], liveness: &mut Liveness) {
        let keyspace = &self.server.keyspace;
        let unused = self.turns.lock().pop();
        let mut turn = unused.unwrap_or_else(|| keyspace.turns().register());
        turn.enter();
        // Most of the time goes into waiting for memory: ask for everything first.
        let databases = || {
            records.iter().filter_map(|replayed| {
                let number = self.number(replayed.record.db)?;
                Some((keyspace.database(&turn, number), replayed.hash))
            })
        };
        databases().for_each(|(database, hash)| database.prefetch_bucket(hash));
        databases().for_each(|(database, hash)| database.prefetch_entry(hash));
        let is_near = |one: &Replayed<'_>, other: &Replayed<'_>| {
            one.record.db == other.record.db
                && keyspace.shard_of(one.hash) == keyspace.shard_of(other.hash)
        };
        for near in records.chunk_by(is_near) {
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
