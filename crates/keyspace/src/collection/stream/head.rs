//! The head of a stream: all that it has beside its entries.
//!
//! ```text
//!  name 1   | base | entries | last ID | greatest deleted ID | entries added | numbers given
//! ```
//!
//! All are cells of integers; an ID is two, its time and its sequence number.

use super::id::{FAR, Id};
use crate::collection::cell::{Cell, integer_at};
use crate::collection::run::Item;

/// The name of its item.
pub(super) const NAME: &[u8] = &[1];
/// Cells of a head, and bytes of them, at most.
const CELLS: usize = 8;
const MAX: usize = CELLS * 9;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The time (ms) that distances are from: any, for the life of the stream.
    pub base: u64,
    /// Entries that there are.
    pub len: u64,
    /// The last ID that was added.
    pub last: Id,
    /// The greatest ID that was deleted.
    pub deleted: Id,
    /// Entries that were ever added.
    pub added: u64,
    /// Numbers that groups and consumers have got.
    pub numbers: u64,
}

impl Head {
    /// The head of a stream; its first entry has about this time.
    pub fn new(ms: u64) -> Head {
        Head {
            base: ms.min(FAR - 1),
            ..Head::default()
        }
    }

    /// It as an item.
    pub fn item<'b>(&self, buffer: &'b mut HeadBuffer) -> Item<'b> {
        let numbers = [
            self.base,
            self.len,
            self.last.ms,
            self.last.seq,
            self.deleted.ms,
            self.deleted.seq,
            self.added,
            self.numbers,
        ];
        let mut at = 0;
        for number in numbers {
            at += Cell::Int(number as i64).encode(&mut buffer.0[at..]);
        }
        Item::pair(Cell::Bytes(NAME), Cell::Bytes(&buffer.0[..at]))
    }

    /// The head in an item; `None` if it is another one.
    pub fn of(item: &Item<'_>) -> Option<Head> {
        let (Cell::Bytes(NAME), Some(Cell::Bytes(bytes)), None) =
            (item.name, item.value, item.expiry)
        else {
            return None;
        };
        let (mut numbers, mut at) = ([0; CELLS], 0);
        for number in &mut numbers {
            let (integer, end) = integer_at(bytes, at)?;
            (*number, at) = (integer as u64, end);
        }
        let [base, len, ms, seq, deleted_ms, deleted_seq, added, numbers] = numbers;
        (at == bytes.len() && base < FAR).then_some(Head {
            base,
            len,
            last: Id { ms, seq },
            deleted: Id {
                ms: deleted_ms,
                seq: deleted_seq,
            },
            added,
            numbers,
        })
    }
}

/// Bytes of the item of a head that is in no run.
#[derive(Debug)]
pub struct HeadBuffer([u8; MAX]);

impl Default for HeadBuffer {
    fn default() -> HeadBuffer {
        HeadBuffer([0; MAX])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_and_cut_ones_do_not() {
        let mut buffer = HeadBuffer::default();
        for base in [0, 1_700_000_000_000, FAR - 1] {
            for number in [0, 53, 54, 1 << 40, u64::MAX] {
                let head = Head {
                    base,
                    len: number,
                    last: Id { ms: number, seq: 7 },
                    deleted: Id { ms: 3, seq: number },
                    added: number,
                    numbers: 5,
                };
                let item = head.item(&mut buffer);
                assert_eq!(Head::of(&item), Some(head));
                let Some(Cell::Bytes(bytes)) = item.value else {
                    panic!("a head has bytes");
                };
                for len in 0..bytes.len() {
                    let cut = Item::pair(item.name, Cell::Bytes(&bytes[..len]));
                    assert_eq!(Head::of(&cut), None);
                }
                let longer = [bytes, &[0xca]].concat();
                let longer = Item::pair(item.name, Cell::Bytes(&longer));
                assert_eq!(Head::of(&longer), None);
            }
        }
        assert_eq!(Head::new(u64::MAX).base, FAR - 1);
    }
}
