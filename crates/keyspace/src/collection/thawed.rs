//! Contents of the cold leaves of a moment, read from the log for whoever walks it.
//!
//! The nodes of a moment are shared with the tree and stay as they are. What was read is kept beside them:
//! [`View::run_of`](super::view::View) takes the run of a cold leaf from here.
//!
//! Compaction may move the record of a cold leaf while the moment lives, if it had begun with the segment
//! before. Then the leaf has another base, and the same contents. So contents are found by the leaf.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::node::{Base, Node};
use super::run::Run;
use crate::large::LargeValue;

/// The contents of some cold leaves.
#[derive(Debug, Default)]
pub struct Thawed {
    /// By the addresses of their nodes.
    leaves: HashMap<Node, ThawedLeaf>,
    /// Positions of the records that were read.
    records: HashSet<u64>,
}

/// The contents of the record of a cold leaf, which were checked.
#[derive(Debug)]
pub struct ThawedLeaf {
    pub(super) leaf: Node,
    /// Position of the record that was read.
    pub(super) at: u64,
    pub(super) contents: LargeValue,
    /// Where the run is in the contents.
    pub(super) run: Range<usize>,
}

impl Thawed {
    /// Adds a leaf.
    pub fn add(&mut self, leaf: ThawedLeaf) {
        self.records.insert(leaf.at);
        self.leaves.insert(leaf.leaf, leaf);
    }

    /// Whether the contents of a record are here.
    pub fn has(&self, base: Base) -> bool {
        self.records.contains(&base.at)
    }

    /// Forgets all leaves.
    pub fn clear(&mut self) {
        self.leaves.clear();
        self.records.clear();
    }

    /// Bytes that the leaves take.
    pub fn bytes(&self) -> usize {
        let bytes =
            |leaf: &ThawedLeaf| leaf.contents.len() + size_of::<ThawedLeaf>() + size_of::<u64>();
        self.leaves.values().map(bytes).sum()
    }

    /// The run of a cold leaf.
    pub(super) fn run(&self, leaf: Node) -> Option<Run<'_>> {
        let leaf = self.leaves.get(&leaf)?;
        Some(Run::trusted(&leaf.contents[leaf.run.clone()]))
    }
}
