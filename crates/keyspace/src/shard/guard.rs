//! A locked shard: finding, adding and removing entries, and what has to stay right with each.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::cell::{Overhead, ShardCell};
use super::view::{Detached, EntryRef, Overwritten};
use super::writing::{Expiry, New, no_log};
use crate::entry::{Entry, LogAddress, Stamp, Type};
use crate::hash::{Key, Place};
use crate::heap::Heap;
use crate::index::{Index, Slot, Surroundings};
use crate::large::LargeValue;
use crate::observe::ChangeKind;
use crate::reclaim::BACKGROUND_BYTES;
use crate::shared::Shared;

/// Home buckets moved by one call of [`Guard::maintain`] while a table drains.
const MOVED_PER_SLICE: usize = 64;

/// A locked shard, at a point in time.
pub struct Guard<'a> {
    pub(super) cell: &'a ShardCell,
    pub(super) shared: &'a Shared,
    pub(super) now: i64,
    end: End,
}

/// What the end of a guard means for the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Unlocks,
    /// Whoever borrowed the guard knows.
    Nothing,
    /// Another guard may be lent.
    GivesBack,
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        match self.end {
            // SAFETY: `locked` locked it, and this is the only guard.
            End::Unlocks => unsafe { self.cell.unlock() },
            End::Nothing => {}
            End::GivesBack => self.cell.lock.take_back(),
        }
    }
}

