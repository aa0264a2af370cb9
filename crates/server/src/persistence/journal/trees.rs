//! Collections: changes of their items become records.
//!
//! A small collection is inside its entry: the record of its key has it as a whole, and a change of items is
//! an edit of that value. A tree is an instance of the log ([`super::super::instances`]): the record of its
//! key names the instance, and a change of items is an edit of the instance, so the entry keeps its address.

use ferrite_log::Appender;
use keyspace::collection::any::run_flags;
use keyspace::collection::log::edits::{self, Edits};
use keyspace::collection::run::PAIRS;
use keyspace::{EntryMut, EntryRef, Key, LogAddress, Overwritten};

use super::{Journal, Mode, Replaced, stored, tag_of};
use crate::limits::{JOURNAL_BATCH_BYTES, JOURNAL_KEEP_BYTES};

/// Gives out the bytes that the record of a key has for its value: those of a tree name its instance.
///
/// # Panics
/// The value is in the log alone, or a tree whose leaves are not in the log.
pub(crate) fn with_value<R>(entry: EntryRef<'_>, with: impl FnOnce(&[u8]) -> R) -> R {
    match entry.tree() {
        None => with(entry.value().bytes()),
        Some(tree) => {
            let descriptor = tree
                .descriptor()
                .expect("its leaves are written before its key");
            with(&descriptor.bytes())
        }
    }
}

impl Journal {
    /// [`Journal::wrote`] of a tree. Its leaves are written if they are not in the log.
    #[cold]
    pub(super) fn wrote_tree(
        &self,
        db: usize,
        key: Key<'_>,
        entry: EntryRef<'_>,
        old: Option<Overwritten>,
    ) -> LogAddress {
        let mut inner = self.inner.borrow_mut();
        let id = self.id(db);
        assert!(inner.mode != Mode::Series, "a series has strings alone");
        if inner.is_batching() {
            inner.has_trees = true;
            inner.note(id, key, old);
            return LogAddress::PENDING;
        }
        let (tag, tree) = (
            tag_of(entry),
            entry.tree().expect("others are logged by `wrote`"),
        );
        let appender: &mut Appender = &mut inner.appender;
        self.instances.log_tree(appender, id, key, tag, tree);
        let address = with_value(entry, |value| {
            appender.set(id, key.bytes, tag, entry.expiry(), value)
        });
        inner.mark_dead(key.bytes.len(), Replaced::of(old));
        stored(address)
    }

    /// No changes of items, with memory to collect some.
    #[inline]
    pub(crate) fn edits(&self) -> Edits {
        self.edits.take()
    }

    /// Logs changes of items. `old`: what the log had of the entry before; `edits`: the changes
    /// ([`keyspace::collection::log::edits`]); `is_whole`: more has changed than they say.
    #[inline]
    pub(crate) fn edited(
        &self,
        entry: &mut EntryMut<'_, '_>,
        old: Option<Overwritten>,
        mut edits: Edits,
        is_whole: bool,
    ) {
        self.log_edits(entry, old, edits.bytes(), is_whole);
        edits.clear(JOURNAL_KEEP_BYTES);
        self.edits.set(edits);
    }

    #[inline(never)]
    fn log_edits(
        &self,
        entry: &mut EntryMut<'_, '_>,
        old: Option<Overwritten>,
        edits: &[u8],
        is_whole: bool,
    ) {
        let (key, view, db) = (entry.key(), entry.as_ref(), entry.database());
        let mut inner = self.inner.borrow_mut();
        let (id, tag) = (self.id(db), tag_of(view));
        if let Some(tree) = view.tree()
            && let Some((instance, database)) = tree.logged().place()
            && database == id.0
        {
            let (most, is_batching) = (JOURNAL_BATCH_BYTES as usize, inner.is_batching());
            let has_values = run_flags(view.kind()) & PAIRS != 0;
            edits::in_parts(edits, has_values, most, |edits| match is_batching {
                true => inner.note_edits(id, key.hash, instance, tag, edits),
                false => drop(inner.appender.edit_instance(id, instance, tag, edits)),
            });
            if !is_whole {
                return;
            }
        }
        let base = Replaced::of(old).map(|old| old.address);
        let is_shorter = !is_whole && edits.len() < entry.value_len();
        let address = match base {
            Some(base)
                if is_shorter && !view.is_tree() && !base.is_blob() && !inner.is_batching() =>
            {
                inner.appender.edit(id, key.bytes, tag, edits);
                stored(base.patched())
            }
            _ => {
                drop(inner);
                self.wrote(db, key, view, old)
            }
        };
        entry.set_log_address(address);
    }
}
