//! One bucket: eight slots and everything the index knows about them, in one cache line.
//!
//! ```text
//!  byte  0        8        16               32                              64
//!        +--------+--------+----------------+--------------------------------+
//!        | 8 tags |  meta  | 8 x high 16    | 8 x low 32 bits of a reference |
//!        +--------+--------+----------------+--------------------------------+
//!
//!  meta  0..3   extent: how far entries that belong here were displaced, in buckets
//!        7      stashed: entries that belong here may be in the stash
//!        8..32  displacement of each slot's entry from its home bucket, 3 bits each
//!        32..48 heat of each slot's entry, 2 bits (see `evict`)
//!        48..56 volatile: the slot's entry has an expiry
//!        56..64 cold: the value of the slot's entry is in the log alone
//! ```
//!
//! A tag of 0 is a free slot. A reference is an entry's address; its low two bits, free because
//! entries are aligned to 4, hold two more bits of tag. With ten bits of tag a search touches an
//! entry that isn't its own once in 128 lookups.
//!
//! All words are atomics written only under the shard's lock, so that a worker may look without it to
//! decide what to prefetch. What such a look sees is advice, never truth.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Slots in a bucket.
pub(crate) const SLOTS: usize = 8;

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const SEVEN_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;

const EXTENT_MASK: u64 = 7;
const STASHED: u64 = 1 << 7;
const DISPLACEMENT_SHIFT: usize = 8;
const HEAT_SHIFT: usize = 32;
const VOLATILE_SHIFT: usize = 48;
const COLD_SHIFT: usize = 56;

#[repr(C, align(64))]
pub(crate) struct Bucket {
    tags: AtomicU64,
    meta: AtomicU64,
    high: [AtomicU16; SLOTS],
    low: [AtomicU32; SLOTS],
}

const _: () = assert!(size_of::<Bucket>() == 64 && align_of::<Bucket>() == 64);

/// What a bucket knows of an entry beside where it belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// It has an expiry.
    pub(crate) volatile: bool,
    /// Its value is in the log alone.
    pub(crate) cold: bool,
    /// 0 to 3.
    pub(crate) heat: u8,
}

/// A set of slots, as one bit at the top of each slot's byte.
#[derive(Clone, Copy)]
pub(crate) struct Slots(u64);

impl Iterator for Slots {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let slot = self.0.trailing_zeros() as usize / 8;
        self.0 &= self.0 - 1;
        Some(slot)
    }
}

/// A set of slots, as one bit each.
pub(crate) type SlotBits = u8;

/// Marks every byte of `word` that is zero, and no other.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    !(((word & SEVEN_BITS) + SEVEN_BITS) | word | SEVEN_BITS)
}

impl Bucket {
    /// The slots whose tag is `tag`.
    #[inline]
    pub(crate) fn matches(&self, tag: u8) -> Slots {
        Slots(zero_bytes(
            self.tags.load(Relaxed) ^ (LOW_BITS * u64::from(tag)),
        ))
    }

    /// Whether the tag of a slot is `tag`.
    #[inline]
    pub(crate) fn has_tag(&self, slot: usize, tag: u8) -> bool {
        (self.tags.load(Relaxed) >> (8 * slot)) as u8 == tag
    }

    /// The slots that hold an entry.
    #[inline]
    pub(crate) fn occupied(&self) -> Slots {
        Slots(!zero_bytes(self.tags.load(Relaxed)) & !SEVEN_BITS)
    }

    /// A slot that holds nothing.
    #[inline]
    pub(crate) fn free_slot(&self) -> Option<usize> {
        Slots(zero_bytes(self.tags.load(Relaxed))).next()
    }

    /// The raw reference in a slot: address and low tag.
    #[inline]
    pub(crate) fn reference(&self, slot: usize) -> u64 {
        u64::from(self.high[slot].load(Relaxed)) << 32 | u64::from(self.low[slot].load(Relaxed))
    }

    #[inline]
    pub(crate) fn set_reference(&self, slot: usize, raw: u64) {
        debug_assert!(raw >> 48 == 0, "user addresses have 48 bits");
        self.high[slot].store((raw >> 32) as u16, Relaxed);
        self.low[slot].store(raw as u32, Relaxed);
    }

    /// Fills a free slot.
    #[inline]
    pub(crate) fn fill(&self, slot: usize, tag: u8, raw: u64, displacement: usize, marks: Marks) {
        self.set_reference(slot, raw);
        let shift = DISPLACEMENT_SHIFT + 3 * slot;
        let mut meta = self.meta.load(Relaxed);
        meta = meta & !(7 << shift) | (displacement as u64) << shift;
        meta = meta & !(1 << (VOLATILE_SHIFT + slot))
            | u64::from(marks.volatile) << (VOLATILE_SHIFT + slot);
        meta = meta & !(1 << (COLD_SHIFT + slot)) | u64::from(marks.cold) << (COLD_SHIFT + slot);
        meta = meta & !(3 << (HEAT_SHIFT + 2 * slot))
            | u64::from(marks.heat) << (HEAT_SHIFT + 2 * slot);
        self.meta.store(meta, Relaxed);
        let tags = self.tags.load(Relaxed);
        self.tags.store(
            tags & !(0xff << (8 * slot)) | u64::from(tag) << (8 * slot),
            Relaxed,
        );
    }

