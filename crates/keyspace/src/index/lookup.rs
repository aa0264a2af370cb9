//! The index of a locked shard: finding an entry, and what is noted of it.

use crate::bucket::{Bucket, Marks, SLOTS, SlotBits};
use crate::entry::Entry;
use crate::evict::{FRESH, STALE, is_used};
use crate::hash::Place;
use crate::pages::Charge;
use crate::turn::Turns;

use super::table::{REACH, Retired, TAG_LOW, Table, Tables};

/// Where an entry is; valid until the shard's next insertion, removal or step of migration.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// Null for the stash.
    pub(super) bucket: *const Bucket,
    pub(super) index: usize,
}

/// The part of the index that only the holder of the lock sees.
#[derive(Default)]
pub(crate) struct IndexState {
    pub(super) len: usize,
    /// Entries that were not used since they came.
    pub(super) unused: usize,
    /// Entries that were used while they were fresh, since [`Index::reset_first_uses`].
    pub(super) first_uses: usize,
    /// Bytes of mapped tables that are charged as memory in use.
    pub(super) charged: usize,
    pub(super) stash: Vec<(Place, u64)>,
    pub(super) retired: Vec<Retired>,
}

/// The index of a locked shard.
pub(crate) struct Index<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) state: &'a mut IndexState,
}

/// What the index needs to know to move entries about.
pub(crate) struct Surroundings<'a, F: Fn(Entry) -> Place> {
    /// The place of an entry, by hashing its key.
    pub(crate) place_of: F,
    pub(crate) turns: &'a Turns,
    pub(crate) charge: Charge,
}

impl Slot {
    pub(super) fn bucket<'a>(self) -> Option<&'a Bucket> {
        // SAFETY: a slot is only used while the lock under which it was found is held, and no table is
        // freed without being drained first.
        unsafe { self.bucket.as_ref() }
    }
}

impl Index<'_> {
    /// Bytes taken by tables and stash.
    pub(crate) fn memory(&self) -> usize {
        let retired: usize = self
            .state
            .retired
            .iter()
            .map(|retired| retired.table.memory())
            .sum();
        self.tables.active().memory()
            + self.tables.draining().memory()
            + retired
            + self.state.stash.capacity() * size_of::<(Place, u64)>()
    }

    /// Finds an entry. Costs one cache line for the bucket and one or two for the entry.
    #[inline]
    pub(crate) fn find(&self, place: Place, is_it: impl Fn(Entry) -> bool) -> Option<Slot> {
        let (table, home) = self.tables.locate(place);
        if !table.exists() {
            return None;
        }
        let (tag, tag_low) = (place.tag(), place.tag_low());
        let first = table.bucket(home);
        let mut bucket = first;
        let mut displacement = 0;
        loop {
            for index in bucket.matches(tag) {
                let raw = bucket.reference(index);
                // SAFETY: an occupied slot holds an entry that is alive (the lock is held).
                if raw & TAG_LOW == tag_low && is_it(unsafe { Entry::from_address(raw & !TAG_LOW) })
                {
                    return Some(Slot { bucket, index });
                }
            }
            if displacement == first.extent() {
                break;
            }
            displacement += 1;
            bucket = table.bucket(home + displacement);
        }
        if first.is_stashed() {
            self.find_in_stash(place, is_it)
        } else {
            None
        }
    }

    #[cold]
    fn find_in_stash(&self, place: Place, is_it: impl Fn(Entry) -> bool) -> Option<Slot> {
        let found = self.state.stash.iter().position(|&(its, raw)| {
            // SAFETY: the stash holds live entries only.
            its == place && is_it(unsafe { Entry::from_address(raw) })
        });
        found.map(|index| Slot {
            bucket: std::ptr::null(),
            index,
        })
    }

    #[inline]
    pub(crate) fn entry(&self, slot: Slot) -> Entry {
        let raw = match slot.bucket() {
            Some(bucket) => bucket.reference(slot.index) & !TAG_LOW,
            None => self.state.stash[slot.index].1,
        };
        // SAFETY: the slot was found under the lock that is still held.
        unsafe { Entry::from_address(raw) }
    }

    /// Puts a moved or replaced entry of the same key where the old one was.
    #[inline]
    pub(crate) fn replace(&mut self, slot: Slot, entry: Entry) {
        match slot.bucket() {
            Some(bucket) => {
                let low = bucket.reference(slot.index) & TAG_LOW;
                bucket.set_reference(slot.index, entry.address() | low);
                bucket.set_marks(slot.index, entry.expiry().is_some(), entry.is_cold());
            }
            None => self.state.stash[slot.index].1 = entry.address(),
        }
    }

    /// Puts an entry into its home in `table`, behind it, or into the stash, where it is stale.
    pub(super) fn put(&mut self, table: Table, place: Place, entry: Entry, heat: u8) {
        let home = place.home(table.buckets());
        let marks = Marks {
            volatile: entry.expiry().is_some(),
            cold: entry.is_cold(),
            heat,
        };
        for displacement in 0..REACH {
            let bucket = table.bucket(home + displacement);
            if let Some(slot) = bucket.free_slot() {
                bucket.fill(
                    slot,
                    place.tag(),
                    entry.address() | place.tag_low(),
                    displacement,
                    marks,
                );
                let first = table.bucket(home);
                if displacement > first.extent() {
                    first.set_extent(displacement);
                }
                return;
            }
        }
        table.bucket(home).set_stashed();
        self.state.stash.push((place, entry.address()));
        self.state.unused += usize::from(is_used(heat));
    }

    /// Entries that were not used since they came.
    pub(crate) fn unused(&self) -> usize {
        self.state.unused
    }

    /// The first slots of a bucket, as many as it takes that half of what is unused is in them, if what was
    /// used fills the first.
    pub(crate) fn slots_to_keep(&self) -> SlotBits {
        let buckets = self.tables.active().buckets().max(1);
        let twice = 2 * self.state.len - self.state.unused;
        let slots = (twice + buckets) / (2 * buckets);
        (1 << slots.min(SLOTS - 1)) - 1
    }

    /// Entries that were used while they were fresh, since this was last set to 0.
    pub(crate) fn first_uses(&self) -> usize {
        self.state.first_uses
    }

    pub(crate) fn reset_first_uses(&mut self) {
        self.state.first_uses = 0;
    }

    /// How warm an entry is; see [`crate::evict`]. What is in the stash is always stale.
    #[inline]
    pub(crate) fn heat(&self, slot: Slot) -> u8 {
        slot.bucket()
            .map_or(STALE, |bucket| bucket.heat(slot.index))
    }

    #[inline]
    pub(crate) fn set_heat(&mut self, slot: Slot, heat: u8) {
        if let Some(bucket) = slot.bucket() {
            let before = bucket.heat(slot.index);
            self.state.unused -= usize::from(!is_used(before));
            self.state.unused += usize::from(!is_used(heat));
            self.state.first_uses += usize::from(before == FRESH && is_used(heat));
            bucket.set_heat(slot.index, heat);
        }
    }
}
