//! Signals as events: instead of interrupting whatever runs, they wait to be read from a descriptor
//! like any other input.
//!
//! On Linux that is a signalfd; elsewhere a handler writes into a pipe, as everywhere for programs
//! that start others ([`Interrupts`]). What does not live here:
//! what the server does about a signal. Crash handlers are not here either: a signal like SIGSEGV
//! cannot wait.

mod interrupt;
mod kind;
mod self_pipe;
#[cfg(target_os = "linux")]
mod signalfd;
mod signals;

pub use interrupt::Interrupts;
pub use kind::Signal;
pub use signals::{Signals, ignore_file_limit, ignore_sigpipe};
