//! From records to entries, at the start.
//!
//! Records of one shard are applied by one thread at a time, in the order of the log. Nothing expires meanwhile, because a
//! later record may take an expiry back that has passed.

use ferrite_log::{Bindings, Change, DbId, Liveness, Replayed, Replayer, Tag, Value};
use keyspace::{Guard, Key, Turn};
use parking_lot::Mutex;

use super::sizes;
use crate::journal::{Replaced, form_of, stored};
use crate::server::Server;

/// The time at which a replay decides expiry: before everything.
const BEFORE_ALL: i64 = 0;

/// See the module.
pub(super) struct Loader {
    server: &'static Server,
    /// What each database of the log is called now.
    numbers: Vec<u16>,
    /// Turns that no thread uses.
    turns: Mutex<Vec<Turn<'static>>>,
    /// What the access clock of all entries says (Unix, ms).
    now: i64,
    /// Why the state is of no use.
    problem: Mutex<Option<String>>,
}

impl Loader {
    pub(super) fn new(server: &'static Server, bindings: &Bindings) -> Loader {
        let number = |id| bindings.number_of(DbId(id));
        Loader {
            server,
            numbers: (0..=u16::MAX).map(number).collect(),
            turns: Mutex::default(),
            now: sys::clock::realtime_ms(),
            problem: Mutex::default(),
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

    /// # Errors
    /// What the log holds that this server cannot.
    pub(super) fn finish(self) -> Result<(), String> {
        self.problem.into_inner().map_or(Ok(()), Err)
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
                let Value::Bytes(value) = value else {
                    return self.give_up("cannot load the log: it has values in files".into());
                };
                guard.load(key, value, expiry, form_of(tag), self.now, |old| {
                    if let Some(old) = Replaced::of(old) {
                        old.bury(key.bytes.len(), liveness);
                    }
                    record.address().map(stored)
                });
            }
            Change::Delete => {
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
                let Value::Bytes(bytes) = bytes else {
                    return self.give_up("cannot load the log: it has values in files".into());
                };
                patch(guard, key, tag, offset as usize, total as usize, bytes);
            }
        }
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
    let value = entry.resize_value(total, form_of(tag));
    value[offset..offset + bytes.len()].copy_from_slice(bytes);
    if let Some(address) = crate::journal::address_of(&entry) {
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
            }
        }
        turn.leave();
        self.turns.lock().push(turn);
    }
}
