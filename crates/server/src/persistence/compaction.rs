//! Keyspace side of compaction: decides which records of the log are live.
//!
//! Budget of a record: its share of a turn and of its shard's lock, with the other records of its slice; two
//! cache misses, prefetched.

use ferrite_log::{
    Appender, Change, Current, DbId, Record, Relocate, Replayed, Value, Verdict, judge,
};
use keyspace::collection::log::leaf::LeafRecord;
use keyspace::collection::log::ledger::DESCRIPTOR_LEN;
use keyspace::{Database, EntryMut, Guard, Key, Turn};
use parking_lot::Mutex;

use super::libraries;
use super::sizes::Sizes;
use crate::persistence::durable::Durable;
use crate::persistence::instances::{Owner, mark_dead, write_leaf};
use crate::persistence::journal::{Replaced, address_of, stored, tag_of, with_value};
use crate::script::Libraries;

/// Decides about records for the log, and moves live ones.
pub(super) struct Relocator {
    server: &'static Durable,
    turn: Mutex<Turn<'static>>,
    sizes: Mutex<Sizes>,
}

impl Relocator {
    pub(super) fn new(server: &'static Durable) -> Relocator {
        Relocator {
            server,
            turn: Mutex::new(server.keyspace.turns().register()),
            sizes: Mutex::default(),
        }
    }
}

impl Relocate for Relocator {
    fn hash(&self, record: &Record<'_>) -> u64 {
        match record.instance() {
            None => self.server.keyspace.hash(record.key),
            Some(instance) => {
                let owner = self.server.persistence.instances.owner(instance);
                owner.map_or(instance, |owner| owner.hash)
            }
        }
    }

