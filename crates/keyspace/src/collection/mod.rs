//! What all collection types stand on: packed runs of items, and trees whose leaves are runs.
//!
//! Nothing here knows commands, keys, the log or the server. Reading order: [`cell`] is a name or a value,
//! [`run`] packs items of one or two cells, [`kind`] gives items their order, `node` is the memory of
//! one node, [`view`] reads a tree, [`clones`] keeps what clones see, [`tree`] changes it.

pub mod cell;
pub mod clones;
pub mod kind;
mod node;
pub mod run;
pub mod tree;
pub mod view;
