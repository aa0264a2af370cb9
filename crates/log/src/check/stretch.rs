//! Whole records one behind the other, in their places or not.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use sys::file::File;

use crate::address::Lsn;
use crate::error::{Damage, Error, Result};
use crate::recover::parts::Candidate;
use crate::walk::Walk;

/// Whole records one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) first: Lsn,
    pub(super) end: Lsn,
    /// How far behind their places in the file the records are.
    pub(super) shift: i64,
}

impl Candidate {
    /// Where records end at most that are `shift` bytes behind their places.
    pub(super) fn file_end(&self, shift: i64) -> Lsn {
        let bytes = self.size.saturating_sub(self.header_bytes);
        self.header
            .first
            .offset(bytes.saturating_add_signed(-shift) & !7)
    }

    /// Where a record is in the file that is `shift` bytes behind its place.
    pub(super) fn offset(&self, lsn: Lsn, shift: i64) -> u64 {
        let place = self.header_bytes + (lsn.0 - self.header.first.0);
        place.wrapping_add_signed(shift)
    }

    /// A walk through a stretch.
    pub(super) fn walk(&self, stretch: Stretch) -> Walk<'_> {
        let first = self.header.first;
        let walk = Walk::new(&*self.file, &self.path, first, self.header_bytes, first);
        let mut walk = walk.shifted(stretch.shift, stretch.end);
        walk.go_to(stretch.first);
        walk
    }
}

/// Damage of a file.
pub(super) fn damage(path: &Path, offset: u64, reason: impl fmt::Display) -> Damage {
    Damage {
        file: path.to_owned(),
        offset,
        reason: reason.to_string(),
    }
}

/// Whether a part of a file is zeroes.
pub(super) fn is_zero(file: &dyn File, range: Range<u64>) -> Result<bool> {
    let mut at = range.start;
    let mut piece = vec![0; 1 << 20];
    while at < range.end {
        let wanted = piece.len().min((range.end - at) as usize);
        let count = file
            .read_at(&mut piece[..wanted], at)
            .map_err(|error| Error::io("cannot read", Path::new("a segment"), error))?;
        if count == 0 {
            break;
        }
        if piece[..count].iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        at += count as u64;
    }
    Ok(true)
}
