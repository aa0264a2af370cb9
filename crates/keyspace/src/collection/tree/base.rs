//! The tree, its nodes and their bytes.

use std::marker::PhantomData;
use std::sync::Arc;

use super::deadlines::Deadlines;
use crate::collection::clones::{Clones, Frozen, free_all};
use crate::collection::kind::{LeafKind, LeafPlace};
use crate::collection::log::ledger::Logged;
use crate::collection::node::{Base, Child, Node};
use crate::collection::path::Path;
use crate::collection::run::Run;
use crate::collection::view::View;

/// Bytes of a leaf's run, if nothing else is said.
pub const LEAF_MAX: usize = 1984;

/// The same of a list: no search by name walks over its leaves. With its header and one more offset such a
/// leaf fills 4096 bytes.
pub const LIST_LEAF_MAX: usize = 4062;

/// The longest run of a list's leaf where other leaves have up to `leaf_max` bytes.
pub(in crate::collection) fn list_leaf_max(leaf_max: usize) -> usize {
    match leaf_max {
        LEAF_MAX => LIST_LEAF_MAX,
        shorter => shorter,
    }
}

/// The version of a new tree.
pub(super) const FIRST_VERSION: u64 = 1;

/// See the module.
#[derive(Debug)]
pub struct Tree<K> {
    pub(crate) kind: K,
    pub(super) root: Node,
    /// Levels of inner nodes.
    pub(super) height: u8,
    /// The longest run of more than one item.
    pub(super) leaf_max: u16,
    pub(super) count: u64,
    /// Bytes of the nodes.
    pub(super) bytes: usize,
    /// Leaves that are cold.
    pub(super) cold: u32,
    /// Bytes of their records.
    cold_bytes: u64,
    /// Where the next leaf to leave memory is looked for.
    pub(super) hand: LeafPlace,
    /// How often the hand has come to the end since it last found a leaf.
    pub(super) barren_laps: u8,
    /// When items expire, and where they are; none as long as no item does.
    pub(super) deadlines: Option<Box<Deadlines>>,
    /// Nodes are born in this version; clones are of earlier ones.
    version: u64,
    clones: Option<Arc<Clones>>,
    /// Records of the log, or parts of them, on which no leaf rests any more since somebody asked.
    lost: Vec<Base>,
    /// Bytes of all elements of a list in a listpack, kept until they change; 0 is not known.
    pub(crate) tally: u32,
    /// What its log knows of it.
    pub(crate) logged: Logged,
}

impl<K: LeafKind> Tree<K> {
    /// A tree without items, whose leaves have runs of up to `leaf_max` bytes.
    pub fn new(kind: K, leaf_max: usize) -> Tree<K> {
        assert!((64..=LIST_LEAF_MAX).contains(&leaf_max));
        let root = Node::leaf(b"", K::FLAGS, Run::EMPTY, FIRST_VERSION);
        let bytes = root.bytes();
        Tree {
            kind,
            root,
            height: 0,
            count: 0,
            bytes,
            leaf_max: leaf_max as u16,
            cold: 0,
            cold_bytes: 0,
            hand: LeafPlace::default(),
            barren_laps: 0,
            deadlines: None,
            version: FIRST_VERSION,
            clones: None,
            lost: Vec::new(),
            tally: 0,
            logged: Logged::default(),
        }
    }

    /// Tells the ledger what no leaf rests on any more.
    #[inline]
    pub fn tell_lost(&mut self) {
        if !self.lost.is_empty() {
            let lost = std::mem::take(&mut self.lost);
            if let Some(ledger) = self.logged.ledger() {
                ledger.lost(&mut lost.into_iter());
            }
        }
    }

    /// What no leaf rests on any more, and was not told of.
    pub(super) fn lost_bases(&self) -> &[Base] {
        &self.lost
    }

