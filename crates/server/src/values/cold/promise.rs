//! Promised memory: bytes of values that are being read back. They count as used before the values are read,
//! so that no other request finds room there meanwhile.
//!
//! ```text
//!  asked for   the read buffer, and for a short value its copy in the entry   promised
//!  read        the buffer is counted itself                                   its bytes are released
//!  given back  the entry is counted itself                                    the rest is released
//! ```

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use keyspace::INLINE_VALUE_MAX;

use super::Wanted;

/// Sum of the promised bytes.
#[derive(Default)]
pub(crate) struct Promises(AtomicUsize);

/// Bytes for reading a value, and for giving it back.
fn steps(wanted: &Wanted) -> (usize, usize) {
    let len = wanted.value.len as usize;
    let is_copied = len <= INLINE_VALUE_MAX && !wanted.stays_out;
    (len, if is_copied { len } else { 0 })
}

/// Bytes of memory for reading a value and giving it back.
pub(crate) fn needed(wanted: &Wanted) -> usize {
    taken(wanted.value.len as usize)
}

/// Bytes of memory that a value of length `len` takes for a command that reads it. A short one is copied:
/// there is the read buffer, or the reply.
pub(crate) fn taken(len: usize) -> usize {
    if len <= INLINE_VALUE_MAX {
        2 * len
    } else {
        len
    }
}

impl Promises {
    /// Promised bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// Promises the memory of values.
    pub(crate) fn make(&self, wanted: &[Wanted]) {
        let both = |(read, entry)| read + entry;
        let bytes = wanted.iter().map(steps).map(both).sum::<usize>();
        self.0.fetch_add(bytes, Relaxed);
        sys::memory::charge(bytes as i64);
    }

    /// Releases the promise of a read buffer, after success or failure.
    pub(crate) fn read(&self, wanted: &Wanted) {
        self.release(steps(wanted).0);
    }

    /// Releases the promise of a copy in the entry, after it was made or became unnecessary.
    pub(crate) fn given_back(&self, wanted: &Wanted) {
        self.release(steps(wanted).1);
    }

    fn release(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Relaxed);
        sys::memory::charge(-(bytes as i64));
    }
}
