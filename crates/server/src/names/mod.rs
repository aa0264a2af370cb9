//! Collections of names that clients bring: channels, patterns, prefixes, watched and tracked keys.
//!
//! | collection | holds | used for |
//! |---|---|---|
//! | [`ByHash`] | a value for each name, in order of the names' hashes | channels, watched keys, tracked keys |
//! | [`Members`] | the connections that share one name | watchers, trackers |
//! | [`longest_first`] | walk over the names that a text begins with | patterns, tracking prefixes |
//!
//! Invariants:
//! 1. Adding, finding and removing one name takes time logarithmic in the number of names. No operation moves
//!    all names at once, as a hash table does when it grows: another connection never waits for that.
//! 2. What is removed is freed. An empty collection owns no memory.
//! 3. A long walk can stop at any name and go on later.
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
