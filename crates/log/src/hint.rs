//! Hints: what is in a full segment, without the values. A start that may leave values on the disk reads
//! these, and so does compaction, which then reads of a segment only what is needed. The log thread gathers
//! them while records pass it ([`crate::scan`]).
//!
//! ```text
//!  0        8         12         16       24       32          48
//!  +--------+---------+----------+--------+--------+-----------+ - - - - - - - - - - - - - - - - - - - +
//!  | magic  | version | checksum | first  | bytes  | log's     | blocks: length u32, checksum u32,      |
//!  |        | u32     | of these | u64    | u64    | name 16   | so many bytes of hints; one of length 0|
//!  +--------+---------+----------+--------+--------+-----------+ - - - - - - - - - - - - - - - - - - - +
//!
//!  a hint: the record's position u64, and the record without its data (header, expiry, key, facts), zeroes
//!  up to a multiple of 8. The header is the record's, so its length says how long the data is.
//! ```
//!
//! Where values are small hints take as much space as the segment: then there are none. A hint file repeats
//! what the segment says. One that is missing or damaged costs time, nothing else.

use sys::file::{File, Files};

use crate::address::Lsn;
use crate::error::{Error, Result};
use crate::paths::Paths;
use crate::record::{Record, read_hint};
use crate::segment::Name;
use crate::segments::Segment;

const MAGIC: [u8; 8] = *b"ferrhint";
const VERSION: u32 = 1;
const HEADER: usize = 48;
const BLOCK_HEADER: usize = 8;
/// Bytes of hints in a block, unless a single one is larger.
const BLOCK: usize = 1 << 20;

fn header(segment: &Segment, name: &Name) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&segment.first.get().to_le_bytes());
    header[24..32].copy_from_slice(&segment.bytes().to_le_bytes());
    header[32..].copy_from_slice(name);
    let checksum = crc32c::crc32c(&header);
    header[12..16].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// What a block's checksum begins with: its place in its segment's hints.
fn seed(first: Lsn, at: u64) -> u32 {
    (first.get() >> 3) as u32 ^ (at as u32).rotate_left(16)
}

/// Writes the hints of a full segment.
///
/// # Errors
/// The disk refuses: there are none then.
pub(crate) fn write(
    files: &dyn Files,
    paths: &Paths,
    name: &Name,
    segment: &Segment,
    hints: &[u8],
) -> Result<()> {
    let path = paths.hint(segment.first);
    let temporary = path.with_extension("hint.tmp");
    let _ = files.unlink(&temporary);
    let written = (|| {
        let file = files.create(&temporary)?;
        let (mut at, mut left) = (HEADER as u64, hints);
        loop {
            let (block, behind) = left.split_at(block_of(left));
            let checksum = crc32c::crc32c_append(seed(segment.first, at), block);
            let mut head = [0; BLOCK_HEADER];
            head[..4].copy_from_slice(&(block.len() as u32).to_le_bytes());
            head[4..].copy_from_slice(&checksum.to_le_bytes());
            file.write_at(&head, at)?;
            file.write_at(block, at + BLOCK_HEADER as u64)?;
            at += (BLOCK_HEADER + block.len()) as u64;
            left = behind;
            if block.is_empty() {
                break;
            }
        }
        file.write_at(&header(segment, name), 0)?;
        files.rename(&temporary, &path)
    })();
    written.map_err(|error| {
        let _ = files.unlink(&temporary);
        Error::io("cannot write", &path, error)
    })
}

/// Bytes of the hints that make the next block.
fn block_of(hints: &[u8]) -> usize {
    let mut at = 0;
    while at < hints.len() && at < BLOCK {
        at += read_hint(&hints[at..]).map_or(hints.len(), |hint| hint.bytes);
    }
    at.min(hints.len())
}

/// The hints of a segment, block by block.
pub(crate) struct Hints {
    file: Box<dyn File>,
    /// Where the segment begins.
    first: Lsn,
    at: u64,
}

impl Hints {
    /// Opens the hints of a segment, if they are there and whole, and all of its records will do. Reads all
    /// of them once.
    pub(crate) fn open(
        files: &dyn Files,
        paths: &Paths,
        name: &Name,
        segment: &Segment,
        will_do: impl Fn(&Record<'_>) -> bool,
    ) -> Option<Hints> {
        let file = files.open(&paths.hint(segment.first)).ok()?;
        let mut head = [0; HEADER];
        file.read_exact_at(&mut head, 0).ok()?;
        if head != header(segment, name) {
            return None;
        }
        let mut hints = Hints {
            file,
            first: segment.first,
            at: HEADER as u64,
        };
        loop {
            let block = hints.next()?;
            let mut left = &block[..];
            while !left.is_empty() {
                let hint = read_hint(left)?;
                if !will_do(&hint.record) {
                    return None;
                }
                left = &left[hint.bytes..];
            }
            if block.is_empty() {
                hints.at = HEADER as u64;
                return Some(hints);
            }
        }
    }

    /// The next block, checked; empty at the end. `None` if it cannot be read, or is damaged.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let mut head = [0; BLOCK_HEADER];
        self.file.read_exact_at(&mut head, self.at).ok()?;
        let [a, b, c, d, checksum @ ..] = head;
        let len = u32::from_le_bytes([a, b, c, d]);
        // The length is not to be trusted: there must be as much in the file.
        let size = self.file.size().ok()?;
        if self.at + BLOCK_HEADER as u64 + u64::from(len) > size {
            return None;
        }
        let mut block = vec![0; len as usize];
        self.file
            .read_exact_at(&mut block, self.at + BLOCK_HEADER as u64)
            .ok()?;
        let found = crc32c::crc32c_append(seed(self.first, self.at), &block);
        self.at += BLOCK_HEADER as u64 + u64::from(len);
        (found == u32::from_le_bytes(checksum)).then_some(block)
    }
}
