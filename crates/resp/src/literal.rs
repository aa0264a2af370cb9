//! The grammar of a floating-point number's text: what C's `strtod` and `strtold` accept, less
//! white space in front and NaN.
//!
//! All values are rounded correctly. (The C library of GNU is not always right there: of a
//! hexadecimal number too small to be normal it drops the first bit beyond the precision.)
//!
//! Here live the grammar and binary rounding, shared by doubles and 80-bit numbers. How decimal
//! digits become binary is not decided here.
//!
//! ```text
//!   [+-] ( inf | infinity                                   letters of either case
//!        | digits [. digits] [e [+-] digits]                at least one digit beside the point
//!        | 0x hexdigits [. hexdigits] [p [+-] digits] )
//! ```

/// A number's text, taken apart.
pub(crate) struct Literal<'a> {
    pub(crate) negative: bool,
    pub(crate) magnitude: Magnitude<'a>,
}

pub(crate) enum Magnitude<'a> {
    Infinity,
    Decimal(Decimal<'a>),
    Hexadecimal(Scaled),
}

/// The digits of a decimal number, of which either part may be empty, but not both.
pub(crate) struct Decimal<'a> {
    /// All of it, without the sign.
    pub(crate) text: &'a [u8],
    pub(crate) integer: &'a [u8],
    pub(crate) fraction: &'a [u8],
    /// The power of ten, which saturates far beyond what any format can represent.
    pub(crate) exponent: i64,
}

impl Decimal<'_> {
    pub(crate) fn is_zero(&self) -> bool {
        self.integer
            .iter()
            .chain(self.fraction)
            .all(|&digit| digit == b'0')
    }
}

/// No text is so long that its digits make up for an exponent beyond this.
const EXPONENT_BOUND: i64 = 1 << 40;

/// Takes a number's text apart. `None` if it is none.
pub(crate) fn parse(text: &[u8]) -> Option<Literal<'_>> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let magnitude = match text {
        [b'i' | b'I', ..] => {
            let known = text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity");
            known.then_some(Magnitude::Infinity)?
        }
        [b'0', b'x' | b'X', digits @ ..] => Magnitude::Hexadecimal(parse_hexadecimal(digits)?),
        _ => Magnitude::Decimal(parse_decimal(text)?),
    };
    Some(Literal {
        negative,
        magnitude,
    })
}

fn parse_decimal(text: &[u8]) -> Option<Decimal<'_>> {
    let (integer, fraction, rest) = split_digits(text, |byte| byte.is_ascii_digit())?;
    let exponent = parse_exponent(rest, b'e')?;
    Some(Decimal {
        text,
        integer,
        fraction,
        exponent,
    })
}

fn parse_hexadecimal(text: &[u8]) -> Option<Scaled> {
    let (integer, fraction, rest) = split_digits(text, |byte| byte.is_ascii_hexdigit())?;
    let mut exponent = parse_exponent(rest, b'p')? - 4 * fraction.len() as i64;
    let mut significand = 0u128;
    for &byte in integer.iter().chain(fraction) {
        let digit = char::from(byte)
            .to_digit(16)
            .expect("these are hexadecimal digits");
        if significand >> 124 == 0 {
            significand = significand << 4 | u128::from(digit);
        } else {
            significand |= u128::from(digit != 0);
            exponent += 4;
        }
    }
    Some(Scaled {
        significand,
        exponent,
    })
}

/// Splits `digits [. digits]` off the front: integer part, fraction, rest. `None` without any
/// digit.
fn split_digits(text: &[u8], is_digit: impl Fn(&u8) -> bool) -> Option<(&[u8], &[u8], &[u8])> {
    let split = |text: &'_ [u8]| {
        text.iter()
            .position(|byte| !is_digit(byte))
            .unwrap_or(text.len())
    };
    let (integer, rest) = text.split_at(split(text));
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => rest.split_at(split(rest)),
        _ => (&rest[..0], rest),
    };
    (!integer.is_empty() || !fraction.is_empty()).then_some((integer, fraction, rest))
}

/// Reads the exponent that makes up all of `text`; an empty text is 0.
fn parse_exponent(text: &[u8], letter: u8) -> Option<i64> {
    let (negative, digits) = match text {
        [] => return Some(0),
        [first, ..] if first.to_ascii_lowercase() != letter => return None,
        [_, b'-', digits @ ..] => (true, digits),
        [_, b'+', digits @ ..] | [_, digits @ ..] => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut exponent = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        exponent = (exponent * 10 + i64::from(digit)).min(EXPONENT_BOUND);
    }
    Some(if negative { -exponent } else { exponent })
}

/// The magnitude `significand * 2^exponent`.
///
/// Where it stands for a value with more bits than fit, the last bit is set if any of the bits that
/// are left out is ("sticky"). Rounding to fewer bits still comes out right if at least two bits
/// are rounded away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaled {
    pub(crate) significand: u128,
    pub(crate) exponent: i64,
}

impl Scaled {
    /// The nearest value of at most `precision` bits (64 at most) whose last bit is at
    /// `min_exponent` or above, ties to even. The significand uses all of the precision unless the
    /// exponent is `min_exponent`.
    pub(crate) fn round(self, precision: u32, min_exponent: i64) -> Rounded {
        let Scaled {
            significand,
            exponent,
        } = self;
        if significand == 0 {
            return Rounded {
                significand: 0,
                exponent: min_exponent,
            };
        }
        let bits = 128 - i64::from(significand.leading_zeros());
        let rounded_exponent = (exponent + bits - i64::from(precision)).max(min_exponent);
        let dropped = rounded_exponent - exponent;
        if dropped <= 0 {
            return Rounded {
                significand: (significand << -dropped) as u64,
                exponent: rounded_exponent,
            };
        }
        if dropped > 128 {
            // Less than half of the least value.
            return Rounded {
                significand: 0,
                exponent: min_exponent,
            };
        }
        let kept = significand.checked_shr(dropped as u32).unwrap_or(0);
        let remainder = significand & (u128::MAX >> (128 - dropped));
        let half = 1u128 << (dropped - 1);
        let up = remainder > half || (remainder == half && kept & 1 == 1);
        let kept = kept + u128::from(up);
        if kept >> precision != 0 {
            Rounded {
                significand: (kept >> 1) as u64,
                exponent: rounded_exponent + 1,
            }
        } else {
            Rounded {
                significand: kept as u64,
                exponent: rounded_exponent,
            }
        }
    }
}

/// A magnitude `significand * 2^exponent` of limited precision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounded {
    pub(crate) significand: u64,
    pub(crate) exponent: i64,
}