    #[inline]
    pub(crate) fn clear(&self, slot: usize) {
        self.tags
            .store(self.tags.load(Relaxed) & !(0xff << (8 * slot)), Relaxed);
    }

    #[inline]
    pub(crate) fn displacement(&self, slot: usize) -> usize {
        (self.meta.load(Relaxed) >> (DISPLACEMENT_SHIFT + 3 * slot)) as usize & 7
    }

    /// Whether the entry in a slot has an expiry.
    #[inline]
    pub(crate) fn is_volatile(&self, slot: usize) -> bool {
        self.meta.load(Relaxed) >> (VOLATILE_SHIFT + slot) & 1 == 1
    }

    /// Notes whether the entry in a slot has an expiry, and whether its value is in the log alone.
    #[inline]
    pub(crate) fn set_marks(&self, slot: usize, volatile: bool, cold: bool) {
        let bits = 1 << (VOLATILE_SHIFT + slot) | 1 << (COLD_SHIFT + slot);
        let marks = u64::from(volatile) << VOLATILE_SHIFT | u64::from(cold) << COLD_SHIFT;
        let meta = self.meta.load(Relaxed);
        self.meta.store(meta & !bits | marks << slot, Relaxed);
    }

    /// How warm the entry in a slot is.
    #[inline]
    pub(crate) fn heat(&self, slot: usize) -> u8 {
        (self.meta.load(Relaxed) >> (HEAT_SHIFT + 2 * slot)) as u8 & 3
    }

    #[inline]
    pub(crate) fn set_heat(&self, slot: usize, heat: u8) {
        debug_assert!(heat <= 3);
        let shift = HEAT_SHIFT + 2 * slot;
        let meta = self.meta.load(Relaxed);
        self.meta
            .store(meta & !(3 << shift) | u64::from(heat) << shift, Relaxed);
    }

    /// The slots that hold an entry, or those of them whose entry has an expiry, or whose value is not in the
    /// log alone.
    #[inline]
    pub(crate) fn candidates(&self, volatile: bool, resident: bool) -> SlotBits {
        let (occupied, meta) = (self.occupied().0 >> 7, self.meta.load(Relaxed));
        // Bit 8 * n of the one factor and 56 - 7 * n of the other meet in bit 56 + n.
        let mut bits = (occupied.wrapping_mul(0x0102_0408_1020_4080) >> 56) as SlotBits;
        if volatile {
            bits &= (meta >> VOLATILE_SHIFT) as SlotBits;
        }
        if resident {
            bits &= !(meta >> COLD_SHIFT) as SlotBits;
        }
        bits
    }

    /// The slots with an entry of this heat, among others that have none.
    #[inline]
    pub(crate) fn with_heat(&self, heat: u8) -> SlotBits {
        let heats = (self.meta.load(Relaxed) >> HEAT_SHIFT) as u16 ^ (0x5555 * u16::from(heat));
        let mut bits = !(heats | heats >> 1) & 0x5555;
        bits = (bits | bits >> 1) & 0x3333;
        bits = (bits | bits >> 2) & 0x0f0f;
        (bits | bits >> 4) as SlotBits
    }

    /// Makes the entries in these slots, none of which is of heat 0, cooler by one.
    #[inline]
    pub(crate) fn cool(&self, slots: SlotBits) {
        let mut bits = u64::from(slots);
        bits = (bits | bits << 4) & 0x0f0f;
        bits = (bits | bits << 2) & 0x3333;
        bits = (bits | bits << 1) & 0x5555;
        let meta = self.meta.load(Relaxed);
        self.meta.store(meta - (bits << HEAT_SHIFT), Relaxed);
    }

    /// How many buckets behind this one may hold entries that belong here.
    #[inline]
    pub(crate) fn extent(&self) -> usize {
        (self.meta.load(Relaxed) & EXTENT_MASK) as usize
    }

    pub(crate) fn set_extent(&self, extent: usize) {
        debug_assert!(extent <= EXTENT_MASK as usize);
        self.meta.store(
            self.meta.load(Relaxed) & !EXTENT_MASK | extent as u64,
            Relaxed,
        );
    }

    #[inline]
    pub(crate) fn is_stashed(&self) -> bool {
        self.meta.load(Relaxed) & STASHED != 0
    }

