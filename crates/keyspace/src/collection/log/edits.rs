//! A list of changes of items, as a record holds it.
//!
//! ```text
//!  one change   code, 1 B   1: an item is set: its cells follow, its expiry before them
//!                           2: an item is removed: its name follows
//!                           3: an item expires, or does no more: its expiry, if any, and its name follow
//!                           4: an item of this name and value is removed: its cells follow
//!                           5: an element has a number: the number (8 B) and the element follow
//!                           6: an element has the number behind that of the last of 5, 6 or 7: it follows
//!                           7: an element has the number before that of the last of 5, 6 or 7: it follows
//!                           8: elements are removed: the first number, and the one behind the last, follow
//!                           9: an element comes before that of a number, of a small list: both follow
//!                           10: items of a section are removed: its number (4 B), the first ID
//!                               and the last follow
//! ```
//!
//! Codes 5 to 9 are of lists, and 10 is of streams. An ID is its time and its sequence number (8 B each).
//! Cells are those of runs (see `cell`). Changes are applied in their order.

use crate::collection::cell::{self, Cell};
use crate::collection::run::{Damage, EXPIRY_LEN, Item};
use crate::collection::stream::{Id, IdRange, Section};

const SET: u8 = 1;
const REMOVE: u8 = 2;
const RESCHEDULE: u8 = 3;
const TAKE: u8 = 4;
const PUT: u8 = 5;
const NEXT: u8 = 6;
const PREVIOUS: u8 = 7;
const CUT: u8 = 8;
const INSERT: u8 = 9;
const CUT_IDS: u8 = 10;
const NUMBER: usize = 8;

/// Changes of items, in the form of a record.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    bytes: Vec<u8>,
    /// The number of the element that was put last.
    last: Option<u64>,
}

impl Edits {
    /// An item is set.
    #[inline]
    pub fn set(&mut self, item: &Item<'_>) {
        let at = self.bytes.len();
        self.bytes.resize(at + 1 + item.size(), 0);
        self.bytes[at] = SET;
        item.encode(&mut self.bytes[at + 1..]);
    }

    /// The item of a name is removed.
    #[inline]
    pub fn remove(&mut self, name: Cell<'_>) {
        let at = self.bytes.len();
        self.bytes.resize(at + 1 + name.size(), 0);
        self.bytes[at] = REMOVE;
        name.encode(&mut self.bytes[at + 1..]);
    }

    /// An item is removed, where its value says where it is.
    #[inline]
    pub fn take(&mut self, item: &Item<'_>) {
        let at = self.bytes.len();
        self.set(item);
        self.bytes[at] = TAKE;
    }

    /// The item of a name expires at this time, or does no more. Its value stays.
    pub fn reschedule(&mut self, name: Cell<'_>, expiry: Option<u64>) {
        let item = Item {
            expiry,
            ..Item::single(name)
        };
        let at = self.bytes.len();
        self.bytes.resize(at + 1 + item.size(), 0);
        self.bytes[at] = RESCHEDULE;
        item.encode(&mut self.bytes[at + 1..]);
    }

