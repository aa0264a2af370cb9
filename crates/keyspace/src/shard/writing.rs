//! Giving a key a value, and telling whoever keeps a log of it.
//!
//! With a log, what is written is logged while it is in the processor's cache and under the same lock: the one who writes
//! hands over a function that is told of the new entry, and of what it replaced, and says where the entry is in the log from here on.
//! The same functions without a log cost nothing for that.

use std::sync::atomic::Ordering::Relaxed;

use super::guard::Guard;
use super::view::{Detached, DetachedValue, EntryMut, EntryRef, Overwritten};
use crate::entry::cold::ColdValue;
use crate::entry::{Entry, Extras, LogAddress, NewValue, Stamp, Type};
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

/// What a function that logs answers if there is no log.
#[inline]
fn no_log(_: EntryRef<'_>, _: Option<Overwritten>) -> Option<LogAddress> {
    None
}

impl Guard<'_> {
    /// Sets a key to a string, whatever it was before. Overwrites in place where it can: no allocation then.
    #[inline]
    pub fn set(&mut self, key: Key<'_>, value: &[u8], expiry: Expiry) {
        self.set_value(key, NewValue::copy_of(value), expiry, Type::STRING, no_log);
    }

    /// [`Guard::set`], logged by `log`.
    #[inline]
    pub fn set_logged(
        &mut self,
        key: Key<'_>,
        value: &[u8],
        expiry: Expiry,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> LogAddress,
    ) {
        let value = NewValue::copy_of(value);
        let log = |entry: EntryRef<'_>, old| Some(log(entry, old));
        self.set_value(key, value, expiry, Type::STRING, log);
    }

    /// [`Guard::set`] with a value that already has a buffer of its own.
    pub fn set_large(&mut self, key: Key<'_>, value: LargeValue, expiry: Expiry) {
        self.set_formed(key, value, expiry, Type::STRING, no_log);
    }

    /// [`Guard::set_large`] with a value of this type, logged by `log` if there is a log.
    pub fn set_formed(
        &mut self,
        key: Key<'_>,
        value: LargeValue,
        expiry: Expiry,
        of: impl Into<Type>,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> Option<LogAddress>,
    ) {
        let of = of.into();
        if value.len() <= crate::INLINE_VALUE_MAX {
            self.set_value(key, NewValue::Inline(&value), expiry, of, log);
        } else {
            self.set_value(key, NewValue::Large(value), expiry, of, log);
        }
    }

    /// Sets a key to a value of `len` bytes that the log alone has, where `log` says. The keyspace is logged; nobody else has pinned the
    /// shard ([`Guard::pins`]), for who has relies on values that are in memory.
    pub fn set_cold(
        &mut self,
        key: Key<'_>,
        len: u64,
        expiry: Expiry,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> LogAddress,
    ) {
        let log = |entry: EntryRef<'_>, old| Some(log(entry, old));
        self.set_value(key, NewValue::Cold(len), expiry, Type::STRING, log);
    }

    /// Takes a key's value away, to put it elsewhere with [`Guard::attach`].
    pub fn detach(&mut self, key: Key<'_>) -> Option<Detached> {
        let slot = self.slot_of(key)?;
        let detached = Detached::copy_of(self.index().entry(slot));
        let entry = self.unlink(slot);
        self.free(entry);
        Some(detached)
    }

    /// Gives a key a value that was taken or copied from another, expiry included. For one that is in the log alone [`Guard::set_cold`]
    /// says what holds.
    pub fn attach(
        &mut self,
        key: Key<'_>,
        value: Detached,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> Option<LogAddress>,
    ) {
        let expiry = value.expiry.map_or(Expiry::Clear, Expiry::At);
        let inline;
        let new = match value.value {
            DetachedValue::Inline(bytes) => {
                inline = bytes;
                NewValue::Inline(&inline)
            }
            DetachedValue::Large(large) => NewValue::Large(large),
            DetachedValue::Cold(cold) => NewValue::Cold(cold.len),
        };
        self.set_value(key, new, expiry, value.of, log);
    }

    #[inline]
    fn set_value(
        &mut self,
        key: Key<'_>,
        value: NewValue<'_>,
        expiry: Expiry,
        of: Type,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> Option<LogAddress>,
    ) {
        let stamp = self.stamp();
        self.set_stamped(key, value, expiry, of, stamp, log);
    }

    #[inline]
    pub(super) fn set_stamped(
        &mut self,
        key: Key<'_>,
        value: NewValue<'_>,
        expiry: Expiry,
        of: Type,
        mut stamp: Stamp,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> Option<LogAddress>,
    ) {
        match self.slot_of(key) {
            Some(slot) => {
                if self.shared.noting.heats() {
                    stamp = self.warm_stamp(slot);
                }
                let entry = self.index().entry(slot);
                self.preserve(entry);
                let replaced = Overwritten::of(entry);
                // What nearly every overwrite is: nothing to account for, nothing to schedule.
                if let NewValue::Inline(bytes) = &value
                    && !matches!(expiry, Expiry::At(_))
                    && entry.overwrite_in_place((of, bytes), expiry == Expiry::Keep, stamp)
                {
                    if let Some(address) = log(EntryRef::new(entry), replaced) {
                        self.note_log_address(slot, key.hash, entry, address);
                    }
                    return;
                }
                if entry.is_cold() {
                    self.note_cold(-1, entry);
                }
                let (before, old_expiry) = (entry.memory(), entry.expiry());
                let expiry = match expiry {
                    Expiry::Clear => None,
                    Expiry::Keep => old_expiry,
                    Expiry::At(at) => Some(at),
                };
                let (entry, garbage) =
                    entry.overwrite(self.heap(), key.bytes, (of, value), expiry, stamp);
                self.sub_bytes(before);
                self.add_bytes(entry.memory());
                self.index().replace(slot, entry);
                self.reschedule(key.hash, old_expiry, expiry);
                self.note_slack();
                if let Some(address) = log(EntryRef::new(entry), replaced) {
                    self.note_log_address(slot, key.hash, entry, address);
                }
                // It may have moved to have room for its address.
                let entry = self.index().entry(slot);
                if entry.is_cold() {
                    self.note_new_cold(key.hash, entry);
                }
                self.discard(garbage);
                self.relieve();
            }
            None => {
                let expiry = match expiry {
                    Expiry::At(at) => Some(at),
                    Expiry::Clear | Expiry::Keep => None,
                };
                let is_logged = self.shared.is_logged.load(Relaxed);
                let extras = Extras {
                    expiry,
                    log: is_logged.then_some(LogAddress::NOWHERE),
                };
                let entry = Entry::new(self.heap(), key.bytes, (of, value), extras, stamp);
                if let Some(address) = log(EntryRef::new(entry), None) {
                    let has_room = entry.write_log_address(address);
                    assert!(has_room, "the keyspace of a server with a log is logged");
                }
                self.insert(key.hash, entry);
                if entry.is_cold() {
                    self.note_new_cold(key.hash, entry);
                }
                self.relieve();
            }
        }
    }

    /// Notes where an entry is in the log. It moves if it had no room for that.
    #[inline]
    fn note_log_address(&mut self, slot: Slot, hash: u64, entry: Entry, address: LogAddress) {
        if !entry.write_log_address(address) {
            let guard = self;
            EntryMut { guard, slot, hash }.set_log_address(address);
        }
    }

    /// Logs entries that are not in the log, with `log`: those of the bucket at `position`, which is 0 at the beginning.
    /// Returns the position to go on with; `None` at the end of the shard.
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

    /// Shows the keys whose value is in the log alone, of those of the bucket at `position`. Returns where to go on.
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

    /// Lets entries be as if they were not in the log, except those whose value is there alone: those of the bucket at `position`.
    /// As [`Guard::log_missing`].
    pub fn forget_log(&mut self, position: u64) -> Option<u64> {
        let next = self.index().visit_home(Place(position), |_, entry| {
            if !entry.is_cold() {
                entry.write_log_address(LogAddress::NOWHERE);
            }
        });
        next.map(|place| place.0)
    }
}
