//! Cursors and counts of SCAN and of the scans of collections.

use resp::number;

use super::{Args, Failure, failure};

/// COUNT of a scan without the option.
pub(super) const COUNT: usize = 10;

const INVALID_CURSOR: Failure = Failure::of("ERR invalid cursor");

/// The cursor of a request.
///
/// # Errors
/// It is no number.
pub(super) fn parse(text: &[u8]) -> Result<u64, Failure> {
    read(text).ok_or(INVALID_CURSOR)
}

/// The number behind COUNT.
///
/// # Errors
/// It is no number from 1 on.
pub(super) fn parse_count(args: &Args<'_>, at: usize) -> Result<usize, Failure> {
    let count = args.integer(at)?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(failure::SYNTAX),
    }
}

/// Cursor and count of a scan of a collection, if it has a cursor. The count may be larger than that which
/// the scan finds: of options that are not what they seem to be.
pub(super) fn of_scan(args: &Args<'_>) -> Option<(u64, usize)> {
    let cursor = read(args.get(2))?;
    let names = (3..args.len().max(1) - 1).filter(|&at| args.is(at, "COUNT"));
    let counts = names.filter_map(|at| parse_count(args, at + 1).ok());
    Some((cursor, counts.max().unwrap_or(COUNT).max(COUNT)))
}

/// Reads a cursor as Redis 8 does. An integer of 64 bits with a sign is what it is, and none below 0.
/// Anything else is read as C's `strtoul` would: blanks in front are skipped, a minus counts down from 2^64,
/// and a zero byte is the end. A cursor that is none of ours is harmless: every number means some place to
/// go on from.
fn read(text: &[u8]) -> Option<u64> {
    if let Some(number) = number::parse_i64(text) {
        return u64::try_from(number).ok();
    }
    let end = text.iter().position(|&byte| byte == 0);
    let text = &text[..end.unwrap_or(text.len())];
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let (negative, digits) = match &text[text.iter().take_while(|byte| is_blank(byte)).count()..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let append = |value: u64, &byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    };
    let value = digits.iter().try_fold(0, append)?;
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_redis_8_reads_them() {
        for (text, cursor) in [
            ("0", 0),
            ("007", 7),
            ("+5", 5),
            ("-0", 0),
            (" -1", u64::MAX),
            (" \t\x0b5", 5),
            ("18446744073709551615", u64::MAX),
            ("-18446744073709551615", 1),
            ("12\0abc", 12),
        ] {
            assert_eq!(read(text.as_bytes()), Some(cursor), "{text}");
        }
        for text in [
            "-",
            "+",
            "",
            "\0",
            " ",
            "-1",
            "-9223372036854775808",
            "1 ",
            "0x10",
            "1.5",
            "abc",
            "--1",
            "18446744073709551616",
        ] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }
}
