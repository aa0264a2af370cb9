//! Reading values back from the log.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ferrite_log::{
    Address, Blob, BlobStore, BlobStream, FoundValue, Hold, Located, Log, ValueReader,
};
use keyspace::{ColdValue, EntryRef, LargeValue, Stored};
use parking_lot::RwLock;

use super::Persistence;
use crate::limits::{READ_LOOKS, READ_NAP};
use crate::request::Failure;

/// What is answered when a value is not found where it should be.
pub(crate) const NOT_THERE: Failure =
    Failure::of("IOERR a value is not where the log is said to have it");

/// The way back, and what it was used for.
#[derive(Default)]
pub(crate) struct Reading {
    /// `None` without a log.
    pub(super) reader: RwLock<Option<ValueReader>>,
    /// Where large values are made; `None` without a log.
    pub(super) blobs: RwLock<Option<BlobStore>>,
    /// Values that were read by who may wait for the disk, and the microseconds that took.
    pub(crate) waited: AtomicU64,
    pub(crate) us: AtomicU64,
    /// Values that the page cache had for who may not, and the nanoseconds that took.
    pub(crate) cached: AtomicU64,
    pub(crate) cached_ns: AtomicU64,
    /// Bytes of all of these.
    pub(crate) bytes: AtomicU64,
    /// Values that were answered from the log alone.
    pub(crate) served: AtomicU64,
    /// Values that could not be read.
    pub(crate) failures: AtomicU64,
}

impl Reading {
    /// Values that were read.
    pub(crate) fn reads(&self) -> u64 {
        self.waited.load(Relaxed) + self.cached.load(Relaxed)
    }

    /// Microseconds that took.
    pub(crate) fn took_us(&self) -> u64 {
        self.us.load(Relaxed) + self.cached_ns.load(Relaxed) / 1000
    }
}

impl Reading {
    /// A value was read from the disk, which began at a time (ticks).
    pub(crate) fn note_wait(&self, began: u64) {
        let ticks = sys::clock::ticks().saturating_sub(began);
        let us = sys::clock::ticks_to_ns(ticks) / 1000;
        self.us.fetch_add(us, Relaxed);
        self.waited.fetch_add(1, Relaxed);
    }

