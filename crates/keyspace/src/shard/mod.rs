//! One shard: index, entries and expiry behind one lock, and what can be done with a key.
//!
//! Everything the server does to data goes through a [`Guard`]: it holds the shard's lock and a time, and
//! no expired entry is ever seen through it. Nothing here waits, and nothing large is freed here.
//!
//! ```text
//!  line 0: lock, table words, counters    read by everybody without the lock (prefetch, DBSIZE, expiry)
//!  line 1: index, wheel                   only under the lock
//! ```
//!
//! Invariants:
//! 1. `bytes` is the sum of [`Entry::memory`] over all entries of the index, and of what index and wheel
//!    take.
//! 2. `volatile` counts the entries with an expiry, and each of those has an item in the wheel at or before
//!    its expiry.
//! 3. `expiring` counts the entries with items that expire, and each of those has an item in the wheel at or
//!    before the first of these times (see `items`).
//! 4. Counters are written only under the lock; `cold` counts the cold entries, and the bytes of their
//!    values.

mod cell;
mod elements;
mod entries;
mod evicting;
mod expiring;
mod fields;
mod guard;
mod hands;
mod heat;
mod items;
mod leaves;
mod lock;
mod logging;
mod offloading;
mod packing;
mod scheduling;
mod snapshot;
mod streams;
#[cfg(test)]
mod verify;
mod view;
mod wheels;
mod writing;

pub use cell::Overhead;
pub(crate) use cell::ShardCell;
pub use elements::{EMPTY_LIST, LIST};
pub use fields::{EMPTY_HASH, EMPTY_SET, EMPTY_SORTED_SET, HASH, SET, SORTED_SET};
pub use guard::Guard;
pub use leaves::Offloading;
pub use streams::{EMPTY_STREAM, STREAM};
pub use view::{Detached, EntryMut, EntryRef};
pub use writing::{Expiry, New};
