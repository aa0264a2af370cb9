//! What a shard does for a snapshot: copies entries before they change, and lets itself be walked through.
//!
//! See [`crate::snapshot`] for how this comes to a point in time.

use std::sync::Arc;

use super::cell::Copied;
use super::guard::Guard;
use crate::entry::cold::ColdValue;
use crate::entry::{Entry, Mark, Stored};
use crate::hash::Place;
use crate::index::Index;
use crate::records::{RecordValue, Records};

/// Entries looked at under one lock of the walk: a few microseconds, so that a worker who wants the shard
/// hardly waits.
const WALKED_PER_LOCK: usize = 32;

/// Bytes copied in a shard before they are handed over.
const COPIED_BYTES: usize = 16 * 1024;

impl Guard<'_> {
    /// Comes before every change and removal of an entry: a copy is made if a snapshot still wants it as it
    /// is.
    #[inline]
    pub(super) fn preserve(&mut self, entry: Entry) {
        let mark = self.shared.snapshot.mark();
        if !entry.has_mark(mark) {
            self.copy_owed(entry, mark);
        }
    }

    #[cold]
    #[inline(never)]
    fn copy_owed(&mut self, entry: Entry, mark: Mark) {
        entry.set_mark(mark);
        // SAFETY: the lock is held and `&mut self` makes this the only way to the state.
        let state = unsafe { &mut *self.cell.state.get() };
        if state.copied.is_none() {
            state.copied = self
                .shared
                .snapshot
                .part_of(std::ptr::from_ref(self.cell).addr())
                .map(|part| {
                    let records = Records::default();
                    Box::new(Copied { part, records })
                });
        }
        // There is nobody to copy it for if a snapshot was broken off.
        let Some(copied) = &mut state.copied else {
            return;
        };
        push(&mut copied.records, entry, copied.part.started_ms);
        if copied.records.bytes() >= COPIED_BYTES {
            let full = std::mem::take(&mut copied.records);
            self.shared.snapshot.hand_over(copied.part, full);
        }
    }

    /// Copies what is owed in some buckets from `place` on, and marks it. Returns where to go on, `None` at
    /// the end.
    pub(crate) fn walk_owed(
        &mut self,
        mut place: Place,
        started_ms: i64,
        records: &mut Records,
    ) -> Option<Place> {
        let mark = self.shared.snapshot.mark();
        // SAFETY: as in `copy_owed`.
        let state = unsafe { &mut *self.cell.state.get() };
        let index = Index {
            tables: &self.cell.tables,
            state: &mut state.index,
        };
        let mut seen = 0;
        while seen < WALKED_PER_LOCK {
            index.prefetch_behind(place);
            let next = index.visit_home(place, |_, entry| {
                seen += 1;
                if !entry.has_mark(mark) {
                    entry.set_mark(mark);
                    push(records, entry, started_ms);
                }
            });
            // Empty buckets cost a little too.
            seen += 1;
            place = next?;
        }
        Some(place)
    }

    /// Whether copies wait to be handed over.
    #[cfg(test)]
    pub(crate) fn has_copies(&mut self) -> bool {
        // SAFETY: as in `copy_owed`.
        unsafe { &*self.cell.state.get() }.copied.is_some()
    }

    /// Hands over what was copied, when the walk has come to the end of this shard: nothing in it is owed any
    /// more.
    pub(crate) fn end_walk(&mut self) {
        // SAFETY: as in `copy_owed`.
        let state = unsafe { &mut *self.cell.state.get() };
        if let Some(copied) = state.copied.take()
            && !copied.records.is_empty()
        {
            self.shared.snapshot.hand_over(copied.part, copied.records);
        }
    }
}

/// Copies an entry, unless its time had come when the snapshot began.
#[inline]
fn push(records: &mut Records, entry: Entry, started_ms: i64) {
    let expiry = entry.expiry();
    if expiry.is_some_and(|expiry| started_ms > expiry) {
        return;
    }
    let value = match ColdValue::of(entry) {
        Some(cold) => RecordValue::Cold(cold),
        None if entry.is_tree() => RecordValue::Tree(Arc::new(entry.tree_mut().freeze())),
        None => match entry.value() {
            Stored::Inline(bytes) => RecordValue::Inline(bytes),
            Stored::Large(large) => RecordValue::Large(large.share()),
        },
    };
    records.push_typed(entry.key(), (entry.value_type(), value), expiry);
}
