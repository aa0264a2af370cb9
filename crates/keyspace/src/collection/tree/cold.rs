//! Leaves that leave memory: their items are in the log alone.
//!
//! Of a cold leaf there remains a node without a run, with its fence and the record that it rests on. Ranges
//! and counts stay, so nothing else in the tree changes. Before items are read or changed, the leaves that
//! cover them have to be in memory ([`Tree::warm`]): to read the items of a cold leaf is a panic.
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
//!    where their records go when compaction moves them. So its reader keeps the records in place
//!    ([`View::try_each`](crate::collection::view::View::try_each)), or all leaves that it is to read are in
//!    memory when it is taken.
//! 5. A leaf without items stays in memory: what is pushed to a list may belong there.
//!
//! Which leaf is the next to leave is decided as with a clock: a hand goes from leaf to leaf, and passes
//! those that were used since it came by.
//!
//! The ledger of the tree hears how many leaves are cold.

use super::base::Tree;
use crate::collection::cell::{Cell, DECIMAL_MAX};
use crate::collection::kind::{Edge, LeafKind, LeafPlace};
use crate::collection::log::leaf::LeafRecord;
use crate::collection::node::{Base, Child, Node};
use crate::collection::run::{Damage, EXPIRING, Item};
use crate::collection::view::LeafRef;

/// Laps without a leaf that may leave memory, after which there is taken to be none. The first may have begun
/// in the middle, and the second passes leaves that were used before it.
const BARREN_LAPS: u8 = 3;

/// A leaf that may leave memory.
#[derive(Clone, Debug)]
pub struct Leaving {
    /// Where it begins.
    pub place: LeafPlace,
    /// What it rests on; nothing, if its items have to be written first.
    pub record: Option<Base>,
}

impl Leaving {
    fn of(leaf: &LeafRef<'_>) -> Leaving {
        Leaving {
            place: LeafPlace::of(leaf.start()),
            record: Some(leaf.base()).filter(|_| leaf.is_whole()),
        }
    }
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

    /// The records of the leaves that are cold among those that a scan of `count` items from a cursor on
    /// shows ([`crate::ItemsRef::scan`]).
    pub fn cold_records_of_scan(&self, cursor: u64, count: usize) -> Vec<Base> {
        self.view().cold_of_scan(cursor, count)
    }

    /// The leaf that is the next to leave memory, of the next `looks` at which the hand looks. Those that it
    /// has looked at are taken from `looks`.
    ///
    /// Of a tree without such a leaf the hand knows after a few laps ([`Tree::may_have_leaving`]).
    pub fn next_leaving(&mut self, looks: &mut usize) -> Option<Leaving> {
        let from = std::mem::take(&mut self.hand);
        let mut leaves = self.view().leaves(&from.edge()).peekable();
        let mut found = None;
        while *looks > 0
            && found.is_none()
            && let Some(leaf) = leaves.next()
        {
            *looks -= 1;
            if !leaf.is_cold()
                && !leaf.node().take_used()
                && self.may_leave(&leaf.start(), leaf.node())
            {
                found = Some(Leaving::of(&leaf));
            }
        }
        let next = leaves.peek().map(|next| LeafPlace::of(next.start()));
        let is_at_end = next.is_none();
        self.hand = next.unwrap_or_default();
        // Leaves that a clone sees may leave when it is gone.
        if found.is_some() || self.is_shared_at_all() {
            self.barren_laps = 0;
        } else if is_at_end {
            self.barren_laps = self.barren_laps.saturating_add(1);
        }
        found
    }

    /// Whether the hand of [`Tree::next_leaving`] may find a leaf where it has not looked yet: not after laps
    /// over all leaves in which it found none.
    pub fn may_have_leaving(&self) -> bool {
        self.barren_laps < BARREN_LAPS
    }

    /// All leaves that may leave memory, however lately they were used.
    pub fn all_leaving(&self) -> Vec<Leaving> {
        let leaves = self.view().leaves(&Edge::default());
        let warm =
            leaves.filter(|leaf| !leaf.is_cold() && self.may_leave(&leaf.start(), leaf.node()));
        warm.map(|leaf| Leaving::of(&leaf)).collect()
    }

    /// Sets the hand of [`Tree::next_leaving`] to a leaf, which is the next that it looks at.
    pub fn look_again(&mut self, place: LeafPlace) {
        self.hand = place;
    }

    /// Whether leaves in memory take more than what is left of cold ones does.
    pub fn has_warm_leaves(&self) -> bool {
        const LEFT: usize = 2 * Node::cold_bytes(b"") + 2 * size_of::<Child>();
        self.bytes > self.cold_leaves() * LEFT + self.leaf_max()
    }

    /// Whether a leaf in memory may be cold once its record is all that it is.
    fn may_leave(&self, from: &Edge<'_>, leaf: Node) -> bool {
        // What is left of it takes less than half.
        let is_worth_it = leaf.bytes() > 2 * Node::cold_bytes(leaf.fence());
        let run = leaf.run();
        is_worth_it
            && !K::stays(from)
            && !run.is_empty()
            && !self.is_shared(leaf)
            && run.flags() & EXPIRING == 0
    }

    /// Lets the items of a leaf leave memory, which begins at this place and rests on a record that is all
    /// that it is and can be read. Whether it did.
    pub fn chill(&mut self, place: &LeafPlace, record: Base) -> bool {
        let mut path = self.view().seek(&place.edge());
        let leaf = path.leaf();
        let is_it = leaf.base() == record && leaf.is_whole() && record.at != 0;
        if leaf.is_cold() || !is_it || !self.may_leave(&place.edge(), leaf) {
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
        let leaf = self.new_leaf(cold.fence(), run.len_in_leaf(K::FLAGS));
        leaf.edit(|into| into.append(run));
        leaf.set_whole_base(cold.base());
        leaf.set_used();
        self.link(&mut path, usize::from(self.height), leaf);
        Ok(true)
    }
}
