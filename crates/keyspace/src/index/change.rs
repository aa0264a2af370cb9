//! Adding and removing an entry.

use super::lookup::{Index, Slot, Surroundings};
use crate::bucket::Bucket;
use crate::entry::Entry;
use crate::evict::is_used;
use crate::hash::Place;

impl Index<'_> {
    /// Adds an entry whose key is not there.
    #[inline]
    pub(crate) fn insert<F: Fn(Entry) -> Place>(
        &mut self,
        place: Place,
        entry: Entry,
        heat: u8,
        around: &Surroundings<'_, F>,
    ) {
        self.make_room(around);
        let (table, _) = self.tables.locate(place);
        self.put(table, place, entry, heat);
        self.state.len += 1;
        self.state.unused += usize::from(!is_used(heat));
        self.state.first_uses += usize::from(is_used(heat));
    }

    /// Takes an entry out. The caller owns it now.
    pub(crate) fn remove<F: Fn(Entry) -> Place>(
        &mut self,
        slot: Slot,
        around: &Surroundings<'_, F>,
    ) -> Entry {
        let entry = self.entry(slot);
        self.state.unused -= usize::from(!is_used(self.heat(slot)));
        match slot.bucket() {
            Some(bucket) => {
                bucket.clear(slot.index);
                let displacement = bucket.displacement(slot.index);
                if displacement > 0 {
                    // SAFETY: the home is `displacement` buckets before, in the same table (invariant 3).
                    let home = unsafe { slot.bucket.sub(displacement) };
                    shorten_extent(home, displacement);
                }
            }
            None => {
                self.state.stash.swap_remove(slot.index);
            }
        }
        self.state.len -= 1;
        self.give_back_room(around);
        entry
    }
}

/// Restores invariant 2 after an entry at `displacement` from `home` went away.
fn shorten_extent(home: *const Bucket, displacement: usize) {
    // SAFETY: the home of an entry and the seven buckets behind it are inside its table.
    let at = |offset: usize| unsafe { &*home.add(offset) };
    if at(0).extent() != displacement {
        return;
    }
    let still = |offset: &usize| {
        at(*offset)
            .occupied()
            .any(|slot| at(*offset).displacement(slot) == *offset)
    };
    at(0).set_extent((1..=displacement).rev().find(still).unwrap_or(0));
}
