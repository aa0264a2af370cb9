//! A locked shard: its lock, its time, and the counters that have to stay right with each entry.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::cell::{Cold, ShardCell};
use crate::entry::{Entry, Garbage, Stamp};
use crate::hash::{Key, Place};
use crate::heap::Heap;
use crate::index::{Index, Slot, Surroundings};
use crate::observe::ChangeKind;
use crate::reclaim::BACKGROUND_BYTES;
use crate::shared::Shared;

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

    /// Counts an entry whose items expire (1), or do no more (-1).
    #[cold]
    pub(super) fn note_expiring(&self, change: isize) {
        let count = &self.cell.expiring;
        count.store(count.load(Relaxed).wrapping_add_signed(change), Relaxed);
        if change > 0 && !self.shared.has_expiring.load(Relaxed) {
            self.shared.has_expiring.store(true, Relaxed);
        }
    }

    /// What an entry carries that is written and counts as used at this time (Unix, ms), or now.
    #[inline]
    pub(super) fn stamp(&self, used: Option<i64>) -> Stamp {
        let clock = self.shared.noting.first(used.unwrap_or(self.now));
        Stamp::new(clock, self.shared.snapshot.mark())
    }

    /// The time, if the index is about to move a part of itself.
    #[inline]
    pub(super) fn begin_move(&mut self) -> Option<u64> {
        let ticks = self.shared.ticks;
        self.index().is_moving().then(ticks)
    }

    /// Notes how long that took.
    #[inline]
    pub(super) fn end_move(&self, began: Option<u64>) {
        if let Some(began) = began {
            let took = (self.shared.ticks)().saturating_sub(began);
            if took > self.shared.slowest_resize.load(Relaxed) {
                self.shared.slowest_resize.fetch_max(took, Relaxed);
            }
        }
    }

    /// Puts an entry in the place of one of the same key that took so many bytes.
    #[inline]
    pub(super) fn exchange(&mut self, slot: Slot, before: usize, entry: Entry) {
        self.sub_bytes(before);
        self.add_bytes(entry.memory());
        self.index().replace(slot, entry);
        self.note_slack();
    }

    /// Counts a cold entry that has come (1) or goes (-1).
    #[cold]
    pub(super) fn note_cold(&mut self, change: isize, entry: Entry) {
        let bytes = change.wrapping_mul(entry.value_len() as isize);
        let Cold {
            keys, bytes: sum, ..
        } = &self.cell.cold;
        keys.store(keys.load(Relaxed).wrapping_add_signed(change), Relaxed);
        sum.store(sum.load(Relaxed).wrapping_add_signed(bytes), Relaxed);
    }

    /// Drops garbage: here when it is small or shared, in the background otherwise.
    #[inline]
    pub(super) fn discard(&self, garbage: Option<Garbage>) {
        match garbage {
            None => {}
            Some(Garbage::Large(value)) if Arc::strong_count(&value) == 1 => {
                let bytes = value.capacity();
                self.drop_apart(value, bytes);
            }
            Some(Garbage::Large(_)) => {}
            Some(Garbage::Tree(tree)) => {
                let bytes = tree.bytes();
                self.drop_apart(tree, bytes);
            }
        }
    }

    /// Drops a thing of so many bytes: in the background, if it is large.
    fn drop_apart(&self, thing: impl Send + 'static, bytes: usize) {
        if bytes >= BACKGROUND_BYTES {
            self.shared.reclaimer.send(thing, bytes);
        }
    }

    /// Makes room in the index for so many entries, if it has none yet.
    pub(crate) fn reserve(&mut self, entries: usize) {
        let charge = self.shared.charge;
        let before = self.index().memory();
        self.index().reserve(entries, charge);
        let after = self.index().memory();
        self.add_bytes(after - before);
    }
}

/// The place of an entry, by hashing its key.
pub(super) fn place_of(shared: &Shared, entry: Entry) -> Place {
    Place(shared.seed.hash(entry.key()) << shared.shard_bits)
}

/// What the index needs from the shard's surroundings.
pub(super) fn surroundings(shared: &Shared) -> Surroundings<'_, impl Fn(Entry) -> Place> {
    Surroundings {
        place_of: |entry| place_of(shared, entry),
        turns: &shared.turns,
        charge: shared.charge,
    }
}
