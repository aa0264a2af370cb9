//! Reading single values back: what was left on the disk, and what has a file of its own.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sys::file::{File, Files};

use crate::address::{DbId, Lsn};
use crate::blob::{Blob, Blobs};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::paths::Paths;
use crate::record::{self, BlobRef, Change, Entry, Flaw, Value};
use crate::segments::{Map, Segment, Segments};

/// Reads values by where they are. Can be cloned and used by any thread.
#[derive(Clone, Debug)]
pub struct ValueReader {
    files: Arc<dyn Files>,
    paths: Paths,
    segments: Arc<Segments>,
    blobs: Arc<Blobs>,
}

/// A value that was found.
#[derive(Debug)]
pub enum FoundValue {
    /// It was in the record.
    Bytes(Vec<u8>),
    /// It has a file of its own: [`ValueReader::read_blob`] or [`ValueReader::stream_blob`] reads it.
    Blob(BlobRef),
}

/// A record that somebody else reads. Its file can be read as long as this exists.
#[derive(Debug)]
pub struct Located {
    segment: Arc<Segment>,
    lsn: Lsn,
    bytes: usize,
}

impl Located {
    /// The system's file that it is in, if it may be read past the log.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.segment.file.descriptor()
    }

    /// Where it begins in the file.
    pub fn offset(&self) -> u64 {
        self.segment.offset_of(self.lsn)
    }

    /// How many bytes to read.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reads it, if that takes no waiting for the disk.
    pub fn read_cached(&self) -> Option<Vec<u8>> {
        let mut record = vec![0; self.bytes];
        let file = &self.segment.file;
        file.read_cached_at(&mut record, self.offset())
            .then_some(record)
    }

    /// The value of `key` in the record, of which that was read. `None` if it is not there, or not whole, or damaged:
    /// [`ValueReader::read`] tells. A value in a file of its own is not there.
    pub fn value(&self, mut record: Vec<u8>, key: &[u8]) -> Option<Vec<u8>> {
        let part = value_in(&record, self.lsn, key)?;
        record.truncate(part.end);
        record.drain(..part.start);
        Some(record)
    }
}

/// While it exists compaction empties no segment, so all records stay where they are that there were when it was made.
pub struct Hold {
    core: Arc<Core>,
    /// The segments of that time: one that was being emptied then can still be read.
    map: Arc<Map>,
}

impl Hold {
    pub(crate) fn new(core: &Arc<Core>) -> Hold {
        core.holds.fetch_add(1, Ordering::SeqCst);
        Hold {
            core: core.clone(),
            map: core.segments.map(),
        }
    }

    /// [`ValueReader::read`], for a record that was there when this was made, or is later.
    ///
    /// # Errors
    /// The record is damaged, or cannot be read.
    pub fn read(
        &self,
        reader: &ValueReader,
        lsn: Lsn,
        key: &[u8],
        len: u64,
    ) -> Result<Option<Vec<u8>>> {
        let found = self.open(reader, lsn, key, len)?;
        found.map(|value| reader.whole(value)).transpose()
    }

    /// [`ValueReader::open`], likewise.
    ///
    /// # Errors
    /// The record is damaged, or cannot be read.
    pub fn open(
        &self,
        reader: &ValueReader,
        lsn: Lsn,
        key: &[u8],
        len: u64,
    ) -> Result<Option<FoundValue>> {
        match reader.open(lsn, key, len)? {
            None => reader.find_in(&self.map, lsn, key, len),
            found => Ok(found),
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.core.holds.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hold")
    }
}

impl ValueReader {
    pub(crate) fn new(
        files: Arc<dyn Files>,
        paths: Paths,
        segments: Arc<Segments>,
        blobs: Arc<Blobs>,
    ) -> ValueReader {
        ValueReader {
            files,
            paths,
            segments,
            blobs,
        }
    }

