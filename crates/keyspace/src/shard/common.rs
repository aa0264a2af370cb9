//! [`Guard::write`] by the names of its common cases.

use super::guard::Guard;
use super::view::{Detached, EntryRef, Overwritten};
use super::writing::{Expiry, New, no_log};
use crate::entry::{LogAddress, Type};
use crate::hash::Key;
use crate::large::LargeValue;

impl Guard<'_> {
    /// Sets a key to a string that was set as a whole.
    #[inline]
    pub fn set(&mut self, key: Key<'_>, value: &[u8], expiry: Expiry) {
        self.write(key, New::bytes(value).expiry(expiry), no_log);
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
        self.write(key, New::bytes(value).expiry(expiry), |entry, old| {
            Some(log(entry, old))
        });
    }

    /// [`Guard::set`] with a value that already has a buffer of its own.
    #[inline]
    pub fn set_large(&mut self, key: Key<'_>, value: LargeValue, expiry: Expiry) {
        self.write(key, New::large(&value).expiry(expiry), no_log);
    }

    /// [`Guard::set_large`] with a value of this type, logged by `log` if there is a log.
    #[inline]
    pub fn set_formed(
        &mut self,
        key: Key<'_>,
        value: LargeValue,
        expiry: Expiry,
        of: impl Into<Type>,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> Option<LogAddress>,
    ) {
        self.write(key, New::large(&value).expiry(expiry).of(of), log);
    }

    /// [`Guard::set`] with a value that the log alone has: see [`New::cold`].
    #[inline]
    pub fn set_cold(
        &mut self,
        key: Key<'_>,
        len: u64,
        expiry: Expiry,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> LogAddress,
    ) {
        self.write(key, New::cold(len).expiry(expiry), |entry, old| {
            Some(log(entry, old))
        });
    }

    /// Gives a key what [`New::detached`] says.
    #[inline]
    pub fn attach(
        &mut self,
        key: Key<'_>,
        value: Detached,
        log: impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> Option<LogAddress>,
    ) {
        self.write(key, New::detached(&value), log);
    }

    /// Sets a key to what a log says: value, expiry and type, used at a time (Unix, ms), for the guard's own
    /// time is before everything then.
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
        let new = New::bytes(value).expiry(expiry).of(of).used(used);
        self.write(key, new, |_, old| log(old));
    }

    /// [`Guard::load`] of a value of `len` bytes, at least [`crate::COLD_MIN_BYTES`], that stays in the log.
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
        let new = New::cold(len as u64).expiry(expiry).of(of).used(used);
        self.write(key, new, |_, old| Some(log(old)));
    }
}
