//! Finding, adding and removing entries of a locked shard, and what has to stay right with each.

use std::sync::atomic::Ordering::Relaxed;

use super::cell::Overhead;
use super::guard::{Guard, surroundings};
use crate::entry::Entry;
use crate::hash::Key;
use crate::index::Slot;
use crate::observe::ChangeKind;

/// Home buckets moved by one call of [`Guard::maintain`] while a table drains.
const MOVED_PER_SLICE: usize = 64;

impl Guard<'_> {
    #[inline]
    pub(super) fn slot_of(&mut self, key: Key<'_>) -> Option<Slot> {
        let place = self.place(key.hash);
        let index = self.index();
        let slot = index.find(place, |entry| entry.has_key(key.bytes))?;
        let entry = index.entry(slot);
        if entry.may_end() {
            if let Some(expiry) = entry.expiry()
                && self.now > expiry
                && !self.shared.keeps_expired.load(Relaxed)
            {
                self.expire(slot);
                return None;
            }
            if entry.is_expiring() && !self.expire_all_items(slot) {
                return None;
            }
        }
        Some(slot)
    }

    /// Whether a key is there.
    pub fn contains(&mut self, key: Key<'_>) -> bool {
        self.slot_of(key).is_some()
    }

    pub(super) fn insert(&mut self, hash: u64, entry: Entry) {
        let place = self.place(hash);
        let heat = self.first_heat(place);
        self.insert_with_heat(hash, entry, heat);
    }

    #[inline]
    pub(super) fn insert_with_heat(&mut self, hash: u64, entry: Entry, heat: u8) {
        let place = self.place(hash);
        let shared = self.shared;
        let around = surroundings(shared);
        let began = self.begin_move();
        let before = self.index().memory();
        self.index().insert(place, entry, heat, &around);
        let after = self.index().memory();
        self.add_bytes(entry.memory().wrapping_add(after).wrapping_sub(before));
        self.cell
            .len
            .store(self.cell.len.load(Relaxed) + 1, Relaxed);
        self.end_move(began);
        self.reschedule(hash, None, entry.expiry());
        if entry.is_expiring() {
            self.note_expiring(1);
            self.schedule_items(hash, None, entry.next_due());
        }
        self.note_slack();
    }

    /// Takes an entry out of the index.
    pub(super) fn unlink(&mut self, slot: Slot) -> Entry {
        let shared = self.shared;
        let around = surroundings(shared);
        let began = self.begin_move();
        let before = self.index().memory();
        let entry = self.index().remove(slot, &around);
        self.preserve(entry);
        let after = self.index().memory();
        self.add_bytes(after.wrapping_sub(before).wrapping_sub(entry.memory()));
        self.cell
            .len
            .store(self.cell.len.load(Relaxed) - 1, Relaxed);
        self.end_move(began);
        if entry.expiry().is_some() {
            self.add_volatile(-1);
        }
        if entry.is_expiring() {
            self.note_expiring(-1);
        }
        if entry.is_cold() {
            self.note_cold(-1, entry);
        }
        entry
    }

    pub(super) fn free(&mut self, entry: Entry) {
        // SAFETY: the entry was unlinked, so this is its only owner.
        let garbage = unsafe { entry.free(self.heap()) };
        self.note_slack();
        self.discard(garbage);
    }

    #[cold]
    pub(super) fn expire(&mut self, slot: Slot) {
        let entry = self.unlink(slot);
        if self.observed() != 0 || self.shared.hears_expiry.load(Relaxed) {
            let bytes = entry.key();
            let hash = self.shared.seed.hash(bytes);
            let key = Key { bytes, hash };
            let (lock, shared) = (&self.cell.lock, self.shared);
            lock.tell_observer(shared, key, ChangeKind::Expired);
        }
        let database = self.cell.lock.database();
        self.shared.tell_lost(entry, Some(database));
        self.free(entry);
        self.shared.expired.fetch_add(1, Relaxed);
    }

    /// Removes a key; whether it was there.
    pub fn remove(&mut self, key: Key<'_>) -> bool {
        let Some(slot) = self.slot_of(key) else {
            return false;
        };
        let entry = self.unlink(slot);
        self.free(entry);
        true
    }

    /// A slice of work that is due but belongs to no command: moving buckets, freeing replaced tables.
    /// Returns whether there is more.
    pub fn maintain(&mut self) -> bool {
        self.look_after_wheel();
        let shared = self.shared;
        let around = surroundings(shared);
        let began = self.begin_move();
        let mut index = self.index();
        let before = index.memory();
        index.migrate(MOVED_PER_SLICE, &around);
        index.free_retired(&shared.turns, shared.charge);
        let (after, more) = (index.memory(), index.is_migrating());
        self.add_bytes(after.wrapping_sub(before));
        self.end_move(began);
        more
    }

    /// The part of the shard's memory that holds no entry.
    pub(crate) fn overhead(&mut self) -> Overhead {
        // SAFETY: as in `index`.
        let state = unsafe { &*self.cell.state.get() };
        let wheel_bytes = state.wheels.as_ref().map_or(0, |wheels| wheels.memory());
        Overhead {
            index_bytes: self.index().memory() + self.evicting_memory(),
            wheel_bytes,
            slack_bytes: self.heap().slack(),
        }
    }
}
