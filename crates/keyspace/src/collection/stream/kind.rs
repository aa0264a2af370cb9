//! The order of the items of a stream.

use std::cmp::Ordering;

use super::entry::{FAR_LEN, FAR_MARK, StreamEntry, far_name};
use super::group::{
    self, CONSUMER, CONSUMER_NAME, Consumer, GROUP, Group, PENDING, Pending, named_consumer,
};
use super::head::{self, Head};
use super::id::{FAR, Id};
use super::idempotent::{self, AGE, SETTINGS};
use crate::collection::cell::{Cell, integer_at};
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::run::{Item, PAIRS, Run};

/// The names of shapes begin with this byte.
pub(super) const SHAPE: u8 = 2;
/// Bits of an order key below its section.
const SECTION_BITS: u32 = 96;
/// Bytes of the name of a pending entry that has no distance, and one more, at most.
const NAME_MAX: usize = 1 + 9 + FAR_LEN + 1;

/// Items of a stream, in the order that [`super`] says. No two have one order key and one name.
#[derive(Clone, Copy, Debug)]
pub struct StreamItems {
    /// The time (ms) that distances are from: any, for the life of the stream.
    base: u64,
}

impl StreamItems {
    /// Those of a stream of this base.
    pub fn new(base: u64) -> StreamItems {
        let base = base.min(FAR - 1);
        StreamItems { base }
    }

    /// Those of a small stream.
    #[inline]
    pub(crate) fn of_run(run: Run<'_>) -> StreamItems {
        let head = run.get(0).and_then(|item| Head::of(&item));
        StreamItems::new(head.map_or(0, |head| head.base))
    }

    /// The time (ms) that distances are from.
    #[inline]
    pub fn base(self) -> u64 {
        self.base
    }

    /// The order key of a pending entry.
    #[inline]
    fn order_of_pending(self, name: Cell<'_>) -> u128 {
        Pending::of_name(self.base, name)
            .map_or(0, |(group, id)| Section::of_pending(group).order(id))
    }

    /// Before the items of section 0 with names that begin with these bytes.
    pub(super) fn named_edge(name: &[u8]) -> Edge<'_> {
        let order = first_bytes(name);
        Edge { order, name }
    }
}

/// The entries of a stream, or the pending ones of a group: items that have IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section(u32);

impl Section {
    /// The entries.
    pub const ENTRIES: Section = Section(u32::MAX);

    /// The pending entries of a group.
    pub fn of_pending(group: u32) -> Section {
        Section(group.wrapping_add(1))
    }

    /// The section of a number; `None` if its items have no IDs.
    pub(crate) fn of_number(number: u32) -> Option<Section> {
        (number > 0).then_some(Section(number))
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) fn order(self, id: Id) -> u128 {
        u128::from(self.0) << SECTION_BITS | id.order()
    }

    /// The name of an ID that has no distance; `None` if this one does.
    #[inline]
    fn far_name(self, id: Id, name: &mut IdName) -> Option<usize> {
        if id.is_near() {
            return None;
        }
        if self == Section::ENTRIES {
            name.0[..FAR_LEN].copy_from_slice(&far_name(id));
            return Some(FAR_LEN);
        }
        name.0[0] = PENDING;
        let len = 1 + Cell::Int(i64::from(self.0 - 1)).encode(&mut name.0[1..]);
        name.0[len..len + FAR_LEN].copy_from_slice(&group::far_name(id));
        Some(len + FAR_LEN)
    }

    /// Before the item of an ID.
    #[inline]
    pub fn edge(self, id: Id, name: &mut IdName) -> Edge<'_> {
        let len = self.far_name(id, name).unwrap_or(0);
        let name = &name.0[..len];
        let order = self.order(id);
        Edge { order, name }
    }

    /// After the item of an ID.
    #[inline]
    pub fn edge_behind(self, id: Id, name: &mut IdName) -> Edge<'_> {
        let order = self.order(id);
        let Some(len) = self.far_name(id, name) else {
            return Edge::before(order + 1);
        };
        // The next text in the order of bytes.
        name.0[len] = 0;
        let name = &name.0[..=len];
        Edge { order, name }
    }
}

