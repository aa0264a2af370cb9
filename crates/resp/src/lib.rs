//! The Redis serialization protocol, RESP2 and RESP3, as functions over bytes.
//!
//! Here live the parser of requests, the writer of replies, the text forms of numbers that the
//! protocol and the commands share, and the client's side of both. Nothing here performs I/O, reads
//! a clock or knows a command. Bytes come from the network and are never trusted: no input panics,
//! and no memory is reserved from a claimed count.
//!
//! Reading order: `request` is what a server reads, `reply` what it answers; `number` and
//! `extended` are the texts of numbers inside both; `client` is the same wire seen from the other
//! end; `slot` says which part of a cluster a key belongs to, `cluster` reads what its nodes say of
//! each other.

#![forbid(unsafe_code)]

pub mod client;
pub mod cluster;
pub mod extended;
pub mod number;
pub mod reply;
pub mod request;
pub mod slot;

mod bignum;
mod literal;

pub use client::{ReplyError, ReplyScanner, Value, parse_value, write_request};
pub use extended::Extended;
pub use number::{digits_i64, format_f64, format_i64, format_u64, parse_f64, parse_i64, parse_u64};
pub use reply::{Protocol, Writer};
pub use request::{Limits, Outcome, ProtocolError, Resume, Span, parse};
