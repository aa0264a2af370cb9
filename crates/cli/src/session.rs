//! A conversation with a server: requests and what they change, and connecting again when the connection is
//! gone.
//!
//! Here is what a prompt shows (database, transaction) and what has to be done again on a new connection
//! (password, database, protocol). What a reply looks like is in `format`; where commands come from is in
//! `interactive`, `lines` and `main`.
//!
//! Invariants:
//! 1. A request is sent once. If the connection breaks before its reply, nobody knows whether it ran, so it
//!    is not sent again; a connection that was closed *before* the request is replaced without a word.
//! 2. A transaction is never continued on another connection.

mod cluster;
mod conversation;
mod run;
mod show;

pub(crate) use conversation::Session;
pub(crate) use show::{Repeat, Show};
