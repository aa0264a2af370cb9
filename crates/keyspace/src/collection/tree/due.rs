//! Items that expire: which leaves have some whose time has come, without a look at the others.
//!
//! A *mark* is a time and the upper half of an order key, 16 bytes. The marks of a tree are an ordered set; a
//! tree without items that expire has none, and no set. There is about one mark for each leaf with such
//! items: that of the first of them to expire.
//!
//! ```text
//!  marks            (t1, k7)   (t2, k3)   (t5, k9) ...        the earliest first
//!                       |          |
//!  leaves    [0, k5)    |      [k2, k4)      ...
//!                   [k5, k8)
//! ```
//!
//! Invariant: for each leaf with items that expire there is a mark in its range that is not later than the
//! first of them. Splits note one mark for each new leaf; merges leave the marks of both. A mark may be out
//! of date: its item has got another time, or is gone. It does no harm: at its time the leaf is looked at,
//! and the right mark takes its place.

use std::collections::BTreeSet;

use super::base::Tree;
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::run::{EXPIRING, Item, Run};

/// When, and where: the upper half of an order key.
pub(super) type Mark = (u64, u64);

/// Bytes of memory for a mark: nodes of the set are about two thirds full.
const MARK_BYTES: usize = 24;
/// Marks beyond the number of items at which those that are out of date are dropped.
const SPARE_MARKS: u64 = 64;

/// The marks of a tree.
#[derive(Debug, Default)]
pub(super) struct Marks(BTreeSet<Mark>);

impl Marks {
    pub(super) fn bytes(&self) -> usize {
        size_of::<Marks>() + self.0.len() * MARK_BYTES
    }
}

impl<K: LeafKind> Tree<K> {
    /// A time at or before which no item expires; none expires at all if there is none.
    #[inline]
    pub fn next_due(&self) -> Option<u64> {
        let marks = self.marks.as_ref()?;
        marks.0.first().map(|&(at, _)| at)
    }

    /// The mark of a run's first item to expire.
    #[inline]
    pub(super) fn mark_of(&self, run: Run<'_>) -> Option<Mark> {
        if run.flags() & EXPIRING == 0 {
            return None;
        }
        let (at, item) = run.soonest()?;
        Some((at, (self.kind.order(&item) >> 64) as u64))
    }

    /// Puts a mark in the place of another.
    pub(super) fn change_mark(&mut self, before: Option<Mark>, after: Option<Mark>) {
        if before == after && after.is_none() {
            return;
        }
        let marks = self.marks.get_or_insert_default();
        if let Some(before) = before.filter(|_| before != after) {
            marks.0.remove(&before);
        }
        marks.0.extend(after);
        match marks.0.len() as u64 {
            0 => self.marks = None,
            len if len > self.count + SPARE_MARKS => self.mark_anew(),
            _ => {}
        }
    }

    /// Makes the marks by a look at all leaves: none is out of date then.
    pub(super) fn mark_anew(&mut self) {
        let leaves = self.view().leaves(&Edge::default());
        let marks: BTreeSet<_> = leaves.filter_map(|leaf| self.mark_of(leaf.run)).collect();
        self.marks = (!marks.is_empty()).then(|| Box::new(Marks(marks)));
    }

    /// Whether a mark keeps the invariant for a leaf.
    pub(super) fn is_marked(&self, run: Run<'_>, from: &Edge<'_>, to: Option<&Edge<'_>>) -> bool {
        let Some((first, _)) = self.mark_of(run) else {
            return true;
        };
        let is_inside = |key: u64| {
            let (low, high) = (
                u128::from(key) << 64,
                u128::from(key) << 64 | u128::from(u64::MAX),
            );
            from.order <= high && to.is_none_or(|to| low <= to.order)
        };
        let mut marks = self.marks.iter().flat_map(|marks| &marks.0);
        marks.any(|&(at, key)| at <= first && is_inside(key))
    }

    /// Removes items that have expired at `now`, with those of up to `most` marks, and shows each of them.
    /// Returns at how many marks it has looked: fewer than `most` if nothing is left that has expired.
    ///
    /// Each leaf is written once, however many of its items go.
    pub fn remove_due(&mut self, now: u64, most: usize, visit: &mut dyn FnMut(&Item<'_>)) -> usize {
        for looked_at in 0..most {
            let first = self
                .marks
                .as_ref()
                .and_then(|marks| marks.0.first().copied());
            let Some(mark) = first.filter(|&(at, _)| now > at) else {
                return looked_at;
            };
            self.change_mark(Some(mark), None);
            let (low, high) = (u128::from(mark.1) << 64, u128::from(u64::MAX));
            let mut from = (low, Vec::new());
            loop {
                let edge = Edge {
                    order: from.0,
                    name: &from.1,
                };
                // Nearly always there is none: items of one upper half are in one leaf.
                let next = self.view().leaves(&edge).nth(1);
                let next = next.filter(|leaf| leaf.order <= low | high);
                let next = next.map(|leaf| (leaf.order, leaf.fence.to_vec()));
                self.remove_due_in(&edge, now, visit);
                match next {
                    Some(next) => from = next,
                    None => break,
                }
            }
        }
        most
    }

    /// Removes items that have expired from the leaf that covers an edge.
    fn remove_due_in(&mut self, edge: &Edge<'_>, now: u64, visit: &mut dyn FnMut(&Item<'_>)) {
        let mut path = self.view().seek(edge);
        let mark = self.mark_of(path.leaf().run());
        if mark.is_none_or(|(at, _)| now <= at) {
            return self.change_mark(None, mark);
        }
        self.own_inner(&mut path);
        let leaf = self.own_leaf(&mut path, 0);
        let mut removed = 0;
        leaf.edit(|run| removed = run.remove_due(now, visit));
        self.count_up(&path, -(removed as i64));
        self.change_mark(mark, self.mark_of(leaf.run()));
        self.slim_now(&mut path);
    }
}
