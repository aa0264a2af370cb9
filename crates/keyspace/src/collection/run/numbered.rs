//! Reading the leaves of lists: runs of single cells whose order keys count up.

use super::buffer::RunMut;
use super::layout::{DEQUE, EXPIRING, NUMBERED, OFFSET, PAIRS};
use super::packed::Run;
use crate::collection::cell::Cell;

impl<'a> Run<'a> {
    /// Gives out `count` items of one cell, without expiry, from an index on, as long as `visit` says so;
    /// whether it did to the end.
    #[inline]
    pub(in crate::collection) fn singles(
        self,
        from: usize,
        count: usize,
        mut visit: impl FnMut(Cell<'a>) -> bool,
    ) -> bool {
        debug_assert!(self.flags() & (PAIRS | EXPIRING) == 0);
        let mut at = self.start(from);
        (0..count).all(|_| {
            let (cell, end) = Cell::decode(self.bytes, at);
            at = end;
            visit(cell)
        })
    }

    /// Bytes of a leaf's run of these flags with the same items, at most.
    pub(in crate::collection) fn len_in_leaf(self, flags: u8) -> usize {
        let is_more = flags & DEQUE != 0 && !self.is_deque();
        self.filled() + if is_more { OFFSET } else { 0 }
    }

    /// The run as logs have it.
    pub(in crate::collection) fn logged(self, buffer: &'a mut Vec<u8>) -> Run<'a> {
        if !self.is_deque() {
            return self;
        }
        let items = self.bytes.len() - self.places().first();
        buffer.clear();
        buffer.resize(Run::size_of(NUMBERED, self.count(), items), 0);
        buffer[..Run::EMPTY].copy_from_slice(&Run::empty(NUMBERED));
        let mut run = RunMut::new(buffer, Run::empty_len(NUMBERED));
        run.set_number(self.number());
        run.extend(self.packed());
        Run::trusted(buffer)
    }
}
