//! Reading single values back: what was left on the disk, and what has a file of its own.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sys::file::Files;
use sys::ring::Ring;

use crate::address::{DbId, Lsn};
use crate::blob::{Blob, Blobs};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::paths::Paths;
use crate::record::{self, BlobRef, Change, Entry, Flaw, Value};
use crate::segments::{Map, Segment, Segments};
use crate::sums::{BLOB_PIECE_BYTES, BlobFile};

/// Reads values by where they are. Can be cloned and used by any thread.
#[derive(Clone, Debug)]
pub struct ValueReader {
    files: Arc<dyn Files>,
    paths: Paths,
    segments: Arc<Segments>,
    blobs: Arc<Blobs>,
    /// Records that are not in a file yet; `None` before the log is open.
    ring: Option<Arc<Ring>>,
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

    /// The value of `key` in the record, of which that was read. `None` if it is not there, or not whole, or
    /// damaged: [`ValueReader::read`] tells. A value in a file of its own is not there.
    pub fn value(&self, mut record: Vec<u8>, key: &[u8]) -> Option<Vec<u8>> {
        let part = value_in(&record, self.lsn, key)?;
        record.truncate(part.end);
        record.drain(..part.start);
        Some(record)
    }
}

/// While it exists compaction empties no segment, so all records stay where they are that there were when it
/// was made.
pub struct Hold {
    engine: Arc<Engine>,
    /// The segments of that time: one that was being emptied then can still be read.
    map: Arc<Map>,
}

impl Hold {
    pub(crate) fn new(engine: &Arc<Engine>) -> Hold {
        engine.holds.fetch_add(1, Ordering::SeqCst);
        Hold {
            engine: engine.clone(),
            map: engine.segments.map(),
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
        self.engine.holds.fetch_sub(1, Ordering::SeqCst);
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
        ring: Option<Arc<Ring>>,
    ) -> ValueReader {
        ValueReader {
            files,
            paths,
            segments,
            blobs,
            ring,
        }
    }

    /// Reads the data of the record at `lsn`, which is about `key` and has about `len` bytes of it: the value
    /// of a `Set`, or the bytes of a `Patch`. `None` if there is no such record: others before it are not
    /// complete in the ring, or its segment was compacted meanwhile; the entry has another address then.
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
        let mut map = self.segments.map();
        loop {
            let found = self.find_in(&map, lsn, key, len)?;
            if found.is_some() {
                return Ok(found);
            }
            // A segment may have begun meanwhile for a record that was in the ring.
            let now = self.segments.map();
            if Arc::ptr_eq(&map, &now) {
                return Ok(None);
            }
            map = now;
        }
    }

    /// Where the record at `lsn` is that is about `key` and has `len` bytes of it, for who reads it by other
    /// means. `None` if there is none to read now.
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
            return self.find_across(None, lsn, key);
        };
        let mut left = segment.end().get().saturating_sub(lsn.get());
        let mut wanted = likely_bytes(key, len).min(left);
        loop {
            if wanted == 0 {
                return self.find_across(Some(segment), lsn, key);
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
                        return self.find_across(Some(segment), lsn, key);
                    }
                    return Err(segment.flawed(lsn, flaw));
                }
                Err(flaw) => {
                    return Err(segment.flawed(lsn, flaw));
                }
            };
            let value = value_of(&found.entry, key);
            return match value.and_then(found_value) {
                None => Err(Error::damage(
                    &segment.path,
                    segment.offset_of(lsn),
                    "the record is about something else",
                )),
                found => Ok(found),
            };
        }
    }

    /// The value of `key` in the record at `lsn`. A part of it may be in the segment's file, and the rest in
    /// the ring, which keeps it while the disk is full. Bytes are in the file before they leave the ring.
    fn find_across(
        &self,
        segment: Option<&Arc<Segment>>,
        lsn: Lsn,
        key: &[u8],
    ) -> Result<Option<FoundValue>> {
        let Some(ring) = &self.ring else {
            return Ok(None);
        };
        let written = || segment.map_or(0, |segment| written(segment, lsn));
        let mut bytes = vec![0; record::HEADER];
        loop {
            let in_file = bytes.len().min(written());
            let (start, rest) = bytes.split_at_mut(in_file);
            if let Some(segment) = segment {
                let read = segment.file.read_exact_at(start, segment.offset_of(lsn));
                read.map_err(|error| Error::io("cannot read", &segment.path, error))?;
            }
            let at = lsn.offset(in_file as u64);
            if !rest.is_empty() && !ring.read(at.get(), rest) {
                if written() > in_file {
                    continue;
                }
                return Ok(None);
            }
            match record::read(&bytes, lsn) {
                Err(Flaw::Incomplete(more)) if more > bytes.len() as u64 => {
                    if more > ring.capacity().saturating_add(written()) as u64 {
                        return Ok(None);
                    }
                    bytes.resize(more as usize, 0);
                }
                found => {
                    let found = found.ok();
                    return Ok(found.and_then(|found| found_value(value_of(&found.entry, key)?)));
                }
            }
        }
    }

    /// Reads a large value from its beginning to its end, a piece at a time.
    ///
    /// # Errors
    /// As for [`ValueReader::read_blob`].
    pub fn stream_blob(&self, blob: BlobRef) -> Result<BlobStream> {
        let path = self.paths.blob(blob.id);
        Ok(BlobStream {
            file: BlobFile::open(&*self.files, &path, blob)?,
            blob,
            piece: Vec::new(),
            given: 0,
            at: 0,
        })
    }

    /// Reads a large value and checks it.
    ///
    /// # Errors
    /// The file is missing (a later record has replaced the value), damaged, or cannot be read.
    pub fn read_blob(&self, blob: BlobRef) -> Result<Vec<u8>> {
        let path = self.paths.blob(blob.id);
        let io = |error| Error::io("cannot read", &path, error);
        let mut file = BlobFile::open(&*self.files, &path, blob)?;
        let len =
            usize::try_from(blob.len).map_err(|_| io(std::io::ErrorKind::OutOfMemory.into()))?;
        let mut value = vec![0; len];
        file.file().read_exact_at(&mut value, 0).map_err(io)?;
        file.verify(&value, 0)?;
        Ok(value)
    }
}

