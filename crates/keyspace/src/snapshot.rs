//! A point in time of all databases, read while others go on writing.
//!
//! Nothing is copied in advance. Every entry has a *mark*, one bit of its header, and the keyspace has one
//! that entries shall have. To begin a snapshot is to flip the keyspace's mark while nobody is inside: from
//! then on an entry with the other mark is *owed* to the snapshot. Two pay:
//!
//! - The snapshot walks through the shards, a few buckets under each lock, copies what is owed and marks it.
//! - Whoever is about to change or remove an entry that is owed first copies it to a buffer of its shard and
//!   marks it. What is made after the beginning has the new mark from the start.
//!
//! So each entry is copied once, as it was at the beginning, by whoever gets there first; a large value is
//! not copied but shared. A buffer that is full is handed to the snapshot, which empties those before it
//! walks on.
//!
//! A snapshot holds on to the databases it began with: it gives out what was in a database that was emptied
//! or exchanged since, under the number it had.
//!
//! Invariants:
//! 1. While no snapshot exists, every entry has the keyspace's mark. [`Snapshot`]s see to it, also when they
//!    are dropped half-way.
//! 2. The mark changes only in an exclusive task, so during a turn it is the same for everybody.
//! 3. An entry is owed only while a snapshot exists and has not passed it, and its shard's buffer is empty
//!    once it has.
//!
//! What does not live here: files. The part of this that runs under a shard's lock is in `shard/snapshot.rs`.

pub(crate) mod state;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::database::Database;
use crate::hash::Place;
use crate::keyspace::Keyspace;
use crate::records::Records;
use crate::shard_set::ShardId;
use crate::shared::Shared;
use crate::turn::{Exclusive, Turn};
use state::{Collecting, Wanted};

/// Bytes of records after which a step of the walk ends.
const STEP_BYTES: usize = 32 * 1024;
/// Locks that a step of the walk takes at most. With 32 entries under each, a step takes about 50 us.
const STEP_LOCKS: usize = 16;

/// See the module.
pub struct Snapshot {
    shared: Arc<Shared>,
    started_ms: i64,
    /// The numbers of the databases at the beginning, and how many keys they had.
    sizes: Vec<(usize, Sizes)>,
    /// The databases that are not done yet: the last ones of `sizes`.
    left: VecDeque<Arc<Database>>,
    /// Where the walk is in the first of those: a shard, and a place in it.
    at: (usize, Place),
    done: bool,
}

/// How many keys a database had when a snapshot began, those included whose time had come unnoticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Keys in all.
    pub keys: usize,
    /// Keys with an expiry.
    pub volatile: usize,
    /// Keys with items that expire.
    pub expiring: usize,
}

impl Sizes {
    /// Those of a database now.
    pub fn of(database: &Database) -> Sizes {
        Sizes {
            keys: database.len(),
            volatile: database.volatile(),
            expiring: database.expiring(),
        }
    }
}

impl Keyspace {
    /// Begins a snapshot of what is there now; `now` (Unix, ms) decides what has expired. `None` as long as
    /// another exists.
    pub fn begin_snapshot(&self, alone: &Exclusive<'_>, now: i64) -> Option<Snapshot> {
        let (sizes, left): (Vec<_>, VecDeque<_>) = self
            .all(alone)
            .filter(|(_, database)| !database.is_empty())
            .map(|(number, database)| {
                let sizes = Sizes::of(&database);
                ((number, sizes), database)
            })
            .unzip();
        let state = &self.shared().snapshot;
        let mut collecting = state.collecting.lock();
        if !matches!(*collecting, Collecting::Idle) {
            return None;
        }
        *collecting = Collecting::Wanted(Wanted {
            started_ms: now,
            databases: left
                .iter()
                .map(|database| database.shard_addresses())
                .collect(),
            full: Vec::new(),
            bytes: 0,
        });
        state.mark.store(state.mark().flipped().0, Relaxed);
        Some(Snapshot {
            shared: Arc::clone(self.shared()),
            started_ms: now,
            sizes,
            left,
            at: (0, Place(0)),
            done: false,
        })
    }
}

