//! Numbers as C's `printf` writes them: `%.Ng`.

use std::fmt::Write as _;

use resp::number::{INTEGER_TEXT_LEN, format_i64};

/// The longest text: a sign, 17 digits, a point, zeros in front or an exponent.
pub(crate) const TEXT_MAX: usize = 40;

/// A text on the stack.
struct Text<'t> {
    bytes: &'t mut [u8; TEXT_MAX],
    len: usize,
}

impl std::fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let until = self.len + text.len();
        let to = self.bytes.get_mut(self.len..until).ok_or(std::fmt::Error)?;
        to.copy_from_slice(text.as_bytes());
        self.len = until;
        Ok(())
    }
}

/// Writes `number` with `precision` significant digits, 1 to 17, as `%.Ng` does.
pub(crate) fn format_general(number: f64, precision: usize, bytes: &mut [u8; TEXT_MAX]) -> &[u8] {
    let integer = number as i64;
    let largest = 10_f64.powi(precision.min(17) as i32);
    if integer as f64 == number
        && number.abs() < largest
        && (integer != 0 || number.is_sign_positive())
    {
        let mut buffer = [0; INTEGER_TEXT_LEN];
        let digits = format_i64(integer, &mut buffer);
        bytes[..digits.len()].copy_from_slice(digits);
        let len = digits.len();
        return &bytes[..len];
    }
    if !number.is_finite() {
        let text: &[u8] = match (number.is_nan(), number.is_sign_negative()) {
            (true, true) => b"-nan",
            (true, false) => b"nan",
            (false, true) => b"-inf",
            (false, false) => b"inf",
        };
        bytes[..text.len()].copy_from_slice(text);
        return &bytes[..text.len()];
    }
    let mut scientific = [0; TEXT_MAX];
    let mut text = Text {
        bytes: &mut scientific,
        len: 0,
    };
    let digits_after = precision.clamp(1, 17) - 1;
    write!(text, "{number:.digits_after$e}").expect("17 digits have room");
    let len = text.len;
    let text = &scientific[..len];
    let at = text.iter().position(|&byte| byte == b'e').unwrap_or(len);
    let exponent: i32 = std::str::from_utf8(&text[at + 1..])
        .ok()
        .and_then(|digits| digits.parse().ok())
        .expect("an exponent is an integer");
    let mut digits = [0; 17];
    let mut count = 0;
    for &byte in text[..at].iter().filter(|byte| byte.is_ascii_digit()) {
        digits[count] = byte;
        count += 1;
    }
    while count > 1 && digits[count - 1] == b'0' {
        count -= 1;
    }
    let len = lay_out(
        number.is_sign_negative(),
        &digits[..count],
        exponent,
        precision as i32,
        bytes,
    );
    &bytes[..len]
}

/// Puts digits where `%g` has them. Returns the length.
fn lay_out(
    is_negative: bool,
    digits: &[u8],
    exponent: i32,
    precision: i32,
    bytes: &mut [u8; TEXT_MAX],
) -> usize {
    let mut text = Text { bytes, len: 0 };
    let mut put = |part: &[u8]| {
        let until = text.len + part.len();
        text.bytes[text.len..until].copy_from_slice(part);
        text.len = until;
    };
    if is_negative {
        put(b"-");
    }
    if exponent < -4 || exponent >= precision {
        put(&digits[..1]);
        if digits.len() > 1 {
            put(b".");
            put(&digits[1..]);
        }
        put(if exponent < 0 { b"e-" } else { b"e+" });
        let size = exponent.unsigned_abs();
        if size < 10 {
            put(b"0");
        }
        let mut buffer = [0; INTEGER_TEXT_LEN];
        put(format_i64(size.into(), &mut buffer));
    } else if exponent < 0 {
        put(b"0.");
        put(&b"000"[..(-exponent - 1) as usize]);
        put(digits);
    } else {
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            put(digits);
            put(&b"0000000000000000"[..whole - digits.len()]);
        } else {
            put(&digits[..whole]);
            put(b".");
            put(&digits[whole..]);
        }
    }
    text.len
}

/// Appends a number as `%.14g` writes it, the way Lua does.
pub(crate) fn put_number(out: &mut Vec<u8>, number: f64) {
    out.extend_from_slice(format_general(number, 14, &mut [0; TEXT_MAX]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_c() {
        for (number, precision, expected) in [
            (0.0, 14, "0"),
            (-0.0, 14, "-0"),
            (0.1, 17, "0.10000000000000001"),
            (0.1, 14, "0.1"),
            (1e14, 14, "1e+14"),
            (123_456_789_012_345.0, 14, "1.2345678901234e+14"),
            (1e17, 17, "1e+17"),
            (1e16, 17, "10000000000000000"),
            (1e-5, 14, "1e-05"),
            (0.000_123, 14, "0.000123"),
            (1.5e300, 14, "1.5e+300"),
            (f64::INFINITY, 14, "inf"),
            (-3.25, 14, "-3.25"),
            (9.5, 1, "1e+01"),
            (99.0, 2, "99"),
            (100.0, 2, "1e+02"),
            (5e-324, 17, "4.9406564584124654e-324"),
        ] {
            let mut bytes = [0; TEXT_MAX];
            let text = format_general(number, precision, &mut bytes);
            assert_eq!(text, expected.as_bytes(), "{number}");
        }
    }
}
