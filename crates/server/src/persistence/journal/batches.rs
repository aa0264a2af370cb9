//! Batches: the changes of several keys, and of transactions, which a crash must not separate.
//!
//! While a batch runs, the changed keys are collected; at its end the state of each is written. A tree whose
//! leaves are in the log is the exception: its edits are collected, in their order. The leaves of other trees
//! are written before the batch: a leaf of an instance that no key names counts for nothing. Only where the
//! batch empties databases they are in it, because what is before it does not count then.

use std::ops::Range;
use std::sync::Arc;

use ferrite_log::{Appender, Batch, Blob, DbId, Record, Tag};
use keyspace::collection::Base;
use keyspace::collection::log::ledger::DESCRIPTOR_LEN;
use keyspace::{Guard, Key, LogAddress, Overwritten};

use super::libraries::LibraryBatch;
use super::trees::with_value;
use super::{Held, Inner, Journal, Mode, Replaced, stored, tag_of};
use crate::limits::{JOURNAL_BATCH_BYTES, JOURNAL_KEEP_BYTES};
use crate::persistence::instances::{leaf_share, mark_dead};

/// One change of a batch.
pub(super) struct Noted {
    /// Log id of its database, which stays when databases are exchanged.
    id: DbId,
    /// Hash of the key.
    hash: u64,
    /// The key, or the edits.
    bytes: Range<usize>,
    what: What,
}

enum What {
    /// The key has another value, or none; the file of its value, if it has one.
    State {
        replaced: Option<Replaced>,
        blob: Option<Arc<Blob>>,
    },
    /// Items of an instance were changed.
    Edits { instance: u64, tag: Tag },
}

impl Noted {
    fn bytes<'k>(&self, keys: &'k [u8]) -> &'k [u8] {
        &keys[self.bytes.clone()]
    }

    fn key<'k>(&self, keys: &'k [u8]) -> Key<'k> {
        Key {
            bytes: self.bytes(keys),
            hash: self.hash,
        }
    }

    fn replaced(&self) -> Option<Replaced> {
        match self.what {
            What::State { replaced, .. } => replaced,
            What::Edits { .. } => None,
        }
    }

    fn blob(&self) -> Option<&Arc<Blob>> {
        match &self.what {
            What::State { blob, .. } => blob.as_ref(),
            What::Edits { .. } => None,
        }
    }
}

impl Inner {
    /// Collects a changed key, once.
    pub(super) fn note(&mut self, id: DbId, key: Key<'_>, old: Option<Overwritten>) {
        self.note_with(id, key, old, None);
    }

    /// [`Inner::note`] of a key whose value has a file.
    pub(super) fn note_with(
        &mut self,
        id: DbId,
        key: Key<'_>,
        old: Option<Overwritten>,
        blob: Option<Arc<Blob>>,
    ) {
        if old.is_some_and(|old| old.address == LogAddress::PENDING) {
            return;
        }
        let replaced = Replaced::of(old);
        self.collect(id, key.hash, key.bytes, What::State { replaced, blob });
    }

    /// Collects edits of an instance. `hash`: of its key.
    pub(super) fn note_edits(
        &mut self,
        id: DbId,
        hash: u64,
        instance: u64,
        tag: Tag,
        edits: &[u8],
    ) {
        self.collect(id, hash, edits, What::Edits { instance, tag });
    }

    fn collect(&mut self, id: DbId, hash: u64, bytes: &[u8], what: What) {
        let from = self.keys.len();
        self.keys.extend_from_slice(bytes);
        self.changes.push(Noted {
            id,
            hash,
            bytes: from..self.keys.len(),
            what,
        });
    }
}

impl Journal {
    /// Logs the state of the keys that a batch has changed, unless it is part of a transaction. Their shards
    /// are still locked.
    #[inline]
    pub(crate) fn finish(&self, held: &mut dyn Held) {
        let mut inner = self.inner.borrow_mut();
        if inner.in_transaction {
            return;
        }
        if std::mem::replace(&mut inner.mode, Mode::Single) == Mode::Series {
            inner.appender.end_series();
        }
        if !(inner.changes.is_empty() && inner.rebinds.is_empty() && inner.libraries.is_empty()) {
            self.finish_changes(&mut inner, held);
        }
    }

