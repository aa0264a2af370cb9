//! Amounts as text.

/// `1 key`, `2 keys`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// A number of bytes with a unit of two to the tenth: `100B`, `1.50K`.
pub(crate) fn bytes_text(bytes: i64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    let sign = if bytes < 0 { "-" } else { "" };
    let bytes = bytes.unsigned_abs();
    if bytes < 1024 {
        return format!("{sign}{bytes}B");
    }
    let power = (bytes.ilog2() / 10).min(UNITS.len() as u32);
    let scaled = bytes as f64 / 1024_f64.powi(power as i32);
    format!("{sign}{scaled:.2}{}", UNITS[power as usize - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_unit() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.00K"),
            (1_572_864, "1.50M"),
            (-2048, "-2.00K"),
            (5 << 30, "5.00G"),
            (3 << 40, "3.00T"),
            (i64::MAX, "8192.00P"),
        ] {
            assert_eq!(bytes_text(bytes), text);
        }
    }
}
