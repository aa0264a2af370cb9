//! One shard: index, entries and expiry behind one lock, and what can be done with a key.
//!
//! Everything the server does to data goes through a [`Guard`]: it holds the shard's lock and a time, and
//! no expired entry is ever seen through it. Nothing here waits, and nothing large is freed here.
//!
//! ```text
//!  line 0: lock, table words, counters      read by everybody without the lock (prefetch, DBSIZE, expiry)
//!  line 1: index, wheel                     only under the lock
//! ```
//!
//! Invariants:
//! 1. `bytes` is the sum of [`Entry::memory`] over all entries of the index, and of what index and wheel take.
//! 2. `volatile` counts the entries with an expiry, and each of those has an item in the wheel at or before
//!    its expiry.
//! 3. Counters are written only under the lock.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

use parking_lot::RawMutex;
use parking_lot::lock_api::RawMutex as _;

use crate::database::Overhead;
use crate::entry::{Encoding, Entry, Form, Kind, LargeValue, NewValue, Stored};
use crate::expire::Wheel;
use crate::hash::Place;
use crate::heap::Heap;
use crate::index::{Index, IndexState, Slot, Surroundings, Tables};
use crate::keyspace::Shared;
use crate::pages::Pages;
use crate::reclaim::BACKGROUND_BYTES;

/// Home buckets moved by one call of [`Guard::maintain`] while a table drains.
const MOVED_PER_SLICE: usize = 64;

/// A key and its hash.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key.
    pub bytes: &'a [u8],
    /// Its hash, from [`crate::Keyspace::hash`].
    pub hash: u64,
}

/// What happens to a key's expiry when its value is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// None afterwards.
    Clear,
    /// As it was.
    Keep,
    /// At this time (Unix, ms).
    At(i64),
}

#[repr(C, align(128))]
pub(crate) struct ShardCell {
    lock: Lock,
    tables: Tables,
    len: AtomicUsize,
    volatile: AtomicUsize,
    bytes: AtomicUsize,
    /// Bytes of slabs that no entry uses.
    slack: AtomicUsize,
    next_due_ms: NextDue,
    state: UnsafeCell<State>,
}

struct Lock(RawMutex);

impl Default for Lock {
    fn default() -> Lock {
        Lock(RawMutex::INIT)
    }
}

/// When the wheel next has something to take; `i64::MAX` for never.
struct NextDue(AtomicI64);

impl Default for NextDue {
    fn default() -> NextDue {
        NextDue(AtomicI64::new(i64::MAX))
    }
}

struct State {
    index: IndexState,
    heap: Heap,
    /// Made with the first volatile key.
    wheel: Option<Box<Wheel>>,
}

// SAFETY: `state`, and the entries it leads to, are reached only through a `Guard`, which exists once at a time because
// it stands for the lock; everything else is atomic.
unsafe impl Sync for ShardCell {}
// SAFETY: entries are plain memory and `Arc<Vec<u8>>`, owned by the shard.
unsafe impl Send for ShardCell {}

impl ShardCell {
    pub(crate) fn new(pages: &Arc<Pages>) -> ShardCell {
        ShardCell {
            lock: Lock::default(),
            tables: Tables::default(),
            len: AtomicUsize::new(0),
            volatile: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            slack: AtomicUsize::new(0),
            next_due_ms: NextDue::default(),
            state: UnsafeCell::new(State {
                index: IndexState::default(),
                heap: Heap::new(Arc::clone(pages)),
                wheel: None,
            }),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) {
        self.lock.0.lock();
    }

    /// # Safety
    /// The caller locked the shard, and no guard is left.
    #[inline]
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: by the caller's contract.
        unsafe { self.lock.0.unlock() }
    }

    #[inline]
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    pub(crate) fn volatile(&self) -> usize {
        self.volatile.load(Relaxed)
    }

    pub(crate) fn memory(&self) -> usize {
        self.bytes.load(Relaxed) + self.slack.load(Relaxed)
    }

    #[inline]
    pub(crate) fn next_due_ms(&self) -> i64 {
        self.next_due_ms.0.load(Relaxed)
    }

