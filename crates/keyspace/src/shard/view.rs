//! Entries of a locked shard, as the rest of the program sees them.

use super::guard::Guard;
use crate::collection::any::{Collection, Moment};
use crate::collection::build::{Builder, Built};
use crate::collection::copy::Original;
#[cfg(test)]
use crate::entry::Mark;
use crate::entry::cold::ColdValue;
use crate::entry::overwritten::Overwritten;
use crate::entry::{Encoding, Entry, Form, Kind, LogAddress, Stored, Type};
use crate::evict::clock_at;
use crate::hash::{Key, Place};
use crate::index::{Index, Slot};
use crate::large::LargeValue;
use crate::observe::ChangeKind;

/// The most seconds that the access clock tells.
const IDLE_MOST: u64 = 0xff_ffff;

/// A value without a key, type and expiry included.
pub struct Detached {
    pub(super) value: DetachedValue,
    pub(super) expiry: Option<i64>,
    pub(super) of: Type,
}

pub(super) enum DetachedValue {
    Inline(Vec<u8>),
    Large(LargeValue),
    Cold(ColdValue),
    /// Taken when it is given to a key.
    Tree(Option<Box<Collection>>),
}

impl Detached {
    pub(super) fn copy_of(entry: Entry) -> Detached {
        let value = match ColdValue::of(entry) {
            Some(cold) => DetachedValue::Cold(cold),
            None if entry.is_tree() => {
                let copy = entry.tree_mut().original().copy();
                DetachedValue::Tree(Some(Box::new(copy)))
            }
            None => match entry.value() {
                Stored::Inline(bytes) => DetachedValue::Inline(bytes.to_vec()),
                Stored::Large(large) => DetachedValue::Large(large.share()),
            },
        };
        Detached {
            value,
            expiry: entry.expiry(),
            of: entry.value_type(),
        }
    }

    /// The value of an entry that was taken out of the index and is freed next. A tree goes along.
    pub(super) fn taken_from(entry: Entry) -> Detached {
        if !entry.is_tree() {
            return Detached::copy_of(entry);
        }
        Detached {
            expiry: entry.expiry(),
            of: entry.value_type(),
            value: DetachedValue::Tree(entry.give_up_tree()),
        }
    }

    /// A collection that was made as a whole; `form` says which limits of Redis' packed encodings it has
    /// passed.
    pub fn built(builder: Builder, form: Form, expiry: Option<i64>) -> Detached {
        let kind = builder.kind();
        Detached {
            value: match builder.finish() {
                Built::Run(run, _) => DetachedValue::Inline(run),
                Built::Tree(tree) => DetachedValue::Tree(Some(tree)),
            },
            expiry,
            of: Type { kind, form },
        }
    }

    /// A collection as a tree.
    pub fn tree(tree: Collection, of: Type, expiry: Option<i64>) -> Detached {
        Detached {
            value: DetachedValue::Tree(Some(Box::new(tree))),
            expiry,
            of,
        }
    }

    /// When it expires (Unix, ms).
    pub fn expiry(&self) -> Option<i64> {
        self.expiry
    }

    /// It expires at this time (Unix, ms), or never.
    pub fn set_expiry(&mut self, expiry: Option<i64>) {
        self.expiry = expiry;
    }

    /// The bytes of a value that is to be inside its entry.
    pub fn inline(&self) -> Option<&[u8]> {
        match &self.value {
            DetachedValue::Inline(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Bytes of the value in memory.
    pub fn bytes(&self) -> usize {
        match &self.value {
            DetachedValue::Inline(bytes) => bytes.len(),
            DetachedValue::Large(large) => large.len(),
            DetachedValue::Cold(_) => 0,
            DetachedValue::Tree(tree) => tree.as_ref().map_or(0, |tree| tree.bytes()),
        }
    }

    /// What it is, and how it counts as written.
    pub fn value_type(&self) -> Type {
        self.of
    }

    /// Where it is if it is in the log alone.
    pub fn cold(&self) -> Option<ColdValue> {
        match self.value {
            DetachedValue::Cold(cold) => Some(cold),
            DetachedValue::Inline(_) | DetachedValue::Large(_) | DetachedValue::Tree(_) => None,
        }
    }
}

/// An entry that is looked at while its shard is locked.
#[derive(Clone, Copy)]
pub struct EntryRef<'a> {
    pub(super) entry: Entry,
    pub(super) _shard: std::marker::PhantomData<&'a ()>,
}

impl<'a> EntryRef<'a> {
    /// The caller sees to it that the shard stays locked for `'a`.
    #[inline]
    pub(super) fn new(entry: Entry) -> EntryRef<'a> {
        EntryRef {
            entry,
            _shard: std::marker::PhantomData,
        }
    }

    /// What the value is, and how it counts as written.
    #[inline]
    pub fn value_type(self) -> Type {
        self.entry.value_type()
    }

    /// How the value counts as written.
    #[inline]
    pub fn form(self) -> Form {
        self.entry.form()
    }

    /// The key.
    pub fn key(self) -> &'a [u8] {
        self.entry.key()
    }

