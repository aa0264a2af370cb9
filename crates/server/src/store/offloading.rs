//! Values on their way between memory and the log.

use keyspace::{ColdValue, Key, LargeValue, ShardId};

use super::{Entry, Shard, Store};
use crate::limits::{EVICT_PACKS, OFFLOAD_LOOKS, OFFLOAD_NAP, PACK_SHARE, READ_LOOKS, READ_NAP};
use crate::persistence::NOT_THERE;
use crate::persistence::journal::address_of;
use crate::request::Failure;

impl Store<'_> {
    /// Where the value of a key of a database is, if it is in the log alone.
    pub(crate) fn cold_in(&self, db: usize, key: Key<'_>) -> Option<ColdValue> {
        let mut shard = self.lock_in(db, key);
        shard.find(key).and_then(|entry| entry.cold())
    }

    /// Brings the value of a key of a database back on the spot, if it is in the log alone.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn bring_back(&self, db: usize, key: Key<'_>) -> Result<(), Failure> {
        for _ in 0..READ_LOOKS {
            let Some(cold) = self.cold_in(db, key) else {
                return Ok(());
            };
            match self.persistence.read_cold(key.bytes, cold)? {
                Some(value) => self.warm(db, key, cold, value),
                // It has another address now, or one that is about to be written.
                None => std::thread::sleep(READ_NAP),
            }
        }
        Err(NOT_THERE)
    }

    /// Gives a key of a database the value back that was read from where it is, unless it has another by now.
    pub(crate) fn warm(&self, db: usize, key: Key<'_>, from: ColdValue, value: LargeValue) {
        let mut shard = self.lock_in(db, key);
        if let Some(entry) = shard.guard.find(key) {
            entry.warm(from.address, value);
        }
    }

    /// Entries of a shard whose value is in memory; `None` if the database was never used.
    pub(crate) fn shard_resident(&self, db: usize, shard: ShardId) -> Option<usize> {
        let database = self.keyspace.existing(self.turn, db)?;
        Some(database.shard_resident(shard))
    }

    /// Lets up to `most` values of a shard leave memory, and gives back what they leave, if nobody else has
    /// it locked. Returns how many left, and whether more may follow soon; `None` if somebody has.
    pub(crate) fn offload(&self, db: usize, shard: ShardId, most: usize) -> Option<(usize, bool)> {
        let Some(journal) = self.journal else {
            return Some((0, false));
        };
        journal.ensure_offloading();
        let Some(database) = self.keyspace.existing(self.turn, db) else {
            return Some((0, false));
        };
        let mut guard = database.try_lock_shard(shard, self.now)?;
        let (gone, waits) = guard.offload(most, |entry| journal.offloads(entry));
        self.stats.offloaded.add(gone as u64);
        for _ in 0..EVICT_PACKS {
            if !guard.pack(PACK_SHARE) {
                break;
            }
        }
        drop(guard);
        if waits {
            // What waits is to be written.
            journal.flush();
        }
        Some((gone, waits))
    }
}

impl Store<'_> {
    /// Lets the value of a key of a database leave memory, after everything before is in the log's files.
    /// Whether it is in the log alone.
    pub(crate) fn offload_key(&mut self, db: usize, key: Key<'_>) -> bool {
        let Some(journal) = self.journal else {
            return false;
        };
        journal.ensure_offloading();
        // One that the log has in parts is written whole first.
        let database = self.keyspace.database(self.turn, db);
        if let Some(mut entry) = database.lock(key.hash, self.now).find(key)
            && entry.cold().is_none()
        {
            if !entry.may_be_cold() {
                return false;
            }
            journal.offloads(&mut entry);
        }
        journal.flush();
        // The log's thread writes what was handed over to it within a millisecond, if it can.
        for _ in 0..OFFLOAD_LOOKS {
            let mut shard = self.lock_in(db, key);
            match shard.find(key) {
                None => return false,
                Some(entry) if entry.cold().is_some() => return true,
                Some(entry) if journal.holds(&entry.inner) => return entry.inner.offload(),
                Some(_) => {}
            }
            drop(shard);
            self.turn.pause(|| std::thread::sleep(OFFLOAD_NAP));
        }
        false
    }
}

impl Shard<'_> {
    /// Keeps values of the shard in memory that are there.
    #[inline]
    pub(crate) fn pin(&mut self) {
        self.guard.pin();
    }
}

impl Entry<'_, '_> {
    /// Where the value is if it is in the log alone.
    #[inline]
    pub(crate) fn cold(&self) -> Option<ColdValue> {
        self.inner.cold()
    }

    /// Gives the value back that was read from where it is.
    pub(crate) fn give_back(self, from: ColdValue, value: LargeValue) {
        self.inner.warm(from.address, value);
    }

    /// Whether a cold value was asked for not long ago; it is noted that it is now.
    pub(crate) fn is_asked_again(&mut self) -> bool {
        self.inner.is_asked_again()
    }

    /// Whether the value is in memory, and in a file of its own as well.
    pub(crate) fn is_in_file_too(&self) -> bool {
        let address = address_of(&self.inner);
        let is_same = address.is_some_and(|address| address.is_blob() && !address.is_patched());
        is_same && self.cold().is_none()
    }

    /// Lets a value leave memory that is in a file of its own as well, if nobody relies on the shard's
    /// values.
    pub(crate) fn leave(self) {
        self.inner.offload();
    }
}
