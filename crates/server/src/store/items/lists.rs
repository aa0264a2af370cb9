//! Changes of lists: elements are found by their ranks, from the front.

use std::num::NonZeroU32;

use keyspace::collection::cell::Cell;
use keyspace::collection::kind::Elements;
use keyspace::collection::run::Item;
use keyspace::collection::tree::End;
use keyspace::{ChangeKind, EMPTY_LIST, Form, LIST, Type};

use super::{Kept, List, ListEdit};
use crate::config::{Packed, listed, listed_all};
use crate::observe::notify::Event;

impl Kept for Elements {
    const EMPTY: &'static [u8] = &EMPTY_LIST;
    const TYPE: Type = LIST;

    fn form(form: Form, _item: &Item<'_>, _len: u64, _packed: &Packed) -> Form {
        form
    }
}

impl List<'_, '_> {
    /// Tells of a change by which the list is as it was.
    pub(crate) fn keep(mut self, event: Event) {
        let (store, db) = (self.0.store, self.0.inner.database());
        self.0.inner.touch();
        self.0.changed(ChangeKind::Written);
        let key = self.0.inner.key().bytes;
        store.notifier.tell(event, db, key);
    }
}

impl ListEdit<'_, '_> {
    /// Puts elements at an end, one by one.
    #[inline]
    pub(crate) fn push<'c>(&mut self, end: End, elements: impl Iterator<Item = Cell<'c>>) {
        let tally = self.tally();
        let mut more = 0;
        for element in elements {
            self.entry.inner.push_element(end, element, &mut self.log);
            self.changes += 1;
            if tally.is_some() {
                more += listed(element);
            }
        }
        self.keep_tally(tally.map(|tally| tally + more));
        self.grown();
    }

    /// Puts an element before that of a rank, or behind all.
    pub(crate) fn insert(&mut self, rank: u64, element: Cell<'_>) {
        let tally = self.tally();
        let inner = &mut self.entry.inner;
        inner.insert_element(rank, element, &mut self.log);
        self.keep_tally(tally.map(|tally| tally + listed(element)));
        self.changes += 1;
        self.grown();
    }

    /// Puts an element in the place of that of a rank, which is there.
    pub(crate) fn put(&mut self, rank: u64, element: Cell<'_>) {
        let tally = self.tally_without(rank, rank + 1);
        let inner = &mut self.entry.inner;
        inner.replace_element(rank, element, &mut self.log);
        self.keep_tally(tally.map(|tally| tally + listed(element)));
        self.changes += 1;
        self.grown();
        self.shrunk();
    }

    /// Removes the elements of the ranks `from..to`, which are there.
    #[inline]
    pub(crate) fn cut(&mut self, from: u64, to: u64) {
        let tally = self.tally_without(from, to);
        self.entry.inner.cut_elements(from, to, &mut self.log);
        self.keep_tally(tally);
        self.changes += to.saturating_sub(from);
        self.shrunk();
    }

    /// Removes the elements of some ranks, which ascend and are there.
    pub(crate) fn remove_ranks(&mut self, ranks: &[u64]) {
        let removed =
            |tally: usize, &rank: &u64| tally.checked_sub(listed_all(self.items(), rank, rank + 1));
        let tally = self.known_tally();
        let tally = tally.and_then(|tally| ranks.iter().try_fold(tally, removed));
        self.entry.inner.remove_elements(ranks, &mut self.log);
        self.keep_tally(tally);
        self.changes += ranks.len() as u64;
        self.shrunk();
    }

    /// The bytes of all elements in a listpack, if they are kept with the list.
    #[inline]
    fn tally(&self) -> Option<usize> {
        let tally = self.entry.inner.tally();
        tally.map(|tally| tally.get() as usize)
    }

    /// The same, if the elements are in memory.
    fn known_tally(&self) -> Option<usize> {
        let tally = self.tally()?;
        (!self.items().has_cold_leaves()).then_some(tally)
    }

    /// The same without the elements of the ranks `from..to`.
    #[inline]
    fn tally_without(&self, from: u64, to: u64) -> Option<usize> {
        self.tally()?;
        self.known_tally_without(from, to)
    }

    #[inline(never)]
    fn known_tally_without(&self, from: u64, to: u64) -> Option<usize> {
        let tally = self.known_tally()?;
        tally.checked_sub(listed_all(self.items(), from, to))
    }

    /// Keeps the bytes of a list that is a tree, unless it is far from those that Redis packs.
    #[inline]
    fn keep_tally(&mut self, tally: Option<usize>) {
        if let Some(tally) = tally.and_then(|tally| NonZeroU32::new(tally.try_into().ok()?))
            && self.packed.is_near(self.items().len())
        {
            self.entry.inner.set_tally(tally);
        }
    }

    /// Whether Redis would keep the list as one listpack within some limits.
    #[inline]
    fn is_packed(&mut self, packed: Packed) -> bool {
        packed.may_hold_any(self.items().len()) && self.is_packed_by_bytes(packed)
    }

    #[inline(never)]
    fn is_packed_by_bytes(&mut self, packed: Packed) -> bool {
        let items = self.items();
        if !items.is_tree() || items.has_cold_leaves() {
            return packed.holds(items);
        }
        let known = self.tally();
        let tally = known.unwrap_or_else(|| listed_all(items, 0, items.len()));
        if known.is_none() {
            self.keep_tally(Some(tally));
        }
        packed.holds_listed(tally)
    }

    /// Notes whether the list has passed the limits within which Redis packs it.
    #[inline]
    fn grown(&mut self) {
        if self.entry.inner.value_type().form == Form::Whole && !self.is_packed(self.packed) {
            self.pass(Form::Part);
        }
    }

    /// Notes whether the list has come to half of these limits.
    #[inline]
    fn shrunk(&mut self) {
        if self.entry.inner.value_type().form == Form::Part && self.is_packed(self.packed.half()) {
            self.pass(Form::Whole);
        }
    }

    #[cold]
    fn pass(&mut self, form: Form) {
        self.entry.inner.set_form(form);
        self.is_passed = true;
    }
}
