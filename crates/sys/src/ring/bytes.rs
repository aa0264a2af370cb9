//! The ring's bytes: who fills them, and who empties them.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::memory::{Mirror, Shared, anonymous_file, control_bytes};
use super::readers::Readers;
use super::watermarks::{Mark, Watermarks};

/// The name of a ring's file.
#[derive(Debug)]
pub(super) struct Name(pub(super) PathBuf);

impl Name {
    fn remove(self) -> std::io::Result<()> {
        std::fs::remove_file(self.0)
    }
}

/// What producers and the consumer share.
#[derive(Debug)]
pub struct Ring {
    memory: Mirror,
    /// The watermarks, and how far the consumer is: it alone writes that.
    shared: Shared,
    readers: Readers<AtomicU64>,
    /// Which producers exist.
    taken: Mutex<Box<[bool]>>,
    /// The name of its file, if it has one.
    name: Mutex<Option<Name>>,
    is_named: bool,
}

/// One thread's right to fill the ring.
#[derive(Debug)]
pub struct Producer {
    ring: Arc<Ring>,
    number: usize,
    /// Something was claimed since the last commit.
    is_active: bool,
    /// The latest claim, without what was published of it.
    claim: Range<u64>,
    /// Where the latest claim ends, or one would have begun that was never made.
    end: u64,
    /// `head + capacity` when it was last looked at.
    limit: u64,
}

/// The one that empties the ring.
#[derive(Debug)]
pub struct Consumer {
    ring: Arc<Ring>,
    head: u64,
    complete: u64,
}

impl Ring {
    /// A ring of `capacity` bytes (a power of two, and whole pages) whose first position is `start`,
    /// for at most `producers` producers at a time.
    ///
    /// # Errors
    /// The system has no memory or no address space for it.
    pub fn new(
        capacity: usize,
        start: u64,
        producers: usize,
    ) -> std::io::Result<(Arc<Ring>, Consumer)> {
        let file = anonymous_file()?;
        file.set_len((control_bytes(producers) as u64).saturating_add(capacity as u64))?;
        Ring::of_file(&file, None, capacity, start, producers)
    }

    /// A ring whose memory is this file, which is so long and all zeroes behind its header.
    pub(super) fn of_file(
        file: &std::fs::File,
        name: Option<Name>,
        capacity: usize,
        start: u64,
        producers: usize,
    ) -> std::io::Result<(Arc<Ring>, Consumer)> {
        assert!(
            capacity.is_power_of_two(),
            "a ring's capacity is a power of two"
        );
        let ring = Arc::new(Ring {
            memory: Mirror::new(file, control_bytes(producers), capacity)?,
            shared: Shared::new(file, producers, start)?,
            readers: Readers::new(start),
            taken: Mutex::new(vec![false; producers].into()),
            is_named: name.is_some(),
            name: Mutex::new(name),
        });
        let consumer = Consumer {
            ring: ring.clone(),
            head: start,
            complete: start,
        };
        Ok((ring, consumer))
    }

    /// A further producer; `None` when there are as many as there may be.
    pub fn producer(self: &Arc<Ring>) -> Option<Producer> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let number = taken.iter().position(|taken| !taken)?;
        taken[number] = true;
        Some(Producer {
            ring: self.clone(),
            number,
            is_active: false,
            claim: 0..0,
            end: self.tail(),
            limit: 0,
        })
    }

    /// Bytes of the ring.
    pub fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// Bytes that its file takes, if it has one with a name: all of them are there from the beginning.
    pub fn reserved_bytes(&self) -> Option<u64> {
        let bytes = control_bytes(self.marks().producers()) + self.capacity();
        self.is_named.then_some(bytes as u64)
    }

    /// Takes the name of the ring's file away, if it has one: what is in the ring ends with the process from
    /// here on.
    ///
    /// # Errors
    /// The system refuses.
    pub fn forget(&self) -> std::io::Result<()> {
        let mut name = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        name.take().map_or(Ok(()), Name::remove)
    }

    #[inline]
    fn marks(&self) -> &Watermarks<AtomicU64> {
        self.shared.marks()
    }

    /// The position that the next claim gets, or one that it has passed.
    #[inline]
    pub fn tail(&self) -> u64 {
        self.marks().tail()
    }

    /// Everything below has been released.
    #[inline]
    pub fn head(&self) -> u64 {
        self.marks().progress().head.load(Ordering::Acquire)
    }

    /// Copies the bytes from `at` on, if they are complete and not released. Whether they are.
    pub fn read(&self, at: u64, into: &mut [u8]) -> bool {
        let end = at.saturating_add(into.len() as u64);
        let read = self.readers.read(at, || {
            let is_complete = end <= self.marks().complete();
            if is_complete {
                let index = self.index(at);
                // Bytes that are complete and not released lie within a capacity, as for `Consumer::bytes`.
                // Nothing at `at` or above is released before this ends: `Consumer::discard` waits for it.
                // SAFETY: so they lie inside the doubled mapping, and no producer writes them meanwhile.
                into.copy_from_slice(unsafe { self.memory.slice(index, into.len()) });
            }
            is_complete
        });
        read == Some(true)
    }

    /// Where position `at` lives.
    #[inline]
    fn index(&self, at: u64) -> usize {
        // The remainder fits: it is below the capacity.
        (at & (self.memory.len() as u64 - 1)) as usize
    }
}

