//! Telling the log which records are dead.
//!
//! Whoever replaces or removes an entry says where its base record was. That is noted in a list of one's own,
//! one number per segment, and told to everybody now and then: no counter is shared on the way of a write.
//!
//! Budget of [`Liveness::dead`]: a binary search in the list of segments, one addition.

use std::sync::Arc;

use crate::address::{Address, Lsn};
use crate::blob::Blobs;
use crate::limits::{DEAD_SLACK, EARLY_DEAD};
use crate::record::base_bytes;
use crate::segments::{Index, Segments};
use sys::ring::Ring;

/// One thread's notes about dead records.
pub struct Liveness {
    segments: Arc<Segments>,
    registry: Arc<Blobs>,
    /// The ring whose tail tells when something died; none at the start, when nothing is appended.
    ring: Option<Arc<Ring>>,
    index: Arc<Index>,
    /// Dead bytes noted since they were last told, by number in `index`, and which numbers have some.
    dead: Vec<u64>,
    touched: Vec<usize>,
    /// Dead records that are not in a segment yet.
    early: Vec<(Lsn, u64)>,
    /// Dead values that have files of their own.
    blobs: Vec<Lsn>,
    noted: u64,
}

impl Liveness {
    pub(crate) fn new(
        segments: Arc<Segments>,
        registry: Arc<Blobs>,
        ring: Option<Arc<Ring>>,
    ) -> Liveness {
        let index = segments.map().index.clone();
        let mut liveness = Liveness {
            segments,
            registry,
            ring,
            index: Arc::default(),
            dead: Vec::new(),
            touched: Vec::new(),
            early: Vec::new(),
            blobs: Vec::new(),
            noted: 0,
        };
        liveness.adopt(index);
        liveness
    }

    /// The entry at `address` was replaced or removed; `key` and `value` are the lengths it had. Call it
    /// while the shard is locked in which that happened, after whatever was appended for it.
    #[inline]
    pub fn dead(&mut self, address: Address, key: usize, value: usize) {
        self.note(address.lsn(), base_bytes(address, key as u64, value as u64));
        if address.is_blob() {
            self.blobs.push(address.lsn());
        }
    }

    /// The leaf whose record is at `lsn` and takes `bytes` bytes of the log
    /// ([`Appender::leaf_bytes`](crate::Appender::leaf_bytes)) was replaced or removed; or so many bytes of
    /// it, because it has a share of that record. Called as [`Liveness::dead`] is.
    #[inline]
    pub fn dead_leaf(&mut self, lsn: Lsn, bytes: u64) {
        self.note(lsn, bytes);
    }

    /// The same for a record alone: its value's file goes on living.
    pub(crate) fn moved(&mut self, lsn: Lsn, bytes: u64) {
        self.note(lsn, bytes);
    }

    #[inline]
    fn note(&mut self, lsn: Lsn, bytes: u64) {
        self.noted += bytes;
        match self.index.find(lsn) {
            Some(number) if number < self.dead.len() => {
                if self.dead[number] == 0 {
                    self.touched.push(number);
                }
                self.dead[number] += bytes;
            }
            Some(_) => self.note_early(lsn, bytes),
            // Its segment is gone already: compaction was quicker.
            None => {}
        }
    }

    #[cold]
    fn note_early(&mut self, lsn: Lsn, bytes: u64) {
        self.early.push((lsn, bytes));
        if self.early.len() >= EARLY_DEAD {
            self.publish();
            // The segment they are in has still not begun. That close to it, the one before will do.
            if let Some(last) = self.index.figures.last() {
                self.early
                    .drain(..)
                    .for_each(|(_, bytes)| last.note_dead(bytes));
            }
        }
    }

    /// Whether it is time to publish.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.noted >= DEAD_SLACK
            || !self.blobs.is_empty()
            || self.noted > 0 && self.index.version != self.segments.version()
    }

    /// Tells everybody what was noted.
    pub fn publish(&mut self) {
        for number in self.touched.drain(..) {
            self.index.figures[number].note_dead(std::mem::take(&mut self.dead[number]));
        }
        self.noted = 0;
        if !self.blobs.is_empty() {
            let after = self.ring.as_ref().map(|ring| Lsn(ring.tail()));
            self.registry.died(&self.blobs, after);
            self.blobs.clear();
        }
        if self.index.version != self.segments.version() {
            self.adopt(self.segments.map().index.clone());
            let early = std::mem::take(&mut self.early);
            for (lsn, bytes) in early {
                match self.index.find(lsn) {
                    Some(number) if number < self.dead.len() => {
                        self.index.figures[number].note_dead(bytes)
                    }
                    Some(_) => self.early.push((lsn, bytes)),
                    None => {}
                }
            }
        }
    }

    fn adopt(&mut self, index: Arc<Index>) {
        self.dead.clear();
        self.dead.resize(index.figures.len(), 0);
        // Room for all of them, so that noting never allocates.
        self.touched.reserve(index.figures.len());
        self.index = index;
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        self.publish();
    }
}
