//! One cell of a run: a name, a value or a score; bytes with their length, or an integer.
//!
//! ```text
//!  first byte    what follows
//!  0x00..=0x7f   so many bytes
//!  0x80..=0xbf   one more byte of length (14 bits, the high 6 in the first byte), then the bytes
//!  0xc0          a length of 4 bytes, then the bytes
//!  0xc1..=0xc8   an integer of 1 to 8 bytes, signed
//!  0xc9          no cell: 6 bytes of expiry, then the cells of the item (see `run`)
//!  0xca..=0xff   the integers 0 to 53
//! ```
//!
//! All numbers are little-endian. A text that is the decimal form of an `i64`, as Redis prints it, is an
//! integer when it comes through [`Cell::of`]; so two names are equal exactly when their cells are.

use resp::number::{INTEGER_TEXT_LEN, digits_i64, format_i64, parse_i64};

/// The first byte of an item with an expiry.
pub(super) const EXPIRY: u8 = 0xc9;
/// The longest decimal form of an integer.
pub const DECIMAL_MAX: usize = INTEGER_TEXT_LEN;

/// The longest text that an item has as its name or its value: a leaf with one item, and a fence, is below
/// 4 GiB.
pub const TEXT_MAX: usize = 1 << 30;

const SHORT: u8 = 0x80;
const LONG: u8 = 0xc0;
const SMALL: u8 = 0xca;
const SMALL_COUNT: i64 = 54;
const MEDIUM_LEN: usize = 1 << 14;

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cell<'a> {
    /// Any bytes.
    Bytes(&'a [u8]),
    /// An integer.
    Int(i64),
}

/// Why bytes are no cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadCell {
    /// The bytes end before the cell does, or it has no valid first byte.
    Cut,
    /// The cell has a shorter form.
    Long,
}

impl<'a> Cell<'a> {
    /// The cell of a text: an integer if the text is the decimal form of one.
    #[inline]
    pub fn of(text: &'a [u8]) -> Cell<'a> {
        match parse_i64(text) {
            Some(integer) => Cell::Int(integer),
            None => Cell::Bytes(text),
        }
    }

    /// The same cell, whose bytes are here now.
    pub(super) fn with_bytes(self, bytes: &[u8]) -> Cell<'_> {
        match self {
            Cell::Bytes(_) => Cell::Bytes(bytes),
            Cell::Int(integer) => Cell::Int(integer),
        }
    }

