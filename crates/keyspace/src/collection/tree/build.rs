//! Trees of whole leaves, in one pass.

use super::base::Tree;
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::node::{Base, CHILDREN_MAX, Child, Node};
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

/// The leaves of a tree, one after the other.
pub struct LeafRow<K> {
    tree: Tree<K>,
    leaves: Vec<Child>,
    expires: bool,
}

impl<K: LeafKind> LeafRow<K> {
    /// No leaf, of a tree whose leaves have up to `leaf_max` bytes.
    pub fn new(kind: K, leaf_max: usize) -> LeafRow<K> {
        LeafRow {
            tree: Tree::new(kind, leaf_max),
            leaves: Vec::new(),
            expires: false,
        }
    }

    /// Puts a leaf behind the others. The first begins at the lowest edge; each has at most `leaf_max` bytes,
    /// or one item.
    pub fn push(&mut self, leaf: &Leaf<'_>) {
        let run = leaf.run;
        let node = self
            .tree
            .new_leaf(leaf.start.name, run.len_in_leaf(K::FLAGS));
        node.edit(|into| into.append(run));
        self.link(node, leaf.start.order, leaf.base, leaf.is_whole);
    }

    /// Puts the only leaf of a tree that nobody has cloned behind the others, without a copy of its items.
    /// `base` is all that it is. Whether it can be done.
    pub fn adopt(&mut self, start: &Edge<'_>, tree: &mut Tree<K>, base: Base) -> bool {
        let leaf = tree.give_leaf(start.name);
        leaf.map(|node| {
            self.tree.bytes += node.bytes();
            self.link(node, start.order, base, true);
        })
        .is_some()
    }

    fn link(&mut self, node: Node, order: u128, base: Base, is_whole: bool) {
        match is_whole {
            true => node.set_whole_base(base),
            false => node.set_base(base),
        }
        let run = node.run();
        self.expires |= run.flags() & EXPIRING != 0;
        let count = run.count() as u64;
        self.leaves.push(Child { order, node, count });
    }

    /// The tree of these leaves.
    pub fn finish(mut self) -> Tree<K> {
        self.tree.raise(self.leaves);
        if self.expires {
            self.tree.find_deadlines();
        }
        self.tree
    }
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
        let mut row = LeafRow::new(kind, leaf_max);
        leaves.into_iter().for_each(|leaf| row.push(&leaf));
        row.finish()
    }

    /// Gives its only leaf away, if it has this fence.
    fn give_leaf(&mut self, fence: &[u8]) -> Option<Node> {
        let is_only = self.height == 0 && !self.root.is_cold() && self.root.fence() == fence;
        is_only.then(|| {
            let empty = self.new_leaf(b"", Run::EMPTY);
            self.bytes -= self.root.bytes();
            self.count = 0;
            std::mem::replace(&mut self.root, empty)
        })
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
