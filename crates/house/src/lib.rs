//! How the house stands: cycles between modules, arrows upward, and what is too long, as numbers that a test
//! compares with those that are committed.
//!
//! [`tokens`] reads Rust source, [`cut`] leaves tests out of it, [`outline`] says what a file defines and
//! names, [`tree`] follows the names to the files that define them, [`graph`] finds cycles, [`shapes`]
//! finds code that is hard to read, [`rooms`] says which way imports may run, [`measure`] makes numbers of
//! all that, and [`ratchet`] compares them.
//! `tests/ratchet.rs` does it for this repository.
//!
//! It reads text, it does not compile: a method's call is found by its name, where one function of the crate
//! has it.

#![forbid(unsafe_code)]

pub mod cut;
pub mod graph;
pub mod measure;
pub mod outline;
pub mod ratchet;
pub mod rooms;
pub mod shapes;
pub mod tokens;
pub mod tree;
pub mod uses;
