//! The scores of a sorted set by the hashes of their members: beside its tree, whose items are in the order
//! of their scores. Never logged: it is made again from the tree.
//!
//! ```text
//!  hash of 32 bits, spread -> range -> bucket (spiral storage: the largest bucket is the next that is split)
//!
//!  bucket   | hash | hash | hash | ... | score | score | score | ...      by hash, some 50 to 190 entries
//! ```
//!
//! A score takes 4 bytes where all of a bucket are integers of 32 bits, else 8. There is no member: a hit is
//! looked up in the tree by its score, which costs a member that is not there a look once in 2^32 / n times.
//! So an entry takes 8 or 12 bytes, some 9 or 13 with the room in which buckets grow. A split moves the
//! upper half of one bucket, so no insertion takes long, however large the table is.
//!
//! Hashes are *spread* ([`spread`]): low ones are twice as dense as high ones, and ranges are split in their
//! order. So buckets have all sizes between one and its double, at any time the same part of them each size.
//! Buckets of one size would grow from one size class of the allocator to the next together, and leave slabs
//! behind of which little is used.
//!
//! ```text
//!  ranges   |0 |0'|1 |1'|2   |3   |4   |5   |6   |7   |     level 3, two ranges were split
//!  buckets   0  8  4  9  2    5    1    6    3    7
//! ```
//!
//! The entries of a bucket are those of one range of hashes. So a scan in the order of hashes needs no memory
//! of its own, and meets each entry that is there all the time, whatever is split or merged meanwhile.
//!
//! Invariants ([`ScoreTable::verify`]): a bucket has the hashes of its range alone, ascending; `heap` is what
//! the buckets take.

use super::kind::Scores;
use super::node::class;
use crate::prefetch::{LINE, prefetch};

/// Entries of a bucket, on average.
const MEAN: u64 = 96;
/// Bits of a hash.
const BITS: u32 = u32::BITS;
const WORD: usize = size_of::<u32>();
/// Entries before and behind the place where one is expected that are loaded with it: half a cache line.
const NEAR: usize = LINE / WORD / 2;

/// See the module.
#[derive(Debug)]
pub(super) struct ScoreTable {
    buckets: Vec<Bucket>,
    /// There are two to this power of ranges of hashes, of which the first were split since.
    level: u32,
    len: u64,
    /// Bytes of the buckets' entries.
    heap: usize,
}

/// See the module.
#[derive(Debug, Default)]
struct Bucket {
    words: Vec<u32>,
    /// Whether scores have 8 bytes.
    is_wide: bool,
}

/// A hash among those of which low ones are denser: u for h, where both are parts of 2^32 and u is a third of
/// 2h + h^2. The density falls from 3/2 to 3/4, nearly as two to the power of -u.
#[inline]
pub(super) fn spread(hash: u32) -> u32 {
    let hash = u64::from(hash);
    ((2 * hash + ((hash * hash) >> BITS)) / 3) as u32
}

/// The bucket of a range, of two to the power of `level`. Buckets are in the order in which they were made:
/// the upper halves of the ranges of a level are behind all of that level.
#[inline]
fn bucket_of(range: usize, level: u32) -> usize {
    match range {
        0 => 0,
        _ => {
            let above = range.trailing_zeros() + 1;
            (1 << (level - above)) + (range >> above)
        }
    }
}

/// A score that takes 4 bytes.
fn narrow(score: f64) -> Option<i32> {
    let integer = score as i32;
    (f64::from(integer) == score).then_some(integer)
}

impl Bucket {
    fn width(&self) -> usize {
        1 + usize::from(self.is_wide)
    }

    fn len(&self) -> usize {
        self.words.len() / (1 + self.width())
    }

    fn hashes(&self) -> &[u32] {
        &self.words[..self.len()]
    }

    fn score(&self, index: usize) -> f64 {
        let at = self.len() + index * self.width();
        match self.is_wide {
            false => f64::from(self.words[at] as i32),
            true => {
                let (low, high) = (self.words[at], self.words[at + 1]);
                f64::from_bits(u64::from(high) << BITS | u64::from(low))
            }
        }
    }

    /// About where a hash is, if hashes share so many bits here: they are spread evenly.
    #[inline]
    fn guess(&self, hash: u32, depth: u32) -> usize {
        let part = u64::from(hash << depth);
        ((part * self.len() as u64) >> BITS) as usize
    }

    /// The first entry whose hash is not below this one, which shares so many bits with all. A walk from
    /// where it is expected takes a few steps, all in one or two cache lines.
    #[inline]
    fn lower(&self, hash: u32, depth: u32) -> usize {
        let (hashes, mut at) = (self.hashes(), self.guess(hash, depth));
        while at < hashes.len() && hashes[at] < hash {
            at += 1;
        }
        while at > 0 && hashes[at - 1] >= hash {
            at -= 1;
        }
        at
    }