impl Producer {
    /// This producer's number: below the ring's number of producers, and nobody else's while it lives.
    pub fn number(&self) -> usize {
        self.number
    }

    #[inline]
    fn mark(&self) -> &Mark<AtomicU64> {
        self.ring.marks().producer(self.number)
    }

    /// The ring it fills.
    pub fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// Claims the next `bytes` bytes and returns their first position. The claim before it must be
    /// filled by now. One atomic addition.
    #[inline]
    pub fn claim(&mut self, bytes: u64) -> u64 {
        let marks = self.ring.marks();
        let mark = marks.producer(self.number);
        mark.begin(self.end, bytes);
        let start = marks.reserve(bytes);
        let end = start + bytes;
        mark.claimed(end);
        self.is_active = true;
        self.end = end;
        self.claim = start..end;
        start
    }

    /// The bytes from `at` on, `len` of them, to be written; `None` while the consumer has not
    /// released what lives there. They are whatever they were.
    ///
    /// # Panics
    /// If they are not part of the latest claim, or already published.
    #[inline]
    pub fn fill(&mut self, at: u64, len: usize) -> Option<&mut [u8]> {
        let end = at + len as u64;
        assert!(
            self.claim.start <= at && end <= self.claim.end,
            "only what was claimed last is filled"
        );
        if end > self.limit {
            self.limit = self.ring.head() + self.ring.memory.len() as u64;
            if end > self.limit {
                // Everything claimed before is filled. Without saying so this producer could wait for
                // room that the consumer cannot make, because it waits for this producer.
                self.mark().publish(self.claim.start);
                return None;
            }
        }
        let index = self.ring.index(at);
        // The range is at most a capacity long: both `at` and `end` are within one of the head. Nobody
        // else touches its bytes: the claim is exclusive (invariant 1), what lived there was released
        // (`head` was read with Acquire from the consumer's Release), and the consumer does not pass
        // this producer's watermark, which is at or below `claim.start` (invariant 3).
        // SAFETY: so it lies inside the doubled mapping and is this producer's alone; the borrow of
        // `self` keeps a second slice from being handed out.
        Some(unsafe { self.ring.memory.slice_mut(index, len) })
    }

    /// Lets the consumer read what was claimed and filled so far, below `position`, though the latest
    /// claim goes on behind it.
    ///
    /// # Panics
    /// If `position` is not inside the latest claim.
    pub fn publish(&mut self, position: u64) {
        assert!(self.claim.start <= position && position <= self.claim.end);
        self.claim.start = position;
        self.mark().publish(position);
    }

    /// Lets the consumer read everything that was claimed: all of it is filled.
    #[inline]
    pub fn commit(&mut self) {
        if self.is_active {
            self.is_active = false;
            self.claim = 0..0;
            self.mark().end();
        }
    }

    /// Whether something was claimed since the last commit.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.is_active
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        // A thread that dies in the middle of a record keeps its watermark, so nothing of it is read.
        if self.is_active && std::thread::panicking() {
            return;
        }
        self.commit();
        let mut taken = self
            .ring
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        taken[self.number] = false;
    }
}

impl Consumer {
    /// Everything below the returned position is filled and can be read.
    pub fn complete(&mut self) -> u64 {
        self.complete = self.ring.marks().complete().max(self.complete);
        self.complete
    }

    /// Everything below was released.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The bytes at `range`.
    ///
    /// # Panics
    /// If they are released already, or [`Consumer::complete`] has not said that they can be read.
    pub fn bytes(&self, range: Range<u64>) -> &[u8] {
        assert!(
            self.head <= range.start && range.start <= range.end && range.end <= self.complete,
            "only what is complete and not released is read"
        );
        let len = usize::try_from(range.end - range.start).expect("it is at most the capacity");
        let index = self.ring.index(range.start);
        // Producers fill only below `head + capacity`, so what is complete lies within a capacity of the
        // head. What they have yet to fill is at or above `complete` (the watermarks were read with
        // Acquire after their Release).
        // SAFETY: so it lies inside the doubled mapping, and nobody writes it until it is released, for
        // which `release` needs `self` exclusively.
        unsafe { self.ring.memory.slice(index, len) }
    }

    /// Gives the bytes below `position` back to the producers.
    ///
    /// # Panics
    /// If some of them have not been complete.
    pub fn release(&mut self, position: u64) {
        // First: what lies below is where it was passed on to, and its place may be filled again from the
        // next store on.
        let progress = self.ring.marks().progress();
        progress.passed.store(position, Ordering::Release);
        self.discard(position);
    }

    /// The same for bytes that were not passed on to anybody: who reads the ring's file when its process is
    /// dead finds them missing.
    ///
    /// # Panics
    /// As [`Consumer::release`].
    pub fn discard(&mut self, position: u64) {
        assert!(self.head <= position && position <= self.complete);
        self.head = position;
        self.ring.readers.release(position, std::thread::yield_now);
        let progress = self.ring.marks().progress();
        progress.head.store(position, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
