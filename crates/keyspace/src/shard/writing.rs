//! Giving a key a value, and telling whoever keeps a log of it: one function, whatever the value is.
//!
//! With a log, what is written is logged while it is in the processor's cache and under the same lock. The
//! one who writes hands over a function that is told of the new entry, and of what it replaced, and says
//! where the entry is in the log from here on. Without a log that function answers `None` and costs nothing.

use std::sync::atomic::Ordering::Relaxed;

use super::guard::Guard;
use super::view::{Detached, DetachedValue, EntryMut, EntryRef};
use crate::entry::cold::ColdValue;
use crate::entry::overwritten::Overwritten;
use crate::entry::{Entry, Extras, INLINE_VALUE_MAX, LogAddress, NewValue, Stamp, Type};
use crate::evict::COOL;
use crate::hash::{Key, Place};
use crate::index::Slot;
use crate::large::LargeValue;

/// What happens to a key's expiry when its value is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// None afterwards.
    Clear,
    /// As it was.
    Keep,
    /// At this time (Unix, ms).
    At(i64),
}

impl Expiry {
    /// The expiry of a key that had this one.
    #[inline]
    fn after(self, old: Option<i64>) -> Option<i64> {
        match self {
            Expiry::Clear => None,
            Expiry::Keep => old,
            Expiry::At(at) => Some(at),
        }
    }
}

/// At this time, or none.
impl From<Option<i64>> for Expiry {
    #[inline]
    fn from(at: Option<i64>) -> Expiry {
        at.map_or(Expiry::Clear, Expiry::At)
    }
}

/// What a key is given: a value, and all in which one way of writing it differs from another.
///
/// It is a string that was set as a whole, without an expiry, and used now, unless something else is said.
pub struct New<'a> {
    value: NewValue<'a>,
    of: Type,
    expiry: Expiry,
    used: Option<i64>,
}

impl<'a> New<'a> {
    #[inline]
    pub(super) fn value(value: NewValue<'a>) -> New<'a> {
        New {
            value,
            of: Type::STRING,
            expiry: Expiry::Clear,
            used: None,
        }
    }

    /// A copy of these bytes: inside the entry, or in a buffer of its own if they are many.
    #[inline]
    pub fn bytes(bytes: &'a [u8]) -> New<'a> {
        New::value(NewValue::copy_of(bytes))
    }

    /// A value that has a buffer of its own already. If it has few bytes they are copied into the entry.
    #[inline]
    pub fn large(value: &'a LargeValue) -> New<'a> {
        if value.len() <= INLINE_VALUE_MAX {
            New::value(NewValue::Inline(value))
        } else {
            New::value(NewValue::Large(LargeValue::clone(value)))
        }
    }

    /// A value of `len` bytes that the log alone has: in a record that holds all of it, and can be read,
    /// where the function that logs says. The keyspace is logged; nobody else has pinned the shard
    /// ([`Guard::pins`]), for whoever has relies on values that are in memory.
    #[inline]
    pub fn cold(len: u64) -> New<'a> {
        New::value(NewValue::Cold(len))
    }

    /// What was taken or copied from another key, its type and its expiry included.
    pub fn detached(from: &'a mut Detached) -> New<'a> {
        let (of, expiry) = (from.of, from.expiry);
        let new = match &mut from.value {
            DetachedValue::Inline(bytes) => New::value(NewValue::Inline(bytes)),
            DetachedValue::Large(large) => New::value(NewValue::Large(LargeValue::clone(large))),
            DetachedValue::Cold(cold) => New::cold(cold.len),
            DetachedValue::Tree(tree) => {
                let tree = tree.take();
                New::value(NewValue::Tree(tree.expect("it is given once")))
            }
        };
        new.of(of).expiry(expiry)
    }

    /// It is of this type.
    #[inline]
    pub fn of(self, of: impl Into<Type>) -> New<'a> {
        let of = of.into();
        New { of, ..self }
    }

    /// This happens to the key's expiry.
    #[inline]
    pub fn expiry(self, expiry: impl Into<Expiry>) -> New<'a> {
        let expiry = expiry.into();
        New { expiry, ..self }
    }

    /// It counts as used last at this time (Unix, ms), whatever time the guard has.
    #[inline]
    pub fn used(self, at: i64) -> New<'a> {
        let used = Some(at);
        New { used, ..self }
    }
}