    /// Reads the data of the record at `lsn`, which is about `key` and has about `len` bytes of it: the value of a `Set`,
    /// or the bytes of a `Patch`. `None` if there is no such record: it is not in a file yet, or its segment has been
    /// compacted meanwhile; the entry then has another address.
    ///
    /// # Errors
    /// The record is damaged, or cannot be read.
    pub fn read(&self, lsn: Lsn, key: &[u8], len: u64) -> Result<Option<Vec<u8>>> {
        let found = self.open(lsn, key, len)?;
        found.map(|value| self.whole(value)).transpose()
    }

    /// [`ValueReader::read`], of which a value in a file of its own is not read yet.
    ///
    /// # Errors
    /// The record is damaged, or cannot be read.
    pub fn open(&self, lsn: Lsn, key: &[u8], len: u64) -> Result<Option<FoundValue>> {
        self.find_in(&self.segments.map(), lsn, key, len)
    }

    /// Where the record at `lsn` is that is about `key` and has `len` bytes of it, for who reads it by other means. `None` if there is none
    /// to read now.
    pub fn locate(&self, lsn: Lsn, key: &[u8], len: u64) -> Option<Located> {
        let map = self.segments.map();
        let segment = map.segment_of(lsn)?;
        let left = segment.end().get().saturating_sub(lsn.get());
        let bytes = likely_bytes(key, len).min(left) as usize;
        (bytes > 0).then(|| Located {
            segment: segment.clone(),
            lsn,
            bytes,
        })
    }

    /// The large value that the record at `lsn` names. As long as somebody has it, it can be opened.
    pub fn blob_at(&self, lsn: Lsn) -> Option<Arc<Blob>> {
        self.blobs.named_by(lsn)
    }

    /// What the record at `lsn`, which names a large value, is about.
    pub(crate) fn key_at(&self, lsn: Lsn) -> Option<(DbId, Vec<u8>)> {
        let map = self.segments.map();
        let segment = map.segment_of(lsn)?;
        let left = segment.end().get().saturating_sub(lsn.get());
        let mut wanted = likely_bytes(&[], 0).min(left);
        loop {
            let mut bytes = vec![0; wanted as usize];
            let at = segment.offset_of(lsn);
            segment.file.read_exact_at(&mut bytes, at).ok()?;
            match record::read(&bytes, lsn) {
                Err(Flaw::Incomplete(more)) if more > wanted && more <= left => wanted = more,
                Ok(found) => {
                    let Entry::Key(record) = found.entry else {
                        return None;
                    };
                    return Some((record.db, record.key.to_vec()));
                }
                Err(_) => return None,
            }
        }
    }

    fn whole(&self, found: FoundValue) -> Result<Vec<u8>> {
        match found {
            FoundValue::Bytes(bytes) => Ok(bytes),
            FoundValue::Blob(blob) => self.read_blob(blob),
        }
    }

    fn find_in(&self, map: &Map, lsn: Lsn, key: &[u8], len: u64) -> Result<Option<FoundValue>> {
        let Some(segment) = map.segment_of(lsn) else {
            return Ok(None);
        };
        let mut left = segment.end().get().saturating_sub(lsn.get());
        let mut wanted = likely_bytes(key, len).min(left);
        loop {
            if wanted == 0 {
                return Ok(None);
            }
            let mut bytes = vec![0; wanted as usize];
            segment
                .file
                .read_exact_at(&mut bytes, segment.offset_of(lsn))
                .map_err(|error| Error::io("cannot read", &segment.path, error))?;
            let found = match record::read(&bytes, lsn) {
                Ok(found) => found,
                Err(Flaw::Incomplete(more)) if more > wanted && more <= left => {
                    wanted = more;
                    continue;
                }
                Err(flaw @ Flaw::Incomplete(more)) if more > left => {
                    // What is written in pieces may be there in part.
                    let is_whole = segment.is_sealed();
                    let now = segment.end().get().saturating_sub(lsn.get());
                    if now > left {
                        left = now;
                        wanted = more.min(left);
                        continue;
                    }
                    if !is_whole {
                        return Ok(None);
                    }
                    return Err(Error::damage(&segment.path, segment.offset_of(lsn), flaw));
                }
                Err(flaw) => {
                    return Err(Error::damage(&segment.path, segment.offset_of(lsn), flaw));
                }
            };
            let value = match found.entry {
                Entry::Key(record) if record.key == key => match record.change {
                    Change::Set { value, .. } => Some(value),
                    Change::Patch { bytes, .. } => Some(bytes),
                    Change::Delete | Change::Expire(_) => None,
                },
                _ => None,
            };
            return match value {
                Some(Value::Bytes(value)) => Ok(Some(FoundValue::Bytes(value.to_vec()))),
                Some(Value::Blob(blob)) => Ok(Some(FoundValue::Blob(blob))),
                Some(Value::Stored(_)) | None => Err(Error::damage(
                    &segment.path,
                    segment.offset_of(lsn),
                    "the record is about something else",
                )),
            };
        }
    }

