//! Files that the kernel reads while the worker does something else, or waits.
//!
//! What the page cache has is read during the enter that hands the request over; for the rest the kernel asks
//! the disk, and finishes the read during a later enter. A read that was asked for cannot be taken back: its
//! buffer is ours again when it has been answered.
//!
//! Invariant: a buffer that the kernel may still write to is here, and is neither touched nor freed.

use std::collections::VecDeque;
use std::io;

use super::queues::Answer;
use crate::poller::event::FinishedRead;

/// Reads that may be under way at a time: with all of them there is room for other requests in the queue, and
/// for all answers in theirs.
const MAX_READS: usize = 256;

/// See the module.
#[derive(Default)]
pub(super) struct Reads {
    /// By index: the caller's token, and the buffer.
    pub(super) under_way: Vec<Option<(u64, Vec<u8>)>>,
    pub(super) free: Vec<u32>,
    pub(super) finished: VecDeque<FinishedRead>,
}

impl Reads {
    pub(super) fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    pub(super) fn are_under_way(&self) -> bool {
        self.under_way.len() > self.free.len()
    }

    /// An index for a read, if there may be one more.
    pub(super) fn reserve(&mut self) -> Option<u32> {
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

    pub(super) fn finish(&mut self, answer: &Answer) {
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