    /// Frees everything, at the end of the shard's life.
    pub(crate) fn clear(&mut self, shared: &Shared) {
        let State { index, heap, .. } = self.state.get_mut();
        let mut index = Index {
            tables: &self.tables,
            state: index,
        };
        // SAFETY: `drain` hands each entry out once and forgets it.
        index.drain(&shared.turns, |entry| drop(unsafe { entry.free(heap) }));
        index.free_tables();
    }
}

/// A locked shard, at a point in time.
pub struct Guard<'a> {
    cell: &'a ShardCell,
    shared: &'a Shared,
    now: i64,
    owns_lock: bool,
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.owns_lock {
            // SAFETY: `locked` locked it, and this is the only guard.
            unsafe { self.cell.unlock() }
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
            owns_lock: true,
        }
    }

    /// A guard on a shard that the caller locked and will unlock after it.
    #[inline]
    pub(crate) fn borrowed(cell: &'a ShardCell, shared: &'a Shared, now: i64) -> Guard<'a> {
        Guard {
            cell,
            shared,
            now,
            owns_lock: false,
        }
    }

    /// The time (Unix, ms) at which this guard decides expiry.
    #[inline]
    pub fn now(&self) -> i64 {
        self.now
    }

    #[inline]
    fn place(&self, hash: u64) -> Place {
        Place(hash << self.shared.shard_bits)
    }

    #[inline]
    fn index(&mut self) -> Index<'_> {
        // SAFETY: the lock is held and `&mut self` makes this the only way to the state.
        let state = unsafe { &mut *self.cell.state.get() };
        Index {
            tables: &self.cell.tables,
            state: &mut state.index,
        }
    }

    #[inline]
    fn heap(&mut self) -> &mut Heap {
        // SAFETY: as in `index`.
        unsafe { &mut (*self.cell.state.get()).heap }
    }

    /// Publishes the heap's slack after something was allocated or released.
    #[inline]
    fn note_slack(&mut self) {
        let slack = self.heap().slack();
        self.cell.slack.store(slack, Relaxed);
    }

    #[inline]
    fn add_bytes(&self, bytes: usize) {
        self.cell
            .bytes
            .store(self.cell.bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
    }

    #[inline]
    fn sub_bytes(&self, bytes: usize) {
        self.cell
            .bytes
            .store(self.cell.bytes.load(Relaxed).wrapping_sub(bytes), Relaxed);
    }

    fn add_volatile(&self, change: isize) {
        self.cell.volatile.store(
            self.cell.volatile.load(Relaxed).wrapping_add_signed(change),
            Relaxed,
        );
    }

    #[inline]
    fn slot_of(&mut self, key: Key<'_>) -> Option<Slot> {
        let place = self.place(key.hash);
        let index = self.index();
        let slot = index.find(place, |entry| entry.has_key(key.bytes))?;
        if let Some(expiry) = index.entry(slot).expiry()
            && self.now > expiry
        {
            self.expire(slot);
            return None;
        }
        Some(slot)
    }

    /// Finds the entry of a key.
    #[inline]
    pub fn find(&mut self, key: Key<'_>) -> Option<EntryMut<'_, 'a>> {
        let slot = self.slot_of(key)?;
        Some(EntryMut {
            guard: self,
            slot,
            hash: key.hash,
        })
    }

    /// Whether a key is there.
    pub fn contains(&mut self, key: Key<'_>) -> bool {
        self.slot_of(key).is_some()
    }

    /// Sets a key to a string, whatever it was before. Overwrites in place where it can: no allocation then.
    #[inline]
    pub fn set(&mut self, key: Key<'_>, value: &[u8], expiry: Expiry) {
        self.set_value(key, NewValue::copy_of(value), expiry);
    }

    /// [`Guard::set`] with a value that already has a buffer of its own.
    pub fn set_large(&mut self, key: Key<'_>, value: LargeValue, expiry: Expiry) {
        if value.len() <= crate::INLINE_VALUE_MAX {
            self.set_value(key, NewValue::Inline(&value), expiry);
        } else {
            self.set_value(key, NewValue::Large(value), expiry);
        }
    }

    #[inline]
    fn set_value(&mut self, key: Key<'_>, value: NewValue<'_>, expiry: Expiry) {
        let clock = clock_at(self.now);
        match self.slot_of(key) {
            Some(slot) => {
                let entry = self.index().entry(slot);
                // What nearly every overwrite is: nothing to account for, nothing to schedule.
                if let NewValue::Inline(bytes) = &value
                    && !matches!(expiry, Expiry::At(_))
                    && entry.overwrite_in_place(bytes, expiry == Expiry::Keep, clock)
                {
                    return;
                }
                let (before, old_expiry) = (entry.memory(), entry.expiry());
                let expiry = match expiry {
                    Expiry::Clear => None,
                    Expiry::Keep => old_expiry,
                    Expiry::At(at) => Some(at),
                };
                let (entry, garbage) =
                    entry.overwrite(self.heap(), key.bytes, value, expiry, clock);
                self.sub_bytes(before);
                self.add_bytes(entry.memory());
                self.index().replace(slot, entry);
                self.reschedule(key.hash, old_expiry, expiry);
                self.note_slack();
                self.discard(garbage);
            }
            None => {
                let expiry = match expiry {
                    Expiry::At(at) => Some(at),
                    Expiry::Clear | Expiry::Keep => None,
                };
                let entry = Entry::new(self.heap(), key.bytes, value, expiry, clock);
                self.insert(key.hash, entry);
            }
        }
    }

    fn insert(&mut self, hash: u64, entry: Entry) {
        let place = self.place(hash);
        let shared = self.shared;
        let around = surroundings(shared);
        let before = self.index().memory();
        self.index().insert(place, entry, &around);
        let after = self.index().memory();
        self.add_bytes(entry.memory().wrapping_add(after).wrapping_sub(before));
        self.cell
            .len
            .store(self.cell.len.load(Relaxed) + 1, Relaxed);
        self.reschedule(hash, None, entry.expiry());
        self.note_slack();
    }

    /// Takes an entry out of the index.
    fn unlink(&mut self, slot: Slot) -> Entry {
        let shared = self.shared;
        let around = surroundings(shared);
        let before = self.index().memory();
        let entry = self.index().remove(slot, &around);
        let after = self.index().memory();
        self.add_bytes(after.wrapping_sub(before).wrapping_sub(entry.memory()));
        self.cell
            .len
            .store(self.cell.len.load(Relaxed) - 1, Relaxed);
        if entry.expiry().is_some() {
            self.add_volatile(-1);
        }
        entry
    }

    fn free(&mut self, entry: Entry) {
        // SAFETY: the entry was unlinked, so this is its only owner.
        let garbage = unsafe { entry.free(self.heap()) };
        self.note_slack();
        self.discard(garbage);
    }

    /// Drops a large value: here when it is small or shared, in the background otherwise.
    #[inline]
    fn discard(&self, garbage: Option<LargeValue>) {
        if let Some(value) = garbage
            && value.capacity() >= BACKGROUND_BYTES
            && Arc::strong_count(&value) == 1
        {
            self.shared.reclaimer.send(value);
        }
    }

    #[cold]
    fn expire(&mut self, slot: Slot) {
        let entry = self.unlink(slot);
        self.free(entry);
        self.shared.expired.fetch_add(1, Relaxed);
    }

    /// Keeps the wheel and the counter right when an entry's expiry changes.
    #[inline]
    fn reschedule(&mut self, hash: u64, old: Option<i64>, new: Option<i64>) {
        match (old, new) {
            (None, None) => {}
            (Some(_), None) => self.add_volatile(-1),
            (old, Some(at)) => {
                if old.is_none() {
                    self.add_volatile(1);
                }
                // An item at an earlier time will find the entry alive and move on to its new time.
                if old.is_none_or(|old| at < old) {
                    self.schedule(hash, at);
                }
            }
        }
    }

    fn schedule(&mut self, hash: u64, at: i64) {
        self.schedule_item(item_of(self.place(hash)), at);
    }

    fn schedule_item(&mut self, item: u32, at: i64) {
        // SAFETY: as in `index`.
        let state = unsafe { &mut *self.cell.state.get() };
        let now = self.now;
        let before = state.wheel.as_ref().map_or(0, |wheel| wheel.memory());
        let wheel = state.wheel.get_or_insert_with(|| {
            self.shared.has_volatile.store(true, Relaxed);
            Box::new(Wheel::new(now))
        });
        wheel.insert(item, at);
        let after = wheel.memory();
        self.set_next_due(wheel);
        if after != before {
            self.add_bytes(after.wrapping_sub(before));
        }
    }

    /// Tells everybody when the wheel is to be looked at next: at once if it wants to be made anew, which is work for
    /// [`Guard::expire_due`] and not for the command that met it.
    fn set_next_due(&self, wheel: &Wheel) {
        let due = if wheel.is_wasteful(self.cell.volatile()) {
            i64::MIN
        } else {
            wheel.next_due_ms()
        };
        self.cell.next_due_ms.0.store(due, Relaxed);
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

    /// Takes a key's value away, to put it elsewhere with [`Guard::attach`].
    pub fn detach(&mut self, key: Key<'_>) -> Option<Detached> {
        let slot = self.slot_of(key)?;
        let detached = Detached::copy_of(self.index().entry(slot));
        let entry = self.unlink(slot);
        self.free(entry);
        Some(detached)
    }

    /// Gives a key a value that was taken or copied from another, expiry included.
    pub fn attach(&mut self, key: Key<'_>, value: Detached) {
        let expiry = value.expiry.map_or(Expiry::Clear, Expiry::At);
        match value.value {
            DetachedValue::Inline(bytes) => self.set_value(key, NewValue::Inline(&bytes), expiry),
            DetachedValue::Large(large) => self.set_value(key, NewValue::Large(large), expiry),
        }
        if value.form != Form::Whole
            && let Some(slot) = self.slot_of(key)
        {
            self.index().entry(slot).set_form(value.form);
        }
    }

    /// Calls `visit` with every live entry of the bucket that `place` falls into; returns the first place behind it.
    pub(crate) fn visit_place(
        &self,
        place: Place,
        mut visit: impl FnMut(EntryRef<'_>),
    ) -> Option<Place> {
        // SAFETY: the lock is held; the index is only read, and `visit` cannot reach this shard.
        let state = unsafe { &mut *self.cell.state.get() };
        let index = Index {
            tables: &self.cell.tables,
            state: &mut state.index,
        };
        index.visit_home(place, |_, entry| {
            if entry.expiry().is_none_or(|expiry| self.now <= expiry) {
                visit(EntryRef {
                    entry,
                    _shard: std::marker::PhantomData,
                });
            }
        })
    }

    /// Removes keys whose time has come, looking at about `most` of the wheel's items. Returns how many were looked
    /// at; fewer than `most` means that nothing is left to do now.
    pub fn expire_due(&mut self, most: usize, items: &mut Vec<u32>) -> usize {
        items.clear();
        // SAFETY: as in `index`.
        let state = unsafe { &mut *self.cell.state.get() };
        let Some(wheel) = &mut state.wheel else {
            return 0;
        };
        let before = wheel.memory();
        wheel.take_due(self.now, most, items);
        let freed = before - wheel.memory();
        self.sub_bytes(freed);
        let looked_at = items.len();
        for &item in items.iter() {
            self.cell.tables.prefetch_bucket(first_place(item));
        }
        for &item in items.iter() {
            self.expire_item(item);
        }
        // SAFETY: as above; `expire_item` ended its borrows.
        let state = unsafe { &mut *self.cell.state.get() };
        if let Some(wheel) = &state.wheel {
            if wheel.is_wasteful(self.cell.volatile()) {
                self.rebuild_wheel();
            } else {
                self.set_next_due(wheel);
            }
        }
        looked_at
    }

    /// Removes the expired entries an item may mean, and schedules those that live on.
    fn expire_item(&mut self, item: u32) {
        let (now, shared) = (self.now, self.shared);
        loop {
            let mut expired = None;
            let mut next: Option<i64> = None;
            let index = self.index();
            // The places of an item are nearly always those of one bucket, but a bucket may begin between them.
            let mut place = Some(first_place(item));
            while let Some(at) = place.filter(|&place| item_of(place) == item) {
                place = index.visit_volatile(at, |slot, entry| {
                    if let Some(expiry) = entry.expiry() {
                        if now > expiry {
                            expired = Some(slot);
                        } else if item_of(place_of(shared, entry)) == item {
                            next = Some(next.map_or(expiry, |next| next.min(expiry)));
                        }
                    }
                });
            }
            match (expired, next) {
                (Some(slot), _) => self.expire(slot),
                (None, Some(expiry)) => return self.schedule_item(item, expiry),
                (None, None) => return,
            }
        }
    }

    /// Forgets items that mean nothing any more by starting again from the entries.
    #[cold]
    fn rebuild_wheel(&mut self) {
        let mut wheel = Box::new(Wheel::new(self.now));
        let mut place = Some(Place(0));
        let shared = self.shared;
        while let Some(at) = place {
            place = self.index().visit_volatile(at, |_, entry| {
                if let Some(expiry) = entry.expiry() {
                    wheel.insert(item_of(place_of(shared, entry)), expiry);
                }
            });
        }
        let memory = wheel.memory();
        self.set_next_due(&wheel);
        // SAFETY: as in `index`.
        let state = unsafe { &mut *self.cell.state.get() };
        let old = state.wheel.replace(wheel).map_or(0, |old| old.memory());
        self.add_bytes(memory.wrapping_sub(old));
    }

    /// A slice of work that is due but belongs to no command: moving buckets, freeing replaced tables.
    /// Returns whether there is more.
    pub fn maintain(&mut self) -> bool {
        let shared = self.shared;
        let around = surroundings(shared);
        let mut index = self.index();
        let before = index.memory();
        index.migrate(MOVED_PER_SLICE, &around);
        index.free_retired(&shared.turns);
        let (after, more) = (index.memory(), index.is_migrating());
        self.add_bytes(after.wrapping_sub(before));
        more
    }

    /// Checks the counters, and what they count, against the entries themselves.
    #[cfg(test)]
    pub(crate) fn verify(&mut self) {
        let (mut len, mut volatile, mut bytes) = (0, 0, 0);
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
                assert!(entry.expiry().is_none() || marked.contains(&entry));
                let found = index.find(place_of(shared, entry), |other| other == entry);
                assert!(found.is_some_and(|found| index.entry(found) == index.entry(slot)));
            });
        }
        assert_eq!(self.cell.len(), len);
        assert_eq!(self.cell.volatile(), volatile);
        assert_eq!(self.cell.memory(), bytes + self.overhead().bytes());
    }

    /// The part of the shard's memory that holds no entry.
    pub(crate) fn overhead(&mut self) -> Overhead {
        // SAFETY: as in `index`.
        let state = unsafe { &*self.cell.state.get() };
        let wheel_bytes = state.wheel.as_ref().map_or(0, |wheel| wheel.memory());
        Overhead {
            index_bytes: self.index().memory(),
            wheel_bytes,
            slack_bytes: self.heap().slack(),
        }
    }
}

