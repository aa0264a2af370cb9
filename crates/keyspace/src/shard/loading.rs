//! Filling a shard while a log is loaded.

use super::{EntryRef, Expiry, Guard, Key, Overwritten};
use crate::entry::{Form, LogAddress, NewValue, Stamp};

impl Guard<'_> {
    /// Sets a key to what a log says, whatever it was before: value, expiry and form. The entry counts as used at `used` (Unix, ms),
    /// for the guard's own time is before everything then. `log` is told of what was replaced, and says where the entry is in the log.
    #[inline]
    pub fn load(
        &mut self,
        key: Key<'_>,
        value: &[u8],
        expiry: Option<i64>,
        form: Form,
        used: i64,
        log: impl FnOnce(Option<Overwritten>) -> Option<LogAddress>,
    ) {
        let stamp = Stamp::new(self.shared.noting.first(used), self.shared.snapshot.mark());
        let expiry = expiry.map_or(Expiry::Clear, Expiry::At);
        let log = |_: EntryRef<'_>, replaced| log(replaced);
        self.set_stamped(key, NewValue::copy_of(value), expiry, form, stamp, log);
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
