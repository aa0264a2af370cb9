//! Where a leaf is split.
//!
//! The place is anywhere in the middle third of the bytes: a hash of an order key decides. If all leaves were
//! split in halves, and items came in any order, all leaves would have about the same size at any time. They
//! would move from one size class of the allocator to the next together, and leave slabs of the class before
//! nearly empty. With splits at different places there are leaves of all sizes at any time.

use std::ops::Range;

use super::fill::integers_size;
use crate::collection::kind::LeafKind;
use crate::collection::run::{Packed, Run};

/// Parts of the bytes of a leaf, and the fewest that a side of a split gets.
const PARTS: usize = 64;
const PARTS_LEAST: usize = 22;

/// An item of a leaf that is split, and its order key.
pub(super) struct Piece<'a> {
    pub(super) order: u128,
    pub(super) packed: Packed<'a>,
}

/// Where a leaf is split that has too much.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Where the module says.
    Middle,
    /// So that the first item is alone: items come at the start.
    First,
    /// So that the last item is alone: items come at the end.
    Last,
}

/// Ranges of pieces that each fit a leaf.
pub(super) struct Cutter<'p> {
    flags: u8,
    leaf_max: usize,
    /// Leaves of integers alone are shorter.
    has_integers: bool,
    /// See [`LeafKind::is_border`].
    is_border: fn(u128, u128) -> bool,
    pieces: &'p [Piece<'p>],
    /// Bytes of all pieces before one.
    sums: Vec<usize>,
    out: Vec<Range<usize>>,
}

impl<'p> Cutter<'p> {
    pub(super) fn new<K: LeafKind>(pieces: &'p [Piece<'p>], leaf_max: usize) -> Cutter<'p> {
        let mut sum = 0;
        let mut sums = Vec::with_capacity(pieces.len() + 1);
        sums.push(0);
        sums.extend(pieces.iter().map(|piece| {
            sum += piece.packed.size();
            sum
        }));
        Cutter {
            flags: K::FLAGS,
            leaf_max,
            has_integers: K::HAS_INTEGERS,
            is_border: K::is_border,
            pieces,
            sums,
            out: Vec::new(),
        }
    }

    /// The pieces of each leaf.
    pub(super) fn ranges(mut self, cut: Cut) -> Vec<Range<usize>> {
        let all = 0..self.pieces.len();
        let at = match cut {
            Cut::Middle => 0,
            Cut::First => 1,
            Cut::Last => all.end - 1,
        };
        let (left, right) = (0..at, at..all.end);
        match cut != Cut::Middle && self.fits(&left) && self.fits(&right) {
            true => self.out.extend([left, right]),
            false => self.cut(all),
        }
        self.out
    }

    fn fits(&self, pieces: &Range<usize>) -> bool {
        let items = self.sums[pieces.end] - self.sums[pieces.start];
        if pieces.len() == 1 || Run::size_of(self.flags, pieces.len(), items) <= self.leaf_max {
            return true;
        }
        let pieces = self.pieces[pieces.clone()].iter();
        let integers = self
            .has_integers
            .then(|| integers_size(pieces.map(|piece| piece.packed)));
        integers.flatten().is_some_and(|size| size <= self.leaf_max)
    }

    /// How many parts of the bytes the left side gets.
    fn left_parts(&self, pieces: &Range<usize>) -> usize {
        let order = self.pieces[pieces.start + pieces.len() / 2].order;
        let word = order as u64 ^ (order >> 64) as u64;
        let mixed = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        PARTS_LEAST + mixed as usize % (PARTS - 2 * PARTS_LEAST + 1)
    }

    /// Where a section ends; else the place nearest to that share of the bytes, where order keys differ, if
    /// they do.
    fn place(&self, pieces: &Range<usize>) -> usize {
        let order = |at: usize| self.pieces[at].order;
        if (self.is_border)(order(pieces.start), order(pieces.end - 1)) {
            let mut places = pieces.start + 1..pieces.end;
            let border = places.find(|&at| (self.is_border)(order(at - 1), order(at)));
            return border.expect("the first and the last are in different sections");
        }
        let (from, to) = (self.sums[pieces.start], self.sums[pieces.end]);
        let wanted = from + (to - from) * self.left_parts(pieces) / PARTS;
        let at = self.sums[pieces.clone()].partition_point(|&sum| sum < wanted) + pieces.start;
        let nearer = match at > pieces.start
            && wanted - self.sums[at - 1] < self.sums[at].abs_diff(wanted)
        {
            true => at - 1,
            false => at,
        };
        let nearest = nearer.clamp(pieces.start + 1, pieces.end - 1);
        let near = pieces.len() / 4;
        let differs = |at: &usize| self.pieces[at - 1].order != self.pieces[*at].order;
        let places = (0..=near).flat_map(|by| [nearest.saturating_sub(by), nearest + by]);
        let inside = places.filter(|&at| at > pieces.start && at < pieces.end);
        inside.into_iter().find(differs).unwrap_or(nearest)
    }

    fn cut(&mut self, pieces: Range<usize>) {
        if self.fits(&pieces) {
            self.out.push(pieces);
            return;
        }
        let place = self.place(&pieces);
        self.cut(pieces.start..place);
        self.cut(place..pieces.end);
    }
}

#[cfg(test)]
mod tests {
    use crate::collection::cell::Cell;
    use crate::collection::kind::{Edge, Scores};
    use crate::collection::run::Item;
    use crate::collection::tree::{LEAF_MAX, Tree};

    /// Whatever the number of items: the same part of all leaves has each size, so that bytes which a leaf
    /// gives back are taken by the next that comes to their size.
    #[test]
    fn leaves_have_all_sizes_at_any_time() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut tree = Tree::new(Scores, LEAF_MAX);
        for number in 1..=120_000u32 {
            let (name, mut scratch) = (format!("{number:014}"), [0; 8]);
            let score = Scores::cell(f64::from(random.u32(..)) / 1000.0, &mut scratch);
            tree.set(&Item::pair(Cell::Bytes(name.as_bytes()), score));
            if number < 30_000 || number % 5_000 != 0 {
                continue;
            }
            let leaves = tree.view().leaves(&Edge::default());
            let sizes: Vec<usize> = leaves.map(|leaf| leaf.run().bytes().len()).collect();
            for quarter in 0..4 {
                let low = LEAF_MAX / 3 + quarter * LEAF_MAX / 6;
                let of = |size: &&usize| (low..low + LEAF_MAX / 6).contains(*size);
                let part = sizes.iter().filter(of).count() as f64 / sizes.len() as f64;
                assert!(
                    (0.12..0.40).contains(&part),
                    "{part} of the leaves in quarter {quarter} at {number}"
                );
            }
        }
    }
}
