//! Ctrl-C for a program at a terminal that goes on after it.
//!
//! A handler writes into a pipe rather than the signal being blocked, because a handler ends with
//! the `exec` of a program that is started, while a blocked signal stays blocked there: a pager or
//! a shell that was started from here hears Ctrl-C as always.

use super::Signal;
use super::self_pipe::SelfPipe;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// SIGINT, to be polled for readability and asked for, instead of the end of the process.
#[derive(Debug)]
pub struct Interrupts {
    pipe: SelfPipe,
}

impl Interrupts {
    /// Takes SIGINT away from its default action, for the whole process and for good.
    ///
    /// # Errors
    /// `AlreadyExists` the second time; no descriptors left.
    pub fn catch() -> io::Result<Interrupts> {
        Ok(Interrupts {
            pipe: SelfPipe::new(&[Signal::Int])?,
        })
    }

    /// Whether one has come since this was asked last.
    #[must_use]
    pub fn take(&self) -> bool {
        let mut came = false;
        while self.pipe.read_number().is_some() {
            came = true;
        }
        came
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.descriptor()
    }
}
