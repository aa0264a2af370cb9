//! The log thread's look at the records that pass it: where a segment can end, and what is in it.
//!
//! It reads headers, which are in the ring and have just been written. What a full segment holds is known
//! from that, without reading the file. Where values are large it gathers hints as well ([`crate::hint`]).
//!
//! Invariants:
//! 1. The scan is never behind what was written, and stands where a record begins; at or behind the limit, it
//!    goes no further.
//! 2. It goes into batches, but a segment ends only behind one.

use sys::ring::Consumer;

use crate::address::Lsn;
use crate::limits::HINT_SLACK_SHARE;
use crate::options::Options;
use crate::record::{self, Glance, HEADER};

/// What is in a segment, as far as the scan has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Bytes of records that hold whole values, or leaves.
    pub(crate) bases: u64,
    /// Bytes of records that say that a key is gone.
    pub(crate) tombstones: u64,
    /// Bytes of records that say what happens to elements of collections.
    pub(crate) edits: u64,
    /// Hints of all its records; `None` if they are not worth their space.
    pub(crate) hints: Option<Vec<u8>>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Where the next record begins. Behind what is complete, if the record in front of it is not.
    at: u64,
    /// The last place up to what is complete where a record, or the batch that it is in, ends.
    boundary: u64,
    /// Where the batch ends that the scan is or was inside of.
    batch_end: u64,
    /// Where the segment begins.
    start: u64,
    bases: u64,
    tombstones: u64,
    edits: u64,
    hints: Vec<u8>,
    gathers: bool,
    hint_percent: u64,
    hint_bytes: u64,
    hint_slack: u64,
}

impl Scan {
    pub(crate) fn new(start: u64, options: &Options) -> Scan {
        Scan {
            at: start,
            boundary: start,
            batch_end: start,
            start,
            bases: 0,
            tombstones: 0,
            edits: 0,
            hints: Vec::new(),
            gathers: true,
            hint_percent: options.hint_percent,
            hint_bytes: options.hint_bytes,
            hint_slack: options.segment_bytes / HINT_SLACK_SHARE,
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

    /// The last place up to what was complete in the last [`Scan::advance`] where a record or a batch ends.
    pub(crate) fn boundary(&self) -> u64 {
        self.boundary
    }

    /// Goes on until everything complete was looked at, or to the first place at or behind `limit` where a
    /// segment can end. Returns how far whole segments or unfinished ones can be written now.
    pub(crate) fn advance(&mut self, consumer: &Consumer, complete: u64, limit: u64) -> u64 {
        loop {
            if self.is_between() {
                if self.at <= complete {
                    self.boundary = self.at;
                }
                if self.at >= limit {
                    return self.at.min(complete);
                }
            }
            if self.at >= complete {
                return complete;
            }
            // Appenders publish headers in one piece.
            let Some(end) = Some(self.at + HEADER as u64).filter(|&end| end <= complete) else {
                return self.at;
            };
            let header = consumer.bytes(self.at..end);
            let header = header.first_chunk().expect("so many were asked for");
            let before_data = self.pass(header);
            if self.gathers && before_data > 0 {
                self.gather(consumer, complete, before_data as u64);
            }
            self.at += record::stride(header);
            assert!(self.at <= self.batch_end || self.is_between());
        }
    }

    /// Counts a record; the bytes of it that a hint has, if it is about a key.
    fn pass(&mut self, header: &[u8; HEADER]) -> usize {
        match record::glance(header) {
            Glance::Base => self.bases += record::stride(header),
            Glance::Tombstone => self.tombstones += record::stride(header),
            Glance::Amendment => {}
            Glance::Edit => self.edits += record::stride(header),
            Glance::Batch(bytes) => {
                self.batch_end = self.at + bytes;
                return 0;
            }
            Glance::Other => return 0,
        }
        record::before_data(header)
    }

    /// Notes the hint of the record at hand, or none of this segment if that takes too much.
    fn gather(&mut self, consumer: &Consumer, complete: u64, before_data: u64) {
        let end = self.at + before_data;
        let most = (end - self.start) * self.hint_percent / 100 + self.hint_slack;
        let most = most.min(self.hint_bytes);
        // A key that is still on its way is as rare as a key that is longer than a window.
        if end <= complete && self.hints.len() as u64 <= most {
            let record = consumer.bytes(self.at..end);
            record::write_hint(&mut self.hints, Lsn(self.at), record);
        } else {
            (self.gathers, self.hints) = (false, Vec::new());
        }
    }

    /// What has been passed since the last call: a segment.
    pub(crate) fn take_tally(&mut self) -> Tally {
        let gathers = std::mem::replace(&mut self.gathers, true);
        self.start = self.at;
        let hints = std::mem::take(&mut self.hints);
        Tally {
            bases: std::mem::take(&mut self.bases),
            tombstones: std::mem::take(&mut self.tombstones),
            edits: std::mem::take(&mut self.edits),
            hints: (gathers && !hints.is_empty()).then_some(hints),
        }
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
                let mut scan = Scan::new(START, &Options::default());
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
        let mut scan = Scan::new(START, &Options::default());
        assert_eq!(scan.advance(&consumer, all, u64::MAX), all);
        let tally = scan.take_tally();
        assert_eq!(tally.bases, first - START);
        assert_eq!(tally.tombstones, second - first - HEADER as u64);
        assert_eq!(tally.edits, 0);
        let hints = tally.hints.expect("they are few");
        // Position, header and key, of one with an expiry.
        assert_eq!(hints.len(), 3 * 32 + 40);
        assert_eq!(scan.take_tally(), Tally::default());
    }

    #[test]
    fn leaves_are_bases_and_edits_are_counted_for_themselves() {
        let tag = Tag {
            kind: Tag::HASH,
            ..Tag::default()
        };
        let number = 9_u64.to_le_bytes();
        let leaf = Draft::leaf(DB, &number, tag, &[1; 100]);
        let edits = [
            Draft::edit(DB, b"key", tag, &[2; 200]),
            Draft::edit_instance(DB, &number, tag, b""),
        ];
        let (ring, mut consumer) = Ring::new(1 << 16, START, 1).expect("memory");
        let mut producer = ring.producer().expect("the first");
        put(&mut producer, &leaf);
        edits.iter().for_each(|edit| put(&mut producer, edit));
        producer.commit();
        let all = consumer.complete();
        let mut scan = Scan::new(START, &Options::default());
        assert_eq!(scan.advance(&consumer, all, u64::MAX), all);
        let tally = scan.take_tally();
        assert_eq!((tally.bases, tally.tombstones), (leaf.bytes(), 0));
        assert_eq!(tally.edits, edits[0].bytes() + edits[1].bytes());
        let hints = tally.hints.expect("they are few");
        // Position, header and key or number.
        assert_eq!(hints.len(), 3 * 32);
        assert_eq!(scan.take_tally(), Tally::default());
    }

    #[test]
    fn hints_that_take_much_of_a_segment_are_not_gathered() {
        for (value, is_worth_it) in [(16, false), (4096, true)] {
            let (ring, mut consumer) = Ring::new(1 << 16, START, 1).expect("memory");
            let mut producer = ring.producer().expect("the first");
            let mut scan = Scan::new(START, &Options::default());
            let value = vec![1; value];
            for _ in 0..10_000 {
                put(
                    &mut producer,
                    &Draft::set(DB, b"key", Tag::default(), None, &value),
                );
                producer.commit();
                let complete = consumer.complete();
                scan.advance(&consumer, complete, u64::MAX);
                consumer.release(complete);
            }
            assert_eq!(scan.take_tally().hints.is_some(), is_worth_it);
        }
    }
}
