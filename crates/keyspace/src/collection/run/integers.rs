//! The bytes of runs of nothing but integers: ascending, all in as many bytes.
//!
//! ```text
//!  0       2       3       4      12
//!  +-------+-------+-------+------+----------+----------+-----
//!  | count | flags | width | base | distance | distance | ...
//!  +-------+-------+-------+------+----------+----------+-----
//! ```
//!
//! A distance has `width` bytes, 1 to 8: the integer less the base, which is not above the first integer. An
//! integer is found by binary search. Numbers are little-endian.
//!
//! A bare run of names becomes one with its 17th item, if all are integers. It gets groups with the first
//! item that is none. Neither base nor width is made smaller when integers go.

const HEADER: usize = 4;
/// Where the width is.
const WIDTH: usize = 3;
/// Bytes of the base.
pub(super) const BASE: usize = 8;
/// Where the first distance is.
pub(super) const FIRST: usize = HEADER + BASE;

/// The bytes that distances up to this one need.
#[inline]
fn width_of(distance: u64) -> usize {
    (64 - (distance | 1).leading_zeros() as usize).div_ceil(8)
}

/// Base and width.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape {
    base: i64,
    width: usize,
}

impl Shape {
    /// The shape of integers from the lowest to the highest.
    fn of(lowest: i64, highest: i64) -> Shape {
        Shape {
            base: lowest,
            width: width_of(highest.wrapping_sub(lowest) as u64),
        }
    }

    #[inline]
    fn len(self, count: usize) -> usize {
        FIRST + count * self.width
    }

    /// Writes the integer of an index.
    #[inline]
    fn put(self, bytes: &mut [u8], index: usize, integer: i64) {
        let at = self.len(index);
        let distance = integer.wrapping_sub(self.base).to_le_bytes();
        bytes[at..at + self.width].copy_from_slice(&distance[..self.width]);
    }

    fn write(self, bytes: &mut [u8]) {
        bytes[WIDTH] = self.width as u8;
        bytes[HEADER..FIRST].copy_from_slice(&self.base.to_le_bytes());
    }
}

/// Bytes of a run of so many, from the lowest to the highest.
pub(super) fn size_of(count: usize, lowest: i64, highest: i64) -> usize {
    Shape::of(lowest, highest).len(count)
}

/// The bytes of a run of integers.
#[derive(Clone, Copy)]
pub(super) struct Distances<'a>(pub(super) &'a [u8]);

impl Distances<'_> {
    #[inline]
    fn count(self) -> usize {
        usize::from(u16::from_le_bytes([self.0[0], self.0[1]]))
    }

    #[inline]
    fn shape(self) -> Shape {
        let base = self.0[HEADER..FIRST].try_into().expect("eight bytes");
        Shape {
            base: i64::from_le_bytes(base),
            width: self.width(),
        }
    }

    /// Bytes of each.
    #[inline]
    pub(super) fn width(self) -> usize {
        usize::from(self.0[WIDTH])
    }

    /// Where the one of an index is.
    #[inline]
    pub(super) fn start(self, index: usize) -> usize {
        FIRST + index * self.width()
    }

    /// The one at `at`.
    #[inline]
    pub(super) fn at(self, at: usize) -> i64 {
        let Shape { base, width } = self.shape();
        // There are eight bytes that end with the distance: those before it belong to others.
        let end = at + width;
        let word = self.0[end - BASE..end].try_into().expect("eight bytes");
        base.wrapping_add((u64::from_le_bytes(word) >> (64 - 8 * width)) as i64)
    }

    /// The one of an index.
    #[inline]
    pub(super) fn get(self, index: usize) -> i64 {
        self.at(self.start(index))
    }

    /// The index of an integer, or where it would be.
    #[inline]
    pub(super) fn find(self, integer: i64) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = (low + high) / 2;
            match self.get(middle) < integer {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        match low < self.count() && self.get(low) == integer {
            true => Ok(low),
            false => Err(low),
        }
    }

    /// The shape with another one.
    #[inline]
    fn shape_with(self, integer: i64) -> Shape {
        let (shape, count) = (self.shape(), self.count());
        if count == 0 && integer < shape.base {
            return Shape::of(integer, integer);
        }
        let base = shape.base.min(integer);
        let highest = match count.checked_sub(1) {
            Some(last) => self.get(last).max(integer),
            None => integer,
        };
        let needed = width_of(highest.wrapping_sub(base) as u64);
        let width = needed.max(shape.width);
        Shape { base, width }
    }

    /// Bytes with another one.
    #[inline]
    pub(super) fn len_with(self, integer: i64) -> usize {
        self.shape_with(integer).len(self.count() + 1)
    }

    /// Whether there are as many bytes as there should be.
    pub(super) fn has_its_length(self) -> bool {
        self.0.len() >= FIRST && self.0.len() == self.start(self.count())
    }

    /// Whether none is the same as, or below, one before, and none is too large.
    pub(super) fn ascend(self) -> bool {
        let base = self.shape().base;
        let mut all = (0..self.count()).map(|index| self.get(index));
        let mut last = None;
        // What is below the base has left the range of integers.
        all.all(|integer| {
            integer >= base && last.replace(integer).is_none_or(|last| last < integer)
        })
    }
}

/// Makes a run of these, ascending, with flags. Returns its length.
pub(super) fn write(bytes: &mut [u8], flags: u8, all: &[i64]) -> usize {
    let (lowest, highest) = (all[0], all[all.len() - 1]);
    let shape = Shape::of(lowest, highest);
    begin(bytes, flags, lowest, highest);
    bytes[..2].copy_from_slice(&(all.len() as u16).to_le_bytes());
    for (index, &integer) in all.iter().enumerate() {
        shape.put(bytes, index, integer);
    }
    shape.len(all.len())
}

/// Makes a run of none, with flags, for those from the lowest to the highest. Returns its length.
pub(super) fn begin(bytes: &mut [u8], flags: u8, lowest: i64, highest: i64) -> usize {
    bytes[..FIRST].fill(0);
    bytes[2] = flags;
    Shape::of(lowest, highest).write(bytes);
    FIRST
}

/// Puts one where it belongs, which is not there yet, into the run in the first `len` bytes; the others are
/// room for it. Returns the new length, but does not count it.
pub(super) fn insert(bytes: &mut [u8], len: usize, integer: i64) -> usize {
    let run = Distances(&bytes[..len]);
    let (before, count) = (run.shape(), run.count());
    let after = run.shape_with(integer);
    let index = run.find(integer).unwrap_or_else(|index| index);
    let end = after.len(count + 1);
    if after == before {
        let start = after.len(index);
        bytes.copy_within(start..len, start + after.width);
    } else {
        // From the last on: no distance is written over that has not been read.
        for own in (0..count).rev() {
            let moved = Distances(&bytes[..len]).get(own);
            after.put(bytes, own + usize::from(own >= index), moved);
        }
        after.write(bytes);
    }
    after.put(bytes, index, integer);
    end
}