    /// The text of a cell; `scratch` holds that of an integer.
    #[inline]
    pub fn text<'t>(self, scratch: &'t mut [u8; DECIMAL_MAX]) -> &'t [u8]
    where
        'a: 't,
    {
        match self {
            Cell::Bytes(bytes) => bytes,
            Cell::Int(integer) => format_i64(integer, scratch),
        }
    }

    /// Bytes of the text of a cell.
    pub fn text_len(self) -> usize {
        match self {
            Cell::Bytes(bytes) => bytes.len(),
            Cell::Int(integer) => digits_i64(integer),
        }
    }

    /// Bytes the cell takes.
    #[inline]
    pub(super) fn size(self) -> usize {
        match self {
            Cell::Bytes(bytes) if bytes.len() < usize::from(SHORT) => 1 + bytes.len(),
            Cell::Bytes(bytes) if bytes.len() < MEDIUM_LEN => 2 + bytes.len(),
            Cell::Bytes(bytes) => 5 + bytes.len(),
            Cell::Int(integer) if (0..SMALL_COUNT).contains(&integer) => 1,
            Cell::Int(integer) => 1 + width(integer),
        }
    }

    /// Writes the cell to the start of `into`; where it ends.
    #[inline]
    pub(super) fn encode(self, into: &mut [u8]) -> usize {
        match self {
            Cell::Bytes(bytes) => {
                let at = match bytes.len() {
                    len if len < usize::from(SHORT) => {
                        into[0] = len as u8;
                        1
                    }
                    len if len < MEDIUM_LEN => {
                        into[..2].copy_from_slice(&[SHORT | (len >> 8) as u8, len as u8]);
                        2
                    }
                    len => {
                        let len = u32::try_from(len).expect("a text has at most TEXT_MAX bytes");
                        into[0] = LONG;
                        into[1..5].copy_from_slice(&len.to_le_bytes());
                        5
                    }
                };
                into[at..at + bytes.len()].copy_from_slice(bytes);
                at + bytes.len()
            }
            Cell::Int(integer) if (0..SMALL_COUNT).contains(&integer) => {
                into[0] = SMALL + integer as u8;
                1
            }
            Cell::Int(integer) => {
                let width = width(integer);
                into[0] = LONG + width as u8;
                into[1..=width].copy_from_slice(&integer.to_le_bytes()[..width]);
                1 + width
            }
        }
    }

    /// The cell at `at`, and where it ends. The bytes are known to be a cell.
    #[inline]
    pub(super) fn decode(bytes: &'a [u8], at: usize) -> (Cell<'a>, usize) {
        match bytes[at] {
            head @ 0..SHORT => {
                let end = at + 1 + usize::from(head);
                (Cell::Bytes(&bytes[at + 1..end]), end)
            }
            head => Cell::decode_other(bytes, at, head),
        }
    }

    /// [`Cell::decode`] of anything but a short text.
    #[inline]
    fn decode_other(bytes: &'a [u8], at: usize, head: u8) -> (Cell<'a>, usize) {
        match head {
            SMALL.. => (Cell::Int(i64::from(head - SMALL)), at + 1),
            SHORT..=LONG => Cell::decode_long(bytes, at, head),
            _ => {
                let width = usize::from(head - LONG);
                (Cell::Int(widen(bytes, at + 1, width)), at + 1 + width)
            }
        }
    }

    /// [`Cell::decode`] of a text that is not short.
    #[inline(never)]
    fn decode_long(bytes: &'a [u8], at: usize, head: u8) -> (Cell<'a>, usize) {
        let (start, end) = (at + if head == LONG { 5 } else { 2 }, skip(bytes, at));
        (Cell::Bytes(&bytes[start..end]), end)
    }

    /// [`Cell::decode`] of bytes of which nothing is known; a name must have its shortest form.
    #[inline]
    pub(super) fn check(
        bytes: &[u8],
        at: usize,
        is_name: bool,
    ) -> Result<(Cell<'_>, usize), BadCell> {
        // A short text is the common case. It is no integer if it begins with another character.
        if let Some((&head @ 0..SHORT, rest)) = bytes.get(at..).and_then(<[u8]>::split_first)
            && let Some(text) = rest.get(..usize::from(head))
            && !(is_name && matches!(text.first(), Some(b'-' | b'0'..=b'9')))
        {
            return Ok((Cell::Bytes(text), at + 1 + text.len()));
        }
        Cell::check_other(bytes, at, is_name)
    }

    /// [`Cell::check`] of any cell.
    #[inline(never)]
    fn check_other(bytes: &[u8], at: usize, is_name: bool) -> Result<(Cell<'_>, usize), BadCell> {
        let rest = bytes.get(at..).ok_or(BadCell::Cut)?;
        let need = match *rest.first().ok_or(BadCell::Cut)? {
            0..SHORT => 1,
            SHORT..LONG => 2,
            LONG => 5,
            EXPIRY => return Err(BadCell::Cut),
            _ => 1,
        };
        if rest.len() < need || skip(bytes, at) > bytes.len() {
            return Err(BadCell::Cut);
        }
        let (cell, end) = Cell::decode(bytes, at);
        let is_shortest = match cell {
            Cell::Bytes(text) => parse_i64(text).is_none(),
            Cell::Int(_) => true,
        };
        if is_name && !(is_shortest && cell.size() == end - at) {
            return Err(BadCell::Long);
        }
        Ok((cell, end))
    }
}

/// The integer whose cell in its shortest form is at `at`, of bytes of which nothing is known, and where it
/// ends; `None` if there is none.
#[inline]
pub(super) fn integer_at(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let (&head, rest) = bytes.get(at..)?.split_first()?;
    if head >= SMALL {
        return Some((i64::from(head - SMALL), at + 1));
    }
    let width = usize::from(head.wrapping_sub(LONG));
    if !(1..=8).contains(&width) {
        return None;
    }
    let above = 64 - 8 * width;
    let integer = match rest.first_chunk() {
        Some(&word) => i64::from_le_bytes(word) << above >> above,
        None => widen_last(rest.get(..width)?),
    };
    let is_shortest = match width {
        1 => !(0..SMALL_COUNT).contains(&integer),
        _ => integer << (above + 8) >> (above + 8) != integer,
    };
    is_shortest.then_some((integer, at + 1 + width))
}

/// Whether the cell at `at` is this one, as the name of an item: in its shortest form.
#[inline]
pub(super) fn is_at(bytes: &[u8], at: usize, name: Cell<'_>) -> bool {
    match name {
        Cell::Bytes(text) if text.len() < usize::from(SHORT) => {
            bytes[at] == text.len() as u8 && bytes[at + 1..].starts_with(text)
        }
        _ => Cell::decode(bytes, at).0 == name,
    }
}

/// Bytes of a cell by its first byte; 0 where more bytes say it.
const SIZES: [u8; 256] = {
    let mut sizes = [0; 256];
    let mut head = 0;
    while head < 256 {
        sizes[head] = match head as u8 {
            short @ 0..SHORT => 1 + short,
            SHORT..=LONG => 0,
            SMALL.. => 1,
            integer => 1 + (integer - LONG),
        };
        head += 1;
    }
    sizes
};

/// Where the cell at `at` ends.
#[inline]
pub(super) fn skip(bytes: &[u8], at: usize) -> usize {
    match SIZES[usize::from(bytes[at])] {
        0 => skip_long(bytes, at),
        size => at + usize::from(size),
    }
}

