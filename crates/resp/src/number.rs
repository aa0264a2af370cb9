//! The decimal texts of integers and doubles, read and written as Redis does.
//!
//! Here live the strict forms: a text is accepted only if it is the whole number and nothing else,
//! and an integer only in the one spelling that it is written back in. The 80-bit numbers of
//! INCRBYFLOAT are in `extended`.

use std::fmt::{self, Write as _};

use crate::literal::{self, Literal, Magnitude};

/// The longest text that [`format_i64`] and [`format_u64`] write, in bytes.
pub const INTEGER_TEXT_LEN: usize = 20;
/// The longest text that [`format_f64`] and [`format_shortest`] write, in bytes: a sign and 24 digits.
pub const DOUBLE_TEXT_LEN: usize = 25;

/// Reads a decimal integer in the one spelling that [`format_i64`] writes: an optional `-`, then
/// digits without leading zeros. No `+`, no space, no `-0`, nothing out of range.
#[inline]
pub fn parse_i64(bytes: &[u8]) -> Option<i64> {
    match bytes {
        [b'-', digits @ ..] => {
            let magnitude = parse_u64(digits)?;
            if magnitude == 0 || magnitude > i64::MIN.unsigned_abs() {
                return None;
            }
            Some((magnitude as i64).wrapping_neg())
        }
        digits => i64::try_from(parse_u64(digits)?).ok(),
    }
}

