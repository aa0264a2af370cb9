//! Lists of a locked shard: a run inside the entry while they are small, else a tree (see `fields`).
//!
//! Ranks count from the front. A list without elements is removed by the caller.

use std::num::NonZeroU32;
use std::sync::atomic::Ordering::Relaxed;

use super::fields::run_of;
use super::view::{EntryMut, EntryRef};
use crate::collection::cell::Cell;
use crate::collection::items::ListRef;
use crate::collection::log::edits::Edit;
use crate::collection::log::numbered::NumberedEdits;
use crate::collection::run::{BARE, Item, Run, RunMut};
use crate::collection::tree::End;
use crate::entry::{Kind, Type};

/// The type of a list that never passed the limits of Redis' packed encoding.
pub const LIST: Type = Type::whole(Kind::List);

/// The value of a list without elements, for [`crate::New::bytes`]: it gets at least one under the same lock.
pub const EMPTY_LIST: [u8; Run::EMPTY] = [0, 0, BARE, 0];

/// Where in a run an element goes.
#[derive(Clone, Copy)]
enum Place {
    /// Before that of an index, or behind all.
    Before(usize),
    /// In the place of that of an index.
    At(usize),
}

impl<'a> EntryRef<'a> {
    /// The elements of the list.
    ///
    /// # Panics
    /// It is none, or in the log alone.
    pub fn list_elements(self) -> ListRef<'a> {
        self.items()
    }
}

