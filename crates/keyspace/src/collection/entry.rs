//! Entries of streams as items: an ID and its content.
//!
//! ```text
//!  item   distance, a cell | content, a cell
//! ```
//!
//! A stream has a base: a time in ms, that of its first entry. An entry `d` ms later (or earlier: `d` is
//! below 0) has the distance 2 * d, and one more if its sequence number is not 0: then the content begins
//! with the cell of that number. An ID from 2^61 ms away on has the byte 0xff and its 16 bytes, big-endian,
//! in the place of the distance.

use super::cell::Cell;
use super::run::Item;

/// Times so many ms away from the base have no distance.
const FAR: i128 = 1 << 61;
/// Bytes of an ID that has no distance, and the first of them: no text of a number begins with it.
const FAR_LEN: usize = 17;
const FAR_MARK: u8 = 0xff;
/// Bytes of the cell of a sequence number, at most.
const SEQ_MAX: usize = 9;

/// The ID of an entry: a time (ms), and a number among those of one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Unix, ms.
    pub ms: u64,
    /// Sequence number.
    pub seq: u64,
}

impl Id {
    /// The last of all.
    pub const MAX: Id = Id {
        ms: u64::MAX,
        seq: u64::MAX,
    };

    /// The order key.
    #[inline]
    pub fn order(self) -> u128 {
        u128::from(self.ms) << 64 | u128::from(self.seq)
    }

    /// The ID of an order key.
    #[inline]
    pub fn of_order(order: u128) -> Id {
        Id {
            ms: (order >> 64) as u64,
            seq: order as u64,
        }
    }
}

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

/// Ms from a base to a time, if there is a distance.
#[inline]
fn later(base: u64, ms: u64) -> Option<i64> {
    let later = i128::from(ms) - i128::from(base);
    (-FAR..FAR).contains(&later).then_some(later as i64)
}

impl<'a> StreamEntry<'a> {
    /// It as an item of a stream of this base.
    pub fn item(self, base: u64, buffer: &'a mut EntryBuffer) -> Item<'a> {
        let StreamEntry { id, content } = self;
        let Some(later) = later(base, id.ms) else {
            buffer.far[0] = FAR_MARK;
            buffer.far[1..].copy_from_slice(&id.order().to_be_bytes());
            return Item::pair(Cell::Bytes(&buffer.far), Cell::Bytes(content));
        };
        let distance = Cell::Int(later << 1 | i64::from(id.seq != 0));
        if id.seq == 0 {
            return Item::pair(distance, Cell::Bytes(content));
        }
        let mut seq = [0; SEQ_MAX];
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
                let id = Id::of_order(u128::from_be_bytes(id.try_into().ok()?));
                let is_far = later(base, id.ms).is_none();
                return is_far.then_some(StreamEntry { id, content });
            }
            Cell::Bytes(_) => return None,
        };
        let ms = base.checked_add_signed(distance >> 1)?;
        later(base, ms)?;
        if distance & 1 == 0 {
            let id = Id { ms, seq: 0 };
            return Some(StreamEntry { id, content });
        }
        let (seq, end) = Cell::check(content, 0, true).ok()?;
        let Cell::Int(seq) = seq else { return None };
        let id = Id {
            ms,
            seq: seq as u64,
        };
        (seq != 0).then(|| StreamEntry {
            id,
            content: &content[end..],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times at the ends of all, and at those of distances.
    const TIMES: [u64; 9] = [
        0,
        1,
        (1 << 61) - 1,
        1 << 61,
        (1 << 61) + 1,
        1_700_000_000_000,
        u64::MAX - (1 << 61),
        u64::MAX - 1,
        u64::MAX,
    ];

    #[test]
    fn an_entry_has_one_form() {
        let mut buffers = [EntryBuffer::default(), EntryBuffer::default()];
        for base in TIMES {
            for ms in TIMES {
                for seq in [0, 1, 53, 54, 1 << 63, u64::MAX] {
                    let (id, content) = (Id { ms, seq }, &b"content"[..]);
                    let entry = StreamEntry { id, content };
                    let [first, second] = &mut buffers;
                    let item = entry.item(base, first);
                    assert_eq!(StreamEntry::of(base, &item), Some(entry), "{base} {id:?}");
                    // The other form of the same ID is none.
                    let distance = (i128::from(ms) - i128::from(base)) * 2 + i128::from(seq != 0);
                    let far = [&[FAR_MARK][..], &id.order().to_be_bytes()].concat();
                    let near = entry.item(ms, second);
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
