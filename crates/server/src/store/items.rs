//! Hashes and sets of a locked shard. A command asks for the [`Hash`] or the [`Set`] of a key first. A key of
//! another kind is `WRONGTYPE`.
//!
//! A command makes all its changes of one collection by one [`ItemsEdit`]: one notification for each observer
//! of the key, one record of the log, and one event. A collection without items is removed.

mod lists;

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use keyspace::collection::any::Held;
use keyspace::collection::cell::Cell;
use keyspace::collection::kind::{Elements, Fields, Members, Scores};
use keyspace::collection::log::numbered::NumberedEdits;
use keyspace::collection::run::Item;
use keyspace::collection::stream::StreamItems;
use keyspace::collection::tree::Put;
use keyspace::{
    ChangeKind, EMPTY_HASH, EMPTY_SET, EMPTY_SORTED_SET, Form, HASH, ItemsRef, Key, New,
    Overwritten, SET, SORTED_SET, Type,
};

use super::{Entry, HeldMoment, Shard, Still};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::persistence::journal::Journal;
use crate::request::{Failure, failure};

/// An entry of a locked shard that is a collection of this kind.
pub(crate) struct Items<'g, 'a, K>(pub(super) Entry<'g, 'a>, PhantomData<K>);

/// An entry of a locked shard that is a hash.
pub(crate) type Hash<'g, 'a> = Items<'g, 'a, Fields>;
/// An entry of a locked shard that is a set.
pub(crate) type Set<'g, 'a> = Items<'g, 'a, Members>;
/// An entry of a locked shard that is a list.
pub(crate) type List<'g, 'a> = Items<'g, 'a, Elements>;
/// An entry of a locked shard that is a stream.
pub(crate) type Stream<'g, 'a> = Items<'g, 'a, StreamItems>;
/// One change of a hash.
pub(crate) type HashEdit<'g, 'a> = ItemsEdit<'g, 'a, Fields>;
/// One change of a set.
pub(crate) type SetEdit<'g, 'a> = ItemsEdit<'g, 'a, Members>;
/// One change of a list.
pub(crate) type ListEdit<'g, 'a> = ItemsEdit<'g, 'a, Elements>;
/// One change of a stream.
pub(crate) type StreamEdit<'g, 'a> = ItemsEdit<'g, 'a, StreamItems>;

/// A kind of collections that keys have.
pub(crate) trait Kept: Held {
    /// The value of a new key.
    const EMPTY: &'static [u8];
    /// Its type.
    const TYPE: Type;

    /// How a value that counted as written in a form does so with an item that was just set, now that it has
    /// `len` items.
    fn form(form: Form, item: &Item<'_>, len: u64, packed: &Packed) -> Form;
}

impl Kept for Fields {
    const EMPTY: &'static [u8] = &EMPTY_HASH;
    const TYPE: Type = HASH;

    #[inline]
    fn form(form: Form, item: &Item<'_>, len: u64, packed: &Packed) -> Form {
        let is_long = |cell: Cell<'_>| cell.text_len() > packed.value;
        let is_beyond =
            len > packed.entries as u64 || is_long(item.name) || item.value.is_some_and(is_long);
        if is_beyond { Form::Part } else { form }
    }
}

impl Kept for Members {
    const EMPTY: &'static [u8] = &EMPTY_SET;
    const TYPE: Type = SET;

    #[inline]
    fn form(form: Form, item: &Item<'_>, len: u64, packed: &Packed) -> Form {
        let is_integer = matches!(item.name, Cell::Int(_));
        match form {
            Form::Whole if is_integer && len <= packed.integers as u64 => Form::Whole,
            Form::Whole if is_integer => Form::Part,
            Form::Part => Form::Part,
            _ if len > packed.entries as u64 => Form::Part,
            _ if item.name.text_len() > packed.value => Form::Part,
            _ => Form::Decimal,
        }
    }
}

impl Kept for Scores {
    const EMPTY: &'static [u8] = &EMPTY_SORTED_SET;
    const TYPE: Type = SORTED_SET;

