//! A ring of bytes that many threads fill and one empties, without a lock and without a copy in
//! between: what the log's records pass on their way to the disk.
//!
//! Positions count bytes and never wrap; the byte at position `p` lives at `p % capacity` of a
//! memory that is mapped twice in a row ([`memory`]), so every range is one slice. A [`Producer`]
//! *claims* a range with one atomic addition, *fills* it, and *commits*; what all have filled is
//! known from one watermark per producer ([`watermarks`]), not from a flag per record. The
//! [`Consumer`] reads what is complete and *releases* it.
//!
//! Invariants, which make the slices handed out exclusive:
//! 1. A position is claimed once: the tail only grows, by additions.
//! 2. A producer writes only to its latest claim, only at or above what it has published, and only
//!    below `head + capacity`: where nobody else's bytes can be.
//! 3. The consumer reads only `head..complete`, and `complete` is at most every position that a
//!    producer may still write to.
//! 4. Others read complete bytes, too ([`Ring::read`]): the consumer releases nothing meanwhile
//!    ([`readers`]).
//!
//! The ring's memory can be a file with a name, so that it outlives its process: see [`mod@file`]. Then
//! [`survivor`] reads what is left.
//!
//! What is not here: waiting. Whoever finds no room asks again; how it passes the time is its own.

mod bytes;
pub mod file;
mod header;
mod memory;
pub mod readers;
pub mod survivor;
pub mod watermarks;

pub use bytes::{Consumer, Producer, Ring};
pub use header::Identity;