impl Snapshot {
    /// How many keys there were, by the number of their database.
    pub fn sizes(&self) -> &[(usize, Sizes)] {
        &self.sizes
    }

    /// Bytes of entries that writers had to copy so far.
    pub fn copied_bytes(&self) -> usize {
        match &*self.shared.snapshot.collecting.lock() {
            Collecting::Wanted(wanted) => wanted.bytes,
            _ => 0,
        }
    }

    /// Puts entries that writers had to copy into `records` and returns the number of their database; `None`
    /// if none wait. What a snapshot that does not walk on yet does meanwhile, as copies take memory.
    pub fn step_copied(&mut self, records: &mut Records) -> Option<usize> {
        records.clear();
        let database = self.take_copied(records)?;
        Some(self.sizes[database].0)
    }

    /// Goes on for about 50 us: puts some keys of one database (none sometimes) into `records` and returns
    /// its number, or `None` when all were given out. The turn, which the caller is inside, keeps exclusive
    /// tasks apart from this one.
    pub fn step(&mut self, turn: &Turn<'_>, records: &mut Records) -> Option<usize> {
        assert!(
            turn.is_of(&self.shared.turns) && turn.is_inside(),
            "a snapshot is read from inside a turn of its keyspace"
        );
        records.clear();
        if self.done {
            return None;
        }
        // What writers have copied takes memory until it is given out, so it comes first.
        if let Some(database) = self.take_copied(records) {
            return Some(self.sizes[database].0);
        }
        if !self.left.is_empty() {
            let (number, _) = self.sizes[self.sizes.len() - self.left.len()];
            self.walk(records);
            return Some(number);
        }
        *self.shared.snapshot.collecting.lock() = Collecting::Idle;
        self.done = true;
        None
    }

    /// Exchanges `records` for a buffer that a writer filled. Returns the index of its database.
    fn take_copied(&self, records: &mut Records) -> Option<usize> {
        let mut collecting = self.shared.snapshot.collecting.lock();
        let Collecting::Wanted(wanted) = &mut *collecting else {
            return None;
        };
        let (database, copied) = wanted.full.pop()?;
        *records = copied;
        Some(database)
    }

    /// Walks on inside the first database that is left, and lets go of it when that is over.
    fn walk(&mut self, records: &mut Records) {
        let database = &self.left[0];
        let (mut shard, mut place) = self.at;
        for _ in 0..STEP_LOCKS {
            // Expiry makes no difference to the walk, which has a time of its own.
            let mut guard = database.lock_shard(ShardId(shard), 0);
            match guard.walk_owed(place, self.started_ms, records) {
                Some(next) => place = next,
                None => {
                    guard.end_walk();
                    (shard, place) = (shard + 1, Place(0));
                }
            }
            drop(guard);
            if shard == database.shards().len() {
                self.left.pop_front();
                (shard, place) = (0, Place(0));
                break;
            }
            if records.bytes() >= STEP_BYTES {
                break;
            }
        }
        self.at = (shard, place);
    }
}

impl Drop for Snapshot {
    /// Marks what is left, so that the next snapshot finds all entries alike.
    fn drop(&mut self) {
        if self.done {
            return;
        }
        *self.shared.snapshot.collecting.lock() = Collecting::Unwanted;
        let mut records = Records::default();
        while let Some(database) = self.left.front_mut() {
            // Nobody will see a database again that only this snapshot holds.
            if Arc::get_mut(database).is_some() {
                self.left.pop_front();
                self.at = (0, Place(0));
            } else {
                self.walk(&mut records);
                records.clear();
            }
        }
        *self.shared.snapshot.collecting.lock() = Collecting::Idle;
    }
}

#[cfg(test)]
mod tests;
