//! Stale buckets of a multi-read, as a bit set.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use keyspace::ShardId;

/// Bit set of stale buckets. Bits change under the lock of the bucket's shard, or while no worker is inside a
/// turn. Reads at other times may be out of date, but are never torn.
pub(crate) struct Stale {
    pub(crate) db: usize,
    words: Box<[AtomicU64]>,
    /// Bits of a hash that select a bucket.
    bits: u32,
    /// Bits of a bucket number that do not select its shard.
    bits_inside: u32,
}

impl Stale {
    /// All buckets, stale: about one for each key, at least one for each shard.
    pub(crate) fn all(db: usize, keys: usize, shards: usize) -> Stale {
        let buckets = keys.max(shards).max(64).next_power_of_two();
        Stale {
            db,
            words: (0..buckets / 64).map(|_| AtomicU64::new(!0)).collect(),
            bits: buckets.ilog2(),
            bits_inside: buckets.ilog2() - shards.ilog2(),
        }
    }

    /// Number of buckets.
    pub(crate) fn buckets(&self) -> usize {
        self.words.len() * 64
    }

    #[inline]
    pub(crate) fn bucket_of(&self, hash: u64) -> usize {
        (hash >> (64 - self.bits)) as usize
    }

    /// A hash of this bucket.
    pub(crate) fn hash_of(&self, bucket: usize) -> u64 {
        (bucket as u64) << (64 - self.bits)
    }

    pub(crate) fn shard_of(&self, bucket: usize) -> ShardId {
        ShardId(bucket >> self.bits_inside)
    }

    #[inline]
    pub(crate) fn set(&self, bucket: usize) {
        self.words[bucket / 64].fetch_or(1 << (bucket % 64), Relaxed);
    }

    pub(crate) fn set_all(&self) {
        self.words.iter().for_each(|word| word.store(!0, Relaxed));
    }

    pub(crate) fn clear(&self, bucket: usize) {
        self.words[bucket / 64].fetch_and(!(1 << (bucket % 64)), Relaxed);
    }

    /// The first stale bucket at or after `from`.
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let first = self.words.get(from / 64)?.load(Relaxed) & (!0 << (from % 64));
        if first != 0 {
            return Some(from / 64 * 64 + first.trailing_zeros() as usize);
        }
        let behind = from / 64 + 1;
        let words = self.words[behind..].iter().enumerate();
        words
            .map(|(at, word)| (at, word.load(Relaxed)))
            .find(|&(_, word)| word != 0)
            .map(|(at, word)| (behind + at) * 64 + word.trailing_zeros() as usize)
    }

    pub(crate) fn count(&self) -> usize {
        let ones = |word: &AtomicU64| word.load(Relaxed).count_ones() as usize;
        self.words.iter().map(ones).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_found_in_order() {
        for (keys, shards) in [(1, 1), (1, 4096), (64, 2), (65, 16), (5000, 1024)] {
            let stale = Stale::all(0, keys, shards);
            let buckets = stale.buckets();
            assert!(buckets >= keys && buckets >= shards && buckets.is_power_of_two());
            assert_eq!(stale.count(), buckets);
            assert_eq!(stale.bucket_of(!0), buckets - 1);
            assert_eq!(stale.bucket_of(0), 0);
            assert_eq!(stale.shard_of(buckets - 1), ShardId(shards - 1));
            (0..buckets).for_each(|bucket| stale.clear(bucket));
            assert_eq!(stale.next(0), None);
            let set = [0, 1, buckets / 2 - 1, buckets / 2, buckets - 1];
            set.iter().for_each(|&bucket| stale.set(bucket));
            let found: Vec<usize> =
                std::iter::successors(stale.next(0), |at| stale.next(at + 1)).collect();
            assert_eq!(found, set);
            stale.set_all();
            assert_eq!(stale.count(), buckets);
        }
    }
}
