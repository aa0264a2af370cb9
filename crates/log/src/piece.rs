//! A piece of the log: whole records, or hints of them.
//!
//! A piece is small enough to stay in a processor's own cache while it is checked, sorted and applied, and is
//! read into the same memory again and again, past the page cache where that does not have it already
//! ([`sys::file::File::scan_at`]). Nothing is checked here but lengths.

use std::ops::Range;

use sys::file::{DIRECT_BLOCK, File};

use crate::address::Lsn;
use crate::error::{Error, Result};
use crate::record::{self, Entry, HEADER, Record};
use crate::segments::Segment;

/// Bytes of a piece, unless a single record is larger.
const PIECE: u64 = 512 << 10;
const BLOCK: usize = DIRECT_BLOCK;

/// Whole records, as they are in a segment, or hints.
#[derive(Default)]
pub(crate) struct Piece {
    /// Its place in the order of the log.
    pub(crate) number: u64,
    /// The number of its segment.
    pub(crate) segment: usize,
    /// Where the records begin; `None` if these are hints.
    pub(crate) first: Option<Lsn>,
    /// Bytes of the log that it stands for.
    pub(crate) log_bytes: u64,
    buffer: Vec<u8>,
    /// Where in the buffer it is.
    at: Range<usize>,
}

impl Piece {
    /// The records, or hints.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.at.clone()]
    }

    /// The record of a key at `at`, which was checked.
    #[inline]
    pub(crate) fn record_at(&self, at: usize) -> Record<'_> {
        let bytes = &self.bytes()[at..];
        let record = match self.first {
            None => record::read_hint(bytes).map(|hint| hint.record),
            Some(first) => {
                match record::parse(bytes, first.offset(at as u64)).map(|found| found.entry) {
                    Ok(Entry::Key(record)) => Some(record),
                    _ => None,
                }
            }
        };
        record.expect("it was a record of a key when it was checked")
    }

    /// Memory for blocks of which `wanted` bytes are needed, or as many more as make a usual piece. Begins at
    /// a multiple of a block.
    fn blocks(&mut self, wanted: usize) -> (usize, &mut [u8]) {
        let wanted = wanted.max(PIECE as usize).next_multiple_of(BLOCK);
        // One that was made for a very long record is not kept.
        if self.buffer.len() < wanted + BLOCK || self.buffer.len() > 2 * (wanted + BLOCK) {
            self.buffer = vec![0; wanted + BLOCK];
        }
        let skew = self.buffer.as_ptr().align_offset(BLOCK) % BLOCK;
        (skew, &mut self.buffer[skew..skew + wanted])
    }

    /// Takes a block of hints.
    pub(crate) fn set_hints(&mut self, hints: Vec<u8>) {
        self.first = None;
        self.at = 0..hints.len();
        self.buffer = hints;
    }

    /// Reads whole records of a segment, from `at` bytes behind its first one on, of which there are some,
    /// and none behind `end`, where one ends.
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) fn read(&mut self, segment: &Segment, at: u64, end: u64) -> Result<()> {
        let left = end - at;
        let first = segment.first.offset(at);
        // Whole blocks are read, of which the first and the last may belong to the neighbours as well.
        let from = segment.offset_of(first);
        let before = (from % BLOCK as u64) as usize;
        let mut wanted = (PIECE - before as u64).min(left);
        let have = loop {
            let needed = before + wanted as usize;
            let (skew, blocks) = self.blocks(needed);
            read_blocks(&*segment.file, blocks, from - before as u64, needed)
                .map_err(|error| Error::io("cannot read", &segment.path, error))?;
            let whole = whole_records(&blocks[before..needed]);
            self.at = skew + before..skew + needed;
            // Damage looks like a record that is too long; it is named when the piece is checked.
            if whole.end > 0 || wanted == left || whole.next > left {
                let is_cut = whole.end > 0 && wanted < left;
                break if is_cut { whole.end } else { wanted as usize };
            }
            wanted = whole.next;
        };
        self.at.end = self.at.start + have;
        self.first = Some(first);
        self.log_bytes = have as u64;
        Ok(())
    }
}

/// One record, with the hash of its key.
#[derive(Clone, Copy, Debug)]
pub struct Replayed<'a> {
    /// The record.
    pub record: Record<'a>,
    /// What [`Replayer::hash`](crate::Replayer::hash) said of its key.
    pub hash: u64,
}

/// Fills at least the first `needed` bytes of `blocks` from `offset` on, which is a multiple of a block.
fn read_blocks(
    file: &dyn File,
    blocks: &mut [u8],
    offset: u64,
    needed: usize,
) -> std::io::Result<()> {
    let end = needed.next_multiple_of(BLOCK);
    let mut done = 0;
    while done < needed {
        let count = file.scan_at(&mut blocks[done..end], offset + done as u64)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        done += count;
    }
    Ok(())
}

/// How far whole records go, and how far the one behind them would.
struct Whole {
    end: usize,
    next: u64,
}

/// Looks at lengths alone. A batch is taken for its header, and what is inside for records.
fn whole_records(bytes: &[u8]) -> Whole {
    let mut at = 0;
    loop {
        let Some(header) = bytes[at..].first_chunk::<HEADER>() else {
            return Whole {
                end: at,
                next: (at + HEADER) as u64,
            };
        };
        let next = at as u64 + record::stride(header);
        if next > bytes.len() as u64 {
            return Whole { end: at, next };
        }
        at = next as usize;
    }
}
