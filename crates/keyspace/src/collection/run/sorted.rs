//! Reading the items of a sorted run.

use super::layout::{BARE, DEQUE, EXPIRY_LEN, GROUP, INTEGERS, PAIRS};
use super::packed::{Item, Run};
use crate::collection::cell::{self, Cell};

/// A part of a run, below one.
#[derive(Clone, Copy, Debug)]
pub(in crate::collection) struct Fraction(u16);

impl Fraction {
    const BITS: u32 = u16::BITS;
    pub(in crate::collection) const HALF: Fraction = Fraction(1 << (Fraction::BITS - 1));

    /// So much of all.
    #[inline]
    pub(in crate::collection) fn of(some: u128, all: u128) -> Fraction {
        // The upper bits decide.
        let shift = all.leading_zeros();
        if all == 0 || some >= all {
            return Fraction(u16::MAX);
        }
        let upper = |number: u128| ((number << shift) >> (u128::BITS - 32)) as u64;
        Fraction(((upper(some) << Fraction::BITS) / (upper(all) + 1)) as u16)
    }
}

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

    /// Gives out the names of so many items from an index on, where items have cells. Of values only the
    /// lengths are looked at.
    #[inline]
    pub(in crate::collection) fn names(
        self,
        from: usize,
        count: usize,
        mut visit: impl FnMut(Cell<'a>),
    ) {
        let (mut at, is_pair) = (self.start(from), self.flags() & PAIRS != 0);
        for _ in 0..count {
            if self.bytes[at] == cell::EXPIRY {
                at += EXPIRY_LEN;
            }
            let (name, end) = Cell::decode(self.bytes, at);
            at = if is_pair {
                cell::skip(self.bytes, end)
            } else {
                end
            };
            visit(name);
        }
    }

    /// How many items are before a place, where items have cells and are in order. `is_before` says it of the
    /// item that begins at a place.
    #[inline]
    pub(in crate::collection) fn partition(
        self,
        part: Fraction,
        is_before: impl Fn(usize) -> bool,
    ) -> usize {
        let count = self.count();
        if self.flags() & (BARE | DEQUE | INTEGERS) != 0 {
            return self.walk(0, count, self.items_at(), is_before);
        }
        let low = self.groups_before(part, &is_before);
        let Some(group) = low.checked_sub(1) else {
            return 0;
        };
        let second = self.item_end(self.items_at() + self.offset(group));
        self.walk(group * GROUP + 1, count.min(low * GROUP), second, is_before)
    }

    /// How many groups begin before a place, where there are groups: the first item of one is found without a
    /// walk. The search goes from the group that is expected in steps that double, then between two of them.
    #[inline]
    fn groups_before(self, part: Fraction, is_before: impl Fn(usize) -> bool) -> usize {
        let (groups, items_at) = (self.count().div_ceil(GROUP), self.items_at());
        let begins_before = |group| is_before(items_at + self.offset(group));
        let (mut low, mut high, mut step) = (0, groups, 1);
        let mut at = self.group_about(part);
        while low < high {
            match begins_before(at) {
                true => low = at + 1,
                false => high = at,
            }
            at = match (low, high) {
                (0, high) => high.saturating_sub(step),
                (low, high) if high == groups => (low + step - 1).min(groups - 1),
                (low, high) => (low + high) / 2,
            };
            step *= 2;
        }
        low
    }

    /// The group of the items about a part of the run.
    #[inline]
    pub(super) fn group_about(self, part: Fraction) -> usize {
        (self.count().div_ceil(GROUP) * part.0 as usize) >> Fraction::BITS
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

    /// Where the last item begins, where items have cells; `None` if there is none.
    #[inline]
    pub(in crate::collection) fn last_start(self) -> Option<usize> {
        self.count().checked_sub(1).map(|last| self.start(last))
    }

    /// The name of the item that begins at `at`, where items have cells and do not expire.
    #[inline]
    pub(in crate::collection) fn name_at(self, at: usize) -> Cell<'a> {
        Cell::decode(self.bytes, at).0
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
