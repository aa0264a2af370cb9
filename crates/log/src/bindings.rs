//! Which database a number means, and from where on a database's records count.
//!
//! FLUSHDB, FLUSHALL and SWAPDB touch no record: SWAPDB exchanges what two numbers are bound to, and a flush
//! moves the *horizon* of a database, the position below which its records are dead. Every segment begins
//! with the whole table, so a `Bind` record is needed only until the next segment begins.
//!
//! ```text
//!  in a Bind record, 8 B each         in a segment's header, 16 B each
//!  +----+---+-----+-----+----+        +------+---+----+----+------------------+
//!  | op | 0 | a   | b   | 0  |        | op   | 0 | a  | b  | position (u64)   |
//!  +----+---+-----+-----+----+        +------+---+----+----+------------------+
//!   u8   u8  u16   u16   u16           u8     u8  u16  u16   after 2 zero bytes
//!
//!   op 1  number a means database b
//!   op 2  records of database a below the position are dead (in a record: below the record)
//!   op 3  the same for all databases
//! ```
//!
//! Invariants:
//! 1. Numbers and databases are one to one: a number that is not named means the database of the same number,
//!    and nobody else does.
//! 2. Horizons only grow.
//! 3. [`DbId::APART`] is no database: no number means it, and its records are never dead by a flush.

use std::collections::BTreeMap;

use crate::address::{DbId, Lsn};

const OP_NAME: u8 = 1;
const OP_CLEAR: u8 = 2;
const OP_CLEAR_ALL: u8 = 3;

/// Bytes of a change in a record, and of a line of the table in a header.
const CHANGE: usize = 8;
pub(crate) const LINE: usize = 16;

/// A change of the table. Several are made together, by one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebind {
    /// The number means this database from here on (SWAPDB makes two of these).
    Name {
        /// What SELECT chooses.
        number: u16,
        /// What it means.
        id: DbId,
    },
    /// The database is empty from here on (FLUSHDB).
    Clear(DbId),
    /// All databases are empty from here on (FLUSHALL). [`DbId::APART`] is none.
    ClearAll,
}

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings {
    /// Numbers that mean another database than that of their own number.
    names: BTreeMap<u16, DbId>,
    horizons: BTreeMap<DbId, u64>,
    /// The horizon of all databases.
    floor: u64,
    /// The greatest of all horizons: above it nothing is dead.
    highest: u64,
}

impl Bindings {
    /// The database that a number means.
    pub fn id_of(&self, number: u16) -> DbId {
        self.names.get(&number).copied().unwrap_or(DbId(number))
    }

    /// The number that means a database.
    pub fn number_of(&self, id: DbId) -> u16 {
        let named = self.names.iter().find(|&(_, &named)| named == id);
        named.map_or(id.0, |(&number, _)| number)
    }

    /// Whether a record of this database at this position counts.
    #[inline]
    pub fn is_alive(&self, id: DbId, lsn: Lsn) -> bool {
        lsn.0 >= self.highest || lsn.0 >= self.horizon(id) || id == DbId::APART
    }

    fn horizon(&self, id: DbId) -> u64 {
        self.horizons
            .get(&id)
            .map_or(self.floor, |&own| own.max(self.floor))
    }

    /// Makes the changes of the record at `lsn`.
    pub(crate) fn apply(&mut self, changes: &[Rebind], lsn: Lsn) {
        for &change in changes {
            match change {
                Rebind::Name { number, id } if id.0 == number => drop(self.names.remove(&number)),
                Rebind::Name { number, id } => drop(self.names.insert(number, id)),
                Rebind::Clear(id) => drop(self.horizons.insert(id, lsn.0)),
                Rebind::ClearAll => {
                    self.floor = lsn.0;
                    self.horizons.clear();
                }
            }
            if !matches!(change, Rebind::Name { .. }) {
                self.highest = self.highest.max(lsn.0);
            }
        }
    }

    /// Whether the first invariant holds.
    pub(crate) fn is_one_to_one(&self) -> bool {
        let mut meant: Vec<u16> = self.names.values().map(|id| id.0).collect();
        meant.sort_unstable();
        meant.iter().eq(self.names.keys())
    }

    /// The table as lines of a header.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut lines = Vec::new();
        let mut line = |op: u8, a: u16, b: u16, position: u64| {
            lines.extend_from_slice(&[op, 0]);
            lines.extend_from_slice(&a.to_le_bytes());
            lines.extend_from_slice(&b.to_le_bytes());
            lines.extend_from_slice(&[0; 2]);
            lines.extend_from_slice(&position.to_le_bytes());
        };
        if self.floor > 0 {
            line(OP_CLEAR_ALL, 0, 0, self.floor);
        }
        for (number, id) in &self.names {
            line(OP_NAME, *number, id.0, 0);
        }
        for (id, horizon) in &self.horizons {
            line(OP_CLEAR, id.0, 0, *horizon);
        }
        lines
    }

    /// The table whose lines these are; `None` if they make no sense.
    pub(crate) fn decode(lines: &[u8]) -> Option<Bindings> {
        let (lines, []) = lines.as_chunks::<LINE>() else {
            return None;
        };
        let mut table = Bindings::default();
        for line in lines {
            let (change, position) = line.split_first_chunk::<CHANGE>()?;
            let position = u64::from_le_bytes(position.try_into().ok()?);
            table.apply(&[decode_change(change)?], Lsn(position));
        }
        table.is_one_to_one().then_some(table)
    }
}