/// [`skip`] of a text that is not short.
#[inline(never)]
fn skip_long(bytes: &[u8], at: usize) -> usize {
    match bytes[at] {
        LONG => {
            let len = bytes[at + 1..at + 5].try_into().expect("four bytes");
            at + 5 + u32::from_le_bytes(len) as usize
        }
        head => at + 2 + (usize::from(head - SHORT) << 8 | usize::from(bytes[at + 1])),
    }
}

/// The bytes an integer needs.
#[inline]
fn width(integer: i64) -> usize {
    let bits = 65 - (integer ^ integer >> 63).leading_zeros() as usize;
    bits.div_ceil(8)
}

/// The integer of 1 to 8 bytes at `at`.
#[inline]
fn widen(bytes: &[u8], at: usize, width: usize) -> i64 {
    let above = 64 - 8 * width;
    // Most integers have bytes behind them: eight are read at once.
    match bytes[at..].first_chunk() {
        Some(&word) => i64::from_le_bytes(word) << above >> above,
        None => widen_last(&bytes[at..at + width]),
    }
}

/// [`widen`] near the end of a run.
fn widen_last(bytes: &[u8]) -> i64 {
    let mut word = [0; 8];
    word[8 - bytes.len()..].copy_from_slice(bytes);
    i64::from_le_bytes(word) >> (64 - 8 * bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(cell: Cell<'_>) -> usize {
        let mut bytes = vec![0xaa; cell.size() + 9];
        let end = cell.encode(&mut bytes[3..]) + 3;
        assert_eq!(end, 3 + cell.size());
        assert_eq!(Cell::decode(&bytes, 3), (cell, end));
        assert_eq!(Cell::check(&bytes, 3, false), Ok((cell, end)));
        assert_eq!(skip(&bytes, 3), end);
        for cut in 3..end {
            assert_eq!(Cell::check(&bytes[..cut], 3, true), Err(BadCell::Cut));
        }
        cell.size()
    }

    #[test]
    fn integers_take_as_many_bytes_as_they_need() {
        for shift in 0..64 {
            for near in -2..=2 {
                let integer = (1i64 << shift).wrapping_add(near);
                for integer in [integer, integer.wrapping_neg()] {
                    let text = integer.to_string();
                    assert_eq!(Cell::of(text.as_bytes()), Cell::Int(integer));
                    let mut scratch = [0; DECIMAL_MAX];
                    assert_eq!(Cell::Int(integer).text(&mut scratch), text.as_bytes());
                    there_and_back(Cell::Int(integer));
                }
            }
        }
        let sizes = [0, 53, 54, 127, 128, -1, -128, -129, 32_767, 32_768]
            .map(|n| there_and_back(Cell::Int(n)));
        assert_eq!(sizes, [1, 1, 2, 2, 3, 2, 2, 3, 3, 4]);
    }

    #[test]
    fn texts_that_redis_would_not_print_stay_texts() {
        let texts = [
            "",
            "-",
            "-0",
            "00",
            "01",
            "+1",
            "1 ",
            " 1",
            "1e3",
            "9223372036854775808",
            "x",
        ];
        for text in texts
            .iter()
            .chain(&["-9223372036854775809", "99999999999999999999"])
        {
            assert_eq!(Cell::of(text.as_bytes()), Cell::Bytes(text.as_bytes()));
        }
        for len in [0, 1, 127, 128, 300, 16_383, 16_384, 70_000] {
            let text = vec![b'a'; len];
            let size = there_and_back(Cell::of(&text));
            assert_eq!(
                size - len,
                if len < 128 {
                    1
                } else if len < 16_384 {
                    2
                } else {
                    5
                }
            );
        }
    }

    #[test]
    fn integers_are_read_as_other_cells_are() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut integers = 0;
        for round in 0..40_000 {
            let mut bytes = [0; 12];
            bytes.fill_with(|| random.u8(..));
            match round % 4 {
                0 => bytes[1] = LONG + random.u8(0..=9),
                1 => {
                    let integer = random.i64(..) >> random.u32(0..64);
                    Cell::Int(integer).encode(&mut bytes[1..]);
                }
                2 => bytes[1..4].copy_from_slice(&[LONG + 2, random.u8(0..60), 0]),
                _ => {}
            }
            let bytes = &bytes[..random.usize(0..=12)];
            let expected = match Cell::check(bytes, 1, true) {
                Ok((Cell::Int(integer), end)) => Some((integer, end)),
                _ => None,
            };
            integers += usize::from(expected.is_some());
            assert_eq!(integer_at(bytes, 1), expected, "{bytes:?}");
        }
        assert!(integers > 9_000, "{integers}");
    }

    #[test]
    fn names_have_their_shortest_form() {
        for bytes in [
            &b"\x0210"[..],
            b"\xc1\x05",
            b"\xc2\x05\x00",
            b"\x80\x01a",
            b"\xc0\x01\x00\x00\x00a",
        ] {
            assert!(Cell::check(bytes, 0, false).is_ok());
            assert_eq!(Cell::check(bytes, 0, true), Err(BadCell::Long));
        }
        assert_eq!(Cell::check(b"\xc9\0\0\0\0\0\0", 0, true), Err(BadCell::Cut));
    }
}
