//! A tree whose leaves are runs: a large collection.
//!
//! Reading order: `base` is the tree and what it owns, `shape` splits and merges nodes, `cut` says where a
//! leaf is split, `edit` changes items, `neighbours` adds items without a search for each,
//! `elements` changes those of lists, `deadlines` says where some expire, `due`
//! keeps that right, `expire` removes them, `reschedule` gives many items other expiries, `build` makes a
//! tree of whole leaves, `merge` applies many changes at once, `cold` lets leaves leave memory,
//! `cold_elements` says which of them changes of lists need, `verify` says whether all holds.
//!
//! ```text
//!                 inner nodes: up to 63 children (order key, node, count)
//!                /            |            \
//!        leaf [0, k1)    leaf [k1, k2)    leaf [k2, ..)      runs of up to 1984 bytes, of lists 4062
//! ```
//!
//! Invariants ([`Tree::verify`] checks them):
//! 1. Leaves tile the order: an item is in the leaf with the last *fence* (order key, name) not above
//!    it. The first leaf's fence is below all. A fence does not change while its leaf exists, but that
//!    merges give a leaf's range to the one before.
//! 2. The order key of a child is that of the fence of the first leaf below it. Only a leaf whose order
//!    key is also in the leaf before has a name in its fence, kept in the leaf.
//! 3. A leaf's run has at most `leaf_max` bytes as a log has it, or one item. A leaf without items may remain
//!    where it is the first of its parent.
//! 4. A child's count is the number of items below it.
//! 5. The bytes that are counted are those of all nodes of the tree.
//! 6. For each leaf with items that expire there is a deadline in the leaf's range that is not later than the
//!    first of them (see `deadlines`).
//!
//! All leaves are at one depth. Inner nodes with fewer than 16 children are merged where a neighbour
//! lets them.
//!
//! # Figures
//!
//! Bytes per field beyond the user's own, fields and values of 12 to 16 bytes that came in any order (test
//! `a_tree_is_small`, exact): 7.6 at 10,000 and at 1 M fields. After half of them were removed by chance
//! the tree takes 1.10 times the bytes of a fresh one. A run of ten takes 3.15 as the value of an entry.
//!
//! Nanoseconds of the thread's own time, `cargo run --release -p ferrite-keyspace --example collection`,
//! on an EPYC with 32 MiB of L3 that others kept busy too (load 5 on two processors; read them as ratios):
//!
//! | fields | insert | find | replace | remove | `std` map of boxes: insert, find, remove |
//! |---|---|---|---|---|---|
//! | 10, in 200,000 runs | 93 | 374 | 554 | 259 | |
//! | 10,000 | 200 | 126 | 187 | 262 | 88, 23, 28 |
//! | 1 M | 459 | 592 | 787 | 784 | 598, 585, 365 |
//! | 10 M | 1069 | 1284 | 1593 | 1525 | 814, 920, 548 |
//! | 1 M members by score | 1442 | 1105 | | 1126 | |
//!
//! The copy of an inner node of 63 children takes 125 ns; with an `Arc` in each child, 895 (`-- arc`),
//! most of it cache misses for counts: that is why nodes are pointers with versions, and `unsafe` is in
//! `node` and `clones` (Miri and AddressSanitizer run the tests and the fuzz target `collection`).
//!
//! # Not here yet
//!
//! Of a cold leaf 64 bytes stay in memory: a child, and a node without a run. A child alone would do, which
//! has 16 bits beside its address and 40 beside its count: for a log address and bytes. Runs have no flavour
//! of fixed width.

mod base;
mod build;
mod cold;
mod cold_elements;
mod cut;
mod deadlines;
mod due;
mod edit;
#[cfg(test)]
mod element_tests;
mod elements;
#[cfg(test)]
mod entry_tests;
mod expire;
mod fill;
mod members;
mod merge;
mod neighbours;
mod reschedule;
mod shape;
#[cfg(test)]
mod tests;
mod verify;

pub use super::run::End;
pub(in crate::collection) use base::list_leaf_max;
pub use base::{LEAF_MAX, LIST_LEAF_MAX, Tree};
pub use build::{Leaf, LeafRow, LooseLeaf};
pub use cold::Leaving;
pub use edit::Put;
pub(in crate::collection) use elements::BLOCK;
pub(in crate::collection) use members::Gathered;
pub use neighbours::Finger;
pub use reschedule::Decide;
pub(super) use shape::Shares;