/// IDs of a section, from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    /// Which items.
    pub section: Section,
    /// The first.
    pub from: Id,
    /// The last.
    pub last: Id,
}

impl IdRange {
    /// Gives out where the range begins, and where it ends.
    pub(crate) fn with_edges<R>(&self, with: impl FnOnce(&Edge<'_>, &Edge<'_>) -> R) -> R {
        let (mut first, mut second) = (IdName::default(), IdName::default());
        let from = self.section.edge(self.from, &mut first);
        let to = self.section.edge_behind(self.last, &mut second);
        with(&from, &to)
    }
}

/// Bytes of the name of an edge.
#[derive(Debug, Default)]
pub struct IdName([u8; NAME_MAX]);

/// The first bytes of a name of section 0.
fn first_bytes(name: &[u8]) -> u128 {
    const LEN: usize = SECTION_BITS as usize / 8;
    if let Some(first) = name.first_chunk() {
        return u128::from_be_bytes(*first) >> (128 - SECTION_BITS);
    }
    let mut bytes = [0; 16];
    let len = name.len().min(LEN);
    bytes[16 - LEN..][..len].copy_from_slice(&name[..len]);
    u128::from_be_bytes(bytes)
}

impl LeafKind for StreamItems {
    const FLAGS: u8 = PAIRS;
    const IS_SORTED: bool = true;
    const HAS_SECTIONS: bool = true;

    fn seed(&self) -> u64 {
        self.base
    }

    #[inline]
    fn order(&self, item: &Item<'_>) -> u128 {
        if let Some(entry) = StreamEntry::of(self.base, item) {
            return Section::ENTRIES.order(entry.id);
        }
        match item.name {
            Cell::Bytes(&[PENDING, ..]) => self.order_of_pending(item.name),
            Cell::Bytes(name) => first_bytes(name),
            Cell::Int(_) => 0,
        }
    }

    /// Most is decided by the order key, and most keys by the name.
    #[inline]
    fn is_before_at(&self, run: Run<'_>, at: usize, edge: &Edge<'_>) -> bool {
        let order = match run.name_at(at) {
            Cell::Int(distance) => {
                let ms = self.base.wrapping_add_signed(distance >> 1);
                let seq = match (distance & 1, run.value_at(at)) {
                    (1, Cell::Bytes(content)) => integer_at(content, 0).map_or(0, |(seq, _)| seq),
                    _ => 0,
                };
                let seq = seq as u64;
                Section::ENTRIES.order(Id { ms, seq })
            }
            Cell::Bytes(&[PENDING, ..]) => self.order_of_pending(run.name_at(at)),
            Cell::Bytes(&[FAR_MARK, ..]) => self.order(&run.one_at(at)),
            Cell::Bytes(name) => first_bytes(name),
        };
        match order.cmp(&edge.order) {
            Ordering::Less => true,
            Ordering::Equal => self.is_before(&run.one_at(at), edge),
            Ordering::Greater => false,
        }
    }

    #[inline]
    fn is_border(before: u128, after: u128) -> bool {
        before >> SECTION_BITS != after >> SECTION_BITS
    }

    #[inline]
    fn stays(from: &Edge<'_>) -> bool {
        from.order >> SECTION_BITS == 0
    }

    fn is_valid(&self, item: &Item<'_>) -> bool {
        if StreamEntry::of(self.base, item).is_some() {
            return true;
        }
        match (item.name, item.value, item.expiry) {
            (Cell::Bytes(head::NAME), ..) => {
                Head::of(item).is_some_and(|head| head.base == self.base)
            }
            (Cell::Bytes(&[SHAPE, _]), Some(Cell::Bytes(_)), None) => true,
            (Cell::Bytes(&[PENDING, ..]), ..) => Pending::of(self.base, item).is_some(),
            (Cell::Bytes(&[GROUP, ..]), ..) => Group::of(item).is_some(),
            (Cell::Bytes(&[CONSUMER, ..]), ..) => Consumer::of(item).is_some(),
            (Cell::Bytes(&[CONSUMER_NAME, ..]), ..) => named_consumer(item).is_some(),
            (Cell::Bytes(&[SETTINGS..=AGE, ..]), ..) => idempotent::is_valid(item),
            _ => false,
        }
    }
}
