//! Reads of values from the log.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ferrite_log::{
    Address, Blob, BlobStore, BlobStream, FoundValue, Hold, Located, Log, ValueReader,
};
use keyspace::collection::Base;
use keyspace::{ColdValue, EntryRef, LargeValue, LogAddress, Stored};
use parking_lot::RwLock;

use super::instances::{instance_key, leaf_share};
use super::state::Persistence;
use crate::limits::{READ_LOOKS, READ_NAP};
use crate::request::Failure;

/// Error reply for a value that is missing at its address.
pub(crate) const NOT_THERE: Failure =
    Failure::of("IOERR a value is not where the log is said to have it");

/// Record of the log that is read for a value, or for a leaf of a tree.
#[derive(Clone, Copy)]
pub(crate) struct Sought<'k> {
    /// Key in the record.
    key: &'k [u8],
    at: LogAddress,
    len: Length,
}

#[derive(Clone, Copy)]
enum Length {
    /// Bytes of the value.
    Value(u64),
    /// Bytes of the record of the leaf in the log.
    Leaf(u32),
}

impl<'k> Sought<'k> {
    /// The record of the value of a key.
    pub(crate) fn value(key: &'k [u8], value: ColdValue) -> Sought<'k> {
        let (at, len) = (value.address, Length::Value(value.len));
        Sought { key, at, len }
    }

    /// The record on which a leaf of an instance rests; `instance` as [`instance_key`] has it.
    pub(crate) fn leaf(instance: &'k [u8; 8], base: Base) -> Sought<'k> {
        let at = NonZeroU64::new(base.at).expect("a cold leaf rests on a record");
        Sought {
            key: instance,
            at: LogAddress(at),
            len: Length::Leaf(base.share),
        }
    }

    /// Bytes of the value, or a few more.
    fn len(self) -> u64 {
        match self.len {
            Length::Value(len) => len,
            Length::Leaf(bytes) => bytes.into(),
        }
    }

    /// Whether the contents of the record have the expected length.
    fn fits(self, contents: usize) -> bool {
        match self.len {
            Length::Value(len) => contents as u64 == len,
            Length::Leaf(bytes) => leaf_share(contents) == bytes,
        }
    }
}

/// Reader of the log, and its counters.
#[derive(Default)]
pub(crate) struct Reading {
    /// `None` without a log.
    pub(super) reader: RwLock<Option<ValueReader>>,
    /// Store of large values; `None` without a log.
    pub(super) blobs: RwLock<Option<BlobStore>>,
    /// Reads that could block on the disk, and their microseconds.
    pub(crate) waited: AtomicU64,
    pub(crate) us: AtomicU64,
    /// Reads from the page cache that could not block, and their nanoseconds.
    pub(crate) cached: AtomicU64,
    pub(crate) cached_ns: AtomicU64,
    /// Bytes of all reads.
    pub(crate) bytes: AtomicU64,
    /// Values that were served to clients without becoming resident.
    pub(crate) served: AtomicU64,
    /// Failed reads.
    pub(crate) failures: AtomicU64,
}

impl Reading {
    /// Number of reads.
    pub(crate) fn reads(&self) -> u64 {
        self.waited.load(Relaxed) + self.cached.load(Relaxed)
    }

    /// Time of all reads, microseconds.
    pub(crate) fn took_us(&self) -> u64 {
        self.us.load(Relaxed) + self.cached_ns.load(Relaxed) / 1000
    }
}

impl Reading {
    /// Counts a read from the disk that began at `began` (ticks).
    pub(crate) fn note_wait(&self, began: u64) {
        let ticks = sys::clock::ticks().saturating_sub(began);
        let us = sys::clock::ticks_to_ns(ticks) / 1000;
        self.us.fetch_add(us, Relaxed);
        self.waited.fetch_add(1, Relaxed);
    }

    /// Counts a read of a part of a large value that began at `began` (ticks). `is_first`: the first part of
    /// a request.
    pub(crate) fn note_part(&self, bytes: usize, is_first: bool, began: u64) {
        let ticks = sys::clock::ticks().saturating_sub(began);
        self.us
            .fetch_add(sys::clock::ticks_to_ns(ticks) / 1000, Relaxed);
        self.waited.fetch_add(u64::from(is_first), Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Value of a record that was read; `None` if the record is not the expected one.
    pub(crate) fn value_of(
        &self,
        located: &Located,
        record: Vec<u8>,
        sought: Sought<'_>,
    ) -> Option<LargeValue> {
        let bytes = located.value(record, sought.key)?;
        if !sought.fits(bytes.len()) {
            return None;
        }
        self.bytes.fetch_add(bytes.len() as u64, Relaxed);
        Some(LargeValue::new(bytes.into()))
    }
}

impl Persistence {
    /// Reads a value that is only in the log. `None` if its entry has another address by now. Blocks on the
    /// disk.
    ///
    /// # Errors
    /// The value is damaged or unreadable; the text has place and reason.
    pub(crate) fn read_cold(&self, sought: Sought<'_>) -> Result<Option<LargeValue>, Failure> {
        self.read_held(sought, None)
    }

    /// Location of a value without a file of its own, for another reader.
    pub(crate) fn locate(&self, sought: Sought<'_>) -> Option<Located> {
        let address = Address::from_bits(sought.at.0.get())?;
        if address.is_blob() {
            return None;
        }
        let reader = self.reading.reader.try_read()?;
        let (lsn, len) = (address.lsn(), sought.len());
        reader.as_ref()?.locate(lsn, sought.key, len)
    }

    /// [`Persistence::read_cold`] without blocking: `None` if the disk would have to be read, and in every
    /// other case without a value.
    pub(crate) fn read_cached(&self, sought: Sought<'_>) -> Option<LargeValue> {
        let began = sys::clock::ticks();
        let located = self.locate(sought)?;
        let record = located.read_cached()?;
        let read = self.reading.value_of(&located, record, sought)?;
        let ticks = sys::clock::ticks().saturating_sub(began);
        let ns = sys::clock::ticks_to_ns(ticks);
        self.reading.cached_ns.fetch_add(ns, Relaxed);
        self.reading.cached.fetch_add(1, Relaxed);
        Some(read)
    }

    /// [`Persistence::read_cold`] for a value that existed when `hold` was made, or is newer.
    ///
    /// # Errors
    /// As [`Persistence::read_cold`].
    pub(crate) fn read_held(
        &self,
        sought: Sought<'_>,
        hold: Option<&Hold>,
    ) -> Result<Option<LargeValue>, Failure> {
        let reading = &self.reading;
        let began = sys::clock::ticks();
        let read = self.read_record(sought, hold);
        read.inspect(|_| {
            reading.note_wait(began);
            reading.bytes.fetch_add(sought.len(), Relaxed);
        })
        .map_err(|problem| {
            reading.failures.fetch_add(1, Relaxed);
            log::error!("a value could not be read back: {problem}");
            Failure::new(format!("IOERR {problem}"))
        })
    }

    /// [`Persistence::read_held`] for a value whose entry can't change, or that is held. If compaction has
    /// just appended its record, waits until it is written.
    ///
    /// # Errors
    /// As [`Persistence::read_cold`]; or the record is not written in time.
    pub(crate) fn read_settled(
        &self,
        sought: Sought<'_>,
        hold: Option<&Hold>,
    ) -> Result<LargeValue, Failure> {
        for _ in 0..READ_LOOKS {
            if let Some(value) = self.read_held(sought, hold)? {
                return Ok(value);
            }
            std::thread::sleep(READ_NAP);
        }
        Err(NOT_THERE)
    }

    /// Store of large values; `None` without a log.
    pub(crate) fn blob_store(&self) -> Option<BlobStore> {
        self.reading.blobs.read().clone()
    }

    /// File of a value that is only in the log, if it has one. The shard of its entry is locked.
    pub(crate) fn blob_of(&self, value: ColdValue) -> Option<Arc<Blob>> {
        let address = Address::from_bits(value.address.0.get())?;
        if !address.is_blob() {
            return None;
        }
        self.reading.reader.read().as_ref()?.blob_at(address.lsn())
    }

    /// Opens a held value with a file of its own, to be read a piece at a time.
    ///
    /// # Errors
    /// The file is damaged or unreadable.
    pub(crate) fn stream_held(
        &self,
        key: &[u8],
        value: ColdValue,
        hold: Option<&Hold>,
    ) -> Result<Option<BlobStream>, Failure> {
        let address = Address::from_bits(value.address.0.get());
        let Some(address) = address.filter(|address| address.is_blob()) else {
            return Ok(None);
        };
        let reader = self.reading.reader.read();
        let reader = reader.as_ref().ok_or(NOT_THERE)?;
        let streamed = |blob| {
            let stream = reader.stream_blob(blob);
            stream.map_err(|error| Failure::new(format!("IOERR {error}")))
        };
        if let Some(blob) = reader.blob_at(address.lsn()) {
            return streamed(blob.reference()).map(Some);
        }
        for _ in 0..READ_LOOKS {
            let found = match hold {
                Some(hold) => hold.open(reader, address.lsn(), key, 0),
                None => reader.open(address.lsn(), key, 0),
            };
            match found {
                Ok(Some(FoundValue::Blob(blob))) => return streamed(blob).map(Some),
                Ok(Some(FoundValue::Bytes(_))) => return Ok(None),
                Ok(None) => std::thread::sleep(READ_NAP),
                Err(error) => return Err(Failure::new(format!("IOERR {error}"))),
            }
        }
        Err(NOT_THERE)
    }

    /// Keeps the records of the log in place, if there is a log.
    pub(crate) fn hold(&self) -> Option<Hold> {
        self.log.read().as_ref().map(Log::hold)
    }

    fn read_record(
        &self,
        sought: Sought<'_>,
        hold: Option<&Hold>,
    ) -> Result<Option<LargeValue>, String> {
        let reader = self.reading.reader.read();
        // A log is closed when all values are back, or at the end of the server.
        let Some(reader) = reader.as_ref() else {
            return Ok(None);
        };
        let address = Address::from_bits(sought.at.0.get());
        let address = address.ok_or("the value has no address")?;
        if address.is_blob()
            && let Some(blob) = reader.blob_at(address.lsn())
        {
            let bytes = reader.read_blob(blob.reference());
            let bytes = bytes.map_err(|error| error.to_string())?;
            return Ok(Some(LargeValue::new(bytes.into())));
        }
        let (lsn, len) = (address.lsn(), sought.len());
        let read = match hold {
            Some(hold) => hold.read(reader, lsn, sought.key, len),
            None => reader.read(lsn, sought.key, len),
        };
        match read.map_err(|error| error.to_string())? {
            Some(bytes) if !sought.fits(bytes.len()) => Err(format!(
                "the record at {} has {} bytes in the place of {len}",
                lsn.get(),
                bytes.len(),
            )),
            found => Ok(found.map(|bytes| LargeValue::new(bytes.into()))),
        }
    }

    /// Contents of the record on which a leaf of an instance rests. The shard is locked, or the records are
    /// held. Blocks on the disk.
    ///
    /// # Errors
    /// The record is unreadable.
    pub(crate) fn leaf_now(
        &self,
        instance: u64,
        base: Base,
        hold: Option<&Hold>,
    ) -> Result<LargeValue, Failure> {
        self.read_settled(Sought::leaf(&instance_key(instance), base), hold)
    }

    /// Value of an entry, from memory or from the log. The shard is locked, so the entry's address is
    /// current. Blocks on the disk, so this is for rare cases.
    ///
    /// # Errors
    /// The value is unreadable.
    pub(crate) fn bytes_now<'e>(&self, entry: EntryRef<'e>) -> Result<Cow<'e, [u8]>, Failure> {
        let Some(cold) = entry.cold() else {
            return Ok(Cow::Borrowed(match entry.value() {
                Stored::Inline(bytes) => bytes,
                Stored::Large(large) => large.bytes(),
            }));
        };
        let value = self.read_settled(Sought::value(entry.key(), cold), None)?;
        Ok(Cow::Owned(value.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use keyspace::LogAddress;

    use super::*;

    #[test]
    fn a_read_after_the_log_was_closed_finds_nothing_and_is_no_failure() {
        let persistence = Persistence::new(1, &Arc::default());
        let value = ColdValue {
            address: LogAddress(NonZeroU64::MAX),
            len: 100,
        };
        let read = persistence.read_cold(Sought::value(b"key", value));
        assert!(matches!(read, Ok(None)));
        assert_eq!(persistence.reading.failures.load(Relaxed), 0);
    }
}
