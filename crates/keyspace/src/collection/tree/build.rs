//! Trees of whole leaves, in one pass.

use super::base::{LEAF_MAX, Tree};
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::node::{Base, CHILDREN_MAX, Child};
use crate::collection::run::{EXPIRING, Run};

/// A leaf of a tree that is built.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    /// Where it begins.
    pub start: Edge<'a>,
    /// Its items.
    pub run: Run<'a>,
    /// What it rests on in the log.
    pub base: Base,
    /// Whether that is all that it is.
    pub is_whole: bool,
}

impl<K: LeafKind> Tree<K> {
    /// A tree of one leaf with this run, which has at most `leaf_max` bytes or one item.
    pub fn of_run(kind: K, leaf_max: usize, run: Run<'_>) -> Tree<K> {
        let start = Edge::default();
        let base = Base::default();
        let leaf = Leaf {
            start,
            run,
            base,
            is_whole: false,
        };
        Tree::of_leaves(kind, leaf_max, [leaf])
    }

    /// A tree of these leaves, in order. The first begins at the lowest edge; each has at most `leaf_max`
    /// bytes, or one item.
    pub fn of_leaves<'a>(
        kind: K,
        leaf_max: usize,
        leaves: impl IntoIterator<Item = Leaf<'a>>,
    ) -> Tree<K> {
        assert!((64..=LEAF_MAX).contains(&leaf_max));
        let mut tree = Tree::new(kind, leaf_max);
        let mut level: Vec<Child> = Vec::new();
        let mut expires = false;
        for leaf in leaves {
            let Leaf { start, run, .. } = leaf;
            let node = tree.new_leaf(start.name, run.len_in_leaf(K::FLAGS));
            node.edit(|into| into.append(run));
            match leaf.is_whole {
                true => node.set_whole_base(leaf.base),
                false => node.set_base(leaf.base),
            }
            expires |= run.flags() & EXPIRING != 0;
            let (order, count) = (start.order, run.count() as u64);
            level.push(Child { order, node, count });
        }
        tree.raise(level);
        if expires {
            tree.find_deadlines();
        }
        tree
    }

    /// Puts these leaves, in order, into a tree that has none.
    pub(super) fn raise(&mut self, mut level: Vec<Child>) {
        if level.is_empty() {
            return;
        }
        self.count = level.iter().map(|leaf| leaf.count).sum();
        while level.len() > 1 {
            // Nodes of about the same number of children, as few nodes as possible.
            let nodes = level.len().div_ceil(CHILDREN_MAX);
            let most = level.len().div_ceil(nodes);
            let above = level.chunks(most).map(|children| Child {
                order: children[0].order,
                node: self.new_inner(children),
                count: children.iter().map(|child| child.count).sum(),
            });
            level = above.collect();
            self.height += 1;
        }
        let empty = std::mem::replace(&mut self.root, level[0].node);
        self.give_up(empty);
    }
}
