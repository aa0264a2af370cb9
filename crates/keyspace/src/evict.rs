//! Which entry goes when memory is short: what is known of an entry's use, and what is remembered of those
//! that went.
//!
//! ```text
//!  heat        two bits beside the entry's slot in its bucket:
//!              0 stale: not used since it came, and passed by the fast hand
//!              1 fresh: not used since it came
//!              2 cool, 3 hot: used
//!  fast hand   goes over the buckets, makes stale what is fresh and takes what is stale, while more than a
//!              twentieth of the shard was not used
//!  slow hand   goes over the buckets, cools what is hot, and takes what is cool
//!  ghosts      two bytes for each of some keys that went unused: who comes back soon is cool at once
//! ```
//!
//! So what is used once leaves soon, after a lap of the fast hand at least; a scan passes through without
//! pushing out what is used again and again; and what was popular cools as the slow hand comes round. Where
//! lap after lap hardly anything is used before it goes, as when more keys than there is room for are asked
//! for in turn, half of what is stale is kept: what stays may be met again, what goes by will not be. It is
//! the idea of S3-FIFO, with the order of hashes in the place of its queues: no list, no pointers, and a use
//! is a store to a line that the look-up has just read, if it changes anything. `examples/eviction` compares
//! it with exact LRU, with what Redis does, with SIEVE, S3-FIFO and W-TinyLFU; docs/eviction.md has the
//! table.
//!
//! Beside that an entry's header has 24 bits that tell OBJECT about its use: the second of the last one, or
//! ([`Access::Frequency`]) the minute of the last one and a counter that grows with its logarithm.
//!
//! What does not live here: when memory is short (the server's), and the walk over a shard's buckets
//! (`shard/evicting.rs`).

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use crate::hash::Place;

/// The heat of an entry that was not used since it came, when the fast hand has passed it.
pub(crate) const STALE: u8 = 0;
/// The heat of an entry that was not used since it came.
pub(crate) const FRESH: u8 = 1;
/// What an entry becomes by its first use, and what one has from the beginning that went not long ago. The
/// slow hand takes it.
pub(crate) const COOL: u8 = 2;
/// The warmest.
pub(crate) const HOT: u8 = 3;

/// Whether an entry was used since it came.
#[inline]
pub(crate) fn is_used(heat: u8) -> bool {
    heat >= COOL
}

/// Which entries may go, and which of them goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Only entries with an expiry may go.
    pub volatile_only: bool,
    /// Who goes first.
    pub order: Order,
    /// Entries compared by [`Order::Soonest`]: the more the better it chooses.
    pub samples: usize,
}

/// Which entry goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The one that is least likely to be used again, by what is known of its use.
    Coldest,
    /// Any.
    Random,
    /// Of some, the one whose time comes first.
    Soonest,
}

/// What is noted when an entry is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Access {
    /// The second, for OBJECT IDLETIME: nothing is ever evicted.
    Clock = 0,
    /// The second, and that it is warmer.
    Heat = 1,
    /// The minute, a count of uses on a logarithmic scale, and that it is warmer.
    Frequency = 2,
}

/// How uses are noted, for all shards.
pub(crate) struct Noting {
    access: AtomicU8,
    log_factor: AtomicU32,
    decay_minutes: AtomicU32,
}

impl Default for Noting {
    fn default() -> Noting {
        Noting {
            access: AtomicU8::new(Access::Clock as u8),
            log_factor: AtomicU32::new(10),
            decay_minutes: AtomicU32::new(1),
        }
    }
}

impl Noting {
    pub(crate) fn set(&self, access: Access, log_factor: u32, decay_minutes: u32) {
        self.log_factor.store(log_factor, Relaxed);
        self.decay_minutes.store(decay_minutes, Relaxed);
        self.access.store(access as u8, Relaxed);
    }

    /// Whether more than the time is noted.
    #[inline]
    pub(crate) fn heats(&self) -> bool {
        self.access.load(Relaxed) != Access::Clock as u8
    }

    /// Whether uses are counted.
    #[inline]
    pub(crate) fn counts(&self) -> bool {
        self.access.load(Relaxed) == Access::Frequency as u8
    }

