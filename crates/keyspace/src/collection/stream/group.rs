//! Groups of consumers as items.
//!
//! ```text
//!  section    name                                value
//!  0          3 | name of the group               number | last ID delivered | entries read | pending
//!  0          4 | group, 4 B | consumer, 4 B      seen | active | pending | name
//!  0          5 | group, 4 B | name               number of the consumer
//!  1 + group  6 | group | distance | sequence     consumer | ms from the time of the ID | deliveries
//! ```
//!
//! Pending is how many pending entries there are. Numbers of 4 bytes are big-endian; all others are cells of
//! integers. The distance and the sequence number of a pending entry are those of its ID ([`super::entry`]).
//! If the ID has none, 0xc9, which begins no cell, and its 16 bytes are in their place.

use super::content::push;
use super::entry::FAR_LEN;
use super::id::{FAR, Id};
use crate::collection::cell::{Cell, integer_at};
use crate::collection::run::Item;

pub(super) const GROUP: u8 = 3;
pub(super) const CONSUMER: u8 = 4;
pub(super) const CONSUMER_NAME: u8 = 5;
pub(super) const PENDING: u8 = 6;

/// Stands before an ID that has no distance.
const FAR_MARK: u8 = 0xc9;

/// Numbers of groups and of consumers are below this.
pub const NUMBERS_END: u64 = 0xffff_fffe;

/// A group of consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Names it in the items of its consumers, and of its pending entries.
    pub number: u32,
    /// The last ID that was delivered.
    pub last: Id,
    /// Entries that were read, as far as it is known.
    pub read: Option<u64>,
    /// Entries that were delivered and not acknowledged.
    pub pending: u64,
}

/// A consumer of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumer<'a> {
    /// When it last asked (Unix, ms).
    pub seen: u64,
    /// When it last got an entry (Unix, ms), if it ever did.
    pub active: Option<u64>,
    /// Its entries that were not acknowledged.
    pub pending: u64,
    /// Its name.
    pub name: &'a [u8],
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its ID.
    pub id: Id,
    /// The number of its consumer.
    pub consumer: u32,
    /// When it was delivered last (Unix, ms).
    pub delivered: u64,
    /// How often it was.
    pub deliveries: u64,
}

/// Integers in cells, one after another.
pub(super) struct Numbers<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Numbers<'a> {
        Numbers { bytes, at: 0 }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<u64> {
        let (integer, end) = integer_at(self.bytes, self.at)?;
        self.at = end;
        Some(integer as u64)
    }

    #[inline]
    fn short(&mut self) -> Option<u32> {
        let number = self.next().filter(|&number| number < NUMBERS_END);
        number.and_then(|number| u32::try_from(number).ok())
    }

    pub(super) fn rest(self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    #[inline]
    pub(super) fn end<T>(self, value: T) -> Option<T> {
        (self.at == self.bytes.len()).then_some(value)
    }
}

pub(super) fn number(integer: u64) -> Cell<'static> {
    Cell::Int(integer as i64)
}

/// A number that may be unknown: -1 stands for that.
fn optional(number: Option<u64>) -> Cell<'static> {
    Cell::Int(number.map_or(-1, |number| number.min(i64::MAX as u64) as i64))
}

fn known(number: u64) -> Option<u64> {
    Some(number).filter(|&number| number as i64 >= 0)
}

pub(super) fn value<'a>(item: &Item<'a>) -> Option<&'a [u8]> {
    match (item.value, item.expiry) {
        (Some(Cell::Bytes(bytes)), None) => Some(bytes),
        _ => None,
    }
}

/// The number after the first byte of a name, and the bytes that follow.
fn numbered(name: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = name.get(1..)?.split_first_chunk()?;
    let number = u32::from_be_bytes(*number);
    (u64::from(number) < NUMBERS_END).then_some((number, rest))
}

/// The end of the name of a pending entry, if its ID has no distance.
pub(super) fn far_name(id: Id) -> [u8; FAR_LEN] {
    let mut name = [FAR_MARK; FAR_LEN];
    name[1..].copy_from_slice(&id.bits().to_be_bytes());
    name
}