    #[inline(never)]
    fn finish_changes(&self, inner: &mut Inner, held: &mut dyn Held) {
        let Inner {
            appender,
            changes,
            keys,
            rebinds,
            libraries,
            has_trees,
            ..
        } = inner;
        let mut rest = &changes[..];
        if std::mem::take(has_trees) && rebinds.is_empty() {
            self.log_trees(appender, rest, keys, held);
        }
        let (mut leaves, mut lost) = (Vec::new(), Vec::new());
        while !(rest.is_empty() && rebinds.is_empty() && libraries.is_empty()) {
            let mut batch = appender.batch();
            if !rebinds.is_empty() {
                batch.bind(rebinds);
                rebinds.clear();
            }
            let changed = std::mem::take(libraries);
            let mut changed = LibraryBatch::gather(&mut batch, self.libraries, changed);
            let mut count = 0;
            for change in rest {
                let fits = match change.what {
                    What::Edits { instance, tag } => {
                        gather_edits(&mut batch, change.id, instance, tag, change.bytes(keys))
                    }
                    What::State { .. } => {
                        let (key, mut fits) = (change.key(keys), true);
                        held.with(self.number(change.id), change.hash, &mut |guard| {
                            fits = self.gather(&mut batch, change, guard, key, &mut lost);
                        });
                        fits
                    }
                };
                if !fits {
                    break;
                }
                count += 1;
            }
            let (now, later) = rest.split_at(count);
            let mut now = now.iter();
            batch.finish(|appender, record, address| {
                if let ferrite_log::Change::Leaf { bytes, .. } = record.change {
                    return leaves.push(base_of(record, bytes.len()));
                }
                if record.db == DbId::APART {
                    return changed.settle(appender, self.libraries, address);
                }
                let change = now.next().expect("one record was gathered for each");
                let (key, liveness) = (change.key(keys), appender.liveness());
                if let Some(old) = change.replaced() {
                    old.mark_dead(key.bytes.len(), liveness);
                }
                let Some(address) = address else { return };
                held.with(self.number(change.id), change.hash, &mut |guard| {
                    let Some(mut entry) = guard.find(key) else {
                        return;
                    };
                    if let Some(tree) = entry.tree().filter(|_| !leaves.is_empty()) {
                        tree.set_bases(leaves.drain(..));
                    }
                    // A key that was removed and added again is in the batch twice.
                    if let Some(old) = Replaced::of(entry.overwritten()) {
                        old.mark_dead(key.bytes.len(), liveness);
                    }
                    entry.set_log_address(stored(address));
                });
            });
            rest = later;
        }
        mark_dead(appender, &lost);
        changes.clear();
        keys.clear();
        changes.shrink_to(JOURNAL_KEEP_BYTES / size_of::<Noted>());
        keys.shrink_to(JOURNAL_KEEP_BYTES);
    }

    /// Writes the leaves of changed trees that are not in the log.
    fn log_trees(
        &self,
        appender: &mut Appender,
        changes: &[Noted],
        keys: &[u8],
        held: &mut dyn Held,
    ) {
        let states = changes
            .iter()
            .filter(|change| matches!(change.what, What::State { .. }));
        for change in states {
            let key = change.key(keys);
            held.with(self.number(change.id), change.hash, &mut |guard| {
                let Some(entry) = guard.find(key) else { return };
                let view = entry.as_ref();
                if let Some(tree) = view.tree() {
                    let tag = tag_of(view);
                    self.instances.log_tree(appender, change.id, key, tag, tree);
                }
            });
        }
    }

    /// Adds the state of a key to a batch. Returns whether it fits. What no leaf rests on any more is
    /// appended to `lost`.
    fn gather(
        &self,
        batch: &mut Batch<'_>,
        change: &Noted,
        guard: &mut Guard<'_>,
        key: Key<'_>,
        lost: &mut Vec<Base>,
    ) -> bool {
        let (id, entry) = (change.id, guard.find(key));
        if let Some(entry) = &entry
            && entry.cold().is_some()
        {
            match change.blob() {
                Some(blob) => {
                    let tag = tag_of(entry.as_ref());
                    batch.set_blob(id, key.bytes, tag, entry.expiry(), blob);
                }
                // Only its expiry has changed.
                None => batch.expire(id, key.bytes, entry.expiry()),
            }
            return true;
        }
        let value = entry.as_ref().map_or(0, |entry| match entry.tree() {
            Some(_) => DESCRIPTOR_LEN,
            None => entry.value_len(),
        });
        let bytes = batch.log_bytes() + Appender::bytes_of(key.bytes.len(), value);
        if bytes > JOURNAL_BATCH_BYTES && !batch.is_empty() {
            return false;
        }
        match entry {
            Some(entry) => {
                let (tag, expiry) = (tag_of(entry.as_ref()), entry.expiry());
                if let Some(tree) = entry.tree()
                    && let Some(instance) = self.instances.adopt(id, key, tree)
                {
                    tree.write_leaves(lost, &mut |contents| {
                        batch.leaf(id, instance, tag, contents);
                        Some(Base::default())
                    });
                }
                with_value(entry.as_ref(), |value| {
                    batch.set(id, key.bytes, tag, expiry, value);
                });
            }
            None => batch.delete(id, key.bytes),
        }
        true
    }
}

/// The record of a leaf, which the leaf rests on. `bytes`: of its contents.
fn base_of(record: &Record<'_>, bytes: u64) -> Base {
    Base {
        at: record.lsn.get(),
        share: leaf_share(bytes as usize),
    }
}

/// Adds edits of an instance to a batch. Returns whether they fit.
fn gather_edits(batch: &mut Batch<'_>, id: DbId, instance: u64, tag: Tag, edits: &[u8]) -> bool {
    let bytes = batch.log_bytes() + Appender::leaf_bytes(edits.len());
    if bytes > JOURNAL_BATCH_BYTES && !batch.is_empty() {
        return false;
    }
    batch.edit_instance(id, instance, tag, edits);
    true
}
