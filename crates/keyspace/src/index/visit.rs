//! Going through a shard, one home bucket after the other in order of place, which is the same in every table.

use super::table::{TAG_LOW, prefetch};
use super::{Index, Slot};
use crate::bucket::Bucket;
use crate::entry::Entry;
use crate::hash::Place;

/// Which entries may go when memory is short.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Candidates {
    All,
    /// Those with an expiry.
    Volatile,
    /// Those whose value is in memory.
    Resident,
    /// Those of them whose value has so many bytes, at least. Entries are touched to find out.
    ResidentFrom(usize),
}

impl Index<'_> {
    /// Calls `visit` with every entry whose home holds `place`; returns the first place behind them,
    /// or `None` at the end of the shard.
    pub(crate) fn visit_home(&self, place: Place, visit: impl FnMut(Slot, Entry)) -> Option<Place> {
        self.visit_slots(place, |_, _| true, visit)
    }

    /// [`Index::visit_home`] for entries with an expiry. Others are not touched, which saves a cache miss each.
    pub(crate) fn visit_volatile(
        &self,
        place: Place,
        visit: impl FnMut(Slot, Entry),
    ) -> Option<Place> {
        self.visit_slots(place, Bucket::is_volatile, visit)
    }

    /// [`Index::visit_volatile`] for entries whose tag byte is that of `place`.
    pub(crate) fn visit_tagged(
        &self,
        place: Place,
        visit: impl FnMut(Slot, Entry),
    ) -> Option<Place> {
        let tag = place.tag();
        let wanted = |bucket: &Bucket, slot| bucket.is_volatile(slot) && bucket.has_tag(slot, tag);
        self.visit_slots(place, wanted, visit)
    }

    #[inline]
    fn visit_slots(
        &self,
        place: Place,
        wanted: impl Fn(&Bucket, usize) -> bool,
        mut visit: impl FnMut(Slot, Entry),
    ) -> Option<Place> {
        let (table, home) = self.tables.locate(place);
        if !table.exists() {
            return None;
        }
        let first = table.bucket(home);
        for displacement in 0..=first.extent() {
            let bucket = table.bucket(home + displacement);
            for index in bucket.occupied() {
                if bucket.displacement(index) == displacement && wanted(bucket, index) {
                    // SAFETY: an occupied slot holds a live entry.
                    visit(Slot { bucket, index }, unsafe {
                        Entry::from_address(bucket.reference(index) & !TAG_LOW)
                    });
                }
            }
        }
        if first.is_stashed() {
            for (index, &(its, raw)) in self.state.stash.iter().enumerate() {
                if self.tables.locate(its) == (table, home) {
                    // What is in the stash is not marked; there are few, and whoever visits looks at the expiry.
                    let slot = Slot {
                        bucket: std::ptr::null(),
                        index,
                    };
                    // SAFETY: the stash holds live entries.
                    visit(slot, unsafe { Entry::from_address(raw) });
                }
            }
        }
        let next = Place::first_of(home + 1, table.buckets());
        let draining = self.tables.draining();
        if draining.exists() && table != draining {
            // A bucket of the active table may reach into what has not been moved: stop at the border.
            let border = Place::first_of(self.tables.migrated(), draining.buckets());
            return match (next, border) {
                (Some(next), Some(border)) => Some(next.min(border)),
                (None, border) => border,
                (next, None) => next,
            };
        }
        next
    }

    /// Calls `visit` with every entry whose home holds `place`, or those of them that are wanted; returns the first place behind
    /// them, or `None` at the end of the shard. No entry is touched.
    pub(crate) fn visit_candidates(
        &self,
        place: Place,
        of: Candidates,
        mut visit: impl FnMut(&Self, Slot),
    ) -> Option<Place> {
        let wanted = |bucket: &Bucket, slot| match of {
            Candidates::All => true,
            Candidates::Volatile => bucket.is_volatile(slot),
            Candidates::Resident | Candidates::ResidentFrom(_) => !bucket.is_cold(slot),
        };
        self.visit_slots(place, wanted, |slot, entry| {
            // What is in the stash is not marked.
            let is_marked = || match of {
                Candidates::All => true,
                Candidates::Volatile => entry.expiry().is_some(),
                Candidates::Resident | Candidates::ResidentFrom(_) => !entry.is_cold(),
            };
            let is_wanted = match of {
                Candidates::ResidentFrom(least) => entry.value_len() >= least,
                _ => true,
            };
            if is_wanted && (!slot.is_in_stash() || is_marked()) {
                visit(self, slot);
            }
        })
    }

    /// Starts loading the entries of the second home bucket behind the one of `place`, for who goes from one to the next.
    #[inline]
    pub(crate) fn prefetch_behind(&self, place: Place) {
        let (table, home) = self.tables.locate(place);
        if home + 2 < table.buckets() {
            let ahead = table.bucket(home + 2);
            for slot in ahead.occupied() {
                let entry = (ahead.reference(slot) & !TAG_LOW) as *const u8;
                prefetch(entry);
                prefetch(entry.wrapping_add(56));
            }
        }
    }
}
