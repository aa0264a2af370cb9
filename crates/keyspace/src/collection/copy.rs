//! Copies that share nothing with their collection: O(n). That of a large one is made from a moment of it,
//! without a lock.

use super::any::{Collection, Moment, each};
use super::sorted::SortedSet;
use super::tree::Tree;
use crate::hash::Seed;

/// A collection as it was at one moment, with what a copy of it needs besides the items.
#[derive(Debug)]
pub struct Original {
    moment: Moment,
    seed: u64,
    leaf_max: usize,
}

impl Original {
    /// A copy of it. All its leaves were in memory at its moment.
    pub fn copy(&self) -> Collection {
        let max = self.leaf_max;
        match &self.moment {
            Moment::Hash(frozen) => Collection::Hash(Tree::copy_of(frozen.view(), max)),
            Moment::Set(frozen) => Collection::Set(Tree::copy_of(frozen.view(), max)),
            Moment::SortedSet(frozen) => {
                let tree = Tree::copy_of(frozen.view(), max);
                Collection::SortedSet(SortedSet::of_tree(Seed::new(self.seed), tree))
            }
            Moment::List(frozen) => Collection::List(Tree::copy_of(frozen.view(), max)),
        }
    }
}

impl Collection {
    /// This moment of it, to be copied later, in O(1).
    pub fn original(&mut self) -> Original {
        Original {
            seed: self.seed(),
            leaf_max: each!(Collection, self, tree => tree.leaf_max()),
            moment: self.freeze(),
        }
    }

    /// A copy of it.
    pub fn copy(&self) -> Collection {
        match self {
            Collection::Hash(tree) => Collection::Hash(tree.copy()),
            Collection::Set(tree) => Collection::Set(tree.copy()),
            Collection::SortedSet(set) => Collection::SortedSet(set.copy()),
            Collection::List(tree) => Collection::List(tree.copy()),
        }
    }
}
