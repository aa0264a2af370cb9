//! Large values: reference-counted buffers outside their entries.
//!
//! A reply holds a reference while it is sent, so nothing is copied and nobody waits for a slow reader. A
//! large value need not be copied on its way in either: the buffer a request was read into can become the
//! value by naming the part of it that is ([`Large::adopt`]); the few bytes around that part stay with it.
//!
//! Whose memory it is follows from the references: the keyspace's while anybody but readers has it, the
//! readers' afterwards ([`Lent`]).

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// A value in a buffer of its own.
pub type LargeValue = Arc<Large>;

/// See the module. Dereferences to the value's bytes.
#[derive(Debug, Default)]
pub struct Large {
    buffer: Vec<u8>,
    /// The part of the buffer that is the value; all of it when nothing is said.
    part: OnceLock<Range<usize>>,
    /// References that are [`Lent`].
    lent: AtomicUsize,
}

impl From<Vec<u8>> for Large {
    fn from(buffer: Vec<u8>) -> Large {
        Large {
            buffer,
            part: OnceLock::new(),
            lent: AtomicUsize::new(0),
        }
    }
}

/// A reference to a value that a reply holds until it is sent.
#[derive(Debug)]
pub struct Lent(LargeValue);

impl Lent {
    /// Lends a value.
    pub fn new(value: LargeValue) -> Lent {
        value.lent.fetch_add(1, Relaxed);
        Lent(value)
    }

    /// Bytes that this reference keeps in memory: none while anybody has the value to whom it is not lent,
    /// and then its share. Exact only while no reference is made or dropped.
    pub fn kept_bytes(&self) -> usize {
        let lent = self.0.lent.load(Relaxed);
        match Arc::strong_count(&self.0) > lent {
            true => 0,
            false => self.0.buffer.capacity() / lent.max(1),
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.lent.fetch_sub(1, Relaxed);
    }
}

impl Deref for Lent {
    type Target = Large;

    #[inline]
    fn deref(&self) -> &Large {
        &self.0
    }
}

impl Deref for Large {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self.part.get() {
            Some(part) => &self.buffer[part.clone()],
            None => &self.buffer,
        }
    }
}

impl Large {
    /// All bytes of the buffer, whatever part of it is the value.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// Whether a value of `len` bytes would waste less than an eighth of its size if it kept this buffer.
    pub fn holds_little_beside(&self, len: usize) -> bool {
        self.buffer.capacity() - len.min(self.buffer.capacity()) <= len / 8
    }

    /// Makes `part` of the buffer the value, once. Returns whether it was the first call.
    ///
    /// Panics when `part` is not inside the buffer.
    pub fn adopt(&self, part: Range<usize>) -> bool {
        assert!(part.start <= part.end && part.end <= self.buffer.len());
        self.part.set(part).is_ok()
    }

    /// The whole buffer, for whoever holds the last reference.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Bytes of memory the buffer takes.
    pub(crate) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// The value as a vector that can be changed; what was around it goes.
    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        if let Some(part) = self.part.take() {
            self.buffer.truncate(part.end);
            self.buffer.drain(..part.start);
        }
        &mut self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_becomes_the_value_once_and_is_changed_alone() {
        let mut large = Large::from(b"*3 SET key VALUE\r\n".to_vec());
        assert!(large.adopt(11..16));
        assert!(!large.adopt(0..1));
        assert_eq!(
            (&large[..], large.buffer()),
            (&b"VALUE"[..], &b"*3 SET key VALUE\r\n"[..])
        );
        large.bytes_mut().extend_from_slice(b"!");
        assert_eq!(
            (&large[..], large.buffer()),
            (&b"VALUE!"[..], &b"VALUE!"[..])
        );
        assert!(large.adopt(6..6));
        assert!(large.is_empty());
    }

    #[test]
    #[should_panic(expected = "part.end <= self.buffer.len()")]
    fn a_part_outside_the_buffer_is_refused() {
        Large::from(vec![0; 4]).adopt(2..5);
    }
}
