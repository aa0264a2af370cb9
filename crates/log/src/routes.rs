//! The records of a piece in the order of their keys' hashes, by counting: who applies them finds those of
//! one shard together.

/// There are at least so many bins: records of one bin are likely to be of one shard.
const BINS: usize = 1024;

/// Where a record is in its piece, and the hash of its key.
#[derive(Clone, Copy, Default)]
pub(crate) struct Route {
    pub(crate) hash: u64,
    pub(crate) at: u32,
}

/// Records of a piece in the order of their bins, in each bin in the order of the log.
pub(crate) struct Routes {
    /// Bits of the hash that name a bin.
    bits: u32,
    found: Vec<Route>,
    sorted: Vec<Route>,
    /// For each bin, where it begins among the sorted, and behind all where the last one ends.
    begins: Vec<u32>,
}

impl Routes {
    pub(crate) fn new(partitions: usize) -> Routes {
        let bins = partitions.max(BINS);
        Routes {
            bits: bins.trailing_zeros(),
            found: Vec::new(),
            sorted: Vec::new(),
            begins: vec![0; bins + 1],
        }
    }

    fn bin_of(&self, hash: u64) -> usize {
        (hash >> (u64::BITS - self.bits)) as usize
    }

    pub(crate) fn clear(&mut self) {
        self.found.clear();
        self.begins.fill(0);
    }

    pub(crate) fn add(&mut self, hash: u64, at: usize) {
        self.found.push(Route {
            hash,
            at: at as u32,
        });
        let bin = self.bin_of(hash);
        self.begins[bin + 1] += 1;
    }

    /// Sorts what was added, by counting.
    pub(crate) fn sort(&mut self) {
        let mut sum = 0;
        for begin in &mut self.begins {
            sum += *begin;
            *begin = sum;
        }
        self.sorted.clear();
        self.sorted.resize(self.found.len(), Route::default());
        // While it fills up, a bin's place says where its next record goes; that leaves it at the next bin's
        // beginning.
        for number in 0..self.found.len() {
            let route = self.found[number];
            let bin = self.bin_of(route.hash);
            self.sorted[self.begins[bin] as usize] = route;
            self.begins[bin] += 1;
        }
        self.begins.rotate_right(1);
        self.begins[0] = 0;
    }

    /// The records of all partitions, in the order of their bins.
    pub(crate) fn all(&self) -> &[Route] {
        &self.sorted
    }

    /// The records of a partition, of so many.
    pub(crate) fn of(&self, partition: usize, partitions: usize) -> &[Route] {
        let bins = (self.begins.len() - 1) / partitions;
        let begin = self.begins[partition * bins] as usize;
        let end = self.begins[(partition + 1) * bins] as usize;
        &self.sorted[begin..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_sorted_by_bin_and_stay_in_order() {
        for (partitions, count) in [(1, 0), (1, 100), (8, 5_000), (4096, 20_000)] {
            let mut routes = Routes::new(partitions);
            // Once more with less, for what is left of the first time.
            for count in [count, count / 3] {
                routes.clear();
                let hash = |at: usize| (at as u64 % 97).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (0..count).for_each(|at| routes.add(hash(at), at));
                routes.sort();
                let mut seen = 0;
                for partition in 0..partitions {
                    let part = routes.of(partition, partitions);
                    seen += part.len();
                    for pair in part.windows(2) {
                        let bins = pair.iter().map(|route| routes.bin_of(route.hash));
                        let keys: Vec<_> = bins.zip(pair.iter().map(|route| route.at)).collect();
                        assert!(keys[0] < keys[1], "{keys:?}");
                    }
                    for route in part {
                        assert_eq!(route.hash, hash(route.at as usize));
                        let wanted = ((u128::from(route.hash) * partitions as u128) >> 64) as usize;
                        assert_eq!(partition, wanted);
                    }
                }
                assert_eq!(seen, count);
            }
        }
    }
}
