//! One shard: index, entries and expiry behind one lock, and what can be done with a key.
//!
//! Everything the server does to data goes through a [`Guard`]: it holds the shard's lock and a time, and
//! no expired entry is ever seen through it. Nothing here waits, and nothing large is freed here.
//!
//! ```text
//!  line 0: lock, table words, counters             read by everybody without the lock (prefetch, DBSIZE, expiry)
//!  line 1: index, wheel                            only under the lock
//! ```
//!
//! Invariants:
//! 1. `bytes` is the sum of [`Entry::memory`] over all entries of the index, and of what index and wheel take.
//! 2. `volatile` counts the entries with an expiry, and each of those has an item in the wheel at or before
//!    its expiry.
//! 3. Counters are written only under the lock; `cold` counts the cold entries, and the bytes of their values.

mod evicting;
mod expiring;
mod loading;
mod lock;
mod offloading;
mod packing;
mod snapshot;
mod view;
mod writing;

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

use crate::database::Overhead;
use crate::entry::{Entry, Stamp};
use crate::hash::Place;
use crate::heap::Heap;
use crate::index::{Index, IndexState, Slot, Surroundings, Tables};
use crate::keyspace::Shared;
use crate::large::LargeValue;
use crate::observe::ChangeKind;
use crate::pages::Pages;
use crate::reclaim::BACKGROUND_BYTES;

/// Home buckets moved by one call of [`Guard::maintain`] while a table drains.
const MOVED_PER_SLICE: usize = 64;

pub use offloading::{ColdValue, Offloading};
pub use view::{Detached, EntryMut, EntryRef};
pub use writing::Overwritten;

use evicting::Evicting;
use expiring::Wheels;
use lock::Lock;
use offloading::Cold;

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
    cold: Cold,
    next_due_ms: NextDue,
    state: UnsafeCell<State>,
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
    wheels: Option<Box<Wheels>>,
    /// What a snapshot wants of this shard.
    copied: Option<Box<snapshot::Copied>>,
    /// Made with the first eviction.
    evicting: Option<Box<Evicting>>,
}

// SAFETY: `state`, and the entries it leads to, are reached only through a `Guard`, which exists once at a time because
// it stands for the lock; everything else is atomic.
unsafe impl Sync for ShardCell {}
// SAFETY: entries are plain memory and large values, owned by the shard.
unsafe impl Send for ShardCell {}

impl ShardCell {
    pub(crate) fn new(
        pages: &Arc<Pages>,
        database: usize,
        shard: usize,
        observed: u8,
    ) -> ShardCell {
        ShardCell {
            lock: Lock::new(database, shard, observed),
            tables: Tables::default(),
            len: AtomicUsize::new(0),
            volatile: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            slack: AtomicUsize::new(0),
            cold: Cold::default(),
            next_due_ms: NextDue::default(),
            state: UnsafeCell::new(State {
                index: IndexState::default(),
                heap: Heap::new(Arc::clone(pages)),
                wheels: None,
                copied: None,
                evicting: None,
            }),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) {
        self.lock.lock();
    }

    /// # Safety
    /// The caller locked the shard, and no guard is left.
    #[inline]
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: by the caller's contract.
        unsafe { self.lock.unlock() }
    }

    /// Notes that its database has another number now.
    pub(crate) fn set_database(&self, number: usize) {
        self.lock.set_database(number);
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
        index.drain(&shared.turns, shared.charge, |entry| {
            shared.tell_lost(entry, None);
            // SAFETY: `drain` hands each entry out once and forgets it.
            drop(unsafe { entry.free(heap) });
        });
        index.free_tables(shared.charge);
    }
}

/// A locked shard, at a point in time.
pub struct Guard<'a> {
    cell: &'a ShardCell,
    shared: &'a Shared,
    now: i64,
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

    /// Lets the observer hear of every change to a key of this shard from here on, for these [`crate::reason`]s.
    pub fn observe(&mut self, reasons: u8) {
        self.cell.lock.observe(reasons);
    }

    /// Why this shard is observed: bits of [`crate::reason`].
    #[inline]
    pub fn observed(&self) -> u8 {
        self.cell.lock.observed()
    }

    /// Tells the observer of a change to a key, if this shard is observed. Whoever changes or removes a key calls this under the
    /// same lock; only expiry, which nobody asks for, tells of itself.
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

    /// What an entry that is written now carries.
    #[inline]
    fn stamp(&self) -> Stamp {
        let clock = self.shared.noting.first(self.now);
        Stamp::new(clock, self.shared.snapshot.mark())
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

    fn insert(&mut self, hash: u64, entry: Entry) {
        let place = self.place(hash);
        let heat = self.first_heat(place);
        self.insert_with_heat(hash, entry, heat);
    }

    #[inline]
    fn insert_with_heat(&mut self, hash: u64, entry: Entry, heat: u8) {
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
    fn unlink(&mut self, slot: Slot) -> Entry {
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
                visit(EntryRef::new(entry));
            }
        })
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

/// The place of an entry, by hashing its key.
fn place_of(shared: &Shared, entry: Entry) -> Place {
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

/// The access clock of a time: seconds, modulo 2^24.
#[inline]
fn clock_at(now_ms: i64) -> u32 {
    (now_ms / 1000) as u32 & 0xff_ffff
}
