//! Removing items that have expired.

use super::base::Tree;
use crate::collection::kind::{Edge, LeafKind, LeafPlace};
use crate::collection::run::Item;

impl<K: LeafKind> Tree<K> {
    /// Whether an item has not expired at `now`. Items of cold leaves do not expire.
    pub fn has_live_item(&self, now: u64) -> bool {
        let mut leaves = self.view().leaves(&Edge::default());
        leaves.any(|leaf| match leaf.is_cold() {
            true => leaf.count > 0,
            false => leaf.run().iter().any(|item| !item.is_due(now)),
        })
    }

    /// Removes items that have expired at `now`, with those of up to `most` deadlines, and shows each of
    /// them. Returns at how many deadlines it has looked: fewer than `most` if nothing is left that has
    /// expired.
    ///
    /// Each leaf is written once, however many of its items go.
    pub fn remove_due(&mut self, now: u64, most: usize, visit: &mut dyn FnMut(&Item<'_>)) -> usize {
        for looked_at in 0..most {
            let Some((_, half)) = self.take_deadline(now) else {
                return looked_at;
            };
            let mut place = LeafPlace::of(Edge::before(u128::from(half) << 64));
            loop {
                let next = self.next_of_half(half, &place.edge());
                self.remove_due_in(&place.edge(), now, visit);
                match next {
                    Some(next) => place = next,
                    None => break,
                }
            }
        }
        most
    }

    /// Removes items that have expired from the leaf that covers an edge.
    fn remove_due_in(&mut self, edge: &Edge<'_>, now: u64, visit: &mut dyn FnMut(&Item<'_>)) {
        let mut path = self.view().seek(edge);
        if path.leaf().is_cold() {
            return;
        }
        let deadline = self.deadline_of(path.leaf().run());
        if deadline.is_none_or(|(at, _)| now <= at) {
            return self.change_deadline(None, deadline);
        }
        self.own_inner(&mut path);
        let leaf = self.own_leaf(&mut path, 0);
        let mut removed = 0;
        leaf.edit(|run| removed = run.remove_due(now, visit));
        self.count_up(&path, -(removed as i64));
        self.change_deadline(deadline, self.deadline_of(leaf.run()));
        self.slim_now(&mut path);
    }
}