impl<'a> Guard<'a> {
    #[inline]
    pub(crate) fn locked(cell: &'a ShardCell, shared: &'a Shared, now: i64) -> Guard<'a> {
        cell.lock();
        Guard {
            cell,
            shared,
            now,
            end: End::Unlocks,
        }
    }

    /// A guard on a shard that nobody has locked, if that is so.
    pub(crate) fn try_locked(
        cell: &'a ShardCell,
        shared: &'a Shared,
        now: i64,
    ) -> Option<Guard<'a>> {
        if !cell.lock.try_lock() {
            return None;
        }
        Some(Guard {
            cell,
            shared,
            now,
            end: End::Unlocks,
        })
    }

    /// A guard on a shard that the caller locked and will unlock after it.
    #[inline]
    pub(crate) fn borrowed(cell: &'a ShardCell, shared: &'a Shared, now: i64) -> Guard<'a> {
        Guard {
            cell,
            shared,
            now,
            end: End::Nothing,
        }
    }

    /// A guard on a shard that the caller's turn holds.
    pub(crate) fn lent(cell: &'a ShardCell, shared: &'a Shared, now: i64) -> Guard<'a> {
        cell.lock.lend();
        Guard {
            cell,
            shared,
            now,
            end: End::GivesBack,
        }
    }

    /// Lets the observer hear of every change to a key of this shard from here on, for these
    /// [`crate::reason`]s.
    pub fn observe(&mut self, reasons: u8) {
        self.cell.lock.observe(reasons);
    }

    /// Why this shard is observed: bits of [`crate::reason`].
    #[inline]
    pub fn observed(&self) -> u8 {
        self.cell.lock.observed()
    }

    /// Tells the observer of a change to a key, if this shard is observed. Whoever changes or removes a key
    /// calls this under the same lock; only expiry, which nobody asks for, tells of itself.
    #[inline]
    pub fn note_change(&mut self, key: Key<'_>, kind: ChangeKind) {
        if self.observed() != 0 {
            // By parts, so that a guard whose address nobody needs stays in registers.
            self.cell.lock.tell_observer(self.shared, key, kind);
        }
    }

    /// The time (Unix, ms) at which this guard decides expiry.
    #[inline]
    pub fn now(&self) -> i64 {
        self.now
    }

    #[inline]
    pub(super) fn place(&self, hash: u64) -> Place {
        Place(hash << self.shared.shard_bits)
    }

    #[inline]
    pub(super) fn index(&mut self) -> Index<'_> {
        // SAFETY: the lock is held and `&mut self` makes this the only way to the state.
        let state = unsafe { &mut *self.cell.state.get() };
        Index {
            tables: &self.cell.tables,
            state: &mut state.index,
        }
    }

    #[inline]
    pub(super) fn heap(&mut self) -> &mut Heap {
        // SAFETY: as in `index`.
        unsafe { &mut (*self.cell.state.get()).heap }
    }

    /// Publishes the heap's slack after something was allocated or released.
    #[inline]
    pub(super) fn note_slack(&mut self) {
        let slack = self.heap().slack();
        self.cell.slack.store(slack, Relaxed);
    }

    #[inline]
    pub(super) fn add_bytes(&self, bytes: usize) {
        self.cell
            .bytes
            .store(self.cell.bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
    }

    #[inline]
    pub(super) fn sub_bytes(&self, bytes: usize) {
        self.cell
            .bytes
            .store(self.cell.bytes.load(Relaxed).wrapping_sub(bytes), Relaxed);
    }

    pub(super) fn add_volatile(&self, change: isize) {
        self.cell.volatile.store(
            self.cell.volatile.load(Relaxed).wrapping_add_signed(change),
            Relaxed,
        );
    }

    /// What an entry carries that is written and counts as used at this time (Unix, ms), or now.
    #[inline]
    pub(super) fn stamp(&self, used: Option<i64>) -> Stamp {
        let clock = self.shared.noting.first(used.unwrap_or(self.now));
        Stamp::new(clock, self.shared.snapshot.mark())
    }

    #[inline]
    pub(super) fn slot_of(&mut self, key: Key<'_>) -> Option<Slot> {
        let place = self.place(key.hash);
        let index = self.index();
        let slot = index.find(place, |entry| entry.has_key(key.bytes))?;
        if let Some(expiry) = index.entry(slot).expiry()
            && self.now > expiry
            && !self.shared.keeps_expired.load(Relaxed)
        {
            self.expire(slot);
            return None;
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
        self.note_slack();
    }

    /// The time, if the index is about to move a part of itself.
    #[inline]
    fn begin_move(&mut self) -> Option<u64> {
        let ticks = self.shared.ticks;
        self.index().is_moving().then(ticks)
    }

    /// Notes how long that took.
    #[inline]
    fn end_move(&self, began: Option<u64>) {
        if let Some(began) = began {
            let took = (self.shared.ticks)().saturating_sub(began);
            if took > self.shared.slowest_resize.load(Relaxed) {
                self.shared.slowest_resize.fetch_max(took, Relaxed);
            }
        }
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

    /// Drops a large value: here when it is small or shared, in the background otherwise.
    #[inline]
    pub(super) fn discard(&self, garbage: Option<LargeValue>) {
        if let Some(value) = garbage
            && value.capacity() >= BACKGROUND_BYTES
            && Arc::strong_count(&value) == 1
        {
            let bytes = value.capacity();
            self.shared.reclaimer.send(value, bytes);
        }
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

    /// Makes room in the index for so many entries, if it has none yet.
    pub(crate) fn reserve(&mut self, entries: usize) {
        let charge = self.shared.charge;
        let before = self.index().memory();
        self.index().reserve(entries, charge);
        let after = self.index().memory();
        self.add_bytes(after - before);
    }

    /// Checks the counters, and what they count, against the entries themselves.
    #[cfg(test)]
    pub(crate) fn verify(&mut self) {
        let (mut len, mut volatile, mut bytes, mut unused) = (0, 0, 0, 0);
        let mut cold = (0, 0);
        let mut place = Some(Place(0));
        let shared = self.shared;
        while let Some(at) = place {
            let index = self.index();
            let mut marked = Vec::new();
            index.visit_volatile(at, |_, entry| marked.push(entry));
            place = index.visit_home(at, |slot, entry| {
                len += 1;
                bytes += entry.memory();
                volatile += usize::from(entry.expiry().is_some());
                unused += usize::from(!crate::evict::is_used(index.heat(slot)));
                if entry.is_cold() {
                    cold = (cold.0 + 1, cold.1 + entry.value_len());
                }
                assert!(entry.expiry().is_none() || marked.contains(&entry));
                let found = index.find(place_of(shared, entry), |other| other == entry);
                assert!(found.is_some_and(|found| index.entry(found) == index.entry(slot)));
            });
        }
        assert_eq!(self.cell.len(), len);
        assert_eq!(self.index().unused(), unused);
        assert_eq!(self.cell.volatile(), volatile);
        assert_eq!(self.cell.cold(), cold);
        assert_eq!(self.cell.memory(), bytes + self.overhead().bytes());
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

/// [`Guard::write`] by the names of its common cases.
impl Guard<'_> {
    /// Sets a key to a string that was set as a whole.
    #[inline]
    pub fn set(&mut self, key: Key<'_>, value: &[u8], expiry: Expiry) {
        self.write(key, New::bytes(value).expiry(expiry), no_log);
    }

    /// [`Guard::set`], logged by `log`.
    #[inline]
    pub fn set_logged(
        &mut self,
        key: Key<'_>,
        value: &[u8],
        expiry: Expiry,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> LogAddress,
    ) {
        self.write(key, New::bytes(value).expiry(expiry), |entry, old| {
            Some(log(entry, old))
        });
    }

    /// [`Guard::set`] with a value that already has a buffer of its own.
    #[inline]
    pub fn set_large(&mut self, key: Key<'_>, value: LargeValue, expiry: Expiry) {
        self.write(key, New::large(&value).expiry(expiry), no_log);
    }

    /// [`Guard::set_large`] with a value of this type, logged by `log` if there is a log.
    #[inline]
    pub fn set_formed(
        &mut self,
        key: Key<'_>,
        value: LargeValue,
        expiry: Expiry,
        of: impl Into<Type>,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> Option<LogAddress>,
    ) {
        self.write(key, New::large(&value).expiry(expiry).of(of), log);
    }

    /// [`Guard::set`] with a value that the log alone has: see [`New::cold`].
    #[inline]
    pub fn set_cold(
        &mut self,
        key: Key<'_>,
        len: u64,
        expiry: Expiry,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> LogAddress,
    ) {
        self.write(key, New::cold(len).expiry(expiry), |entry, old| {
            Some(log(entry, old))
        });
    }

    /// Gives a key what [`New::detached`] says.
    #[inline]
    pub fn attach(
        &mut self,
        key: Key<'_>,
        value: Detached,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> Option<LogAddress>,
    ) {
        self.write(key, New::detached(&value), log);
    }

    /// Sets a key to what a log says: value, expiry and type, used at a time (Unix, ms), for the guard's own
    /// time is before everything then.
    #[inline]
    pub fn load(
        &mut self,
        key: Key<'_>,
        value: &[u8],
        expiry: Option<i64>,
        of: impl Into<Type>,
        used: i64,
        log: impl FnOnce(Option<Overwritten>) -> Option<LogAddress>,
    ) {
        let new = New::bytes(value).expiry(expiry).of(of).used(used);
        self.write(key, new, |_, old| log(old));
    }

    /// [`Guard::load`] of a value of `len` bytes, at least [`crate::COLD_MIN_BYTES`], that stays in the log.
    #[inline]
    pub fn load_cold(
        &mut self,
        key: Key<'_>,
        len: usize,
        expiry: Option<i64>,
        of: impl Into<Type>,
        used: i64,
        log: impl FnOnce(Option<Overwritten>) -> LogAddress,
    ) {
        let new = New::cold(len as u64).expiry(expiry).of(of).used(used);
        self.write(key, new, |_, old| Some(log(old)));
    }
}

/// The place of an entry, by hashing its key.
pub(super) fn place_of(shared: &Shared, entry: Entry) -> Place {
    Place(shared.seed.hash(entry.key()) << shared.shard_bits)
}

/// What the index needs from the shard's surroundings.
fn surroundings(shared: &Shared) -> Surroundings<'_, impl Fn(Entry) -> Place> {
    Surroundings {
        place_of: |entry| place_of(shared, entry),
        turns: &shared.turns,
        charge: shared.charge,
    }
}
