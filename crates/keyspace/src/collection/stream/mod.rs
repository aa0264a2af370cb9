//! Streams: all that a stream has is items of one order.
//!
//! ```text
//!  section       name                                        value
//!  0             1                                           the head: see [`head`]
//!  0             2 | number, 1 B                             a shape: the names of the fields of entries
//!  0             3 to 5 | ...                                groups and their consumers: see [`group`]
//!  0             7 to 9 | ...                                idempotent IDs: see [`idempotent`]
//!  1 + group     6 | group | distance | sequence number      a pending entry
//!  2^32 - 1      distance                                    an entry: sequence number, shape, values
//! ```
//!
//! The order key of an item is its section (32 bits), and in it 96 bits: of the ID (48 bits of the time, 48
//! of the sequence number) or, in section 0, the first bytes of the name. A time or a sequence number that
//! has no 48 bits is the last of all there; items of one order key are in the order of their names, which
//! have the whole ID then.
//!
//! So a stream is a run while it is small, and else a tree like that of a sorted set: its leaves are logged,
//! leave memory and come back like all others. A head is written at each change; it is the first item, and
//! entries are the last, so that they are added at the end.

pub mod content;
pub mod entry;
pub mod group;
pub mod head;
pub mod id;
pub mod idempotent;
pub mod kind;
pub mod view;

pub use content::{Content, EntryFields};
pub use entry::{EntryBuffer, EntryScratch, StreamEntry};
pub use group::{Consumer, Group, ItemBuffer, Pending};
pub use head::Head;
pub use id::Id;
pub use idempotent::{Idempotence, Idempotent};
pub use kind::{IdRange, Section, StreamItems};
pub use view::StreamRef;
