//! A ziplist.
//!
//! ```text
//! bytes4 last4 count2 (before entry)... 255        the numbers have the lowest byte first, if nothing else
//! is said
//!
//! last     where the last entry begins, `before` included
//! before   the bytes of the entry before, `before` included: one byte below 254, or 254 and four
//! entry    00nnnnnn bytes                 a string of up to 63 bytes
//!          01nnnnnn n bytes               a string of up to 16383 bytes, the highest bits first
//!          10...... n4 bytes              a string, the highest byte first
//!          11000000 n2, 11010000 n4,
//!          11100000 n8, 11110000 n3,
//!          11111110 n                     a signed number
//!          1111nnnn                       n - 1, if n is from 1 to 13
//! ```

use super::cell::{Cell, Count, END, Flaw, array, range, signed};

const HEADER: usize = 10;
/// What stands before four bytes of length.
const LONG: u8 = 254;

#[derive(Clone, Debug)]
pub(super) struct Ziplist {
    at: usize,
    /// Where the last entry begins, as the header says.
    last: usize,
    /// Bytes of the entry before.
    before: usize,
    pub(super) count: Count,
}

impl Ziplist {
    pub(super) fn new(bytes: &[u8]) -> Result<Ziplist, Flaw> {
        let flaw = |at, what| Flaw { at, what };
        let said = array(bytes, 0).map(u32::from_le_bytes);
        if said.map(u64::from) != Some(bytes.len() as u64) {
            return Err(flaw(0, "stands another number of bytes"));
        }
        let (last, count) = (array(bytes, 4), array(bytes, 8));
        let (Some(last), Some(count)) = (last, count) else {
            return Err(flaw(4, "it ends"));
        };
        Ok(Ziplist {
            at: HEADER,
            last: u32::from_le_bytes(last) as usize,
            before: 0,
            count: Count::new(count),
        })
    }

    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<Option<Cell>, Flaw> {
        let at = self.at;
        let flaw = |what| Flaw { at, what };
        let first = *bytes.get(at).ok_or(flaw("it ends"))?;
        if first == END {
            let is_last = self.count.seen == 0 || at - self.before == self.last;
            return match self.count.is_right() && is_last && at + 1 == bytes.len() {
                true => Ok(None),
                false => Err(flaw("is the end, and the beginning says otherwise")),
            };
        }
        let (before, begin) = match first {
            LONG => (array(bytes, at + 1).map(u32::from_le_bytes), at + 5),
            _ => (Some(u32::from(first)), at + 1),
        };
        if before.map(u64::from) != Some(self.before as u64) {
            return Err(flaw("stands another length of the entry before"));
        }
        let (cell, len) = entry(bytes, begin).ok_or(flaw("is no entry"))?;
        self.at = begin + len;
        self.before = self.at - at;
        self.count.seen += 1;
        Ok(Some(cell))
    }
}

/// What an entry holds, and its bytes.
fn entry(bytes: &[u8], at: usize) -> Option<(Cell, usize)> {
    let string = |begin: usize, len: usize| {
        let range = range(bytes, at + begin, len)?;
        Some((Cell::Bytes(range), begin + len))
    };
    let number = |number: Option<i64>, len| Some((Cell::Number(number?), len));
    let code = *bytes.get(at)?;
    match code {
        0..0x40 => string(1, usize::from(code)),
        0x40..0x80 => {
            let low = usize::from(*bytes.get(at + 1)?);
            string(2, usize::from(code & 0x3f) << 8 | low)
        }
        0x80..0xc0 => {
            let len = array(bytes, at + 1).map(u32::from_be_bytes)?;
            string(5, usize::try_from(len).ok()?)
        }
        0xc0 => number(signed::<2>(bytes, at + 1), 3),
        0xd0 => number(signed::<4>(bytes, at + 1), 5),
        0xe0 => number(signed::<8>(bytes, at + 1), 9),
        0xf0 => number(signed::<3>(bytes, at + 1), 4),
        0xf1..=0xfd => number(Some(i64::from(code & 0x0f) - 1), 1),
        0xfe => number(signed::<1>(bytes, at + 1), 2),
        _ => None,
    }
}