    /// The element of a number is this.
    #[inline]
    pub fn put(&mut self, number: u64, element: Cell<'_>) {
        let code = match self.last {
            Some(last) if number == last.wrapping_add(1) => NEXT,
            Some(last) if number == last.wrapping_sub(1) => PREVIOUS,
            _ => PUT,
        };
        self.bytes.push(code);
        if code == PUT {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.element(element);
        self.last = Some(number);
    }

    /// There are no elements of the numbers `from..to` any more.
    #[inline]
    pub fn cut(&mut self, from: u64, to: u64) {
        self.bytes.push(CUT);
        self.bytes.extend_from_slice(&from.to_le_bytes());
        self.bytes.extend_from_slice(&to.to_le_bytes());
    }

    /// There are no items of a range of IDs any more.
    pub fn cut_ids(&mut self, range: &IdRange) {
        let IdRange {
            section,
            from,
            last,
        } = range;
        self.bytes.push(CUT_IDS);
        self.bytes
            .extend_from_slice(&section.number().to_le_bytes());
        for number in [from.ms, from.seq, last.ms, last.seq] {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// In a small list, this element comes before that of a number.
    pub fn insert(&mut self, number: u64, element: Cell<'_>) {
        self.bytes.push(INSERT);
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self.element(element);
    }

    #[inline]
    fn element(&mut self, element: Cell<'_>) {
        let at = self.bytes.len();
        self.bytes.resize(at + element.size(), 0);
        element.encode(&mut self.bytes[at..]);
    }

    /// A change that was read.
    fn add(&mut self, edit: &Edit<'_>) {
        match *edit {
            Edit::Set(item) => self.set(&item),
            Edit::Remove(name) => self.remove(name),
            Edit::Reschedule(name, expiry) => self.reschedule(name, expiry),
            Edit::Take(item) => self.take(&item),
            Edit::Put(number, element) => self.put(number, element),
            Edit::Cut(from, to) => self.cut(from, to),
            Edit::Insert(number, element) => self.insert(number, element),
            Edit::CutIds(range) => self.cut_ids(&range),
        }
    }

    /// All changes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets all changes. Keeps memory for at most `keep` bytes.
    pub fn clear(&mut self, keep: usize) {
        self.last = None;
        self.bytes.clear();
        self.bytes.shrink_to(keep);
    }
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit<'a> {
    /// An item is set.
    Set(Item<'a>),
    /// The item of a name is removed.
    Remove(Cell<'a>),
    /// The item of a name expires at this time, or does no more.
    Reschedule(Cell<'a>, Option<u64>),
    /// The item of a name and a value is removed.
    Take(Item<'a>),
    /// The element of a number is this.
    Put(u64, Cell<'a>),
    /// The elements of the numbers from the first to before the second are removed.
    Cut(u64, u64),
    /// In a small list, an element comes before that of a number.
    Insert(u64, Cell<'a>),
    /// The items of a range of IDs are removed.
    CutIds(IdRange),
}

impl<'a> Edit<'a> {
    /// An item with the name, to look it up; `None` if the edit is about elements, or a range.
    pub fn key(&self) -> Option<Item<'a>> {
        match *self {
            Edit::Set(item) | Edit::Take(item) => Some(item),
            Edit::Remove(name) | Edit::Reschedule(name, _) => Some(Item::single(name)),
            Edit::Put(..) | Edit::Cut(..) | Edit::Insert(..) | Edit::CutIds(..) => None,
        }
    }

    /// The numbers of elements that it is about: the first, and that behind the last.
    pub fn numbers(&self) -> Option<(u64, u64)> {
        match *self {
            Edit::Put(number, _) | Edit::Insert(number, _) => {
                Some((number, number.saturating_add(1)))
            }
            Edit::Cut(from, to) => Some((from, to)),
            Edit::Set(_)
            | Edit::Take(_)
            | Edit::Remove(_)
            | Edit::Reschedule(..)
            | Edit::CutIds(..) => None,
        }
    }
}

/// The changes in bytes of which nothing is known. `has_values`: items have two cells.
pub fn read(bytes: &[u8], has_values: bool) -> Read<'_> {
    Read {
        bytes,
        at: 0,
        has_values,
        last: None,
    }
}

/// Gives out changes for records of at most `most` bytes each, or with one change. `has_values` as for
/// [`read`].
pub fn in_parts(bytes: &[u8], has_values: bool, most: usize, mut give: impl FnMut(&[u8])) {
    if bytes.len() <= most {
        return give(bytes);
    }
    let (mut part, mut changes) = (Edits::default(), read(bytes, has_values));
    let mut from = 0;
    while let Some(Ok(change)) = changes.next() {
        // What follows another change without a number of its own may get one.
        let len = changes.position() - from + NUMBER;
        from = changes.position();
        if !part.is_empty() && part.bytes.len() + len > most {
            give(&part.bytes);
            part.clear(most);
        }
        part.add(&change);
    }
    give(&part.bytes);
}

/// Changes of a record. After damage there are no more.
#[derive(Clone, Debug)]
pub struct Read<'a> {
    bytes: &'a [u8],
    at: usize,
    has_values: bool,
    /// The number of the element that was put last.
    last: Option<u64>,
}

/// What the first change in these bytes is about, which is not about elements: they were read before.
pub(super) fn trusted_key(bytes: &[u8], has_values: bool) -> Item<'_> {
    let has_value = has_values && matches!(bytes[0], SET | TAKE);
    Item::decode(bytes, 1, has_value).0
}

/// Whether the first change in these bytes sets an item.
#[inline]
pub(super) fn is_set(bytes: &[u8]) -> bool {
    bytes[0] == SET
}

impl<'a> Read<'a> {
    /// Where the next change begins.
    #[inline]
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// What the next change is about, if it is about an item.
    #[inline]
    pub(super) fn next_key(&mut self) -> Option<Result<Item<'a>, Damage>> {
        // Most changes set an item without an expiry.
        if self.bytes.get(self.at) == Some(&SET)
            && let Ok((name, end)) = Cell::check(self.bytes, self.at + 1, true)
        {
            let mut item = Item::single(name);
            if !self.has_values {
                self.at = end;
                return Some(Ok(item));
            }
            if let Ok((value, end)) = Cell::check(self.bytes, end, false) {
                (item.value, self.at) = (Some(value), end);
                return Some(Ok(item));
            }
        }
        let change = self.next()?;
        Some(change.and_then(|change| change.key().ok_or(Damage::Kind)))
    }

    /// Whether the next change removes the entries of a range.
    #[inline]
    pub(super) fn is_at_cut(&self) -> bool {
        self.bytes.get(self.at) == Some(&CUT_IDS)
    }

    fn cell(&mut self, is_name: bool) -> Result<Cell<'a>, Damage> {
        let (cell, end) = Cell::check(self.bytes, self.at, is_name).map_err(|_| Damage::Item)?;
        self.at = end;
        Ok(cell)
    }

    fn expiry(&mut self) -> Result<Option<u64>, Damage> {
        if self.bytes.get(self.at) != Some(&cell::EXPIRY) {
            return Ok(None);
        }
        let end = self.at + EXPIRY_LEN;
        let bytes = self.bytes.get(self.at + 1..end).ok_or(Damage::Length)?;
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        self.at = end;
        Ok(Some(u64::from_le_bytes(word)))
    }

    fn edit(&mut self) -> Result<Edit<'a>, Damage> {
        let code = self.bytes[self.at];
        self.at += 1;
        match code {
            SET | TAKE => {
                let expiry = self.expiry()?;
                let name = self.cell(true)?;
                let value = match self.has_values {
                    true => Some(self.cell(false)?),
                    false => None,
                };
                let item = Item {
                    name,
                    value,
                    expiry,
                };
                Ok(match code {
                    SET => Edit::Set(item),
                    _ => Edit::Take(item),
                })
            }
            REMOVE => Ok(Edit::Remove(self.cell(true)?)),
            RESCHEDULE => {
                let expiry = self.expiry()?;
                Ok(Edit::Reschedule(self.cell(true)?, expiry))
            }
            PUT => {
                let number = self.number()?;
                self.put(Some(number))
            }
            NEXT => self.put(self.last.and_then(|last| last.checked_add(1))),
            PREVIOUS => self.put(self.last.and_then(|last| last.checked_sub(1))),
            CUT => {
                let (from, to) = (self.number()?, self.number()?);
                match from <= to {
                    true => Ok(Edit::Cut(from, to)),
                    false => Err(Damage::Order),
                }
            }
            INSERT => {
                let number = self.number()?;
                Ok(Edit::Insert(number, self.cell(true)?))
            }
            CUT_IDS => self.cut_ids(),
            _ => Err(Damage::Flags),
        }
    }

    fn cut_ids(&mut self) -> Result<Edit<'a>, Damage> {
        let number = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk);
        let number = u32::from_le_bytes(*number.ok_or(Damage::Length)?);
        self.at += size_of::<u32>();
        let section = Section::of_number(number).ok_or(Damage::Kind)?;
        let (from, last) = (self.id()?, self.id()?);
        let range = IdRange {
            section,
            from,
            last,
        };
        match from <= last {
            true => Ok(Edit::CutIds(range)),
            false => Err(Damage::Order),
        }
    }