    /// The 24 bits of an entry that is new at a time (Unix, ms).
    #[inline]
    pub(crate) fn first(&self, now_ms: i64) -> u32 {
        if self.counts() {
            return minute(now_ms) << 8 | u32::from(FIRST_COUNT);
        }
        (now_ms / 1000) as u32 & 0xff_ffff
    }

    /// The 24 bits of an entry that is used at a time, when uses are counted.
    pub(crate) fn counted(&self, clock: u32, now_ms: i64, random: u64) -> u32 {
        let count = self.count(clock, now_ms);
        let above = count.saturating_sub(FIRST_COUNT);
        let factor = u64::from(self.log_factor.load(Relaxed));
        // One use in so many counts.
        let rarity = u64::from(above) * factor + 1;
        let more = u8::from(count < u8::MAX && random.is_multiple_of(rarity));
        minute(now_ms) << 8 | u32::from(count + more)
    }

    /// The 24 bits of an entry that was last used at a time, and so often.
    pub(crate) fn with_count(&self, count: u8, now_ms: i64) -> u32 {
        minute(now_ms) << 8 | u32::from(count)
    }

    /// The count in the 24 bits of an entry, less one for each period that has passed since its last use.
    pub(crate) fn count(&self, clock: u32, now_ms: i64) -> u8 {
        let idle_minutes = minute(now_ms).wrapping_sub(clock >> 8) & 0xffff;
        let periods = match self.decay_minutes.load(Relaxed) {
            0 => 0,
            minutes => idle_minutes / minutes,
        };
        (clock as u8).saturating_sub(periods.min(255) as u8)
    }
}

/// The count of a new entry: enough to survive until it has had the time to be used again.
const FIRST_COUNT: u8 = 5;

/// The minute of a time (Unix, ms), modulo 2^16.
fn minute(now_ms: i64) -> u32 {
    (now_ms / 60_000) as u32 & 0xffff
}

/// What is remembered of keys that went: 16 bits of each, in a table in which a newer one takes an older
/// one's place.
///
/// The place in the table comes from the high bits of a key's [`Place`], so the table can be made larger or
/// smaller without knowing the keys. Two keys are taken for the same once in 65,535.
#[derive(Default)]
pub(crate) struct Ghosts {
    prints: Box<[u16]>,
}

/// The smallest table.
const LEAST_GHOSTS: usize = 64;

impl Ghosts {
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.prints)
    }

    #[inline]
    fn slot(&self, place: Place) -> usize {
        place.home(self.prints.len())
    }

    /// 16 bits of a place that have no part in its slot; never 0, which marks a free one.
    #[inline]
    fn print(place: Place) -> u16 {
        ((place.0 >> 14) as u16).max(1)
    }

    pub(crate) fn remember(&mut self, place: Place) {
        if !self.prints.is_empty() {
            let slot = self.slot(place);
            self.prints[slot] = Ghosts::print(place);
        }
    }

    /// Whether a key is remembered already. If not it is from here on, but in the place of another only if
    /// `displaces`: of two that always displaced each other neither would ever be known.
    pub(crate) fn meet(&mut self, place: Place, displaces: bool) -> bool {
        if self.prints.is_empty() {
            return false;
        }
        let slot = self.slot(place);
        let (print, found) = (Ghosts::print(place), self.prints[slot]);
        if found == 0 || displaces {
            self.prints[slot] = print;
        }
        found == print
    }

    /// Whether a key is remembered, which it is no more.
    #[inline]
    pub(crate) fn recall(&mut self, place: Place) -> bool {
        if self.prints.is_empty() {
            return false;
        }
        let slot = self.slot(place);
        let found = self.prints[slot] == Ghosts::print(place);
        if found {
            self.prints[slot] = 0;
        }
        found
    }

    /// Has room for about three quarters as many keys as there are entries. With more some are remembered for
    /// so long that they are cold by the time they come back; with fewer keys that come round are not known
    /// again. Both were measured to be worse.
    #[inline]
    pub(crate) fn fit(&mut self, entries: usize) {
        let (wanted, is) = ((entries / 4 * 3).max(LEAST_GHOSTS), self.prints.len());
        if wanted * 3 / 4 > is || wanted * 4 / 3 < is {
            self.resize(wanted);
        }
    }

    #[cold]
    fn resize(&mut self, slots: usize) {
        let old = std::mem::take(&mut self.prints);
        if old.is_empty() {
            self.prints = vec![0; slots].into();
            return;
        }
        // Where one becomes several it is not known which is meant, so all are.
        let kept = (0..slots).map(|slot| old[slot * old.len() / slots]);
        self.prints = kept.collect();
    }
}

