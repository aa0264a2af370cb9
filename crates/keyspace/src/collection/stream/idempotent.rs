//! Idempotent IDs of producers as items: an entry is added once with each.
//!
//! ```text
//!  section    name                             value
//!  0          7                                duration | most | added | duplicates | producers
//!  0          8 | producer | idempotent ID     ID of the entry | number | time
//!  0          9 | producer | number, 8 B       time | idempotent ID
//! ```
//!
//! A producer is a cell of bytes. The number of an idempotent ID is how many were added before it,
//! big-endian: so the IDs of a producer are in the order of their age. All other numbers are cells of
//! integers.

use super::content::push;
use super::group::{ItemBuffer, Numbers, number, value};
use super::id::Id;
use crate::collection::cell::Cell;
use crate::collection::run::Item;

pub(super) const SETTINGS: u8 = 7;
pub(super) const KNOWN: u8 = 8;
pub(super) const AGE: u8 = 9;

/// How long idempotent IDs are kept, and how many of a producer, if nothing else is said.
const DURATION: u64 = 100;
const MOST: u64 = 100;

/// Settings of idempotent IDs, and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idempotence {
    /// They are kept so long (s).
    pub duration: u64,
    /// So many are kept of a producer.
    pub most: u64,
    /// How many were ever added.
    pub added: u64,
    /// Entries that were not added, as they were there.
    pub duplicates: u64,
    /// Producers that have some.
    pub producers: u64,
}

impl Default for Idempotence {
    fn default() -> Idempotence {
        Idempotence {
            duration: DURATION,
            most: MOST,
            added: 0,
            duplicates: 0,
            producers: 0,
        }
    }
}

impl Idempotence {
    /// Whether an idempotent ID that was added at a time (Unix, ms) has expired.
    pub fn is_over(&self, added: u64, now: u64) -> bool {
        now.saturating_sub(added) >= self.duration.saturating_mul(1000)
    }

    /// The settings of an item; `None` if it is another.
    pub(super) fn of(item: &Item<'_>) -> Option<Idempotence> {
        let Cell::Bytes(&[SETTINGS]) = item.name else {
            return None;
        };
        let mut numbers = Numbers::new(value(item)?);
        let settings = Idempotence {
            duration: numbers.next()?,
            most: numbers.next()?,
            added: numbers.next()?,
            duplicates: numbers.next()?,
            producers: numbers.next()?,
        };
        numbers.end(settings)
    }
}

/// An idempotent ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idempotent<'a> {
    /// Its producer.
    pub producer: &'a [u8],
    /// The ID among those of the producer.
    pub name: &'a [u8],
    /// Its number among all of the stream.
    pub number: u64,
    /// When it was added (Unix, ms).
    pub time: u64,
}

/// The first bytes of the names of the ages of the idempotent IDs of a producer.
pub(super) fn ages_of(producer: &[u8]) -> Vec<u8> {
    let mut name = vec![AGE];
    push(&mut name, Cell::Bytes(producer));
    name
}

/// A name after all of these, and before those of the next producer.
pub(super) fn after_ages_of(producer: &[u8]) -> Vec<u8> {
    let mut name = ages_of(producer);
    // One byte more than a number has.
    name.extend_from_slice(&[0xff; 9]);
    name
}

