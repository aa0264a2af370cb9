//! A record, byte by byte: [`write`] makes one ([`Draft`]), [`read`] takes one apart ([`Found`]).
//!
//! ```text
//!  0          4          8      9      10       12          16
//!  +----------+----------+------+------+--------+-----------+----------+-----+------+------+---+
//!  | length   | checksum | kind | flag | db id  | key length| expiry?  | key | facts| data | 0 |
//!  +----------+----------+------+------+--------+-----------+----------+-----+------+------+---+
//!    u32        u32        u8     u8     u16      u32         i64
//! ```
//!
//! Everything is little-endian. `length` counts from the first byte to the last of `data`; zeroes follow up
//! to a multiple of 8. `facts` are what the kind has beside its data (see [`Kind`]). docs/format.md draws all
//! of it.
//!
//! Invariants:
//! 1. The checksum covers everything from byte 8 to the end of the zeroes, and begins with a value made
//!    of the record's position and length. So neither damage nor bytes of another place pass.
//! 2. A `Batch` record's checksum covers its header alone; each record inside has its own.
//! 3. No record has length 0: a stretch of zeroes is not a record.

mod layout;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use layout::{BlobRef, Change, MAX_RECORD, Record, Tag, Value};
pub(crate) use layout::{HEADER, INSTANCE, base_bytes, record_bytes};
pub(crate) use read::{
    Entry, Flaw, Found, Glance, Peeked, Unknown, before_data, glance, guess, looks_like_a_mark,
    parse, peek, position_of, read, read_hint, stride,
};
pub(crate) use write::{Draft, batch_header, void_header, write, write_hint, write_in_parts};
