//! A packed run of items: a small collection, or a leaf of a tree.
//!
//! ```text
//!  0       2       3      4
//!  +-------+-------+------+---------+---------+-----+------+------+-----
//!  | count | flags | zero | group 0 | group 1 | ... | item | item | ...
//!  +-------+-------+------+---------+---------+-----+------+------+-----
//!
//!  flags  bit 0  tagged: groups have tags, names are unique
//!         bit 1  pairs: an item has a name and a value; else a name alone
//!         bit 2  expiring: items may have an expiry
//!         bit 3  bare: there are at most 16 items and no groups
//!         bit 4  numbered: the order key of the first item (8 bytes) is behind the header, and those of the
//!                others count up from it; there are no other flags
//!         bit 5  integers: there are no cells, see `integers`
//!         bit 6  deque: numbered, with room before the first item, see `deque`; in memory alone
//!  group  8 tags (if tagged; 0 where there is no item) and the offset of its first item, counted from the
//!         first item's place: 10 bytes for eight items, or 2
//!  item   0xc9 and 6 bytes of expiry (Unix, ms), if it has one; a cell; another cell, if pairs
//! ```
//!
//! Numbers are little-endian. A name is found by its tag, eight tags at a time, and then compared; an item
//! is found by its index from the offset of its group, over at most seven others.
//!
//! Overhead per item with fields and values below 128 bytes: 2 bytes of lengths, 1.25 of tag and offset;
//! per run 4 bytes and the tags of the last group that are free. Integers take less than their text. A run
//! that begins as a bare one has neither tags nor offsets: names are compared one by one, and an item is
//! found by a walk. With the 17th item it gets its groups, and keeps them; or it becomes a run of integers,
//! if it has names alone and all are integers.
//!
//! A run knows no order: items stay where they were put, but for integers in a run of these. Foreign
//! bytes become a run by [`Run::check`] alone. Offsets have 16 bits: a run of more than 8 items has at most
//! 65,535 bytes of items.
//!
//! Invariants: all that [`Run::check`] checks.

mod ahead;
mod buffer;
mod check;
mod deque;
#[cfg(test)]
mod deque_tests;
mod edit;
mod ends;
mod integers;
mod layout;
mod moving;
mod numbered;
mod packed;
mod sorted;
#[cfg(test)]
mod tests;

pub use buffer::RunMut;
pub use check::Damage;
pub use deque::End;
pub(in crate::collection) use layout::EXPIRY_LEN;
pub use layout::{BARE, DEQUE, EXPIRING, INTEGERS, NUMBERED, PAIRS, TAGGED};
pub(in crate::collection) use packed::Packed;
pub use packed::{Item, Items, Run};
pub(in crate::collection) use sorted::Fraction;
