//! IDs in requests and replies.

use keyspace::collection::stream::Id;
use resp::number::{INTEGER_TEXT_LEN, parse_i64};

use super::super::{Args, Failure, failure::quoted};

pub(super) const INVALID: Failure =
    Failure::of("ERR Invalid stream ID specified as stream command argument");

/// Longer texts are no IDs.
const TEXT_MAX: usize = 127;

/// The text of an ID.
pub(super) struct IdText {
    bytes: [u8; 2 * INTEGER_TEXT_LEN + 1],
    from: usize,
}

impl IdText {
    /// That of this one.
    #[inline]
    pub(super) fn of(id: Id) -> IdText {
        let mut text = IdText {
            bytes: [0; 2 * INTEGER_TEXT_LEN + 1],
            from: 2 * INTEGER_TEXT_LEN + 1,
        };
        text.put(id.seq);
        text.from -= 1;
        text.bytes[text.from] = b'-';
        text.put(id.ms);
        text
    }

    /// Puts a number before the text so far.
    #[inline]
    fn put(&mut self, mut number: u64) {
        loop {
            self.from -= 1;
            self.bytes[self.from] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return;
            }
        }
    }

    /// Its bytes.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..]
    }
}

/// An unsigned number as `strtoull` of C reads it, where that ends at the end of the text.
fn number(text: &[u8]) -> Option<u64> {
    if let Some(number) = parse_i64(text) {
        return u64::try_from(number).ok();
    }
    let start = text
        .iter()
        .position(|byte| !byte.is_ascii_whitespace() && *byte != 0x0b)?;
    let (digits, is_negative) = match &text[start..] {
        [b'-', digits @ ..] => (digits, true),
        [b'+', digits @ ..] => (digits, false),
        digits => (digits, false),
    };
    let number = str::from_utf8(digits)
        .ok()
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?
        .parse::<u64>()
        .ok()?;
    Some(if is_negative {
        number.wrapping_neg()
    } else {
        number
    })
}

/// An ID of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskedId {
    /// This one.
    Whole(Id),
    /// One of this time, with the next sequence number: `ms-*`.
    OfTime(u64),
}

/// The ID in a text; `missing`: the sequence number of one that has none. `*` stands for the sequence number
/// where `may_ask`.
fn parse(text: &[u8], missing: u64, may_ask: bool) -> Result<AskedId, Failure> {
    let text = quoted(text);
    if text.len() > TEXT_MAX {
        return Err(INVALID);
    }
    let Some(dash) = text.iter().position(|&byte| byte == b'-') else {
        let ms = number(text).ok_or(INVALID)?;
        return Ok(AskedId::Whole(Id { ms, seq: missing }));
    };
    let (ms, seq) = (number(&text[..dash]).ok_or(INVALID)?, &text[dash + 1..]);
    if may_ask && seq == b"*" {
        return Ok(AskedId::OfTime(ms));
    }
    let seq = number(seq).ok_or(INVALID)?;
    Ok(AskedId::Whole(Id { ms, seq }))
}

/// The ID of an entry that is added.
///
/// # Errors
/// It is none.
pub(super) fn to_add(text: &[u8]) -> Result<AskedId, Failure> {
    parse(text, 0, true)
}

/// The ID in a text; `missing`: the sequence number of one that has none.
///
/// # Errors
/// It is none.
pub(super) fn exact(text: &[u8], missing: u64) -> Result<Id, Failure> {
    match parse(text, missing, false)? {
        AskedId::Whole(id) => Ok(id),
        AskedId::OfTime(_) => Err(INVALID),
    }
}

/// The IDs that arguments name, from one on.
///
/// # Errors
/// One of them is none.
pub(super) fn all(args: &Args<'_>, from: usize) -> Result<Vec<Id>, Failure> {
    let mut ids = Vec::with_capacity(args.len().saturating_sub(from));
    for text in args.from(from) {
        ids.push(exact(text, 0)?);
    }
    Ok(ids)
}

/// An end of a range: `-` and `+` are the first and the last of all, and after `(` the ID itself is left
/// out. `missing` as of [`exact`].
pub(super) struct End {
    pub(super) id: Id,
    pub(super) is_excluded: bool,
}

impl End {
    /// # Errors
    /// It is none.
    pub(super) fn parse(text: &[u8], missing: u64) -> Result<End, Failure> {
        let (id, is_excluded) = match text {
            [b'(', rest @ ..] if !rest.is_empty() => (exact(rest, missing)?, true),
            b"-" => (Id::MIN, false),
            b"+" => (Id::MAX, false),
            _ => (exact(text, missing)?, false),
        };
        Ok(End { id, is_excluded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        let id = |ms, seq| Ok(AskedId::Whole(Id { ms, seq }));
        for (text, expected) in [
            ("5", id(5, 7)),
            ("5-0", id(5, 0)),
            ("007-+3", id(7, 3)),
            (" 1-2", id(1, 2)),
            (
                "18446744073709551615-18446744073709551615",
                id(u64::MAX, u64::MAX),
            ),
            ("1--05", id(1, 5_u64.wrapping_neg())),
            ("5-*", Ok(AskedId::OfTime(5))),
            ("18446744073709551616-0", Err(INVALID)),
            ("1--5", Err(INVALID)),
            ("-5", Err(INVALID)),
            ("", Err(INVALID)),
            ("1-", Err(INVALID)),
            ("1-2-3", Err(INVALID)),
            ("a-1", Err(INVALID)),
            ("1 -1", Err(INVALID)),
            ("-", Err(INVALID)),
            ("+", Err(INVALID)),
        ] {
            assert_eq!(parse(text.as_bytes(), 7, true), expected, "{text}");
        }
        assert_eq!(exact(b"5-*", 0), Err(INVALID));
        assert_eq!(parse(&[b'1'; 128], 0, true), Err(INVALID));
    }

    #[test]
    fn ids_are_written_as_two_numbers() {
        for (ms, seq) in [(0, 0), (1_700_000_000_000, 10), (u64::MAX, u64::MAX)] {
            let text = format!("{ms}-{seq}");
            assert_eq!(IdText::of(Id { ms, seq }).bytes(), text.as_bytes());
        }
    }
}