/// Reads a decimal integer in the one spelling that [`format_u64`] writes: digits without leading
/// zeros or sign.
#[inline]
pub fn parse_u64(bytes: &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first()?;
    let mut value = u64::from(first.wrapping_sub(b'0'));
    // A leading zero is allowed where it is the whole number.
    if value > 9 || (value == 0 && !rest.is_empty()) {
        return None;
    }
    // 19 digits are below 10^19 and fit whatever they are.
    let (safe, last) = rest.split_at(rest.len().min(18));
    for byte in safe {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    for byte in last {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// The decimal digits of 0 to 99, two each, so that a number is written two digits at a time.
pub(crate) const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        pairs[value] = [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        value += 1;
    }
    pairs
};

/// Writes the digits of `value` so that they end at `end` of `buf`, and returns where they start.
///
/// # Panics
///
/// If there is no room for them before `end`.
#[inline]
pub(crate) fn write_digits(mut value: u64, buf: &mut [u8], end: usize) -> usize {
    let mut start = end;
    while value >= 100 {
        start -= 2;
        buf[start..start + 2].copy_from_slice(&PAIRS[(value % 100) as usize]);
        value /= 100;
    }
    if value >= 10 {
        start -= 2;
        buf[start..start + 2].copy_from_slice(&PAIRS[value as usize]);
    } else {
        start -= 1;
        buf[start] = b'0' + value as u8;
    }
    start
}

/// Writes `value` in decimal at the end of `buf` and returns the text.
#[inline]
pub fn format_i64(value: i64, buf: &mut [u8; INTEGER_TEXT_LEN]) -> &[u8] {
    let mut start = write_digits(value.unsigned_abs(), buf, INTEGER_TEXT_LEN);
    if value < 0 {
        start -= 1;
        buf[start] = b'-';
    }
    &buf[start..]
}

/// Writes `value` in decimal at the end of `buf` and returns the text.
#[inline]
pub fn format_u64(value: u64, buf: &mut [u8; INTEGER_TEXT_LEN]) -> &[u8] {
    let start = write_digits(value, buf, INTEGER_TEXT_LEN);
    &buf[start..]
}

/// The length of the text that [`format_i64`] writes, in bytes, sign included.
#[inline]
pub fn digits_i64(value: i64) -> usize {
    let digits = value
        .unsigned_abs()
        .checked_ilog10()
        .map_or(1, |log| log as usize + 1);
    digits + usize::from(value < 0)
}

/// Reads a double as C's `strtod` does, in decimal or hexadecimal, correctly rounded: `3`, `-.5e1`,
/// `+0x1p-3`, `inf`.
///
/// `None` if the text is not a number as a whole (a space in front counts as junk), if it is a NaN,
/// or if its value is too large, or too small, for a double other than infinity and zero.
#[inline]
pub fn parse_f64(bytes: &[u8]) -> Option<f64> {
    // All integers of so few digits are doubles.
    match bytes.len() < 16 {
        true => parse_i64(bytes).map(|integer| integer as f64),
        false => None,
    }
    .or_else(|| parse_any_f64(bytes))
}

/// [`parse_f64`] of anything but a short integer.
fn parse_any_f64(bytes: &[u8]) -> Option<f64> {
    let Literal {
        negative,
        magnitude,
    } = literal::parse(bytes)?;
    let value = match magnitude {
        Magnitude::Infinity => f64::INFINITY,
        Magnitude::Decimal(decimal) => {
            // The standard library reads this grammar and rounds right, but is silent about what it
            // could not represent.
            let value = std::str::from_utf8(decimal.text)
                .ok()?
                .parse::<f64>()
                .ok()?;
            if value.is_infinite() || (value == 0.0 && !decimal.is_zero()) {
                return None;
            }
            value
        }
        Magnitude::Hexadecimal(scaled) => {
            let rounded = scaled.round(53, -1074);
            if rounded.significand == 0 && scaled.significand != 0 {
                return None;
            }
            f64_from_parts(rounded.significand, rounded.exponent)?
        }
    };
    Some(if negative { -value } else { value })
}

/// `significand * 2^exponent` for a significand of at most 53 bits, all of which are used unless
/// the exponent is the least one, -1074. `None` if it is too large for a double.
fn f64_from_parts(significand: u64, exponent: i64) -> Option<f64> {
    const HIDDEN_BIT: u64 = 1 << 52;
    if significand < HIDDEN_BIT {
        return Some(f64::from_bits(significand));
    }
    let biased = u64::try_from(exponent + 1075)
        .ok()
        .filter(|&biased| biased < 0x7ff)?;
    Some(f64::from_bits(biased << 52 | (significand - HIDDEN_BIT)))
}

/// Writes `value` as C's `%.17g` does, into `buf`, and returns the text: 17 significant digits,
/// which tell any two doubles apart, without trailing zeros; an exponent below 1e-4 and from 1e17
/// on; `inf`, `-inf` and `nan` for what is no number.
pub fn format_f64(value: f64, buf: &mut [u8; DOUBLE_TEXT_LEN]) -> &[u8] {
    let mut text = Text { buf, len: 0 };
    if value.is_nan() {
        text.put(b"nan");
    } else if value.is_infinite() {
        text.put(if value < 0.0 { b"-inf" } else { b"inf" });
    } else {
        if value.is_sign_negative() {
            text.put(b"-");
        }
        put_magnitude(value.abs(), &mut text);
    }
    let len = text.len;
    &buf[..len]
}

/// Writes `value` as Redis 7.2 and later write scores, into `buf`, and returns the text: the fewest digits
/// that read back as the same double; an exponent where there would be more than seven zeros behind the
/// digits, or seven or more digits and zeros behind the point of a small number; integers of up to 2^62 with
/// all their digits; `inf`, `-inf`, `-0`.
pub fn format_shortest(value: f64, buf: &mut [u8; DOUBLE_TEXT_LEN]) -> &[u8] {
    let mut text = Text { buf, len: 0 };
    if value.is_nan() {
        text.put(b"nan");
    } else if value.is_infinite() {
        text.put(if value < 0.0 { b"-inf" } else { b"inf" });
    } else {
        if value.is_sign_negative() {
            text.put(b"-");
        }
        put_shortest(value.abs(), &mut text);
    }
    let len = text.len;
    &buf[..len]
}

fn put_shortest(value: f64, text: &mut Text<'_>) {
    if value <= (1u64 << 62) as f64 && value.fract() == 0.0 {
        text.put(format_u64(value as u64, &mut [0; INTEGER_TEXT_LEN]));
        return;
    }
    let mut shortest = Digits {
        digits: [0; 17],
        count: 0,
    };
    let exponent = shortest.of(value);
    let digits = &shortest.digits[..shortest.count];
    // The value is the digits, as an integer, times ten to this power.
    let power = exponent - (digits.len() as i32 - 1);
    let size = exponent.unsigned_abs() as usize;
    if power >= 0 && size < digits.len() + 7 {
        text.put(digits);
        text.put(&[b'0'; 8][..power as usize]);
    } else if power < 0 && (power > -7 || size < 4) {
        match digits.len().checked_sub(power.unsigned_abs() as usize) {
            Some(before @ 1..) => {
                text.put(&digits[..before]);
                text.put(b".");
                text.put(&digits[before..]);
            }
            _ => {
                text.put(b"0.");
                text.put(&[b'0'; 8][..size - 1]);
                text.put(digits);
            }
        }
    } else {
        text.put(&digits[..1]);
        if digits.len() > 1 {
            text.put(b".");
            text.put(&digits[1..]);
        }
        text.put(if exponent < 0 { b"e-" } else { b"e+" });
        text.put(format_u64(size as u64, &mut [0; INTEGER_TEXT_LEN]));
    }
}

/// The fewest digits that tell a double apart from all others: 17 at most.
struct Digits {
    digits: [u8; 17],
    count: usize,
}

impl Digits {
    /// Takes the digits of a double that is above 0. Returns the exponent of the first.
    fn of(&mut self, value: f64) -> i32 {
        use std::fmt::Write;
        let mut scientific = Scientific {
            digits: self,
            exponent: 0,
            is_negative: false,
            is_behind: false,
        };
        write!(scientific, "{value:e}").expect("it takes everything");
        match scientific.is_negative {
            true => -scientific.exponent,
            false => scientific.exponent,
        }
    }
}

/// Takes `d.ddde-ddd` apart.
struct Scientific<'d> {
    digits: &'d mut Digits,
    exponent: i32,
    is_negative: bool,
    is_behind: bool,
}

impl std::fmt::Write for Scientific<'_> {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        for byte in part.bytes() {
            match byte {
                b'e' => self.is_behind = true,
                b'-' => self.is_negative = true,
                b'0'..=b'9' if self.is_behind => {
                    self.exponent = self.exponent * 10 + i32::from(byte - b'0');
                }
                b'0'..=b'9' if self.digits.count < self.digits.digits.len() => {
                    self.digits.digits[self.digits.count] = byte;
                    self.digits.count += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn put_magnitude(value: f64, text: &mut Text<'_>) {
    // Integers are what most doubles of clients are, and below 2^53 their digits are the text.
    if value < (1u64 << 53) as f64 && value.fract() == 0.0 {
        text.put(format_u64(value as u64, &mut [0; INTEGER_TEXT_LEN]));
        return;
    }
    let (digits, exponent) = significant_digits(value);
    let significant = digits.len()
        - digits
            .iter()
            .rev()
            .take_while(|&&digit| digit == b'0')
            .count();
    let digits = &digits[..significant];
    match exponent {
        0..17 => {
            let (integer, fraction) = digits.split_at(digits.len().min(exponent as usize + 1));
            text.put(integer);
            text.put(&[b'0'; 17][..exponent as usize + 1 - integer.len()]);
            if !fraction.is_empty() {
                text.put(b".");
                text.put(fraction);
            }
        }
        -4..0 => {
            text.put(&b"0.000"[..1 + exponent.unsigned_abs() as usize]);
            text.put(digits);
        }
        _ => {
            text.put(&digits[..1]);
            if digits.len() > 1 {
                text.put(b".");
                text.put(&digits[1..]);
            }
            text.put(if exponent < 0 { b"e-" } else { b"e+" });
            if exponent.unsigned_abs() < 10 {
                text.put(b"0");
            }
            text.put(format_u64(
                exponent.unsigned_abs(),
                &mut [0; INTEGER_TEXT_LEN],
            ));
        }
    }
}

/// The 17 most significant digits of a positive value, and the power of ten of the first one.
fn significant_digits(value: f64) -> ([u8; 17], i64) {
    let mut buf = [0; DOUBLE_TEXT_LEN];
    let mut text = Text {
        buf: &mut buf,
        len: 0,
    };
    // The standard library rounds as C does, to the nearest and ties to even, but has no `%g`.
    write!(text, "{value:.16e}")
        .expect("a point, an e and an exponent of at most 4 bytes fit beside the digits");
    let len = text.len;
    let exponent =
        parse_i64(&buf[19..len]).expect("the exponent follows 17 digits, a point and an e");
    let mut digits = [buf[0]; 17];
    digits[1..].copy_from_slice(&buf[2..18]);
    (digits, exponent)
}

/// A text that grows in a fixed buffer.
struct Text<'a> {
    buf: &'a mut [u8; DOUBLE_TEXT_LEN],
    len: usize,
}

impl Text<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.buf[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