/// The access clock of a time: seconds, modulo 2^24.
#[inline]
pub(crate) fn clock_at(now_ms: i64) -> u32 {
    (now_ms / 1000) as u32 & 0xff_ffff
}

/// A random number, of which nothing depends that must be secret or even.
#[inline]
pub(crate) fn random(ticks: fn() -> u64) -> u64 {
    let mixed = ticks().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    #[test]
    fn counts_grow_with_the_logarithm_and_decay_with_time() {
        let mut random = fastrand::Rng::with_seed(1);
        let noting = Noting::default();
        noting.set(Access::Frequency, 10, 1);
        let uses = |clock: u32, times: usize, random: &mut fastrand::Rng| {
            (0..times).fold(clock, |clock, _| noting.counted(clock, 0, random.u64(..)))
        };
        let first = noting.first(0);
        assert_eq!(noting.count(first, 0), 5);
        let hundred = uses(first, 100, &mut random);
        let thousand = uses(hundred, 900, &mut random);
        let million = uses(thousand, 999_000, &mut random);
        // The figures that Redis' documentation has for its factor of 10, roughly.
        let near = |clock: u32, count: i32| (i32::from(clock as u8) - count).abs() <= count / 3;
        assert!(near(hundred, 10), "{}", hundred as u8);
        assert!(near(thousand, 18), "{}", thousand as u8);
        assert_eq!(million as u8, 255);
        let idle = noting.counted(million, 10 * MINUTE, 1);
        assert_eq!(noting.count(million, 10 * MINUTE), 245);
        assert_eq!((idle >> 8, noting.count(idle, 12 * MINUTE)), (10, 243));
        assert_eq!(noting.count(million, 1000 * MINUTE), 0);
        noting.set(Access::Frequency, 0, 0);
        assert_eq!(noting.count(million, 1000 * MINUTE), 255);
        let every = uses(first, 10, &mut random);
        assert_eq!(noting.count(every, 0), 15);
    }

    #[test]
    fn ghosts_are_recalled_once_also_after_the_table_has_grown_and_shrunk() {
        let mut random = fastrand::Rng::with_seed(2);
        let mut ghosts = Ghosts::default();
        assert!(!ghosts.recall(Place(1)));
        ghosts.fit(1000);
        assert_eq!(ghosts.memory(), 1500);
        let places: Vec<Place> = (0..100).map(|_| Place(random.u64(..))).collect();
        places.iter().for_each(|&place| ghosts.remember(place));
        ghosts.fit(1200);
        assert_eq!(ghosts.memory(), 1500);
        ghosts.fit(5000);
        assert_eq!(ghosts.memory(), 7500);
        let found = places.iter().filter(|&&place| ghosts.recall(place)).count();
        assert!(found >= 80, "{found}");
        let again = places.iter().filter(|&&place| ghosts.recall(place)).count();
        assert!(again <= 1, "{again}");
        assert!(!ghosts.meet(places[0], true) && ghosts.meet(places[0], false));
        assert!(ghosts.recall(places[0]) && !ghosts.meet(places[0], false));
        let other = Place(places[0].0 ^ 1 << 20);
        assert!(!ghosts.meet(other, false) && ghosts.recall(places[0]));
        places.iter().for_each(|&place| ghosts.remember(place));
        ghosts.fit(300);
        assert_eq!(ghosts.memory(), 450);
        // One of several that fall together is left, or none where the one looked at was free.
        let found = places.iter().filter(|&&place| ghosts.recall(place)).count();
        assert!((3..60).contains(&found), "{found}");
    }
}
