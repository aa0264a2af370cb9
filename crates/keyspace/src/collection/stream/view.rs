//! A stream to be read: of a run inside an entry, or of a tree.

use super::content::{SHAPE_BYTES_MAX, SHAPES_MAX};
use super::entry::StreamEntry;
use super::group::{CONSUMER_NAME, Consumer, GROUP, Group, ItemBuffer, Pending, named_consumer};
use super::head::{self, Head};
use super::id::Id;
use super::idempotent::{
    AGE, Idempotence, Idempotent, KnownEntry, SETTINGS, after_ages_of, ages_of, entry_of,
};
use super::kind::{IdName, SHAPE, Section, StreamItems};
use crate::collection::any::{Collection, Held, place_in_stream};
use crate::collection::cell::Cell;
use crate::collection::items::{AllItems, ItemsRef};
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::node::Base;
use crate::collection::run::{Fraction, Item, Run};
use crate::collection::view::lower;

/// Items that are passed before one is searched.
const PASSED: usize = 8;

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
        self.first_run().get(0).and_then(|item| Head::of(&item))
    }

    /// The run of the first items, which are in memory.
    #[inline]
    fn first_run(self) -> Run<'e> {
        match self.items {
            ItemsRef::Run(run) => run,
            ItemsRef::Tree(tree) => tree.first_run(),
        }
    }

    /// Whether the first item is a head. A log that was damaged may have left other items.
    #[inline]
    pub fn has_head(self) -> bool {
        let first = self.first_run().get(0);
        first.is_some_and(|item| item.name == Cell::Bytes(head::NAME))
    }

    /// Shows the shapes, by number, as long as `visit` says so.
    fn each_shape(self, mut visit: impl FnMut(&'e [u8]) -> bool) {
        let mut count = 0;
        let mut show = |item: Item<'e>| match (item.name, item.value) {
            (Cell::Bytes(&[SHAPE, _]), Some(Cell::Bytes(names))) if count < SHAPES_MAX => {
                count += 1;
                visit(names)
            }
            _ => false,
        };
        // Nearly always all are in the first leaf.
        let may_be_more = self.first_run().range(1).all(&mut show);
        if let ItemsRef::Tree(tree) = self.items
            && may_be_more
        {
            let leaves = tree.leaves(&Edge::default()).skip(1);
            let mut named = leaves.take_while(|leaf| StreamItems::stays(&leaf.start()));
            named.all(|leaf| leaf.run().iter().all(&mut show));
        }
    }

    /// The shapes, by number.
    pub fn shapes(self) -> Vec<&'e [u8]> {
        let mut shapes = Vec::new();
        self.each_shape(|names| {
            shapes.push(names);
            true
        });
        shapes
    }

    /// The number of the shape that has these names; `Err` with that of a new one, if one may be added.
    ///
    /// # Errors
    /// There is no such shape.
    pub fn shape_of(self, names: &[u8]) -> Result<u8, Option<u8>> {
        let (mut count, mut bytes, mut is_found) = (0, 0, false);
        self.each_shape(|shape| {
            is_found = shape == names;
            count += usize::from(!is_found);
            bytes += shape.len();
            !is_found
        });
        if is_found {
            return Ok(count as u8);
        }
        let may_be_added = count < SHAPES_MAX && bytes + names.len() <= SHAPE_BYTES_MAX;
        Err(may_be_added.then_some(count as u8))
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
        self.first_rank_of(self.len())
    }

    /// The same, where it is known how many entries there are.
    #[inline]
    pub fn first_rank_of(self, entries: u64) -> u64 {
        self.items.len().saturating_sub(entries)
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
        self.all_from(rank)
            .map_while(move |item| StreamEntry::of(base, &item))
    }

    /// The first entry, and the last.
    pub fn ends(self) -> Option<(StreamEntry<'e>, StreamEntry<'e>)> {
        let last = self.items.len().checked_sub(1)?;
        Some((self.entry_at(self.first_rank())?, self.entry_at(last)?))
    }

    /// Looks for the item of a name among the first few. Items without an ID are the first, and most streams
    /// have few of them: to pass those is faster than a search. `None` if it may be one of the later items.
    #[inline]
    fn meet(self, name: Cell<'_>) -> Option<Option<(u64, Item<'e>)>> {
        let Cell::Bytes(name @ &[..=CONSUMER_NAME, ..]) = name else {
            return None;
        };
        let run = match self.items {
            ItemsRef::Run(run) => run,
            ItemsRef::Tree(tree) => tree.first_run(),
        };
        for (rank, item) in (0..).zip(run.iter().take(PASSED)) {
            match item.name {
                Cell::Bytes(other) if other < name => {}
                Cell::Bytes(other) if other == name => return Some(Some((rank, item))),
                _ => return Some(None),
            }
        }
        None
    }

    /// The item with this item's name, and its place.
    #[inline]
    pub fn find(self, item: &Item<'_>) -> Option<Item<'e>> {
        if let Some(met) = self.meet(item.name) {
            return met.map(|(_, found)| found);
        }
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

    /// How many items are before the one with this item's name; `None` if there is none.
    pub fn rank_of_item(self, item: &Item<'_>) -> Option<u64> {
        if let Some(met) = self.meet(item.name) {
            return met.map(|(rank, _)| rank);
        }
        match self.items {
            ItemsRef::Run(run) => {
                let (index, is_there) = place_in_stream(run, item);
                is_there.then_some(index as u64)
            }
            ItemsRef::Tree(tree) => tree.rank(item),
        }
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
        let rank = self.rank_of(Section::of_pending(group), from);
        self.pending_from_rank(group, rank)
    }

    /// The pending entries of a group from a rank on, among all items.
    pub fn pending_from_rank(
        self,
        group: u32,
        rank: u64,
    ) -> impl Iterator<Item = Pending> + use<'e> {
        let (base, items) = (self.base(), self.all_from(rank));
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

    /// All items from a rank on.
    fn all_from(self, rank: u64) -> AllItems<'e> {
        match self.items {
            ItemsRef::Run(run) => AllItems::Run(run.range(rank as usize)),
            ItemsRef::Tree(tree) => AllItems::Tree(Box::new(tree.from_rank(rank))),
        }
    }

    /// Where leaves are cold, the number of items that have names and no IDs. Those items are in memory; the
    /// ones after them may not be.
    fn named_end(self) -> u64 {
        match self.items.has_cold_leaves() {
            false => self.items.len(),
            true => self.rank(&StreamItems::named_edge(&[AGE + 1])),
        }
    }

    /// The items with names that begin with these bytes, and the items with names after those.
    fn named_from(self, name: &[u8]) -> impl Iterator<Item = Item<'e>> + use<'e> {
        let edge = StreamItems::named_edge(name);
        let count = match self.items.has_cold_leaves() {
            false => u64::MAX,
            true => self.named_end().saturating_sub(self.rank(&edge)),
        };
        let items = (count > 0).then(|| self.all_from(self.rank(&edge)));
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

impl<'e> StreamRef<'e> {
    /// The settings of idempotent IDs; `None` if the stream has never had any.
    pub fn idempotence(self) -> Option<Idempotence> {
        let wanted = Item::pair(Cell::Bytes(&[SETTINGS]), Cell::Bytes(&[]));
        self.find(&wanted).and_then(|item| Idempotence::of(&item))
    }

    /// The entry that was added with an idempotent ID.
    pub fn entry_with(
        self,
        idempotent: &Idempotent<'_>,
        buffer: &mut ItemBuffer,
    ) -> Option<KnownEntry> {
        self.find(&buffer.known(idempotent, Id::MIN))
            .and_then(|item| entry_of(&item))
    }

    /// The idempotent IDs, those of each producer in the order of their age.
    pub fn idempotent(self) -> impl Iterator<Item = Idempotent<'e>> {
        self.idempotent_from(&[AGE])
    }

    /// The same from a producer on.
    pub fn idempotent_of(self, producer: &[u8]) -> impl Iterator<Item = Idempotent<'e>> + use<'e> {
        self.idempotent_from(&ages_of(producer))
    }

    /// Those of the producers after one.
    pub fn idempotent_after(
        self,
        producer: &[u8],
    ) -> impl Iterator<Item = Idempotent<'e>> + use<'e> {
        self.idempotent_from(&after_ages_of(producer))
    }

    fn idempotent_from(self, name: &[u8]) -> impl Iterator<Item = Idempotent<'e>> + use<'e> {
        self.named_from(name)
            .map_while(|item| Idempotent::of(&item))
    }

    /// How many idempotent IDs there are.
    pub fn idempotent_len(self) -> u64 {
        let rank = |name: &[u8]| self.rank(&StreamItems::named_edge(name));
        rank(&[AGE + 1]) - rank(&[AGE])
    }

    /// How many a producer has.
    pub fn idempotent_len_of(self, producer: &[u8]) -> u64 {
        let rank = |name: &[u8]| self.rank(&StreamItems::named_edge(name));
        rank(&after_ages_of(producer)) - rank(&ages_of(producer))
    }
}
