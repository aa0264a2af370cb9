//! Hashes, sets and sorted sets of a locked shard: a run inside the entry while it is small, else a tree.
//!
//! ```text
//!  up to SMALL_BYTES   the value is a run (`collection::run`), items in the order in which they came, those
//!                      of a sorted set in the order of their scores
//!  beyond              the value is the address of a tree whose leaves are runs (`collection::tree`)
//! ```
//!
//! What was a tree stays one, however few items are left. A collection without items is removed by its
//! caller.

use std::sync::atomic::Ordering::Relaxed;

use super::view::{EntryMut, EntryRef};
use crate::collection::any::{Collection, Held, place_in_run, place_in_stream, seed_of};
use crate::collection::cell::Cell;
use crate::collection::items::{AnyItems, HashRef, ItemsRef, SetRef};
use crate::collection::kind::{Fields, LeafKind, Members, Scores};
use crate::collection::run::{BARE, EXPIRING, Item, Run, RunMut};
use crate::collection::sorted::scored;
use crate::collection::sorted_ref::SortedRef;
use crate::collection::sorted_scan::ScanStep;
use crate::collection::tree::{Decide, Put};
use crate::entry::{Entry, Form, Kind, NewValue, Stored, Type};
use crate::hash::Seed;

/// The items of an entry, whose kind is known.
#[inline]
fn items_of<'e, K: Held>(entry: Entry) -> ItemsRef<'e, K> {
    assert!(entry.kind() == K::KIND, "another kind is asked for");
    match entry.is_tree() {
        true => {
            let tree = K::tree(entry.tree()).expect("it has the kind of its entry");
            ItemsRef::Tree(tree.view())
        }
        false => ItemsRef::Run(run_of(entry)),
    }
}

/// The run of an entry that has one.
#[inline]
pub(super) fn run_of<'e>(entry: Entry) -> Run<'e> {
    match entry.value() {
        Stored::Inline(bytes) => Run::trusted(bytes),
        Stored::Large(_) => unreachable!("a run is inside its entry"),
    }
}

/// The type of a hash that never passed the limits of Redis' packed encoding.
pub const HASH: Type = Type::whole(Kind::Hash);

/// The value of a hash without fields, for [`crate::New::bytes`]: it gets at least one under the same lock.
pub const EMPTY_HASH: [u8; Run::EMPTY] = [0, 0, Fields::FLAGS | BARE, 0];

/// The type of a set of integers that never passed the limits of Redis' packed encodings.
pub const SET: Type = Type::whole(Kind::Set);

/// As [`EMPTY_HASH`], of a set.
pub const EMPTY_SET: [u8; Run::EMPTY] = [0, 0, Members::FLAGS | BARE, 0];

/// The type of a sorted set that never passed the limits of Redis' packed encoding.
pub const SORTED_SET: Type = Type::whole(Kind::SortedSet);

/// As [`EMPTY_HASH`], of a sorted set.
pub const EMPTY_SORTED_SET: [u8; Run::EMPTY] = [0, 0, Scores::FLAGS | BARE, 0];

/// The members of a sorted set, and their scores.
#[inline]
fn sorted_of<'e>(entry: Entry) -> SortedRef<'e> {
    assert!(entry.kind() == Kind::SortedSet, "another kind is asked for");
    match entry.is_tree() {
        false => SortedRef::Run(run_of(entry)),
        true => match entry.tree() {
            Collection::SortedSet(set) => SortedRef::Tree(set),
            _ => unreachable!("it has the kind of its entry"),
        },
    }
}

impl<'a> EntryRef<'a> {
    /// The items.
    ///
    /// # Panics
    /// It is no collection of this kind, or in the log alone.
    pub fn items<K: Held>(self) -> ItemsRef<'a, K> {
        items_of(self.entry)
    }

    /// The items, if it is a collection.
    ///
    /// # Panics
    /// It is one in the log alone.
    pub fn all_items(self) -> Option<AnyItems<'a>> {
        match self.kind() {
            Kind::Hash => Some(AnyItems::Hash(self.items())),
            Kind::Set => Some(AnyItems::Set(self.items())),
            Kind::SortedSet => Some(AnyItems::SortedSet(self.items())),
            Kind::List => Some(AnyItems::List(self.items())),
            Kind::Stream => Some(AnyItems::Stream(self.items())),
            Kind::String => None,
        }
    }

    /// The members of the sorted set.
    ///
    /// # Panics
    /// It is none, or in the log alone.
    pub fn sorted(self) -> SortedRef<'a> {
        sorted_of(self.entry)
    }

    /// The fields of the hash.
    ///
    /// # Panics
    /// It is none, or in the log alone.
    pub fn hash_fields(self) -> HashRef<'a> {
        self.items()
    }

    /// The members of the set.
    ///
    /// # Panics
    /// It is none, or in the log alone.
    pub fn set_members(self) -> SetRef<'a> {
        self.items()
    }
}

