//! Reading a log from its beginning to its end, in pieces of whole records.

use std::sync::Arc;

use sys::file::Files;

use crate::error::{Error, Result};
use crate::hint::Hints;
use crate::paths::Paths;
use crate::piece::Piece;
use crate::record::{Change, Record};
use crate::segment::Name;
use crate::segments::Segment;

/// Reads pieces one after the other.
pub(crate) struct Pieces<'r> {
    files: &'r dyn Files,
    paths: &'r Paths,
    name: Option<Name>,
    segments: &'r [Arc<Segment>],
    leave_min: Option<u64>,
    /// The number of the next piece.
    number: u64,
    segment: usize,
    /// Bytes of the segment's records that were read.
    at: u64,
    /// The hints that are read instead.
    hints: Option<Hints>,
}

impl<'r> Pieces<'r> {
    pub(crate) fn new(
        files: &'r dyn Files,
        paths: &'r Paths,
        name: Option<Name>,
        segments: &'r [Arc<Segment>],
        leave_min: Option<u64>,
    ) -> Pieces<'r> {
        let mut pieces = Pieces {
            files,
            paths,
            name,
            segments,
            leave_min,
            number: 0,
            segment: 0,
            at: 0,
            hints: None,
        };
        pieces.begin();
        pieces
    }

    /// Reads the next piece; whether there is one. After an error its number is that of the piece that could
    /// not be read.
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) fn read(&mut self, piece: &mut Piece) -> Result<bool> {
        piece.number = self.number;
        self.number += 1;
        while let Some(segment) = self.segments.get(self.segment) {
            piece.segment = self.segment;
            if let Some(hints) = &mut self.hints {
                let bytes = hints.next().ok_or_else(|| {
                    let path = self.paths.hint(segment.first);
                    let reason = std::io::ErrorKind::UnexpectedEof.into();
                    Error::io("cannot read", &path, reason)
                })?;
                // All of the segment counts as read with its last block: nobody knows for how much of it a
                // block stands.
                let is_last = bytes.is_empty();
                piece.log_bytes = if is_last { segment.bytes() } else { 0 };
                piece.set_hints(bytes);
                if is_last {
                    self.segment += 1;
                    self.begin();
                }
                return Ok(true);
            }
            if self.at < segment.bytes() {
                piece.read(segment, self.at, segment.bytes())?;
                self.at += piece.log_bytes;
                return Ok(true);
            }
            self.segment += 1;
            self.begin();
        }
        Ok(false)
    }

    /// Looks for hints of the segment that comes now.
    fn begin(&mut self) {
        self.at = 0;
        self.hints = None;
        if let (Some(min), Some(segment), Some(name)) =
            (self.leave_min, self.segments.get(self.segment), &self.name)
        {
            let may_stay = |record: &Record<'_>| match record.change {
                Change::Set { tag, .. } if tag.is_tree => false,
                Change::Set { value, .. } => value.len() >= min,
                Change::Patch { bytes, .. } => bytes.len() >= min,
                // What a collection has is known from its records' data alone.
                Change::Edit { .. } | Change::Leaf { .. } => false,
                Change::Delete | Change::Expire(_) => true,
            };
            self.hints = Hints::open(self.files, self.paths, name, segment, may_stay);
        }
    }
}