/// Bytes that nearly every name and value fits.
const NEEDED: usize = 56;

/// Memory for an item that is in no run.
#[derive(Debug, Default)]
pub struct ItemBuffer {
    pub(super) name: Vec<u8>,
    pub(super) value: Vec<u8>,
}

impl ItemBuffer {
    pub(super) fn begin(&mut self, kind: u8) {
        self.name.clear();
        self.name.reserve(NEEDED);
        self.name.push(kind);
        self.value.clear();
        self.value.reserve(NEEDED);
    }

    pub(super) fn item(&self) -> Item<'_> {
        Item::pair(Cell::Bytes(&self.name), Cell::Bytes(&self.value))
    }

    /// The item of a group; without one its name alone counts.
    pub fn group(&mut self, name: &[u8], group: Option<&Group>) -> Item<'_> {
        self.begin(GROUP);
        self.name.extend_from_slice(name);
        if let Some(group) = group {
            let numbers = [group.number.into(), group.last.ms, group.last.seq];
            numbers
                .into_iter()
                .for_each(|cell| push(&mut self.value, number(cell)));
            push(&mut self.value, optional(group.read));
            push(&mut self.value, number(group.pending));
        }
        self.item()
    }

    /// The item of a consumer; without one its name alone counts.
    pub fn consumer(
        &mut self,
        group: u32,
        its_number: u32,
        consumer: Option<&Consumer<'_>>,
    ) -> Item<'_> {
        self.begin(CONSUMER);
        for number in [group, its_number] {
            self.name.extend_from_slice(&number.to_be_bytes());
        }
        if let Some(consumer) = consumer {
            push(&mut self.value, number(consumer.seen));
            push(&mut self.value, optional(consumer.active));
            push(&mut self.value, number(consumer.pending));
            self.value.extend_from_slice(consumer.name);
        }
        self.item()
    }

    /// The item of the name of a consumer.
    pub fn consumer_name(&mut self, group: u32, name: &[u8], its_number: u32) -> Item<'_> {
        self.begin(CONSUMER_NAME);
        self.name.extend_from_slice(&group.to_be_bytes());
        self.name.extend_from_slice(name);
        push(&mut self.value, number(its_number.into()));
        self.item()
    }

    /// The item of a pending entry.
    pub fn pending(&mut self, base: u64, group: u32, pending: &Pending) -> Item<'_> {
        self.begin(PENDING);
        push(&mut self.name, number(group.into()));
        let id = pending.id;
        if id.is_near() {
            let later = id.ms.wrapping_sub(base) as i64;
            let distance = Cell::Int(later << 1 | i64::from(id.seq != 0));
            push(&mut self.name, distance);
            if id.seq != 0 {
                push(&mut self.name, number(id.seq));
            }
        } else {
            self.name.extend_from_slice(&far_name(id));
        }
        push(&mut self.value, number(pending.consumer.into()));
        push(
            &mut self.value,
            number(pending.delivered.wrapping_sub(id.ms)),
        );
        push(&mut self.value, number(pending.deliveries));
        self.item()
    }
}

impl Group {
    /// The group of an item, and its name; `None` if the item is another.
    pub fn of<'a>(item: &Item<'a>) -> Option<(&'a [u8], Group)> {
        let Cell::Bytes(&[GROUP, ref name @ ..]) = item.name else {
            return None;
        };
        let mut numbers = Numbers::new(value(item)?);
        let group = Group {
            number: numbers.short()?,
            last: Id {
                ms: numbers.next()?,
                seq: numbers.next()?,
            },
            read: known(numbers.next()?),
            pending: numbers.next()?,
        };
        numbers.end((name, group))
    }
}

impl<'a> Consumer<'a> {
    /// The consumer of an item, the number of its group and its own; `None` if the item is another.
    pub fn of(item: &Item<'a>) -> Option<(u32, u32, Consumer<'a>)> {
        let Cell::Bytes(name @ &[CONSUMER, ..]) = item.name else {
            return None;
        };
        let (group, rest) = numbered(name)?;
        let its_number = u32::from_be_bytes(rest.try_into().ok()?);
        let mut numbers = Numbers::new(value(item)?);
        let (seen, active, pending) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let consumer = Consumer {
            seen,
            active: known(active),
            pending,
            name: numbers.rest(),
        };
        Some((group, its_number, consumer))
    }
}

