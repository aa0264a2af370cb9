//! A list of changes of items, as a record holds it.
//!
//! ```text
//!  one change   code, 1 B   1: an item is set: its cells follow, its expiry before them
//!                           2: an item is removed: its name follows
//!                           3: an item expires, or does no more: its expiry, if any, and its name follow
//!                           4: an item of this name and value is removed: its cells follow
//! ```
//!
//! Cells are those of runs (see `cell`). Changes are applied in their order.

use crate::collection::cell::{self, Cell};
use crate::collection::run::{Damage, EXPIRY_LEN, Item};

const SET: u8 = 1;
const REMOVE: u8 = 2;
const RESCHEDULE: u8 = 3;
const TAKE: u8 = 4;

/// Changes of items, in the form of a record.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    bytes: Vec<u8>,
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
}

impl<'a> Edit<'a> {
    /// What has the name of the item, to look it up.
    pub fn key(&self) -> Item<'a> {
        match *self {
            Edit::Set(item) | Edit::Take(item) => item,
            Edit::Remove(name) | Edit::Reschedule(name, _) => Item::single(name),
        }
    }
}

/// The changes in bytes of which nothing is known. `has_values`: items have two cells.
pub fn read(bytes: &[u8], has_values: bool) -> Read<'_> {
    Read {
        bytes,
        at: 0,
        has_values,
    }
}

/// Changes of a record. After damage there are no more.
#[derive(Clone, Debug)]
pub struct Read<'a> {
    bytes: &'a [u8],
    at: usize,
    has_values: bool,
}

impl<'a> Read<'a> {
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
            _ => Err(Damage::Flags),
        }
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
        let unknown: Vec<_> = read(&[5, 0], true).collect();
        assert_eq!(unknown, [Err(Damage::Flags)]);
        edits.clear(16);
        assert!(edits.is_empty() && edits.bytes.capacity() <= 16);
    }
}
