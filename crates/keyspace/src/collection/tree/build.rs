//! Trees of whole leaves, in one pass.

use super::base::{FIRST_VERSION, Tree};
use super::shape::Shares;
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::node::{Base, CHILDREN_MAX, Child, Node};
use crate::collection::run::{EXPIRING, Run};
use crate::collection::view::View;

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

/// A leaf that is in no tree.
#[derive(Debug)]
pub struct LooseLeaf(Node);

impl LooseLeaf {
    /// A leaf that begins at `start` and has the items of a run. The run is no longer than the tree allows
    /// for a leaf, or has one item.
    pub fn new<K: LeafKind>(start: &Edge<'_>, run: Run<'_>) -> LooseLeaf {
        let room = run.len_in_leaf(K::FLAGS);
        let node = Node::leaf(start.name, K::FLAGS, room, FIRST_VERSION);
        node.edit(|into| into.append(run));
        LooseLeaf(node)
    }

    /// Its items.
    pub fn run(&self) -> Run<'_> {
        self.0.run()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl Drop for LooseLeaf {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        unsafe { self.0.free() }
    }
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

    /// Puts a leaf behind the others. `order` is the order key of the place where it begins. `base` is the
    /// record that it rests on, and `is_whole` says whether it has all items of that record and no others.
    pub fn take(&mut self, order: u128, leaf: LooseLeaf, base: Base, is_whole: bool) {
        let node = std::mem::ManuallyDrop::new(leaf).0;
        self.tree.bytes += node.bytes();
        self.link(node, order, base, is_whole);
    }

    /// Puts a leaf behind the others whose items, so many, are in the record `base` of the log alone. It
    /// begins at `start`.
    pub fn cold(&mut self, start: &Edge<'_>, count: u64, base: Base) {
        let node = self.tree.cold_leaf(start.name, base);
        let order = start.order;
        self.leaves.push(Child { order, node, count });
    }

    /// Puts the leaves of a tree that nobody has cloned behind the others, without a copy of their items:
    /// those that have items, or one without. The first begins at `start`. `base` is what all of them rest
    /// on, and `is_whole` says whether that is all that they are.
    pub fn adopt(&mut self, start: &Edge<'_>, tree: &mut Tree<K>, base: Base, is_whole: bool) {
        let count = tree.count();
        let mut shares = Shares::new(base, count as usize);
        let mut start = Some(start);
        for Child {
            order,
            node,
            count: items,
        } in tree.take_leaves()
        {
            if items == 0 && (count > 0 || start.is_none()) {
                tree.give_up(node);
                continue;
            }
            let base = shares.next(items as usize);
            let order = start.map_or(order, |start| start.order);
            match start.take().filter(|start| start.name != node.fence()) {
                Some(&start) => {
                    let run = node.run();
                    self.push(&Leaf {
                        start,
                        run,
                        base,
                        is_whole,
                    });
                    tree.give_up(node);
                }
                None => {
                    tree.bytes -= node.bytes();
                    self.tree.bytes += node.bytes();
                    self.link(node, order, base, is_whole);
                }
            }
        }
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

    /// A tree of the same items that shares nothing with this one.
    pub fn copy(&self) -> Tree<K>
    where
        K: Clone,
    {
        Tree::copy_of(self.view(), self.leaf_max())
    }

    /// A tree of the items of a view, whose leaves have up to `leaf_max` bytes: leaves are copied as a whole.
    pub fn copy_of(view: View<'_, K>, leaf_max: usize) -> Tree<K>
    where
        K: Clone,
    {
        let leaves = view.leaves(&Edge::default());
        let leaves = leaves.map(|leaf| Leaf {
            start: leaf.start(),
            run: leaf.run(),
            base: Base::default(),
            is_whole: false,
        });
        Tree::of_leaves(view.kind.clone(), leaf_max, leaves)
    }

    /// Takes all leaves out, in order, of a tree that nobody has cloned. Their bytes stay counted until they
    /// come back, or go.
    pub(super) fn take_leaves(&mut self) -> Vec<Child> {
        let (order, node, count) = (0, self.root, self.count);
        let mut level = vec![Child { order, node, count }];
        for _ in 0..self.height {
            let below = level.iter().flat_map(|inner| inner.node.children());
            let below = below.copied().collect();
            for inner in std::mem::replace(&mut level, below) {
                self.give_up(inner.node);
            }
        }
        self.root = self.new_leaf(b"", Run::EMPTY);
        (self.height, self.count) = (0, 0);
        level
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
