//! Entries whose value is a tree: they own it, by its address.

use super::{ELSEWHERE, Entry, VALUE_LENGTH_SHIFT, WORD};
use crate::collection::any::Collection;
use crate::collection::log::ledger::DESCRIPTOR_LEN;

impl Entry {
    /// Moves the collection out of an entry that is freed next. Until then the entry holds a value of eight
    /// bytes, which mean nothing.
    pub(crate) fn give_up_tree(self) -> Option<Box<Collection>> {
        let tree = self.take_tree()?;
        let header = self.header() & !ELSEWHERE;
        self.set_header(header | (WORD as u64) << VALUE_LENGTH_SHIFT);
        Some(tree)
    }

    /// Bytes of the value in the record of the key: of a tree there is a descriptor alone.
    #[inline]
    pub(crate) fn logged_len(self) -> usize {
        if self.is_tree() {
            DESCRIPTOR_LEN
        } else {
            self.value_len()
        }
    }

    /// [`Entry::tree`], to be changed. The caller holds the shard's lock and has no other reference.
    pub(crate) fn tree_mut<'a>(self) -> &'a mut Collection {
        assert!(self.is_tree(), "the value is no tree");
        let tree = self.word(self.shape(self.header()).value_at) as *mut Collection;
        // SAFETY: as in `tree`; unique by the caller's contract.
        unsafe { &mut *tree }
    }
}
