//! ferrite-server: a key-value server that speaks the Redis protocol.
//!
//! Reading order: [`config`] says what was asked for, [`server`] is what all threads share, [`runtime`]
//! starts them, accepts connections and hears signals, [`net`] is the event loop, [`command`] is what
//! requests mean, [`store`] is what they do to data, [`persistence`] keeps that on disk. ARCHITECTURE.md has
//! the order of the rooms.

#![forbid(unsafe_code)]

mod cluster;
mod command;
mod config;
mod limits;
mod metrics;
mod names;
mod net;
mod observe;
mod persistence;
mod pubsub;
mod report;
mod request;
mod runtime;
mod script;
mod server;
mod shared;
mod store;
mod takeover;
mod transport;
mod values;

use std::io::Write;
use std::process::ExitCode;

/// For everything that is not an entry: those have slabs of their own. What it gives is counted, for there is
/// a limit of all memory.
#[global_allocator]
static ALLOCATOR: sys::memory::Counted<sys::memory::Allocator> =
    sys::memory::Counted(sys::memory::Allocator);

fn main() -> ExitCode {
    match runtime::start::run(std::env::args_os().skip(1)) {
        Ok(code) => code,
        Err(message) => {
            // Nobody may be there to read it.
            let _ = writeln!(std::io::stderr(), "ferrite-server: {message}");
            ExitCode::FAILURE
        }
    }
}
