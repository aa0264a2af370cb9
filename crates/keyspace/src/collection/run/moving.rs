//! An item of a run gets another place: the score of a member changes.

use super::buffer::RunMut;
use super::layout::{BARE, DEQUE, GROUP, INTEGERS, has_tags};
use super::packed::{Item, Run};

impl Run<'_> {
    /// Where the item before that of a group begins, counted from the first item's place.
    #[inline]
    fn last_before(self, group: usize) -> usize {
        let items_at = self.items_at();
        let first = items_at + self.offset(group - 1);
        (1..GROUP).fold(first, |at, _| self.item_end(at)) - items_at
    }
}

impl RunMut<'_> {
    /// Puts `item` in the place of the one at `index`, and before the one at `to`, or behind all. Both
    /// indexes are those of before. The run has cells and no tags.
    ///
    /// Items between the two places move by the size of one, and the offsets of the groups between them
    /// change.
    ///
    /// # Panics
    /// If the buffer has not as much room as [`Run::growth`] says, or the item not as many cells as the run.
    pub(in crate::collection) fn replace_and_move(
        &mut self,
        index: usize,
        to: usize,
        item: &Item<'_>,
    ) {
        let run = self.run();
        let (flags, count) = (run.flags(), run.count());
        debug_assert!(flags & (INTEGERS | DEQUE) == 0 && !has_tags(flags));
        assert!(index < count && to <= count);
        if to == index || to == index + 1 {
            return self.replace(index, item);
        }
        let (start, place) = (run.start(index), run.start(to));
        let (end, size) = (run.item_end(start), item.size());
        if flags & BARE != 0 || end - start != size {
            self.remove(index);
            return self.insert(if to > index { to - 1 } else { to }, item);
        }
        let items_at = run.items_at();
        if to > index {
            // A group begins with what was its second item.
            for group in index / GROUP + 1..=(to - 1) / GROUP {
                let run = self.run();
                let second = run.item_end(items_at + run.offset(group)) - items_at;
                self.set_offset(group, second - size);
            }
            self.bytes.copy_within(end..place, start);
            item.encode(&mut self.bytes[place - size..]);
        } else {
            // A group begins with what was the last item of the one before.
            for group in (to / GROUP + 1..=index / GROUP).rev() {
                let before = self.run().last_before(group);
                self.set_offset(group, before + size);
            }
            self.bytes.copy_within(place..start, place + size);
            item.encode(&mut self.bytes[place..]);
        }
    }
}