    fn id(&mut self) -> Result<Id, Damage> {
        let (ms, seq) = (self.number()?, self.number()?);
        Ok(Id { ms, seq })
    }

    fn number(&mut self) -> Result<u64, Damage> {
        let bytes = self.bytes.get(self.at..self.at + NUMBER);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        self.at += NUMBER;
        bytes.map(u64::from_le_bytes).ok_or(Damage::Length)
    }

    fn put(&mut self, number: Option<u64>) -> Result<Edit<'a>, Damage> {
        let number = number.filter(|&number| number < u64::MAX);
        self.last = Some(number.ok_or(Damage::Order)?);
        let element = self.cell(true)?;
        Ok(Edit::Put(number.ok_or(Damage::Order)?, element))
    }
}

impl<'a> Iterator for Read<'a> {
    type Item = Result<Edit<'a>, Damage>;

    fn next(&mut self) -> Option<Result<Edit<'a>, Damage>> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let edit = self.edit();
        if edit.is_err() {
            self.at = self.bytes.len();
        }
        Some(edit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_back_and_cut_ones_are_damage() {
        let set = [
            Item::pair(Cell::of(b"field"), Cell::of(b"value")),
            Item::pair(Cell::of(b"17"), Cell::Bytes(&[7; 300])),
            Item {
                expiry: Some(1 << 40),
                ..Item::pair(Cell::of(b""), Cell::Int(-5))
            },
        ];
        let mut edits = Edits::default();
        let mut wanted = Vec::new();
        let mut ends = vec![0];
        for item in &set {
            edits.set(item);
            ends.push(edits.bytes().len());
            edits.remove(item.name);
            ends.push(edits.bytes().len());
            edits.reschedule(item.name, item.expiry);
            ends.push(edits.bytes().len());
            edits.take(item);
            ends.push(edits.bytes().len());
            let reschedule = Edit::Reschedule(item.name, item.expiry);
            wanted.extend([Edit::Set(*item), Edit::Remove(item.name), reschedule]);
            wanted.push(Edit::Take(*item));
        }
        let all: Result<Vec<_>, _> = read(edits.bytes(), true).collect();
        assert_eq!(all.expect("they are whole"), wanted);
        for cut in 0..edits.bytes().len() {
            let read: Vec<_> = read(&edits.bytes()[..cut], true).collect();
            let whole = ends.partition_point(|&end| end <= cut) - 1;
            assert!(read[..whole].iter().all(Result::is_ok));
            assert_eq!(read.len() > whole, !ends.contains(&cut), "cut at {cut}");
            assert!(read[whole..].iter().all(Result::is_err));
        }
        let unknown: Vec<_> = read(&[11, 0], true).collect();
        assert_eq!(unknown, [Err(Damage::Flags)]);
        edits.clear(16);
        assert!(edits.is_empty() && edits.bytes.capacity() <= 16);
    }

    /// Changes in parts are the same changes, each part for itself.
    #[test]
    fn changes_come_in_parts() {
        let (mut fields, mut elements) = (Edits::default(), Edits::default());
        for number in 0..200_i64 {
            fields.set(&Item::pair(Cell::Int(number), Cell::Bytes(&[7; 20])));
            fields.remove(Cell::Int(number + 1));
            elements.put(number as u64, Cell::Int(number));
            if number % 7 == 0 {
                elements.cut(number as u64, number as u64 + 3);
            }
        }
        for (edits, has_values) in [(&fields, true), (&elements, false)] {
            let all: Vec<_> = read(edits.bytes(), has_values).collect();
            for most in [0, 1, 40, 100, 1 << 20] {
                let mut found = Vec::new();
                let mut parts = 0;
                in_parts(edits.bytes(), has_values, most, |part| {
                    let changes = read(part, has_values);
                    let changes: Vec<_> = changes.map(|edit| format!("{edit:?}")).collect();
                    assert!(part.len() <= most || changes.len() == 1, "{most}");
                    found.extend(changes);
                    parts += 1;
                });
                let all: Vec<_> = all.iter().map(|edit| format!("{edit:?}")).collect();
                assert_eq!(found, all, "{most}");
                assert_eq!(parts == 1, most >= edits.bytes().len());
            }
        }
    }

    #[test]
    fn changes_of_elements_come_back_and_cut_ones_are_damage() {
        let (mut edits, mut ends) = (Edits::default(), vec![0]);
        let wanted = [
            Edit::Put(70, Cell::of(b"a")),
            Edit::Put(71, Cell::of(b"17")),
            Edit::Put(72, Cell::of(b"")),
            Edit::Put(71, Cell::of(b"b")),
            Edit::Put(99, Cell::of(b"c")),
            Edit::Cut(3, 9),
            Edit::Insert(5, Cell::of(b"d")),
            Edit::Put(98, Cell::of(b"e")),
        ];
        for edit in wanted {
            match edit {
                Edit::Put(number, element) => edits.put(number, element),
                Edit::Cut(from, to) => edits.cut(from, to),
                Edit::Insert(number, element) => edits.insert(number, element),
                _ => unreachable!("it is about elements"),
            }
            ends.push(edits.bytes().len());
        }
        let all: Result<Vec<_>, _> = read(edits.bytes(), false).collect();
        assert_eq!(all.expect("they are whole"), wanted);
        for cut in 0..edits.bytes().len() {
            let read: Vec<_> = read(&edits.bytes()[..cut], false).collect();
            let whole = ends.partition_point(|&end| end <= cut) - 1;
            assert_eq!(read.len() > whole, !ends.contains(&cut), "cut at {cut}");
            assert!(read[whole..].iter().all(Result::is_err));
        }
        for bytes in [&[NEXT, 0][..], &[PREVIOUS, 0]] {
            assert_eq!(read(bytes, false).next(), Some(Err(Damage::Order)));
        }
    }
}
