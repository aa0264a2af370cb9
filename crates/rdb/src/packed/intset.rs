//! An intset.
//!
//! ```text
//! width4 count4 number...      signed numbers of 2, 4 or 8 bytes, ascending; all have the lowest byte first
//! ```

use super::cell::{Cell, Flaw, array, signed};

const HEADER: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Intset {
    at: usize,
    /// Bytes of a number.
    width: usize,
    before: Option<i64>,
    count: u32,
}

impl Intset {
    pub(super) fn new(bytes: &[u8]) -> Result<Intset, Flaw> {
        let flaw = |at, what| Flaw { at, what };
        let width = match array(bytes, 0).map(u32::from_le_bytes) {
            Some(width @ (2 | 4 | 8)) => width,
            _ => return Err(flaw(0, "stands a width of numbers that there is not")),
        };
        let count = array(bytes, 4).map(u32::from_le_bytes);
        let count = count.ok_or(flaw(4, "it ends"))?;
        if HEADER as u64 + u64::from(count) * u64::from(width) != bytes.len() as u64 {
            return Err(flaw(4, "stands another number of integers"));
        }
        Ok(Intset {
            at: HEADER,
            width: width as usize,
            before: None,
            count,
        })
    }

    pub(super) fn claimed(&self) -> u64 {
        u64::from(self.count)
    }

    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<Option<Cell>, Flaw> {
        let at = self.at;
        if at == bytes.len() {
            return Ok(None);
        }
        let number = match self.width {
            2 => signed::<2>(bytes, at),
            4 => signed::<4>(bytes, at),
            _ => signed::<8>(bytes, at),
        };
        let what = "is no number above the one before";
        let number = number.filter(|number| self.before.is_none_or(|before| *number > before));
        let number = number.ok_or(Flaw { at, what })?;
        self.before = Some(number);
        self.at += self.width;
        Ok(Some(Cell::Number(number)))
    }
}

/// The intset of integers that ascend.
pub(crate) fn intset_of(integers: &[i64]) -> Vec<u8> {
    let fits = |bits: u32| {
        let rest = 64 - bits;
        integers
            .iter()
            .all(|integer| integer << rest >> rest == *integer)
    };
    let width = match () {
        () if fits(16) => 2,
        () if fits(32) => 4,
        () => 8,
    };
    let mut bytes = Vec::with_capacity(HEADER + width * integers.len());
    bytes.extend((width as u32).to_le_bytes());
    bytes.extend((integers.len() as u32).to_le_bytes());
    for integer in integers {
        bytes.extend(&integer.to_le_bytes()[..width]);
    }
    bytes
}
