//! Entries whose value is a tree, as a log sees them: their leaves are in records of their own.

use super::view::{EntryMut, EntryRef};
use super::writing::New;
use crate::collection::any::Collection;
use crate::collection::log::edits::{self, Edit};
use crate::collection::log::ledger::Descriptor;
use crate::collection::run::Damage;
use crate::entry::{Kind, NewValue};

impl<'a> EntryRef<'a> {
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
        self.guard.relieve();
    }

    /// Applies a record of edits to a small hash, which stays a run.
    ///
    /// # Errors
    /// The record makes no sense, or the value is none that it can amend.
    pub fn amend_run(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        if self.entry().kind() != Kind::Hash || self.entry().is_tree() {
            return Err(Damage::Kind);
        }
        for edit in edits::read(bytes, true) {
            match edit? {
                Edit::Set(item) => {
                    self.set_in_run(&item, usize::from(u16::MAX))
                        .ok_or(Damage::Length)?;
                }
                Edit::Remove(name) => drop(self.remove_field(name)),
            }
        }
        Ok(())
    }
}
