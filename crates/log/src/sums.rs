//! The checksums of a large value's pieces, in its file behind the value, and reading a value with them.
//!
//! ```text
//!  0                    len     a block          a block
//!  +--------------------+-------+----------------+----------------+-----
//!  | the value          | 0 ... | table block 0  | table block 1  | ...
//!  +--------------------+-------+----------------+----------------+-----
//!                                 a checksum for each of 1020 pieces of 64 KiB
//! ```
//!
//! A table block checks itself, so that a part of a value is read with the block that is about it, and no
//! more. What a checksum continues from is made of the blob's number and the number of the piece or block: a
//! piece of another place or another file does not pass. docs/format.md has the bytes.
//!
//! A value of one piece has no table: the checksum in its record is that of the piece. Neither have files of
//! versions before the table, which end with the block that the value ends in: those are checked as a whole,
//! where they are read from the beginning to the end.
//!
//! Invariants:
//! 1. A file that goes on behind the block that its value ends in has a table. One that is longer without is
//!    damaged.
//! 2. Bytes that [`BlobFile::verify`] has passed are those that were written there.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sys::file::{DIRECT_BLOCK, File, Files};

use crate::error::{Damage, Error, Result};
use crate::record::BlobRef;

/// Bytes of a piece of a large value that has a checksum of its own. A value is read from the beginning of
/// such a piece on.
pub const BLOB_PIECE_BYTES: usize = 64 << 10;

const PIECE: u64 = BLOB_PIECE_BYTES as u64;
const BLOCK: usize = DIRECT_BLOCK;
const MAGIC: &[u8; 8] = b"ferrsums";
/// Magic, bytes of a piece (u32), checksum of the block (u32).
const BLOCK_HEADER: usize = 16;
const CHECKSUM_AT: usize = 12;
/// Pieces that a block is about.
const PIECES: u64 = ((BLOCK - BLOCK_HEADER) / 4) as u64;

const _: () = assert!(PIECES == 1020 && BLOCK == 4096);

/// What is wrong with a value that has no table.
const NO_MATCH: &str = "the checksum does not match";

/// What a checksum continues from.
fn seed(id: u64, number: u64) -> u32 {
    let place = id >> 3;
    (place as u32) ^ (place >> 32) as u32 ^ (number as u32).rotate_left(16)
}

/// Where the table of a value begins.
fn table_at(len: u64) -> u64 {
    len.next_multiple_of(BLOCK as u64)
}

/// Bytes of the table of a value.
fn table_bytes(len: u64) -> u64 {
    match len.div_ceil(PIECE) {
        0 | 1 => 0,
        pieces => pieces.div_ceil(PIECES) * BLOCK as u64,
    }
}

/// Bytes of the file of a value.
pub(crate) fn file_bytes(len: u64) -> u64 {
    table_at(len) + table_bytes(len)
}

fn block_checksum(id: u64, number: u64, block: &[u8]) -> u32 {
    let checksum = crc32c::crc32c_append(seed(id, number), &block[..CHECKSUM_AT]);
    let checksum = crc32c::crc32c_append(checksum, &[0; 4]);
    crc32c::crc32c_append(checksum, &block[BLOCK_HEADER..])
}

/// The checksums of a value that is being written.
#[derive(Debug)]
pub(crate) struct Sums {
    id: u64,
    complete: Vec<u32>,
    /// Of the piece that is not complete: its checksum so far, and its bytes.
    checksum: u32,
    filled: u64,
    /// The checksum of all.
    whole: u32,
}

impl Sums {
    pub(crate) fn new(id: u64) -> Sums {
        Sums {
            id,
            complete: Vec::new(),
            checksum: seed(id, 0),
            filled: 0,
            whole: 0,
        }
    }

    /// Notes what comes next of the value.
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = (PIECE - self.filled) as usize;
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.whole = crc32c::crc32c_append(self.whole, now);
            self.checksum = crc32c::crc32c_append(self.checksum, now);
            self.filled += now.len() as u64;
            if self.filled == PIECE {
                self.complete.push(self.checksum);
                self.checksum = seed(self.id, self.complete.len() as u64);
                self.filled = 0;
            }
            bytes = rest;
        }
    }

    /// The checksum of the whole value.
    pub(crate) fn whole(&self) -> u32 {
        self.whole
    }

    /// The table, in front of which there are `len` bytes of value: where it goes, and its bytes. Empty for a
    /// value of one piece.
    pub(crate) fn table(&mut self, len: u64) -> (u64, Vec<u8>) {
        if self.filled > 0 {
            self.complete.push(self.checksum);
            self.filled = 0;
        }
        let mut table = vec![0; table_bytes(len) as usize];
        let parts = self.complete.chunks(PIECES as usize);
        for (number, (block, sums)) in table.chunks_exact_mut(BLOCK).zip(parts).enumerate() {
            block[..8].copy_from_slice(MAGIC);
            block[8..12].copy_from_slice(&(BLOB_PIECE_BYTES as u32).to_le_bytes());
            for (place, sum) in block[BLOCK_HEADER..].chunks_exact_mut(4).zip(sums) {
                place.copy_from_slice(&sum.to_le_bytes());
            }
            let checksum = block_checksum(self.id, number as u64, block);
            block[CHECKSUM_AT..BLOCK_HEADER].copy_from_slice(&checksum.to_le_bytes());
        }
        (table_at(len), table)
    }
}

