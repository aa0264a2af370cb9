//! A run in a buffer, to be edited.

use super::layout::{HEADER, NUMBER};
use super::packed::Run;

/// A run in a buffer that may be longer, for edits.
#[derive(Debug)]
pub struct RunMut<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) len: usize,
}

impl<'a> RunMut<'a> {
    /// The run in the first `len` bytes.
    pub fn new(bytes: &'a mut [u8], len: usize) -> RunMut<'a> {
        assert!(len <= bytes.len());
        RunMut { bytes, len }
    }

    /// The run as it is now.
    #[inline]
    pub fn run(&self) -> Run<'_> {
        Run::trusted(&self.bytes[..self.len])
    }

    /// Bytes of the run.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.run().is_empty()
    }

    #[inline]
    pub(super) fn set_count(&mut self, count: usize) {
        let count = u16::try_from(count).expect("`growth` said so");
        self.bytes[..2].copy_from_slice(&count.to_le_bytes());
    }

    #[inline]
    pub(super) fn set_word(&mut self, number: u64) {
        self.bytes[HEADER..HEADER + NUMBER].copy_from_slice(&number.to_le_bytes());
    }

    /// Moves all from `from` on by so many bytes.
    #[inline]
    pub(super) fn shift(&mut self, from: usize, by: isize) {
        let to = from.checked_add_signed(by).expect("inside the run");
        self.bytes.copy_within(from..self.len, to);
        self.len = self.len.checked_add_signed(by).expect("inside the buffer");
    }
}
