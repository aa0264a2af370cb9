//! What a look for an item reads of a run, asked for before: see the module `ahead` above.

use super::layout::{BARE, DEQUE, GROUP, INTEGERS, has_tags};
use super::packed::{Run, tag};
use super::sorted::Fraction;
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

    /// Asks for the items about a part of the run, among which a place in the order is expected.
    #[inline]
    pub(in crate::collection) fn ask_for_part(self, part: Fraction) {
        if self.flags() & (BARE | DEQUE | INTEGERS) != 0 || self.is_empty() {
            return;
        }
        let group = self.group_about(part);
        for near in group.saturating_sub(1)..self.count().div_ceil(GROUP).min(group + 2) {
            self.ask_for_group(near, GROUP);
        }
    }
}