/// The place of an entry, by hashing its key.
fn place_of(shared: &Shared, entry: Entry) -> Place {
    Place(shared.seed.hash(entry.key()) << shared.shard_bits)
}

/// What the wheel knows of a place.
fn item_of(place: Place) -> u32 {
    (place.0 >> 32) as u32
}

/// The first of the places an item may mean.
fn first_place(item: u32) -> Place {
    Place(u64::from(item) << 32)
}

/// What the index needs from the shard's surroundings.
fn surroundings(shared: &Shared) -> Surroundings<'_, impl Fn(Entry) -> Place> {
    Surroundings {
        place_of: |entry| place_of(shared, entry),
        turns: &shared.turns,
    }
}

/// The access clock of a time: seconds, modulo 2^24.
#[inline]
fn clock_at(now_ms: i64) -> u32 {
    (now_ms / 1000) as u32 & 0xff_ffff
}

/// A value without a key, expiry included.
pub struct Detached {
    value: DetachedValue,
    expiry: Option<i64>,
    form: Form,
}

enum DetachedValue {
    Inline(Vec<u8>),
    Large(LargeValue),
}

impl Detached {
    fn copy_of(entry: Entry) -> Detached {
        let value = match entry.value() {
            Stored::Inline(bytes) => DetachedValue::Inline(bytes.to_vec()),
            Stored::Large(large) => DetachedValue::Large(large.share()),
        };
        Detached {
            value,
            expiry: entry.expiry(),
            form: entry.form(),
        }
    }

