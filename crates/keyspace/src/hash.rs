//! The hash of a key, and how its 64 bits are spent.
//!
//! ```text
//!  63          64-s                    32            30               0
//!  +------------+-----------------------+-------------+---------------+
//!  | shard (s)  | home bucket (from here down, by multiplication)     |
//!  +------------+-----------------------+-------------+---------------+
//!  after the shard's s bits are shifted out (a *place*):
//!  63                                   40..32  31..30
//!  | home bucket = place * buckets >> 64 | tag | more tag
//! ```
//!
//! The home bucket is a multiplication, not a mask, so a table may have any number of buckets and an
//! entry's order by place is the same in every table. SCAN cursors and resizing rest on that.

use std::fmt;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

/// The secret of one process, so that nobody outside can choose keys that collide.
#[derive(Clone)]
pub struct Seed {
    secrets: RapidSecrets,
    random: u64,
}

/// The secret is not shown.
impl fmt::Debug for Seed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Seed")
    }
}

impl Seed {
    /// A seed from random bits of the operating system.
    pub fn new(random: u64) -> Seed {
        Seed {
            secrets: RapidSecrets::seed(random),
            random,
        }
    }

    /// The random bits it was made of, for a seed that is kept in a log.
    pub fn random(&self) -> u64 {
        self.random
    }

    /// The hash of a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        rapidhash_v3_inline::<true, true, false>(key, &self.secrets)
    }
}

/// A hash with its shard's bits shifted out: where in its shard a key lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub(crate) u64);

impl Place {
    /// The home bucket in a table of `buckets`.
    #[inline]
    pub(crate) fn home(self, buckets: usize) -> usize {
        ((u128::from(self.0) * buckets as u128) >> 64) as usize
    }

    /// The byte kept beside the slot; never 0, which marks a free slot.
    #[inline]
    pub(crate) fn tag(self) -> u8 {
        ((self.0 >> 32) as u8).max(1)
    }

    /// Two more bits of tag, kept in the low bits of the reference.
    #[inline]
    pub(crate) fn tag_low(self) -> u64 {
        (self.0 >> 30) & 3
    }

    /// The first place whose home is `home` in a table of `buckets`; `None` behind the last bucket.
    pub(crate) fn first_of(home: usize, buckets: usize) -> Option<Place> {
        if home >= buckets {
            return None;
        }
        let numerator = (home as u128) << 64;
        Some(Place(numerator.div_ceil(buckets as u128) as u64))
    }
}

/// A key and its hash.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key.
    pub bytes: &'a [u8],
    /// Its hash, from [`crate::Keyspace::hash`].
    pub hash: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_place_of_a_bucket_is_in_it_and_the_one_before_is_not() {
        for buckets in [1usize, 3, 4, 5, 7, 8, 10, 12, 1000, 1 << 20, (1 << 24) + 1] {
            for home in [0, 1, 2, buckets / 2, buckets - 1] {
                let Some(first) = Place::first_of(home, buckets) else {
                    assert!(home >= buckets);
                    continue;
                };
                assert_eq!(first.home(buckets), home);
                if home > 0 {
                    assert_eq!(Place(first.0 - 1).home(buckets), home - 1);
                }
            }
            assert_eq!(Place::first_of(buckets, buckets), None);
        }
    }

    #[test]
    fn seeds_give_different_hashes() {
        assert_ne!(Seed::new(1).hash(b"key"), Seed::new(2).hash(b"key"));
        assert_eq!(Seed::new(1).hash(b"key"), Seed::new(1).hash(b"key"));
    }
}
