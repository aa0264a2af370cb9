//! A tree of any kind, as an entry of the keyspace holds it, and one moment of it.

use super::clones::Frozen;
use super::kind::Fields;
use super::tree::Tree;

/// Bytes of a run up to which a collection is inside its entry.
pub const SMALL_BYTES: usize = 4096;

/// A collection that is too large for its entry.
#[derive(Debug)]
pub enum Collection {
    /// A hash.
    Hash(Tree<Fields>),
}

/// A collection at one moment.
#[derive(Debug)]
pub enum Moment {
    /// A hash.
    Hash(Frozen<Fields>),
}

impl Collection {
    /// Bytes of memory, without what only moments need.
    pub fn bytes(&self) -> usize {
        match self {
            Collection::Hash(tree) => tree.bytes(),
        }
    }

    /// This moment of it, in O(1).
    pub fn freeze(&mut self) -> Moment {
        match self {
            Collection::Hash(tree) => Moment::Hash(tree.freeze()),
        }
    }

    /// A copy that shares nothing: O(n).
    pub fn copy(&self) -> Collection {
        match self {
            Collection::Hash(tree) => Collection::Hash(tree.copy()),
        }
    }
}
