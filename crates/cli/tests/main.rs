//! The integration tests of the client: one program, so that it is linked once, and its tests fill all
//! processors.
//!
//! `cargo test -p ferrite-cli --test all golden` runs those of one module.

mod check;
mod cluster;
mod clusters;
mod commands;
mod deploy;
mod files;
mod golden;
mod readme;
mod strange_servers;
mod streams;
mod support;
mod terminal;
