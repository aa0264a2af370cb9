//! Changes of lists: elements are found by their ranks, from the front.

use keyspace::collection::cell::Cell;
use keyspace::collection::kind::Elements;
use keyspace::collection::run::Item;
use keyspace::collection::tree::End;
use keyspace::{ChangeKind, EMPTY_LIST, Form, LIST, Type};

use super::{Kept, List, ListEdit};
use crate::config::Packed;
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
        for element in elements {
            self.entry.inner.push_element(end, element, &mut self.log);
            self.changes += 1;
        }
        self.grown();
    }

    /// Puts an element before that of a rank, or behind all.
    pub(crate) fn insert(&mut self, rank: u64, element: Cell<'_>) {
        let inner = &mut self.entry.inner;
        inner.insert_element(rank, element, &mut self.log);
        self.changes += 1;
        self.grown();
    }

    /// Puts an element in the place of that of a rank, which is there.
    pub(crate) fn put(&mut self, rank: u64, element: Cell<'_>) {
        let inner = &mut self.entry.inner;
        inner.replace_element(rank, element, &mut self.log);
        self.changes += 1;
        self.grown();
        self.shrunk();
    }

    /// Removes the elements of the ranks `from..to`, which are there.
    #[inline]
    pub(crate) fn cut(&mut self, from: u64, to: u64) {
        self.entry.inner.cut_elements(from, to, &mut self.log);
        self.changes += to.saturating_sub(from);
        self.shrunk();
    }

    /// Removes the elements of some ranks, which ascend and are there.
    pub(crate) fn remove_ranks(&mut self, ranks: &[u64]) {
        self.entry.inner.remove_elements(ranks, &mut self.log);
        self.changes += ranks.len() as u64;
        self.shrunk();
    }

    /// Notes whether the list has passed the limits within which Redis packs it.
    #[inline]
    fn grown(&mut self) {
        if self.entry.inner.value_type().form == Form::Whole && !self.packed.holds(self.items()) {
            self.pass(Form::Part);
        }
    }

    /// Notes whether the list has come to half of these limits.
    #[inline]
    fn shrunk(&mut self) {
        if self.entry.inner.value_type().form == Form::Part
            && self.packed.half().holds(self.items())
        {
            self.pass(Form::Whole);
        }
    }

    #[cold]
    fn pass(&mut self, form: Form) {
        self.entry.inner.set_form(form);
        self.is_passed = true;
    }
}