/// The file of a large value, and what is known of its checksums.
#[derive(Debug)]
pub struct BlobFile {
    place: Place,
    known: Known,
}

/// An open file, its name, and the value that it is to have.
#[derive(Debug)]
struct Place {
    file: Arc<dyn File>,
    path: PathBuf,
    blob: BlobRef,
}

/// How a value is checked.
#[derive(Debug)]
enum Known {
    /// By its record alone, as a whole: what was read from its beginning on, and the checksum of that.
    Whole { read: u64, checksum: u32 },
    /// By a table, of which this block was read last.
    Table { number: u64, block: Vec<u8> },
}

impl BlobFile {
    /// Opens the file of a value.
    ///
    /// # Errors
    /// The disk refuses, or the file is too short.
    pub(crate) fn open(files: &dyn Files, path: &Path, blob: BlobRef) -> Result<BlobFile> {
        BlobFile::at(Place::open(files, path, blob)?)
    }

    /// The file of a value, which is open; `path` is what it is called in messages.
    ///
    /// # Errors
    /// The disk refuses, or the file is too short.
    pub(crate) fn of(file: Arc<dyn File>, path: &Path, blob: BlobRef) -> Result<BlobFile> {
        BlobFile::at(Place::of(file, path, blob)?)
    }

    fn at((place, size): (Place, u64)) -> Result<BlobFile> {
        let blob = place.blob;
        let has_table = table_bytes(blob.len) > 0 && size > table_at(blob.len);
        if has_table && size < file_bytes(blob.len) {
            let reason = "the file ends within the checksums of its pieces";
            return Err(place.damage(size, reason));
        }
        let known = match has_table {
            true => Known::Table {
                number: u64::MAX,
                block: Vec::new(),
            },
            false => Known::Whole {
                read: 0,
                checksum: 0,
            },
        };
        Ok(BlobFile { place, known })
    }

    /// The file itself. What is read from it was not checked.
    pub fn file(&self) -> &dyn File {
        &*self.place.file
    }

    /// Checks bytes that were read at `at`: whole pieces ([`BLOB_PIECE_BYTES`]), or up to the end of the
    /// value. May wait for the disk.
    ///
    /// Of a value that has no table the last piece is refused, where all was read in order; nothing is known
    /// of the others then.
    ///
    /// # Errors
    /// They are not what was written: which piece of which file. Or the disk refuses.
    ///
    /// # Panics
    /// If they do not begin with a piece, or end elsewhere.
    pub fn verify(&mut self, bytes: &[u8], at: u64) -> Result<()> {
        self.known.verify(&self.place, bytes, at)
    }

    /// Reads the value from its beginning to its end, and checks it by its pieces and as a whole.
    fn check(&mut self) -> Result<()> {
        let mut checksum = 0;
        let (place, known) = (&self.place, &mut self.known);
        place.scan(|bytes, at| {
            checksum = crc32c::crc32c_append(checksum, bytes);
            known.verify(place, bytes, at)
        })?;
        match checksum == place.blob.checksum {
            true => Ok(()),
            false => Err(place.damage(0, NO_MATCH)),
        }
    }
}

impl Known {
    fn verify(&mut self, place: &Place, bytes: &[u8], at: u64) -> Result<()> {
        let (blob, end) = (place.blob, at + bytes.len() as u64);
        assert!(at.is_multiple_of(PIECE) && (end.is_multiple_of(PIECE) || end == blob.len));
        if let Known::Whole { read, checksum } = self {
            if at != *read {
                return Ok(());
            }
            let now = crc32c::crc32c_append(*checksum, bytes);
            if end == blob.len && now != blob.checksum {
                return Err(place.damage(0, NO_MATCH));
            }
            (*read, *checksum) = (end, now);
            return Ok(());
        }
        for (piece, number) in bytes.chunks(BLOB_PIECE_BYTES).zip(at / PIECE..) {
            let expected = self.expected(place, number)?;
            if crc32c::crc32c_append(seed(blob.id, number), piece) != expected {
                let pieces = blob.len.div_ceil(PIECE);
                let reason = format!(
                    "the checksum of piece {number} of {pieces} ({BLOB_PIECE_BYTES} bytes each) does \
                     not match"
                );
                return Err(place.damage(number * PIECE, reason));
            }
        }
        Ok(())
    }

