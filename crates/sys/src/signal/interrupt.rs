//! Ctrl-C for a program at a terminal that goes on after it.
//!
//! A handler writes into a pipe rather than the signal being blocked, because a handler ends with
//! the `exec` of a program that is started, while a blocked signal stays blocked there: a pager or
//! a shell that was started from here hears Ctrl-C as always.

use super::kind::Signal;
use super::self_pipe::SelfPipe;
use crate::clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

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

    /// Sleeps for `limit`, or until one has come; takes it and says whether.
    #[must_use]
    pub fn sleep(&self, limit: Duration) -> bool {
        let end =
            monotonic_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        loop {
            let left_ns = end.saturating_sub(monotonic_ns());
            let left = Timespec::try_from(Duration::from_nanos(left_ns)).ok();
            // The call fails only when a signal comes, which the next turn looks for.
            let _ = poll(&mut [PollFd::new(self, PollFlags::IN)], left.as_ref());
            if self.take() {
                return true;
            }
            if left_ns == 0 {
                return false;
            }
        }
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.descriptor()
    }
}