    #[inline]
    fn form(form: Form, item: &Item<'_>, len: u64, packed: &Packed) -> Form {
        let is_beyond = len > packed.entries as u64 || item.name.text_len() > packed.value;
        if is_beyond { Form::Part } else { form }
    }
}

impl<'g, 'a> Entry<'g, 'a> {
    /// The entry as a collection of a kind.
    ///
    /// # Errors
    /// It is of another kind.
    #[inline]
    fn items<K: Held>(self) -> Result<Items<'g, 'a, K>, Failure> {
        match self.kind() == K::KIND {
            true => Ok(Items(self, PhantomData)),
            false => Err(failure::WRONG_TYPE),
        }
    }
}

impl<'a> Shard<'a> {
    /// [`Shard::read`] for a command on collections of a kind.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline]
    pub(crate) fn read_items<K: Held>(
        &mut self,
        key: Key<'_>,
    ) -> Result<Option<Items<'_, 'a, K>>, Failure> {
        self.read(key).map(Entry::items).transpose()
    }

    /// [`Shard::read_items`] of a hash.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline]
    pub(crate) fn read_hash(&mut self, key: Key<'_>) -> Result<Option<Hash<'_, 'a>>, Failure> {
        self.read_items(key)
    }

    /// [`Shard::read_items`] of a set.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline]
    pub(crate) fn read_set(&mut self, key: Key<'_>) -> Result<Option<Set<'_, 'a>>, Failure> {
        self.read_items(key)
    }

    /// [`Shard::find`] for a command on collections of a kind.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline]
    pub(crate) fn find_items<K: Held>(
        &mut self,
        key: Key<'_>,
    ) -> Result<Option<Items<'_, 'a, K>>, Failure> {
        self.find(key).map(Entry::items).transpose()
    }

    /// [`Shard::find_items`] of a hash.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline]
    pub(crate) fn find_hash(&mut self, key: Key<'_>) -> Result<Option<Hash<'_, 'a>>, Failure> {
        self.find_items(key)
    }

    /// [`Shard::find_items`] of a set.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline]
    pub(crate) fn find_set(&mut self, key: Key<'_>) -> Result<Option<Set<'_, 'a>>, Failure> {
        self.find_items(key)
    }

    /// [`Shard::find_to_change`] for a command on collections of a kind.
    ///
    /// # Errors
    /// The key is of another kind.
    pub(crate) fn find_items_to_change<K: Held>(
        &mut self,
        key: Key<'_>,
    ) -> Result<Option<Items<'_, 'a, K>>, Failure> {
        self.find_to_change(key).map(Entry::items).transpose()
    }

    /// [`Shard::find_items_to_change`] of a hash.
    ///
    /// # Errors
    /// The key is of another kind.
    pub(crate) fn find_hash_to_change(
        &mut self,
        key: Key<'_>,
    ) -> Result<Option<Hash<'_, 'a>>, Failure> {
        self.find_items_to_change(key)
    }

    /// [`Shard::find_items_to_change`] of a set.
    ///
    /// # Errors
    /// The key is of another kind.
    pub(crate) fn find_set_to_change(
        &mut self,
        key: Key<'_>,
    ) -> Result<Option<Set<'_, 'a>>, Failure> {
        self.find_items_to_change(key)
    }

    /// [`Shard::read_items`] of a list.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline]
    pub(crate) fn read_list(&mut self, key: Key<'_>) -> Result<Option<List<'_, 'a>>, Failure> {
        self.read_items(key)
    }

    /// [`Shard::find_items`] of a list.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline]
    pub(crate) fn find_list(&mut self, key: Key<'_>) -> Result<Option<List<'_, 'a>>, Failure> {
        self.find_items(key)
    }

    /// [`Shard::find_items_to_change`] of a list.
    ///
    /// # Errors
    /// The key is of another kind.
    pub(crate) fn find_list_to_change(
        &mut self,
        key: Key<'_>,
    ) -> Result<Option<List<'_, 'a>>, Failure> {
        self.find_items_to_change(key)
    }

