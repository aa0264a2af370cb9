//! Reading a run, and the bytes of its items.

use rapidhash::v3::{DEFAULT_RAPID_SECRETS, rapidhash_v3_inline};

use super::deque::Places;
use super::integers::{self, Distances};
use super::layout::{
    BARE, DEQUE, EXPIRING, EXPIRY_LEN, GROUP, HEADER, INTEGERS, NUMBER, OFFSET, PAIRS, TAGS,
    has_tags, header, stride, tag_at,
};
use crate::collection::cell::{self, Cell};

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const SEVEN_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;

/// An item: what it is called, what it holds, when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The name; the element, where elements have no name.
    pub name: Cell<'a>,
    /// The value, in a run of pairs.
    pub value: Option<Cell<'a>>,
    /// When the item expires: Unix, ms, 48 bits.
    pub expiry: Option<u64>,
}

impl<'a> Item<'a> {
    /// An item of one cell.
    pub fn single(name: Cell<'a>) -> Item<'a> {
        Item {
            name,
            value: None,
            expiry: None,
        }
    }

    /// An item of two cells.
    pub fn pair(name: Cell<'a>, value: Cell<'a>) -> Item<'a> {
        Item {
            name,
            value: Some(value),
            expiry: None,
        }
    }

    /// The same with this expiry, or none.
    pub fn with_expiry(self, expiry: Option<u64>) -> Item<'a> {
        Item { expiry, ..self }
    }

    /// The integer that it is, if it is nothing more.
    #[inline]
    pub(in crate::collection) fn integer(&self) -> Option<i64> {
        match self {
            Item {
                name: Cell::Int(integer),
                value: None,
                expiry: None,
            } => Some(*integer),
            _ => None,
        }
    }

    /// The same with its bytes in a buffer of its own: what it was read from may change.
    pub fn moved_to(self, buffer: &mut Vec<u8>) -> Item<'_> {
        let bytes = |cell: Option<Cell<'a>>| match cell {
            Some(Cell::Bytes(bytes)) => bytes,
            Some(Cell::Int(_)) | None => &[],
        };
        let name = bytes(Some(self.name));
        buffer.clear();
        buffer.extend_from_slice(name);
        buffer.extend_from_slice(bytes(self.value));
        let (name, value) = buffer.split_at(name.len());
        Item {
            name: self.name.with_bytes(name),
            value: self.value.map(|cell| cell.with_bytes(value)),
            expiry: self.expiry,
        }
    }

    /// Whether it has expired at a time (Unix, ms).
    #[inline]
    pub fn is_due(&self, now: u64) -> bool {
        self.expiry.is_some_and(|expiry| now > expiry)
    }

    /// Bytes of its cells and expiry.
    #[inline]
    pub(in crate::collection) fn size(&self) -> usize {
        let expiry = if self.expiry.is_some() { EXPIRY_LEN } else { 0 };
        expiry + self.name.size() + self.value.map_or(0, Cell::size)
    }

    /// The item at `at`, and where it ends. The bytes are known to be one.
    #[inline]
    pub(in crate::collection) fn decode(
        bytes: &'a [u8],
        at: usize,
        has_value: bool,
    ) -> (Item<'a>, usize) {
        let (mut expiry, mut name_at) = (None, at);
        if bytes[at] == cell::EXPIRY {
            expiry = Some(expiry_at(bytes, at));
            name_at += EXPIRY_LEN;
        }
        let (name, mut end) = Cell::decode(bytes, name_at);
        let mut value = None;
        if has_value {
            let (cell, value_end) = Cell::decode(bytes, end);
            (value, end) = (Some(cell), value_end);
        }
        (
            Item {
                name,
                value,
                expiry,
            },
            end,
        )
    }

    /// Writes it to the start of `into`.
    #[inline]
    pub(in crate::collection) fn encode(&self, into: &mut [u8]) {
        let mut at = 0;
        if let Some(expiry) = self.expiry {
            into[0] = cell::EXPIRY;
            into[1..EXPIRY_LEN].copy_from_slice(&expiry.to_le_bytes()[..EXPIRY_LEN - 1]);
            at = EXPIRY_LEN;
        }
        at += self.name.encode(&mut into[at..]);
        if let Some(value) = self.value {
            value.encode(&mut into[at..]);
        }
    }
}

/// An item with its bytes in a run, to be put into another.
#[derive(Clone, Copy, Debug)]
pub(in crate::collection) struct Packed<'a> {
    pub(in crate::collection) item: Item<'a>,
    /// Nothing, of an item that was in no cells.
    pub(super) bytes: &'a [u8],
    /// 0 if it is not known.
    pub(super) tag: u8,
}

