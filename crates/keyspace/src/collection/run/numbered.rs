//! Reading the leaves of lists: runs of single cells whose order keys count up.

use super::packed::{EXPIRING, HEADER, NUMBER, PAIRS, Run};
use crate::collection::cell::Cell;

impl<'a> Run<'a> {
    /// Of a run that is [`NUMBERED`](super::NUMBERED): the order key of its first item.
    #[inline]
    pub fn number(self) -> u64 {
        let bytes = self.bytes[HEADER..HEADER + NUMBER].try_into();
        u64::from_le_bytes(bytes.expect("eight bytes"))
    }

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
}