impl Guard<'_> {
    /// Gives a key a value, whatever it had before. Overwrites in place where it can: no allocation then.
    ///
    /// `log` is told of the new entry, and of what the log had of the one that is replaced; it says where the
    /// entry is in the log, if there is a log.
    #[inline(always)]
    pub fn write(
        &mut self,
        key: Key<'_>,
        new: New<'_>,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> Option<LogAddress>,
    ) {
        let (stamp, is_now) = (self.stamp(new.used).of(new.of), new.used.is_none());
        self.write_stamped(key, new.value, new.expiry, stamp, is_now, log);
    }

    /// Sets a key to a string that was set as a whole.
    #[inline]
    pub fn set(&mut self, key: Key<'_>, value: &[u8], expiry: Expiry) {
        self.write(key, New::bytes(value).expiry(expiry), |_, _| None);
    }

    /// [`Guard::write`]. If it `is_now` that the key is used, that is noted as any use of a key is.
    #[inline]
    fn write_stamped(
        &mut self,
        key: Key<'_>,
        value: NewValue<'_>,
        expiry: Expiry,
        mut stamp: Stamp,
        is_now: bool,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> Option<LogAddress>,
    ) {
        let Some(slot) = self.slot_of(key) else {
            return self.write_missing(key, value, expiry, stamp, log);
        };
        if self.shared.noting.heats() {
            let warmed = self.warm_stamp(slot);
            if is_now {
                stamp = stamp.with_use(warmed);
            }
        }
        let entry = self.index().entry(slot);
        self.preserve(entry);
        let old = Overwritten::of(entry);
        // What nearly every overwrite is: nothing to account for, nothing to schedule.
        if let NewValue::Inline(bytes) = &value
            && !matches!(expiry, Expiry::At(_))
            && !stamp.is_collection()
            && entry.overwrite_in_place(bytes, expiry == Expiry::Keep, stamp)
        {
            if let Some(address) = log(EntryRef::new(entry), old) {
                self.note_log_address(slot, key.hash, entry, address);
            }
            return;
        }
        if entry.is_cold() {
            self.note_cold(-1, entry);
        }
        let (before, old_expiry) = (entry.memory(), entry.expiry());
        if entry.is_expiring() {
            self.note_expiring(-1);
        }
        let is_collection = stamp.is_collection();
        let expiry = expiry.after(old_expiry);
        let (entry, garbage) = entry.overwrite(self.heap(), key.bytes, value, expiry, stamp);
        self.exchange(slot, before, entry);
        self.reschedule(key.hash, old_expiry, expiry);
        if is_collection {
            self.settle_items(slot, key.hash, None);
        }
        if let Some(address) = log(EntryRef::new(entry), old) {
            self.note_log_address(slot, key.hash, entry, address);
        }
        // It may have moved to have room for its address.
        let entry = self.index().entry(slot);
        if entry.is_cold() {
            self.note_cold(1, entry);
            // So that no hand takes it for one that is in memory.
            self.index().set_heat(slot, COOL);
        }
        self.discard(garbage);
        self.relieve();
    }

    /// [`Guard::write`] to a key that is not there.
    #[inline]
    fn write_missing(
        &mut self,
        key: Key<'_>,
        value: NewValue<'_>,
        expiry: Expiry,
        stamp: Stamp,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> Option<LogAddress>,
    ) {
        let is_logged = self.shared.is_logged.load(Relaxed);
        let extras = Extras {
            expiry: expiry.after(None),
            log: is_logged.then_some(LogAddress::NOWHERE),
        };
        let entry = Entry::new(self.heap(), key.bytes, value, extras, stamp);
        if stamp.is_collection() && entry.next_due().is_some() {
            entry.set_expiring(true);
        }
        if let Some(address) = log(EntryRef::new(entry), None) {
            let has_room = entry.write_log_address(address);
            assert!(has_room, "the keyspace of a server with a log is logged");
        }
        if entry.is_cold() {
            self.insert_with_heat(key.hash, entry, COOL);
            self.note_cold(1, entry);
        } else {
            self.insert(key.hash, entry);
        }
        self.relieve();
    }

    /// Takes a key's value away, to put it elsewhere with [`New::detached`].
    pub fn detach(&mut self, key: Key<'_>) -> Option<Detached> {
        let slot = self.slot_of(key)?;
        let entry = self.unlink(slot);
        let detached = Detached::taken_from(entry);
        self.free(entry);
        Some(detached)
    }

    /// Notes where an entry is in the log. It moves if it had no room for that.
    #[inline]
    fn note_log_address(&mut self, slot: Slot, hash: u64, entry: Entry, address: LogAddress) {
        if !entry.write_log_address(address) {
            let guard = self;
            EntryMut { guard, slot, hash }.set_log_address(address);
        }
    }

    /// Logs entries that are not in the log, with `log`: those of the bucket at `position`, which is 0 at the
    /// beginning. Returns the position to go on with; `None` at the end of the shard.
    pub fn log_missing(
        &mut self,
        position: u64,
        log: &mut dyn FnMut(EntryRef<'_>) -> LogAddress,
    ) -> Option<u64> {
        let mut missing = Vec::new();
        let next = self.index().visit_home(Place(position), |slot, entry| {
            let address = entry.log_address();
            if address.is_none_or(|address| address == LogAddress::NOWHERE) {
                missing.push(slot);
            }
        });
        // Entries move in memory meanwhile, but stay in their slots.
        for slot in missing {
            let entry = self.index().entry(slot);
            let address = log(EntryRef::new(entry));
            let hash = self.shared.seed.hash(entry.key());
            self.note_log_address(slot, hash, entry, address);
        }
        next.map(|place| place.0)
    }

    /// Shows the keys whose value is in the log alone, of those of the bucket at `position`. Returns where to
    /// go on.
    pub fn visit_cold(
        &mut self,
        position: u64,
        visit: &mut dyn FnMut(&[u8], ColdValue),
    ) -> Option<u64> {
        let next = self.index().visit_home(Place(position), |_, entry| {
            if let Some(cold) = ColdValue::of(entry) {
                visit(entry.key(), cold);
            }
        });
        next.map(|place| place.0)
    }

    /// Shows the keys whose value is a tree with leaves that are in the log alone. As
    /// [`Guard::visit_cold`].
    pub fn visit_cold_trees(&mut self, position: u64, visit: &mut dyn FnMut(&[u8])) -> Option<u64> {
        let next = self.index().visit_home(Place(position), |_, entry| {
            if entry.is_tree() && entry.tree().cold_leaves() > 0 {
                visit(entry.key());
            }
        });
        next.map(|place| place.0)
    }

    /// Lets entries be as if they were not in the log, except those whose value is there alone: those of the
    /// bucket at `position`. As [`Guard::log_missing`].
    pub fn forget_log(&mut self, position: u64) -> Option<u64> {
        let next = self.index().visit_home(Place(position), |_, entry| {
            if !entry.is_cold() {
                if entry.is_tree() {
                    entry.tree().logged().forget();
                }
                entry.write_log_address(LogAddress::NOWHERE);
            }
        });
        next.map(|place| place.0)
    }
}
