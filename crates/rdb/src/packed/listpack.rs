//! A listpack.
//!
//! ```text
//! bytes4 count2 (entry back)... 255       the numbers have the lowest byte first
//!
//! entry    0nnnnnnn                       a number of 7 bits
//!          10nnnnnn bytes                 a string of up to 63 bytes
//!          110nnnnn n                     a signed number of 13 bits, the highest first
//!          1110nnnn n bytes               a string of up to 4095 bytes
//!          11110000 n4 bytes              a string
//!          11110001 n2, 11110010 n3,
//!          11110011 n4, 11110100 n8       a signed number
//! back     the bytes of the entry, seven bits in each byte, the highest first, a set bit in all but the
//! first
//! ```

use super::cell::{Cell, Count, END, Flaw, array, range, signed};

pub(super) const HEADER: usize = 6;

#[derive(Clone, Debug)]
pub(super) struct Listpack {
    at: usize,
    pub(super) count: Count,
}

impl Listpack {
    pub(super) fn new(bytes: &[u8]) -> Result<Listpack, Flaw> {
        let flaw = |at, what| Flaw { at, what };
        let said = array(bytes, 0).map(u32::from_le_bytes);
        if said.map(u64::from) != Some(bytes.len() as u64) {
            return Err(flaw(0, "stands another number of bytes"));
        }
        let count = array(bytes, 4).ok_or(flaw(4, "it ends"))?;
        Ok(Listpack {
            at: HEADER,
            count: Count::new(count),
        })
    }

    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<Option<Cell>, Flaw> {
        let at = self.at;
        let flaw = |what| Flaw { at, what };
        let code = *bytes.get(at).ok_or(flaw("it ends"))?;
        if code == END {
            return match self.count.is_right() && at + 1 == bytes.len() {
                true => Ok(None),
                false => Err(flaw(
                    "is the end, too soon or after another number of entries",
                )),
            };
        }
        let (cell, len) = entry(code, bytes, at).ok_or(flaw("is no entry"))?;
        let back = at + len;
        let (expected, back_len) = back_of(len);
        let expected = &expected[5 - back_len..];
        if range(bytes, back, back_len).is_none_or(|range| bytes[range] != *expected) {
            return Err(flaw("is an entry of another length than it says behind"));
        }
        self.at = back + back_len;
        self.count.seen += 1;
        Ok(Some(cell))
    }
}

/// What an entry holds, and its bytes.
fn entry(code: u8, bytes: &[u8], at: usize) -> Option<(Cell, usize)> {
    let string = |begin: usize, len: usize| {
        let range = range(bytes, at + begin, len)?;
        Some((Cell::Bytes(range), begin + len))
    };
    let number = |number: Option<i64>, len| Some((Cell::Number(number?), len));
    match code {
        0..0x80 => number(Some(i64::from(code)), 1),
        0x80..0xc0 => string(1, usize::from(code & 0x3f)),
        0xc0..0xe0 => {
            let low = *bytes.get(at + 1)?;
            // The sign is the thirteenth bit.
            let wide = i16::from_be_bytes([code << 3, 0]) | i16::from(low) << 3;
            number(Some(i64::from(wide >> 3)), 2)
        }
        0xe0..0xf0 => {
            let low = usize::from(*bytes.get(at + 1)?);
            string(2, usize::from(code & 0x0f) << 8 | low)
        }
        0xf0 => {
            let len = array(bytes, at + 1).map(u32::from_le_bytes)?;
            string(5, usize::try_from(len).ok()?)
        }
        0xf1 => number(signed::<2>(bytes, at + 1), 3),
        0xf2 => number(signed::<3>(bytes, at + 1), 4),
        0xf3 => number(signed::<4>(bytes, at + 1), 5),
        0xf4 => number(signed::<8>(bytes, at + 1), 9),
        _ => None,
    }
}

/// What stands behind an entry of so many bytes: the last of these bytes, and how many of them.
pub(super) fn back_of(len: usize) -> ([u8; 5], usize) {
    // Redis takes a byte more from these lengths on.
    let count = match len {
        0..128 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    let mut back = [0; 5];
    for (place, byte) in back.iter_mut().rev().take(count).enumerate() {
        let is_first = place + 1 == count;
        let bits = (len >> (7 * place)) as u8 & 0x7f;
        *byte = if is_first { bits } else { bits | 0x80 };
    }
    (back, count)
}
