//! The log thread's look at the records that pass it: where a segment can end, and what is in it.
//!
//! It reads headers alone, which are in the ring and have just been written. What a full segment holds is known from that,
//! without reading the file.
//!
//! Invariants:
//! 1. The scan is never behind what was written, and stands where a record begins; at or behind the limit, it goes no further.
//! 2. It goes into batches, but a segment ends only behind one.

use sys::ring::Consumer;

use crate::record::{self, Glance, HEADER};

/// What is in a segment, as far as the scan has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Bytes of records that hold whole values.
    pub(crate) bases: u64,
    /// Bytes of records that say that a key is gone.
    pub(crate) tombstones: u64,
    /// Bytes that hints of all its records would take.
    pub(crate) hints: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Where the next record begins. Behind what is complete, if the record in front of it is not.
    at: u64,
    /// Where the batch ends that the scan is or was inside of.
    batch_end: u64,
    tally: Tally,
}

impl Scan {
    pub(crate) fn new(start: u64) -> Scan {
        Scan {
            at: start,
            batch_end: start,
            tally: Tally::default(),
        }
    }

    /// Where the next record begins that was not looked at.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// Whether a segment could end there.
    pub(crate) fn is_between(&self) -> bool {
        self.at >= self.batch_end
    }

    /// Goes on until everything complete was looked at, or to the first place at or behind `limit` where a segment can end.
    /// Returns how far whole segments or unfinished ones can be written now.
    pub(crate) fn advance(&mut self, consumer: &Consumer, complete: u64, limit: u64) -> u64 {
        loop {
            if self.is_between() && self.at >= limit {
                return self.at.min(complete);
            }
            if self.at >= complete {
                return complete;
            }
            // Appenders publish headers in one piece.
            let Some(end) = Some(self.at + HEADER as u64).filter(|&end| end <= complete) else {
                return self.at;
            };
            let header = consumer.bytes(self.at..end);
            self.pass(header.first_chunk().expect("so many were asked for"));
        }
    }

    fn pass(&mut self, header: &[u8; HEADER]) {
        let stride = record::stride(header);
        match record::glance(header) {
            Glance::Batch(bytes) => self.batch_end = self.at + bytes,
            Glance::Base(hint) => {
                self.tally.bases += stride;
                self.tally.hints += hint;
            }
            Glance::Tombstone(hint) => {
                self.tally.tombstones += stride;
                self.tally.hints += hint;
            }
            Glance::Amendment(hint) => self.tally.hints += hint,
            Glance::Other => {}
        }
        self.at += stride;
        assert!(self.at <= self.batch_end || self.is_between());
    }

    /// What has been passed since the last call.
    pub(crate) fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }
}
