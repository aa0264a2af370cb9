//! Edits of a run in place: in a buffer that may be longer than the run.
//!
//! The owner of the buffer asks how many bytes an edit adds ([`Run::growth`]), sees to room, and edits. An
//! edit at the end moves nothing but, for every eighth item, the items by one group; one in the middle
//! moves what follows and finds the offsets of the later groups anew.

use super::buffer::RunMut;
use super::integers::{self, FIRST};
use super::layout::{
    BARE, DEQUE, EXPIRING, FEW, GROUP, HEADER, INTEGERS, ITEMS_MAX, NUMBERED, OFFSET, PAIRS,
    TAGGED, TAGS, has_tags, stride, tag_at,
};
use super::packed::{Item, Packed, Run, tag};

impl Run<'_> {
    /// Bytes that the run grows by when it gets `item`, in place of the one at `replaced` or beside all
    /// others; `None` if a run cannot have so many.
    #[inline]
    pub fn growth(self, item: &Item<'_>, replaced: Option<usize>) -> Option<isize> {
        if self.is_of_integers() {
            return self.integers_growth(item, replaced);
        }
        if self.flags() & NUMBERED != 0 && item.expiry.is_some() {
            return None;
        }
        let count = self.count() + usize::from(replaced.is_none());
        let before = match replaced {
            Some(index) => {
                let start = self.start(index);
                self.item_end(start) - start
            }
            None => 0,
        };
        let growth = item.size() as isize - before as isize;
        let items = (self.bytes.len() - self.items_at()) as isize + growth;
        if count > usize::from(u16::MAX) || count > GROUP && items > ITEMS_MAX as isize {
            return None;
        }
        let (before, flags) = (self.count(), self.flags());
        let groups = match flags & (BARE | DEQUE) {
            // At either end there may be a group more.
            DEQUE => usize::from(replaced.is_none()) * stride(flags),
            BARE if count > FEW => match self.all_integers(item) {
                Some(all) => {
                    let len = integers::size_of(all.len(), all[0], all[all.len() - 1]);
                    return Some(len as isize - self.bytes.len() as isize);
                }
                // It gets all groups at once.
                None => count.div_ceil(GROUP) * stride(flags & !BARE),
            },
            _ => (count.div_ceil(GROUP) - before.div_ceil(GROUP)) * stride(flags),
        };
        Some(growth + groups as isize)
    }

    /// [`Run::growth`] of a run of integers.
    fn integers_growth(self, item: &Item<'_>, replaced: Option<usize>) -> Option<isize> {
        let count = self.count() + usize::from(replaced.is_none());
        let (len, items) = match (item.integer(), replaced) {
            (Some(_), Some(_)) => return Some(0),
            (Some(integer), None) => {
                let len = self.integers().len_with(integer);
                (len, len - FIRST)
            }
            (None, _) => {
                let all = self.iter().map(|item| item.size());
                let gone = replaced.and_then(|index| self.get(index));
                let items = all.sum::<usize>() + item.size() - gone.map_or(0, |gone| gone.size());
                (Run::size_of(TAGGED, count, items), items)
            }
        };
        let fits = count <= usize::from(u16::MAX) && items <= ITEMS_MAX;
        fits.then(|| len as isize - self.bytes.len() as isize)
    }

    /// Of a bare run, which becomes one of integers with this item: all of them, ascending.
    fn all_integers(self, item: &Item<'_>) -> Option<Vec<i64>> {
        if self.flags() != TAGGED | BARE {
            return None;
        }
        let items = self.iter().chain([*item]);
        let mut all: Vec<_> = items.map(|item| item.integer()).collect::<Option<_>>()?;
        all.sort_unstable();
        Some(all)
    }
}