impl ItemBuffer {
    /// The item of the settings.
    pub fn idempotence(&mut self, settings: &Idempotence) -> Item<'_> {
        self.begin(SETTINGS);
        for integer in [
            settings.duration,
            settings.most,
            settings.added,
            settings.duplicates,
            settings.producers,
        ] {
            push(&mut self.value, number(integer));
        }
        self.item()
    }

    /// The item by which an idempotent ID is found, and its entry.
    pub fn known(&mut self, idempotent: &Idempotent<'_>, entry: Id) -> Item<'_> {
        self.begin(KNOWN);
        push(&mut self.name, Cell::Bytes(idempotent.producer));
        self.name.extend_from_slice(idempotent.name);
        for integer in [entry.ms, entry.seq, idempotent.number, idempotent.time] {
            push(&mut self.value, number(integer));
        }
        self.item()
    }

    /// The item by which the oldest idempotent ID is found.
    pub fn age(&mut self, idempotent: &Idempotent<'_>) -> Item<'_> {
        self.begin(AGE);
        push(&mut self.name, Cell::Bytes(idempotent.producer));
        self.name
            .extend_from_slice(&idempotent.number.to_be_bytes());
        push(&mut self.value, number(idempotent.time));
        self.value.extend_from_slice(idempotent.name);
        self.item()
    }
}

/// The producer in a name, and the bytes that follow.
fn producer(name: &[u8]) -> Option<(&[u8], &[u8])> {
    match Cell::check(name, 1, false).ok()? {
        (Cell::Bytes(producer), end) => Some((producer, &name[end..])),
        (Cell::Int(_), _) => None,
    }
}

impl<'a> Idempotent<'a> {
    /// The idempotent ID of an item of its age; `None` if the item is another.
    pub(super) fn of(item: &Item<'a>) -> Option<Idempotent<'a>> {
        let Cell::Bytes(name @ &[AGE, ..]) = item.name else {
            return None;
        };
        let (producer, number) = producer(name)?;
        let mut numbers = Numbers::new(value(item)?);
        Some(Idempotent {
            producer,
            number: u64::from_be_bytes(number.try_into().ok()?),
            time: numbers.next()?,
            name: numbers.rest(),
        })
    }
}

/// The entry that was added with an idempotent ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownEntry {
    /// The ID of the entry.
    pub id: Id,
    /// The number of the idempotent ID.
    pub number: u64,
    /// When it was added (Unix, ms).
    pub time: u64,
}

/// The entry of an item; `None` if the item is another.
pub(super) fn entry_of(item: &Item<'_>) -> Option<KnownEntry> {
    let Cell::Bytes(name @ &[KNOWN, ..]) = item.name else {
        return None;
    };
    producer(name)?;
    let mut numbers = Numbers::new(value(item)?);
    let known = KnownEntry {
        id: Id {
            ms: numbers.next()?,
            seq: numbers.next()?,
        },
        number: numbers.next()?,
        time: numbers.next()?,
    };
    numbers.end(known)
}

/// Whether an item has the form of one of these.
pub(super) fn is_valid(item: &Item<'_>) -> bool {
    Idempotence::of(item).is_some() || Idempotent::of(item).is_some() || entry_of(item).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idempotent_ids_come_back_and_cut_ones_do_not() {
        let mut buffer = ItemBuffer::default();
        let settings = Idempotence {
            duration: 86_400,
            added: 1 << 40,
            producers: 3,
            ..Idempotence::default()
        };
        let item = buffer.idempotence(&settings);
        assert_eq!(Idempotence::of(&item), Some(settings));
        for (producer, name) in [(&b"p"[..], &b"a name"[..]), (b"", b""), (&[7; 200], b"17")] {
            let idempotent = Idempotent {
                producer,
                name,
                number: 1 << 33,
                time: 1_700_000_000_000,
            };
            let item = buffer.age(&idempotent);
            assert_eq!(Idempotent::of(&item), Some(idempotent));
            let known = KnownEntry {
                id: Id {
                    ms: 5,
                    seq: 1 << 50,
                },
                number: idempotent.number,
                time: idempotent.time,
            };
            let item = buffer.known(&idempotent, known.id);
            assert_eq!(entry_of(&item), Some(known));
            assert!(is_valid(&item));
            let Some(Cell::Bytes(value)) = item.value else {
                panic!("the value is bytes");
            };
            for len in 0..value.len() {
                assert!(!is_valid(&Item::pair(
                    item.name,
                    Cell::Bytes(&value[..len])
                )));
            }
        }
    }
}
