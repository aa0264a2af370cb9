//! A zipmap.
//!
//! ```text
//! pairs1 (length field length spare1 value spare bytes)... 255
//!
//! pairs    254 or more if there are as many
//! length   one byte below 254, or 254 and four, the lowest first
//! spare    bytes behind the value that are of no use
//! ```

use super::cell::{Cell, END, Flaw, array, range};

const LONG: u8 = 254;

#[derive(Clone, Debug)]
pub(super) struct Zipmap {
    at: usize,
    pairs: u8,
    /// Cells so far.
    seen: u64,
}

impl Zipmap {
    pub(super) fn new(bytes: &[u8]) -> Result<Zipmap, Flaw> {
        let pairs = *bytes.first().ok_or(Flaw {
            at: 0,
            what: "it ends",
        })?;
        Ok(Zipmap {
            at: 1,
            pairs,
            seen: 0,
        })
    }

    pub(super) fn claimed(&self) -> Option<u64> {
        (self.pairs < LONG).then_some(2 * u64::from(self.pairs))
    }

    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<Option<Cell>, Flaw> {
        let at = self.at;
        let flaw = |what| Flaw { at, what };
        let first = *bytes.get(at).ok_or(flaw("it ends"))?;
        let is_field = self.seen.is_multiple_of(2);
        if first == END {
            let is_right = self.claimed().is_none_or(|cells| cells == self.seen);
            return match is_field && is_right && at + 1 == bytes.len() {
                true => Ok(None),
                false => Err(flaw(
                    "is the end, too soon or after another number of pairs",
                )),
            };
        }
        let cell =
            cell(bytes, at, first, is_field).ok_or(flaw("is a string that goes on behind the end"));
        let (string, end) = cell?;
        self.at = end;
        self.seen += 1;
        Ok(Some(Cell::Bytes(string)))
    }
}

/// Where the string of a field or a value is, and where what belongs to it ends.
fn cell(
    bytes: &[u8],
    at: usize,
    first: u8,
    is_field: bool,
) -> Option<(std::ops::Range<usize>, usize)> {
    let (len, mut begin) = match first {
        LONG => (array(bytes, at + 1).map(u32::from_le_bytes)?, at + 5),
        _ => (u32::from(first), at + 1),
    };
    let mut spare = 0;
    if !is_field {
        spare = usize::from(*bytes.get(begin)?);
        begin += 1;
    }
    let string = range(bytes, begin, usize::try_from(len).ok()?)?;
    let end = range(bytes, string.end, spare)?.end;
    Some((string, end))
}