    /// Changes the collection of a key, which is made if it is missing, by what `change` does to it; `event`
    /// is told if it does anything.
    ///
    /// # Errors
    /// The key is of another kind; or what `change` says, before it changed anything.
    #[inline]
    pub(crate) fn edit_items<K: Kept, R>(
        &mut self,
        key: Key<'_>,
        event: Event,
        packed: Packed,
        change: impl FnOnce(&mut ItemsEdit<'_, '_, K>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        if let Some(items) = self.find_items(key)? {
            return items.edit(event, packed, change);
        }
        self.tell(Event::NEW, key);
        let new = New::bytes(K::EMPTY).of(K::TYPE);
        self.guard.write(key, new, |_, _| None);
        let inner = self.guard.find(key).expect("it has just been made");
        let store = self.store;
        let entry = Entry { inner, store };
        let mut edit = ItemsEdit::new(entry, Before::Missing, packed);
        let result = change(&mut edit);
        edit.finish(event);
        result
    }

    /// [`Shard::edit_items`] of a hash.
    ///
    /// # Errors
    /// As [`Shard::edit_items`].
    #[inline]
    pub(crate) fn edit_hash<R>(
        &mut self,
        key: Key<'_>,
        event: Event,
        packed: Packed,
        change: impl FnOnce(&mut HashEdit<'_, '_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.edit_items(key, event, packed, change)
    }
}

impl<'g, 'a, K> Deref for Items<'g, 'a, K> {
    type Target = Entry<'g, 'a>;

    #[inline]
    fn deref(&self) -> &Entry<'g, 'a> {
        &self.0
    }
}

impl<'g, 'a, K: Kept> Items<'g, 'a, K> {
    /// The items: fields with values, or members.
    #[inline]
    pub(crate) fn items(&self) -> ItemsRef<'_, K> {
        self.0.inner.items()
    }

    /// The moment that a large collection is at; `None` if it is small.
    pub(crate) fn moment(&mut self) -> Option<HeldMoment> {
        let hold = match self.has_cold_leaves() {
            true => self.0.store.persistence.hold().map(Arc::new),
            false => None,
        };
        let moment = self.0.inner.moment()?;
        Some(HeldMoment { moment, hold })
    }

    /// The value as it is now: see [`Entry::still`].
    pub(crate) fn still(&mut self) -> Still {
        self.0.still()
    }

    /// Removes the key because all of its items were taken, and tells `event` of it.
    pub(crate) fn take_all(self, event: Event) {
        let old = self.0.inner.overwritten();
        self.0.store.stats.dirty.add(self.items().len() - 1);
        finish_empty(self.0, Before::There(old), (event, None));
    }

    /// Changes the collection by what `change` does to it; `event` is told if it does anything.
    #[inline]
    pub(crate) fn edit<R>(
        self,
        event: Event,
        packed: Packed,
        change: impl FnOnce(&mut ItemsEdit<'g, 'a, K>) -> R,
    ) -> R {
        let old = self.0.inner.overwritten();
        let mut edit = ItemsEdit::new(self.0, Before::There(old), packed);
        let result = change(&mut edit);
        edit.finish(event);
        result
    }
}

/// State of a key before a change.
#[derive(Clone, Copy)]
enum Before {
    Missing,
    /// A collection, with what the log has of it.
    There(Option<Overwritten>),
}

impl Before {
    /// The entry's state in the log.
    fn overwritten(self) -> Option<Overwritten> {
        match self {
            Before::Missing => None,
            Before::There(old) => old,
        }
    }
}

/// One change of a collection.
pub(crate) struct ItemsEdit<'g, 'a, K> {
    pub(super) entry: Entry<'g, 'a>,
    kind: PhantomData<K>,
    before: Before,
    pub(super) packed: Packed,
    /// Items that were set or removed.
    pub(super) changes: u64,
    /// The changes, if there is a log.
    pub(super) log: NumberedEdits,
    /// Whether a limit of the packed encodings was passed.
    is_passed: bool,
    /// Told behind the event of the change.
    also: Option<Event>,
    /// The change that observers of the key hear of.
    pub(super) kind_of_change: ChangeKind,
    /// Whether the event of the change is not told.
    pub(super) is_silent: bool,
}

impl<'g, 'a, K: Kept> ItemsEdit<'g, 'a, K> {
    #[inline]
    fn new(entry: Entry<'g, 'a>, before: Before, packed: Packed) -> Self {
        ItemsEdit {
            kind: PhantomData,
            before,
            packed,
            changes: 0,
            log: NumberedEdits::new(entry.store.journal.map(Journal::edits)),
            entry,
            is_passed: false,
            also: None,
            kind_of_change: ChangeKind::Written,
            is_silent: false,
        }
    }

    /// The items as they are now.
    #[inline]
    pub(crate) fn items(&self) -> ItemsRef<'_, K> {
        self.entry.inner.items()
    }

