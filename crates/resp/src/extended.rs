//! The 80-bit floating-point numbers of x86-64, in software: what INCRBYFLOAT and HINCRBYFLOAT
//! compute with.
//!
//! Redis uses C's `long double`, which on x86-64 has 64 bits of precision. A server that is to give
//! the same digits needs the same numbers, on every processor. Here live their text forms and their
//! sum; the commands need no more.
//!
//! ```text
//!   value = significand * 2^exponent        significand: 64 bits, exponent: -16445 ..= 16320
//! ```
//!
//! Invariant: the significand's first bit is set unless the exponent is the least one, so that a
//! value has one form.

use std::fmt;
use std::ops::Add;

use crate::bignum::Natural;
use crate::literal::{self, Decimal, Literal, Magnitude, Scaled};
use crate::number::{INTEGER_TEXT_LEN, format_u64, write_digits};

/// An 80-bit floating-point number: 64 bits of precision, magnitudes from 3.6e-4951 to 1.2e4932,
/// infinities and NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extended(Class);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Class {
    Finite {
        negative: bool,
        significand: u64,
        exponent: i32,
    },
    Infinite {
        negative: bool,
    },
    NotANumber,
}

/// The bits of a significand.
const PRECISION: u32 = 64;
/// The exponents of a significand's last bit.
const MIN_EXPONENT: i64 = -16_445;
const MAX_EXPONENT: i64 = 16_320;
/// The longest text that Redis reads as such a number, in bytes.
const MAX_TEXT_LEN: usize = 5 * 1024 - 1;
/// The decimals of a formatted number, and what they count in.
const DECIMALS: usize = 17;
const DECIMAL_UNITS: u64 = 10u64.pow(DECIMALS as u32);

/// Reads a number as C's `strtold` does, in decimal or hexadecimal, correctly rounded: `3`,
/// `-.5e1`, `+0x1p-3`, `inf`.
///
/// `None` if the text is not a number as a whole (a space in front counts as junk), if it is a NaN
/// or longer than 5,119 bytes, or if its value is too large, or too small, for a number other than
/// infinity and zero.
pub fn parse(bytes: &[u8]) -> Option<Extended> {
    if bytes.len() > MAX_TEXT_LEN {
        return None;
    }
    let Literal {
        negative,
        magnitude,
    } = literal::parse(bytes)?;
    let scaled = match magnitude {
        Magnitude::Infinity => return Some(Extended(Class::Infinite { negative })),
        Magnitude::Decimal(decimal) => scale_decimal(&decimal)?,
        Magnitude::Hexadecimal(scaled) => scaled,
    };
    let value = Extended::round(negative, scaled);
    let underflow = value.is_zero() && scaled.significand != 0;
    (!value.is_infinite() && !underflow).then_some(value)
}

impl Extended {
    /// Whether the value is not a number: the sum of two opposite infinities.
    pub fn is_nan(&self) -> bool {
        matches!(self.0, Class::NotANumber)
    }

    /// Whether the value is an infinity.
    pub fn is_infinite(&self) -> bool {
        matches!(self.0, Class::Infinite { .. })
    }

    /// The least integer that is not below the value, or the nearest that there is; 0 for NaN.
    pub fn ceil(&self) -> i64 {
        let (negative, significand, exponent) = match self.0 {
            Class::NotANumber => return 0,
            Class::Infinite { negative } => (negative, u64::MAX, 0),
            Class::Finite {
                negative,
                significand,
                exponent,
            } => (negative, significand, exponent),
        };
        let (whole, has_rest) = match exponent {
            // The first bit of such a significand is set.
            0.. => (significand, false),
            -63..0 => {
                let whole = significand >> -exponent;
                (whole, whole << -exponent != significand)
            }
            _ => (0, significand != 0),
        };
        let whole = i64::try_from(whole).unwrap_or(i64::MAX);
        match negative {
            true if whole == i64::MAX => i64::MIN,
            true => -whole,
            false => whole.saturating_add(i64::from(has_rest)),
        }
    }

    fn is_zero(&self) -> bool {
        matches!(self.0, Class::Finite { significand: 0, .. })
    }

    fn round(negative: bool, scaled: Scaled) -> Extended {
        let rounded = scaled.round(PRECISION, MIN_EXPONENT);
        Extended(if rounded.exponent > MAX_EXPONENT {
            Class::Infinite { negative }
        } else {
            Class::Finite {
                negative,
                significand: rounded.significand,
                exponent: rounded.exponent as i32,
            }
        })
    }