    fn bytes(&self) -> usize {
        match self.words.capacity() {
            0 => 0,
            words => class(words * WORD),
        }
    }

    /// Makes room for more words: up to the size class, which is a tenth on average.
    fn reserve(&mut self, more: usize) {
        let len = self.words.len() + more;
        if len > self.words.capacity() {
            let room = class(len * WORD) / WORD;
            self.words.reserve_exact(room - self.words.len());
        }
    }

    fn shrink(&mut self) {
        let len = self.words.len();
        if self.words.capacity() > len + len / 2 + 8 {
            self.words.shrink_to(class(len * WORD) / WORD);
        }
    }

    fn widen(&mut self) {
        let len = self.len();
        let scores: Vec<u64> = (0..len).map(|index| self.score(index).to_bits()).collect();
        self.words.truncate(len);
        self.reserve(len * 2);
        let words = scores
            .iter()
            .flat_map(|&bits| [bits as u32, (bits >> BITS) as u32]);
        self.words.extend(words);
        self.is_wide = true;
    }

    fn put_score(&mut self, at: usize, score: f64) {
        match narrow(score) {
            Some(integer) if !self.is_wide => self.words[at] = integer as u32,
            _ => {
                let bits = score.to_bits();
                self.words[at..at + 2].copy_from_slice(&[bits as u32, (bits >> BITS) as u32]);
            }
        }
    }

    fn insert(&mut self, (hash, depth): (u32, u32), score: f64) {
        if !self.is_wide && narrow(score).is_none() {
            self.widen();
        }
        let (len, width) = (self.len(), self.width());
        self.reserve(1 + width);
        let index = self.lower(hash, depth);
        let before = self.words.len();
        self.words.resize(before + 1 + width, 0);
        // The scores behind it, those before it, the hashes behind it.
        let at = len + index * width;
        self.words.copy_within(at..before, at + 1 + width);
        self.words.copy_within(index..at, index + 1);
        self.words[index] = hash;
        self.put_score(at + 1, score);
    }

    fn remove(&mut self, index: usize) {
        let (len, width) = (self.len(), self.width());
        let at = len + index * width;
        self.words.copy_within(index + 1..at, index);
        self.words.copy_within(at + width.., at - 1);
        self.words.truncate(self.words.len() - 1 - width);
        self.shrink();
    }

    /// Moves the entries from a hash on to a bucket of their own.
    fn split_off(&mut self, hash: u32) -> Bucket {
        let (len, width) = (self.len(), self.width());
        let index = self.hashes().partition_point(|&other| other < hash);
        let words = (len - index) * (1 + width);
        let mut upper = Bucket {
            words: Vec::new(),
            is_wide: self.is_wide,
        };
        if words > 0 {
            upper.reserve(words);
        }
        let at = len + index * width;
        upper.words.extend_from_slice(&self.words[index..len]);
        upper.words.extend_from_slice(&self.words[at..]);
        self.words.copy_within(len..at, index);
        self.words.truncate(index * (1 + width));
        self.words.shrink_to(class(self.words.len() * WORD) / WORD);
        upper
    }

    /// Takes the entries of one whose hashes are above.
    fn append(&mut self, mut upper: Bucket) {
        if self.is_wide != upper.is_wide {
            match self.is_wide {
                true => upper.widen(),
                false => self.widen(),
            }
        }
        let len = self.len();
        self.reserve(upper.words.len());
        let scores = self.words.split_off(len);
        self.words.reserve_exact(scores.len() + upper.words.len());
        let (hashes, above) = upper.words.split_at(upper.len());
        self.words.extend_from_slice(hashes);
        self.words.extend_from_slice(&scores);
        self.words.extend_from_slice(above);
    }

    /// The entry of a hash and a score.
    fn find(&self, (hash, depth): (u32, u32), score: f64) -> Option<usize> {
        let from = self.lower(hash, depth);
        let equal = self.hashes()[from..]
            .iter()
            .take_while(|&&other| other == hash);
        (from..from + equal.count()).find(|&index| self.score(index) == score)
    }
}

impl ScoreTable {
    pub(super) fn new() -> ScoreTable {
        ScoreTable {
            buckets: vec![Bucket::default()],
            level: 0,
            len: 0,
            heap: 0,
        }
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        class(self.buckets.capacity() * size_of::<Bucket>()) + self.heap
    }

    /// The bucket of a hash, and the bits of hashes that those in it share.
    #[inline]
    fn place(&self, hash: u32) -> (usize, u32) {
        let half = (u64::from(hash) >> (BITS - 1 - self.level)) as usize;
        let split = self.buckets.len() - (1 << self.level);
        match half / 2 < split {
            true => (bucket_of(half, self.level + 1), self.level + 1),
            false => (bucket_of(half / 2, self.level), self.level),
        }
    }

