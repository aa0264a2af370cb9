//! IDs of entries.

/// The ID of an entry: a time (ms), and a number among those of one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Unix, ms.
    pub ms: u64,
    /// Sequence number.
    pub seq: u64,
}

/// Times and sequence numbers from this one on are the last of all in an order key.
pub(super) const FAR: u64 = (1 << 48) - 1;

impl Id {
    /// The first of all. No entry has it.
    pub const MIN: Id = Id { ms: 0, seq: 0 };
    /// The last of all.
    pub const MAX: Id = Id {
        ms: u64::MAX,
        seq: u64::MAX,
    };

    /// All bits of it.
    #[inline]
    pub fn bits(self) -> u128 {
        u128::from(self.ms) << 64 | u128::from(self.seq)
    }

    /// The ID of these bits.
    #[inline]
    pub fn of_bits(bits: u128) -> Id {
        Id {
            ms: (bits >> 64) as u64,
            seq: bits as u64,
        }
    }

    /// The next one, if there is one.
    #[inline]
    pub fn next(self) -> Option<Id> {
        self.bits().checked_add(1).map(Id::of_bits)
    }

    /// The one before, if there is one.
    #[inline]
    pub fn previous(self) -> Option<Id> {
        self.bits().checked_sub(1).map(Id::of_bits)
    }

    /// Whether an order key has all of it.
    #[inline]
    pub(super) fn is_near(self) -> bool {
        self.ms < FAR && self.seq < FAR
    }

    /// Its part of an order key.
    #[inline]
    pub(super) fn order(self) -> u128 {
        let seq = if self.ms < FAR { self.seq } else { FAR };
        u128::from(self.ms.min(FAR)) << 48 | u128::from(seq.min(FAR))
    }
}
