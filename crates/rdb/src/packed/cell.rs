//! What all forms have: cells, what can be wrong, and numbers in bytes.

use std::fmt;
use std::ops::Range;

/// What a cell holds: an element, or half of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// The bytes of the string at this place.
    Bytes(Range<usize>),
    /// What stands for its decimal digits.
    Number(i64),
}

/// Why bytes are not of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Where.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {} {}", self.at, self.what)
    }
}

/// The number that stands in 16 bits at the beginning of a form: of so many cells that it does not fit, that
/// it does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    said: u16,
    /// Cells so far.
    pub(super) seen: u64,
}

impl Count {
    const MANY: u16 = u16::MAX;

    pub(super) fn new(said: [u8; 2]) -> Count {
        Count {
            said: u16::from_le_bytes(said),
            seen: 0,
        }
    }

    pub(super) fn claimed(self) -> Option<u64> {
        (self.said != Count::MANY).then_some(u64::from(self.said))
    }

    /// Whether no other number of cells was said.
    pub(super) fn is_right(self) -> bool {
        self.claimed().is_none_or(|said| said == self.seen)
    }
}

/// The last byte of a form.
pub(super) const END: u8 = 0xff;

/// The `N` bytes at a place, if they are there.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The place of so many bytes, if they are there.
pub(super) fn range(bytes: &[u8], at: usize, len: usize) -> Option<Range<usize>> {
    let end = at.checked_add(len).filter(|&end| end <= bytes.len())?;
    Some(at..end)
}

/// A number of `N` bytes, the lowest first; with its sign.
pub(super) fn signed<const N: usize>(bytes: &[u8], at: usize) -> Option<i64> {
    let number: [u8; N] = array(bytes, at)?;
    let mut wide = [0; 8];
    wide[8 - N..].copy_from_slice(&number);
    Some(i64::from_le_bytes(wide) >> (64 - 8 * N as u32))
}
