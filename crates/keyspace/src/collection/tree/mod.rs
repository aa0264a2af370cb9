//! A tree whose leaves are runs: a large collection.
//!
//! Reading order: `base` is the tree and what it owns, `shape` splits and merges nodes, `edit` changes
//! items, `verify` says whether all holds.
//!
//! ```text
//!                 inner nodes: up to 63 children (order key, node, count)
//!                /            |            \
//!        leaf [0, k1)    leaf [k1, k2)    leaf [k2, ..)      runs of up to 1984 bytes
//! ```
//!
//! Invariants ([`Tree::verify`] checks them):
//! 1. Leaves tile the order: an item is in the leaf with the last *fence* (order key, name) not above
//!    it. The first leaf's fence is below all. A fence does not change while its leaf exists, but that
//!    merges give a leaf's range to the one before.
//! 2. The order key of a child is that of the fence of the first leaf below it. Only a leaf whose order
//!    key is also in the leaf before has a name in its fence, kept in the leaf.
//! 3. A leaf's run has at most `leaf_max` bytes, or one item. A leaf without items may remain where it
//!    is the first of its parent.
//! 4. A child's count is the number of items below it.
//! 5. The bytes that are counted are those of all nodes of the tree.
//!
//! All leaves are at one depth. Inner nodes with fewer than 16 children are merged where a neighbour
//! lets them.

mod base;
mod edit;
mod shape;
#[cfg(test)]
mod tests;
mod verify;

pub use base::{LEAF_MAX, Tree};
pub use edit::Put;