/// The consumer that an item names: the number of its group, its name and its own number. `None` if the item
/// is another.
pub fn named_consumer<'a>(item: &Item<'a>) -> Option<(u32, &'a [u8], u32)> {
    let Cell::Bytes(name @ &[CONSUMER_NAME, ..]) = item.name else {
        return None;
    };
    let (group, name) = numbered(name)?;
    let mut numbers = Numbers::new(value(item)?);
    let its_number = numbers.short()?;
    numbers.end((group, name, its_number))
}

impl Pending {
    /// The number of the group and the ID of the name of a pending entry, in a stream of this base.
    #[inline]
    pub(super) fn of_name(base: u64, name: Cell<'_>) -> Option<(u32, Id)> {
        let Cell::Bytes(&[PENDING, ref name @ ..]) = name else {
            return None;
        };
        let mut numbers = Numbers::new(name);
        let group = numbers.short()?;
        if let [FAR_MARK, id @ ..] = &name[numbers.at..] {
            let id = Id::of_bits(u128::from_be_bytes(id.try_into().ok()?));
            return (!id.is_near()).then_some((group, id));
        }
        let distance = numbers.next()? as i64;
        let ms = base.checked_add_signed(distance >> 1)?;
        let seq = match distance & 1 {
            0 => 0,
            _ => numbers.next().filter(|&seq| seq != 0)?,
        };
        let is_near = ms < FAR && seq < FAR;
        numbers.end((group, Id { ms, seq })).filter(|_| is_near)
    }

    /// The pending entry of an item, and the number of its group; `None` if the item is another.
    #[inline]
    pub fn of(base: u64, item: &Item<'_>) -> Option<(u32, Pending)> {
        let (group, id) = Pending::of_name(base, item.name)?;
        let mut numbers = Numbers::new(value(item)?);
        let (consumer, later) = (numbers.short()?, numbers.next()?);
        let pending = Pending {
            id,
            consumer,
            delivered: id.ms.wrapping_add(later),
            deliveries: numbers.next()?,
        };
        numbers.end((group, pending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_groups_come_back_and_cut_ones_do_not() {
        let mut buffer = ItemBuffer::default();
        for large in [0, 5, 1 << 40, i64::MAX as u64] {
            let group = Group {
                number: 7,
                last: Id { ms: large, seq: 3 },
                read: Some(large).filter(|&read| read != 5),
                pending: large,
            };
            let item = buffer.group(b"a name", Some(&group));
            assert_eq!(Group::of(&item), Some((&b"a name"[..], group)));
            let consumer = Consumer {
                seen: large,
                active: group.read,
                pending: large,
                name: b"17",
            };
            let item = buffer.consumer(7, 9, Some(&consumer));
            assert_eq!(Consumer::of(&item), Some((7, 9, consumer)));
            let item = buffer.consumer_name(7, b"", 9);
            assert_eq!(named_consumer(&item), Some((7, &b""[..], 9)));
            for id in [
                Id { ms: large, seq: 0 },
                Id {
                    ms: 900,
                    seq: large,
                },
                Id::MAX,
            ] {
                let pending = Pending {
                    id,
                    consumer: 9,
                    delivered: large,
                    deliveries: 2,
                };
                let item = buffer.pending(1000, 7, &pending);
                assert_eq!(Pending::of(1000, &item), Some((7, pending)));
                let (Cell::Bytes(name), Some(Cell::Bytes(value))) = (item.name, item.value) else {
                    panic!("both are bytes");
                };
                for len in 0..name.len() {
                    assert_eq!(Pending::of_name(1000, Cell::Bytes(&name[..len])), None);
                }
                for len in 0..value.len() {
                    let cut = Item::pair(item.name, Cell::Bytes(&value[..len]));
                    assert_eq!(Pending::of(1000, &cut), None);
                }
            }
        }
    }
}
