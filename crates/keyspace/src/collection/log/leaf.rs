//! The contents of a leaf record: "in this range there is exactly this".
//!
//! ```text
//!  0       1      9      25     29     45     49
//!  +-------+------+------+------+------+------+-----------+---------+-----+
//!  | flags | seed | from | len  | to   | len  | from name | to name | run |
//!  +-------+------+------+------+------+------+-----------+---------+-----+
//!
//!  flags      1: the range has an end (else `to` and its length are 0)
//!  seed       of the instance's order keys
//!  from, to   order keys; the lengths are those of the names, which are mostly empty
//! ```
//!
//! All numbers are little-endian.

use crate::collection::kind::Edge;
use crate::collection::node::Base;
use crate::collection::run::Damage;

/// Puts the contents of a leaf record into a log. Returns what the leaf rests on then; `None` if there is no
/// room.
pub type WriteLeaf<'w> = &'w mut dyn FnMut(&[u8]) -> Option<Base>;

const ENDS: u8 = 1;
const HEADER: usize = 49;

/// A leaf record, and where its range begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafRecord<'a> {
    /// The seed of the instance's order keys.
    pub seed: u64,
    /// The start of the range.
    pub from: Edge<'a>,
    /// The end of the range; none: it has the last items.
    pub to: Option<Edge<'a>>,
    /// The items: bytes that may be no run.
    pub run: &'a [u8],
}

impl<'a> LeafRecord<'a> {
    /// Appends the record's contents.
    pub fn write(&self, into: &mut Vec<u8>) {
        let to = self.to.unwrap_or_default();
        let length = |name: &[u8]| {
            let length = u32::try_from(name.len()).expect("a text has at most TEXT_MAX bytes");
            length.to_le_bytes()
        };
        into.push(if self.to.is_some() { ENDS } else { 0 });
        into.extend_from_slice(&self.seed.to_le_bytes());
        for edge in [self.from, to] {
            into.extend_from_slice(&edge.order.to_le_bytes());
            into.extend_from_slice(&length(edge.name));
        }
        for part in [self.from.name, to.name, self.run] {
            into.extend_from_slice(part);
        }
    }

    /// The record's contents, from bytes of which nothing is known.
    ///
    /// # Errors
    /// They are none. The run is not checked.
    pub fn read(bytes: &'a [u8]) -> Result<LeafRecord<'a>, Damage> {
        let header = bytes.first_chunk::<HEADER>().ok_or(Damage::Length)?;
        let order = |at: usize| {
            let order = header[at..at + 16].try_into().expect("sixteen bytes");
            u128::from_le_bytes(order)
        };
        let length = |at: usize| {
            let length = header[at..at + 4].try_into().expect("four bytes");
            u32::from_le_bytes(length) as usize
        };
        let seed = u64::from_le_bytes(header[1..9].try_into().expect("eight bytes"));
        let rest = &bytes[HEADER..];
        let (from_name, rest) = rest.split_at_checked(length(25)).ok_or(Damage::Length)?;
        let (to_name, run) = rest.split_at_checked(length(45)).ok_or(Damage::Length)?;
        let from = Edge {
            order: order(9),
            name: from_name,
        };
        let to = Edge {
            order: order(29),
            name: to_name,
        };
        let to = match header[0] {
            0 if to == Edge::default() => None,
            ENDS if from < to => Some(to),
            0 | ENDS => return Err(Damage::Order),
            _ => return Err(Damage::Flags),
        };
        Ok(LeafRecord {
            seed,
            from,
            to,
            run,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_ranges_without_sense_do_not() {
        let from = Edge {
            order: 7 << 64,
            name: b"from",
        };
        let to = Edge {
            order: 9 << 64,
            name: b"",
        };
        for (from, to) in [(Edge::default(), None), (from, Some(to)), (from, None)] {
            let run = &b"any bytes"[..];
            let record = LeafRecord {
                seed: 0x1122,
                from,
                to,
                run,
            };
            let mut bytes = Vec::new();
            record.write(&mut bytes);
            assert_eq!(LeafRecord::read(&bytes), Ok(record));
            for cut in 0..HEADER + from.name.len() {
                assert_eq!(LeafRecord::read(&bytes[..cut]), Err(Damage::Length));
            }
        }
        let mut bytes = Vec::new();
        let record = LeafRecord {
            seed: 0,
            from: to,
            to: Some(from),
            run: b"",
        };
        record.write(&mut bytes);
        assert_eq!(LeafRecord::read(&bytes), Err(Damage::Order));
        bytes[0] = 2;
        assert_eq!(LeafRecord::read(&bytes), Err(Damage::Flags));
    }
}