    /// Changes a bucket, and counts its bytes.
    fn edit<R>(&mut self, bucket: usize, edit: impl FnOnce(&mut Bucket) -> R) -> R {
        let bucket = &mut self.buckets[bucket];
        let before = bucket.bytes();
        let result = edit(bucket);
        self.heap = self.heap - before + bucket.bytes();
        result
    }

    /// Adds an entry.
    pub(super) fn insert(&mut self, hash: u32, score: f64) {
        let (bucket, depth) = self.place(hash);
        self.edit(bucket, |bucket| bucket.insert((hash, depth), score));
        self.len += 1;
        if self.len > MEAN * self.buckets.len() as u64 {
            self.split();
        }
    }

    /// Removes an entry of this hash and score, if there is one.
    pub(super) fn remove(&mut self, hash: u32, score: f64) {
        let (bucket, depth) = self.place(hash);
        let Some(index) = self.buckets[bucket].find((hash, depth), score) else {
            return;
        };
        self.edit(bucket, |bucket| bucket.remove(index));
        self.len -= 1;
        if self.buckets.len() > 1 && self.len < MEAN / 2 * self.buckets.len() as u64 {
            self.merge();
        }
    }

    /// Gives an entry of this hash and score another score.
    pub(super) fn change(&mut self, hash: u32, score: f64, to: f64) {
        let (bucket, depth) = self.place(hash);
        let its = &mut self.buckets[bucket];
        if its.is_wide || narrow(to).is_some() {
            if let Some(index) = its.find((hash, depth), score) {
                let at = its.len() + index * its.width();
                its.put_score(at, to);
            }
            return;
        }
        self.remove(hash, score);
        self.insert(hash, to);
    }

    fn split(&mut self) {
        let base = 1 << self.level;
        let range = self.buckets.len() - base;
        if self.level + 2 >= BITS {
            return;
        }
        let bucket = bucket_of(range, self.level);
        let middle = (2 * range as u32 + 1) << (BITS - 1 - self.level);
        let upper = self.edit(bucket, |bucket| bucket.split_off(middle));
        self.heap += upper.bytes();
        if self.buckets.len() == self.buckets.capacity() {
            self.buckets.reserve_exact(self.buckets.len() / 8 + 1);
        }
        self.buckets.push(upper);
        if self.buckets.len() == 2 * base {
            self.level += 1;
        }
    }

    fn merge(&mut self) {
        let Some(upper) = self.buckets.pop() else {
            return;
        };
        self.heap -= upper.bytes();
        if self.buckets.len() < 1 << self.level {
            self.level -= 1;
        }
        let range = self.buckets.len() - (1 << self.level);
        let bucket = bucket_of(range, self.level);
        self.edit(bucket, |bucket| bucket.append(upper));
        if self.buckets.capacity() > 2 * self.buckets.len() + 8 {
            self.buckets.shrink_to(self.buckets.len());
        }
    }

    /// Starts loading the head of the bucket of a hash.
    #[inline]
    pub(super) fn ask_for_bucket(&self, hash: u32) {
        prefetch((&raw const self.buckets[self.place(hash).0]).cast());
    }

    /// Starts loading what is about where the entry of a hash is in its bucket: hashes are spread evenly.
    #[inline]
    pub(super) fn ask_for_entry(&self, hash: u32) {
        let (bucket, depth) = self.place(hash);
        let bucket = &self.buckets[bucket];
        let (len, width) = (bucket.len(), bucket.width());
        let near = bucket.guess(hash, depth).saturating_sub(NEAR);
        let words = bucket.words.as_ptr();
        for at in [near, near + 2 * NEAR] {
            prefetch(words.wrapping_add(at).cast());
            prefetch(words.wrapping_add(len + at * width).cast());
        }
    }

    /// The scores of a hash: those of its member, if there is one, and by chance of others.
    pub(super) fn scores(&self, hash: u32) -> impl Iterator<Item = f64> {
        let (bucket, depth) = self.place(hash);
        let bucket = &self.buckets[bucket];
        let hashes = bucket.hashes();
        let from = bucket.lower(hash, depth);
        let equal = hashes[from..]
            .iter()
            .take_while(move |&&other| other == hash);
        (from..).zip(equal).map(|(index, _)| bucket.score(index))
    }

