//! Signals as events: instead of interrupting whatever runs, they wait to be read from a descriptor
//! like any other input.
//!
//! On Linux that is a signalfd; elsewhere a handler writes into a pipe, as everywhere for programs
//! that start others ([`Interrupts`]). What does not live here:
//! what the server does about a signal. Crash handlers are not here either: a signal like SIGSEGV
//! cannot wait.

mod interrupt;
mod self_pipe;
#[cfg(target_os = "linux")]
mod signalfd;

pub use interrupt::Interrupts;

#[cfg(not(target_os = "linux"))]
use self_pipe::SelfPipe as Source;
#[cfg(target_os = "linux")]
use signalfd::SignalFd as Source;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The signals that a server may want to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// SIGTERM, the polite request to end.
    Term,
    /// SIGINT, Ctrl-C.
    Int,
    /// SIGHUP, the terminal is gone; by custom, reopen and reload.
    Hup,
    /// SIGQUIT, Ctrl-\.
    Quit,
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
}

/// Every signal with its number.
const NUMBERS: [(Signal, libc::c_int); 6] = [
    (Signal::Term, libc::SIGTERM),
    (Signal::Int, libc::SIGINT),
    (Signal::Hup, libc::SIGHUP),
    (Signal::Quit, libc::SIGQUIT),
    (Signal::Usr1, libc::SIGUSR1),
    (Signal::Usr2, libc::SIGUSR2),
];

impl Signal {
    /// All of them.
    pub const ALL: [Signal; 6] = [
        Signal::Term,
        Signal::Int,
        Signal::Hup,
        Signal::Quit,
        Signal::Usr1,
        Signal::Usr2,
    ];

    /// The kernel's number of the signal.
    #[must_use]
    pub fn number(self) -> i32 {
        let (_, number) = NUMBERS[self as usize];
        number
    }

    /// Its name in full, `SIGTERM`, for the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Signal::Term => "SIGTERM",
            Signal::Int => "SIGINT",
            Signal::Hup => "SIGHUP",
            Signal::Quit => "SIGQUIT",
            Signal::Usr1 => "SIGUSR1",
            Signal::Usr2 => "SIGUSR2",
        }
    }

    fn from_number(number: libc::c_int) -> Option<Signal> {
        NUMBERS
            .iter()
            .find(|(_, known)| *known == number)
            .map(|(signal, _)| *signal)
    }
}

/// The signals that arrive from now on, to be polled for readability and read.
#[derive(Debug)]
pub struct Signals {
    source: Source,
}

impl Signals {
    /// Takes these signals away from their default actions, for the calling thread and every thread
    /// it starts later: so call it in `main`, before any thread starts, or a thread that does not
    /// know may be ended by one of them.
    ///
    /// They stay taken when this is dropped.
    ///
    /// # Errors
    /// No descriptors left. Elsewhere than on Linux, `AlreadyExists` the second time.
    pub fn block(signals: &[Signal]) -> io::Result<Signals> {
        Ok(Signals {
            source: Source::new(signals)?,
        })
    }

    /// The next signal that has arrived, `None` if there is none. Several of a kind that arrive
    /// before the read may be one.
    #[must_use]
    pub fn read(&self) -> Option<Signal> {
        self.source.read_number().and_then(Signal::from_number)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.descriptor()
    }
}

/// Makes a write to a closed connection an error instead of the end of the process. The standard
/// library does this before `main`; a server says it itself because its life depends on it.
pub fn ignore_sigpipe() {
    // SAFETY: ignoring a signal installs no handler, so no code of ours can run at a bad moment.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Makes a write beyond the largest size that files may have (`ulimit -f`) an error instead of the end of the
/// process.
pub fn ignore_file_limit() {
    // SAFETY: ignoring a signal installs no handler, so no code of ours can run at a bad moment.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// An empty set of signals with these added.
#[cfg(target_os = "linux")]
fn set_of(signals: &[Signal]) -> libc::sigset_t {
    // SAFETY: a sigset_t is integers, for which all bits zero is a value; sigemptyset then makes it
    // the empty set, and the numbers added are those of signals that exist.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, signal.number());
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, (signal, number)) in NUMBERS.into_iter().enumerate() {
            assert_eq!(signal as usize, index);
            assert_eq!(Signal::ALL[index], signal);
            assert_eq!(signal.number(), number);
            assert_eq!(Signal::from_number(number), Some(signal));
        }
        assert_eq!(Signal::from_number(libc::SIGKILL), None);
        assert_eq!(Signal::from_number(0), None);
    }
}
