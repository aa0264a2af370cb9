//! How much memory the ring takes.
//!
//! A ring that outlives its process has all of its memory from the beginning, and counts as a whole. Any
//! other is mapped as a whole, and its pages take memory when they are first written to: it counts as far as
//! it was filled at least once. Whoever counts memory is told as the log thread gets there; once the ring has
//! been filled to its end, nothing changes any more until it goes with the log.

use std::sync::atomic::{AtomicU64, Ordering};

use sys::ring::Ring;

/// See the module. Written by the log thread alone.
#[derive(Debug)]
pub(crate) struct Filled {
    /// Where the ring begins.
    start: u64,
    capacity: u64,
    bytes: AtomicU64,
    charge: fn(i64),
}

impl Filled {
    /// For a ring that begins at `start`.
    pub(crate) fn new(ring: &Ring, start: u64, charge: fn(i64)) -> Filled {
        let capacity = ring.capacity() as u64;
        match ring.reserved_bytes() {
            Some(bytes) => Filled::all(start, bytes, charge),
            None => Filled::from_nothing(start, capacity, charge),
        }
    }

    fn from_nothing(start: u64, capacity: u64, charge: fn(i64)) -> Filled {
        Filled {
            start,
            capacity,
            bytes: AtomicU64::new(0),
            charge,
        }
    }

    fn all(start: u64, bytes: u64, charge: fn(i64)) -> Filled {
        charge(bytes.cast_signed());
        Filled {
            bytes: AtomicU64::new(bytes),
            ..Filled::from_nothing(start, bytes, charge)
        }
    }

    /// Notes that everything below a position has been filled.
    #[inline]
    pub(crate) fn note(&self, position: u64) {
        if self.bytes() < self.capacity {
            self.grow(position);
        }
    }

    #[cold]
    fn grow(&self, position: u64) {
        let bytes = (position - self.start).min(self.capacity);
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        (self.charge)((bytes - before).cast_signed());
    }

    /// Bytes that take memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        (self.charge)(-self.bytes().cast_signed());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use super::*;

    static CHARGED: AtomicI64 = AtomicI64::new(0);

    fn charge(bytes: i64) {
        CHARGED.fetch_add(bytes, Ordering::Relaxed);
    }

    #[test]
    fn what_was_filled_once_counts_once_until_the_ring_goes() {
        let filled = Filled::from_nothing(1000, 4096, charge);
        for (position, bytes) in [
            (1000, 0),
            (1100, 100),
            (1100, 100),
            (5000, 4000),
            (50_000, 4096),
            (60_000, 4096),
        ] {
            filled.note(position);
            assert_eq!(filled.bytes(), bytes);
            assert_eq!(CHARGED.load(Ordering::Relaxed), bytes.cast_signed());
        }
        drop(filled);
        assert_eq!(CHARGED.load(Ordering::Relaxed), 0);
        let filled = Filled::all(1000, 5000, charge);
        filled.note(50_000);
        assert_eq!(filled.bytes(), 5000);
        assert_eq!(CHARGED.load(Ordering::Relaxed), 5000);
        drop(filled);
        assert_eq!(CHARGED.load(Ordering::Relaxed), 0);
    }
}
