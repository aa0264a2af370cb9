//! One thread's claims of room in the ring, and filling them.

use std::sync::Arc;

use sys::ring::Producer;

use crate::address::Lsn;
use crate::engine::Engine;
use crate::record::{self, Draft};

/// See the module.
pub(crate) struct Claims {
    pub(crate) engine: Arc<Engine>,
    pub(crate) producer: Producer,
    /// Bytes of the ring that may still be claimed.
    pub(crate) credit: u64,
    /// Where the latest record ends.
    pub(crate) end: Lsn,
    /// Bytes that were appended.
    pub(crate) appended: u64,
    /// Something was appended since the last commit.
    pub(crate) has_appended: bool,
}

impl Claims {
    pub(crate) fn new(engine: Arc<Engine>, producer: Producer) -> Claims {
        Claims {
            end: engine.tail(),
            engine,
            producer,
            credit: 0,
            appended: 0,
            has_appended: false,
        }
    }

    /// Appends one record.
    #[inline]
    pub(crate) fn append(&mut self, draft: &Draft<'_>) -> Lsn {
        let at = self.claim(draft.bytes());
        self.fill(at, draft);
        self.filled();
        Lsn(at)
    }

    /// All that was claimed is filled, and may be written. This is said at once and not with the commit: who
    /// appends next may have to wait for a lock, and who holds that may wait for room in the ring, which
    /// there is only when everything below is written.
    #[inline]
    pub(crate) fn filled(&mut self) {
        self.producer.commit();
    }

    /// Fills a claim that was made for this record.
    #[inline]
    pub(crate) fn fill(&mut self, at: u64, draft: &Draft<'_>) {
        if let Ok(len) = usize::try_from(draft.bytes())
            && let Some(slot) = self.slot(at, len)
        {
            record::write(slot, Lsn(at), draft);
        } else {
            self.fill_slowly(at, draft);
        }
    }

    /// Claims room for a record, with credit if there is enough.
    #[inline]
    pub(crate) fn claim(&mut self, bytes: u64) -> u64 {
        match self.credit.checked_sub(bytes) {
            Some(left) => self.credit = left,
            None => self.engine.credit.owe(bytes),
        }
        let at = self.producer.claim(bytes);
        self.end = Lsn(at + bytes);
        self.appended += bytes;
        self.has_appended = true;
        at
    }

    /// Fills a claim for which there is no room yet. It waits inside of a lock, for the log thread alone,
    /// which takes none of those, and waits for no appender that does ([`Claims::filled`]): it happens
    /// behind or with records that are larger than a window.
    #[cold]
    fn fill_slowly(&mut self, at: u64, draft: &Draft<'_>) {
        let mut parts = self.parts(at, draft.bytes());
        record::write_in_parts(Lsn(at), draft, |bytes| parts.put(bytes));
    }

    /// The part of a claim from `at` on, if there is room for it.
    #[inline]
    pub(crate) fn slot(&mut self, at: u64, len: usize) -> Option<&mut [u8]> {
        self.producer.fill(at, len)
    }

    /// Fills a claim piece by piece.
    pub(crate) fn parts(&mut self, at: u64, bytes: u64) -> Parts<'_> {
        Parts {
            engine: &self.engine,
            producer: &mut self.producer,
            at,
            end: at + bytes,
        }
    }
}

/// Fills one claim piece by piece, waiting for room in between.
pub(crate) struct Parts<'a> {
    engine: &'a Engine,
    producer: &'a mut Producer,
    at: u64,
    end: u64,
}

impl Parts<'_> {
    pub(crate) fn put(&mut self, mut bytes: &[u8]) {
        debug_assert!(self.at + bytes.len() as u64 <= self.end);
        // Small enough that the log thread has something to do while the next one is copied.
        let most = self.engine.ring.capacity() / 16;
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(bytes.len().min(most));
            let at = self.at;
            let slot = match self.producer.fill(at, piece.len()) {
                Some(slot) => slot,
                None => {
                    // Pieces end anywhere, but the log thread reads lengths at multiples of 8.
                    self.producer.publish(at & !7);
                    let end = at + piece.len() as u64;
                    let ring = &self.engine.ring;
                    self.engine
                        .wait_for_room(|| ring.head() + ring.capacity() as u64 >= end);
                    self.producer
                        .fill(at, piece.len())
                        .expect("there is room now")
                }
            };
            slot.copy_from_slice(piece);
            self.at += piece.len() as u64;
            bytes = rest;
        }
    }
}