    /// The value.
    ///
    /// # Panics
    /// It is in the log alone: see [`EntryRef::cold`].
    pub fn value(self) -> Stored<'a> {
        self.entry.value()
    }

    /// Where the value is if it is in the log alone.
    pub fn cold(self) -> Option<ColdValue> {
        ColdValue::of(self.entry)
    }

    /// When it expires (Unix, ms).
    pub fn expiry(self) -> Option<i64> {
        self.entry.expiry()
    }

    /// The kind of the value.
    #[inline]
    pub fn kind(self) -> Kind {
        self.entry.kind()
    }

    /// Whether items of the value expire.
    #[inline]
    pub fn is_expiring(self) -> bool {
        self.entry.is_expiring()
    }

    /// Bytes the key takes in all.
    pub fn memory(self) -> usize {
        self.entry.memory()
    }

    #[cfg(test)]
    pub(crate) fn has_mark(self, mark: Mark) -> bool {
        self.entry.has_mark(mark)
    }
}

/// An entry of a locked shard, to be read and changed.
pub struct EntryMut<'g, 'a> {
    pub(super) guard: &'g mut Guard<'a>,
    pub(super) slot: Slot,
    pub(super) hash: u64,
}

impl EntryMut<'_, '_> {
    #[inline]
    pub(super) fn entry(&self) -> Entry {
        // SAFETY: the lock is held and the index is only read.
        let state = unsafe { &mut *self.guard.cell.state.get() };
        Index {
            tables: &self.guard.cell.tables,
            state: &mut state.index,
        }
        .entry(self.slot)
    }

    /// [`Guard::note_change`] for this key.
    #[inline]
    pub fn note_change(&mut self, kind: ChangeKind) {
        if self.guard.observed() != 0 {
            let (bytes, hash) = (self.entry().key(), self.hash);
            self.guard.note_change(Key { bytes, hash }, kind);
        }
    }

