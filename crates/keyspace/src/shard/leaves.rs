//! Leaves of trees that leave memory while the rest of the tree stays, and come back
//! ([`crate::collection::tree`]).
//!
//! A leaf goes when one written record has all of it. One that has changed is written first, and goes when
//! its tree is looked at the next time.

use std::sync::atomic::Ordering::Acquire;

use super::view::EntryMut;
use crate::collection::log::leaf::LeafRecord;
use crate::collection::run::Damage;
use crate::collection::tree::Leaving;

/// Leaves that go, or are written, in one look at a tree.
pub(super) const LEAVES_AT_ONCE: usize = 32;

/// Leaves that are looked at for those that go, under one lock of the shard, in all its trees together.
pub(super) const LOOKS: usize = 1024;

/// The same in one tree, after laps without any that goes.
const BARREN_LOOKS: usize = LOOKS / 16;

/// Result of a look at a tree.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeavesLeft {
    /// Number of leaves that left memory.
    pub(super) gone: usize,
    /// Whether leaves are written first.
    pub(super) waits: bool,
    /// Whether further looks may find such leaves. It is false where no leaf may leave: then writes are
    /// refused.
    pub(super) has_more: bool,
}

/// What is to happen with a value, or a leaf, that is the next to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offloading {
    /// The log has it: it goes.
    Goes,
    /// It stays: others go before it.
    Stays,
    /// It goes soon, and nothing else before it.
    Waits,
}

impl EntryMut<'_, '_> {
    /// Whether the value is a tree.
    #[inline]
    pub fn is_tree(&self) -> bool {
        self.entry().is_tree()
    }

    /// Lets up to `most` leaves of a tree leave memory. Of each that is the next to go `decide` says what
    /// happens; it may write the leaf. The leaves that are looked at are taken from `looks`.
    pub(super) fn offload_leaves(
        &mut self,
        most: usize,
        looks: &mut usize,
        decide: &mut impl FnMut(&mut EntryMut<'_, '_>, Option<&Leaving>) -> Offloading,
    ) -> LeavesLeft {
        let entry = self.entry();
        let tree = entry.tree_mut();
        let mut left = LeavesLeft::default();
        if tree.logged().place().is_none() {
            return left;
        }
        // Leaves of a tree in which none was found for some laps are looked at too, for they may have been in
        // use; but they leave looks for other trees.
        left.has_more = tree.may_have_leaving() && tree.has_warm_leaves();
        let spared = match left.has_more {
            true => 0,
            false => looks.saturating_sub(BARREN_LOOKS),
        };
        *looks -= spared;
        let before = tree.bytes();
        let mut waiting = None;
        for _ in 0..most {
            let Some(leaving) = entry.tree_mut().next_leaving(looks) else {
                break;
            };
            match (decide(self, Some(&leaving)), leaving.record) {
                (Offloading::Goes, Some(record)) => {
                    left.gone += usize::from(entry.tree_mut().chill(&leaving.place, record));
                }
                (Offloading::Waits, _) => {
                    waiting.get_or_insert(leaving.place);
                }
                (Offloading::Goes | Offloading::Stays, _) => {
                    left.has_more = false;
                    break;
                }
            }
        }
        *looks += spared;
        let tree = entry.tree_mut();
        left.waits = waiting.is_some();
        if let Some(first) = waiting {
            tree.look_again(first);
        }
        let after = tree.bytes();
        self.guard.add_bytes(after.wrapping_sub(before));
        left
    }

    /// Lets all leaves of a tree leave memory that may, however lately they were used, unless the shard is
    /// pinned. As [`crate::Guard::offload`]; whether some wait.
    pub fn offload_all_leaves(
        &mut self,
        mut decide: impl FnMut(&mut EntryMut<'_, '_>, Option<&Leaving>) -> Offloading,
    ) -> bool {
        if self.guard.cell.cold.pins.load(Acquire) > 0 {
            return false;
        }
        let entry = self.entry();
        let before = entry.tree().bytes();
        let mut waits = false;
        for leaving in entry.tree().all_leaving() {
            match (decide(self, Some(&leaving)), leaving.record) {
                (Offloading::Goes, Some(record)) => {
                    entry.tree_mut().chill(&leaving.place, record);
                }
                (decision, _) => waits |= decision == Offloading::Waits,
            }
        }
        let after = entry.tree().bytes();
        self.guard.add_bytes(after.wrapping_sub(before));
        waits
    }

    /// Gives a leaf of a tree its items back, which rests on the record at `at` of an instance. Whether it
    /// does.
    ///
    /// # Errors
    /// The contents of the record make no sense.
    pub fn warm_leaf(&mut self, instance: u64, at: u64, contents: &[u8]) -> Result<bool, Damage> {
        let entry = self.entry();
        if !entry.is_tree() {
            return Ok(false);
        }
        let tree = entry.tree_mut();
        if tree.logged().place().is_none_or(|(own, _)| own != instance) {
            return Ok(false);
        }
        let record = LeafRecord::read(contents)?;
        let before = tree.bytes();
        let is_it = tree.warm(at, &record)?;
        let after = tree.bytes();
        self.guard.add_bytes(after.wrapping_sub(before));
        self.guard.relieve();
        Ok(is_it)
    }
}
