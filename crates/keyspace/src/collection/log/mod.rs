//! The contents of a tree's records in a log.
//!
//! Reading order: [`edits`] is a list of changes of items, [`numbered`] collects those of lists, [`leaf`]
//! what a leaf record holds, [`tiles`] puts the records of a tree together again (`tile` is one range of it,
//! `waiting` has the changes that are applied together, [`store`] keeps items while memory is short),
//! [`ledger`] says which tree of the log a tree in memory is.
//!
//! A *descriptor* is what the record of a key has in place of the value of a tree: the number of the
//! instance and the seed of its order keys, 8 bytes each, little-endian.

pub mod arriving;
pub mod edits;
pub mod leaf;
pub mod ledger;
pub mod numbered;
pub mod store;
mod tile;
pub mod tiles;
#[cfg(test)]
mod tiles_tests;
pub(in crate::collection) mod waiting;