    /// Bytes of a large value were read, which began at a time (ticks); the first of those that are asked
    /// for, or later ones.
    pub(crate) fn note_part(&self, bytes: usize, is_first: bool, began: u64) {
        let ticks = sys::clock::ticks().saturating_sub(began);
        self.us
            .fetch_add(sys::clock::ticks_to_ns(ticks) / 1000, Relaxed);
        self.waited.fetch_add(u64::from(is_first), Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// The value in a record that was read, if all is as it should be.
    pub(crate) fn value_of(
        &self,
        located: &Located,
        record: Vec<u8>,
        key: &[u8],
        value: ColdValue,
    ) -> Option<LargeValue> {
        let bytes = located.value(record, key)?;
        if bytes.len() as u64 != value.len {
            return None;
        }
        self.bytes.fetch_add(value.len, Relaxed);
        Some(LargeValue::new(bytes.into()))
    }
}

impl Persistence {
    /// Reads a value that is in the log alone. `None` if it is not there any more: its entry has another
    /// address by now. Waits for the disk.
    ///
    /// # Errors
    /// It is damaged or cannot be read: where, and why.
    pub(crate) fn read_cold(
        &self,
        key: &[u8],
        value: ColdValue,
    ) -> Result<Option<LargeValue>, Failure> {
        self.read_held(key, value, None)
    }

    /// Where a value is that is not in a file of its own, for who reads it by other means.
    pub(crate) fn locate(&self, key: &[u8], value: ColdValue) -> Option<Located> {
        let address = Address::from_bits(value.address.0.get())?;
        if address.is_blob() {
            return None;
        }
        let reader = self.reading.reader.try_read()?;
        reader.as_ref()?.locate(address.lsn(), key, value.len)
    }

    /// [`Persistence::read_cold`] for who must not wait: `None` if the system would have to ask the disk, and
    /// for whatever else there is to say of the value.
    pub(crate) fn read_cached(&self, key: &[u8], value: ColdValue) -> Option<LargeValue> {
        let began = sys::clock::ticks();
        let located = self.locate(key, value)?;
        let record = located.read_cached()?;
        let read = self.reading.value_of(&located, record, key, value)?;
        let ticks = sys::clock::ticks().saturating_sub(began);
        let ns = sys::clock::ticks_to_ns(ticks);
        self.reading.cached_ns.fetch_add(ns, Relaxed);
        self.reading.cached.fetch_add(1, Relaxed);
        Some(read)
    }

    /// [`Persistence::read_cold`], of a value that was there when `hold` was made, or came later.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn read_held(
        &self,
        key: &[u8],
        value: ColdValue,
        hold: Option<&Hold>,
    ) -> Result<Option<LargeValue>, Failure> {
        let reading = &self.reading;
        let began = sys::clock::ticks();
        let read = self.read_record(key, value, hold);
        read.inspect(|_| {
            reading.note_wait(began);
            reading.bytes.fetch_add(value.len, Relaxed);
        })
        .map_err(|problem| {
            reading.failures.fetch_add(1, Relaxed);
            log::error!("a value could not be read back: {problem}");
            Failure::new(format!("IOERR {problem}"))
        })
    }

    /// [`Persistence::read_held`], of a value whose entry cannot change meanwhile, or that is held.
    /// Compaction may have appended its record a moment ago: then it waits until that is written.
    ///
    /// # Errors
    /// As there; or it is not written soon.
    pub(crate) fn read_settled(
        &self,
        key: &[u8],
        value: ColdValue,
        hold: Option<&Hold>,
    ) -> Result<LargeValue, Failure> {
        for _ in 0..READ_LOOKS {
            if let Some(value) = self.read_held(key, value, hold)? {
                return Ok(value);
            }
            std::thread::sleep(READ_NAP);
        }
        Err(NOT_THERE)
    }

    /// Where files of large values are made and opened; `None` without a log.
    pub(crate) fn blob_store(&self) -> Option<BlobStore> {
        self.reading.blobs.read().clone()
    }

    /// The file of a value that is in the log alone, if it has one. The shard of its entry is locked.
    pub(crate) fn blob_of(&self, value: ColdValue) -> Option<Arc<Blob>> {
        let address = Address::from_bits(value.address.0.get())?;
        if !address.is_blob() {
            return None;
        }
        self.reading.reader.read().as_ref()?.blob_at(address.lsn())
    }

    /// A value that is held, if it is in a file of its own: to be read a piece at a time.
    ///
    /// # Errors
    /// It is damaged or cannot be read.
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

    /// Keeps what is in the log where it is, if there is a log.
    pub(crate) fn hold(&self) -> Option<Hold> {
        self.log.read().as_ref().map(Log::hold)
    }

    fn read_record(
        &self,
        key: &[u8],
        value: ColdValue,
        hold: Option<&Hold>,
    ) -> Result<Option<LargeValue>, String> {
        let reader = self.reading.reader.read();
        let reader = reader.as_ref().ok_or("the log has been closed")?;
        let address = Address::from_bits(value.address.0.get());
        let address = address.ok_or("the value has no address")?;
        if address.is_blob()
            && let Some(blob) = reader.blob_at(address.lsn())
        {
            let bytes = reader.read_blob(blob.reference());
            let bytes = bytes.map_err(|error| error.to_string())?;
            return Ok(Some(LargeValue::new(bytes.into())));
        }
        let read = match hold {
            Some(hold) => hold.read(reader, address.lsn(), key, value.len),
            None => reader.read(address.lsn(), key, value.len),
        };
        match read.map_err(|error| error.to_string())? {
            Some(bytes) if bytes.len() as u64 != value.len => Err(format!(
                "the record at {} has {} bytes in the place of {}",
                address.lsn().get(),
                bytes.len(),
                value.len
            )),
            found => Ok(found.map(|bytes| LargeValue::new(bytes.into()))),
        }
    }

    /// The value of an entry, wherever it is. Its shard is locked, so what the log has of it is where the
    /// entry says. Waits for the disk, so this is for what is rare.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn bytes_now<'e>(&self, entry: EntryRef<'e>) -> Result<Cow<'e, [u8]>, Failure> {
        let Some(cold) = entry.cold() else {
            return Ok(Cow::Borrowed(match entry.value() {
                Stored::Inline(bytes) => bytes,
                Stored::Large(large) => large.bytes(),
            }));
        };
        let value = self.read_settled(entry.key(), cold, None)?;
        Ok(Cow::Owned(value.to_vec()))
    }
}
