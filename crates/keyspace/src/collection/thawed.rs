//! Contents of the cold leaves of a moment, read from the log for whoever walks it.
//!
//! The nodes of a moment are shared with the tree and stay as they are. What was read is kept beside them:
//! [`View::run_of`](super::view::View) takes the run of a cold leaf from here.

use std::collections::HashMap;
use std::ops::Range;

use super::kind::{Edge, LeafKind};
use super::log::leaf::LeafRecord;
use super::node::Base;
use super::run::{Damage, Run};
use super::view::View;
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
    at: u64,
    contents: LargeValue,
    run: Range<usize>,
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

impl<'t, K: LeafKind> View<'t, K> {
    /// The record of the leaf that has the item of a rank, if it is cold.
    pub fn cold_at(&self, rank: u64) -> Option<Base> {
        let leaf = self.seek_rank(rank).0.leaf();
        leaf.is_cold().then(|| leaf.base())
    }

    /// The records of the cold leaves that have items of the ranks from one to another.
    pub fn cold_between(&self, from: u64, to: u64) -> Vec<Base> {
        let (leaves, index) = self.leaves_from_rank(from);
        let (mut records, mut at) = (Vec::new(), from - (index as u64).min(from));
        for leaf in leaves {
            if at >= to {
                break;
            }
            records.extend(leaf.is_cold().then(|| leaf.base()));
            at += leaf.count;
        }
        records
    }

    /// The record of the leaf that covers an edge, if it is cold.
    pub fn cold_covering(&self, edge: &Edge<'_>) -> Option<Base> {
        let leaf = self.seek(edge).leaf();
        leaf.is_cold().then(|| leaf.base())
    }

    /// Checks that `contents` are those of the record on which a cold leaf rests.
    ///
    /// # Errors
    /// They are not.
    pub fn thaw(&self, base: Base, contents: LargeValue) -> Result<ThawedLeaf, Damage> {
        let record = LeafRecord::read(&contents)?;
        let leaf = self.leaves(&record.from).next();
        let leaf = leaf.filter(|leaf| leaf.is_cold() && leaf.base() == base);
        let leaf = leaf.ok_or(Damage::Kind)?;
        let run = self
            .kind
            .check_leaf(record.run, &record.from, record.to.as_ref())?;
        if record.from != leaf.start() || run.count() as u64 != leaf.count {
            return Err(Damage::Kind);
        }
        let run = contents.len() - record.run.len()..contents.len();
        Ok(ThawedLeaf {
            at: base.at,
            contents,
            run,
        })
    }
}
