//! Hashes of a locked shard. A command on hashes asks for a [`Hash`] first, and a key of another kind is
//! `WRONGTYPE`.
//!
//! A command changes a hash by one [`HashEdit`], whatever number of fields it sets and removes: one change to
//! everybody who observes the key, one record of the log, and an event. A hash without fields is removed.

use std::ops::Deref;

use keyspace::collection::any::Moment;
use keyspace::collection::cell::Cell;
use keyspace::collection::log::edits::Edits;
use keyspace::collection::run::Item;
use keyspace::collection::tree::Put;
use keyspace::{ChangeKind, EMPTY_HASH, Form, HASH, HashRef, Key, Kind, New, Overwritten};

use super::{Entry, Shard};
use crate::observe::notify::Event;
use crate::persistence::journal::Journal;
use crate::request::{Failure, failure};

/// An entry of a locked shard that is a hash.
pub(crate) struct Hash<'g, 'a>(Entry<'g, 'a>);

/// The limits within which Redis keeps a hash packed.
#[derive(Clone, Copy)]
pub(crate) struct Packed {
    /// Most fields.
    pub(crate) entries: usize,
    /// Most bytes of a field or a value.
    pub(crate) value: usize,
}

impl<'g, 'a> Entry<'g, 'a> {
    /// The entry as a hash.
    ///
    /// # Errors
    /// It is of another kind.
    #[inline]
    fn hash(self) -> Result<Hash<'g, 'a>, Failure> {
        match self.kind() {
            Kind::Hash => Ok(Hash(self)),
            _ => Err(failure::WRONG_TYPE),
        }
    }
}

impl<'a> Shard<'a> {
    /// [`Shard::read`] for a command on hashes.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline]
    pub(crate) fn read_hash(&mut self, key: Key<'_>) -> Result<Option<Hash<'_, 'a>>, Failure> {
        self.read(key).map(Entry::hash).transpose()
    }

    /// [`Shard::find`] for a command on hashes.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline]
    pub(crate) fn find_hash(&mut self, key: Key<'_>) -> Result<Option<Hash<'_, 'a>>, Failure> {
        self.find(key).map(Entry::hash).transpose()
    }

    /// [`Shard::find_to_change`] for a command on hashes.
    ///
    /// # Errors
    /// The key is of another kind.
    pub(crate) fn find_hash_to_change(
        &mut self,
        key: Key<'_>,
    ) -> Result<Option<Hash<'_, 'a>>, Failure> {
        self.find_to_change(key).map(Entry::hash).transpose()
    }

    /// Changes the hash of a key, which is made if it is missing, by what `change` does to it; `event` is
    /// told if it does anything.
    ///
    /// # Errors
    /// The key is of another kind; or what `change` says, before it changed anything.
    #[inline]
    pub(crate) fn edit_hash<R>(
        &mut self,
        key: Key<'_>,
        event: Event,
        packed: Packed,
        change: impl FnOnce(&mut HashEdit<'_, '_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        if let Some(hash) = self.find_hash(key)? {
            return hash.edit(event, packed, change);
        }
        self.tell(Event::NEW, key);
        let new = New::bytes(&EMPTY_HASH).of(HASH);
        self.guard.write(key, new, |_, _| None);
        let inner = self.guard.find(key).expect("it has just been made");
        let store = self.store;
        let entry = Entry { inner, store };
        let mut edit = HashEdit::new(entry, Before::Missing, packed);
        let result = change(&mut edit);
        edit.finish(event);
        result
    }
}

impl<'g, 'a> Deref for Hash<'g, 'a> {
    type Target = Entry<'g, 'a>;

    #[inline]
    fn deref(&self) -> &Entry<'g, 'a> {
        &self.0
    }
}

impl<'g, 'a> Hash<'g, 'a> {
    /// The fields.
    #[inline]
    pub(crate) fn fields(&self) -> HashRef<'_> {
        self.0.inner.hash_fields()
    }

    /// The moment that a large hash is at; `None` if it is small.
    pub(crate) fn moment(&mut self) -> Option<Moment> {
        self.0.inner.moment()
    }

    /// Changes the hash by what `change` does to it; `event` is told if it does anything.
    #[inline]
    pub(crate) fn edit<R>(
        self,
        event: Event,
        packed: Packed,
        change: impl FnOnce(&mut HashEdit<'g, 'a>) -> R,
    ) -> R {
        let old = self.0.inner.overwritten();
        let mut edit = HashEdit::new(self.0, Before::Hash(old), packed);
        let result = change(&mut edit);
        edit.finish(event);
        result
    }
}

