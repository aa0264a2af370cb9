//! The two hands that go round a shard to find what may leave, and what the shard remembers between two
//! evictions.

use crate::bucket::SlotBits;
use crate::evict::{Ghosts, STALE};
use crate::hash::Place;
use crate::index::{Candidates, Index, Passed};

/// A lap of the fast hand is barren if of so many entries that it took not one more was used while it was
/// fresh.
const BARREN_SHARE: usize = 64;

/// And if of so many entries one was not used.
const BARREN_UNUSED_SHARE: usize = 8;

/// Barren laps in a row before some of what is stale is kept: as many as it takes to tell keys that come
/// round from data that is loaded.
const BARREN_LAPS: u8 = 4;

/// One in so many of those that are kept goes each time, so that others come in their place.
const KEPT_LAPS: usize = 64;

/// A hand goes over every so many buckets, then over those beside them, and so on. What is between two of its
/// visits to a bucket comes and goes at other times in the buckets around it, so that these are about equally
/// full: in a table that is emptied from one end to the other what comes has no place before the hand while
/// there is much behind it.
pub(super) const STRIDE: usize = 8;

/// Where a hand is.
#[derive(Clone, Copy, Default)]
pub(super) struct Hand {
    pub(super) place: Place,
    /// The first bucket that it has come from.
    pub(super) start: usize,
}

impl Hand {
    /// Moves on. Whether that begins another lap.
    fn advance(&mut self, index: &Index<'_>) -> bool {
        if let Some(next) = index.behind(self.place, STRIDE, self.start) {
            self.place = next;
            return false;
        }
        self.start = (self.start + 1) % STRIDE;
        let first = index.behind(Place::default(), self.start, 0);
        self.place = first.unwrap_or_default();
        self.start == 0
    }
}

/// What a shard remembers between evictions, also of values that went without their keys (`offloading`).
#[derive(Default)]
pub(crate) struct Evicting {
    pub(crate) ghosts: Ghosts,
    pub(super) fast: Hand,
    pub(super) slow: Hand,
    /// Entries that the fast hand has taken in this lap.
    pub(super) taken: usize,
    /// Laps of it in a row that were barren.
    barren_laps: u8,
    /// How often it has met an entry that is kept.
    kept: usize,
}

impl Evicting {
    /// Whether hardly any entry was used in this lap before the fast hand took it.
    pub(super) fn is_barren(&self, index: &Index<'_>) -> bool {
        index.first_uses() * BARREN_SHARE <= self.taken.max(BARREN_SHARE)
    }

    /// The slots in which the fast hand keeps what is stale.
    pub(super) fn kept_slots(&self, index: &Index<'_>, of: Candidates) -> SlotBits {
        // Of values that leave memory it is known where they are, and that they come back.
        let is_for_good = matches!(of, Candidates::All | Candidates::Volatile);
        if is_for_good && self.barren_laps >= BARREN_LAPS && self.is_barren(index) {
            return index.slots_to_keep();
        }
        0
    }

    /// Moves a hand on. `len` are all entries that might be unused.
    pub(super) fn advance(&mut self, is_fast: bool, index: &mut Index<'_>, len: usize) {
        if !is_fast {
            self.slow.advance(index);
        } else if self.fast.advance(index) {
            // Where nearly all entries were used there is nothing to gain.
            let is_barren = index.unused() * BARREN_UNUSED_SHARE > len && self.is_barren(index);
            self.barren_laps = match is_barren {
                true => self.barren_laps.saturating_add(1),
                false => 0,
            };
            self.taken = 0;
            index.reset_first_uses();
        }
    }

    /// Of the entries in a bucket that the fast hand has come to those that it may take.
    pub(super) fn stale(&mut self, passed: &Passed<'_>, kept_slots: SlotBits) -> SlotBits {
        let stale = passed.with_heat(STALE);
        let kept = stale & kept_slots;
        if kept != 0 {
            let before = self.kept / KEPT_LAPS;
            self.kept += kept.count_ones() as usize;
            if self.kept / KEPT_LAPS == before {
                return stale & !kept;
            }
        }
        stale
    }

    pub(super) fn memory(&self) -> usize {
        self.ghosts.memory() + size_of::<Evicting>()
    }
}
