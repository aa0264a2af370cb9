//! The items of an entry's collection, to be read: of a run inside the entry, or of a tree.

use std::ops::Range;

use super::any::{Held, Moment};
use super::cell::Cell;
use super::cursor::{cursor_of, first_of};
use super::kind::{Edge, Elements, Fields, LeafPlace, Members, Scores};
use super::node::Base;
use super::run::{Damage, Item, Items, Run};
use super::stream::StreamItems;
use super::thawed::{Thawed, ThawedLeaf};
use super::view::{LeafRef, Leaves, View, Walk};
use crate::entry::Kind;
use crate::large::LargeValue;

/// The items of a collection.
#[derive(Debug)]
pub enum ItemsRef<'e, K> {
    /// Of a small one.
    Run(Run<'e>),
    /// Of a large one.
    Tree(View<'e, K>),
}

/// The fields of a hash.
pub type HashRef<'e> = ItemsRef<'e, Fields>;
/// The members of a set.
pub type SetRef<'e> = ItemsRef<'e, Members>;
/// The elements of a list.
pub type ListRef<'e> = ItemsRef<'e, Elements>;

impl<K> Clone for ItemsRef<'_, K> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for ItemsRef<'_, K> {}

impl<'e> ListRef<'e> {
    /// Shows the elements of the ranks `from..to` in their order, as long as `visit` says so.
    #[inline]
    pub fn visit(self, from: u64, to: u64, mut visit: impl FnMut(Cell<'e>) -> bool) {
        let to = to.min(self.len());
        if from >= to {
            return;
        }
        let mut left = (to - from) as usize;
        match self {
            ItemsRef::Run(run) => {
                run.singles(from as usize, left, visit);
            }
            ItemsRef::Tree(tree) => {
                let (leaves, mut index) = tree.leaves_from_rank(from);
                for leaf in leaves {
                    let run = leaf.run();
                    let count = left.min(run.count() - index);
                    left -= count;
                    if !run.singles(index, count, &mut visit) || left == 0 {
                        return;
                    }
                    index = 0;
                }
            }
        }
    }

    /// The run that has the element of a rank, which is there, and its index.
    #[inline]
    fn run_at(self, rank: u64) -> (Run<'e>, usize) {
        match self {
            ItemsRef::Run(run) => (run, rank as usize),
            ItemsRef::Tree(view) => {
                let (path, index) = view.seek_rank(rank);
                (view.run_of(path.leaf()), index)
            }
        }
    }

    /// Shows the elements from a rank on, to before that of `end`, as many as are in one leaf. Returns the
    /// rank of the next.
    pub fn visit_leaf(self, from: u64, end: u64, mut visit: impl FnMut(Cell<'e>)) -> u64 {
        let end = end.min(self.len());
        if from >= end {
            return end;
        }
        let (run, index) = self.run_at(from);
        let count = (run.count() - index).min((end - from) as usize);
        run.singles(index, count, |element| {
            visit(element);
            true
        });
        from + count as u64
    }

    /// Shows the element of a rank, which is there, and those behind it in the same leaf, as long as `visit`
    /// says so.
    #[inline]
    pub fn search_leaf(self, rank: u64, visit: impl FnMut(Cell<'e>) -> bool) {
        let (run, index) = self.run_at(rank);
        run.singles(index, run.count() - index, visit);
    }

    /// Shows the element of a rank, which is there, and those before it in the same leaf, as long as `visit`
    /// says so.
    pub fn search_leaf_back(self, rank: u64, mut visit: impl FnMut(Cell<'e>) -> bool) {
        let (run, index) = self.run_at(rank);
        let mut before = Vec::with_capacity(index + 1);
        run.singles(0, index + 1, |element| {
            before.push(element);
            true
        });
        before.into_iter().rev().all(&mut visit);
    }

    /// Shows the elements, the last first, as long as `visit` says so.
    pub fn visit_back(self, mut visit: impl FnMut(Cell<'e>) -> bool) {
        let mut leaf = Vec::new();
        let mut visit_run = |run: Run<'e>| {
            leaf.clear();
            leaf.extend(run.iter().map(|item| item.name));
            leaf.iter().rev().all(|&element| visit(element))
        };
        match self {
            ItemsRef::Run(run) => drop(visit_run(run)),
            ItemsRef::Tree(tree) => {
                let mut leaves = tree.leaves_back(&Edge::before(u128::MAX));
                leaves.all(|leaf| visit_run(leaf.run()));
            }
        }
    }
}

impl<'e, K: Held> ItemsRef<'e, K> {
    /// The items of a small collection: bytes that a keyspace has given out.
    pub fn of_run(bytes: &'e [u8]) -> ItemsRef<'e, K> {
        ItemsRef::Run(Run::trusted(bytes))
    }

    /// Whether it is a large one.
    pub fn is_tree(self) -> bool {
        matches!(self, ItemsRef::Tree(_))
    }

    /// How many items there are.
    #[inline]
    pub fn len(self) -> u64 {
        match self {
            ItemsRef::Run(run) => run.count() as u64,
            ItemsRef::Tree(tree) => tree.count(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The item of a name. Of a large sorted set all items are looked at: see [`super::sorted_ref`].
    #[inline]
    pub fn get(self, name: Cell<'_>) -> Option<Item<'e>> {
        match self {
            ItemsRef::Run(run) => run.lookup(name).map(|(_, item)| item),
            // Names say nothing of the place.
            ItemsRef::Tree(tree) if K::IS_SORTED => tree.iter().find(|item| item.name == name),
            ItemsRef::Tree(tree) => tree.get(name),
        }
    }

    /// The item of a rank, from 0. Ranks are in no order of names, and stay while nothing changes. O(log n).
    pub fn at(self, rank: u64) -> Option<Item<'e>> {
        match self {
            ItemsRef::Run(run) => run.get(usize::try_from(rank).ok()?),
            ItemsRef::Tree(tree) => tree.at(rank),
        }
    }

    /// When the first item expires (Unix, ms), if any does. Of a tree all leaves are looked at.
    pub fn earliest(self) -> Option<u64> {
        match self {
            ItemsRef::Run(run) => run.earliest(),
            ItemsRef::Tree(tree) => {
                let leaves = tree.leaves(&Edge::default());
                let warm = leaves.filter(|leaf| !leaf.is_cold());
                warm.filter_map(|leaf| leaf.run().earliest()).min()
            }
        }
    }

    /// All items, by rank.
    pub fn iter(self) -> AllItems<'e> {
        match self {
            ItemsRef::Run(run) => AllItems::Run(run.iter()),
            ItemsRef::Tree(tree) => AllItems::Tree(Box::new(tree.iter())),
        }
    }

    /// The items of one leaf, by the place where it begins, or all of a small collection. Returns the place
    /// of the next leaf. Places are those of one moment.
    pub fn items_from(self, place: &LeafPlace, visit: impl FnMut(Item<'e>)) -> Option<LeafPlace> {
        let (run, next) = self.leaf_from(place);
        run.iter().for_each(visit);
        next
    }

    /// [`ItemsRef::items_from`] as cells: each name (the second argument of `visit` is true), then its value
    /// if items have one.
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
    pub(super) fn leaf_from(self, place: &LeafPlace) -> (Run<'e>, Option<LeafPlace>) {
        match self {
            ItemsRef::Run(run) => (run, None),
            ItemsRef::Tree(tree) => {
                let mut leaves = tree.leaves(&place.edge());
                let leaf = leaves.next().expect("a tree has one leaf at least");
                (
                    leaf.run(),
                    leaves.next().map(|next| LeafPlace::of(next.start())),
                )
            }
        }
    }

    /// Shows the next items of a scan, about `count` of them; a scan begins at cursor 0. Returns the cursor
    /// to go on with, 0 at the end.
    ///
    /// An item that exists during the whole scan is shown at least once, whatever else changes between calls.
    /// A run is shown as a whole. Of a tree whole leaves are shown: the cursor is that of the order key at
    /// which the next leaf begins ([`super::cursor`]), so splits and merges of leaves do not affect it. Items
    /// of the leaf before with the same cursor are shown again.
    pub fn scan(self, cursor: u64, count: usize, mut visit: impl FnMut(Item<'e>)) -> u64 {
        let tree = match self {
            ItemsRef::Run(run) => {
                run.iter().for_each(visit);
                return 0;
            }
            ItemsRef::Tree(tree) => tree,
        };
        let Some(first) = first_of(cursor) else {
            return 0;
        };
        let from = Edge::before(u128::from(first) << 64);
        let mut shown = 0;
        for leaf in tree.leaves(&from) {
            let next = cursor_of((leaf.order >> 64) as u64);
            if shown >= count.max(1) && next > cursor {
                return next;
            }
            let is_wanted = |item: &Item<'e>| !tree.is_before(item, &from);
            for item in leaf.run().iter().filter(is_wanted) {
                visit(item);
                shown += 1;
            }
        }
        0
    }
}

fn cold_of(leaves: Leaves<'_>, most: usize) -> Vec<Base> {
    let leaves = leaves.take(most).filter(|leaf| leaf.is_cold());
    leaves.map(LeafRef::base).collect()
}

/// The items of a collection of any kind.
#[derive(Clone, Copy, Debug)]
pub enum AnyItems<'e> {
    /// The fields of a hash.
    Hash(HashRef<'e>),
    /// The members of a set.
    Set(SetRef<'e>),
    /// The members of a sorted set, with their scores.
    SortedSet(ItemsRef<'e, Scores>),
    /// The elements of a list.
    List(ListRef<'e>),
    /// All items of a stream.
    Stream(ItemsRef<'e, StreamItems>),
}

impl<K: Held> ItemsRef<'_, K> {
    /// Whether items are in the log alone.
    pub fn has_cold_leaves(self) -> bool {
        match self {
            ItemsRef::Run(_) => false,
            ItemsRef::Tree(tree) => tree.has_cold_leaves(),
        }
    }

    /// The number of the instance in the log that a large collection is; 0 if there is none.
    pub fn instance(self) -> u64 {
        match self {
            ItemsRef::Run(_) => 0,
            ItemsRef::Tree(tree) => tree.instance(),
        }
    }

    /// The records of those leaves that are cold, of the next `leaves` from a place on.
    pub fn cold_from(self, place: &LeafPlace, leaves: usize) -> Vec<Base> {
        match self {
            ItemsRef::Run(_) => Vec::new(),
            ItemsRef::Tree(tree) => cold_of(tree.leaves(&place.edge()), leaves),
        }
    }

    /// The same, from the leaf of a rank on; backwards, if `is_reverse`.
    pub fn cold_from_rank(self, rank: u64, leaves: usize, is_reverse: bool) -> Vec<Base> {
        match self {
            ItemsRef::Run(_) => Vec::new(),
            ItemsRef::Tree(tree) if is_reverse => cold_of(tree.leaves_back_from_rank(rank), leaves),
            ItemsRef::Tree(tree) => cold_of(tree.leaves_from_rank(rank).0, leaves),
        }
    }

    /// The records of the cold leaves that a scan shows. See [`View::cold_of_scan`].
    pub fn cold_of_scan(self, cursor: u64, count: usize) -> Vec<Base> {
        match self {
            ItemsRef::Run(_) => Vec::new(),
            ItemsRef::Tree(tree) => tree.cold_of_scan(cursor, count),
        }
    }

    /// The records of the cold leaves that have items of the ranks from one to another.
    pub fn cold_between(self, from: u64, to: u64) -> Vec<Base> {
        match self {
            ItemsRef::Run(_) => Vec::new(),
            ItemsRef::Tree(tree) => tree.cold_between(from, to),
        }
    }

    /// Checks what was read of a leaf that is cold. See [`View::thaw`].
    ///
    /// # Errors
    /// As there.
    pub fn thaw(self, base: Base, contents: LargeValue) -> Result<ThawedLeaf, Damage> {
        match self {
            ItemsRef::Run(_) => Err(Damage::Kind),
            ItemsRef::Tree(tree) => tree.thaw(base, contents),
        }
    }

    /// Shows all items, those that are in the log alone, too. See [`View::try_each`].
    ///
    /// # Errors
    /// As there.
    pub fn try_each<E: From<Damage>>(
        self,
        read: &mut dyn FnMut(u64, Base) -> Result<LargeValue, E>,
        visit: &mut dyn FnMut(Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            ItemsRef::Run(run) => run.iter().try_for_each(visit),
            ItemsRef::Tree(tree) => tree.try_each(read, visit),
        }
    }
}

impl<K: Held> ItemsRef<'_, K> {
    /// Shows the items of some ranks, those that are in the log alone, too. See [`View::try_ranks`].
    ///
    /// # Errors
    /// As there.
    pub fn try_ranks<E: From<Damage>>(
        self,
        ranks: Range<u64>,
        read: &mut dyn FnMut(u64, Base) -> Result<LargeValue, E>,
        visit: &mut dyn FnMut(Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            ItemsRef::Run(run) => {
                let count = ranks.end.saturating_sub(ranks.start) as usize;
                let mut items = run.range(ranks.start as usize).take(count);
                items.try_for_each(visit)
            }
            ItemsRef::Tree(tree) => tree.try_ranks(ranks, read, visit),
        }
    }

    /// The rank at which each leaf ends, from the leaf of a rank on.
    pub fn leaf_ends(self, rank: u64) -> Vec<u64> {
        match self {
            ItemsRef::Run(run) => vec![run.count() as u64],
            ItemsRef::Tree(tree) => {
                let (leaves, index) = tree.leaves_from_rank(rank);
                let mut end = rank - index as u64;
                leaves
                    .map(|leaf| {
                        end += leaf.count;
                        end
                    })
                    .collect()
            }
        }
    }
}

impl<'e> AnyItems<'e> {
    /// The items of a small collection: bytes that a keyspace has given out.
    ///
    /// # Panics
    /// There are no runs of this kind.
    pub fn of_run(kind: Kind, bytes: &'e [u8]) -> AnyItems<'e> {
        match kind {
            Kind::Hash => AnyItems::Hash(ItemsRef::of_run(bytes)),
            Kind::Set => AnyItems::Set(ItemsRef::of_run(bytes)),
            Kind::SortedSet => AnyItems::SortedSet(ItemsRef::of_run(bytes)),
            Kind::List => AnyItems::List(ItemsRef::of_run(bytes)),
            Kind::Stream => AnyItems::Stream(ItemsRef::of_run(bytes)),
            Kind::String => unreachable!("a string is no collection"),
        }
    }

    /// How many items there are.
    pub fn len(self) -> u64 {
        match self {
            AnyItems::Hash(fields) => fields.len(),
            AnyItems::Set(members) => members.len(),
            AnyItems::SortedSet(scores) => scores.len(),
            AnyItems::List(elements) => elements.len(),
            AnyItems::Stream(items) => items.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// All items, by rank.
    pub fn iter(self) -> AllItems<'e> {
        match self {
            AnyItems::Hash(fields) => fields.iter(),
            AnyItems::Set(members) => members.iter(),
            AnyItems::SortedSet(scores) => scores.iter(),
            AnyItems::List(elements) => elements.iter(),
            AnyItems::Stream(items) => items.iter(),
        }
    }

    /// Shows all items, those that are in the log alone, too. See [`View::try_each`].
    ///
    /// # Errors
    /// As there.
    pub fn try_each<E: From<Damage>>(
        self,
        read: &mut dyn FnMut(u64, Base) -> Result<LargeValue, E>,
        visit: &mut dyn FnMut(Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            AnyItems::Hash(fields) => fields.try_each(read, visit),
            AnyItems::Set(members) => members.try_each(read, visit),
            AnyItems::SortedSet(scores) => scores.try_each(read, visit),
            AnyItems::List(elements) => elements.try_each(read, visit),
            AnyItems::Stream(items) => items.try_each(read, visit),
        }
    }
}

/// All items of a collection.
#[derive(Debug)]
pub enum AllItems<'e> {
    /// Of a small one.
    Run(Items<'e>),
    /// Of a large one.
    Tree(Box<Walk<'e>>),
}

impl<'e> Iterator for AllItems<'e> {
    type Item = Item<'e>;

    #[inline]
    fn next(&mut self) -> Option<Item<'e>> {
        match self {
            AllItems::Run(items) => items.next(),
            AllItems::Tree(walk) => walk.next(),
        }
    }
}

impl Moment {
    /// The items, of the kind that the collection has.
    ///
    /// # Panics
    /// It is of another kind.
    pub fn items<K: Held>(&self) -> ItemsRef<'_, K> {
        let frozen = K::frozen(self).expect("it was taken of an entry of this kind");
        ItemsRef::Tree(frozen.view())
    }

    /// The items, of the kind that the collection has; those of cold leaves as they were read.
    ///
    /// # Panics
    /// It is of another kind.
    pub fn items_with<'e, K: Held>(&'e self, thawed: &'e Thawed) -> ItemsRef<'e, K> {
        let frozen = K::frozen(self).expect("it was taken of an entry of this kind");
        let thawed = Some(thawed);
        ItemsRef::Tree(View {
            thawed,
            ..frozen.view()
        })
    }

    /// The items, whatever they are.
    pub fn all_items(&self) -> AnyItems<'_> {
        match self {
            Moment::Hash(_) => AnyItems::Hash(self.items()),
            Moment::Set(_) => AnyItems::Set(self.items()),
            Moment::SortedSet(_) => AnyItems::SortedSet(self.items()),
            Moment::List(_) => AnyItems::List(self.items()),
            Moment::Stream(_) => AnyItems::Stream(self.items()),
        }
    }
}
