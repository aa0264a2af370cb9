//! Filling a shard while a log is loaded.

use super::guard::Guard;
use super::view::{EntryRef, Overwritten};
use super::writing::Expiry;
use crate::entry::{Entry, Extras, LogAddress, NewValue, Stamp, Type};
use crate::evict::COOL;
use crate::hash::Key;

impl Guard<'_> {
    /// Sets a key to what a log says, whatever it was before: value, expiry and type. The entry counts as used at `used` (Unix, ms),
    /// for the guard's own time is before everything then. `log` is told of what was replaced, and says where the entry is in the log.
    #[inline]
    pub fn load(
        &mut self,
        key: Key<'_>,
        value: &[u8],
        expiry: Option<i64>,
        of: impl Into<Type>,
        used: i64,
        log: impl FnOnce(Option<Overwritten>) -> Option<LogAddress>,
    ) {
        let stamp = Stamp::new(self.shared.noting.first(used), self.shared.snapshot.mark());
        let expiry = expiry.map_or(Expiry::Clear, Expiry::At);
        let log = |_: EntryRef<'_>, replaced| log(replaced);
        self.set_stamped(key, NewValue::copy_of(value), expiry, of.into(), stamp, log);
    }

    /// [`Guard::load`] of a value of `len` bytes, at least [`crate::COLD_MIN_BYTES`], that stays in the log: `log` says where, in a record
    /// that holds all of it.
    #[inline]
    pub fn load_cold(
        &mut self,
        key: Key<'_>,
        len: usize,
        expiry: Option<i64>,
        of: impl Into<Type>,
        used: i64,
        log: impl FnOnce(Option<Overwritten>) -> LogAddress,
    ) {
        let stamp = Stamp::new(self.shared.noting.first(used), self.shared.snapshot.mark());
        let slot = self.slot_of(key);
        let old = slot.map(|slot| self.index().entry(slot));
        let address = log(old.and_then(Overwritten::of));
        let value = (of.into(), NewValue::Cold(len as u64));
        let (Some(slot), Some(old)) = (slot, old) else {
            let extras = Extras {
                expiry,
                log: Some(address),
            };
            let entry = Entry::new(self.heap(), key.bytes, value, extras, stamp);
            self.insert_with_heat(key.hash, entry, COOL);
            self.note_cold(1, entry);
            return;
        };
        if old.is_cold() {
            self.note_cold(-1, old);
        }
        let (before, old_expiry) = (old.memory(), old.expiry());
        let (entry, garbage) = old.overwrite(self.heap(), key.bytes, value, expiry, stamp);
        self.exchange(slot, before, entry);
        self.index().set_heat(slot, COOL);
        self.reschedule(key.hash, old_expiry, expiry);
        let has_room = entry.write_log_address(address);
        assert!(has_room, "the keyspace of a server with a log is logged");
        self.note_cold(1, entry);
        self.discard(garbage);
        self.relieve();
    }

    /// Makes room in the index for so many entries, if it has none yet.
    pub(crate) fn reserve(&mut self, entries: usize) {
        let charge = self.shared.charge;
        let before = self.index().memory();
        self.index().reserve(entries, charge);
        let after = self.index().memory();
        self.add_bytes(after - before);
    }
}
