//! Entries as items: an ID and its content.
//!
//! ```text
//!  item   distance, a cell | content, a cell
//! ```
//!
//! A stream has a base: a time in ms, that of its first entry. An entry `d` ms later (or earlier: `d` is
//! below 0) has the distance 2 * d, and one more if its sequence number is not 0: then the content begins
//! with the cell of that number. An ID with a time or a sequence number of 2^48 - 1 or more has no
//! distance: in its place are the byte 0xff and the 16 bytes of the ID, big-endian.

use super::content::{Content, slim};
use super::id::{FAR, Id};
use crate::collection::cell::{Cell, integer_at};
use crate::collection::run::Item;

/// Bytes of an ID that has no distance, and the first of them: no text of a number begins with it.
pub(super) const FAR_LEN: usize = 17;
pub(super) const FAR_MARK: u8 = 0xff;
/// Bytes of the cell of a number, at most.
const NUMBER_MAX: usize = 9;

/// An entry of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamEntry<'a> {
    /// Its ID.
    pub id: Id,
    /// The bytes that are stored under the ID.
    pub content: &'a [u8],
}

/// Bytes of an item that is in no run.
#[derive(Debug, Default)]
pub struct EntryBuffer {
    far: [u8; FAR_LEN],
    content: Vec<u8>,
}

/// Memory for an entry that is added.
#[derive(Debug, Default)]
pub struct EntryScratch {
    /// For the names of its fields.
    pub names: Content,
    /// For its content.
    pub content: Content,
    /// For its item.
    pub item: EntryBuffer,
}

impl EntryScratch {
    /// Gives back memory that a long entry took.
    pub fn slim(&mut self) {
        self.names.slim();
        self.content.slim();
        slim(&mut self.item.content);
    }
}

/// The name of an ID that has no distance.
pub(super) fn far_name(id: Id) -> [u8; FAR_LEN] {
    let mut name = [FAR_MARK; FAR_LEN];
    name[1..].copy_from_slice(&id.bits().to_be_bytes());
    name
}

impl<'a> StreamEntry<'a> {
    /// It as an item of a stream of this base.
    pub fn item(self, base: u64, buffer: &'a mut EntryBuffer) -> Item<'a> {
        let StreamEntry { id, content } = self;
        if !id.is_near() {
            buffer.far = far_name(id);
            return Item::pair(Cell::Bytes(&buffer.far), Cell::Bytes(content));
        }
        let later = id.ms.wrapping_sub(base) as i64;
        let distance = Cell::Int(later << 1 | i64::from(id.seq != 0));
        if id.seq == 0 {
            return Item::pair(distance, Cell::Bytes(content));
        }
        let mut seq = [0; NUMBER_MAX];
        let end = Cell::Int(id.seq as i64).encode(&mut seq);
        buffer.content.clear();
        buffer.content.extend_from_slice(&seq[..end]);
        buffer.content.extend_from_slice(content);
        Item::pair(distance, Cell::Bytes(&buffer.content))
    }

    /// The entry of an item of a stream of this base; `None` if the item is none, or has another form.
    #[inline]
    pub fn of(base: u64, item: &Item<'a>) -> Option<StreamEntry<'a>> {
        let (Some(Cell::Bytes(content)), None) = (item.value, item.expiry) else {
            return None;
        };
        let distance = match item.name {
            Cell::Int(distance) => distance,
            Cell::Bytes(&[FAR_MARK, ref id @ ..]) => {
                let id = Id::of_bits(u128::from_be_bytes(id.try_into().ok()?));
                return (!id.is_near()).then_some(StreamEntry { id, content });
            }
            Cell::Bytes(_) => return None,
        };
        let ms = base.checked_add_signed(distance >> 1)?;
        let (seq, from) = match distance & 1 {
            0 => (0, 0),
            _ => integer_at(content, 0)
                .filter(|&(seq, _)| seq != 0)
                .map(|(seq, end)| (seq as u64, end))?,
        };
        (ms < FAR && seq < FAR).then(|| StreamEntry {
            id: Id { ms, seq },
            content: &content[from..],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times at the ends of all, and at those of order keys.
    const TIMES: [u64; 9] = [
        0,
        1,
        FAR - 1,
        FAR,
        FAR + 1,
        1_700_000_000_000,
        1 << 62,
        u64::MAX - 1,
        u64::MAX,
    ];

    #[test]
    fn an_entry_has_one_form() {
        let mut buffers = [EntryBuffer::default(), EntryBuffer::default()];
        for base in TIMES.into_iter().filter(|&base| base < FAR) {
            for ms in TIMES {
                for seq in [0, 1, 53, 54, FAR - 1, FAR, 1 << 63, u64::MAX] {
                    let (id, content) = (Id { ms, seq }, &b"content"[..]);
                    let entry = StreamEntry { id, content };
                    let [first, second] = &mut buffers;
                    let item = entry.item(base, first);
                    assert_eq!(StreamEntry::of(base, &item), Some(entry), "{base} {id:?}");
                    // The other form of the same ID is none.
                    let distance = (i128::from(ms) - i128::from(base)) * 2 + i128::from(seq != 0);
                    let far = far_name(id);
                    let near = Id { ms: base, seq };
                    let near = StreamEntry { id: near, content }.item(base, second);
                    let other = match (item.name, i64::try_from(distance)) {
                        (Cell::Int(_), _) => Item::pair(Cell::Bytes(&far), Cell::Bytes(content)),
                        (Cell::Bytes(_), Ok(distance)) => Item {
                            name: Cell::Int(distance),
                            ..near
                        },
                        (Cell::Bytes(_), Err(_)) => continue,
                    };
                    assert_eq!(StreamEntry::of(base, &other), None);
                }
            }
        }
    }

    #[test]
    fn other_items_are_no_entries() {
        let content = Some(Cell::Bytes(&b"\xca"[..]));
        let item = |name, value, expiry| Item {
            name,
            value,
            expiry,
        };
        for wrong in [
            item(Cell::Int(0), None, None),
            item(Cell::Int(0), Some(Cell::Int(7)), None),
            item(Cell::Int(0), content, Some(7)),
            item(Cell::Bytes(b""), content, None),
            item(Cell::Bytes(b"\xffshort"), content, None),
            // Before all times; a number 0 that is written out; no number.
            item(Cell::Int(-2_000_000), content, None),
            item(Cell::Int(1), content, None),
            item(Cell::Int(1), Some(Cell::Bytes(b"")), None),
            item(Cell::Int(1), Some(Cell::Bytes(b"\x01x")), None),
        ] {
            assert_eq!(StreamEntry::of(1000, &wrong), None, "{wrong:?}");
        }
    }
}
