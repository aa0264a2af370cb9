//! Deques: the leaves of lists in memory. Items come and go at both ends, and no others move.
//!
//! ```text
//!  0        4        12
//!  +--------+--------+----------+----------+-----+-----+------+------+-----+
//!  | header | number | offset 0 | offset 1 | ... | gap | item | item | ... |
//!  +--------+--------+----------+----------+-----+-----+------+------+-----+
//!
//!  number  the order key of the first item; those of the others count up from it
//!  offset  where the first item of a group begins, counted from the start of the run: 2 bytes
//!  group   items whose numbers differ in the lowest three bits alone: the first and the last have fewer
//! ```
//!
//! What is pushed before the first item takes bytes of the gap, and so do offsets. What is pushed behind the
//! last takes bytes behind the run. Where there are too few, all items move once, so that seven eighths of
//! the bytes that are free are at that end.
//!
//! A log has no deques: [`Run::logged`](super::Run) gives the same items as a run that is numbered.

use super::layout::{GROUP, HEADER, NUMBER, OFFSET};

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first element.
    Front,
    /// The last element.
    Back,
}

/// Where the offsets begin.
pub(super) const OFFSETS: usize = HEADER + NUMBER;

/// The place of a number in its group.
#[inline]
pub(super) fn phase(number: u64) -> usize {
    number as usize % GROUP
}

/// The bytes of a deque: where its items are.
#[derive(Clone, Copy)]
pub(super) struct Places<'a>(pub(super) &'a [u8]);

impl Places<'_> {
    #[inline]
    fn word(self, at: usize) -> usize {
        usize::from(u16::from_le_bytes([self.0[at], self.0[at + 1]]))
    }

    /// Items that are missing in the first group.
    #[inline]
    pub(super) fn phase(self) -> usize {
        usize::from(self.0[HEADER]) % GROUP
    }

    /// How many groups there are.
    #[inline]
    pub(super) fn groups(self) -> usize {
        match self.word(0) {
            0 => 0,
            count => (self.phase() + count).div_ceil(GROUP),
        }
    }

    /// The offset of a group.
    #[inline]
    pub(super) fn offset(self, group: usize) -> usize {
        self.word(OFFSETS + group * OFFSET)
    }

    /// Where the gap begins.
    #[inline]
    pub(super) fn gap_at(self) -> usize {
        OFFSETS + self.groups() * OFFSET
    }

    /// Bytes of the gap.
    #[inline]
    pub(super) fn gap(self) -> usize {
        self.first() - self.gap_at()
    }

    /// Where the first item begins.
    #[inline]
    pub(super) fn first(self) -> usize {
        match self.word(0) {
            0 => OFFSETS,
            _ => self.offset(0),
        }
    }

    /// A place from which on the item of an index comes behind so many others.
    #[inline]
    pub(super) fn of(self, index: usize) -> (usize, usize) {
        let place = self.phase() + index;
        match place / GROUP {
            0 => (self.offset(0), index),
            group => (self.offset(group), place % GROUP),
        }
    }
}