/// The data of a `Bind` record.
pub(crate) fn encode_changes(changes: &[Rebind]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(changes.len() * CHANGE);
    for change in changes {
        let (op, a, b) = match *change {
            Rebind::Name { number, id } => (OP_NAME, number, id.0),
            Rebind::Clear(id) => (OP_CLEAR, id.0, 0),
            Rebind::ClearAll => (OP_CLEAR_ALL, 0, 0),
        };
        bytes.extend_from_slice(&[op, 0]);
        bytes.extend_from_slice(&a.to_le_bytes());
        bytes.extend_from_slice(&b.to_le_bytes());
        bytes.extend_from_slice(&[0; 2]);
    }
    bytes
}

/// What the data of a `Bind` record says; `None` if it makes no sense.
pub(crate) fn decode_changes(bytes: &[u8]) -> Option<Vec<Rebind>> {
    let (changes, []) = bytes.as_chunks::<CHANGE>() else {
        return None;
    };
    changes.iter().map(decode_change).collect()
}

fn decode_change(bytes: &[u8; CHANGE]) -> Option<Rebind> {
    let [op, 0, a0, a1, b0, b1, 0, 0] = *bytes else {
        return None;
    };
    let (a, b) = (u16::from_le_bytes([a0, a1]), u16::from_le_bytes([b0, b1]));
    match (op, b) {
        (OP_NAME, id) => Some(Rebind::Name {
            number: a,
            id: DbId(id),
        }),
        (OP_CLEAR, 0) => Some(Rebind::Clear(DbId(a))),
        (OP_CLEAR_ALL, 0) if a == 0 => Some(Rebind::ClearAll),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Lsn = |eighth| Lsn(eighth * 8);

    #[test]
    fn numbers_mean_themselves_until_they_are_exchanged() {
        let mut table = Bindings::default();
        assert_eq!((table.id_of(3), table.number_of(DbId(3))), (DbId(3), 3));
        let exchange = |table: &Bindings, a, b| {
            let (id_a, id_b) = (table.id_of(a), table.id_of(b));
            [
                Rebind::Name {
                    number: a,
                    id: id_b,
                },
                Rebind::Name {
                    number: b,
                    id: id_a,
                },
            ]
        };
        table.apply(&exchange(&table, 0, 1), AT(10));
        table.apply(&exchange(&table, 1, 2), AT(11));
        assert_eq!(
            [0, 1, 2, 3].map(|number| table.id_of(number).0),
            [1, 2, 0, 3]
        );
        assert_eq!(
            [0, 1, 2, 3].map(|id| table.number_of(DbId(id))),
            [2, 0, 1, 3]
        );
        assert!(table.is_one_to_one());
        assert_eq!(Bindings::decode(&table.encode()), Some(table.clone()));
        table.apply(&exchange(&table, 1, 2), AT(12));
        table.apply(&exchange(&table, 0, 1), AT(13));
        assert_eq!(table, Bindings::default());
    }

    #[test]
    fn a_flush_kills_what_is_below_it() {
        let mut table = Bindings::default();
        table.apply(&[Rebind::Clear(DbId(2))], AT(10));
        for (id, lsn, alive) in [(2, 9, false), (2, 10, true), (2, 11, true), (1, 9, true)] {
            assert_eq!(table.is_alive(DbId(id), AT(lsn)), alive, "{id} {lsn}");
        }
        table.apply(&[Rebind::ClearAll], AT(20));
        table.apply(&[Rebind::Clear(DbId(1))], AT(30));
        for (id, lsn, alive) in [
            (2, 19, false),
            (2, 20, true),
            (1, 29, false),
            (1, 30, true),
            (7, 19, false),
        ] {
            assert_eq!(table.is_alive(DbId(id), AT(lsn)), alive, "{id} {lsn}");
        }
        assert_eq!(Bindings::decode(&table.encode()), Some(table));
    }

    #[test]
    fn changes_survive_their_encoding_and_nonsense_does_not() {
        let changes = [
            Rebind::Name {
                number: 65535,
                id: DbId(1),
            },
            Rebind::Clear(DbId(65535)),
            Rebind::ClearAll,
        ];
        let bytes = encode_changes(&changes);
        assert_eq!(decode_changes(&bytes), Some(changes.to_vec()));
        assert_eq!(decode_changes(&bytes[..7]), None);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert_ne!(decode_changes(&damaged).as_deref(), Some(&changes[..]));
            }
        }
        let mut lonely = Bindings::default();
        lonely.apply(
            &[Rebind::Name {
                number: 1,
                id: DbId(2),
            }],
            AT(1),
        );
        assert_eq!(Bindings::decode(&lonely.encode()), None);
    }
}
