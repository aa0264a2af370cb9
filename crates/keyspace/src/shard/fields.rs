//! Hashes of a locked shard: a run inside the entry while it is small, else a tree.
//!
//! ```text
//!  up to SMALL_BYTES   the value is a run (`collection::run`), fields in the order in which they came
//!  beyond              the value is the address of a tree whose leaves are runs (`collection::tree`)
//! ```
//!
//! A hash that was a tree stays one, however few fields are left. One without fields is removed by its
//! caller.

use std::sync::atomic::Ordering::Relaxed;

use super::view::{EntryMut, EntryRef};
use crate::collection::any::{Collection, Moment};
use crate::collection::cell::Cell;
use crate::collection::kind::{Edge, Fields, LeafKind};
use crate::collection::run::{BARE, EXPIRING, Item, Items, Run, RunMut};
use crate::collection::tree::{Put, Tree};
use crate::collection::view::{View, Walk};
use crate::entry::{Entry, Form, Kind, NewValue, Stored, Type};
use crate::hash::Seed;

/// The fields of a hash.
#[derive(Clone, Copy, Debug)]
pub enum HashRef<'e> {
    /// Of a small one.
    Run(Run<'e>),
    /// Of a large one.
    Tree(View<'e, Fields>),
}

impl<'e> HashRef<'e> {
    /// The fields of a small hash: bytes that a keyspace has given out.
    pub fn of_run(bytes: &'e [u8]) -> HashRef<'e> {
        HashRef::Run(Run::trusted(bytes))
    }

    fn of(entry: Entry) -> HashRef<'e> {
        assert!(entry.kind() == Kind::Hash, "a hash is asked for");
        if entry.is_tree() {
            let Collection::Hash(tree) = entry.tree();
            return HashRef::Tree(tree.view());
        }
        match entry.value() {
            Stored::Inline(bytes) => HashRef::Run(Run::trusted(bytes)),
            Stored::Large(_) => unreachable!("a run is inside its entry"),
        }
    }

    /// Whether it is a large one.
    pub fn is_tree(self) -> bool {
        matches!(self, HashRef::Tree(_))
    }

    /// How many fields there are.
    pub fn len(self) -> u64 {
        match self {
            HashRef::Run(run) => run.count() as u64,
            HashRef::Tree(tree) => tree.count(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// A field with its value.
    pub fn get(self, name: Cell<'_>) -> Option<Item<'e>> {
        match self {
            HashRef::Run(run) => run.lookup(name).map(|(_, item)| item),
            HashRef::Tree(tree) => tree.get(name),
        }
    }

    /// The field of a rank, from 0. Ranks are in no order of names, and stay while nothing changes. O(log n).
    pub fn at(self, rank: u64) -> Option<Item<'e>> {
        match self {
            HashRef::Run(run) => run.get(usize::try_from(rank).ok()?),
            HashRef::Tree(tree) => tree.at(rank),
        }
    }

    /// When the first field expires (Unix, ms), if any does. Of a tree all leaves are looked at.
    pub fn earliest(self) -> Option<u64> {
        match self {
            HashRef::Run(run) => run.earliest(),
            HashRef::Tree(tree) => {
                let leaves = tree.leaves(&Edge::default());
                let warm = leaves.filter(|leaf| !leaf.is_cold());
                warm.filter_map(|leaf| leaf.run().earliest()).min()
            }
        }
    }

    /// All fields, by rank.
    pub fn iter(self) -> HashFields<'e> {
        match self {
            HashRef::Run(run) => HashFields::Run(run.iter()),
            HashRef::Tree(tree) => HashFields::Tree(Box::new(tree.iter())),
        }
    }

    /// The items of one leaf, by the place where it begins, or all of a small hash. Returns the place of the
    /// next leaf. Places are those of one moment.
    pub fn items_from(self, place: &LeafPlace, visit: impl FnMut(Item<'e>)) -> Option<LeafPlace> {
        let (run, next) = self.leaf_from(place);
        run.iter().for_each(visit);
        next
    }

    /// [`HashRef::items_from`] as cells: each name (the second argument of `visit` is true), then its value.
    #[inline]
    pub fn cells_from(
        self,
        place: &LeafPlace,
        visit: impl FnMut(Cell<'e>, bool),
    ) -> Option<LeafPlace> {
        let (run, next) = self.leaf_from(place);
        run.cells(visit);
        next
    }

    /// A leaf, and where the next begins.
    fn leaf_from(self, place: &LeafPlace) -> (Run<'e>, Option<LeafPlace>) {
        match self {
            HashRef::Run(run) => (run, None),
            HashRef::Tree(tree) => {
                let mut leaves = tree.leaves(&place.edge());
                let leaf = leaves.next().expect("a tree has a leaf");
                (
                    leaf.run(),
                    leaves.next().map(|next| LeafPlace::of(next.start())),
                )
            }
        }
    }

    /// Shows the next fields of a scan, about `count` of them; a scan begins at cursor 0. Returns the cursor
    /// to go on with, 0 at the end.
    ///
    /// A field that exists during the whole scan is shown at least once, whatever else changes between calls.
    /// A run is shown as a whole. Of a tree whole leaves are shown: the cursor is the field hash at which the
    /// next leaf begins, so splits and merges of leaves do not affect it.
    pub fn scan(self, cursor: u64, count: usize, mut visit: impl FnMut(Item<'e>)) -> u64 {
        let tree = match self {
            HashRef::Run(run) => {
                run.iter().for_each(visit);
                return 0;
            }
            HashRef::Tree(tree) => tree,
        };
        let from = Edge::before(u128::from(cursor) << 64);
        let mut shown = 0;
        for leaf in tree.leaves(&from) {
            // A leaf with a fence begins with the last hash of the leaf before: no cursor separates them.
            if shown >= count.max(1) && leaf.fence.is_empty() {
                return (leaf.order >> 64) as u64;
            }
            for item in leaf
                .run()
                .iter()
                .filter(|item| !tree.is_before(item, &from))
            {
                visit(item);
                shown += 1;
            }
        }
        0
    }
}

/// Where a leaf of a tree begins. The default is the first.
#[derive(Clone, Debug, Default)]
pub struct LeafPlace {
    order: u128,
    fence: Box<[u8]>,
}

impl LeafPlace {
    fn of(edge: Edge<'_>) -> LeafPlace {
        LeafPlace {
            order: edge.order,
            fence: edge.name.into(),
        }
    }

    fn edge(&self) -> Edge<'_> {
        Edge {
            order: self.order,
            name: &self.fence,
        }
    }
}

/// Fields of a hash.
#[derive(Debug)]
pub enum HashFields<'e> {
    /// Of a small one.
    Run(Items<'e>),
    /// Of a large one.
    Tree(Box<Walk<'e>>),
}

impl<'e> Iterator for HashFields<'e> {
    type Item = Item<'e>;

    fn next(&mut self) -> Option<Item<'e>> {
        match self {
            HashFields::Run(items) => items.next(),
            HashFields::Tree(walk) => walk.next(),
        }
    }
}

impl Moment {
    /// The fields of a hash.
    pub fn hash(&self) -> HashRef<'_> {
        let Moment::Hash(frozen) = self;
        HashRef::Tree(frozen.view())
    }
}

/// The type of a hash that never passed the limits of Redis' packed encoding.
pub const HASH: Type = Type::whole(Kind::Hash);

/// The value of a hash without fields, for [`crate::New::bytes`]: it gets at least one under the same lock.
pub const EMPTY_HASH: [u8; Run::EMPTY] = [0, 0, Fields::FLAGS | BARE, 0];

impl<'a> EntryRef<'a> {
    /// The fields of the hash.
    ///
    /// # Panics
    /// It is none, or in the log alone.
    pub fn hash_fields(self) -> HashRef<'a> {
        HashRef::of(self.entry)
    }
}

impl EntryMut<'_, '_> {
    /// The fields of the hash.
    ///
    /// # Panics
    /// It is none, or in the log alone.
    pub fn hash_fields(&self) -> HashRef<'_> {
        HashRef::of(self.entry())
    }

    /// Sets a field: one of the same name is replaced.
    ///
    /// # Panics
    /// As [`EntryMut::hash_fields`].
    pub fn set_field(&mut self, item: &Item<'_>) -> Put {
        let entry = self.entry();
        if entry.is_tree() {
            return self.edit_tree(|tree| tree.set(item));
        }
        let most = self.guard.shared.small_bytes.load(Relaxed);
        self.set_in_run(item, most)
            .unwrap_or_else(|| self.make_tree(item))
    }

    /// Sets a field of a small hash that has at most `most` bytes afterwards; `None` if it would have more.
    #[inline]
    pub(super) fn set_in_run(&mut self, item: &Item<'_>, most: usize) -> Option<Put> {
        let entry = self.entry();
        let HashRef::Run(run) = HashRef::of(entry) else {
            return None;
        };
        let expires = run.flags() & EXPIRING != 0 || item.expiry.is_some();
        let before = run.earliest();
        let (len, found) = (run.bytes().len(), run.find(item.name));
        let growth = run.growth(item, found)?;
        let new_len = len.saturating_add_signed(growth);
        if new_len > most {
            return None;
        }
        let form = entry.form();
        let value = self.resize_value(new_len.max(len), form);
        let mut run = RunMut::new(value, len);
        match found {
            Some(index) => run.replace(index, item),
            None => {
                let end = run.run().count();
                run.insert(end, item);
            }
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
        Some(match found {
            Some(_) => Put::Replaced,
            None => Put::Added,
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
            self.set_field(&item);
            true
        })
    }

    /// The same of a small hash, if it has at most `most` bytes afterwards.
    pub(super) fn reschedule_in_run(&mut self, name: Cell<'_>, expiry: Option<u64>, most: usize) {
        let mut buffer = Vec::new();
        let item = self.hash_fields().get(name);
        if let Some(item) = item.map(|item| item.moved_to(&mut buffer).with_expiry(expiry)) {
            self.set_in_run(&item, most);
        }
    }

    /// Removes a field; whether there was one. The caller removes a hash that has none left.
    ///
    /// # Panics
    /// As [`EntryMut::hash_fields`].
    pub fn remove_field(&mut self, name: Cell<'_>) -> bool {
        let entry = self.entry();
        let HashRef::Run(run) = HashRef::of(entry) else {
            return self.edit_tree(|tree| tree.remove_name(name));
        };
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

    /// How the value counts as written from here on.
    pub fn set_form(&mut self, form: Form) {
        let entry = self.entry();
        self.guard.preserve(entry);
        entry.set_form(form);
    }

    fn edit_tree<R>(&mut self, edit: impl FnOnce(&mut Tree<Fields>) -> R) -> R {
        let entry = self.entry();
        self.guard.preserve(entry);
        let Collection::Hash(tree) = entry.tree_mut();
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

    /// Makes a tree of the run and sets the field in it.
    fn make_tree(&mut self, item: &Item<'_>) -> Put {
        let entry = self.entry();
        self.guard.preserve(entry);
        // A seed of its own: the order of fields in one hash tells nothing about the order in another.
        let seed = Seed::new(self.guard.shared.seed.hash(entry.key()));
        let mut tree = Tree::new(Fields { seed }, self.guard.shared.leaf_max());
        HashRef::of(entry).iter().for_each(|item| {
            tree.set(&item);
        });
        let put = tree.set(item);
        let (slot, before, due) = (self.slot, entry.memory(), entry.next_due());
        let expires = due.is_some() || item.expiry.is_some();
        let tree = Box::new(Collection::Hash(tree));
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
