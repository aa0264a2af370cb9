//! Append-only files of redis-server and Valkey: the manifest that lists them, and the commands in them.
//!
//! Both are functions over bytes and [`std::io::Read`]: nothing here opens a file or knows what a command
//! does. The reader streams. What it holds in memory is bounded by the longest command, and it reserves
//! nothing for a length that is only claimed.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b        the manifest: what everything begins with,
//! file appendonly.aof.1.incr.aof seq 1 type h        what is not needed any more,
//! file appendonly.aof.2.incr.aof seq 2 type i        and what came since, in this order
//!
//! "REDIS0010" ... 255 crc8                           a file may begin with RDB (crate `rdb`), also
//! "VALKEY080" ... 255 crc8                           with that of Valkey
//! #TS:1700000000\r\n                                 a note of the time; means nothing
//! *2\r\n $6\r\n SELECT\r\n $1\r\n 0\r\n              a command, here with spaces: how many arguments,
//! *3\r\n $3\r\n SET\r\n $1\r\n k\r\n $1\r\n v\r\n    then the length and the bytes of each
//! ```
//!
//! Reading order: `manifest`, `words` (how a line of it is split), `reader`, `error` (what is wrong with a
//! file of commands, and where).

#![forbid(unsafe_code)]

mod error;
mod manifest;
mod reader;
mod words;

#[cfg(test)]
mod tests;

pub use error::{Error, Problem};
pub use manifest::{Listed, Manifest, ManifestError};
pub use reader::Reader;
pub use resp::request::Span;
pub use words::split as split_words;

/// What a file begins with that has an RDB file in front of its commands: one of redis-server, or of Valkey
/// since its version 9.0.
pub const RDB_MAGICS: [&[u8]; 2] = [b"REDIS", b"VALKEY"];