    /// The item of a name.
    #[inline]
    pub(crate) fn get(&self, name: Cell<'_>) -> Option<Item<'_>> {
        self.items().get(name)
    }

    /// Sets an item. That a member is set that is there is no change.
    #[inline]
    pub(crate) fn set(&mut self, item: &Item<'_>) -> Put {
        let put = self.entry.inner.set_item(item);
        if put == Put::Added || item.value.is_some() {
            self.note_set(item);
        }
        put
    }

    /// Notes that an item was set.
    #[inline]
    pub(super) fn note_set(&mut self, item: &Item<'_>) {
        self.changes += 1;
        if let Some(edits) = &mut self.log.edits {
            edits.set(item);
        }
        let before = self.entry.inner.value_type().form;
        if before != Form::Part {
            let form = K::form(before, item, self.items().len(), &self.packed);
            if form != before {
                self.entry.inner.set_form(form);
                self.is_passed = true;
            }
        }
    }

    /// Lets a field that is there expire at this time (Unix, ms), or never.
    pub(crate) fn reschedule(&mut self, name: Cell<'_>, expiry: Option<u64>) {
        if self.entry.inner.reschedule_field(name, expiry) {
            self.changes += 1;
            if let Some(edits) = &mut self.log.edits {
                edits.reschedule(name, expiry);
            }
        }
    }

    /// Lets fields expire at the time (Unix, ms) that `decide` says for each that is there, or never. It
    /// hears which of `names` it is, and when that field expires. `None`: the field stays as it is.
    pub(crate) fn reschedule_each(
        &mut self,
        names: &[Cell<'_>],
        mut decide: impl FnMut(usize, Option<u64>) -> Option<Option<u64>>,
    ) {
        let (changes, edits) = (&mut self.changes, &mut self.log.edits);
        let decide = &mut |at: usize, old| {
            let expiry = decide(at, old)?;
            *changes += 1;
            if let Some(edits) = edits {
                edits.reschedule(names[at], expiry);
            }
            Some(expiry)
        };
        self.entry.inner.reschedule_fields(names, decide);
    }

    /// This event is told, too, if anything changes.
    pub(crate) fn tell_also(&mut self, event: Event) {
        self.also = Some(event);
    }

    /// Removes an item; whether there was one. Of a sorted set [`ItemsEdit::take`] does it.
    #[inline]
    pub(crate) fn remove(&mut self, name: Cell<'_>) -> bool {
        assert!(!K::IS_SORTED, "the log needs the score");
        let is_removed = self.entry.inner.remove_item(name);
        if is_removed {
            self.changes += 1;
            if let Some(edits) = &mut self.log.edits {
                edits.remove(name);
            }
        }
        is_removed
    }

    /// Ends the change: writes it to the log and notifies the observers of the key. Removes a collection
    /// without items.
    #[inline]
    fn finish(self, event: Event) {
        let ItemsEdit {
            mut entry,
            before,
            changes,
            log,
            is_passed,
            also,
            kind_of_change,
            is_silent,
            ..
        } = self;
        let event = if is_silent { Event::NONE } else { event };
        let (store, db) = (entry.store, entry.inner.database());
        let is_empty = entry.inner.items::<K>().is_empty();
        if changes == 0 {
            if is_empty {
                // The entry was made for this change, which did nothing. No client has seen it.
                entry.inner.remove();
            } else {
                entry.inner.touch();
            }
            return;
        }
        // Redis counts each item.
        store.stats.dirty.add(changes - 1);
        if is_empty {
            return finish_empty(entry, before, (event, also));
        }
        if let (Some(journal), Some(edits)) = (store.journal, log.edits) {
            journal.edited(&mut entry.inner, before.overwritten(), edits, is_passed);
        }
        entry.inner.touch();
        store.stats.sets.add(1);
        entry.changed(kind_of_change);
        store.notifier.tell(event, db, entry.inner.key().bytes);
        if let Some(event) = also {
            store.notifier.tell(event, db, entry.inner.key().bytes);
        }
    }
}

/// Removes a collection whose last item was removed.
#[cold]
fn finish_empty(mut entry: Entry<'_, '_>, before: Before, (event, also): (Event, Option<Event>)) {
    let (store, db) = (entry.store, entry.inner.database());
    entry.changed(ChangeKind::Removed);
    if let Some(journal) = store.journal {
        journal.removed_after(&entry.inner, before.overwritten());
    }
    for event in [Some(event), also, Some(Event::DEL)].into_iter().flatten() {
        store.notifier.tell(event, db, entry.inner.key().bytes);
    }
    entry.inner.remove();
    store.stats.dels.add(1);
}
