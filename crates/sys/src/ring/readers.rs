//! Readers of bytes that the consumer has not released yet: it waits until they have ended.
//!
//! Both sides change the number of readers by a read-modify-write, so one of the two comes first. If that is
//! the reader, the consumer sees it and waits. If it is the consumer, the reader sees the position that the
//! consumer has stored before, and reads nothing below it.

use std::sync::atomic::Ordering;

use super::watermarks::Word;

/// See the module.
#[derive(Debug)]
pub struct Readers<W> {
    /// Readers at work.
    inside: W,
    /// Everything below is released, or is about to be.
    released: W,
}

/// The end of a read.
struct Leave<'a, W: Word>(&'a W);

impl<W: Word> Drop for Leave<'_, W> {
    fn drop(&mut self) {
        self.0.fetch_add(u64::MAX, Ordering::Release);
    }
}

impl<W: Word> Readers<W> {
    /// No readers of a ring of which everything below `start` is released.
    pub fn new(start: u64) -> Readers<W> {
        Readers {
            inside: W::new(0),
            released: W::new(start),
        }
    }

    /// Runs `read`, unless the byte at `at` is released, or about to be. Neither that byte nor a later one is
    /// released before `read` ends.
    pub fn read<R>(&self, at: u64, read: impl FnOnce() -> R) -> Option<R> {
        self.inside.fetch_add(1, Ordering::AcqRel);
        let _leave = Leave(&self.inside);
        let is_kept = self.released.load(Ordering::Acquire) <= at;
        is_kept.then(read)
    }

    /// Announces that everything below `position` is released, and waits for the readers that have begun
    /// before.
    pub fn release(&self, position: u64, mut pause: impl FnMut()) {
        self.released.store(position, Ordering::Release);
        let mut inside = self.inside.fetch_add(0, Ordering::AcqRel);
        while inside > 0 {
            pause();
            inside = self.inside.load(Ordering::Acquire);
        }
    }
}
