//! The changes of elements that one record has, while they are collected.

use super::edits::Edits;
use crate::collection::cell::Cell;
use crate::collection::run::Run;

/// The number of the first element of a new list.
pub const MIDDLE: u64 = 1 << 63;

/// Changes of elements, for a log if there is one.
///
/// The elements of a tree have numbers that stay. Those of a small list count up from the first, which has
/// the number [`MIDDLE`] where a record begins.
#[derive(Clone, Debug)]
pub struct NumberedEdits {
    /// The changes; none if nobody logs them.
    pub edits: Option<Edits>,
    /// The number of the first element, if the list is small.
    pub(crate) first: u64,
}

impl Default for NumberedEdits {
    /// Nobody logs the changes.
    fn default() -> NumberedEdits {
        NumberedEdits::new(None)
    }
}

impl NumberedEdits {
    /// No change yet.
    #[inline]
    pub fn new(edits: Option<Edits>) -> NumberedEdits {
        NumberedEdits {
            edits,
            first: MIDDLE,
        }
    }

    /// The element of a number is this.
    #[inline]
    pub(crate) fn put(&mut self, number: u64, element: Cell<'_>) {
        if let Some(edits) = &mut self.edits {
            edits.put(number, element);
        }
    }

    /// An element comes before that of a number, whose number and those of all behind grow by one.
    pub(crate) fn insert(&mut self, number: u64, element: Cell<'_>) {
        if let Some(edits) = &mut self.edits {
            edits.insert(number, element);
        }
    }

    /// There are no elements of these numbers any more.
    #[inline]
    pub(crate) fn cut(&mut self, from: u64, to: u64) {
        if let Some(edits) = &mut self.edits {
            edits.cut(from, to);
        }
    }

    /// Where a number is in the run of a small list: the index, which may be that behind all elements; -1 is
    /// before all; `None` is elsewhere.
    pub(crate) fn index_of(&self, run: Run<'_>, number: u64) -> Option<isize> {
        let index = number.wrapping_sub(self.first) as i64;
        let is_near = (-1..=run.count() as i64).contains(&index);
        is_near.then_some(index as isize)
    }
}