/// Bytes from a position on that are in the segment's file.
fn written(segment: &Segment, lsn: Lsn) -> usize {
    let bytes = segment.end().get().saturating_sub(lsn.get());
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Bytes that the record of a value of `len` bytes takes, if it is none that has to be longer.
fn likely_bytes(key: &[u8], len: u64) -> u64 {
    record::record_bytes(key.len() as u64, len + 16, true)
}

/// The value of `key` in a record about it.
fn value_of<'r>(entry: &Entry<'r>, key: &[u8]) -> Option<Value<'r>> {
    let Entry::Key(record) = entry else {
        return None;
    };
    match record.change {
        _ if record.key != key => None,
        Change::Set { value, .. } => Some(value),
        Change::Patch { bytes, .. } | Change::Edit { bytes, .. } | Change::Leaf { bytes, .. } => {
            Some(bytes)
        }
        Change::Delete | Change::Expire(_) => None,
    }
}

fn found_value(value: Value<'_>) -> Option<FoundValue> {
    match value {
        Value::Bytes(value) => Some(FoundValue::Bytes(value.to_vec())),
        Value::Blob(blob) => Some(FoundValue::Blob(blob)),
        Value::Stored(_) => None,
    }
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
        }
        | Change::Leaf {
            bytes: Value::Bytes(value),
            ..
        }
        | Change::Edit {
            bytes: Value::Bytes(value),
            ..
        } if record.key == key => value,
        _ => return None,
    };
    let from = value.as_ptr().addr() - bytes.as_ptr().addr();
    Some(from..from + value.len())
}

/// A large value that is read a piece at a time. Each is checked before any of it is given out: reading fails
/// if it is damaged.
#[derive(Debug)]
pub struct BlobStream {
    file: BlobFile,
    blob: BlobRef,
    /// What was read last, and how much of it was given out.
    piece: Vec<u8>,
    given: usize,
    /// What was read so far.
    at: u64,
}

impl BlobStream {
    fn read_piece(&mut self) -> io::Result<()> {
        let wanted = (self.blob.len - self.at).min(STREAM_BYTES as u64) as usize;
        self.piece.resize(wanted, 0);
        // Nothing is given out of what was not checked.
        self.given = wanted;
        let file = self.file.file();
        file.read_exact_at(&mut self.piece, self.at)?;
        let checked = self.file.verify(&self.piece, self.at);
        checked.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.given = 0;
        self.at += wanted as u64;
        Ok(())
    }
}

impl io::Read for BlobStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.piece.len() && self.at < self.blob.len && !buffer.is_empty() {
            self.read_piece()?;
        }
        let left = &self.piece[self.given..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.given += count;
        Ok(count)
    }
}

/// Bytes that a stream reads at a time.
const STREAM_BYTES: usize = 4 * BLOB_PIECE_BYTES;