/// What a key was before it is changed.
#[derive(Clone, Copy)]
enum Before {
    Missing,
    /// A hash, with what the log has of it.
    Hash(Option<Overwritten>),
}

impl Before {
    /// What the log had of the entry.
    fn overwritten(self) -> Option<Overwritten> {
        match self {
            Before::Missing => None,
            Before::Hash(old) => old,
        }
    }
}

/// One change of a hash.
pub(crate) struct HashEdit<'g, 'a> {
    entry: Entry<'g, 'a>,
    before: Before,
    packed: Packed,
    /// Fields that were set or removed.
    changes: u64,
    /// The changes, if there is a log.
    edits: Option<Edits>,
    /// Whether the limits of the packed encoding were passed.
    is_passed: bool,
    /// Told behind the event of the change.
    also: Option<Event>,
}

impl<'g, 'a> HashEdit<'g, 'a> {
    #[inline]
    fn new(entry: Entry<'g, 'a>, before: Before, packed: Packed) -> HashEdit<'g, 'a> {
        HashEdit {
            before,
            packed,
            changes: 0,
            edits: entry.store.journal.map(Journal::edits),
            entry,
            is_passed: false,
            also: None,
        }
    }

    /// A field with its value.
    #[inline]
    pub(crate) fn get(&self, name: Cell<'_>) -> Option<Item<'_>> {
        self.entry.inner.hash_fields().get(name)
    }

    /// Sets a field.
    #[inline]
    pub(crate) fn set(&mut self, item: &Item<'_>) -> Put {
        let put = self.entry.inner.set_field(item);
        self.changes += 1;
        if let Some(edits) = &mut self.edits {
            edits.set(item);
        }
        if self.entry.inner.value_type().form == Form::Whole && self.is_beyond(item) {
            self.entry.inner.set_form(Form::Part);
            self.is_passed = true;
        }
        put
    }

    /// Lets a field that is there expire at this time (Unix, ms), or never.
    pub(crate) fn reschedule(&mut self, name: Cell<'_>, expiry: Option<u64>) {
        if self.entry.inner.reschedule_field(name, expiry) {
            self.changes += 1;
            if let Some(edits) = &mut self.edits {
                edits.reschedule(name, expiry);
            }
        }
    }

    /// This event is told, too, if anything changes.
    pub(crate) fn tell_also(&mut self, event: Event) {
        self.also = Some(event);
    }

    /// Removes a field; whether there was one.
    #[inline]
    pub(crate) fn remove(&mut self, name: Cell<'_>) -> bool {
        let is_removed = self.entry.inner.remove_field(name);
        if is_removed {
            self.changes += 1;
            if let Some(edits) = &mut self.edits {
                edits.remove(name);
            }
        }
        is_removed
    }

    /// Whether the hash, with a field that was just set, is beyond the limits of the packed encoding.
    #[inline]
    fn is_beyond(&self, item: &Item<'_>) -> bool {
        let is_long = |cell: Cell<'_>| cell.text_len() > self.packed.value;
        is_long(item.name)
            || item.value.is_some_and(is_long)
            || self.entry.inner.hash_fields().len() > self.packed.entries as u64
    }

    /// Ends the change: tells the log and all who observe the key. Removes a hash without fields.
    #[inline]
    fn finish(self, event: Event) {
        let HashEdit {
            mut entry,
            before,
            changes,
            edits,
            is_passed,
            also,
            ..
        } = self;
        let (store, db) = (entry.store, entry.inner.database());
        let is_empty = entry.inner.hash_fields().is_empty();
        if changes == 0 {
            if is_empty {
                // Made for this change, which did nothing: nobody has seen it.
                entry.inner.remove();
            } else {
                entry.inner.touch();
            }
            return;
        }
        // Redis counts each field.
        store.stats.dirty.add(changes - 1);
        if is_empty {
            return finish_empty(entry, before, (event, also));
        }
        if let (Some(journal), Some(edits)) = (store.journal, edits) {
            journal.edited(&mut entry.inner, before.overwritten(), edits, is_passed);
        }
        entry.inner.touch();
        store.stats.sets.add(1);
        entry.changed(ChangeKind::Written);
        store.notifier.tell(event, db, entry.inner.key().bytes);
        if let Some(event) = also {
            store.notifier.tell(event, db, entry.inner.key().bytes);
        }
    }
}

/// Removes a hash whose last field was removed.
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
