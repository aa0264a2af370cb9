//! Members of a set that are integers, in order.
//!
//! The order keys of integers are their values, whatever the seed. So the integers of several sets are met in
//! one order, and their intersection is a merge, a leaf at a time.

use std::iter::Peekable;

use super::cell::Cell;
use super::items::SetRef;
use super::kind::{Edge, LeafPlace, Members};
use super::run::Run;
use super::view::{Leaves, View};

/// The integers of a set, ascending.
#[derive(Debug)]
pub struct Integers<'e> {
    /// Of a large set: its leaves from the next one on.
    tree: Option<(View<'e, Members>, Peekable<Leaves<'e>>)>,
    /// The integers of a leaf, or of a small set.
    block: Vec<i64>,
    /// The index of the next one.
    at: usize,
    /// Memory for those that are found.
    found: Vec<i64>,
}

/// How far integers that are wanted have been met, and how many of them were found.
#[derive(Clone, Copy, Default)]
struct Met {
    from: usize,
    found: usize,
}

/// Integers that are compared at once.
const GROUP: usize = 4;

/// The group that begins at an index, if it is whole.
#[inline]
fn group(integers: &[i64], at: usize) -> Option<[i64; GROUP]> {
    integers.get(at..)?.first_chunk().copied()
}

impl<'e> Integers<'e> {
    fn new(set: SetRef<'e>) -> Integers<'e> {
        let mut integers = Integers {
            tree: None,
            block: Vec::new(),
            at: 0,
            found: Vec::new(),
        };
        match set {
            SetRef::Run(run) => integers.fill(run),
            SetRef::Tree(view) => {
                let leaves = view.leaves(&Edge::default()).peekable();
                integers.tree = Some((view, leaves));
            }
        }
        integers
    }

    fn fill(&mut self, run: Run<'_>) {
        (self.at, _) = (0, self.block.clear());
        take_integers(run, &mut self.block, |_| ());
    }

    /// Keeps those of `wanted` that are among the integers. They ascend, and none is below those of the
    /// previous call.
    pub fn retain_in(&mut self, wanted: &mut Vec<i64>) {
        self.found.clear();
        self.found.resize(wanted.len() + 1, 0);
        let mut met = Met::default();
        self.meet(wanted, &mut met);
        while met.from < wanted.len() && self.next_leaf(wanted[met.from]).is_some() {
            self.meet(wanted, &mut met);
        }
        self.found.truncate(met.found);
        std::mem::swap(wanted, &mut self.found);
    }

    /// Merges the rest of `wanted` with the rest of the block, until one of them is at its end.
    ///
    /// Which of two integers is lower is random, so a branch on it would be mispredicted half of the time.
    /// There is none: each integer of a group is compared with each of the other group, then the group with
    /// the lower last integer is passed.
    fn meet(&mut self, wanted: &[i64], met: &mut Met) {
        let (block, into) = (&self.block[..], &mut self.found[..]);
        let Met {
            mut from,
            mut found,
        } = *met;
        let mut at = self.at;
        while let (Some(ours), Some(theirs)) = (group(block, at), group(wanted, from)) {
            for integer in theirs {
                into[found] = integer;
                let is_here = ours
                    .iter()
                    .fold(false, |is_here, &other| is_here | (other == integer));
                found += usize::from(is_here);
            }
            let (end, other_end) = (ours[GROUP - 1], theirs[GROUP - 1]);
            at += usize::from(end <= other_end) * GROUP;
            from += usize::from(other_end <= end) * GROUP;
        }
        while let (Some(&next), Some(&integer)) = (block.get(at), wanted.get(from)) {
            into[found] = integer;
            found += usize::from(integer == next);
            at += usize::from(next <= integer);
            from += usize::from(integer <= next);
        }
        (self.at, *met) = (at, Met { from, found });
    }

    /// Takes the next leaf that may have integers from `target` on.
    #[inline(never)]
    fn next_leaf(&mut self, target: i64) -> Option<()> {
        let (view, leaves) = self.tree.as_mut()?;
        let edge = Edge::before(Members::order_of(target));
        if leaves.peek().is_some_and(|next| next.order < edge.order) {
            *leaves = view.leaves(&edge).peekable();
        }
        let run = leaves.next()?.run();
        self.fill(run);
        Some(())
    }
}

/// Appends the integers of a run, and sorts them. Shows the other members.
fn take_integers<'e>(run: Run<'e>, integers: &mut Vec<i64>, mut visit: impl FnMut(Cell<'e>)) {
    integers.reserve(run.count());
    let mut is_sorted = true;
    run.cells(|cell, _| match cell {
        Cell::Int(integer) => {
            is_sorted &= integers.last().is_none_or(|&last| last < integer);
            integers.push(integer);
        }
        Cell::Bytes(_) => visit(cell),
    });
    if !is_sorted {
        integers.sort_unstable();
    }
}

impl<'e> SetRef<'e> {
    /// The members of one leaf, or of a small set: appends the integers, and sorts them; shows the others.
    /// Otherwise as [`SetRef::items_from`].
    pub fn sorted_from(
        self,
        place: &LeafPlace,
        integers: &mut Vec<i64>,
        visit: impl FnMut(Cell<'e>),
    ) -> Option<LeafPlace> {
        let (run, next) = self.leaf_from(place);
        take_integers(run, integers, visit);
        next
    }

    /// The integers, ascending.
    pub fn integers(self) -> Integers<'e> {
        Integers::new(self)
    }
}
