//! Copies of collections, which share no memory with them. A copy takes O(n). It is made from a moment of the
//! collection, so the collection need not be locked meanwhile.

use super::any::{Collection, Moment, each};
use super::sorted::SortedSet;
use super::tree::Tree;
use crate::hash::Seed;

/// A collection as it was at one moment, with what a copy needs besides the items.
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
            Moment::Stream(frozen) => Collection::Stream(Tree::copy_of(frozen.view(), max)),
        }
    }
}

impl Collection {
    /// This moment of it, from which a copy can be made, in O(1).
    pub fn original(&mut self) -> Original {
        Original {
            seed: self.seed(),
            leaf_max: each!(Collection, self, tree => tree.leaf_max()),
            moment: self.freeze(),
        }
    }
}