impl<'a> Packed<'a> {
    /// An item that is in no run, whose bytes go to `buffer`.
    pub(in crate::collection) fn new(item: Item<'a>, buffer: &'a mut Vec<u8>) -> Packed<'a> {
        buffer.resize(item.size(), 0);
        item.encode(buffer);
        Packed {
            item,
            bytes: buffer,
            tag: tag(item.name),
        }
    }

    /// An item that is in no run.
    pub(in crate::collection) fn loose(item: Item<'a>) -> Packed<'a> {
        let (bytes, tag) = (&[][..], 0);
        Packed { item, bytes, tag }
    }

    /// An item of these bytes, as far as another run needs to know it: its value is in the bytes alone.
    #[inline]
    pub(in crate::collection) fn of_bytes(bytes: &'a [u8]) -> Packed<'a> {
        let (item, tag) = (Item::decode(bytes, 0, false).0, 0);
        Packed { item, bytes, tag }
    }

    /// Bytes that it takes where items have cells.
    #[inline]
    pub(in crate::collection) fn size(&self) -> usize {
        match self.bytes {
            [] => self.item.size(),
            bytes => bytes.len(),
        }
    }

    /// Writes its cells to the start of `into`.
    #[inline]
    pub(in crate::collection) fn encode(&self, into: &mut [u8]) {
        match self.bytes {
            [] => self.item.encode(into),
            bytes => into[..bytes.len()].copy_from_slice(bytes),
        }
    }
}

/// Bytes that are a run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub(super) bytes: &'a [u8],
}

/// The tag of a name: the same in every process and version, as it is written to disk. Never 0.
#[inline]
pub(super) fn tag(name: Cell<'_>) -> u8 {
    let hash = match name {
        Cell::Bytes(bytes) => {
            rapidhash_v3_inline::<true, true, false>(bytes, &DEFAULT_RAPID_SECRETS)
        }
        Cell::Int(integer) => (integer as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    };
    ((hash >> 56) as u8).max(1)
}

/// The expiry of the item at `at`, which has one.
#[inline]
pub(super) fn expiry_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word[..EXPIRY_LEN - 1].copy_from_slice(&bytes[at + 1..at + EXPIRY_LEN]);
    u64::from_le_bytes(word)
}

/// Marks every byte of `word` that is zero, and no other.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    !(((word & SEVEN_BITS) + SEVEN_BITS) | word | SEVEN_BITS)
}

impl<'a> Run<'a> {
    /// Bytes of a run without items that is not [`NUMBERED`].
    pub const EMPTY: usize = HEADER;

    /// Bytes of a run of these flags without items.
    #[inline]
    pub(in crate::collection) fn empty_len(flags: u8) -> usize {
        header(flags)
    }

    /// A run of these flags without items.
    pub fn empty(flags: u8) -> [u8; Run::EMPTY] {
        [0, 0, flags, 0]
    }

    /// Bytes of a run of so many items, whose cells and expiries take `items` bytes.
    /// A deque may have a group less.
    pub(in crate::collection) fn size_of(flags: u8, count: usize, items: usize) -> usize {
        let groups = count.div_ceil(GROUP) + usize::from(flags & DEQUE != 0);
        header(flags) + groups * stride(flags) + items
    }

    /// Bytes of a run of so many integers, from the lowest to the highest.
    pub(in crate::collection) fn size_of_integers(
        count: usize,
        lowest: i64,
        highest: i64,
    ) -> usize {
        integers::size_of(count, lowest, highest)
    }

    /// Bytes that an edit here, or [`Run::check`], left. Other bytes may panic later, no more.
    #[inline]
    pub fn trusted(bytes: &'a [u8]) -> Run<'a> {
        debug_assert!(bytes.len() >= HEADER);
        Run { bytes }
    }

    /// The bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// How many items there are.
    #[inline]
    pub fn count(self) -> usize {
        usize::from(u16::from_le_bytes([self.bytes[0], self.bytes[1]]))
    }

    /// Whether there is no item.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.count() == 0
    }

    /// Whether it is a run of integers.
    #[inline]
    pub(in crate::collection) fn is_of_integers(self) -> bool {
        self.flags() & INTEGERS != 0
    }

    /// Whether it is a deque.
    #[inline]
    pub(in crate::collection) fn is_deque(self) -> bool {
        self.flags() & DEQUE != 0
    }

