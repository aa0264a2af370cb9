//! The integration tests of the log: one program, so that it is linked once, and its tests fill all
//! processors.
//!
//! `cargo test -p ferrite-log --test all crash` runs those of one module.

mod append;
mod backup;
mod collections;
mod compaction;
mod crash;
mod damage;
mod failure;
mod hints;
mod lost;
mod mutations;
mod support;
mod sweep;
mod torn;
mod unknown;
mod writing;
