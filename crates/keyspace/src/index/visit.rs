//! Going through a shard, one home bucket after the other in order of place, which is the same in every
//! table.

use super::lookup::{Index, Slot};
use super::table::{REACH, TAG_LOW, Table};
use crate::bucket::{Bucket, SLOTS, SlotBits};
use crate::entry::Entry;
use crate::hash::Place;
use crate::prefetch::prefetch;

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

impl Candidates {
    fn is_resident(self) -> bool {
        matches!(self, Candidates::Resident | Candidates::ResidentFrom(_))
    }
}

/// A bucket that a hand has come to, with candidates.
pub(crate) struct Passed<'a> {
    bucket: &'a Bucket,
    candidates: SlotBits,
}

impl Passed<'_> {
    pub(crate) fn all(&self) -> SlotBits {
        self.candidates
    }

    /// Those of this heat.
    #[inline]
    pub(crate) fn with_heat(&self, heat: u8) -> SlotBits {
        self.bucket.with_heat(heat) & self.candidates
    }

    /// Makes some, none of which is of heat 0, cooler by one.
    #[inline]
    pub(crate) fn cool(&self, slots: SlotBits) {
        debug_assert!(slots & (self.bucket.with_heat(0) | !self.candidates) == 0);
        self.bucket.cool(slots);
    }

    /// The first of some.
    #[inline]
    pub(crate) fn first_of(&self, slots: SlotBits) -> Option<Slot> {
        (slots != 0).then(|| Slot {
            bucket: self.bucket,
            index: slots.trailing_zeros() as usize,
        })
    }

    /// Each of some.
    pub(crate) fn each_of(&self, mut slots: SlotBits) -> impl Iterator<Item = Slot> {
        std::iter::from_fn(move || {
            let slot = self.first_of(slots);
            slots &= slots.wrapping_sub(1);
            slot
        })
    }
}

#[inline]
fn candidates_in(bucket: &Bucket, of: Candidates) -> SlotBits {
    let candidates = bucket.candidates(of == Candidates::Volatile, of.is_resident());
    let Candidates::ResidentFrom(least) = of else {
        return candidates;
    };
    let is_long = |slot: &usize| {
        // SAFETY: an occupied slot holds a live entry.
        let entry = || unsafe { Entry::from_address(bucket.reference(*slot) & !TAG_LOW) };
        candidates >> slot & 1 == 1 && entry().may_leave(least)
    };
    let long = (0..SLOTS).filter(is_long);
    long.fold(0, |bits, slot| bits | 1 << slot)
}

impl Index<'_> {
    /// Calls `visit` with every entry whose home holds `place`; returns the first place behind them,
    /// or `None` at the end of the shard.
    pub(crate) fn visit_home(&self, place: Place, visit: impl FnMut(Slot, Entry)) -> Option<Place> {
        self.visit_slots(place, |_, _| true, visit)
    }

    /// [`Index::visit_home`] for entries with an expiry. Others are not touched, which saves a cache miss
    /// each.
    pub(crate) fn visit_volatile(
        &self,
        place: Place,
        visit: impl FnMut(Slot, Entry),
    ) -> Option<Place> {
        self.visit_slots(place, Bucket::is_volatile, visit)
    }

    /// [`Index::visit_volatile`], or [`Index::visit_home`] if `all` are meant, for entries whose tag byte is
    /// that of `place`.
    pub(crate) fn visit_tagged(
        &self,
        place: Place,
        all: bool,
        visit: impl FnMut(Slot, Entry),
    ) -> Option<Place> {
        let tag = place.tag();
        let wanted =
            |bucket: &Bucket, slot| (all || bucket.is_volatile(slot)) && bucket.has_tag(slot, tag);
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
                    // What is in the stash is not marked; there are few, and whoever visits looks at the
                    // expiry.
                    let slot = Slot {
                        bucket: std::ptr::null(),
                        index,
                    };
                    // SAFETY: the stash holds live entries.
                    visit(slot, unsafe { Entry::from_address(raw) });
                }
            }
        }
        self.first_behind(table, home, 1, 0)
    }

    /// The first place of the home so many behind another; where the other table comes first, that of its
    /// home `start`. `None` at the end of the shard.
    fn first_behind(&self, table: Table, home: usize, count: usize, start: usize) -> Option<Place> {
        let next = Place::first_of(home + count, table.buckets());
        let draining = self.tables.draining();
        if draining.exists() && table != draining {
            // A bucket of the active table may reach into what has not been moved: stop at the border.
            let migrated = self.tables.migrated();
            let border = Place::first_of(migrated, draining.buckets())?;
            if next.is_none_or(|next| next >= border) {
                return Place::first_of(migrated + start, draining.buckets());
            }
        }
        next
    }

    /// The first place of the home so many behind that of `place`, where the other table comes first that of
    /// its home `start`; `None` at the end of the shard.
    pub(crate) fn behind(&self, place: Place, count: usize, start: usize) -> Option<Place> {
        let (table, home) = self.tables.locate(place);
        match table.exists() {
            true => self.first_behind(table, home, count, start),
            false => None,
        }
    }

    /// Calls `visit` with the bucket in which `place` has its home, and the candidates in it, wherever these
    /// have theirs: so who goes from one to the next meets every entry that is not in the stash. The last
    /// bucket of a table comes with those behind it, which are nobody's home.
    #[inline]
    pub(crate) fn pass(&self, place: Place, of: Candidates, mut visit: impl FnMut(Passed<'_>)) {
        let (table, home) = self.tables.locate(place);
        if !table.exists() {
            return;
        }
        let draining = self.tables.draining();
        let is_last = home + 1 == table.buckets()
            || draining.exists()
                && table != draining
                && self.first_behind(table, home, 1, 0)
                    == Place::first_of(self.tables.migrated(), draining.buckets());
        for at in home..home + if is_last { REACH } else { 1 } {
            let bucket = table.bucket(at);
            let candidates = candidates_in(bucket, of);
            if candidates != 0 {
                visit(Passed { bucket, candidates });
            }
        }
    }

    /// Candidates in the stash: few, if any.
    pub(crate) fn stashed(&self, of: Candidates) -> impl Iterator<Item = Slot> {
        let is_candidate = move |raw: u64| {
            // SAFETY: the stash holds live entries.
            let entry = unsafe { Entry::from_address(raw) };
            match of {
                Candidates::All => true,
                Candidates::Volatile => entry.expiry().is_some(),
                Candidates::Resident => !entry.is_cold(),
                Candidates::ResidentFrom(least) => entry.may_leave(least),
            }
        };
        let stash = self.state.stash.iter().enumerate();
        stash.filter_map(move |(index, &(_, raw))| {
            is_candidate(raw).then_some(Slot {
                bucket: std::ptr::null(),
                index,
            })
        })
    }

    /// Starts loading the entries of the second home bucket behind the one of `place`, for who goes from one
    /// to the next.
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