    fn relocate(
        &self,
        appender: &mut Appender,
        records: &[Replayed<'_>],
        is_oldest: bool,
    ) -> usize {
        self.visit(records, |done, its, found| {
            if done > 0 && !appender.may_relocate(&its.record) {
                return false;
            }
            match found {
                Visited::Library(all) => libraries::relocate(all, appender, &its.record, is_oldest),
                Visited::Key(guard) => self.relocate_one(guard, appender, its, is_oldest),
                Visited::Instance(guard, owner) => {
                    relocate_instance(guard, appender, &its.record, owner)
                }
            }
        })
    }

    fn judge(
        &self,
        records: &[Replayed<'_>],
        is_oldest: bool,
        tell: &mut dyn FnMut(&Record<'_>, Verdict),
    ) {
        self.visit(records, |_, its, found| {
            let verdict = match found {
                Visited::Library(all) => libraries::verdict(all, &its.record, is_oldest),
                Visited::Instance(guard, owner) => judge_instance(guard, &its.record, owner),
                Visited::Key(guard) => {
                    let entry = guard.find(key_of(its));
                    judge(&its.record, entry.as_ref().and_then(current), is_oldest)
                }
            };
            tell(&its.record, verdict);
            true
        });
    }

    fn pause(&self) {
        let mut turn = self.turn.lock();
        turn.enter();
        self.sizes.lock().note(self.server, &turn);
        turn.leave();
    }
}

/// The owner of a record.
enum Visited<'v, 'g> {
    /// A key of the locked shard.
    Key(&'v mut Guard<'g>),
    /// A tree, which belongs to a key of the locked shard.
    Instance(&'v mut Guard<'g>, &'v Owner),
    /// A library: its record is of no database.
    Library(&'v Libraries),
}

/// Whether the whole value is in a file of its own.
fn stays_apart(entry: &EntryMut<'_, '_>) -> bool {
    address_of(entry).is_some_and(|address| address.is_blob() && !address.is_patched())
}

/// State of an entry for the log; `None` if the entry is only in memory.
fn current(entry: &EntryMut<'_, '_>) -> Option<Current> {
    Some(Current {
        address: address_of(entry)?,
        expiry: entry.expiry(),
    })
}

fn key_of<'r>(its: &Replayed<'r>) -> Key<'r> {
    Key {
        bytes: its.record.key,
        hash: its.hash,
    }
}

impl Relocator {
    /// Locks one shard after the other and calls `with` for each record, with the number of records done so
    /// far, until it returns false. Records whose database is gone count as done. Returns the number of
    /// records done.
    fn visit(
        &self,
        records: &[Replayed<'_>],
        mut with: impl FnMut(usize, &Replayed<'_>, Visited<'_, '_>) -> bool,
    ) -> usize {
        let (keyspace, now) = (&self.server.keyspace, sys::clock::realtime_ms());
        let mut turn = self.turn.lock();
        turn.enter();
        // A database is emptied while no worker is inside a turn. Its records may have died since they were
        // read.
        let number = |its: &Replayed<'_>| self.server.persistence.number_of(its.record.db);
        let databases = || {
            records.iter().filter_map(|its| {
                let database = keyspace.existing(&turn, number(its)?)?;
                Some((database, its.hash))
            })
        };
        databases().for_each(|(database, hash)| database.prefetch_bucket(hash));
        databases().for_each(|(database, hash)| database.prefetch_entry(hash));
        let is_near = |one: &Replayed<'_>, other: &Replayed<'_>| {
            one.record.db == other.record.db
                && one.record.instance() == other.record.instance()
                && keyspace.shard_of(one.hash) == keyspace.shard_of(other.hash)
        };
        let mut done = 0;
        'slice: for near in records.chunk_by(is_near) {
            if near[0].record.db == DbId::APART {
                let all = &self.server.persistence.libraries;
                for its in near {
                    if !with(done, its, Visited::Library(all)) {
                        break 'slice;
                    }
                    done += 1;
                }
                continue;
            }
            let Some(number) = number(&near[0]) else {
                done += near.len();
                continue;
            };
            let database = keyspace.database(&turn, number);
            let (mut guard, owner) = match near[0].record.instance() {
                None => (database.lock(near[0].hash, now), None),
                Some(instance) => match self.lock_owner(database, instance, now) {
                    Some((guard, owner)) => (guard, Some(owner)),
                    // The instance is gone, and nobody needs its records.
                    None => {
                        done += near.len();
                        continue;
                    }
                },
            };
            for its in near {
                let visited = match &owner {
                    Some(owner) => Visited::Instance(&mut guard, owner),
                    None => Visited::Key(&mut guard),
                };
                if !with(done, its, visited) {
                    break 'slice;
                }
                done += 1;
            }
        }
        turn.leave();
        done
    }

    /// Locks the shard of the key that an instance belongs to.
    fn lock_owner<'d>(
        &self,
        database: &'d Database,
        instance: u64,
        now: i64,
    ) -> Option<(Guard<'d>, Owner)> {
        let instances = &self.server.persistence.instances;
        loop {
            let owner = instances.owner(instance)?;
            let guard = database.lock(owner.hash, now);
            // It may have got another key before the shard was locked; not after.
            if instances.owner(instance)? == owner {
                return Some((guard, owner));
            }
        }
    }

    /// Returns false if the disk has no space for the record.
    fn relocate_one(
        &self,
        guard: &mut Guard<'_>,
        appender: &mut Appender,
        its: &Replayed<'_>,
        is_oldest: bool,
    ) -> bool {
        let record = &its.record;
        let entry = guard.find(key_of(its));
        match (
            judge(record, entry.as_ref().and_then(current), is_oldest),
            entry,
        ) {
            (Verdict::Rewrite, Some(entry)) => {
                // A value made of patches may be much larger than the record.
                let value = match entry.tree() {
                    Some(_) => DESCRIPTOR_LEN,
                    None => entry.value_len(),
                };
                let bytes = Appender::bytes_of(record.key.len(), value);
                if !stays_apart(&entry) && !appender.may_append(bytes) {
                    return false;
                }
                self.rewrite(appender, record, entry);
            }
            (Verdict::Expire, Some(entry)) => {
                appender.expire(record.db, record.key, entry.expiry());
            }
            (Verdict::Tombstone, _) => {
                appender.delete(record.db, record.key);
            }
            (Verdict::Drop | Verdict::Rewrite | Verdict::Expire, _) => {}
        }
        true
    }

    fn rewrite(&self, appender: &mut Appender, record: &Record<'_>, mut entry: EntryMut<'_, '_>) {
        if stays_apart(&entry) {
            // The value stays in its file.
            let (tag, expiry) = (tag_of(entry.as_ref()), entry.expiry());
            let address = appender.keep_blob(record, tag, expiry);
            entry.set_log_address(stored(address));
            return;
        }
        let (view, old) = (entry.as_ref(), Replaced::of(entry.overwritten()));
        let (tag, expiry) = (tag_of(view), view.expiry());
        let mut comes_back = None;
        let address = match (view.cold(), record.change) {
            // The record has the value, so it need not be in memory.
            (
                Some(_),
                Change::Set {
                    value: Value::Bytes(value),
                    ..
                },
            ) => {
                let address = appender.set(record.db, record.key, tag, expiry, value);
                // Readers of the value have to wait until it is written.
                appender.commit();
                if self.server.persistence.warming.takes_along(self.server) {
                    comes_back = Some(value);
                }
                address
            }
            // A cold entry has one record, which holds the whole value.
            (Some(_), _) => unreachable!("a cold entry has no patches"),
            (None, _) => with_value(view, |value| {
                appender.set(record.db, record.key, tag, expiry, value)
            }),
        };
        entry.set_log_address(stored(address));
        if let Some(old) = old {
            old.mark_dead(record.key.len(), appender.liveness());
        }
        if let Some(value) = comes_back {
            entry.warm_copy(stored(address), value);
        }
    }
}

/// Verdict on a record of an instance, which belongs to a key of the locked shard.
fn judge_instance(guard: &mut Guard<'_>, record: &Record<'_>, owner: &Owner) -> Verdict {
    let instance = record.instance().expect("the record is of an instance");
    let at = record.lsn.get();
    let needed = owner.with_tree(guard, instance, record.db, |tree, _| match record.change {
        Change::Leaf {
            bytes: Value::Bytes(bytes),
            ..
        } => LeafRecord::read(bytes).is_ok_and(|leaf| tree.needs_leaf(at, &leaf)),
        Change::Edit {
            bytes: Value::Bytes(bytes),
            ..
        } => tree.needs_edits(at, bytes),
        // Its contents decide, and are not at hand.
        _ => true,
    });
    match needed {
        Some(true) => Verdict::Rewrite,
        Some(false) | None => Verdict::Drop,
    }
}

/// Writes the leaves for which a record of an instance is needed. Returns false if the disk has no space.
fn relocate_instance(
    guard: &mut Guard<'_>,
    appender: &mut Appender,
    record: &Record<'_>,
    owner: &Owner,
) -> bool {
    let instance = record.instance().expect("the record is of an instance");
    let (db, at) = (record.db, record.lsn.get());
    let mut lost = Vec::new();
    let done = owner.with_tree(guard, instance, db, |tree, tag| {
        let mut write = |contents: &[u8]| {
            let has_room = appender.may_append(Appender::leaf_bytes(contents.len()));
            has_room.then(|| write_leaf(appender, db, instance, tag, contents))
        };
        let done = match record.change {
            Change::Leaf {
                bytes: Value::Bytes(bytes),
                ..
            } => LeafRecord::read(bytes)
                .map(|leaf| tree.replace_leaf(at, &leaf, &mut lost, &mut write)),
            Change::Edit {
                bytes: Value::Bytes(bytes),
                ..
            } => tree.replace_edits(at, bytes, &mut lost, &mut write),
            _ => unreachable!("a record that is moved has its contents"),
        };
        // What makes no sense is of no use to a start either.
        (done.unwrap_or(true), tree.cold_leaves() > 0)
    });
    mark_dead(appender, &lost);
    if let Some((_, true)) = done {
        // Readers of a leaf that is in the log alone have to wait until its record is written.
        appender.commit();
    }
    let done = done.map(|(is_done, _)| is_done);
    done.unwrap_or(true)
}
