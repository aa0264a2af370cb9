//! Contents of the cold leaves of a moment, read from the log for whoever walks it.
//!
//! The nodes of a moment are shared with the tree and stay as they are. What was read is kept beside them:
//! [`View::run_of`](super::view::View) takes the run of a cold leaf from here.

use std::collections::HashMap;
use std::ops::Range;

use super::node::Base;
use super::run::Run;
use crate::large::LargeValue;

/// The contents of some cold leaves.
#[derive(Debug, Default)]
pub struct Thawed {
    /// By the position of the record that the leaf rests on.
    leaves: HashMap<u64, ThawedLeaf>,
}

/// The contents of the record of a cold leaf, which were checked.
#[derive(Debug)]
pub struct ThawedLeaf {
    /// Position of the record.
    pub(super) at: u64,
    pub(super) contents: LargeValue,
    /// Where the run is in the contents.
    pub(super) run: Range<usize>,
}

impl Thawed {
    /// Adds a leaf.
    pub fn add(&mut self, leaf: ThawedLeaf) {
        self.leaves.insert(leaf.at, leaf);
    }

    /// Whether the leaf that rests on a record is here.
    pub fn has(&self, base: Base) -> bool {
        self.leaves.contains_key(&base.at)
    }

    /// Forgets all leaves.
    pub fn clear(&mut self) {
        self.leaves.clear();
    }

    /// Bytes that the leaves take.
    pub fn bytes(&self) -> usize {
        let bytes = |leaf: &ThawedLeaf| leaf.contents.len() + size_of::<ThawedLeaf>();
        self.leaves.values().map(bytes).sum()
    }

    /// The run of the leaf that rests on a record.
    pub(super) fn run(&self, base: Base) -> Option<Run<'_>> {
        let leaf = self.leaves.get(&base.at)?;
        Some(Run::trusted(&leaf.contents[leaf.run.clone()]))
    }
}