impl RunMut<'_> {
    /// Of a run that is [`NUMBERED`]: gives its first item this order key.
    pub fn set_number(&mut self, number: u64) {
        debug_assert!(self.run().flags() & NUMBERED != 0);
        match self.run().is_deque() {
            true => self.number_deque(number),
            false => self.set_word(number),
        }
    }

    /// Keeps the order keys of the items when so many more come before the first.
    #[inline]
    fn count_down(&mut self, by: i64) {
        if self.run().flags() & NUMBERED != 0 {
            self.set_number(self.run().number().wrapping_add_signed(-by));
        }
    }

    #[inline]
    pub(super) fn set_offset(&mut self, group: usize, offset: usize) {
        let offset = u16::try_from(offset).expect("`growth` said so");
        let at = self.run().group_at(group + 1) - OFFSET;
        self.bytes[at..at + OFFSET].copy_from_slice(&offset.to_le_bytes());
    }

    /// Gives a run of integers groups, as one of any names has.
    #[cold]
    fn make_groups_of_integers(&mut self) {
        let run = self.run();
        let items: usize = run.iter().map(|item| item.size()).sum();
        let mut buffer = vec![0; Run::size_of(TAGGED, run.count(), items)];
        buffer[..Run::EMPTY].copy_from_slice(&Run::empty(TAGGED));
        RunMut::new(&mut buffer, Run::EMPTY).extend(run.packed());
        self.become_copy(&buffer);
    }

    /// Takes these bytes, which are a run, in the place of its own.
    fn become_copy(&mut self, run: &[u8]) {
        self.bytes[..run.len()].copy_from_slice(run);
        self.len = run.len();
    }

    /// Makes a run without items one for integers from the lowest to the highest.
    pub(in crate::collection) fn begin_integers(&mut self, lowest: i64, highest: i64) {
        debug_assert!(self.is_empty());
        self.len = integers::begin(self.bytes, TAGGED | INTEGERS, lowest, highest);
    }

    /// Puts an item into a run of integers, or makes one with it, if it is an integer; whether it was. Else
    /// the run is one that takes the item.
    fn insert_integer(&mut self, item: &Item<'_>) -> bool {
        let (run, count) = (self.run(), self.run().count());
        if !run.is_of_integers() {
            if count < FEW {
                return false;
            }
            let all = run.all_integers(item);
            match &all {
                Some(all) => self.len = integers::write(self.bytes, TAGGED | INTEGERS, all),
                None => self.make_groups(),
            }
            return all.is_some();
        }
        match item.integer() {
            Some(integer) => {
                self.len = integers::insert(self.bytes, self.len, integer);
                self.set_count(count + 1);
            }
            None => self.make_groups_of_integers(),
        }
        item.integer().is_some()
    }

    /// Gives a run without groups, which is about to have more than a few items, the groups of those that it
    /// has.
    #[cold]
    fn make_groups(&mut self) {
        let (count, flags) = (self.run().count(), self.run().flags() & !BARE);
        let bytes = count.div_ceil(GROUP) * stride(flags);
        self.shift(HEADER, bytes as isize);
        self.bytes[HEADER..HEADER + bytes].fill(0);
        self.bytes[2] = flags;
        let items_at = HEADER + bytes;
        let mut at = items_at;
        for index in 0..count {
            if index.is_multiple_of(GROUP) {
                self.set_offset(index / GROUP, at - items_at);
            }
            let (item, end) = self.run().item_at(at);
            if has_tags(flags) {
                let tag = tag(item.name);
                self.bytes[tag_at(flags, index)] = tag;
            }
            at = end;
        }
    }

    /// Finds the offsets of the groups behind `group` anew, which has got an item of so many bytes. Each
    /// begins with the last item of the one before: the walks there do not wait for each other.
    fn find_offsets(&mut self, group: usize, size: usize) {
        let run = self.run();
        if run.flags() & BARE != 0 {
            return;
        }
        let (groups, items_at) = (run.count().div_ceil(GROUP), run.items_at());
        for next in (group + 1..groups).rev() {
            let run = self.run();
            let first = items_at + run.offset(next - 1);
            let last = match next - 1 == group {
                true => (0..GROUP).fold(first, |at, _| run.item_end(at)),
                false => (1..GROUP).fold(first + size, |at, _| run.item_end(at)),
            };
            self.set_offset(next, last - items_at);
        }
    }

    /// Puts `item` before the one at `index`, or behind all others; in a run of integers, where it belongs.
    ///
    /// # Panics
    /// If the buffer has not as much room as [`Run::growth`] says, or the item not as many cells as the
    /// run.
    pub fn insert(&mut self, index: usize, item: &Item<'_>) {
        if self.run().flags() & (BARE | INTEGERS) != 0 && self.insert_integer(item) {
            return;
        }
        let (count, flags) = (self.run().count(), self.run().flags());
        assert!(index <= count && item.value.is_some() == (flags & PAIRS != 0));
        if flags & DEQUE != 0 {
            return self.insert_in_deque(index, item);
        }
        let group = index / GROUP;
        if count.is_multiple_of(GROUP) && flags & BARE == 0 {
            let (items_at, stride) = (self.run().items_at(), stride(flags));
            let offset = self.len - items_at;
            self.shift(items_at, stride as isize);
            self.bytes[items_at..items_at + stride].fill(0);
            // The last group begins where all items end, until it has one.
            let offset = u16::try_from(offset)
                .expect("`growth` said so")
                .to_le_bytes();
            self.bytes[items_at + stride - OFFSET..items_at + stride].copy_from_slice(&offset);
        }
        // `start` of a new group's first item is the end, as the count is still what it was.
        let start = match index < count {
            true if flags & BARE != 0 => self.run().start(index),
            true => self.start_in_groups(index, count),
            false => self.len,
        };
        self.shift(start, item.size() as isize);
        item.encode(&mut self.bytes[start..]);
        self.set_count(count + 1);
        if flags & EXPIRING == 0 && item.expiry.is_some() {
            self.bytes[2] |= EXPIRING;
        }
        if has_tags(flags) {
            for later in (index..count).rev() {
                self.bytes[tag_at(flags, later + 1)] = self.bytes[tag_at(flags, later)];
            }
            self.bytes[tag_at(flags, index)] = tag(item.name);
        }
        if index < count {
            self.find_offsets(group, item.size());
            if index == 0 {
                self.count_down(1);
            }
        }
    }

    /// [`Run::start`] while there may be a group more than the count says.
    fn start_in_groups(&self, index: usize, count: usize) -> usize {
        let run = self.run();
        let groups = (count + 1).div_ceil(GROUP);
        let mut at = run.group_at(groups) + run.offset(index / GROUP);
        for _ in 0..index % GROUP {
            at = run.item_end(at);
        }
        at
    }

    /// Puts `item`, which has the same name, in the place of the one at `index`, if no other byte changes by
    /// that. Whether it did.
    pub fn overwrite(&mut self, index: usize, item: &Item<'_>) -> bool {
        let run = self.run();
        if run.flags() & (INTEGERS | EXPIRING) != 0 || item.expiry.is_some() {
            return false;
        }
        let start = run.start(index);
        let has_same_size = run.item_end(start) - start == item.size();
        if has_same_size {
            item.encode(&mut self.bytes[start..]);
        }
        has_same_size
    }

    /// Adds `item` after all others, if the run has at most `most` bytes then and nothing else changes but
    /// the count of items. Whether it did.
    pub fn append_alone(&mut self, item: &Item<'_>, most: usize) -> bool {
        let (count, flags) = (self.run().count(), self.run().flags());
        let end = self.len + item.size();
        let changes_more = flags & (BARE | INTEGERS | DEQUE | EXPIRING) != 0
            || has_tags(flags)
            || item.expiry.is_some()
            || count.is_multiple_of(GROUP);
        if changes_more || end > most.min(self.bytes.len()) {
            return false;
        }
        item.encode(&mut self.bytes[self.len..]);
        self.len = end;
        self.set_count(count + 1);
        true
    }

    /// Puts `item`, which has the same name, in the place of the one at `index`.
    ///
    /// # Panics
    /// As [`RunMut::insert`].
    pub fn replace(&mut self, index: usize, item: &Item<'_>) {
        if self.run().is_of_integers() {
            match item.integer() {
                Some(_) => return,
                None => self.make_groups_of_integers(),
            }
        }
        let run = self.run();
        assert!(index < run.count() && item.value.is_some() == (run.flags() & PAIRS != 0));
        let start = run.start(index);
        let end = run.item_end(start);
        let by = item.size() as isize - (end - start) as isize;
        if by != 0 && run.is_deque() {
            self.shift_behind(index, end, by);
        } else if by != 0 {
            self.shift(end, by);
            let groups = match self.run().flags() & BARE {
                0 => self.run().count().div_ceil(GROUP),
                _ => 0,
            };
            for group in index / GROUP + 1..groups {
                let offset = self.run().offset(group).checked_add_signed(by);
                self.set_offset(group, offset.expect("behind the item"));
            }
        }
        item.encode(&mut self.bytes[start..]);
        if item.expiry.is_some() {
            self.bytes[2] |= EXPIRING;
        }
    }

    /// Takes the item at `index` out.
    pub fn remove(&mut self, index: usize) {
        let run = self.run();
        let (count, flags) = (run.count(), run.flags());
        assert!(index < count);
        if run.is_deque() {
            return self.remove_from_deque(index, index + 1);
        }
        if run.is_of_integers() {
            let end = run.integers().start(index + 1);
            self.shift(end, -(run.integers().width() as isize));
            return self.set_count(count - 1);
        }
        let (items_at, start) = (run.items_at(), run.start(index));
        let end = run.item_end(start);
        let groups = match flags & BARE {
            0 => (count - 1).div_ceil(GROUP),
            _ => 0,
        };
        // A later group begins with the second of its items; the last goes with its only one.
        for group in index / GROUP + 1..groups {
            let run = self.run();
            let second = run.item_end(items_at + run.offset(group));
            self.set_offset(group, second - items_at - (end - start));
        }
        self.shift(end, start as isize - end as isize);
        if has_tags(flags) {
            for later in index + 1..count {
                self.bytes[tag_at(flags, later - 1)] = self.bytes[tag_at(flags, later)];
            }
            self.bytes[tag_at(flags, count - 1)] = 0;
        }
        if count % GROUP == 1 {
            self.shift(items_at, -(stride(flags) as isize));
        }
        self.set_count(count - 1);
        if index == 0 {
            self.count_down(-1);
        }
    }

    /// Takes the items out that have expired at `now`, and shows each of them. Returns how many there were.
    pub fn remove_due(&mut self, now: u64, visit: &mut dyn FnMut(&Item<'_>)) -> usize {
        let run = self.run();
        if run.is_of_integers() || run.is_deque() {
            return 0;
        }
        let (due, kept): (Vec<_>, Vec<_>) =
            run.packed().partition(|packed| packed.item.is_due(now));
        due.iter().for_each(|packed| visit(&packed.item));
        let items = kept.iter().map(Packed::size).sum();
        let flags = run.flags() & !EXPIRING;
        let mut buffer = vec![0; Run::size_of(flags, kept.len(), items)];
        buffer[..Run::EMPTY].copy_from_slice(&Run::empty(flags));
        RunMut::new(&mut buffer, Run::EMPTY).extend(kept.into_iter());
        let removed = due.len();
        self.len = buffer.len();
        self.bytes[..self.len].copy_from_slice(&buffer);
        removed
    }

    /// The earliest expiry. A run without any is not [`EXPIRING`] from here on.
    pub fn settle_expiring(&mut self) -> Option<u64> {
        let earliest = self.run().earliest();
        if earliest.is_none() {
            self.bytes[2] &= !EXPIRING;
        }
        earliest
    }

    /// Takes the items of some indexes out.
    pub fn remove_range(&mut self, from: usize, to: usize) {
        let run = self.run();
        let (flags, count) = (run.flags(), run.count());
        assert!(from <= to && to <= count);
        if to == count {
            return self.truncate(from);
        }
        if to - from == 1 {
            return self.remove(from);
        }
        if run.is_deque() {
            return self.remove_from_deque(from, to);
        }
        if flags & (TAGGED | INTEGERS) == 0 {
            return self.remove_untagged(from, to);
        }
        let all = run.packed().enumerate();
        let kept: Vec<_> = all
            .filter(|(index, _)| !(from..to).contains(index))
            .collect();
        let items = kept.iter().map(|(_, packed)| packed.bytes.len()).sum();
        let mut buffer = vec![0; Run::size_of(flags, kept.len(), items)];
        let empty = Run::empty_len(flags);
        buffer[..empty].copy_from_slice(&self.bytes[..empty]);
        buffer[..2].fill(0);
        let mut rest = RunMut::new(&mut buffer, empty);
        rest.extend(kept.into_iter().map(|(_, packed)| packed));
        if from == 0 {
            rest.count_down(-(to as i64));
        }
        self.len = buffer.len();
        self.bytes[..self.len].copy_from_slice(&buffer);
    }

    /// [`RunMut::remove_range`] where items have cells and no tags, and some follow.
    fn remove_untagged(&mut self, from: usize, to: usize) {
        let run = self.run();
        let (flags, items_at, before) = (run.flags(), run.items_at(), run.count());
        let (start, end, count) = (run.start(from), run.start(to), before - (to - from));
        // Where the group begins of the item that comes in the place of the first.
        let group_at = run.start(from - from % GROUP);
        self.shift(end, start as isize - end as isize);
        let gone = (before.div_ceil(GROUP) - count.div_ceil(GROUP)) * stride(flags);
        if flags & BARE == 0 {
            self.shift(items_at, -(gone as isize));
        }
        self.set_count(count);
        if flags & BARE == 0 {
            let (items_at, mut at) = (items_at - gone, group_at - gone);
            for index in from - from % GROUP..count {
                if index.is_multiple_of(GROUP) {
                    self.set_offset(index / GROUP, at - items_at);
                }
                at = self.run().item_end(at);
            }
        }
        if from == 0 {
            self.count_down(-(to as i64));
        }
    }

    /// Keeps the first `count` items.
    pub fn truncate(&mut self, count: usize) {
        let run = self.run();
        let (before, flags, items_at) = (run.count(), run.flags(), run.items_at());
        if count >= before {
            return;
        }
        if run.is_deque() {
            return self.truncate_deque(count);
        }
        self.len = run.start(count);
        if flags & INTEGERS != 0 {
            return self.set_count(count);
        }
        if has_tags(flags) {
            for gone in count..before.min(count.next_multiple_of(GROUP)) {
                self.bytes[tag_at(flags, gone)] = 0;
            }
        }
        let groups = before.div_ceil(GROUP) - count.div_ceil(GROUP);
        self.shift(items_at, -((groups * stride(flags)) as isize));
        self.set_count(count);
    }

    /// Moves the items from an index on behind those of `into`, which has the same flavour.
    ///
    /// # Panics
    /// As [`RunMut::append`].
    pub fn split_off(&mut self, index: usize, into: &mut RunMut<'_>) {
        let items = self.run().packed().skip(index);
        into.extend(items);
        self.truncate(index);
    }

    /// Puts all items of `other`, which has the same flavour, behind its own.
    ///
    /// # Panics
    /// If the buffer has no room for them, or a run cannot have so many.
    pub fn append(&mut self, other: Run<'_>) {
        let is_same = self.run().flags() == other.flags();
        if self.is_empty() && (other.is_of_integers() || is_same && !other.is_deque()) {
            return self.become_copy(other.bytes());
        }
        if self.run().is_empty() && other.flags() & NUMBERED & self.run().flags() != 0 {
            self.set_number(other.number());
        }
        self.extend(other.packed());
    }

    /// Puts items of runs of the same flavour behind its own, integers where they belong: their bytes are
    /// copied as they are.
    pub(in crate::collection) fn extend<'i>(
        &mut self,
        items: impl ExactSizeIterator<Item = Packed<'i>>,
    ) {
        if self.run().is_of_integers() {
            return items.for_each(|packed| self.insert(self.run().count(), &packed.item));
        }
        if self.run().is_deque() {
            return self.extend_deque(items);
        }
        let before = self.run().count();
        let count = before + items.len();
        if self.run().flags() & BARE != 0 && count > FEW {
            self.make_groups();
        }
        let (flags, items_at) = (self.run().flags(), self.run().items_at());
        let more = (count.div_ceil(GROUP) - before.div_ceil(GROUP)) * stride(flags);
        self.shift(items_at, more as isize);
        self.bytes[items_at..items_at + more].fill(0);
        self.set_count(count);
        for (index, item) in (before..).zip(items) {
            let at = self.len;
            if index.is_multiple_of(GROUP) && flags & BARE == 0 {
                self.set_offset(index / GROUP, at - items_at - more);
            }
            item.encode(&mut self.bytes[at..]);
            self.len += item.size();
            if has_tags(flags) {
                let known = Some(item.tag).filter(|&tag| tag != 0);
                self.bytes[tag_at(flags, index)] = known.unwrap_or_else(|| tag(item.item.name));
            }
            if item.item.expiry.is_some() {
                self.bytes[2] |= EXPIRING;
            }
        }
    }
}

const _: () = assert!(TAGS == GROUP);
