//! The operating system, as Ferrite sees it: sockets, the poller, files, shared memory, signals,
//! clocks, processors and process facts.
//!
//! No other crate of the server calls the system for these, so this is where a port, a simulator or
//! an audit starts. What does not live here: any knowledge of the protocol, of connections as the
//! server sees them, or of the log.
//!
//! Invariants:
//! 1. Every descriptor this crate opens is close-on-exec, and every socket it hands out is
//!    non-blocking, except the [`socket::Stream`] of a client, which has nothing else to do.
//! 2. Every system call that a signal can interrupt is either repeated or reports "nothing
//!    happened".
//! 3. What the system answers is never a panic, except that it has no clock at all; `assert!` guards
//!    the caller's contract.
//!
//! The tests have run on Linux on x86-64. Linux on arm64, macOS and FreeBSD compile behind the same
//! functions; what is special about them is said where it differs.

#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "freebsd")))]
compile_error!("ferrite-sys knows Linux, macOS and FreeBSD");

mod syscall;

pub mod clock;
pub mod cpu;
pub mod file;
pub mod memory;
pub mod poller;
pub mod process;
pub mod random;
pub mod ring;
pub mod signal;
pub mod socket;

pub use poller::{Backend, Event, Interest, Poller, Waker};
pub use signal::{Signal, Signals};
pub use socket::{Listener, Socket};
