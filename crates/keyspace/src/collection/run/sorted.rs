//! Reading the items of a sorted run.

use super::layout::{BARE, DEQUE, EXPIRY_LEN, GROUP, INTEGERS};
use super::packed::{Item, Run};
use crate::collection::cell::{self, Cell};

impl<'a> Run<'a> {
    /// Gives out so many items from an index on, where items have cells. A look at each is all that it takes.
    #[inline]
    pub(in crate::collection) fn items(
        self,
        from: usize,
        count: usize,
        mut visit: impl FnMut(Item<'a>),
    ) {
        let mut at = self.start(from);
        for _ in 0..count {
            let (item, end) = self.item_at(at);
            at = end;
            visit(item);
        }
    }

    /// How many items are before a place, where items have cells and are in order. `is_before` says it of the
    /// item that begins at a place.
    #[inline]
    pub(in crate::collection) fn partition(self, is_before: impl Fn(usize) -> bool) -> usize {
        let count = self.count();
        if self.flags() & (BARE | DEQUE | INTEGERS) != 0 {
            return self.walk(0, count, self.items_at(), is_before);
        }
        let low = self.groups_before(&is_before);
        let Some(group) = low.checked_sub(1) else {
            return 0;
        };
        let second = self.item_end(self.items_at() + self.offset(group));
        self.walk(group * GROUP + 1, count.min(low * GROUP), second, is_before)
    }

    /// How many groups begin before a place, where there are groups. The first item of a group is found
    /// without a walk.
    #[inline]
    pub(super) fn groups_before(self, is_before: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (0, self.count().div_ceil(GROUP));
        let items_at = self.items_at();
        while low < high {
            let middle = (low + high) / 2;
            match is_before(items_at + self.offset(middle)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// The first item of those from `from` to `end`, the first of which begins at `at`, that is not before a
    /// place.
    #[inline]
    fn walk(
        self,
        from: usize,
        end: usize,
        mut at: usize,
        is_before: impl Fn(usize) -> bool,
    ) -> usize {
        let mut index = from;
        while index < end && is_before(at) {
            at = self.item_end(at);
            index += 1;
        }
        index
    }

    /// The value of the item that begins at `at`, in a run of pairs.
    #[inline]
    pub(in crate::collection) fn value_at(self, at: usize) -> Cell<'a> {
        let name_at = match self.bytes[at] {
            cell::EXPIRY => at + EXPIRY_LEN,
            _ => at,
        };
        Cell::decode(self.bytes, cell::skip(self.bytes, name_at)).0
    }

    /// The item that begins at `at`, where items have cells.
    pub(in crate::collection) fn one_at(self, at: usize) -> Item<'a> {
        self.item_at(at).0
    }
}
