//! A series: a batch whose records are known, in number and size, before the first is made. So they go into
//! the ring one by one, each while its key and value are in the processor's cache, and each has its position
//! at once.
//!
//! Where that is not known beforehand there is [`Batch`](crate::Batch), which gathers first.
//!
//! Invariant: from [`Series::begin`] to [`Series::end`] nothing else is appended, and what
//! is appended fills the claim exactly.

use crate::address::Lsn;
use crate::claims::Claims;
use crate::record::{self, Draft, HEADER, MAX_RECORD};

/// What is still to come of a series.
#[derive(Debug, Default)]
pub(crate) struct Series {
    /// Where the next record goes.
    at: u64,
    end: u64,
    records: u32,
}

impl Series {
    /// See [`crate::Appender::begin_series`].
    pub(crate) fn begin(&mut self, claims: &mut Claims, records: u32, bytes: u64) {
        assert!(self.records == 0, "one series is filled at a time");
        assert!(HEADER as u64 + bytes < MAX_RECORD, "a batch is below 4 GiB");
        let start = claims.claim(HEADER as u64 + bytes);
        let header = record::batch_header(Lsn(start), records, bytes);
        match claims.slot(start, HEADER) {
            Some(slot) => slot.copy_from_slice(&header),
            None => claims.parts(start, HEADER as u64).put(&header),
        }
        let at = start + HEADER as u64;
        *self = Series {
            at,
            end: at + bytes,
            records,
        };
    }

    /// Fills the next record.
    #[inline]
    pub(crate) fn fill(&mut self, claims: &mut Claims, draft: &Draft<'_>) -> Lsn {
        let at = self.at;
        self.at += draft.bytes();
        self.records = self.records.saturating_sub(1);
        assert!(
            self.at <= self.end,
            "a series has room for what it was begun for"
        );
        claims.fill(at, draft);
        Lsn(at)
    }

    pub(crate) fn end(&self, claims: &mut Claims) {
        assert!(
            self.records == 0 && self.at == self.end,
            "all records of a series are appended"
        );
        claims.filled();
    }
}
