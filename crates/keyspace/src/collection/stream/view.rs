//! A stream to be read: of a run inside an entry, or of a tree.

use super::content::{SHAPE_BYTES_MAX, SHAPES_MAX};
use super::entry::StreamEntry;
use super::group::{
    CONSUMER_NAME, Consumer, GROUP, Group, ItemBuffer, PENDING, Pending, named_consumer,
};
use super::head::Head;
use super::id::Id;
use super::kind::{IdName, SHAPE, Section, StreamItems};
use crate::collection::any::{Collection, Held, place_in_stream};
use crate::collection::cell::Cell;
use crate::collection::items::{AllItems, ItemsRef};
use crate::collection::kind::Edge;
use crate::collection::node::Base;
use crate::collection::run::{Fraction, Item};
use crate::collection::view::lower;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct StreamRef<'e> {
    items: ItemsRef<'e, StreamItems>,
    kind: StreamItems,
}

impl<'e> StreamRef<'e> {
    /// The stream that has these items.
    #[inline]
    pub fn of(items: ItemsRef<'e, StreamItems>) -> StreamRef<'e> {
        let kind = match items {
            ItemsRef::Run(run) => StreamItems::of_run(run),
            ItemsRef::Tree(tree) => *tree.kind,
        };
        StreamRef { items, kind }
    }

    /// The stream that a tree is; `None` if it is none.
    pub fn in_tree(tree: &'e Collection) -> Option<StreamRef<'e>> {
        let tree = StreamItems::tree(tree)?;
        Some(StreamRef::of(ItemsRef::Tree(tree.view())))
    }

    /// All items.
    #[inline]
    pub fn items(self) -> ItemsRef<'e, StreamItems> {
        self.items
    }

    /// The time (ms) that distances are from.
    #[inline]
    pub fn base(self) -> u64 {
        self.kind.base()
    }

    /// The head; `None` if the stream was just made.
    #[inline]
    pub fn head(self) -> Option<Head> {
        self.items.at(0).and_then(|item| Head::of(&item))
    }

    /// The shapes, by number.
    pub fn shapes(self) -> Vec<&'e [u8]> {
        let (mut shapes, end) = (Vec::new(), self.named_end());
        while shapes.len() < SHAPES_MAX
            && 1 + (shapes.len() as u64) < end
            && let Some(item) = self.items.at(1 + shapes.len() as u64)
            && let (Cell::Bytes(&[SHAPE, _]), Some(Cell::Bytes(names))) = (item.name, item.value)
        {
            shapes.push(names);
        }
        shapes
    }

    /// The number of the shape that has these names; `Err` with that of a new one, if one may be added.
    ///
    /// # Errors
    /// There is no such shape.
    pub fn shape_of(self, names: &[u8]) -> Result<u8, Option<u8>> {
        let shapes = self.shapes();
        if let Some(number) = shapes.iter().position(|shape| *shape == names) {
            return Ok(number as u8);
        }
        let bytes: usize = shapes.iter().map(|shape| shape.len()).sum();
        let may_be_added = shapes.len() < SHAPES_MAX && bytes + names.len() <= SHAPE_BYTES_MAX;
        Err(may_be_added.then_some(shapes.len() as u8))
    }

    /// The item of a shape.
    pub fn shape_item<'b>(number: u8, names: &'b [u8], name: &'b mut [u8; 2]) -> Item<'b> {
        *name = [SHAPE, number];
        Item::pair(Cell::Bytes(name), Cell::Bytes(names))
    }

    /// How many items are before a place. The leaf that covers it is in memory.
    #[inline]
    pub(crate) fn rank(self, edge: &Edge<'_>) -> u64 {
        match self.items {
            ItemsRef::Run(run) => lower(&self.kind, run, edge, Fraction::HALF) as u64,
            ItemsRef::Tree(tree) => tree.count_before(edge),
        }
    }