    /// It as a deque.
    #[inline]
    pub(super) fn places(self) -> Places<'a> {
        Places(self.bytes)
    }

    /// Of a run that is [`NUMBERED`](super::NUMBERED): the order key of its first item.
    #[inline]
    pub fn number(self) -> u64 {
        let bytes = self.bytes[HEADER..HEADER + NUMBER].try_into();
        u64::from_le_bytes(bytes.expect("eight bytes"))
    }

    /// Bytes before the first item that hold nothing.
    #[inline]
    pub(in crate::collection) fn gap(self) -> usize {
        match self.is_deque() {
            true => self.places().gap(),
            false => 0,
        }
    }

    /// Bytes that hold something.
    #[inline]
    pub(in crate::collection) fn filled(self) -> usize {
        self.bytes.len() - self.gap()
    }

    /// It as a run of integers.
    #[inline]
    pub(super) fn integers(self) -> Distances<'a> {
        Distances(self.bytes)
    }

    /// The flags of bytes of which nothing is known; `None` if they are too few.
    #[inline]
    pub(in crate::collection) fn flags_of(bytes: &[u8]) -> Option<u8> {
        bytes.first_chunk::<HEADER>().map(|header| header[2])
    }

    /// [`TAGGED`], [`PAIRS`], [`EXPIRING`], [`BARE`], [`NUMBERED`], [`INTEGERS`], [`DEQUE`].
    #[inline]
    pub fn flags(self) -> u8 {
        self.bytes[2]
    }

    /// Where the items begin.
    #[inline]
    pub(super) fn items_at(self) -> usize {
        if self.is_deque() {
            return self.places().first();
        }
        header(self.flags()) + self.count().div_ceil(GROUP) * stride(self.flags())
    }

    #[inline]
    pub(super) fn group_at(self, group: usize) -> usize {
        header(self.flags()) + group * stride(self.flags())
    }

    /// The tags of a group as one word, the first in the lowest byte.
    #[inline]
    pub(super) fn tags(self, group: usize) -> u64 {
        let at = self.group_at(group);
        u64::from_le_bytes(self.bytes[at..at + TAGS].try_into().expect("eight bytes"))
    }

    /// The offset of a group's first item.
    #[inline]
    pub(super) fn offset(self, group: usize) -> usize {
        let at = self.group_at(group + 1) - OFFSET;
        usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    /// Where the item at `at` ends, where items have cells.
    #[inline]
    pub(super) fn item_end(self, mut at: usize) -> usize {
        if self.bytes[at] == cell::EXPIRY {
            at += EXPIRY_LEN;
        }
        let end = cell::skip(self.bytes, at);
        match self.flags() & PAIRS {
            0 => end,
            _ => cell::skip(self.bytes, end),
        }
    }

    /// Where the item of an index begins; the end, for the index behind the last.
    #[inline]
    pub(super) fn start(self, index: usize) -> usize {
        if index == self.count() {
            return self.bytes.len();
        }
        let (mut at, steps) = match self.flags() & (BARE | INTEGERS | DEQUE) {
            0 => (self.items_at() + self.offset(index / GROUP), index % GROUP),
            BARE => (HEADER, index),
            DEQUE => self.places().of(index),
            _ => return self.integers().start(index),
        };
        for _ in 0..steps {
            at = self.item_end(at);
        }
        at
    }

    /// The item at `at`, where items have cells.
    #[inline]
    pub(super) fn item_at(self, at: usize) -> (Item<'a>, usize) {
        Item::decode(self.bytes, at, self.flags() & PAIRS != 0)
    }

    /// The item at `at`, and where it ends, in a run of any flavour.
    #[inline]
    fn any_item_at(self, at: usize) -> (Item<'a>, usize) {
        if self.is_of_integers() {
            let integers = self.integers();
            let item = Item::single(Cell::Int(integers.at(at)));
            return (item, at + integers.width());
        }
        self.item_at(at)
    }

    /// The item of an index.
    #[inline]
    pub fn get(self, index: usize) -> Option<Item<'a>> {
        (index < self.count()).then(|| self.any_item_at(self.start(index)).0)
    }

    /// The index of an item by its name.
    #[inline]
    pub fn find(self, name: Cell<'_>) -> Option<usize> {
        self.lookup(name).map(|(index, _)| index)
    }

    /// Index and item by name.
    #[inline]
    pub fn lookup(self, name: Cell<'_>) -> Option<(usize, Item<'a>)> {
        if !has_tags(self.flags()) {
            return self.walk_to(name);
        }
        let wanted = LOW_BITS * u64::from(tag(name));
        for group in 0..self.count().div_ceil(GROUP) {
            let mut hits = zero_bytes(self.tags(group) ^ wanted);
            while hits != 0 {
                let index = group * GROUP + hits.trailing_zeros() as usize / 8;
                let (item, _) = self.item_at(self.start(index));
                if item.name == name {
                    return Some((index, item));
                }
                hits &= hits - 1;
            }
        }
        None
    }

    /// The first item with a tag, where there are tags.
    #[inline]
    pub(super) fn first_hit(self, tag: u8) -> Option<usize> {
        let wanted = LOW_BITS * u64::from(tag);
        (0..self.count().div_ceil(GROUP)).find_map(|group| {
            let hits = zero_bytes(self.tags(group) ^ wanted);
            (hits != 0).then(|| group * GROUP + hits.trailing_zeros() as usize / 8)
        })
    }

    /// [`Run::lookup`] where there are no tags.
    fn walk_to(self, name: Cell<'_>) -> Option<(usize, Item<'a>)> {
        if self.is_of_integers() {
            let Cell::Int(integer) = name else {
                return None;
            };
            let index = self.integers().find(integer).ok()?;
            return Some((index, Item::single(Cell::Int(integer))));
        }
        let mut at = self.items_at();
        for index in 0..self.count() {
            let name_at = match self.bytes[at] {
                cell::EXPIRY => at + EXPIRY_LEN,
                _ => at,
            };
            if cell::is_at(self.bytes, name_at, name) {
                return Some((index, self.item_at(at).0));
            }
            at = self.item_end(at);
        }
        None
    }

    /// The items, in their order.
    #[inline]
    pub fn iter(self) -> Items<'a> {
        self.range(0)
    }

    /// Gives out the cells of all items, in their order: the name, then the value if items have one. The
    /// second argument of `visit` says whether it is a name. A third of the instructions of [`Run::iter`].
    #[inline]
    pub fn cells(self, mut visit: impl FnMut(Cell<'a>, bool)) {
        if self.is_of_integers() {
            let integers = self.integers();
            return (0..self.count()).for_each(|index| visit(Cell::Int(integers.get(index)), true));
        }
        let (bytes, has_values) = (self.bytes, self.flags() & PAIRS != 0);
        let mut at = self.items_at();
        while at < bytes.len() {
            if bytes[at] == cell::EXPIRY {
                at += EXPIRY_LEN;
            }
            let (name, end) = Cell::decode(bytes, at);
            visit(name, true);
            at = end;
            if has_values {
                let (value, end) = Cell::decode(bytes, at);
                visit(value, false);
                at = end;
            }
        }
    }

    /// The items from an index on.
    #[inline]
    pub fn range(self, from: usize) -> Items<'a> {
        let left = self.count().saturating_sub(from);
        let at = self.start(from.min(self.count()));
        Items {
            run: self,
            at,
            left,
        }
    }

    /// The items with their bytes.
    pub(in crate::collection) fn packed(self) -> impl ExactSizeIterator<Item = Packed<'a>> {
        let (flags, mut at) = (self.flags(), self.start(0));
        (0..self.count()).map(move |index| {
            let start = at;
            let (item, end) = self.any_item_at(start);
            at = end;
            let tag = match has_tags(flags) {
                true => self.bytes[tag_at(flags, index)],
                false => 0,
            };
            let bytes = match flags & INTEGERS {
                0 => &self.bytes[start..end],
                _ => &[],
            };
            Packed { item, bytes, tag }
        })
    }

    /// The earliest expiry.
    pub fn earliest(self) -> Option<u64> {
        self.first_due().map(|(at, _)| at)
    }

    /// The earliest expiry, and the first item that has it. Without [`EXPIRING`] no item is looked at.
    pub(in crate::collection) fn soonest(self) -> Option<(u64, Item<'a>)> {
        let (at, start) = self.first_due()?;
        Some((at, self.item_at(start).0))
    }

    /// The earliest expiry, and where the first item begins that has it.
    fn first_due(self) -> Option<(u64, usize)> {
        if self.flags() & EXPIRING == 0 {
            return None;
        }
        let (mut first, mut at) = (None, self.items_at());
        while at < self.bytes.len() {
            if self.bytes[at] == cell::EXPIRY {
                let expiry = expiry_at(self.bytes, at);
                if first.is_none_or(|(earliest, _)| expiry < earliest) {
                    first = Some((expiry, at));
                }
            }
            at = self.item_end(at);
        }
        first
    }
}

/// Items of a run.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    run: Run<'a>,
    at: usize,
    left: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let (item, end) = self.run.any_item_at(self.at);
        self.at = end;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Items<'_> {}
