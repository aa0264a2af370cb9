//! Leaves that leave memory: their items are in the log alone.
//!
//! Of a cold leaf there remains a node without a run, with its fence and the record that it rests on. Ranges
//! and counts stay, so nothing else in the tree changes. Before items are read or changed, the leaves that
//! cover them have to be in memory ([`Tree::warm`]): to read the items of a cold leaf is a panic. The server
//! does not let leaves leave memory yet.
//!
//! ```text
//!  in memory, changed  -- write (the record is all that it is) -->  in memory, whole
//!  in memory, whole    -- chill -->                                 cold
//!  cold                -- warm (with that record) -->               in memory, whole
//!  in memory, whole    -- an edit, a split, a merge -->             in memory, changed
//! ```
//!
//! Invariants:
//! 1. A cold leaf has the range and the items of the record that it rests on. Compaction that moves the
//!    record changes the base of the leaf.
//! 2. A cold leaf has no items that expire.
//! 3. A leaf is not merged with a cold neighbour.
//! 4. A leaf that a living clone sees stays in memory. A clone of a tree with cold leaves does not learn
//!    where their records go when compaction moves them. So all leaves that a clone is to read are in memory
//!    when it is taken.
//!
//! Which leaf is the next to leave is decided as with a clock: a hand goes from leaf to leaf, and passes
//! those that were used since it came by.

use super::base::Tree;
use crate::collection::cell::{Cell, DECIMAL_MAX};
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::log::leaf::LeafRecord;
use crate::collection::node::{Base, Node};
use crate::collection::run::{Damage, EXPIRING, Item};

/// A leaf that may leave memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// The order key at which it begins.
    pub order: u128,
    /// What it rests on; nothing, if its items have to be written first.
    pub record: Option<Base>,
}

impl<K: LeafKind> Tree<K> {
    /// Leaves that are cold.
    pub fn cold_leaves(&self) -> usize {
        self.cold as usize
    }

    /// The record of the leaf that covers a name, if it is cold; where the order key follows from the name.
    #[inline]
    pub fn cold_record(&self, name: Cell<'_>) -> Option<Base> {
        if self.cold == 0 {
            return None;
        }
        let mut scratch = [0; DECIMAL_MAX];
        let item = Item::single(name);
        let edge = Edge::of(&self.kind, &item, &mut scratch);
        let leaf = self.view().seek(&edge).leaf();
        leaf.is_cold().then(|| leaf.base())
    }

    /// The records of all leaves that are cold.
    pub fn cold_records(&self) -> impl Iterator<Item = Base> {
        let leaves = self.view().leaves(&Edge::default());
        leaves.filter(|leaf| leaf.is_cold()).map(|leaf| leaf.base())
    }

    /// The leaf that is the next to leave memory, of the next `most` at which the hand looks.
    pub fn next_leaving(&mut self, most: usize) -> Option<Leaving> {
        let mut leaves = self.view().leaves(&Edge::before(self.hand)).peekable();
        let mut hand = 0;
        let mut found = None;
        for _ in 0..most {
            let Some(leaf) = leaves.next() else {
                break;
            };
            // A fence comes after a leaf of the same order key, which is where a search for that key ends.
            hand = leaves.peek().map_or(0, |next| match next.fence.is_empty() {
                true => next.order,
                false => next.order + 1,
            });
            let order = leaf.order;
            if !leaf.is_cold() && !leaf.node().take_used() && self.may_leave(leaf.node()) {
                let record = Some(leaf.base()).filter(|_| leaf.is_whole());
                found = Some(Leaving { order, record });
                break;
            }
        }
        self.hand = hand;
        found
    }

    /// Whether a leaf in memory may be cold once its record is all that it is.
    fn may_leave(&self, leaf: Node) -> bool {
        // What is left of it takes less than half.
        let is_worth_it = leaf.bytes() > 2 * Node::cold_bytes(leaf.fence());
        is_worth_it && !self.is_shared(leaf) && leaf.run().flags() & EXPIRING == 0
    }

    /// Lets the items of a leaf leave memory, which begins at an order key and rests on a record that is all
    /// that it is and can be read. Whether it did.
    pub fn chill(&mut self, order: u128, record: Base) -> bool {
        let mut path = self.view().seek(&Edge::before(order));
        let leaf = path.leaf();
        let is_it = leaf.base() == record && leaf.is_whole() && record.at != 0;
        if leaf.is_cold() || !is_it || !self.may_leave(leaf) {
            return false;
        }
        self.own_inner(&mut path);
        let cold = self.new_cold_leaf(leaf);
        self.link(&mut path, usize::from(self.height), cold);
        true
    }

    /// Gives the items back to the leaf that is cold and rests on a record at `at`. Whether there is one.
    ///
    /// # Errors
    /// The record makes no sense.
    pub fn warm(&mut self, at: u64, record: &LeafRecord<'_>) -> Result<bool, Damage> {
        let mut path = self.view().seek(&record.from);
        let cold = path.leaf();
        if !cold.is_cold() || cold.base().at != at || cold.fence() != record.from.name {
            return Ok(false);
        }
        let run = self
            .kind
            .check_leaf(record.run, &record.from, record.to.as_ref())?;
        let count = match usize::from(self.height).checked_sub(1) {
            Some(above) => path.nodes[above].children()[usize::from(path.taken[above])].count,
            None => self.count,
        };
        if run.count() as u64 != count || run.flags() & EXPIRING != 0 {
            return Err(Damage::Kind);
        }
        self.own_inner(&mut path);
        let leaf = self.new_leaf(cold.fence(), run.bytes().len());
        leaf.edit(|into| into.append(run));
        leaf.set_whole_base(cold.base());
        leaf.set_used();
        self.link(&mut path, usize::from(self.height), leaf);
        Ok(true)
    }
}