    /// When it expires (Unix, ms).
    pub fn expiry(&self) -> Option<i64> {
        self.expiry
    }
}

/// An entry that is looked at while its shard is locked.
#[derive(Clone, Copy)]
pub struct EntryRef<'a> {
    entry: Entry,
    _shard: std::marker::PhantomData<&'a ()>,
}

impl<'a> EntryRef<'a> {
    /// The key.
    pub fn key(self) -> &'a [u8] {
        self.entry.key()
    }

    /// The value.
    pub fn value(self) -> Stored<'a> {
        self.entry.value()
    }

    /// When it expires (Unix, ms).
    pub fn expiry(self) -> Option<i64> {
        self.entry.expiry()
    }

    /// The type of the value.
    pub fn kind(self) -> Kind {
        self.entry.kind()
    }
}

/// An entry of a locked shard, to be read and changed.
pub struct EntryMut<'g, 'a> {
    guard: &'g mut Guard<'a>,
    slot: Slot,
    hash: u64,
}

impl EntryMut<'_, '_> {
    #[inline]
    fn entry(&self) -> Entry {
        // SAFETY: the lock is held and the index is only read.
        let state = unsafe { &mut *self.guard.cell.state.get() };
        Index {
            tables: &self.guard.cell.tables,
            state: &mut state.index,
        }
        .entry(self.slot)
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> Stored<'_> {
        self.entry().value()
    }

