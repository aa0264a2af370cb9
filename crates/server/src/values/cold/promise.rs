//! Memory that values will take which are being read back: it counts as used before they are read, so that
//! nobody else finds room there meanwhile.
//!
//! ```text
//!  asked for   what is read, and for a short value the copy of it that becomes part of its entry     promised
//!  read        the buffer counts for itself                                                           as much less is promised
//!  given back  so does the entry                                                                      the rest is not promised any more
//! ```

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use keyspace::INLINE_VALUE_MAX;

use super::Wanted;

/// See the module.
#[derive(Default)]
pub(crate) struct Promises(AtomicUsize);

/// Bytes that reading a value takes, and that giving it back takes.
fn steps(wanted: &Wanted) -> (usize, usize) {
    let len = wanted.value.len as usize;
    let is_copied = len <= INLINE_VALUE_MAX && !wanted.stays_out;
    (len, if is_copied { len } else { 0 })
}

/// Bytes of memory that it takes to bring a value back.
pub(crate) fn needed(wanted: &Wanted) -> usize {
    taken(wanted.value.len as usize)
}

/// Bytes that a value of a length takes for a command that reads it: of a short one there is a copy, in what
/// was read or in the reply.
pub(crate) fn taken(len: usize) -> usize {
    if len <= INLINE_VALUE_MAX {
        2 * len
    } else {
        len
    }
}

impl Promises {
    /// Bytes that are promised now.
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// Counts what values will take.
    pub(crate) fn make(&self, wanted: &[Wanted]) {
        let both = |(read, entry)| read + entry;
        let bytes = wanted.iter().map(steps).map(both).sum::<usize>();
        self.0.fetch_add(bytes, Relaxed);
        sys::memory::charge(bytes as i64);
    }

    /// A value was read, or could not be.
    pub(crate) fn read(&self, wanted: &Wanted) {
        self.release(steps(wanted).0);
    }

    /// A value was given back to its entry, or is not needed any more.
    pub(crate) fn given_back(&self, wanted: &Wanted) {
        self.release(steps(wanted).1);
    }

    fn release(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Relaxed);
        sys::memory::charge(-(bytes as i64));
    }
}