    /// Shows the entries of a bucket from a hash on. Returns the hash at which the next bucket begins; 2^32
    /// at the end.
    pub(super) fn entries_from(&self, hash: u32, visit: &mut dyn FnMut(u32, f64)) -> u64 {
        let (bucket, depth) = self.place(hash);
        let its = &self.buckets[bucket];
        let from = its.lower(hash, depth);
        for index in from..its.len() {
            visit(its.hashes()[index], its.score(index));
        }
        let shift = BITS - depth;
        ((u64::from(hash) >> shift) + 1) << shift
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// If one does not hold.
    pub(super) fn verify(&self) {
        let (mut len, mut heap) = (0, 0);
        for (number, bucket) in self.buckets.iter().enumerate() {
            assert!(bucket.hashes().is_sorted());
            assert_eq!(bucket.words.len() % (1 + bucket.width()), 0);
            for &hash in bucket.hashes() {
                assert_eq!(self.place(hash).0, number);
            }
            len += bucket.len() as u64;
            heap += bucket.bytes();
        }
        assert_eq!((len, heap), (self.len, self.heap));
        let base = 1 << self.level;
        assert!((base..2 * base).contains(&self.buckets.len()));
    }
}

/// The score by which an entry is found: 0 is -0, too.
pub(super) fn plain(score: f64) -> f64 {
    debug_assert_eq!(Scores::order_of(score), Scores::order_of(score + 0.0));
    score + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_and_scanned_while_the_table_grows_and_shrinks() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut table, mut model) = (ScoreTable::new(), Vec::new());
        let scores = [0.0, 1.0, -7.0, 0.5, 3e9, f64::INFINITY, f64::NEG_INFINITY];
        for step in 0..60_000 {
            let grows = step / 10_000 % 2 == 0;
            if model.is_empty() || random.u8(..10) < if grows { 8 } else { 1 } {
                // Hashes that come again and again, too.
                let hash = random.u32(..) & if random.bool() { u32::MAX } else { 0xf000_0003 };
                let score = scores[random.usize(..scores.len())];
                table.insert(hash, score);
                model.push((hash, score));
            } else {
                let index = random.usize(..model.len());
                let (hash, score) = model[index];
                match random.u8(..4) {
                    0 => {
                        let to = scores[random.usize(..scores.len())];
                        table.change(hash, score, to);
                        model[index].1 = to;
                    }
                    _ => {
                        table.remove(hash, score);
                        model.swap_remove(index);
                    }
                }
            }
            if step % 1_000 == 0 {
                table.verify();
                let (mut all, mut at) = (Vec::new(), 0);
                while at < 1 << BITS {
                    at = table.entries_from(at as u32, &mut |hash, score| all.push((hash, score)));
                }
                let by_bits = |entries: &[(u32, f64)]| {
                    let mut all: Vec<_> = entries
                        .iter()
                        .map(|&(hash, score)| (hash, score.to_bits()))
                        .collect();
                    all.sort_unstable();
                    all
                };
                assert!(all.is_sorted_by_key(|&(hash, _)| hash));
                assert_eq!(by_bits(&all), by_bits(&model));
                for &(hash, score) in &model {
                    assert!(table.scores(hash).any(|other| other == score));
                }
            }
        }
    }

    #[test]
    fn entries_take_few_bytes() {
        let mut random = fastrand::Rng::with_seed(8);
        let mut table = ScoreTable::new();
        for number in 1..=300_000 {
            table.insert(spread(random.u32(..)), f64::from(random.i32(..)));
            if number % 10_000 == 0 {
                let each = table.bytes() as f64 / f64::from(number);
                assert!(each < 9.9, "{each} bytes an entry at {number}");
            }
        }
    }

    /// Whatever the number of entries: the same part of all buckets has each size, so that bytes which a
    /// bucket gives back are taken by the next that comes to their size.
    #[test]
    fn buckets_have_all_sizes_at_any_time() {
        let mut random = fastrand::Rng::with_seed(9);
        let mut table = ScoreTable::new();
        let mut parts: Vec<[f64; 3]> = Vec::new();
        for number in 1..=200_000u64 {
            table.insert(spread(random.u32(..)), 1.0);
            if number > 60_000 && number % 5_000 == 0 {
                let sizes = table.buckets.iter().map(Bucket::len);
                let (mut small, mut large, mut all) = (0.0, 0.0, 0.0);
                for size in sizes {
                    assert!((20..300).contains(&size), "{size}");
                    small += f64::from(u8::from(size < 80));
                    large += f64::from(u8::from(size > 112));
                    all += 1.0;
                }
                parts.push([small / all, large / all, 1.0 - (small + large) / all]);
            }
        }
        for part in 0..3 {
            let of = parts.iter().map(|parts| parts[part]);
            let (least, most) = of.fold((1.0f64, 0.0f64), |(least, most), one| {
                (least.min(one), most.max(one))
            });
            assert!(least > 0.2 && most - least < 0.15, "{part}: {least} {most}");
        }
    }

    #[test]
    fn a_spread_hash_keeps_the_order() {
        let hashes = (0..=u32::MAX).step_by(4097).chain([u32::MAX]);
        let spread: Vec<u32> = hashes.map(spread).collect();
        assert!(spread.is_sorted());
        assert!(spread[0] == 0 && spread[spread.len() - 1] > u32::MAX - 4);
    }
}