    /// Reads a large value from its beginning to its end, a piece at a time.
    ///
    /// # Errors
    /// As for [`ValueReader::read_blob`].
    pub fn stream_blob(&self, blob: BlobRef) -> Result<BlobStream> {
        let path = self.paths.blob(blob.id);
        let file = self.files.open(&path);
        Ok(BlobStream {
            file: file.map_err(|error| Error::io("cannot open", &path, error))?,
            blob,
            at: 0,
            checksum: 0,
        })
    }

    /// Reads a large value and checks it.
    ///
    /// # Errors
    /// The file is missing (a later record has replaced the value), damaged, or cannot be read.
    pub fn read_blob(&self, blob: BlobRef) -> Result<Vec<u8>> {
        let path = self.paths.blob(blob.id);
        let io = |error| Error::io("cannot read", &path, error);
        let file = self.files.open(&path).map_err(io)?;
        let size = file.size().map_err(io)?;
        if size < blob.len {
            return Err(Error::damage(&path, size, "the file ends too early"));
        }
        let len =
            usize::try_from(blob.len).map_err(|_| io(std::io::ErrorKind::OutOfMemory.into()))?;
        let mut value = vec![0; len];
        file.read_exact_at(&mut value, 0).map_err(io)?;
        if crc32c::crc32c(&value) != blob.checksum {
            return Err(Error::damage(&path, 0, "the checksum does not match"));
        }
        Ok(value)
    }
}

/// Bytes that the record of a value of `len` bytes takes, if it is none that has to be longer.
fn likely_bytes(key: &[u8], len: u64) -> u64 {
    record::record_bytes(key.len() as u64, len + 16, true)
}

/// Where the bytes of a key's value are in a record; `None` if they are not, or not all of it is there.
fn value_in(bytes: &[u8], lsn: Lsn, key: &[u8]) -> Option<Range<usize>> {
    let Entry::Key(record) = record::read(bytes, lsn).ok()?.entry else {
        return None;
    };
    let value = match record.change {
        Change::Set {
            value: Value::Bytes(value),
            ..
        }
        | Change::Patch {
            bytes: Value::Bytes(value),
            ..
        } if record.key == key => value,
        _ => return None,
    };
    let from = value.as_ptr().addr() - bytes.as_ptr().addr();
    Some(from..from + value.len())
}

/// A large value that is read a piece at a time. Behind its last byte it is checked: then reading fails if it is damaged.
#[derive(Debug)]
pub struct BlobStream {
    file: Box<dyn File>,
    blob: BlobRef,
    at: u64,
    checksum: u32,
}

impl io::Read for BlobStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.blob.len - self.at;
        if left == 0 && self.checksum != self.blob.checksum {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a large value is damaged: the checksum does not match",
            ));
        }
        let most = left.min(buffer.len() as u64) as usize;
        if most == 0 {
            return Ok(0);
        }
        let count = self.file.read_at(&mut buffer[..most], self.at)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.checksum = crc32c::crc32c_append(self.checksum, &buffer[..count]);
        self.at += count as u64;
        Ok(count)
    }
}