impl EntryMut<'_, '_> {
    /// The items.
    ///
    /// # Panics
    /// It is no collection of this kind, or in the log alone.
    #[inline]
    pub fn items<K: Held>(&self) -> ItemsRef<'_, K> {
        items_of(self.entry())
    }

    /// The members of the sorted set.
    ///
    /// # Panics
    /// It is none, or in the log alone.
    #[inline]
    pub fn sorted(&self) -> SortedRef<'_> {
        sorted_of(self.entry())
    }

    /// The fields of the hash.
    ///
    /// # Panics
    /// It is none, or in the log alone.
    pub fn hash_fields(&self) -> HashRef<'_> {
        self.items()
    }

    /// The members of the set.
    ///
    /// # Panics
    /// It is none, or in the log alone.
    pub fn set_members(&self) -> SetRef<'_> {
        self.items()
    }

    /// Sets an item of a collection: one of the same name is replaced. A field has a value, a member none.
    ///
    /// # Panics
    /// It is no collection, or in the log alone.
    pub fn set_item(&mut self, item: &Item<'_>) -> Put {
        let entry = self.entry();
        if entry.is_tree() {
            return self.edit_tree(|tree| tree.set(item));
        }
        let most = self.guard.shared.small_bytes.load(Relaxed);
        self.set_in_run(item, most)
            .unwrap_or_else(|| self.make_tree(item))
    }

    /// Sets an item of a small collection that has at most `most` bytes afterwards; `None` if it would have
    /// more.
    #[inline]
    pub(super) fn set_in_run(&mut self, item: &Item<'_>, most: usize) -> Option<Put> {
        let entry = self.entry();
        if entry.is_tree() {
            return None;
        }
        let (run, kind) = (run_of(entry), entry.kind());
        let (index, is_there) = match kind {
            Kind::Stream => place_in_stream(run, item),
            _ => run
                .find(item.name)
                .map_or((run.count(), false), |index| (index, true)),
        };
        self.set_at(index, is_there, item, most)
    }

    /// [`EntryMut::set_in_run`] of an item that is at an index, or belongs there. The place in a sorted set
    /// is looked for.
    pub(super) fn set_at(
        &mut self,
        index: usize,
        is_there: bool,
        item: &Item<'_>,
        most: usize,
    ) -> Option<Put> {
        let entry = self.entry();
        let run = run_of(entry);
        let expires = run.flags() & EXPIRING != 0 || item.expiry.is_some();
        let before = run.earliest();
        let (len, kind) = (run.bytes().len(), entry.kind());
        let growth = run.growth(item, is_there.then_some(index))?;
        let new_len = len.saturating_add_signed(growth);
        // One that does not grow stays a run, though the limit may be another by now: an item that is set
        // to what it was is no change, and no log is told of it.
        if new_len > most.max(len) {
            return None;
        }
        let form = entry.form();
        let value = self.resize_value(new_len.max(len), form);
        let mut run = RunMut::new(value, len);
        match (kind, is_there) {
            (Kind::SortedSet, _) => {
                // Another score is another place.
                if is_there {
                    run.remove(index);
                }
                let place = place_in_run(kind, run.run(), item);
                run.insert(place, item);
            }
            (_, true) => run.replace(index, item),
            (_, false) => run.insert(index, item),
        }
        if expires {
            run.settle_expiring();
        }
        if new_len < len {
            self.resize_value(new_len, form);
        }
        if expires {
            self.guard.settle_items(self.slot, self.hash, before);
        }
        Some(match is_there {
            true => Put::Replaced,
            false => Put::Added,
        })
    }

    /// Lets a field expire at this time (Unix, ms), or never; whether there is one.
    ///
    /// # Panics
    /// As [`EntryMut::hash_fields`].
    pub fn reschedule_field(&mut self, name: Cell<'_>, expiry: Option<u64>) -> bool {
        if self.entry().is_tree() {
            return self.edit_tree(|tree| tree.reschedule(name, expiry));
        }
        let mut buffer = Vec::new();
        let item = self.hash_fields().get(name);
        let item = item.map(|item| item.moved_to(&mut buffer).with_expiry(expiry));
        item.is_some_and(|item| {
            self.set_item(&item);
            true
        })
    }

    /// Lets the fields of these names expire when `decide` says: see
    /// [`crate::collection::tree::Tree::reschedule_each`].
    ///
    /// # Panics
    /// As [`EntryMut::hash_fields`].
    pub fn reschedule_fields(&mut self, names: &[Cell<'_>], decide: Decide<'_>) {
        let mut left = 0;
        while !self.entry().is_tree() && left < names.len() {
            let name = names[left];
            if let Some(item) = self.hash_fields().get(name)
                && let Some(expiry) = decide(left, item.expiry)
            {
                self.reschedule_field(name, expiry);
            }
            left += 1;
        }
        if left < names.len() {
            self.edit_tree(|tree| {
                if let Collection::Hash(tree) = tree {
                    tree.reschedule_each(&names[left..], &mut |at, old| decide(left + at, old));
                }
            });
        }
    }

    /// The same of a small hash, if it has at most `most` bytes afterwards.
    pub(super) fn reschedule_in_run(&mut self, name: Cell<'_>, expiry: Option<u64>, most: usize) {
        let mut buffer = Vec::new();
        let item = self.hash_fields().get(name);
        if let Some(item) = item.map(|item| item.moved_to(&mut buffer).with_expiry(expiry)) {
            self.set_in_run(&item, most);
        }
    }

    /// Removes an item; whether there was one. The caller removes a collection that has none left.
    ///
    /// # Panics
    /// As [`EntryMut::set_item`].
    pub fn remove_item(&mut self, name: Cell<'_>) -> bool {
        let entry = self.entry();
        if entry.is_tree() {
            return self.edit_tree(|tree| tree.remove_name(name));
        }
        let run = run_of(entry);
        let Some(index) = run.find(name) else {
            return false;
        };
        let (expires, before) = (run.flags() & EXPIRING != 0, run.earliest());
        let (len, form) = (run.bytes().len(), entry.form());
        let mut run = RunMut::new(self.resize_value(len, form), len);
        run.remove(index);
        if expires {
            run.settle_expiring();
        }
        let left = run.len();
        self.resize_value(left, form);
        if expires {
            self.guard.settle_items(self.slot, self.hash, before);
        }
        true
    }

    /// Gives a member of a sorted set the score that `decide` says for the one that it has, if it says one.
    /// Returns both.
    ///
    /// # Panics
    /// It is no sorted set, or in the log alone.
    pub fn change_score(
        &mut self,
        member: Cell<'_>,
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Option<(Option<f64>, f64)> {
        if !self.entry().is_tree() {
            let before = self.sorted().score(member);
            let after = decide(before)?;
            self.set_item(&scored(member, after, &mut [0; 8]));
            return Some((before, after));
        }
        self.edit_tree(|tree| match tree {
            Collection::SortedSet(set) => set.change(member, decide),
            _ => unreachable!("the command has found a sorted set"),
        })
    }

    /// What a call of a scan of a sorted set shows: see [`crate::collection::sorted_scan`].
    ///
    /// # Panics
    /// As [`EntryMut::change_score`].
    pub fn begin_scan(&mut self, cursor: u64, count: usize, fresh: u64) -> ScanStep {
        let entry = self.entry();
        if !entry.is_tree() {
            return ScanStep::whole();
        }
        let tree = entry.tree_mut();
        let before = tree.bytes();
        let Collection::SortedSet(set) = tree else {
            unreachable!("the command has found a sorted set")
        };
        let step = set.begin_scan(cursor, count, fresh);
        self.guard.add_bytes(tree.bytes().wrapping_sub(before));
        step
    }

    /// Removes a member of a sorted set that has this score; whether it was there.
    ///
    /// # Panics
    /// As [`EntryMut::change_score`].
    pub fn take_member(&mut self, item: &Item<'_>) -> bool {
        if !self.entry().is_tree() {
            return self.remove_item(item.name);
        }
        self.edit_tree(|tree| match tree {
            Collection::SortedSet(set) => set.take(item),
            _ => unreachable!("the command has found a sorted set"),
        })
    }

    /// How the value counts as written from here on.
    pub fn set_form(&mut self, form: Form) {
        let entry = self.entry();
        self.guard.preserve(entry);
        entry.set_form(form);
    }

    #[inline]
    pub(super) fn edit_tree<R>(&mut self, edit: impl FnOnce(&mut Collection) -> R) -> R {
        let entry = self.entry();
        self.guard.preserve(entry);
        let tree = entry.tree_mut();
        let (before, due) = (tree.bytes(), tree.next_due());
        let result = edit(tree);
        let after = tree.bytes();
        let expires = due.is_some() || tree.next_due().is_some();
        tree.tell_lost();
        self.guard.add_bytes(after.wrapping_sub(before));
        if expires {
            self.guard.settle_items(self.slot, self.hash, due);
        }
        result
    }

    /// Makes a tree of the run and sets the item in it.
    fn make_tree(&mut self, item: &Item<'_>) -> Put {
        self.make_tree_with(item.expiry.is_some(), |tree| tree.set(item))
    }

    /// Makes a tree of the run, which is changed then. `expires`: it gets an item that does.
    pub(super) fn make_tree_with<R>(
        &mut self,
        expires: bool,
        change: impl FnOnce(&mut Collection) -> R,
    ) -> R {
        let entry = self.entry();
        self.guard.preserve(entry);
        // A seed of its own: the order of items in one collection tells nothing about the order in another.
        let seed = Seed::new(self.guard.shared.seed.hash(entry.key()));
        let seed = seed_of(entry.kind(), run_of(entry), seed);
        let mut tree = Collection::new(entry.kind(), seed, self.guard.shared.leaf_max());
        run_of(entry).iter().for_each(|item| {
            tree.set(&item);
        });
        let put = change(&mut tree);
        let (slot, before, due) = (self.slot, entry.memory(), entry.next_due());
        let expires = due.is_some() || expires;
        let tree = Box::new(tree);
        let (entry, garbage) = entry.replaced_by(self.guard.heap(), NewValue::Tree(tree));
        self.guard.exchange(slot, before, entry);
        self.guard.discard(garbage);
        if expires {
            self.guard.settle_items(slot, self.hash, due);
        }
        self.guard.relieve();
        put
    }
}
