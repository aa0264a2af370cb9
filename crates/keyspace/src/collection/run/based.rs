//! Runs of streams: items in the order of their IDs.
//!
//! ```text
//!  header 4 | base 8 | offset of every 8th item | item | item | ...
//!  item     distance, a cell | content, a cell
//! ```
//!
//! The base is a time in ms. An item `d` ms later has the distance 2 * d, and one more if its sequence number
//! is not 0: then the content begins with the cell of that number. An ID from 2^62 ms later on has its 16
//! bytes, big-endian, in the place of a distance.

use super::Damage;
use super::buffer::RunMut;
use super::layout::{BASED, HEADER, NUMBER, PAIRS};
use super::packed::{Item, Packed, Run};
use super::sorted::Fraction;
use crate::collection::cell::Cell;

/// Times later than the base by so many ms have no distance.
const FAR: u64 = 1 << 62;
/// Bytes of an ID.
const ID: usize = 16;
/// Bytes of the cell of a sequence number, at most.
const SEQ: usize = 9;

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

/// An item of a run of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Based<'a> {
    /// Its ID.
    pub id: Id,
    /// The bytes that are stored under the ID.
    pub content: &'a [u8],
}

/// The bytes of an item that is not in a run yet.
#[derive(Debug, Default)]
pub struct BasedBuffer {
    id: [u8; ID],
    content: Vec<u8>,
}

impl<'a> Based<'a> {
    /// It as an item of a run of this base, which is not later.
    ///
    /// # Panics
    /// If the base is later.
    pub fn item(self, base: u64, buffer: &'a mut BasedBuffer) -> Item<'a> {
        let Based { id, content } = self;
        let later = id.ms.checked_sub(base).expect("the base is not later");
        if later >= FAR {
            buffer.id = id.order().to_be_bytes();
            return Item::pair(Cell::Bytes(&buffer.id), Cell::Bytes(content));
        }
        let distance = Cell::Int((later << 1 | u64::from(id.seq != 0)) as i64);
        if id.seq == 0 {
            return Item::pair(distance, Cell::Bytes(content));
        }
        let mut seq = [0; SEQ];
        let end = Cell::Int(id.seq as i64).encode(&mut seq);
        buffer.content.clear();
        buffer.content.extend_from_slice(&seq[..end]);
        buffer.content.extend_from_slice(content);
        Item::pair(distance, Cell::Bytes(&buffer.content))
    }

    /// An item of a run of this base; `None` if it is none of a stream.
    #[inline]
    fn of(base: u64, item: &Item<'a>) -> Option<Based<'a>> {
        let Some(Cell::Bytes(content)) = item.value else {
            return None;
        };
        let distance = match item.name {
            Cell::Int(distance) => u64::try_from(distance).ok()?,
            Cell::Bytes(bytes) => {
                let id = Id::of_order(u128::from_be_bytes(bytes.try_into().ok()?));
                let is_far = id.ms.checked_sub(base)? >= FAR;
                return is_far.then_some(Based { id, content });
            }
        };
        let ms = base.checked_add(distance >> 1)?;
        if distance & 1 == 0 {
            return Some(Based {
                id: Id { ms, seq: 0 },
                content,
            });
        }
        let (seq, end) = Cell::check(content, 0, true).ok()?;
        let Cell::Int(seq) = seq else { return None };
        let seq = seq as u64;
        (seq != 0).then(|| Based {
            id: Id { ms, seq },
            content: &content[end..],
        })
    }
}

/// It is one of a stream: an edit here, or [`Run::check_based`], left it.
const OF_A_STREAM: &str = "an item of a stream";

impl<'a> Run<'a> {
    /// Flags of a stream's run.
    pub const STREAM: u8 = PAIRS | BASED;

    /// The start of a stream's run without items: of this base.
    pub fn empty_based(base: u64) -> [u8; HEADER + NUMBER] {
        let mut bytes = [0; HEADER + NUMBER];
        bytes[..HEADER].copy_from_slice(&Run::empty(Run::STREAM));
        bytes[HEADER..].copy_from_slice(&base.to_le_bytes());
        bytes
    }

    /// The base of a stream's run.
    #[inline]
    pub fn base(self) -> u64 {
        self.number()
    }

    /// The item that begins at a place.
    #[inline]
    fn based_at(self, at: usize) -> Based<'a> {
        Based::of(self.base(), &self.one_at(at)).expect(OF_A_STREAM)
    }

    /// Gives out `count` items of a stream's run from an index on.
    #[inline]
    pub fn based(self, from: usize, count: usize, mut visit: impl FnMut(Based<'a>)) {
        let base = self.base();
        self.items(from, count, |item| {
            visit(Based::of(base, &item).expect(OF_A_STREAM));
        });
    }

    /// How many items of a stream's run have an earlier ID.
    #[inline]
    pub fn based_before(self, id: Id) -> usize {
        self.partition(Fraction::HALF, |at| self.based_at(at).id < id)
    }

    /// The index of the item of an ID in a stream's run, or of the first that is later.
    ///
    /// # Errors
    /// There is no item of this ID.
    pub fn find_based(self, id: Id) -> Result<usize, usize> {
        let index = self.based_before(id);
        let is_there = index < self.count() && self.based_at(self.start(index)).id == id;
        if is_there { Ok(index) } else { Err(index) }
    }

    /// The same items in a run of another base, which is not later than the first of them.
    pub fn rebased(self, base: u64) -> Vec<u8> {
        let (mut bytes, mut buffer) = (Vec::new(), BasedBuffer::default());
        let mut ends = Vec::with_capacity(self.count());
        self.based(0, self.count(), |based| {
            let item = based.item(base, &mut buffer);
            let at = bytes.len();
            bytes.resize(at + item.size(), 0);
            item.encode(&mut bytes[at..]);
            ends.push((at, bytes.len()));
        });
        let empty = Run::empty_based(base);
        let mut run = vec![0; Run::size_of(Run::STREAM, self.count(), bytes.len())];
        run[..empty.len()].copy_from_slice(&empty);
        let items = ends
            .iter()
            .map(|&(at, end)| Packed::of_bytes(&bytes[at..end]));
        RunMut::new(&mut run, empty.len()).extend(items);
        run
    }

    /// A stream's run from bytes of which nothing is known: its IDs ascend.
    ///
    /// # Errors
    /// The bytes are none.
    pub fn check_based(bytes: &'a [u8]) -> Result<Run<'a>, Damage> {
        let base = bytes.get(HEADER..HEADER + NUMBER).ok_or(Damage::Length)?;
        let base = u64::from_le_bytes(base.try_into().expect("eight bytes"));
        if Run::flags_of(bytes) != Some(Run::STREAM) {
            return Err(Damage::Kind);
        }
        let mut last = None;
        Run::check_items(bytes, |item| {
            let id = Based::of(base, item).ok_or(Damage::Item)?.id;
            match last.replace(id).is_none_or(|last| last < id) {
                true => Ok(()),
                false => Err(Damage::Order),
            }
        })
    }
}
