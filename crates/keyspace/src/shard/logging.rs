//! Entries whose value is a tree, as a log sees them: their leaves are in records of their own.

use super::view::{EntryMut, EntryRef};
use super::writing::New;
use crate::collection::any::{Collection, run_flags};
use crate::collection::log::edits::{self, Edit};
use crate::collection::log::ledger::Descriptor;
use crate::collection::log::numbered::NumberedEdits;
use crate::collection::run::{Damage, Item, PAIRS};
use crate::entry::{Kind, NewValue};

/// Bytes of a run up to which edits of a log are applied. What was logged as a run has less; what is
/// larger is of a moment that never was, and is replaced by a later record.
const RUN_MAX: usize = 1 << 15;

impl<'a> EntryRef<'a> {
    /// Whether the value is a tree.
    #[inline]
    pub fn is_tree(self) -> bool {
        self.entry.is_tree()
    }

    /// The value, if it is a tree.
    #[inline]
    pub fn tree(self) -> Option<&'a Collection> {
        self.entry.is_tree().then(|| self.entry.tree())
    }
}

impl New<'_> {
    /// A tree of the log, of which the descriptor alone is known. It has no items until
    /// [`EntryMut::fill_tree`].
    pub fn unfilled(kind: Kind, descriptor: Descriptor, database: u16) -> Self {
        let tree = Collection::unfilled(kind, descriptor);
        tree.logged().expect(descriptor.instance, database);
        New::value(NewValue::Tree(Box::new(tree)))
    }
}

impl EntryMut<'_, '_> {
    /// The value, if it is a tree.
    #[inline]
    pub fn tree(&self) -> Option<&Collection> {
        self.as_ref().tree()
    }

    /// Puts the tree that a log has in the place of one without items.
    ///
    /// # Panics
    /// The value is no tree.
    pub fn fill_tree(&mut self, tree: Collection) {
        let entry = self.entry();
        self.guard.preserve(entry);
        let empty = std::mem::replace(entry.tree_mut(), tree);
        let grown = entry.tree().bytes().wrapping_sub(empty.bytes());
        self.guard.add_bytes(grown);
        self.guard
            .settle_items(self.slot, self.hash, empty.next_due());
        self.guard.relieve();
    }

    /// Applies a record of edits to a small collection, which stays a run, as far as a run can hold them.
    ///
    /// # Errors
    /// The record makes no sense.
    ///
    /// # Panics
    /// The value is no small collection.
    pub fn amend_run(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        let has_values = run_flags(self.kind()) & PAIRS != 0;
        let kind = self.kind();
        let mut numbers = NumberedEdits::default();
        for edit in edits::read(bytes, has_values) {
            let edit = edit?;
            match edit {
                Edit::CutIds(range) if kind == Kind::Stream => {
                    self.cut_ids(&range);
                }
                _ if edit.key().is_none() != (kind == Kind::List) => return Err(Damage::Kind),
                Edit::CutIds(..) => return Err(Damage::Kind),
                Edit::Take(item) if kind == Kind::Stream => drop(self.take_stream_item(&item)),
                Edit::Put(..) | Edit::Cut(..) | Edit::Insert(..) => {
                    self.amend_elements(edit, &mut numbers, RUN_MAX);
                }
                Edit::Set(item) => {
                    self.set_in_run(&item, RUN_MAX);
                }
                Edit::Remove(name) | Edit::Take(Item { name, .. }) => drop(self.remove_item(name)),
                Edit::Reschedule(name, expiry) => {
                    self.reschedule_in_run(name, expiry, RUN_MAX);
                }
            }
        }
        Ok(())
    }
}
