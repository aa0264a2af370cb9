//! The truth in memory: databases, shards, index, entries and expiry.
//!
//! This crate knows no command, no socket and no file. Time is an argument. Reading order: [`hash`] gives a
//! key its place, [`mod@entry`] packs key and value into one allocation ([`large`] values have one of their
//! own), [`index`] finds an entry by hash, [`expire`] knows when entries die, [`evict`] which go when memory
//! is short, [`shard`] joins those under one lock, [`database`] stripes a keyspace over shards, [`observe`]
//! tells who wants to hear of changes, [`mod@snapshot`] reads all of it at one point in time into
//! [`mod@records`], [`turn`] says when a worker may hold references into memory that others want to free, and
//! [`hold`] keeps many shards locked for one turn. Beside that, [`hyperloglog`] has the bytes of strings that
//! count elements.

mod bucket;
pub mod collection;
mod database;
mod entry;
mod evict;
mod expire;
mod hash;
mod heap;
mod hold;
pub mod hyperloglog;
mod index;
mod keyspace;
mod large;
mod observe;
mod pages;
mod prefetch;
mod reclaim;
mod records;
mod shard;
mod shard_set;
mod shared;
mod slot;
mod snapshot;
mod turn;

pub use collection::items::{AllItems, AnyItems, HashRef, ItemsRef, ListRef, SetRef};
pub use collection::kind::LeafPlace;
pub use collection::sorted_ref::{Bound, SortedRef};
pub use collection::sorted_scan::ScanStep;
pub use collection::stream::StreamRef;
pub use collection::thawed::{Thawed, ThawedLeaf};
pub use database::{Database, Locked, Position};
pub use entry::cold::{COLD_MIN_BYTES, ColdValue};
pub use entry::overwritten::Overwritten;
pub use entry::{Encoding, Form, INLINE_VALUE_MAX, Kind, LargeRef, LogAddress, Stored, Type};
pub use evict::{Access, Order, Policy};
pub use hash::{Key, Seed};
pub use keyspace::{Keyspace, Options, Taken};
pub use large::{Large, LargeValue, Lent};
pub use observe::{Change, ChangeKind, ItemsExpired, Observer, reason};
pub use records::{Record, RecordValue, Records};
pub use shard::{
    Detached, EMPTY_HASH, EMPTY_LIST, EMPTY_SET, EMPTY_SORTED_SET, EMPTY_STREAM, EntryMut,
    EntryRef, Expiry, Guard, HASH, LIST, New, Offloading, Overhead, SET, SORTED_SET, STREAM,
};
pub use shard_set::{MAX_SHARDS, ShardId, ShardSet};
pub use slot::{SLOTS, all_slots, slot};
pub use snapshot::{Sizes, Snapshot};
pub use turn::{Exclusive, Turn, Turns};

#[cfg(test)]
mod tests;
