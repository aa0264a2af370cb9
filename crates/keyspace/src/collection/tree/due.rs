//! Keeping the deadlines of a tree (`deadlines`) right.

use std::collections::BTreeSet;

use super::base::Tree;
use super::deadlines::{Deadline, Deadlines};
use crate::collection::kind::{Edge, LeafKind, LeafPlace};
use crate::collection::node::Node;
use crate::collection::run::{EXPIRING, Run};

/// Deadlines beyond the number of items at which those that are out of date are dropped.
const SPARE_DEADLINES: u64 = 64;

impl<K: LeafKind> Tree<K> {
    /// A time at or before which no item expires; none expires at all if there is none.
    #[inline]
    pub fn next_due(&self) -> Option<u64> {
        let deadlines = self.deadlines.as_ref()?;
        deadlines.0.first().map(|&(at, _)| at)
    }

    /// The deadline of a run's first item to expire.
    #[inline]
    pub(super) fn deadline_of(&self, run: Run<'_>) -> Option<Deadline> {
        if run.flags() & EXPIRING == 0 {
            return None;
        }
        let (at, item) = run.soonest()?;
        Some((at, (self.kind.order(&item) >> 64) as u64))
    }

    /// The first deadline, if it has passed at `now`. The tree has it no more: the caller looks at the leaves
    /// whose deadline it may be.
    pub(super) fn take_deadline(&mut self, now: u64) -> Option<Deadline> {
        let deadlines = &mut self.deadlines.as_mut()?.0;
        let first = deadlines.first().copied().filter(|&(at, _)| now > at)?;
        deadlines.remove(&first);
        if deadlines.is_empty() {
            self.deadlines = None;
        }
        Some(first)
    }

    /// Puts a deadline of a leaf in the place of another. One that is another leaf's, too, stays.
    pub(super) fn change_deadline(&mut self, before: Option<Deadline>, after: Option<Deadline>) {
        if before == after && after.is_none() {
            return;
        }
        if after.is_none() {
            // A leaf of which no item expires any more may leave memory.
            self.barren_laps = 0;
        }
        let gone = before.filter(|&(_, half)| {
            let first = Edge::before(u128::from(half) << 64);
            before != after && self.next_of_half(half, &first).is_none()
        });
        let deadlines = self.deadlines.get_or_insert_default();
        if let Some(gone) = gone {
            deadlines.0.remove(&gone);
        }
        deadlines.0.extend(after);
        match deadlines.0.len() as u64 {
            0 => self.deadlines = None,
            len if len > self.count + SPARE_DEADLINES => self.find_deadlines(),
            _ => {}
        }
    }

    /// Notes the deadline of a leaf that had another.
    pub(super) fn settle_leaf(&mut self, leaf: Node, before: Option<Deadline>) {
        leaf.edit(|run| {
            run.settle_expiring();
        });
        self.change_deadline(before, self.deadline_of(leaf.run()));
    }

    /// Where the leaf begins that follows the one of an edge, if it may have items of this upper half of
    /// order keys, too. Nearly always there is none: items of one upper half are in one leaf.
    pub(super) fn next_of_half(&self, half: u64, edge: &Edge<'_>) -> Option<LeafPlace> {
        let last = u128::from(half) << 64 | u128::from(u64::MAX);
        let next = self.view().leaves(edge).nth(1);
        let next = next.filter(|leaf| leaf.order <= last)?;
        Some(LeafPlace::of(Edge {
            order: next.order,
            name: next.fence,
        }))
    }

    /// Makes the deadlines by a look at all leaves: none is out of date then.
    pub(super) fn find_deadlines(&mut self) {
        let leaves = self.view().leaves(&Edge::default());
        // A cold leaf has no items that expire.
        let leaves = leaves.filter(|leaf| !leaf.is_cold());
        let deadlines: BTreeSet<_> = leaves
            .filter_map(|leaf| self.deadline_of(leaf.run()))
            .collect();
        self.deadlines = (!deadlines.is_empty()).then(|| Box::new(Deadlines(deadlines)));
    }

    /// Whether a deadline keeps the invariant for a leaf.
    pub(super) fn has_deadline(
        &self,
        run: Run<'_>,
        from: &Edge<'_>,
        to: Option<&Edge<'_>>,
    ) -> bool {
        let Some((first, _)) = self.deadline_of(run) else {
            return true;
        };
        let is_inside = |key: u64| {
            let (low, high) = (
                u128::from(key) << 64,
                u128::from(key) << 64 | u128::from(u64::MAX),
            );
            from.order <= high && to.is_none_or(|to| low <= to.order)
        };
        let mut deadlines = self.deadlines.iter().flat_map(|deadlines| &deadlines.0);
        deadlines.any(|&(at, key)| at <= first && is_inside(key))
    }
}
