//! The members of a sorted set and their scores, to be read: of a run inside an entry, or of a large one.

use super::any::{Collection, Held};
use super::cell::Cell;
use super::items::ItemsRef;
use super::kind::{Edge, Scores};
use super::node::Base;
use super::run::{Fraction, Item, Run};
use super::sorted::{SortedSet, score_edges, score_of};
use super::view::{View, lower};

/// A place between the members of a sorted set.
#[derive(Clone, Copy, Debug)]
pub enum Bound<'a> {
    /// Before all members of a score.
    Score(f64),
    /// Behind all members of a score.
    BehindScore(f64),
    /// Before a member, among those of a score.
    Member(f64, &'a [u8]),
    /// Behind a member, among those of a score.
    BehindMember(f64, &'a [u8]),
}

impl Bound<'_> {
    fn with<R>(self, with: impl FnOnce(&Edge<'_>) -> R) -> R {
        let at = |score: f64, name: &[u8]| {
            u128::from(Scores::order_of(score)) << 64 | u128::from(Scores::first_bytes(name))
        };
        match self {
            Bound::Score(score) => with(&score_edges(score).0),
            Bound::BehindScore(score) => with(&score_edges(score).1),
            Bound::Member(score, name) => {
                let order = at(score, name);
                with(&Edge { order, name })
            }
            Bound::BehindMember(score, name) => {
                // The next text in the order of bytes.
                let name = [name, &[0]].concat();
                let order = at(score, &name);
                with(&Edge { order, name: &name })
            }
        }
    }
}

/// The members of a sorted set and their scores, to be read.
#[derive(Clone, Copy, Debug)]
pub enum SortedRef<'e> {
    /// Of a small one.
    Run(Run<'e>),
    /// Of a large one.
    Tree(&'e SortedSet),
}

impl<'e> SortedRef<'e> {
    /// The members of a large collection; `None` if it is no sorted set.
    pub fn of(collection: &'e Collection) -> Option<SortedRef<'e>> {
        match collection {
            Collection::SortedSet(set) => Some(SortedRef::Tree(set)),
            _ => None,
        }
    }

    /// The items, by rank.
    #[inline]
    pub fn items(self) -> ItemsRef<'e, Scores> {
        match self {
            SortedRef::Run(run) => ItemsRef::Run(run),
            SortedRef::Tree(tree) => ItemsRef::Tree(tree.view()),
        }
    }

    /// How many members there are.
    #[inline]
    pub fn len(self) -> u64 {
        self.items().len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether items are in the log alone.
    #[inline]
    pub fn has_cold_leaves(self) -> bool {
        match self {
            SortedRef::Run(_) => false,
            SortedRef::Tree(tree) => tree.cold_leaves() > 0,
        }
    }

    /// The score of a member.
    #[inline]
    pub fn score(self, member: Cell<'_>) -> Option<f64> {
        let item = match self {
            SortedRef::Run(run) => run.lookup(member).map(|(_, item)| item),
            SortedRef::Tree(tree) => tree.get(member),
        };
        item.as_ref().map(score_of)
    }

    /// How many members come before one, if it is there.
    #[inline]
    pub fn rank(self, member: Cell<'_>) -> Option<u64> {
        match self {
            SortedRef::Run(run) => run.find(member).map(|index| index as u64),
            SortedRef::Tree(tree) => tree.rank(member),
        }
    }

    /// How many members are before a place.
    pub fn count_before(self, bound: Bound<'_>) -> u64 {
        bound.with(|edge| match self {
            SortedRef::Run(run) => lower(&Scores, run, edge, Fraction::HALF) as u64,
            SortedRef::Tree(tree) => tree.view().count_before(edge),
        })
    }

    /// The record of the leaf that has to be in memory for [`SortedRef::count_before`], if it is cold.
    pub fn cold_at(self, bound: Bound<'_>) -> Option<Base> {
        bound.with(|edge| match self {
            SortedRef::Run(_) => None,
            SortedRef::Tree(tree) => tree.view().cold_covering(edge),
        })
    }
}

impl<'e, K: Held> ItemsRef<'e, K> {
    /// Shows the items of ranks below `end` and not below `start`, from the last on, as many as are in one
    /// leaf. Returns the end of those that are left.
    #[inline]
    pub fn items_before(self, start: u64, end: u64, mut visit: impl FnMut(Item<'e>)) -> u64 {
        let Some(last) = end.checked_sub(1).filter(|&last| last >= start) else {
            return start;
        };
        let (run, index): (Run<'e>, usize) = match self {
            ItemsRef::Run(run) => (run, last as usize),
            ItemsRef::Tree(view) => leaf_at(view, last),
        };
        let mut group: [Option<Item<'e>>; 8] = [None; 8];
        let mut until = (index + 1).min(run.count());
        let least = until - until.min((end - start) as usize);
        let shown = (until - least) as u64;
        while until > least {
            let from = ((until - 1) / 8 * 8).max(least);
            let places = group.iter_mut().zip(run.range(from));
            let count = places
                .take(until - from)
                .map(|(place, item)| *place = Some(item))
                .count();
            group[..count]
                .iter()
                .rev()
                .flatten()
                .for_each(|&item| visit(item));
            until = from;
        }
        end - shown
    }

    /// Shows the items from a rank on, to before that of `end`, as many as are in one leaf. Returns the rank
    /// of the next.
    #[inline]
    pub fn items_behind(self, rank: u64, end: u64, mut visit: impl FnMut(Item<'e>)) -> u64 {
        if rank >= end {
            return end;
        }
        let (run, index, count) = self.leaf_behind(rank, end);
        run.items(index, count, &mut visit);
        rank + count as u64
    }

    /// The same of names.
    #[inline]
    pub fn names_behind(self, rank: u64, end: u64, visit: impl FnMut(Cell<'e>)) -> u64 {
        if rank >= end {
            return end;
        }
        let (run, index, count) = self.leaf_behind(rank, end);
        run.names(index, count, visit);
        rank + count as u64
    }

    /// The run with the item of a rank, its index there, and how many of the ranks below `end` are behind it,
    /// with it.
    #[inline]
    fn leaf_behind(self, rank: u64, end: u64) -> (Run<'e>, usize, usize) {
        let (run, index): (Run<'e>, usize) = match self {
            ItemsRef::Run(run) => (run, rank as usize),
            ItemsRef::Tree(view) => leaf_at(view, rank),
        };
        let index = index.min(run.count());
        let count = (run.count() - index).min((end - rank) as usize);
        (run, index, count)
    }
}

fn leaf_at<K: Held>(view: View<'_, K>, rank: u64) -> (Run<'_>, usize) {
    let (path, index) = view.seek_rank(rank);
    (view.run_of(path.leaf()), index)
}