    /// How many items are before the first entry: entries are the last.
    #[inline]
    pub fn first_rank(self) -> u64 {
        self.items.len().saturating_sub(self.len())
    }

    /// How many items are before that of an ID.
    #[inline]
    pub fn rank_of(self, section: Section, id: Id) -> u64 {
        self.rank(&section.edge(id, &mut IdName::default()))
    }

    /// How many items there are up to that of an ID, it included. The leaf that covers the place of the ID is
    /// in memory. The next leaf, which may begin right after that place, need not be.
    #[inline]
    pub fn rank_behind(self, section: Section, id: Id) -> u64 {
        let mut names = [IdName::default(), IdName::default()];
        let [first, second] = &mut names;
        let behind = section.edge_behind(id, second);
        match self.items {
            ItemsRef::Run(_) => self.rank(&behind),
            ItemsRef::Tree(tree) => tree.count_before_in(&section.edge(id, first), &behind),
        }
    }

    /// The record of the leaf that covers the place of an ID, if it is cold.
    pub fn cold_at(self, section: Section, id: Id) -> Option<Base> {
        match self.items {
            ItemsRef::Run(_) => None,
            ItemsRef::Tree(tree) => tree.cold_covering(&section.edge(id, &mut IdName::default())),
        }
    }

    /// How many entries there are, as the head says.
    #[inline]
    pub fn len(self) -> u64 {
        self.head().map_or(0, |head| head.len)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The entry of a rank, among all items.
    #[inline]
    pub fn entry_at(self, rank: u64) -> Option<StreamEntry<'e>> {
        let item = self.items.at(rank)?;
        StreamEntry::of(self.base(), &item)
    }

