//! A series: a batch whose records are known, in number and size, before the first is made. So they go into
//! the ring one by one, each while its key and value are in the processor's cache, and each has its position
//! at once.
//!
//! Where that is not known beforehand there is [`Batch`](crate::Batch), which gathers first.
//!
//! Invariant: from [`Appender::begin_series`] to [`Appender::end_series`] nothing else is appended, and what
//! is appended fills the claim exactly.

use crate::address::{Address, DbId, Lsn};
use crate::appender::{Appender, Parts};
use crate::record::{self, Draft, HEADER, MAX_RECORD, Tag};

/// What is still to come of a series.
#[derive(Debug, Default)]
pub(crate) struct Series {
    /// Where the next record goes.
    at: u64,
    end: u64,
    records: u32,
}

impl Appender {
    /// Bytes that a plain set takes in the log, with so many bytes of key and value.
    #[inline]
    pub const fn set_bytes(key: usize, value: usize) -> u64 {
        record::record_bytes(key as u64, value as u64, false)
    }

    /// Begins a batch of `records` sets without expiry, two at least, that take `bytes` bytes together (the
    /// sum of [`Appender::set_bytes`]). All of them follow, through [`Appender::set_in_series`], before
    /// anything else is appended. As for any batch, locks of all shards it touches are held until its end.
    ///
    /// # Panics
    /// If the last series was not ended, or it takes [`MAX_RECORD`] bytes or more.
    pub fn begin_series(&mut self, records: u32, bytes: u64) {
        assert!(self.series.records == 0, "one series is filled at a time");
        assert!(HEADER as u64 + bytes < MAX_RECORD, "a batch is below 4 GiB");
        let start = self.claim(HEADER as u64 + bytes);
        let header = record::batch_header(Lsn(start), records, bytes);
        match self.producer.fill(start, HEADER) {
            Some(slot) => slot.copy_from_slice(&header),
            None => Parts::new(self, start, HEADER as u64).put(&header),
        }
        let at = start + HEADER as u64;
        self.series = Series {
            at,
            end: at + bytes,
            records,
        };
    }

    /// [`Appender::set`] as the next record of the series.
    ///
    /// # Panics
    /// If there is no room for it in the series.
    #[inline]
    pub fn set_in_series(&mut self, db: DbId, key: &[u8], tag: Tag, value: &[u8]) -> Address {
        let draft = Draft::set(db, key, tag, None, value).inner();
        let at = self.series.at;
        self.series.at += draft.bytes();
        self.series.records = self.series.records.saturating_sub(1);
        assert!(
            self.series.at <= self.series.end,
            "a series has room for what it was begun for"
        );
        self.fill(at, &draft);
        Address::new(Lsn(at), false, false)
    }

    /// Ends the series.
    ///
    /// # Panics
    /// If records are missing.
    pub fn end_series(&mut self) {
        let Series { at, end, records } = self.series;
        assert!(
            records == 0 && at == end,
            "all records of a series are appended"
        );
        self.filled();
    }
}
