//! Items of sorted leaves that are set without a search for each: after all others, or side by side.

use super::base::Tree;
use super::edit::Put;
use crate::collection::cell::DECIMAL_MAX;
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::path::Path;
use crate::collection::run::Item;
use crate::collection::view::lower;

/// Where the next item belongs, and the order key that it is below if it is in that leaf.
#[derive(Debug, Default)]
pub struct Finger(Option<(Path, usize, u128)>);

impl<K: LeafKind> Tree<K> {
    /// Sets an item that probably comes after all others: no place is looked for then. The last leaf is in
    /// memory.
    pub fn set_last(&mut self, item: &Item<'_>) -> Put {
        let (mut path, index) = self.view().seek_rank(self.count);
        let run = path.leaf().run();
        let mut scratch = [0; DECIMAL_MAX];
        let edge = Edge::of(&self.kind, item, &mut scratch);
        let last = run.last_start();
        if last.is_none_or(|at| !self.kind.is_before_at(run, at, &edge)) {
            return self.set(item);
        }
        self.put(&mut path, index, false, item);
        Put::Added
    }

    /// Adds an item of this order key that is not there. With a finger that has added one, and since which
    /// nothing was changed, it is the next one after that: no place is looked for then.
    pub fn add_next(&mut self, finger: &mut Finger, order: u128, item: &Item<'_>) {
        debug_assert_eq!(self.kind.order(item), order);
        let next = finger.0.take().filter(|&(.., end)| order < end);
        let (mut path, index, end) = next.unwrap_or_else(|| {
            let mut scratch = [0; DECIMAL_MAX];
            let edge = Edge::of(&self.kind, item, &mut scratch);
            let path = self.view().seek(&edge);
            let index = lower(
                &self.kind,
                path.leaf().run(),
                &edge,
                path.part_before(&edge),
            );
            let end = path.end();
            (path, index, end)
        });
        if self.put(&mut path, index, false, item) {
            finger.0 = Some((path, index + 1, end));
        }
    }

    /// Removes so many items from a rank on, which are there, if one leaf has them, and others; whether it
    /// does. The leaf is in memory.
    pub fn take_ranks(&mut self, rank: u64, count: u64) -> bool {
        let (mut path, index) = self.view().seek_rank(rank);
        let (end, len) = (index as u64 + count, path.leaf().run().count() as u64);
        if end > len || count == len {
            return false;
        }
        let deadline = self.deadline_of(path.leaf().run());
        self.own_inner(&mut path);
        let leaf = self.own_leaf(&mut path, 0);
        leaf.edit(|run| run.remove_range(index, end as usize));
        self.count_up(&path, -(count as i64));
        if deadline.is_some() {
            self.settle_leaf(leaf, deadline);
        }
        self.slim(&mut path);
        true
    }
}