    /// The value.
    ///
    /// # Panics
    /// It is in the log alone: see [`EntryRef::cold`].
    #[inline]
    pub fn value(&self) -> Stored<'_> {
        self.entry().value()
    }

    /// The value, or where it is if it is in the log alone.
    ///
    /// # Errors
    /// It is in the log alone.
    #[inline(always)]
    pub fn stored(&self) -> Result<Stored<'_>, ColdValue> {
        match self.entry().value_in_memory() {
            Some(value) => Ok(value),
            None => Err(self.cold().expect("it is not in memory")),
        }
    }

    /// Where the value is if it is in the log alone.
    #[inline]
    pub fn cold(&self) -> Option<ColdValue> {
        ColdValue::of(self.entry())
    }

    /// The hash of the key.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Bytes of the value.
    pub fn value_len(&self) -> usize {
        self.entry().value_len()
    }

    /// What the value is, and how it counts as written.
    #[inline]
    pub fn value_type(&self) -> Type {
        self.entry().value_type()
    }

    /// The bytes of a string that is inside the entry, as most values are: one test for kind and place.
    #[inline(always)]
    pub fn plain(&self) -> Option<&[u8]> {
        self.entry().plain()
    }

    /// Whether the value is a string. One test of a word that is in a register anyway.
    #[inline(always)]
    pub fn is_string(&self) -> bool {
        self.entry().is_string()
    }

    /// The kind of the value.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.entry().kind()
    }

    /// When the key expires (Unix, ms).
    #[inline]
    pub fn expiry(&self) -> Option<i64> {
        self.entry().expiry()
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> Key<'_> {
        Key {
            bytes: self.entry().key(),
            hash: self.hash,
        }
    }

    /// The number of the database it is in.
    pub fn database(&self) -> usize {
        self.guard.cell.lock.database()
    }

    /// Where the entry is in the log; `None` if it never was told, or has not been written yet.
    #[inline]
    pub fn log_address(&self) -> Option<LogAddress> {
        let address = self.entry().log_address();
        address.filter(|address| address.is_known())
    }

    /// What the log has of the entry, which is about to change or go.
    #[inline]
    pub fn overwritten(&self) -> Option<Overwritten> {
        Overwritten::of(self.entry())
    }

    /// The entry to be looked at.
    #[inline]
    pub fn as_ref(&self) -> EntryRef<'_> {
        EntryRef::new(self.entry())
    }

    /// Notes where the entry is in the log. Takes no memory that is not there if the keyspace knows that it
    /// is logged ([`crate::Keyspace::set_logged`]).
    #[inline]
    pub fn set_log_address(&mut self, address: LogAddress) {
        let entry = self.entry();
        if entry.write_log_address(address) {
            return;
        }
        let before = entry.memory();
        let moved = entry.set_log_address(self.guard.heap(), address);
        if moved != entry {
            self.guard.sub_bytes(before);
            self.guard.add_bytes(moved.memory());
            self.guard.index().replace(self.slot, moved);
            self.guard.note_slack();
        }
    }

    /// How Redis would hold the value, which is a string.
    pub fn encoding(&self) -> Encoding {
        let entry = self.entry();
        if entry.is_cold() {
            // It is longer than what is held in any other way.
            return Encoding::Raw;
        }
        Encoding::of(entry.form(), entry.value().bytes())
    }

    /// Seconds since the last access, as the access clock can tell.
    pub fn idle_seconds(&self) -> u32 {
        clock_at(self.guard.now).wrapping_sub(self.entry().clock()) & 0xff_ffff
    }

    /// Notes an access.
    #[inline]
    pub fn touch(&mut self) {
        let noting = &self.guard.shared.noting;
        if !noting.counts() {
            self.entry().set_clock(clock_at(self.guard.now));
        }
        if noting.heats() {
            self.guard.warm(self.slot);
        }
    }

    /// How often it is used, on a logarithmic scale, if uses are counted.
    pub fn frequency(&self) -> u8 {
        let noting = &self.guard.shared.noting;
        noting.count(self.entry().clock(), self.guard.now)
    }

    /// Lets the last access be so many seconds ago, unless uses are counted.
    pub fn note_idle(&mut self, seconds: u64) {
        if !self.guard.shared.noting.counts() {
            let seconds = seconds.min(IDLE_MOST) as u32;
            let clock = clock_at(self.guard.now).wrapping_sub(seconds) & 0xff_ffff;
            self.entry().set_clock(clock);
        }
    }

    /// Lets it be used so often, on the logarithmic scale, if uses are counted.
    pub fn note_frequency(&mut self, count: u8) {
        let noting = &self.guard.shared.noting;
        if noting.counts() {
            self.entry()
                .set_clock(noting.with_count(count, self.guard.now));
        }
    }

    /// Notes an access at another time (Unix, ms) than the guard's.
    pub fn touch_at(&mut self, now: i64) {
        self.entry().set_clock(clock_at(now));
    }

    /// Bytes that are allocated before anything is freed when the value is made `len` bytes long.
    pub fn growth(&self, len: usize) -> usize {
        self.entry().growth(len)
    }

    /// Bytes the entry takes, key and index slot included.
    pub fn memory(&self) -> usize {
        self.entry().memory() + 8
    }

    /// Sets or removes the expiry.
    pub fn set_expiry(&mut self, expiry: Option<i64>) {
        let entry = self.entry();
        self.guard.preserve(entry);
        let (before, old) = (entry.memory(), entry.expiry());
        let entry = entry.set_expiry(self.guard.heap(), expiry);
        self.guard.sub_bytes(before);
        self.guard.add_bytes(entry.memory());
        self.guard.index().replace(self.slot, entry);
        self.guard.reschedule(self.hash, old, expiry);
        self.guard.note_slack();
    }

    /// Makes the value `len` bytes long (zeroes are added behind) and gives it out to be changed. `form` is
    /// how it counts as written from here on; its kind stays.
    pub fn resize_value(&mut self, len: usize, form: Form) -> &mut [u8] {
        let entry = self.entry();
        self.guard.preserve(entry);
        if entry.resize_in_place(len) {
            entry.set_form(form);
            return entry.value_mut();
        }
        let before = entry.memory();
        let (entry, garbage) = entry.resize_value(self.guard.heap(), len);
        entry.set_form(form);
        self.guard.sub_bytes(before);
        self.guard.add_bytes(entry.memory());
        self.guard.index().replace(self.slot, entry);
        self.guard.note_slack();
        self.guard.discard(garbage);
        entry.value_mut()
    }

    /// This moment of a tree, in O(1); `None` if the value is none. It is read without a lock; meanwhile
    /// changes of the tree copy what the moment has.
    pub fn moment(&mut self) -> Option<Moment> {
        let entry = self.entry();
        entry.is_tree().then(|| entry.tree_mut().freeze())
    }

    /// This moment of a tree, from which a copy can be made without a lock, in O(1); `None` if the value is
    /// no tree.
    pub fn original(&mut self) -> Option<Original> {
        let entry = self.entry();
        entry.is_tree().then(|| entry.tree_mut().original())
    }

    /// A copy of value and expiry.
    pub fn copy(&self) -> Detached {
        Detached::copy_of(self.entry())
    }

    /// Removes the key.
    pub fn remove(self) {
        let entry = self.guard.unlink(self.slot);
        self.guard.free(entry);
    }
}

impl<'a> Guard<'a> {
    /// Finds the entry of a key.
    #[inline]
    pub fn find(&mut self, key: Key<'_>) -> Option<EntryMut<'_, 'a>> {
        let slot = self.slot_of(key)?;
        Some(EntryMut {
            guard: self,
            slot,
            hash: key.hash,
        })
    }

    /// Calls `visit` with every live entry of the bucket that `place` falls into; returns the first place
    /// behind it.
    pub(crate) fn visit_place(
        &self,
        place: Place,
        mut visit: impl FnMut(EntryRef<'_>),
    ) -> Option<Place> {
        // SAFETY: the lock is held; the index is only read, and `visit` cannot reach this shard.
        let state = unsafe { &mut *self.cell.state.get() };
        let index = Index {
            tables: &self.cell.tables,
            state: &mut state.index,
        };
        index.visit_home(place, |_, entry| {
            if !entry.is_over(self.now) {
                visit(EntryRef::new(entry));
            }
        })
    }
}
