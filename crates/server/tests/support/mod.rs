//! What every integration test of the server shares: starting a real server process and talking to it.
//!
//! Lives here: the process under test ([`Server`], Ferrite or a real redis-server), a small blocking client
//! ([`Client`]) and the decoded replies ([`Value`]). Does not live here: anything that knows golden scripts, and the
//! `resp` crate: the decoder in `value.rs` is written apart on purpose, so that a mistake in the server's own
//! encoder cannot hide behind the same mistake in its decoder.

// Each test program uses its own part of this module; the rest would be reported as dead code there.
#![allow(dead_code, unused_imports)]

mod client;
mod server;
mod value;

pub(crate) use client::{Client, Link, PATIENCE, encode_request};
pub(crate) use server::{Server, StartFailure, Target};
pub(crate) use value::{Proto, Value, parse_value};
