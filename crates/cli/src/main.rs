//! ferrite-cli: a client for the command line, for Ferrite and every other server that speaks the Redis
//! protocol.
//!
//! Reading order: [`flags`] says what was asked for, [`start`] hands it to whoever does it. A [`connection`]
//! carries bytes, a [`session`] is the conversation over it, [`format`](mod@format) shows replies. Commands
//! come from the command line or from lines of standard input ([`lines`]). What lives in a mode of its own is
//! in [`modes`]; several servers as one thing are in [`cluster`].

#![forbid(unsafe_code)]

mod access;
mod amounts;
mod cluster;
mod commands;
mod connection;
mod dispatch;
mod failure;
mod flags;
mod format;
mod info;
mod interactive;
mod limits;
mod lines;
mod modes;
mod request;
mod session;
mod start;
mod words;

use std::process::ExitCode;

fn main() -> ExitCode {
    start::run(std::env::args_os().skip(1))
}
