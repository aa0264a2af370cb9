//! Values that leave memory while their keys stay: which ones, and how they come back.
//!
//! A value may go if the log has it ([`Guard::offload`] asks whoever knows). The order is that of eviction:
//! the same hands and heat. What is cold has no heat. What is read once need not come back for it: of that a
//! ghost is enough ([`EntryMut::is_asked_again`]), and who comes back while it lasts is not fresh. Anything
//! else that comes back is as fresh as what was just made.
//!
//! Of a tree leaves go and come back, one by one: see [`super::leaves`].
//!
//! Whoever is about to read values of a shard *pins* it ([`Guard::pin`]) under the lock under which it saw
//! that they are there. Until it has read them, and unpinned the shard ([`crate::Database::unpin`]), none of
//! them goes.
//!
//! ```text
//!  resident  -- offload -->  cold      the value is in the log, the shard is not pinned
//!  cold      -- warm -->     resident  the address is still the one from which the value was read
//!  cold      -- set -->      resident  a new value, whatever it was
//! ```

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::guard::Guard;
use super::leaves::{LEAVES_AT_ONCE, LOOKS, Offloading};
use super::view::EntryMut;
use crate::collection::tree::Leaving;
use crate::entry::{INLINE_VALUE_MAX, LogAddress, NewValue};
use crate::evict::{COOL, HOT, random};
use crate::index::Candidates;
use crate::large::LargeValue;

/// Entries looked at for one that goes: some have values that are too small. When so many are, the hand
/// passes all of those, and may come to the end of what is looked at, so often, without another.
const TRIES: usize = 8;
const STAYING: usize = 4;
const MISSES: usize = 8;

impl Guard<'_> {
    /// Whether a value of this shard is in the log alone.
    #[inline]
    pub fn has_cold(&self) -> bool {
        self.cell.cold.keys.load(Relaxed) > 0
    }

    /// Keeps the values of this shard in memory that are there, until [`crate::Database::unpin`].
    #[inline]
    pub fn pin(&mut self) {
        self.cell.cold.pins.fetch_add(1, Acquire);
    }

    /// How many have pinned the shard.
    #[inline]
    pub fn pins(&self) -> u32 {
        self.cell.cold.pins.load(Acquire)
    }

    /// Lets up to `most` values leave memory, unless the shard is pinned. Of each that is the next to go
    /// `decide` says what happens: of a tree's leaf, or of the whole value. It may note another address,
    /// write the leaf, and change nothing else. Returns how many values and leaves went, and whether one
    /// waits, or may be found by the next looks.
    pub fn offload(
        &mut self,
        most: usize,
        mut decide: impl FnMut(&mut EntryMut<'_, '_>, Option<&Leaving>) -> Offloading,
    ) -> (usize, bool) {
        if self.cell.cold.pins.load(Acquire) > 0 {
            return (0, true);
        }
        self.prepare_eviction();
        let (mut gone, mut stayed, mut missed, mut looks) = (0, 0, 0, LOOKS);
        let mut has_more = false;
        let mut tries = most * TRIES;
        while tries > 0 && gone < most && looks > 0 && self.cell.len() > self.cell.cold().0 {
            let of = if stayed < STAYING {
                Candidates::Resident
            } else {
                Candidates::ResidentFrom(self.shared.cold_min.load(Relaxed))
            };
            let Some(slot) = self.coldest(of) else {
                missed += 1;
                if missed == MISSES {
                    break;
                }
                continue;
            };
            tries -= 1;
            let entry = self.index().entry(slot);
            let hash = self.shared.seed.hash(entry.key());
            let mut entry = EntryMut {
                guard: self,
                slot,
                hash,
            };
            if entry.is_tree() {
                let left = entry.offload_leaves(LEAVES_AT_ONCE, &mut looks, &mut decide);
                gone += left.gone;
                if left.waits {
                    return (gone, true);
                }
                has_more |= left.has_more;
                if left.gone == 0 {
                    self.index().set_heat(slot, HOT);
                    stayed += 1;
                }
                continue;
            }
            let decision = if entry.may_be_cold() {
                decide(&mut entry, None)
            } else {
                Offloading::Stays
            };
            match decision {
                Offloading::Goes => entry.chill(),
                Offloading::Stays => {
                    self.index().set_heat(slot, HOT);
                    stayed += 1;
                    continue;
                }
                Offloading::Waits => return (gone, true),
            }
            gone += 1;
        }
        (gone, has_more)
    }
}

impl EntryMut<'_, '_> {
    /// Whether the value is in memory, and memory is gained if it is not.
    pub fn may_be_cold(&self) -> bool {
        let least = self.guard.shared.cold_min.load(Relaxed);
        self.entry().may_be_cold(least)
    }

    /// Lets the value leave memory, if memory is gained by that and the shard is not pinned. The log has it.
    /// Whether it left.
    pub fn offload(self) -> bool {
        if !self.may_be_cold() || self.guard.cell.cold.pins.load(Acquire) > 0 {
            return false;
        }
        self.chill();
        true
    }

    fn chill(self) {
        let (guard, slot) = (self.guard, self.slot);
        let entry = guard.index().entry(slot);
        let before = entry.memory();
        let (cold, garbage) = entry.chilled(guard.heap());
        guard.exchange(slot, before, cold);
        // So that no hand takes it for one that is in memory.
        guard.index().set_heat(slot, COOL);
        guard.note_cold(1, cold);
        guard.discard(garbage);
    }

    /// Notes that a cold value was asked for. Whether it also was not long ago: then it is one to bring back,
    /// and not only to read.
    pub fn is_asked_again(&mut self) -> bool {
        let place = self.guard.place(self.hash);
        self.guard.prepare_eviction();
        let displaces = random(self.guard.shared.ticks) & 1 == 1;
        self.guard.evicting().ghosts.meet(place, displaces)
    }

    /// Gives the entry its value back, if it is cold and has it still from `address`. Whether it was that
    /// value's.
    pub fn warm(self, address: LogAddress, value: LargeValue) -> bool {
        if !self.rests_on(address, value.len()) {
            return false;
        }
        if value.len() <= INLINE_VALUE_MAX {
            self.warm_with(NewValue::Inline(&value));
        } else {
            self.warm_with(NewValue::Large(value));
        }
        true
    }

    /// The same with a copy of `value`.
    #[inline]
    pub fn warm_copy(self, address: LogAddress, value: &[u8]) -> bool {
        let is_wanted = self.rests_on(address, value.len());
        if is_wanted {
            self.warm_with(NewValue::copy_of(value));
        }
        is_wanted
    }

    /// Whether the value is in the log alone, at `address`, and has so many bytes.
    fn rests_on(&self, address: LogAddress, len: usize) -> bool {
        self.cold()
            .is_some_and(|cold| cold.address == address && cold.len == len as u64)
    }

    fn warm_with(self, value: NewValue<'_>) {
        let (guard, slot) = (self.guard, self.slot);
        let entry = guard.index().entry(slot);
        guard.note_cold(-1, entry);
        let before = entry.memory();
        let warm = entry.warmed(guard.heap(), value);
        guard.exchange(slot, before, warm);
        let place = guard.place(self.hash);
        let heat = guard.first_heat(place);
        guard.index().set_heat(slot, heat);
        if warm.next_due().is_some() {
            guard.settle_items(slot, self.hash, None);
        }
        guard.relieve();
    }
}

#[cfg(test)]
mod tests;