    /// The entry of an ID. The leaf that covers its place is in memory. The next leaf, which may have the
    /// next entry if this one is missing, need not be.
    pub fn entry(self, id: Id) -> Option<StreamEntry<'e>> {
        let rank = self.rank_of(Section::ENTRIES, id);
        if self.items.has_cold_leaves() && rank == self.rank_behind(Section::ENTRIES, id) {
            return None;
        }
        self.entry_at(rank).filter(|entry| entry.id == id)
    }

    /// The entries from a rank on, among all items. The leaves that the iterator comes to are in memory.
    pub fn entries_from(self, rank: u64) -> impl Iterator<Item = StreamEntry<'e>> + use<'e> {
        let base = self.base();
        let items = match self.items {
            ItemsRef::Run(run) => AllItems::Run(run.range(rank as usize)),
            ItemsRef::Tree(tree) => AllItems::Tree(Box::new(tree.from_rank(rank))),
        };
        items.map_while(move |item| StreamEntry::of(base, &item))
    }

    /// The first entry, and the last.
    pub fn ends(self) -> Option<(StreamEntry<'e>, StreamEntry<'e>)> {
        let last = self.items.len().checked_sub(1)?;
        Some((self.entry_at(self.first_rank())?, self.entry_at(last)?))
    }

    /// The item with this item's name, and its place.
    #[inline]
    pub fn find(self, item: &Item<'_>) -> Option<Item<'e>> {
        match self.items {
            ItemsRef::Run(run) => {
                let (index, is_there) = place_in_stream(run, item);
                run.get(index).filter(|_| is_there)
            }
            ItemsRef::Tree(tree) => tree.find(item),
        }
    }

    /// A group.
    pub fn group(self, name: &[u8], buffer: &mut ItemBuffer) -> Option<Group> {
        let found = self.find(&buffer.group(name, None))?;
        Group::of(&found).map(|(_, group)| group)
    }

    /// The number of a consumer of a group.
    pub fn consumer_number(self, group: u32, name: &[u8], buffer: &mut ItemBuffer) -> Option<u32> {
        let found = self.find(&buffer.consumer_name(group, name, 0))?;
        named_consumer(&found).map(|(_, _, number)| number)
    }

    /// A consumer of a group.
    pub fn consumer(
        self,
        group: u32,
        number: u32,
        buffer: &mut ItemBuffer,
    ) -> Option<Consumer<'e>> {
        let found = self.find(&buffer.consumer(group, number, None))?;
        Consumer::of(&found).map(|(_, _, consumer)| consumer)
    }

    /// The pending entry of an ID, of a group.
    #[inline]
    pub fn pending(self, group: u32, id: Id, buffer: &mut ItemBuffer) -> Option<Pending> {
        let wanted = Pending {
            id,
            consumer: 0,
            delivered: 0,
            deliveries: 0,
        };
        let found = self.find(&buffer.pending(self.base(), group, &wanted))?;
        Pending::of(self.base(), &found).map(|(_, pending)| pending)
    }

    /// The pending entries of a group from an ID on.
    pub fn pending_from(self, group: u32, from: Id) -> impl Iterator<Item = Pending> + use<'e> {
        let (base, mut name) = (self.base(), IdName::default());
        let items = self.all_from_edge(&Section::of_pending(group).edge(from, &mut name));
        let pending = items.map_while(move |item| Pending::of(base, &item));
        pending
            .take_while(move |&(of, _)| of == group)
            .map(|(_, pending)| pending)
    }

    /// The last pending entry of a group. The leaf of the end of its section is in memory.
    pub fn last_pending(self, group: u32) -> Option<Pending> {
        let behind = self.rank_behind(Section::of_pending(group), Id::MAX);
        let item = self.items.at(behind.checked_sub(1)?)?;
        let (of, pending) = Pending::of(self.base(), &item)?;
        (of == group).then_some(pending)
    }

    /// Whether a group has pending entries from an ID on. As of [`StreamRef::last_pending`].
    pub fn has_pending_from(self, group: u32, id: Id) -> bool {
        self.last_pending(group).is_some_and(|last| last.id >= id)
    }

    /// All items from an edge on.
    fn all_from_edge(self, edge: &Edge<'_>) -> AllItems<'e> {
        match self.items {
            ItemsRef::Run(run) => {
                let from = lower(&self.kind, run, edge, Fraction::HALF);
                AllItems::Run(run.range(from))
            }
            ItemsRef::Tree(tree) => {
                AllItems::Tree(Box::new(tree.from_rank(tree.count_before(edge))))
            }
        }
    }

    /// Where leaves are cold, the number of items that have names and no IDs. Those items are in memory; the
    /// ones after them may not be.
    fn named_end(self) -> u64 {
        match self.items.has_cold_leaves() {
            false => self.items.len(),
            true => self.rank(&StreamItems::named_edge(&[PENDING])),
        }
    }

    /// The items with names that begin with these bytes, and the items with names after those.
    fn named_from(self, name: &[u8]) -> impl Iterator<Item = Item<'e>> + use<'e> {
        let edge = StreamItems::named_edge(name);
        let count = match self.items.has_cold_leaves() {
            false => u64::MAX,
            true => self.named_end().saturating_sub(self.rank(&edge)),
        };
        let items = (count > 0).then(|| self.all_from_edge(&edge));
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        items.into_iter().flatten().take(count)
    }

    /// All groups with their names, in the order of these.
    pub fn groups(self) -> impl Iterator<Item = (&'e [u8], Group)> {
        self.named_from(&[GROUP]).map_while(|item| Group::of(&item))
    }

    /// The consumers of a group: the name of each, and its number, in the order of the names.
    pub fn consumer_names(self, group: u32) -> impl Iterator<Item = (&'e [u8], u32)> {
        let [one, two, three, four] = group.to_be_bytes();
        let first = [CONSUMER_NAME, one, two, three, four];
        let items = self.named_from(&first);
        let named = items.map_while(|item| named_consumer(&item));
        named
            .take_while(move |&(of, _, _)| of == group)
            .map(|(_, name, number)| (name, number))
    }
}
