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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{DbId, Lsn};
    use crate::record::{Draft, Tag, batch_header, write};
    use sys::ring::{Producer, Ring};

    const DB: DbId = DbId(0);
    const START: u64 = 4096;

    fn put(producer: &mut Producer, draft: &Draft<'_>) {
        let at = producer.claim(draft.bytes());
        let slot = producer
            .fill(at, draft.bytes() as usize)
            .expect("it is empty");
        write(slot, Lsn(at), draft);
    }

    /// A ring with a set, a batch of two deletes, and an expiry; with where each ends.
    fn records() -> (Consumer, u64, [u64; 3]) {
        let value = [1; 100];
        let set = Draft::set(DB, b"key", Tag::default(), None, &value);
        let delete = Draft::delete(DB, b"key").inner();
        let expire = Draft::expire(DB, b"key", Some(9));
        let (ring, mut consumer) = Ring::new(1 << 16, START, 1).expect("memory");
        let mut producer = ring.producer().expect("the first");
        put(&mut producer, &set);
        let first = START + set.bytes();
        let inside = 2 * delete.bytes();
        // A claim for itself: only what is next to it makes it a batch.
        let header = batch_header(Lsn(first), 2, inside);
        let at = producer.claim(HEADER as u64);
        let slot = producer.fill(at, HEADER).expect("it is empty");
        slot.copy_from_slice(&header);
        for draft in [&delete, &delete, &expire] {
            put(&mut producer, draft);
        }
        producer.commit();
        let second = first + HEADER as u64 + inside;
        let complete = consumer.complete();
        (consumer, complete, [first, second, second + expire.bytes()])
    }

    #[test]
    fn a_segment_ends_behind_the_record_that_reaches_the_limit() {
        let (consumer, all, ends) = records();
        for limit in START + 1..=ends[2] {
            // However much of it becomes complete at a time.
            for step in [8, 16, 24, 40, 1 << 10] {
                let mut scan = Scan::new(START);
                let mut complete = START;
                while !(scan.is_between() && scan.position() >= limit) {
                    complete = (complete + step).min(all);
                    let until = scan.advance(&consumer, complete, limit);
                    assert!(until <= complete && until <= scan.position());
                }
                let end = ends.into_iter().find(|&end| end >= limit);
                assert_eq!(Some(scan.position()), end, "{limit} {step}");
            }
        }
    }

    #[test]
    fn what_has_passed_is_told_once() {
        let (consumer, all, [first, second, _]) = records();
        let mut scan = Scan::new(START);
        assert_eq!(scan.advance(&consumer, all, u64::MAX), all);
        let expected = Tally {
            bases: first - START,
            tombstones: second - first - HEADER as u64,
            // Position, header and key, of one with an expiry.
            hints: 3 * 32 + 40,
        };
        assert_eq!(scan.take_tally(), expected);
        assert_eq!(scan.take_tally(), Tally::default());
    }
}