    /// What the table says of a piece.
    fn expected(&mut self, place: &Place, piece: u64) -> Result<u32> {
        let Known::Table { number, block } = self else {
            return Ok(place.blob.checksum);
        };
        let wanted = piece / PIECES;
        if *number != wanted {
            // Nothing is known before it is checked.
            *number = u64::MAX;
            block.resize(BLOCK, 0);
            let at = table_at(place.blob.len) + wanted * BLOCK as u64;
            let read = place.file.read_exact_at(block, at);
            read.map_err(|error| place.io(error))?;
            let sum = block_checksum(place.blob.id, wanted, block);
            let is_right = block[..8] == *MAGIC
                && block[8..CHECKSUM_AT] == (BLOB_PIECE_BYTES as u32).to_le_bytes()
                && block[CHECKSUM_AT..BLOCK_HEADER] == sum.to_le_bytes();
            if !is_right {
                let first = wanted * PIECES;
                let reason = format!("the checksums of its pieces from {first} on are damaged");
                return Err(place.damage(at, reason));
            }
            *number = wanted;
        }
        let at = BLOCK_HEADER + (piece % PIECES) as usize * 4;
        let sum = block[at..at + 4].try_into().expect("four bytes are four");
        Ok(u32::from_le_bytes(sum))
    }
}

impl Place {
    /// Opens a file that is long enough for its value. With its size.
    fn open(files: &dyn Files, path: &Path, blob: BlobRef) -> Result<(Place, u64)> {
        let file = files.open(path);
        let file = file.map_err(|error| Error::io("cannot open", path, error))?;
        Place::of(file.into(), path, blob)
    }

    /// The same of a file that is open.
    fn of(file: Arc<dyn File>, path: &Path, blob: BlobRef) -> Result<(Place, u64)> {
        let path = path.to_owned();
        let place = Place { file, path, blob };
        let size = place.file.size().map_err(|error| place.io(error))?;
        // The length is what a record says, which may say anything.
        match size < blob.len {
            true => Err(place.damage(size, "the file ends too early")),
            false => Ok((place, size)),
        }
    }

    /// Reads the value from its beginning to its end, and hands out what was read: whole pieces, but for the
    /// end.
    fn scan(&self, mut each: impl FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        let mut buffer = vec![0; SCAN_BYTES];
        let mut at = 0;
        while at < self.blob.len {
            let wanted = buffer.len().min((self.blob.len - at) as usize);
            // Whole blocks go past the page cache. The file goes on behind the value up to the end of a
            // block, or ends.
            let room = wanted.next_multiple_of(BLOCK);
            let mut done = 0;
            while done < wanted {
                let from = at + done as u64;
                match self.file.scan_at(&mut buffer[done..room], from) {
                    Ok(0) => return Err(self.io(io::ErrorKind::UnexpectedEof.into())),
                    Ok(count) => done += count,
                    Err(error) => return Err(self.io(error)),
                }
            }
            each(&buffer[..wanted], at)?;
            at += wanted as u64;
        }
        Ok(())
    }

    fn damage(&self, offset: u64, reason: impl fmt::Display) -> Error {
        Error::damage(&self.path, offset, reason)
    }

    fn io(&self, error: io::Error) -> Error {
        Error::io("cannot read", &self.path, error)
    }
}

/// Bytes read with one call by who reads all of a value: whole pieces.
const SCAN_BYTES: usize = 16 * BLOB_PIECE_BYTES;

/// What is wrong with a value's file, if anything is.
///
/// # Errors
/// The disk refuses.
pub(crate) fn damage_of(files: &dyn Files, path: &Path, blob: BlobRef) -> Result<Option<Damage>> {
    match BlobFile::open(files, path, blob).and_then(|mut file| file.check()) {
        Ok(()) => Ok(None),
        Err(Error::Damage(damage)) => Ok(Some(damage)),
        Err(Error::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Some(Damage {
                file: path.to_owned(),
                offset: 0,
                reason: "the file of a large value is missing".into(),
            }))
        }
        Err(error) => Err(error),
    }
}

/// Whether a value is what its record says, whatever the checksums of its pieces are.
///
/// # Errors
/// The disk refuses.
pub(crate) fn is_whole(files: &dyn Files, path: &Path, blob: BlobRef) -> Result<bool> {
    let place = match Place::open(files, path, blob) {
        Ok((place, _)) => place,
        Err(Error::Damage(_)) => return Ok(false),
        Err(Error::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    let mut checksum = 0;
    place.scan(|bytes, _| {
        checksum = crc32c::crc32c_append(checksum, bytes);
        Ok(())
    })?;
    Ok(checksum == blob.checksum)
}

/// Writes the checksums of a value's pieces anew, and makes them durable.
///
/// # Errors
/// The disk refuses.
pub(crate) fn write_anew(files: &dyn Files, path: &Path, blob: BlobRef) -> Result<()> {
    let (place, _) = Place::open(files, path, blob)?;
    let mut sums = Sums::new(blob.id);
    place.scan(|bytes, _| {
        sums.add(bytes);
        Ok(())
    })?;
    let (at, table) = sums.table(blob.len);
    let write = |error| Error::io("cannot write", path, error);
    place.file.write_at(&table, at).map_err(write)?;
    place.file.sync_data().map_err(write)
}

#[cfg(test)]
mod tests;
