//! ferrite-server: a key-value server that speaks the Redis protocol.
//!
//! Reading order: [`config`] says what was asked for, [`server`] is what all threads share, [`control`]
//! accepts connections and hears signals, [`net`] is the event loop, [`command`] is what requests mean,
//! [`store`] is what they do to data, [`journal`] and
//! [`persistence`] keep that on disk.

#![forbid(unsafe_code)]

mod blobs;
mod blocked;
mod check_log;
mod clients;
mod cluster;
mod cold;
mod command;
mod config;
mod control;
mod errorstats;
mod figures;
mod gate;
mod gather;
mod glob;
mod health;
mod hotkeys;
mod http;
mod journal;
mod latency;
mod leftover;
mod leftovers;
mod limits;
mod logging;
mod logins;
mod memory;
mod metrics;
mod monitor;
mod names;
mod net;
mod notify;
mod observe;
mod persistence;
mod pid_file;
mod pool;
mod pubsub;
mod request;
mod rests;
mod server;
mod service;
mod shutdown;
mod slowlog;
mod snapshot;
mod start;
mod store;
mod survey;
mod takeover;
mod tracking;
mod watch;

use std::io::Write;
use std::process::ExitCode;

/// For everything that is not an entry: those have slabs of their own. What it gives is counted, for there is
/// a limit of all memory.
#[global_allocator]
static ALLOCATOR: sys::memory::Counted<sys::memory::Allocator> =
    sys::memory::Counted(sys::memory::Allocator);

fn main() -> ExitCode {
    match start::run(std::env::args_os().skip(1)) {
        Ok(code) => code,
        Err(message) => {
            // Nobody may be there to read it.
            let _ = writeln!(std::io::stderr(), "ferrite-server: {message}");
            ExitCode::FAILURE
        }
    }
}
