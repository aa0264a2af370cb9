//! The quick path: complete multibulk requests of few arguments with short headers.
//!
//! Here lives what nearly all of the traffic goes through, counted in instructions by
//! `examples/instructions.rs`. It reads a header as one word, and leaves all that is not of the
//! common form, also every error and every request that is not all there, to the thorough path, by
//! saying `None`.
//!
//! ```text
//!   $ 3 \r \n      the word of a length of one digit
//!   $ 1 6 \r       the word of a length of two digits
//! ```
//!
//! Invariant: it accepts nothing that the thorough path would not, with the same outcome.

use super::limits::{Limits, UNAUTHENTICATED_ARGS};
use super::span::Span;

/// The most arguments that the quick path accepts.
pub(super) const MOST_SHORT_ARGS: usize = 3;
/// The longest payload that the quick path accepts, in bytes.
pub(super) const LONGEST_SHORT_PAYLOAD: usize = 9_999;
/// An upper bound of the lines that the quick path accepts, in bytes.
pub(super) const LONGEST_SHORT_LINE: usize = 16;

/// The quick path: a complete multibulk request of one to three arguments with short headers, which
/// is nearly all of the traffic. `None`, with nothing changed, leaves every other case to
/// [`super::parse_any`], also those that are errors.
#[inline(always)]
pub(super) fn parse_short(input: &[u8], at: usize, args: &mut Vec<Span>) -> Option<usize> {
    const ONE: u32 = u32::from_le_bytes(*b"*1\r\n");
    const TWO: u32 = u32::from_le_bytes(*b"*2\r\n");
    const THREE: u32 = u32::from_le_bytes(*b"*3\r\n");
    match word_at(input, at)? {
        THREE => parse_short_bulks::<3>(input, at + 4, args),
        TWO => parse_short_bulks::<2>(input, at + 4, args),
        ONE => parse_short_bulks::<1>(input, at + 4, args),
        _ => None,
    }
}

/// Parses exactly `N` arguments. The number is a constant so that the loop unrolls, the spans stay
/// in registers and `args` is tested for room once. That a payload is all there shows at the next
/// header, or at the end.
#[inline(always)]
fn parse_short_bulks<const N: usize>(
    input: &[u8],
    mut at: usize,
    args: &mut Vec<Span>,
) -> Option<usize> {
    let mut spans = [Span::default(); N];
    for (index, span) in spans.iter_mut().enumerate() {
        // The command's name comes first, and mostly has less than ten letters.
        *span = if index == 0 {
            short_name(input, at)?
        } else {
            short_bulk(input, at)?
        };
        at = span.start + span.len + 2;
    }
    if at > input.len() {
        return None;
    }
    args.extend_from_slice(&spans);
    Some(at)
}

/// The same for up to 99 arguments, not worth a place in the caller's loop.
pub(super) fn parse_more_short_bulks(
    input: &[u8],
    at: usize,
    limits: &Limits,
    args: &mut Vec<Span>,
) -> Option<usize> {
    // The count has the form of a payload's header but for its first byte.
    let word = word_at(input, at)? ^ u32::from(b'*' ^ b'$');
    let count = one_digit_header(word).or_else(|| two_digit_header(word))?;
    let authenticated = limits.authenticated || count.value <= UNAUTHENTICATED_ARGS;
    if count.value > limits.max_args || !authenticated {
        return None;
    }
    let mut at = at + count.size;
    let args_before = args.len();
    for _ in 0..count.value {
        match short_bulk(input, at) {
            Some(span) if span.start + span.len + 2 <= input.len() => {
                args.push(span);
                at = span.start + span.len + 2;
            }
            _ => {
                args.truncate(args_before);
                return None;
            }
        }
    }
    Some(at)
}

/// The payload behind the header of up to four digits at `at`. It may reach behind the end of the
/// input. `None` says nothing more than that the header is not of this form.
#[inline(always)]
pub(super) fn short_bulk(input: &[u8], at: usize) -> Option<Span> {
    let word = word_at(input, at)?;
    match two_digit_header(word).or_else(|| one_digit_header(word)) {
        Some(header) => Some(header.payload(at)),
        None => longer_header(&input[at..]).map(|header| header.payload(at)),
    }
}

/// The same, quicker for a payload of less than ten bytes.
#[inline(always)]
fn short_name(input: &[u8], at: usize) -> Option<Span> {
    match one_digit_header(word_at(input, at)?) {
        Some(header) => Some(header.payload(at)),
        None => short_bulk(input, at),
    }
}

/// The four bytes at a position, the first one lowest.
#[inline(always)]
fn word_at(input: &[u8], at: usize) -> Option<u32> {
    // One comparison, and the compiler proves the rest from it.
    if at > input.len().checked_sub(4)? {
        return None;
    }
    input[at..at + 4]
        .first_chunk()
        .map(|bytes| u32::from_le_bytes(*bytes))
}

/// A header: the length of its line, and the number in it.
struct Header {
    size: usize,
    value: usize,
}

impl Header {
    /// The payload that the header at `at` announces.
    #[inline(always)]
    fn payload(self, at: usize) -> Span {
        Span {
            start: at + self.size,
            len: self.value,
        }
    }
}

/// Decodes the header `$d\r`, below any fourth byte.
#[inline(always)]
fn one_digit_header(word: u32) -> Option<Header> {
    // Subtracting the expected bytes and rotating leaves the digit's value alone. Anything else, a
    // borrow included, leaves a number above 9.
    let expected = u32::from_le_bytes(*b"\0$0\r");
    let digit = (word << 8).wrapping_sub(expected).rotate_left(16);
    (digit < 10).then_some(Header {
        size: 4,
        value: digit as usize,
    })
}

/// Decodes the header `$dd\r`.
#[inline(always)]
fn two_digit_header(word: u32) -> Option<Header> {
    // The first digit is 1 to 9, as a leading zero is an error, so it is counted from 1. Adding 7
    // and 6 carries a digit that is too large into its upper half, which has to be empty before and
    // after.
    let digits = word.wrapping_sub(u32::from_le_bytes(*b"$10\r"));
    if (digits | digits.wrapping_add(0x0006_0700)) & 0xfff0_f0ff != 0 {
        return None;
    }
    // Ten times the first digit lands on the second.
    let value = (digits.wrapping_mul((10 << 8) | 1) >> 16) & 0xff;
    Some(Header {
        size: 5,
        value: value as usize + 10,
    })
}

/// Decodes a header of three or four digits.
#[inline(never)]
fn longer_header(bytes: &[u8]) -> Option<Header> {
    let bytes: &[u8; 7] = bytes.first_chunk()?;
    let size = match bytes {
        [b'$', b'1'..=b'9', _, _, b'\r', ..] => 6,
        [b'$', b'1'..=b'9', _, _, _, b'\r', _] => 7,
        _ => return None,
    };
    let mut value = 0;
    for byte in &bytes[1..size - 2] {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + usize::from(digit);
    }
    Some(Header { size, value })
}
