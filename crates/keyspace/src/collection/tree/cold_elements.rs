//! The cold leaves of a list that a change of it needs in memory.
//!
//! Leaves that a change only removes may stay cold. What is put at an end needs the leaf that has the
//! outermost element, because this says which number is the next.

use super::elements::is_used_up;
use crate::collection::any::Collection;
use crate::collection::items::{ItemsRef, ListRef};
use crate::collection::kind::Elements;
use crate::collection::node::Base;
use crate::collection::run::End;
use crate::collection::view::View;

impl<'e> ListRef<'e> {
    /// The elements of a large list; `None` if it is another collection.
    pub fn of(tree: &'e Collection) -> Option<ListRef<'e>> {
        match tree {
            Collection::List(tree) => Some(ItemsRef::Tree(tree.view())),
            _ => None,
        }
    }

    /// The records of the cold leaves that are needed to put an element at an end.
    pub fn cold_for_push(self, end: End) -> Vec<Base> {
        match self {
            ItemsRef::Run(_) => Vec::new(),
            ItemsRef::Tree(view) => view.cold_for_push(end),
        }
    }

    /// The records of the cold leaves that are needed to remove the elements of the ranks `from..to`; of some
    /// of them more than once. None, if these are all, which needs no look at them.
    pub fn cold_for_cut(self, from: u64, to: u64) -> Vec<Base> {
        let ItemsRef::Tree(view) = self else {
            return Vec::new();
        };
        let len = view.count();
        let to = to.min(len);
        if from >= to || (from, to) == (0, len) {
            return Vec::new();
        }
        let is_pop = to - from == 1 && (from == 0 || to == len);
        // If no element is left of the leaf where the cut begins, the one before gets its range.
        let before = from.checked_sub(1).filter(|_| !is_pop);
        let ranks = before.into_iter().chain([from, to - 1]);
        ranks.filter_map(|rank| view.cold_at(rank)).collect()
    }
}

impl View<'_, Elements> {
    fn cold_for_push(&self, end: End) -> Vec<Base> {
        let rank = match end {
            End::Front => 0,
            End::Back => self.count().saturating_sub(1),
        };
        let leaf = self.seek_rank(rank).0.leaf();
        if leaf.is_cold() {
            return vec![leaf.base()];
        }
        let run = leaf.run();
        if !is_used_up(run.number(), run.count()) {
            return Vec::new();
        }
        // All elements get other numbers.
        let cold = self.leaves(&Default::default());
        cold.filter(|leaf| leaf.is_cold())
            .map(|leaf| leaf.base())
            .collect()
    }
}
