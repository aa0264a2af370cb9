//! RDB files: the format in which Redis keeps a point in time of its data on disk.
//!
//! Here live a [`Writer`] of version 10, which redis-server 7.0 loads (of 12, which it loads since 7.4, where
//! fields of hashes expire), and a [`Reader`] of versions 1 to 12, and of version 80 of Valkey.
//! Both are functions over [`std::io`]: nothing here opens a file, reads a clock or knows a keyspace. Both
//! stream: what they hold in memory is bounded by the longest key and the longest value, and a reader never
//! reserves memory for a length that is only claimed.
//!
//! ```text
//! "REDIS0010"  "VALKEY080"                       magic and version, nine bytes
//! 250 name value                                 facts about the file and who wrote it
//! 254 n                                          what follows is in database n
//! 251 keys volatile                              how many keys it has, and how many with an expiry
//! [252 ms8] [248 idle | 249 frequency1] type key value      a key
//! ...
//! 255 crc8                                       the end; the checksum of all before it, 0 for none
//!
//! length   00nnnnnn                              6 bits
//!          01nnnnnn n                            14 bits, the highest first
//!          10000000 n4   10000001 n8             32 and 64 bits, the highest byte first
//! string   length bytes
//!          11000000 n1   11000001 n2   11000010 n4         a decimal number, the lowest byte first
//!          11000011 length length bytes          LZF: compressed length, length, compressed bytes
//! ```
//!
//! Values are strings, and for those who ask for them ([`TypedReader`], [`Writer::begin`]) lists, sets,
//! sorted sets, hashes and streams, an element at a time. A file that holds any other is refused with the
//! type's name and the key, or the key is passed over, as the caller likes ([`Reader::pass_unsupported`]).
//!
//! Reading order: `format` names the bytes, `writer` and `reader` are the two directions, `kinds` says what
//! collections there are, `typed` reads their elements, `stream` reads and writes those of streams, `packed`
//! takes those apart that are one string, `pass` finds the end of what is of no use, `payload` is a value by
//! itself, `decoder` reads lengths and strings, `source` and `sink` count, buffer and checksum what passes,
//! `lzf` is the compression, `error` says what is wrong with a file and where.

#![forbid(unsafe_code)]

pub mod lzf;
pub mod packed;

mod decoder;
mod error;
mod format;
mod kinds;
mod pass;
mod payload;
mod reader;
mod sink;
mod source;
mod stream;
mod typed;
mod writer;

#[cfg(test)]
#[path = "../tests/forms/mod.rs"]
mod forms;
#[cfg(test)]
mod tests;

pub use error::{Error, Problem};
pub use format::{NEWEST_VERSION, OLDEST_VERSION, TIMED_VERSION, VALKEY_VERSION, WRITTEN_VERSION};
pub use kinds::{Collection, Element};
pub use payload::{LibrariesProblem, Payload, dump_libraries, dump_string};
pub use reader::{Entry, Item, Reader, Unsupported};
pub use stream::copy::StreamValue;
pub use stream::groups::{GroupsPlace, StreamConsumer, StreamGroup, StreamGroups, StreamPending};
pub use stream::parts::{StreamId, StreamPart, StreamState, Texts};
pub use typed::{Typed, TypedReader};
pub use writer::{Attributes, Options, Writer};