    pub(crate) fn set_stashed(&self) {
        self.meta.store(self.meta.load(Relaxed) | STASHED, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Bucket {
        // SAFETY: a bucket of zeroes is an empty one; atomics may be zero.
        unsafe { std::mem::zeroed() }
    }

    fn is_cold(bucket: &Bucket, slot: usize) -> bool {
        bucket.meta.load(Relaxed) >> (COLD_SHIFT + slot) & 1 == 1
    }

    #[test]
    fn sets_of_slots_are_what_each_slot_says() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2_000 {
            let bucket = empty();
            let mut model = [None; SLOTS];
            for (slot, entry) in model.iter_mut().enumerate() {
                let marks = Marks {
                    volatile: random.bool(),
                    cold: random.bool(),
                    heat: random.u8(..4),
                };
                bucket.fill(slot, random.u8(1..), 8, random.usize(..8), marks);
                match random.bool() {
                    true => *entry = Some(marks),
                    false => bucket.clear(slot),
                }
            }
            let bits = |wanted: &dyn Fn(Marks) -> bool| {
                let slots = (0..SLOTS).filter(|&slot| model[slot].is_some_and(wanted));
                slots.fold(0, |bits, slot| bits | 1 << slot)
            };
            let all = bucket.candidates(false, false);
            assert_eq!(all, bits(&|_| true));
            assert_eq!(
                bucket.candidates(true, false),
                bits(&|marks| marks.volatile)
            );
            assert_eq!(bucket.candidates(false, true), bits(&|marks| !marks.cold));
            for heat in 0..4 {
                assert_eq!(
                    bucket.with_heat(heat) & all,
                    bits(&|marks| marks.heat == heat)
                );
            }
            let cooled = (bucket.with_heat(1) | bucket.with_heat(3)) & random.u8(..) & all;
            let before = bucket.meta.load(Relaxed) & !(0xffff << HEAT_SHIFT);
            bucket.cool(cooled);
            for (slot, entry) in model.iter().enumerate() {
                let less = cooled >> slot & 1;
                assert!(entry.is_none_or(|marks| bucket.heat(slot) == marks.heat - less));
            }
            assert_eq!(bucket.meta.load(Relaxed) & !(0xffff << HEAT_SHIFT), before);
        }
    }

    #[test]
    fn slots_are_found_by_tag_and_only_those() {
        let bucket = empty();
        for (slot, tag) in [1u8, 2, 1, 0xff, 0x80, 0x7f, 1, 3].into_iter().enumerate() {
            assert_eq!(bucket.free_slot(), Some(slot));
            bucket.fill(
                slot,
                tag,
                0x7fff_1234_5678 + 8 * slot as u64,
                slot % 8,
                Marks {
                    volatile: slot % 2 == 0,
                    cold: slot % 3 == 0,
                    heat: slot as u8 % 4,
                },
            );
        }
        assert_eq!(bucket.free_slot(), None);
        assert_eq!(bucket.matches(1).collect::<Vec<_>>(), [0, 2, 6]);
        assert_eq!(bucket.matches(0x80).collect::<Vec<_>>(), [4]);
        assert_eq!(bucket.matches(9).count(), 0);
        for slot in 0..8 {
            assert_eq!(bucket.reference(slot), 0x7fff_1234_5678 + 8 * slot as u64);
            assert_eq!(bucket.displacement(slot), slot % 8);
            assert_eq!(bucket.is_volatile(slot), slot % 2 == 0);
            assert_eq!(is_cold(&bucket, slot), slot % 3 == 0);
            assert_eq!(bucket.heat(slot), slot as u8 % 4);
        }
        bucket.clear(2);
        assert_eq!(bucket.free_slot(), Some(2));
        assert_eq!(bucket.occupied().collect::<Vec<_>>(), [0, 1, 3, 4, 5, 6, 7]);
        assert_eq!(bucket.matches(1).collect::<Vec<_>>(), [0, 6]);
    }

    #[test]
    fn meta_fields_do_not_touch_each_other() {
        let bucket = empty();
        let marks = Marks {
            volatile: true,
            cold: true,
            heat: 3,
        };
        bucket.fill(7, 9, 8, 7, marks);
        bucket.set_extent(5);
        bucket.set_stashed();
        assert_eq!((bucket.extent(), bucket.is_stashed()), (5, true));
        assert_eq!((bucket.displacement(7), bucket.is_volatile(7)), (7, true));
        bucket.set_extent(0);
        bucket.set_marks(7, false, true);
        assert!(is_cold(&bucket, 7) && !is_cold(&bucket, 6));
        bucket.set_marks(7, false, false);
        assert!(!is_cold(&bucket, 7));
        assert!(bucket.is_stashed() && bucket.displacement(7) == 7 && !bucket.is_volatile(7));
        assert_eq!((bucket.heat(7), bucket.heat(6)), (3, 0));
        bucket.set_heat(7, 1);
        assert_eq!((bucket.heat(7), bucket.heat(6)), (1, 0));
        assert!(bucket.is_stashed() && bucket.displacement(7) == 7);
    }
}