impl EntryMut<'_, '_> {
    /// The elements of the list.
    ///
    /// # Panics
    /// It is none, or in the log alone.
    pub fn list_elements(&self) -> ListRef<'_> {
        self.items()
    }

    /// The number that [`EntryMut::set_tally`] has kept, if no element has changed since.
    #[inline]
    pub fn tally(&self) -> Option<NonZeroU32> {
        let entry = self.entry();
        entry.is_tree().then(|| entry.tree())?.tally()
    }

    /// Keeps a number until the elements change, if the list is a tree.
    pub fn set_tally(&mut self, tally: NonZeroU32) {
        let entry = self.entry();
        if entry.is_tree() {
            entry.tree_mut().set_tally(tally);
        }
    }

    /// Puts an element at an end.
    ///
    /// # Panics
    /// As [`EntryMut::list_elements`].
    #[inline]
    pub fn push_element(&mut self, end: End, element: Cell<'_>, log: &mut NumberedEdits) {
        let entry = self.entry();
        if entry.is_tree() {
            return self.edit_tree(|tree| tree.elements_mut().push(end, element, log));
        }
        let count = run_of(entry).count();
        let place = match end {
            End::Front => Place::Before(0),
            End::Back => Place::Before(count),
        };
        if !self.put_in_run(place, element, self.small_bytes()) {
            return self.make_tree_with(false, |tree| tree.elements_mut().push(end, element, log));
        }
        match end {
            End::Front => log.first -= 1,
            End::Back => {}
        }
        let index = if end == End::Back { count as u64 } else { 0 };
        log.put(log.first + index, element);
    }

    /// Puts an element before that of a rank, or behind all.
    ///
    /// # Panics
    /// As [`EntryMut::list_elements`].
    pub fn insert_element(&mut self, rank: u64, element: Cell<'_>, log: &mut NumberedEdits) {
        if self.entry().is_tree() {
            return self.edit_tree(|tree| tree.elements_mut().insert_rank(rank, element, log));
        }
        let index = (rank as usize).min(run_of(self.entry()).count());
        if self.put_in_run(Place::Before(index), element, self.small_bytes()) {
            return log.insert(log.first + index as u64, element);
        }
        self.make_tree_with(false, |tree| {
            tree.elements_mut().insert_rank(rank, element, log);
        });
    }

    /// Puts an element in the place of that of a rank, which is there.
    ///
    /// # Panics
    /// As [`EntryMut::list_elements`], or there is none of this rank.
    pub fn replace_element(&mut self, rank: u64, element: Cell<'_>, log: &mut NumberedEdits) {
        if self.entry().is_tree() {
            return self.edit_tree(|tree| tree.elements_mut().put_rank(rank, element, log));
        }
        if self.put_in_run(Place::At(rank as usize), element, self.small_bytes()) {
            return log.put(log.first + rank, element);
        }
        self.make_tree_with(false, |tree| {
            tree.elements_mut().put_rank(rank, element, log);
        });
    }

    /// Removes the elements of the ranks `from..to`, which are there.
    ///
    /// # Panics
    /// As [`EntryMut::list_elements`].
    pub fn cut_elements(&mut self, from: u64, to: u64, log: &mut NumberedEdits) {
        if from >= to {
            return;
        }
        if self.entry().is_tree() {
            return self.edit_tree(|tree| tree.elements_mut().cut_ranks(from, to, log));
        }
        log.cut(log.first + from, log.first + to);
        if from == 0 {
            log.first += to;
        }
        self.cut_run(from as usize, to as usize);
    }

    /// Removes the elements of some ranks, which ascend and are there.
    ///
    /// # Panics
    /// As [`EntryMut::list_elements`].
    pub fn remove_elements(&mut self, ranks: &[u64], log: &mut NumberedEdits) {
        if self.entry().is_tree() {
            return self.edit_tree(|tree| tree.elements_mut().remove_ranks(ranks, log));
        }
        for &rank in ranks.iter().rev() {
            self.cut_elements(rank, rank + 1, log);
        }
    }

    /// Applies an edit of a log to a small list, if it has at most `most` bytes afterwards. What is not near
    /// the elements that are there was made for another value.
    pub(super) fn amend_elements(
        &mut self,
        edit: Edit<'_>,
        numbers: &mut NumberedEdits,
        most: usize,
    ) {
        let run = run_of(self.entry());
        let count = run.count();
        match edit {
            Edit::Put(number, element) => match numbers.index_of(run, number) {
                Some(-1) => {
                    let is_put = self.put_in_run(Place::Before(0), element, most);
                    numbers.first -= u64::from(is_put);
                }
                Some(index) if index as usize == count => {
                    self.put_in_run(Place::Before(count), element, most);
                }
                Some(index) => drop(self.put_in_run(Place::At(index as usize), element, most)),
                None => {}
            },
            Edit::Insert(number, element) => {
                if let Some(index) = numbers.index_of(run, number).filter(|&index| index >= 0) {
                    self.put_in_run(Place::Before(index as usize), element, most);
                }
            }
            Edit::Cut(from, to) => {
                let end = numbers.first.saturating_add(count as u64);
                let (start, end) = (from.clamp(numbers.first, end), to.clamp(numbers.first, end));
                let index = |number: u64| (number - numbers.first) as usize;
                let (from, to) = (index(start), index(end));
                if from < to {
                    if from == 0 {
                        numbers.first = end;
                    }
                    self.cut_run(from, to);
                }
            }
            Edit::Set(_)
            | Edit::Take(_)
            | Edit::Remove(_)
            | Edit::Reschedule(..)
            | Edit::CutIds(..) => {}
        }
    }

    fn small_bytes(&self) -> usize {
        self.guard.shared.small_bytes.load(Relaxed)
    }

    /// Puts an element into a run that has at most `most` bytes afterwards; whether that could be.
    fn put_in_run(&mut self, place: Place, element: Cell<'_>, most: usize) -> bool {
        let entry = self.entry();
        let run = run_of(entry);
        let item = Item::single(element);
        let replaced = match place {
            Place::Before(_) => None,
            Place::At(index) => Some(index),
        };
        let len = run.bytes().len();
        let growth = run.growth(&item, replaced);
        let new_len = growth.map(|growth| len.saturating_add_signed(growth));
        // What is replaced by something no longer is no reason to become a tree.
        let Some(new_len) =
            new_len.filter(|&new_len| new_len <= most || replaced.is_some() && new_len <= len)
        else {
            return false;
        };
        let form = entry.form();
        let value = self.resize_value(new_len.max(len), form);
        let mut run = RunMut::new(value, len);
        match place {
            Place::Before(index) => run.insert(index, &item),
            Place::At(index) => run.replace(index, &item),
        }
        if new_len < len {
            self.resize_value(new_len, form);
        }
        true
    }

    /// Removes items from a run by their places.
    pub(super) fn cut_run(&mut self, from: usize, to: usize) {
        let entry = self.entry();
        let (len, form) = (run_of(entry).bytes().len(), entry.form());
        let mut run = RunMut::new(self.resize_value(len, form), len);
        run.remove_range(from, to);
        let left = run.len();
        self.resize_value(left, form);
    }
}
