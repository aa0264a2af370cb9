//! Files that the kernel reads while the worker does something else, or waits.
//!
//! What the page cache has is read during the enter that hands the request over; for the rest the kernel asks
//! the disk, and finishes the read during a later enter. A read that was asked for cannot be taken back: its
//! buffer is ours again when it has been answered.
//!
//! Invariant: a buffer that the kernel may still write to is here, and is neither touched nor freed.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::Uring;
use super::ring::Answer;
use super::slots::Key;
use crate::poller::FinishedRead;

/// Reads that may be under way at a time: with all of them there is room for other requests in the queue, and
/// for all answers in theirs.
const MAX_READS: usize = 256;

/// See the module.
#[derive(Default)]
pub(super) struct Reads {
    /// By index: the caller's token, and the buffer.
    under_way: Vec<Option<(u64, Vec<u8>)>>,
    free: Vec<u32>,
    finished: VecDeque<FinishedRead>,
}

impl Reads {
    pub(super) fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    pub(super) fn are_under_way(&self) -> bool {
        self.under_way.len() > self.free.len()
    }

    /// An index for a read, if there may be one more.
    fn reserve(&mut self) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            return Some(index);
        }
        let index = self.under_way.len();
        if index == MAX_READS {
            return None;
        }
        self.under_way.push(None);
        Some(index as u32)
    }

    fn finish(&mut self, answer: &Answer) {
        let index = answer.tag.key.index;
        let read = self.under_way[index as usize].take();
        let (token, buffer) = read.expect("each read is answered once");
        self.free.push(index);
        let result = match answer.result {
            count @ 0.. => Ok(count as usize),
            errno => Err(io::Error::from_raw_os_error(-errno)),
        };
        self.finished.push_back(FinishedRead {
            token,
            buffer,
            result,
        });
    }
}

impl Drop for Reads {
    /// The kernel may go on with what is under way behind the end of the ring: those buffers are never used
    /// again.
    fn drop(&mut self) {
        self.under_way
            .drain(..)
            .flatten()
            .for_each(|(_, buffer)| std::mem::forget(buffer));
    }
}

impl Uring {
    /// See [`crate::poller::Poller::read_file`].
    pub(in crate::poller) fn read_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        mut buffer: Vec<u8>,
        token: u64,
    ) -> Result<(), Vec<u8>> {
        if self.is_dead || !self.ring.is_running() {
            return Err(buffer);
        }
        let Some(index) = self.reads.reserve() else {
            return Err(buffer);
        };
        let key = Key {
            index,
            generation: 0,
        };
        // SAFETY: the buffer stays where it is, and is nobody's, until the answer.
        let asked = unsafe { self.ring.read(key, file.as_raw_fd(), &mut buffer, offset) };
        if asked.is_err() {
            self.reads.free.push(index);
            return Err(buffer);
        }
        self.reads.under_way[index as usize] = Some((token, buffer));
        Ok(())
    }

    /// See [`crate::poller::Poller::finished_read`].
    pub(in crate::poller) fn finished_read(&mut self) -> Option<FinishedRead> {
        self.reads.finished.pop_front()
    }

    pub(super) fn take_read(&mut self, answer: &Answer) {
        self.reads.finish(answer);
    }
}
