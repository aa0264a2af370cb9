//! Items of collections that expire: the fields of hashes.
//!
//! An entry with such items is *expiring* ([`crate::entry`]), and the shard counts it. A lookup of the key
//! first removes all items whose time has come. So every command sees the items that are there at its time,
//! and counts no other. The wheel has an item for the earliest time, so that fields leave memory without a
//! lookup, too, a slice at a time.
//!
//! A removal is a change: it is logged as one, unlike the expiry of a key, and told to the observers. With
//! the last item the key goes.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::atomic::Ordering::Relaxed;

use super::guard::Guard;
use crate::collection::cell::Cell;
use crate::collection::log::edits::Edits;
use crate::collection::run::{Item, RunMut};
use crate::entry::LogAddress;
use crate::entry::overwritten::Overwritten;
use crate::hash::Key;
use crate::index::Slot;
use crate::observe::{ChangeKind, ItemsExpired};

/// Leaves of a tree that are looked at before their removals are logged, and in one slice of what nobody asks
/// for: some 100 us.
pub(super) const LEAVES_PER_SLICE: usize = 16;

/// What is left of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Items that have not expired.
    Alive,
    /// Also some that have.
    Due,
    /// Nothing: the key is gone.
    Nothing,
}

impl Guard<'_> {
    /// Removes all items of an entry that have expired; whether the entry is still there.
    #[cold]
    #[inline(never)]
    pub(super) fn expire_all_items(&mut self, slot: Slot) -> bool {
        if self.shared.keeps_expired.load(Relaxed) {
            return true;
        }
        loop {
            match self.expire_items_of(slot) {
                Left::Alive => return true,
                Left::Due => {}
                Left::Nothing => return false,
            }
        }
    }

    /// Removes items of an entry that have expired: those of a run, or of some leaves of a tree.
    pub(super) fn expire_items_of(&mut self, slot: Slot) -> Left {
        let now = self.now.max(0) as u64;
        let entry = self.index().entry(slot);
        if entry.next_due().is_none_or(|due| now <= due) {
            return Left::Alive;
        }
        self.preserve(entry);
        let old = Overwritten::of(entry).filter(|old| old.address.is_known());
        let mut edits = old.map(|_| Edits::default());
        let mut removed = 0;
        let is_over = self.take_due_items(slot, now, |name| {
            removed += 1;
            if let Some(edits) = &mut edits {
                edits.remove(name);
            }
        });
        self.shared.expired_items.fetch_add(removed, Relaxed);
        let entry = self.index().entry(slot);
        let due = entry.next_due();
        if due.is_none() && !is_over {
            entry.set_expiring(false);
            self.note_expiring(-1);
        }
        if removed > 0 {
            self.tell_of_items(slot, old, edits.as_ref().map_or(&[], Edits::bytes), is_over);
        }
        if is_over {
            let entry = self.unlink(slot);
            self.free(entry);
            return Left::Nothing;
        }
        match due.is_some_and(|due| now > due) {
            true => Left::Due,
            false => Left::Alive,
        }
    }

    /// Removes items that have expired at `now` from the value, and shows their names. Whether none is left.
    fn take_due_items(&mut self, slot: Slot, now: u64, mut visit: impl FnMut(Cell<'_>)) -> bool {
        let entry = self.index().entry(slot);
        let mut visit = |item: &Item<'_>| visit(item.name);
        if entry.is_tree() {
            let tree = entry.tree_mut();
            let before = tree.bytes();
            tree.remove_due(now, LEAVES_PER_SLICE, &mut visit);
            let (after, is_over) = (tree.bytes(), tree.count() == 0);
            self.add_bytes(after.wrapping_sub(before));
            return is_over;
        }
        let value = entry.value_mut();
        let len = value.len();
        let mut run = RunMut::new(value, len);
        run.remove_due(now, &mut visit);
        let (left, is_over) = (run.len(), run.is_empty());
        if !entry.resize_in_place(left) {
            let before = entry.memory();
            let (moved, garbage) = entry.resize_value(self.heap(), left);
            self.exchange(slot, before, moved);
            self.discard(garbage);
        }
        is_over
    }

    /// Tells the log, and then the observers, of items that were removed.
    fn tell_of_items(&mut self, slot: Slot, old: Option<Overwritten>, edits: &[u8], is_gone: bool) {
        let entry = self.index().entry(slot);
        let shared = self.shared;
        let bytes = entry.key();
        let hash = shared.seed.hash(bytes);
        if let (Some(old), Some(observer)) = (old, shared.observer.get()) {
            let moved: Option<LogAddress> = observer.items_expired(&ItemsExpired {
                database: self.cell.lock.database(),
                key: bytes,
                of: entry.value_type(),
                is_expiring: entry.is_expiring(),
                instance: match entry.is_tree() {
                    true => entry.tree().logged().place(),
                    false => None,
                },
                old,
                edits,
                is_gone,
            });
            if let Some(address) = moved {
                entry.write_log_address(address);
            }
        }
        if self.observed() != 0 || shared.hears_expiry.load(Relaxed) {
            let kind = ChangeKind::ItemsExpired { is_gone };
            self.cell
                .lock
                .tell_observer(shared, Key { bytes, hash }, kind);
        }
    }

    /// Notes whether items of a value expire that has just been put into an entry, or changed. `before`: the
    /// earliest time of what was there.
    #[cold]
    #[inline(never)]
    pub(super) fn settle_items(&mut self, slot: Slot, hash: u64, before: Option<u64>) {
        let entry = self.index().entry(slot);
        let due = entry.next_due();
        if due.is_some() != entry.is_expiring() {
            entry.set_expiring(due.is_some());
            self.note_expiring(if due.is_some() { 1 } else { -1 });
        }
        self.schedule_items(hash, before, due);
    }

    /// What the wheel's item does for an entry whose items expire: removes some that have. Breaks if there
    /// are more.
    pub(super) fn expire_slice(&mut self, slot: Slot) -> ControlFlow<()> {
        match self.expire_items_of(slot) {
            Left::Due => Break(()),
            Left::Alive | Left::Nothing => Continue(()),
        }
    }
}
