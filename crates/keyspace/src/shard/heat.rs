//! The heat of a shard's entries: noting what is used, and finding what is not.
//!
//! Budget: noting a use is at most a store to the bucket's line and one to the entry's, both just read.

use std::sync::atomic::Ordering::Relaxed;

use super::guard::Guard;
use super::hands::{Evicting, STRIDE};
use crate::entry::Stamp;
use crate::evict::{COOL, FRESH, HOT, STALE, random};
use crate::hash::Place;
use crate::index::{Candidates, Index, Slot};

/// Entries that were not used are taken first while they are more than one in so many.
const UNUSED_SHARE: usize = 20;

/// Buckets that are looked at for one victim before the coolest of as many entries will do.
const LOOKED_AT: usize = 64;

impl Guard<'_> {
    /// Notes that an entry was used.
    #[inline]
    pub(super) fn warm(&mut self, slot: Slot) {
        let (noting, now) = (&self.shared.noting, self.now);
        let mut index = self.index();
        let heat = index.heat(slot);
        if heat < HOT {
            index.set_heat(slot, (heat + 1).max(COOL));
        }
        if noting.counts() {
            let entry = index.entry(slot);
            let clock = noting.counted(entry.clock(), now, random(self.shared.ticks));
            entry.set_clock(clock);
        }
    }

    /// Notes that an entry is used by whoever overwrites it, and returns what it carries then.
    #[inline]
    pub(super) fn warm_stamp(&mut self, slot: Slot) -> Stamp {
        self.warm(slot);
        let mark = self.shared.snapshot.mark();
        if self.shared.noting.counts() {
            return Stamp::new(self.index().entry(slot).clock(), mark);
        }
        Stamp::new(self.shared.noting.first(self.now), mark)
    }

    /// The heat of an entry that comes in.
    #[inline]
    pub(super) fn first_heat(&mut self, place: Place) -> u8 {
        if !self.shared.noting.heats() {
            return FRESH;
        }
        // SAFETY: the lock is held and `&mut self` makes this the only way to the state.
        let state = unsafe { &mut *self.cell.state.get() };
        let ghosts = state.evicting.as_mut().map(|evicting| &mut evicting.ghosts);
        if ghosts.is_some_and(|ghosts| ghosts.recall(place)) {
            COOL
        } else {
            FRESH
        }
    }

    #[inline]
    pub(super) fn evicting(&mut self) -> &mut Evicting {
        // SAFETY: as in `first_heat`.
        let state = unsafe { &mut *self.cell.state.get() };
        state.evicting.get_or_insert_default()
    }

    /// Makes as much room for ghosts as there are entries.
    pub(super) fn prepare_eviction(&mut self) {
        let (entries, before) = (self.cell.len(), self.evicting_memory());
        self.evicting().ghosts.fit(entries);
        let after = self.evicting_memory();
        if after != before {
            self.add_bytes(after.wrapping_sub(before));
        }
    }

    /// Bytes that eviction takes for itself.
    pub(super) fn evicting_memory(&self) -> usize {
        // SAFETY: as in `first_heat`.
        let state = unsafe { &*self.cell.state.get() };
        state
            .evicting
            .as_ref()
            .map_or(0, |evicting| evicting.memory())
    }

    /// Moves a hand on until it meets an entry to take.
    pub(super) fn coldest(&mut self, of: Candidates) -> Option<Slot> {
        let resident = self.cell.len() - self.cell.cold.keys.load(Relaxed);
        // SAFETY: as in `first_heat`; the two parts of the state are apart.
        let state = unsafe { &mut *self.cell.state.get() };
        let evicting = state.evicting.as_mut()?;
        let mut index = Index {
            tables: &self.cell.tables,
            state: &mut state.index,
        };
        // What is cold counts as used.
        let is_fast = index.unused() * UNUSED_SHARE > resident;
        // Among many that may not go, those that may can all be unused, and few.
        let takes_unused = matches!(of, Candidates::ResidentFrom(_));
        let kept_slots = evicting.kept_slots(&index, of);
        let mut victim = None;
        for _ in 0..LOOKED_AT {
            let hand = if is_fast {
                evicting.fast
            } else {
                evicting.slow
            };
            let mut has_more = false;
            index.pass(hand.place, of, |passed| {
                let (mut takes, cools) = match is_fast {
                    true => (evicting.stale(&passed, kept_slots), FRESH),
                    false => (passed.with_heat(COOL), HOT),
                };
                if takes_unused {
                    takes |= passed.with_heat(STALE) | passed.with_heat(FRESH);
                }
                has_more |= takes.count_ones() > u32::from(victim.is_none());
                victim = victim.or(passed.first_of(takes));
                if !has_more {
                    passed.cool(passed.with_heat(cools) & !takes);
                }
            });
            // What is in the stash is always stale, and comes at the end.
            if victim.is_none()
                && (is_fast || takes_unused)
                && let stashed @ Some(_) = index.stashed(of).next()
                && index.behind(hand.place, STRIDE, hand.start).is_none()
            {
                (victim, has_more) = (stashed, true);
            }
            // The hand stays where there is more to take.
            if !has_more {
                evicting.advance(is_fast, &mut index, resident);
            }
            if victim.is_some() {
                break;
            }
        }
        evicting.taken += usize::from(is_fast);
        victim.or_else(|| self.sampled(of, LOOKED_AT, |index, slot| u64::from(index.heat(slot))))
    }

    /// Of some candidates from a random place on, the one with the least `score`.
    pub(super) fn sampled(
        &mut self,
        of: Candidates,
        samples: usize,
        score: impl Fn(&Index<'_>, Slot) -> u64,
    ) -> Option<Slot> {
        let start = Place(random(self.shared.ticks));
        let index = self.index();
        let (mut seen, mut least) = (0, None);
        let mut place = start;
        for _ in 0..LOOKED_AT.max(samples) {
            let mut look_at = |slot| {
                let score = score(&index, slot);
                seen += 1;
                if least.is_none_or(|(least, _)| score < least) {
                    least = Some((score, slot));
                }
            };
            index.pass(place, of, |passed| {
                passed.each_of(passed.all()).for_each(&mut look_at);
            });
            let next = index.behind(place, 1, 0);
            if next.is_none() {
                index.stashed(of).for_each(look_at);
            }
            if seen >= samples {
                break;
            }
            place = next.unwrap_or_default();
        }
        least.map(|(_, slot)| slot)
    }
}
