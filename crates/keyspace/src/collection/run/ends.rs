//! Edits of deques.

use super::buffer::RunMut;
use super::deque::{End, OFFSETS, phase};
use super::layout::{GROUP, ITEMS_MAX, OFFSET};
use super::packed::{Item, Packed, Run};

impl Run<'_> {
    /// Bytes of a deque that hold something after a push of an item, at most.
    #[inline]
    pub(in crate::collection) fn filled_with(self, item: &Item<'_>) -> usize {
        self.filled() + item.size() + OFFSET
    }
}

impl RunMut<'_> {
    #[inline]
    fn set_deque_offset(&mut self, group: usize, offset: usize) {
        let at = OFFSETS + group * OFFSET;
        let offset = u16::try_from(offset).expect("an item that is not alone is near the start");
        self.bytes[at..at + OFFSET].copy_from_slice(&offset.to_le_bytes());
    }

    /// Puts an item at an end of a deque. The first of all has the number that the run has.
    ///
    /// # Panics
    /// If the buffer has not as much room as [`Run::filled_with`] says.
    #[inline]
    pub(in crate::collection) fn push(&mut self, end: End, item: &Item<'_>) {
        let (run, size) = (self.run(), item.size());
        let (count, number) = (run.count(), run.number());
        debug_assert!(run.is_deque() && item.value.is_none() && item.expiry.is_none());
        if count == 0 {
            return self.push_first(end, item);
        }
        let groups = run.places().groups();
        let is_front = end == End::Front;
        let is_new = match is_front {
            true => phase(number) == 0,
            false => phase(number.wrapping_add(count as u64)) == 0,
        };
        let offset = if is_new { OFFSET } else { 0 };
        let (before, behind) = match is_front {
            true => (size + offset, 0),
            false => (offset, size),
        };
        if run.gap() < before || self.bytes.len() - self.len < behind {
            self.make_room(end, before, behind);
        }
        match is_front {
            true => {
                let start = self.run().places().first() - size;
                if is_new {
                    let end = OFFSETS + groups * OFFSET;
                    self.bytes.copy_within(OFFSETS..end, OFFSETS + OFFSET);
                }
                self.set_deque_offset(0, start);
                self.set_word(number.wrapping_sub(1));
                item.encode(&mut self.bytes[start..]);
            }
            false => {
                let start = self.len;
                if is_new {
                    self.set_deque_offset(groups, start);
                }
                item.encode(&mut self.bytes[start..]);
                self.len += size;
            }
        }
        self.set_count(count + 1);
    }

    /// [`RunMut::push`] of the first item.
    fn push_first(&mut self, end: End, item: &Item<'_>) {
        let (first, size) = (OFFSETS + OFFSET, item.size());
        let room = self.bytes.len().min(ITEMS_MAX);
        let free = room.saturating_sub(first + size);
        let start = first + gap_of(end, free);
        item.encode(&mut self.bytes[start..]);
        self.len = start + size;
        self.set_deque_offset(0, start);
        self.set_count(1);
    }

    /// Moves all items, so that so many bytes are free before them, and behind; most of what is free is at an
    /// end.
    #[cold]
    fn make_room(&mut self, end: End, before: usize, behind: usize) {
        let room = self.bytes.len().min(ITEMS_MAX);
        let free = room.checked_sub(self.run().filled() + before + behind);
        let free = free.expect("the owner sees to room");
        self.set_gap(before + gap_of(end, free));
    }

    /// Moves all items, so that the gap has so many bytes.
    fn set_gap(&mut self, gap: usize) {
        let run = self.run();
        let (first, by) = (run.places().first(), gap as isize - run.gap() as isize);
        for group in 0..run.places().groups() {
            let offset = self.run().places().offset(group).checked_add_signed(by);
            self.set_deque_offset(group, offset.expect("inside the run"));
        }
        self.shift(first, by);
    }

    /// Takes the first item of a deque, or the last.
    #[inline]
    pub(super) fn pop(&mut self, end: End) {
        let run = self.run();
        let (count, number) = (run.count(), run.number());
        if count == 1 {
            self.len = OFFSETS;
        } else if end == End::Back {
            self.len = run.start(count - 1);
        } else {
            let (next, groups) = (run.item_end(run.places().first()), run.places().groups());
            if phase(number) + 1 == GROUP {
                let all = OFFSETS + OFFSET..OFFSETS + groups * OFFSET;
                self.bytes.copy_within(all, OFFSETS);
            } else {
                self.set_deque_offset(0, next);
            }
        }
        if end == End::Front {
            self.set_word(number.wrapping_add(1));
        }
        self.set_count(count - 1);
    }

    /// Puts an item before the one at an index of a deque, or behind all.
    pub(super) fn insert_in_deque(&mut self, index: usize, item: &Item<'_>) {
        let (run, count) = (self.run(), self.run().count());
        match index {
            _ if index == count => self.push(End::Back, item),
            0 => self.push(End::Front, item),
            _ => {
                let mut buffer = Vec::new();
                let copy = run.bytes().to_vec();
                let mut items: Vec<_> = Run::trusted(&copy).packed().collect();
                items.insert(index, Packed::new(*item, &mut buffer));
                self.begin_deque(run.number(), &items);
            }
        }
    }

    /// Takes some items out of a deque.
    pub(super) fn remove_from_deque(&mut self, from: usize, to: usize) {
        let (run, count) = (self.run(), self.run().count());
        match to - from {
            0 => {}
            1 if to == count => self.pop(End::Back),
            1 if from == 0 => self.pop(End::Front),
            _ => {
                let copy = run.bytes().to_vec();
                let mut items: Vec<_> = Run::trusted(&copy).packed().collect();
                items.drain(from..to);
                let by = if from == 0 { to as u64 } else { 0 };
                self.begin_deque(run.number().wrapping_add(by), &items);
            }
        }
    }

    /// Gives the first item of a deque another number: groups follow from it.
    pub(super) fn number_deque(&mut self, number: u64) {
        let run = self.run();
        if run.is_empty() || run.places().phase() == phase(number) {
            return self.set_word(number);
        }
        let copy = run.bytes().to_vec();
        let items: Vec<_> = Run::trusted(&copy).packed().collect();
        self.begin_deque(number, &items);
    }

    /// Becomes a deque of these items.
    fn begin_deque(&mut self, number: u64, items: &[Packed<'_>]) {
        self.set_count(0);
        self.len = OFFSETS;
        self.set_word(number);
        self.extend_deque(items.iter().copied());
    }

    /// Puts items behind those of a deque. There is no gap afterwards.
    pub(super) fn extend_deque<'i>(&mut self, items: impl ExactSizeIterator<Item = Packed<'i>>) {
        let run = self.run();
        let (before, phase, groups) = (run.count(), run.places().phase(), run.places().groups());
        let count = before + items.len();
        if count == 0 {
            return;
        }
        let more = ((phase + count).div_ceil(GROUP) - groups) * OFFSET;
        match before {
            0 => self.len = OFFSETS + more,
            _ => self.set_gap(more),
        }
        for (index, item) in (before..).zip(items) {
            let at = self.len;
            if index == 0 || (phase + index).is_multiple_of(GROUP) {
                self.set_deque_offset((phase + index) / GROUP, at);
            }
            item.encode(&mut self.bytes[at..]);
            self.len += item.size();
        }
        self.set_count(count);
    }

    /// Keeps the first items of a deque.
    pub(super) fn truncate_deque(&mut self, count: usize) {
        self.len = match count {
            0 => OFFSETS,
            _ => self.run().start(count),
        };
        self.set_count(count);
    }

    /// Moves what is behind an item of a deque that has become longer or shorter.
    pub(super) fn shift_behind(&mut self, index: usize, end: usize, by: isize) {
        let run = self.run();
        let (group, groups) = (
            (run.places().phase() + index) / GROUP,
            run.places().groups(),
        );
        self.shift(end, by);
        for later in group + 1..groups {
            let offset = self.run().places().offset(later).checked_add_signed(by);
            self.set_deque_offset(later, offset.expect("behind the item"));
        }
    }
}

/// How much of what is free is before the first item, where items come at an end.
#[inline]
fn gap_of(end: End, free: usize) -> usize {
    match end {
        End::Front => free - free / 8,
        End::Back => free / 8,
    }
}