    /// Bytes of the value.
    pub fn value_len(&self) -> usize {
        self.entry().value_len()
    }

    /// The type of the value.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.entry().kind()
    }

    /// When the key expires (Unix, ms).
    #[inline]
    pub fn expiry(&self) -> Option<i64> {
        self.entry().expiry()
    }

    /// How Redis would hold the value.
    pub fn encoding(&self) -> Encoding {
        let entry = self.entry();
        let bytes = entry.value().bytes();
        match entry.form() {
            Form::Whole if is_canonical_integer(bytes) => Encoding::Int,
            Form::Whole | Form::Decimal if bytes.len() <= 44 => Encoding::Embstr,
            _ => Encoding::Raw,
        }
    }

    /// Seconds since the last access, as the access clock can tell.
    pub fn idle_seconds(&self) -> u32 {
        clock_at(self.guard.now).wrapping_sub(self.entry().clock()) & 0xff_ffff
    }

    /// Notes an access.
    #[inline]
    pub fn touch(&mut self) {
        self.entry().set_clock(clock_at(self.guard.now));
    }

    /// Bytes the entry takes, key and index slot included.
    pub fn memory(&self) -> usize {
        self.entry().memory() + 8
    }

    /// Sets or removes the expiry.
    pub fn set_expiry(&mut self, expiry: Option<i64>) {
        let entry = self.entry();
        let (before, old) = (entry.memory(), entry.expiry());
        let entry = entry.set_expiry(self.guard.heap(), expiry);
        self.guard.sub_bytes(before);
        self.guard.add_bytes(entry.memory());
        self.guard.index().replace(self.slot, entry);
        self.guard.reschedule(self.hash, old, expiry);
        self.guard.note_slack();
    }

    /// Makes the value `len` bytes long (zeroes are added behind) and gives it out to be changed. `form` is
    /// how it counts as written from here on.
    pub fn resize_value(&mut self, len: usize, form: Form) -> &mut [u8] {
        let entry = self.entry();
        if entry.resize_in_place(len) {
            entry.set_form(form);
            return entry.value_mut();
        }
        let before = entry.memory();
        let (entry, garbage) = entry.resize_value(self.guard.heap(), len);
        entry.set_form(form);
        self.guard.sub_bytes(before);
        self.guard.add_bytes(entry.memory());
        self.guard.index().replace(self.slot, entry);
        self.guard.note_slack();
        self.guard.discard(garbage);
        entry.value_mut()
    }

    /// A copy of value and expiry.
    pub fn copy(&self) -> Detached {
        Detached::copy_of(self.entry())
    }

    /// Removes the key.
    pub fn remove(self) {
        let entry = self.guard.unlink(self.slot);
        self.guard.free(entry);
    }
}

/// Whether the bytes are what formatting a 64-bit integer would give.
fn is_canonical_integer(bytes: &[u8]) -> bool {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let canonical = match digits {
        [] | [b'0', _, ..] => false,
        [b'0'] => bytes.len() == 1,
        _ => digits.len() <= 19 && digits.iter().all(u8::is_ascii_digit),
    };
    canonical && str::from_utf8(bytes).is_ok_and(|text| text.parse::<i64>().is_ok())
}
