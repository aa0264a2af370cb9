//! Values on their way between memory and the log.

use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::tree::Leaving;
use keyspace::{ColdValue, EntryMut, Key, LargeValue, ShardId};

use super::{Entry, Shard, Store};
use crate::limits::{EVICT_PACKS, OFFLOAD_LOOKS, OFFLOAD_NAP, PACK_SHARE, READ_LOOKS, READ_NAP};
use crate::persistence::journal::address_of;
use crate::persistence::{NOT_THERE, Sought, instance_key};
use crate::request::Failure;
use crate::values::cold::Wanted;

impl Store<'_> {
    /// Where the value of a key of a database is, if it is in the log alone.
    pub(crate) fn cold_in(&self, db: usize, key: Key<'_>) -> Option<ColdValue> {
        let mut shard = self.lock_in(db, key);
        shard.find(key).and_then(|entry| entry.cold())
    }

    /// Shows the value of a key of a database, if it is a tree with leaves that are in the log alone.
    pub(crate) fn with_cold_tree<R>(
        &self,
        db: usize,
        key: Key<'_>,
        with: impl FnOnce(&Collection) -> R,
    ) -> Option<R> {
        let mut shard = self.lock_in(db, key);
        let entry = shard.find(key)?;
        let tree = entry.tree().filter(|tree| tree.cold_leaves() > 0)?;
        Some(with(tree))
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
            match self.persistence.read_cold(Sought::value(key.bytes, cold))? {
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

    /// Gives what was read back to its entry, unless that has something else by now.
    ///
    /// # Errors
    /// The record of a leaf makes no sense.
    pub(crate) fn give_back(&self, wanted: &Wanted, value: LargeValue) -> Result<(), Failure> {
        let (db, key) = (wanted.db, wanted.key());
        let Some(instance) = wanted.instance else {
            self.warm(db, key, wanted.value, value);
            return Ok(());
        };
        let at = wanted.value.address.0.get();
        self.warm_leaf(db, key, (u64::from_le_bytes(instance), at), &value)
    }

    fn warm_leaf(
        &self,
        db: usize,
        key: Key<'_>,
        (instance, at): (u64, u64),
        contents: &[u8],
    ) -> Result<(), Failure> {
        let mut shard = self.lock_in(db, key);
        let warmed = match shard.guard.find(key) {
            Some(mut entry) => entry.warm_leaf(instance, at, contents),
            None => return Ok(()),
        };
        drop(shard);
        warmed.map(|_| ()).map_err(|damage| {
            let text = format!("IOERR the record at {at} is no leaf of a collection ({damage:?})");
            log::error!("{}", &text[6..]);
            Failure::new(text)
        })
    }

    /// Brings leaves of the tree of a key back on the spot, as long as `which` names some.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub(crate) fn bring_leaves_back(
        &self,
        db: usize,
        key: Key<'_>,
        which: impl Fn(&Collection) -> Vec<Base>,
    ) -> Result<(), Failure> {
        let mut looks = 0;
        while looks < READ_LOOKS {
            let (instance, bases) = {
                let mut shard = self.lock_in(db, key);
                let entry = shard.guard.find(key);
                match entry.as_ref().and_then(|entry| entry.tree()) {
                    Some(tree) if tree.cold_leaves() > 0 => {
                        let place = tree.logged().place();
                        let (instance, _) = place.expect("a tree with cold leaves is in the log");
                        (instance, which(tree))
                    }
                    _ => return Ok(()),
                }
            };
            if bases.is_empty() {
                return Ok(());
            }
            let mut has_moved = false;
            for base in bases {
                let sought = &instance_key(instance);
                match self.persistence.read_cold(Sought::leaf(sought, base))? {
                    Some(contents) => self.warm_leaf(db, key, (instance, base.at), &contents)?,
                    None => has_moved = true,
                }
            }
            if has_moved {
                // It has another address now, or one that is about to be written.
                looks += 1;
                std::thread::sleep(READ_NAP);
            }
        }
        Err(NOT_THERE)
    }

    /// Entries of a shard whose value is in memory; `None` if the database was never used.
    pub(crate) fn shard_resident(&self, db: usize, shard: ShardId) -> Option<usize> {
        let database = self.keyspace.existing(self.turn, db)?;
        Some(database.shard_resident(shard))
    }

    /// Offloads up to `most` values of a shard, and returns their memory. Returns the number of offloaded
    /// values, and whether more may follow soon; `None` if the shard is locked.
    pub(crate) fn offload(&self, db: usize, shard: ShardId, most: usize) -> Option<(usize, bool)> {
        let Some(journal) = self.journal else {
            return Some((0, false));
        };
        journal.ensure_offloading();
        let Some(database) = self.keyspace.existing(self.turn, db) else {
            return Some((0, false));
        };
        let mut guard = database.try_lock_shard(shard, self.now)?;
        let (gone, waits) = guard.offload(most, |entry, leaf| journal.offloads(entry, leaf));
        self.stats.offloaded.add(gone as u64);
        self.stats.offload_searches.add(1);
        for _ in 0..EVICT_PACKS {
            if !guard.pack(PACK_SHARE) {
                break;
            }
        }
        drop(guard);
        if waits {
            // Appended records have to be written first.
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
            if entry.is_tree() {
                entry.offload_all_leaves(|entry, leaf| journal.offloads(entry, leaf));
            } else if !entry.may_be_cold() {
                return false;
            } else {
                journal.offloads(&mut entry, None);
            }
        }
        journal.flush();
        // The log's thread writes what was handed over to it within a millisecond, if it can.
        for _ in 0..OFFLOAD_LOOKS {
            let mut shard = self.lock_in(db, key);
            match shard.find(key) {
                None => return false,
                Some(mut entry) if entry.inner.is_tree() => {
                    let decide = |entry: &mut EntryMut<'_, '_>, leaf: Option<&Leaving>| {
                        journal.offloads(entry, leaf)
                    };
                    if !entry.inner.offload_all_leaves(decide) {
                        return entry
                            .inner
                            .tree()
                            .is_some_and(|tree| tree.cold_leaves() > 0);
                    }
                }
                Some(entry) if entry.cold().is_some() => return true,
                Some(entry) if journal.holds(&entry.inner) => return entry.inner.offload(),
                Some(_) => {}
            }
            drop(shard);
            // Of a tree as many leaves were written as there was space reserved for.
            journal.flush();
            journal.ensure_offloading();
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

impl Shard<'_> {
    /// Whether leaves of the value of a key are in the log alone.
    pub(crate) fn has_cold_leaves(&mut self, key: Key<'_>) -> bool {
        self.find(key).is_some_and(|entry| entry.has_cold_leaves())
    }
}

impl Entry<'_, '_> {
    /// Where the value is if it is in the log alone.
    #[inline]
    pub(crate) fn cold(&self) -> Option<ColdValue> {
        self.inner.cold()
    }

    /// The value, if it is a tree.
    pub(crate) fn tree(&self) -> Option<&Collection> {
        self.inner.tree()
    }

    /// Whether leaves of the value are in the log alone.
    #[inline]
    pub(crate) fn has_cold_leaves(&self) -> bool {
        self.tree().is_some_and(|tree| tree.cold_leaves() > 0)
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

    /// Offloads a value that has a file of its own, unless a transaction or command needs the shard's values.
    pub(crate) fn leave(self) {
        self.inner.offload();
    }
}
