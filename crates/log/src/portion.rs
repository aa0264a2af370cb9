//! Reading a segment for a second time, a portion after the other: its records checked, and sorted by the
//! hash of their keys, so that who looks for them in memory finds those of one shard together. Records of one
//! key stay in their order.

use crate::error::Result;
use crate::piece::{Piece, Replayed};
use crate::record::{self, Entry, HEADER, Record};
use crate::routes::Routes;
use crate::segments::Segment;

/// Records of a portion that are handed over at once, and bytes of them, at most; one record is, however long
/// it is.
const SLICE: usize = 256;
const SLICE_BYTES: u64 = 64 << 10;

/// See the module.
pub(crate) struct Portion {
    piece: Piece,
    routes: Routes,
}

impl Portion {
    pub(crate) fn new() -> Portion {
        Portion {
            piece: Piece::default(),
            routes: Routes::new(1),
        }
    }

    /// Reads the portion that begins `at` bytes behind a segment's first record, and ends at `end` at the
    /// latest, where a record ends. `hash` gives the hash of a record's key; without one it is left out.
    /// Returns the bytes that the portion has.
    ///
    /// # Errors
    /// A record is damaged, of another version, or cannot be read.
    pub(crate) fn read(
        &mut self,
        segment: &Segment,
        at: u64,
        end: u64,
        hash: impl Fn(&Record<'_>) -> Option<u64>,
    ) -> Result<u64> {
        self.routes.clear();
        self.piece.read(segment, at, end)?;
        let first = segment.first.offset(at);
        let (bytes, mut at) = (self.piece.bytes(), 0);
        while at < bytes.len() {
            let lsn = first.offset(at as u64);
            let found =
                record::read(&bytes[at..], lsn).map_err(|flaw| segment.flawed(lsn, flaw))?;
            if let Entry::Key(record) = &found.entry
                && let Some(hash) = hash(record)
            {
                self.routes.add(hash, at);
            }
            at += match found.entry {
                // What is inside comes next.
                Entry::Batch(_) => HEADER,
                _ => found.bytes,
            };
        }
        self.routes.sort();
        Ok(self.piece.log_bytes)
    }

    /// The same for a block of hints; whether it is one.
    pub(crate) fn read_hints(
        &mut self,
        hints: Vec<u8>,
        hash: impl Fn(&Record<'_>) -> Option<u64>,
    ) -> bool {
        self.routes.clear();
        self.piece.set_hints(hints);
        let (bytes, mut at) = (self.piece.bytes(), 0);
        while at < bytes.len() {
            let Some(hint) = record::read_hint(&bytes[at..]) else {
                return false;
            };
            if let Some(hash) = hash(&hint.record) {
                self.routes.add(hash, at);
            }
            at += hint.bytes;
        }
        self.routes.sort();
        true
    }

    /// Puts the next records into `slice`, from the one with the number `from` on, and returns the number to
    /// go on with. None are left if the slice is empty.
    pub(crate) fn fill<'p>(&'p self, from: usize, slice: &mut Vec<Replayed<'p>>) -> usize {
        slice.clear();
        let (routes, mut bytes) = (&self.routes.all()[from..], 0);
        for route in routes.iter().take(SLICE) {
            let record = self.piece.record_at(route.at as usize);
            let hash = route.hash;
            bytes += record.bytes();
            if !slice.is_empty() && bytes > SLICE_BYTES {
                break;
            }
            slice.push(Replayed { record, hash });
        }
        from + slice.len()
    }
}