    /// Lets the leaf of a path rest on the oldest of the bases that were lost since there were `known`: the
    /// ranges of their leaves are the range of this one now.
    pub(super) fn take_older(&mut self, path: &Path, known: usize) {
        let (leaf, lost) = (path.leaf(), self.lost.get(known..).unwrap_or(&[]));
        let oldest = lost.iter().map(|base| base.at).min();
        let before = leaf.base();
        if let Some(at) = oldest.filter(|&at| at < before.at) {
            leaf.set_base(Base { at, share: 0 });
            self.lose(before);
        }
    }

    /// Notes that a leaf with this base is gone, or rests on another.
    #[inline]
    pub(super) fn lose(&mut self, base: Base) {
        if base.at != 0 {
            self.lost.push(base);
        }
    }

    /// What is in the tree.
    #[inline]
    pub fn view(&self) -> View<'_, K> {
        View {
            kind: &self.kind,
            root: self.root,
            height: self.height,
            count: self.count,
            instance: self.logged.instance(),
            has_cold: Some(self.cold > 0),
            thawed: None,
            alive: PhantomData,
        }
    }

    /// How many items there are.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of memory: the tree's own and those of its nodes, as the allocator rounds them.
    #[inline]
    pub fn bytes(&self) -> usize {
        let deadlines = self
            .deadlines
            .as_ref()
            .map_or(0, |deadlines| deadlines.bytes());
        size_of::<Tree<K>>() + self.bytes + deadlines
    }

    /// The longest run of more than one item.
    #[inline]
    pub(in crate::collection) fn leaf_max(&self) -> usize {
        usize::from(self.leaf_max)
    }

    /// Bytes of memory that clones alone need.
    pub fn held_bytes(&self) -> usize {
        self.clones.as_ref().map_or(0, |clones| clones.held())
    }

    /// This moment of the tree, in O(1).
    pub fn freeze(&mut self) -> Frozen<K>
    where
        K: Clone,
    {
        let clones = Arc::clone(self.clones.get_or_insert_default());
        let version = self.version;
        self.version += 1;
        Frozen::new(&self.view(), version, clones)
    }

    /// Whether a clone may see a node.
    #[inline]
    pub(super) fn is_shared(&self, node: Node) -> bool {
        match &self.clones {
            None => false,
            Some(clones) => node.birth() <= clones.newest(),
        }
    }

    /// Whether there is a clone.
    #[inline]
    pub(super) fn is_shared_at_all(&self) -> bool {
        let clones = self.clones.as_ref();
        clones.is_some_and(|clones| clones.newest() > 0)
    }

    pub(super) fn new_leaf(&mut self, fence: &[u8], room: usize) -> Node {
        let node = Node::leaf(fence, K::FLAGS, room, self.version);
        self.bytes += node.bytes();
        // Something new that may leave memory.
        self.barren_laps = 0;
        node
    }

    /// A cold leaf in place of another.
    pub(super) fn new_cold_leaf(&mut self, of: Node) -> Node {
        self.cold_leaf(of.fence(), of.base())
    }

    /// A cold leaf with this fence, which is the record `base`.
    pub(super) fn cold_leaf(&mut self, fence: &[u8], base: Base) -> Node {
        let node = Node::cold_leaf(fence, base, self.version);
        self.bytes += node.bytes();
        self.note_cold(node, 1);
        node
    }

    fn note_cold(&mut self, node: Node, by: i32) {
        let bytes = i64::from(by) * i64::from(node.base().share);
        self.cold = self.cold.wrapping_add_signed(by);
        self.cold_bytes = self.cold_bytes.wrapping_add_signed(bytes);
        if let Some(ledger) = self.logged.ledger() {
            ledger.cold(by.into(), bytes);
        }
    }

    /// Bytes of the records of leaves that are cold.
    pub fn cold_bytes(&self) -> u64 {
        self.cold_bytes
    }

    pub(super) fn new_inner(&mut self, children: &[Child]) -> Node {
        let node = Node::inner(children, self.version);
        self.bytes += node.bytes();
        node
    }

    /// Gives up a node that is no part of the tree any more.
    pub(super) fn give_up(&mut self, node: Node) {
        self.bytes -= node.bytes();
        if node.is_cold() {
            self.note_cold(node, -1);
        }
        match &self.clones {
            Some(clones) if node.birth() <= clones.newest() => clones.replace(node, self.version),
            // SAFETY: it is no part of the tree, and no clone is as old.
            _ => unsafe { node.free() },
        }
    }

    /// Gives up a node and all below.
    pub(super) fn give_up_all(&mut self, node: Node, height: usize) {
        if height > 0 {
            for child in node.children() {
                self.give_up_all(child.node, height - 1);
            }
        } else {
            self.lose(node.base());
        }
        self.give_up(node);
    }

    /// Puts a node in the place of the one that a path has at this depth.
    pub(super) fn link(&mut self, path: &mut Path, depth: usize, node: Node) {
        match depth.checked_sub(1) {
            None => self.root = node,
            Some(above) => {
                path.nodes[above]
                    .child_mut(usize::from(path.taken[above]))
                    .node = node
            }
        }
        let old = std::mem::replace(&mut path.nodes[depth], node);
        self.give_up(old);
    }

    /// Copies the inner nodes of a path that a clone may see.
    #[inline]
    pub(super) fn own_inner(&mut self, path: &mut Path) {
        if self.clones.is_none() {
            return;
        }
        for depth in 0..path.height {
            if self.is_shared(path.nodes[depth]) {
                let copy = self.new_inner(path.nodes[depth].children());
                self.link(path, depth, copy);
            }
        }
    }

    /// The leaf of a path whose inner nodes are owned, to be edited, with room for a run of so many bytes.
    #[inline]
    pub(super) fn own_leaf(&mut self, path: &mut Path, room: usize) -> Node {
        let leaf = path.leaf();
        if leaf.run_room() >= room && !self.is_shared(leaf) {
            leaf.set_changed();
            return leaf;
        }
        let copy = leaf.leaf_copy(room.max(leaf.run().bytes().len()), self.version);
        self.bytes += copy.bytes();
        self.link(path, path.height, copy);
        copy
    }

    /// An inner node with these children in place of `node`, or the same one.
    pub(super) fn with_children(&mut self, node: Node, children: &[Child]) -> Node {
        if !self.is_shared(node) && node.set_children(children) {
            return node;
        }
        let copy = self.new_inner(children);
        self.give_up(node);
        copy
    }

    /// Notes that the leaf of a path has one item more, or less.
    #[inline]
    pub(super) fn count_up(&mut self, path: &Path, by: i64) {
        for depth in 0..path.height {
            let child = path.nodes[depth].child_mut(usize::from(path.taken[depth]));
            child.count = child.count.wrapping_add_signed(by);
        }
        self.count = self.count.wrapping_add_signed(by);
    }
}

impl<K> Drop for Tree<K> {
    fn drop(&mut self) {
        if let Some(ledger) = self.logged.ledger() {
            ledger.gone(self.logged.place().map_or(0, |(instance, _)| instance));
            ledger.cold(-i64::from(self.cold), -(self.cold_bytes as i64));
            let mut bases = std::mem::take(&mut self.lost);
            collect_bases(self.root, self.height, &mut bases);
            ledger.lost(&mut bases.into_iter());
        }
        let clones = self.clones.as_ref();
        if !clones.is_some_and(|clones| clones.adopt(self.root, self.height, self.bytes)) {
            // SAFETY: the tree is gone, and no clone lives.
            unsafe { free_all(self.root, self.height) }
        }
    }
}

/// Adds what the leaves below a node rest on.
fn collect_bases(node: Node, height: u8, bases: &mut Vec<Base>) {
    match height.checked_sub(1) {
        None => bases.extend(Some(node.base()).filter(|base| base.at != 0)),
        Some(below) => {
            let children = node.children().iter();
            children.for_each(|child| collect_bases(child.node, below, bases));
        }
    }
}
