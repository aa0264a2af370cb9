//! Looking at a whole database: KEYS, SCAN, RANDOMKEY.
//!
//! Keys go from the shard straight into the reply, whose beginning is written last: memory grows with what is answered,
//! not with what is there. One shard is locked at a time, so KEYS is no point in time: a key that another
//! client renames meanwhile may be met under both names or under neither.

use keyspace::EntryRef;
use resp::number::{INTEGER_TEXT_LEN, format_u64};

use crate::command::{Args, Context, Failure, failure};
use crate::glob::{self, Case};

use super::existence::type_name;

/// Keys that SCAN looks at when it isn't told.
const SCAN_COUNT: usize = 10;

const INVALID_CURSOR: Failure = Failure::of("ERR invalid cursor");

/// Which keys are wanted; nothing asked for is `None`.
#[derive(Clone, Copy, Debug, Default)]
struct Filter<'a> {
    pattern: Option<&'a [u8]>,
    type_name: Option<&'a [u8]>,
}

impl<'a> Filter<'a> {
    /// `*` is not a pattern but the absence of one: it stands for the empty key too, which no other pattern of stars does.
    fn set_pattern(&mut self, pattern: &'a [u8]) {
        self.pattern = (pattern != b"*").then_some(pattern);
    }

    fn accepts(&self, entry: EntryRef<'_>) -> bool {
        let matches = |pattern| glob::matches(pattern, entry.key(), Case::Sensitive);
        let is_of_type =
            |name: &[u8]| name.eq_ignore_ascii_case(type_name(entry.kind()).as_bytes());
        self.pattern.is_none_or(matches) && self.type_name.is_none_or(is_of_type)
    }
}

pub(super) fn keys(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    if args.len() > 2 {
        return Err(Failure::wrong_arity(&context.command.full_name));
    }
    let mut filter = Filter::default();
    if let Some(pattern) = args.optional(1) {
        filter.set_pattern(pattern);
    }
    let Context { store, reply, .. } = context;
    let (start, mut found) = (reply.position(), 0);
    store.database().for_each(store.now, |entry| {
        if filter.accepts(entry) {
            reply.bulk(entry.key());
            found += 1;
        }
    });
    reply.put_before(start, |reply| reply.array(found));
    Ok(())
}

pub(super) fn scan(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    let cursor = parse_cursor(args.get(1)).ok_or(INVALID_CURSOR)?;
    let (count, filter) = parse_scan(args)?;
    let Context { store, reply, .. } = context;
    let (start, mut found) = (reply.position(), 0);
    let next = store.database().scan(cursor, count, store.now, |entry| {
        if filter.accepts(entry) {
            reply.bulk(entry.key());
            found += 1;
        }
    });
    reply.put_before(start, |reply| {
        reply.array(2);
        reply.bulk(format_u64(next, &mut [0; INTEGER_TEXT_LEN]));
        reply.array(found);
    });
    Ok(())
}

/// The options behind SCAN's cursor: how many keys to look at, and which of them are wanted.
fn parse_scan<'a>(args: &Args<'a>) -> Result<(usize, Filter<'a>), Failure> {
    let (mut count, mut filter) = (SCAN_COUNT, Filter::default());
    for at in (2..args.len()).step_by(2) {
        let value = args.optional(at + 1).ok_or(failure::SYNTAX)?;
        if args.is(at, "COUNT") {
            let wanted = args.integer(at + 1)?;
            if wanted < 1 {
                return Err(failure::SYNTAX);
            }
            count = wanted as usize;
        } else if args.is(at, "MATCH") {
            filter.set_pattern(value);
        } else if args.is(at, "TYPE") {
            filter.type_name = Some(value);
        } else {
            return Err(failure::SYNTAX);
        }
    }
    Ok((count, filter))
}

/// Reads a cursor as C's `strtoul` would, because Redis does: nothing at all is 0, a minus counts down from 2^64, and a
/// zero byte is the end. A cursor that is none of ours is harmless: every number means some place to go on from.
fn parse_cursor(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|&byte| byte == 0);
    let (negative, digits) = match &text[..end.unwrap_or(text.len())] {
        [] => return Some(0),
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

pub(super) fn randomkey(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
    let Context { store, reply, .. } = context;
    let random = || fastrand::u64(..);
    let found = store
        .database()
        .random_key(store.now, random, |entry| reply.bulk(entry.key()));
    if found.is_none() {
        reply.null();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_c_reads_them() {
        for (text, cursor) in [
            ("", 0),
            ("0", 0),
            ("007", 7),
            ("+5", 5),
            ("-0", 0),
            ("-1", u64::MAX),
            ("18446744073709551615", u64::MAX),
            ("-18446744073709551615", 1),
            ("12\0abc", 12),
            ("\0", 0),
        ] {
            assert_eq!(parse_cursor(text.as_bytes()), Some(cursor), "{text}");
        }
        for text in [
            "-",
            "+",
            " 1",
            "1 ",
            "0x10",
            "1.5",
            "abc",
            "--1",
            "18446744073709551616",
        ] {
            assert_eq!(parse_cursor(text.as_bytes()), None, "{text}");
        }
    }
}
