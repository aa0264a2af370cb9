//! What a look for an item reads of a run, asked for before: see the module `ahead` above.

use std::hint::select_unpredictable;

use super::layout::{BARE, DEQUE, GROUP, INTEGERS, has_tags};
use super::packed::{Run, tag};
use crate::collection::cell::Cell;
use crate::prefetch::{prefetch, prefetch_bytes};

impl Run<'_> {
    /// Bytes at the start that are read before an item is.
    #[inline]
    pub(in crate::collection) fn head_len(flags: u8, count: u64) -> usize {
        super::layout::header(flags)
            + (count as usize).div_ceil(GROUP) * super::layout::stride(flags)
    }

    /// Where a group's items are.
    #[inline]
    fn ask_for_group(self, group: usize, items: usize) {
        let items_at = self.items_at();
        let from = items_at + self.offset(group);
        let until = match (group + 1) * GROUP < self.count() {
            true => items_at + self.offset(group + 1),
            false => self.bytes.len(),
        };
        let wanted = (until - from) * items / GROUP;
        prefetch_bytes(&self.bytes[from..from + wanted.min(until - from)]);
    }

    /// Asks for the item of a name, where items are found by tags; for the end if there is none: an item that
    /// is added goes there.
    #[inline]
    pub(in crate::collection) fn ask_for(self, name: Cell<'_>) {
        if !has_tags(self.flags()) {
            return;
        }
        match self.first_hit(tag(name)) {
            Some(index) => self.ask_for_group(index / GROUP, index % GROUP + 1),
            None => prefetch(self.bytes.as_ptr_range().end),
        }
    }

    fn has_groups(self) -> bool {
        self.flags() & (BARE | DEQUE | INTEGERS) == 0 && !self.is_empty()
    }

    /// Asks for the items that a search in the order looks at first.
    #[inline]
    pub(in crate::collection) fn ask_for_middle(self) {
        if !self.has_groups() {
            return;
        }
        let (groups, items_at) = (self.count().div_ceil(GROUP), self.items_at());
        for quarter in 1..4 {
            let at = items_at + self.offset(groups * quarter / 4);
            prefetch(&raw const self.bytes[at]);
        }
    }

    /// Asks for the items among which a place in the order is.
    #[inline]
    pub(in crate::collection) fn ask_for_place(self, is_before: impl Fn(usize) -> bool) {
        if !self.has_groups() {
            return;
        }
        // No step waits for a guess about the one before: a wrong one would end what goes on beside it.
        let (items_at, mut group, mut left) = (self.items_at(), 0, self.count().div_ceil(GROUP));
        while left > 1 {
            let half = left / 2;
            let is_behind = is_before(items_at + self.offset(group + half));
            group = select_unpredictable(is_behind, group + half, group);
            left -= half;
        }
        self.ask_for_group(group, GROUP);
    }
}
