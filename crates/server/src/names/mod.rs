//! Collections of names from clients: channels, patterns, prefixes, watched and tracked keys.
//!
//! | collection | holds | used for |
//! |---|---|---|
//! | [`ByHash`] | a value for each name, in order of their hashes | channels, watched keys, tracked keys |
//! | [`Members`] | the connections that share one name | watchers, trackers |
//! | [`longest_first`] | walk over the names that are prefixes of a text | patterns, tracking prefixes |
//!
//! Invariants:
//!
//! 1. Adding, finding and removing a name takes logarithmic time. No operation moves all names at once, as a
//!    growing hash table does, so no other connection waits for that.
//! 2. Removed names are freed. An empty collection owns no memory.
//! 3. A long walk can stop at any name and continue later.
//!
//! Tests count the steps of each loop with [`steps`]; other builds count nothing.

mod by_hash;
pub(crate) mod glob;
mod members;
mod prefix;
pub(crate) mod steps;

pub(crate) use by_hash::ByHash;
pub(crate) use members::{Member, Members, Who};
pub(crate) use prefix::{Disjoint, longest_first, overlap};