    /// Appends the value as C's `%.17Lf` writes it, less the zeros at the end of the decimals, and
    /// less the sign of zero: up to 4,951 bytes. Infinities are `inf` and `-inf`.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        match self.0 {
            Class::NotANumber => out.extend_from_slice(b"nan"),
            Class::Infinite { negative: true } => out.extend_from_slice(b"-inf"),
            Class::Infinite { negative: false } => out.extend_from_slice(b"inf"),
            Class::Finite {
                negative,
                significand,
                exponent,
            } => {
                if exponent > significand.leading_zeros() as i32 {
                    write_sign(negative, out);
                    let mut integer = Natural::new(significand);
                    integer.shift_left(exponent as usize);
                    integer.write_decimal(out);
                } else {
                    let (integer, decimals) = split_at_point(significand, exponent);
                    write_sign(negative && (integer, decimals) != (0, 0), out);
                    out.extend_from_slice(format_u64(integer, &mut [0; INTEGER_TEXT_LEN]));
                    write_decimals(decimals, out);
                }
            }
        }
    }
}

fn write_sign(negative: bool, out: &mut Vec<u8>) {
    if negative {
        out.push(b'-');
    }
}

/// Rounds `significand * 2^exponent`, which is below 2^64, to 17 decimals, ties to even: the
/// integer part and the decimals.
fn split_at_point(significand: u64, exponent: i32) -> (u64, u64) {
    if exponent >= 0 {
        return (significand << exponent, 0);
    }
    let fraction_bits = exponent.unsigned_abs();
    let integer = significand.checked_shr(fraction_bits).unwrap_or(0);
    let fraction = if fraction_bits < 64 {
        significand & ((1 << fraction_bits) - 1)
    } else {
        significand
    };
    // 64 bits times 57 bits fit, and what has more fraction bits than that rounds to zero.
    let scaled = u128::from(fraction) * u128::from(DECIMAL_UNITS);
    if fraction_bits >= 128 {
        return (integer, 0);
    }
    let decimals = (scaled >> fraction_bits) as u64;
    let remainder = scaled & ((1 << fraction_bits) - 1);
    let half = 1u128 << (fraction_bits - 1);
    let up = remainder > half || (remainder == half && decimals & 1 == 1);
    match decimals + u64::from(up) {
        DECIMAL_UNITS => (integer + 1, 0),
        decimals => (integer, decimals),
    }
}

/// Appends the point and the decimals up to the last one that is not zero.
fn write_decimals(decimals: u64, out: &mut Vec<u8>) {
    if decimals == 0 {
        return;
    }
    let mut digits = [b'0'; DECIMALS];
    write_digits(decimals, &mut digits, DECIMALS);
    let zeros = digits
        .iter()
        .rev()
        .take_while(|&&digit| digit == b'0')
        .count();
    out.push(b'.');
    out.extend_from_slice(&digits[..DECIMALS - zeros]);
}

impl From<i64> for Extended {
    fn from(value: i64) -> Extended {
        Extended::round(
            value < 0,
            Scaled {
                significand: u128::from(value.unsigned_abs()),
                exponent: 0,
            },
        )
    }
}

impl Add for Extended {
    type Output = Extended;

    /// The sum, rounded to the nearest, ties to even; an infinity if it is too large.
    fn add(self, other: Extended) -> Extended {
        use Class::{Finite, Infinite, NotANumber};
        match (self.0, other.0) {
            (Infinite { negative }, Infinite { negative: other }) if negative != other => {
                Extended(NotANumber)
            }
            (NotANumber, _) | (_, NotANumber) => Extended(NotANumber),
            (infinite @ Infinite { .. }, _) | (_, infinite @ Infinite { .. }) => Extended(infinite),
            (
                Finite {
                    negative,
                    significand,
                    exponent,
                },
                Finite {
                    negative: other_negative,
                    significand: other_significand,
                    exponent: other_exponent,
                },
            ) => {
                let one = (negative, significand, exponent);
                let other = (other_negative, other_significand, other_exponent);
                if exponent < other_exponent {
                    add_finite(other, one)
                } else {
                    add_finite(one, other)
                }
            }
        }
    }
}

