//! Signals that wait to be read, and those that are ignored.

#[cfg(not(target_os = "linux"))]
use super::self_pipe::SelfPipe as Source;
#[cfg(target_os = "linux")]
use super::signalfd::SignalFd as Source;

use super::kind::Signal;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

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