/// Adds two finite numbers, given as sign, significand and exponent; the first has the larger
/// exponent.
fn add_finite(large: (bool, u64, i32), small: (bool, u64, i32)) -> Extended {
    // 62 bits below the larger number leave room for a carry above it. A smaller number that
    // reaches further down is cut with a sticky bit: it is then so small that the sum keeps many
    // more bits than the precision needs.
    const ROOM: u32 = 62;
    let (negative, significand, exponent) = large;
    let (small_negative, small_significand, small_exponent) = small;
    let large = u128::from(significand) << ROOM;
    let small = u128::from(small_significand) << ROOM;
    let distance = exponent.abs_diff(small_exponent);
    let aligned = small.checked_shr(distance).unwrap_or(0);
    let sticky = aligned.checked_shl(distance).unwrap_or(0) != small;
    let small = aligned | u128::from(sticky);
    let (negative, significand) = if negative == small_negative {
        (negative, large + small)
    } else if large > small {
        (negative, large - small)
    } else {
        // An exact zero is positive.
        (small_negative && large != small, small - large)
    };
    Extended::round(
        negative,
        Scaled {
            significand,
            exponent: i64::from(exponent) - i64::from(ROOM),
        },
    )
}

/// The value of decimal digits. `None` if it is certainly too large, or too small, to be
/// represented.
fn scale_decimal(decimal: &Decimal<'_>) -> Option<Scaled> {
    let fraction = trim_end(decimal.fraction);
    let mut exponent = decimal.exponent - fraction.len() as i64;
    let mut integer = trim_start(decimal.integer);
    if fraction.is_empty() {
        let trimmed = trim_end(integer);
        exponent += (integer.len() - trimmed.len()) as i64;
        integer = trimmed;
    }
    let fraction = if integer.is_empty() {
        trim_start(fraction)
    } else {
        fraction
    };
    let digits = integer.iter().chain(fraction);
    let count = integer.len() + fraction.len();
    if count == 0 {
        return Some(Scaled {
            significand: 0,
            exponent: 0,
        });
    }
    // The value is in 10^(magnitude - 1) .. 10^magnitude. This bounds the work below.
    let magnitude = count as i64 + exponent;
    if !(-4950..=4933).contains(&magnitude) {
        return None;
    }
    if count <= 19 {
        let digits = digits
            .clone()
            .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
        if let Some(scaled) = scale_word(digits, exponent) {
            return Some(scaled);
        }
    }
    let mut digits = Natural::from_digits(digits);
    let fives = exponent.unsigned_abs() as u32;
    let mut scaled = if exponent < 0 {
        let mut divisor = Natural::new(1);
        divisor.multiply_by_power_of_five(fives);
        digits.divided_by(divisor)
    } else {
        digits.multiply_by_power_of_five(fives);
        digits.to_scaled()
    };
    scaled.exponent += exponent;
    Some(scaled)
}

/// `digits * 10^exponent` for a number that is not zero and a small exponent, by one machine
/// operation: nearly all numbers that occur.
fn scale_word(digits: u64, exponent: i64) -> Option<Scaled> {
    match exponent {
        0..=19 => {
            let power = 10u64.pow(exponent as u32);
            Some(Scaled {
                significand: u128::from(digits) * u128::from(power),
                exponent: 0,
            })
        }
        // 5^26 has 61 bits, which leaves 67 for the quotient.
        -26..0 => {
            let divisor = u128::from(5u64.pow(exponent.unsigned_abs() as u32));
            let room = digits.leading_zeros() + 64;
            let dividend = u128::from(digits) << room;
            let sticky = !dividend.is_multiple_of(divisor);
            let significand = (dividend / divisor) | u128::from(sticky);
            Some(Scaled {
                significand,
                exponent: exponent - i64::from(room),
            })
        }
        _ => None,
    }
}

fn trim_start(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    &digits[zeros..]
}

fn trim_end(digits: &[u8]) -> &[u8] {
    let zeros = digits
        .iter()
        .rev()
        .take_while(|&&digit| digit == b'0')
        .count();
    &digits[..digits.len() - zeros]
}

impl fmt::Display for Extended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write_to(&mut text);
        f.write_str(std::str::from_utf8(&text).expect("digits, signs and points are ASCII"))
    }
}

#[cfg(test)]
mod tests;
