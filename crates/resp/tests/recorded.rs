//! Compares the codec with what a real redis-server 7.0.15 on x86-64 answered.
//!
//! Here live the comparisons; the answers are in `tests/data`, recorded by `tests/record.py`.
//! `RESP_RECORDED` names another folder of recordings, for a check of more cases than the
//! repository holds.

use std::fs;
use std::path::PathBuf;

use resp::{Limits, Outcome, Protocol, Resume, Span, Writer, extended, request};

/// The cases of one table, their fields unescaped.
fn cases(name: &str) -> Vec<Vec<Vec<u8>>> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let folder = std::env::var_os("RESP_RECORDED").map_or_else(|| default.into(), PathBuf::from);
    let table = fs::read_to_string(folder.join(name)).expect("the recording is readable");
    let cases: Vec<_> = table
        .lines()
        .map(|line| line.split('\t').map(unescape).collect())
        .collect();
    assert!(cases.len() > 100, "{name} is not empty");
    cases
}

fn unescape(field: &str) -> Vec<u8> {
    let mut parts = field.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect("two hexadecimal digits follow"));
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    bytes
}

/// What a server would answer that knows nothing but `EVAL "return ARGV" 0 ...`, fed in pieces of
/// `step` bytes.
fn serve(stream: &[u8], step: usize) -> Vec<u8> {
    let limits = Limits::default();
    let (mut input, mut resume, mut args, mut out) =
        (Vec::new(), Resume::default(), Vec::new(), Vec::new());
    let mut at = 0;
    for piece in stream.chunks(step) {
        input.extend_from_slice(piece);
        loop {
            args.clear();
            match request::parse(&mut input, at, &limits, &mut resume, &mut args) {
                Ok(Outcome::Request { end }) => {
                    answer(&input, &args, &mut out);
                    at = end;
                }
                Ok(Outcome::Incomplete { .. }) => break,
                Err(error) => {
                    error.write_reply(&mut out);
                    return out;
                }
            }
        }
    }
    out
}

fn answer(input: &[u8], args: &[Span], out: &mut Vec<u8>) {
    // The recorder made mutations of the requests too, and kept those whose reply is an array.
    // Their script may have got white space, and a key or two may be missing from the reply.
    let [name, _script, keys, rest @ ..] = args else {
        assert!(args.is_empty(), "every command has its script");
        return;
    };
    assert!(name.of(input).eq_ignore_ascii_case(b"EVAL"));
    let keys = resp::parse_u64(keys.of(input)).expect("the number of keys is one") as usize;
    let rest = &rest[keys..];
    let mut writer = Writer::new(out, Protocol::Resp2);
    writer.array(rest.len());
    for span in rest {
        writer.bulk(span.of(input));
    }
}

#[test]
fn requests_parse_as_in_redis() {
    for case in cases("requests.txt") {
        let [stream, reply] = &case[..] else {
            panic!("two fields")
        };
        for step in [stream.len().max(1), 1, 7] {
            assert_eq!(
                serve(stream, step).escape_ascii().to_string(),
                reply.escape_ascii().to_string(),
                "{} in steps of {step}",
                stream.escape_ascii()
            );
        }
    }
}

/// What INCRBYFLOAT answers.
fn sum(a: &[u8], b: &[u8]) -> Vec<u8> {
    let (Some(a), Some(b)) = (extended::parse(a), extended::parse(b)) else {
        return b"-ERR value is not a valid float".to_vec();
    };
    let sum = a + b;
    if sum.is_nan() || sum.is_infinite() {
        return b"-ERR increment would produce NaN or Infinity".to_vec();
    }
    let mut out = Vec::new();
    sum.write_to(&mut out);
    out
}

#[test]
fn sums_of_extended_numbers_are_those_of_redis() {
    for case in cases("sums.txt") {
        let [a, b, reply] = &case[..] else {
            panic!("three fields")
        };
        assert_eq!(
            sum(a, b).escape_ascii().to_string(),
            reply.escape_ascii().to_string(),
            "{} + {}",
            a.escape_ascii(),
            b.escape_ascii()
        );
    }
}

#[test]
fn doubles_are_read_and_written_as_in_redis() {
    for case in cases("doubles.txt") {
        let [text, reply] = &case[..] else {
            panic!("two fields")
        };
        let mut out = Vec::new();
        match resp::parse_f64(text) {
            None => out.extend_from_slice(b"-ERR value is not a valid float"),
            // The score of a small sorted set loses the sign of zero before it is written.
            Some(value) => out.extend_from_slice(resp::format_f64(value + 0.0, &mut [0; 25])),
        }
        assert_eq!(
            out.escape_ascii().to_string(),
            reply.escape_ascii().to_string(),
            "{}",
            text.escape_ascii()
        );
    }
}

#[test]
fn keys_have_the_slots_that_redis_gives_them() {
    for case in cases("slots.txt") {
        let [key, reply] = &case[..] else {
            panic!("two fields")
        };
        let found = resp::slot::slot(key).to_string();
        assert_eq!(found.as_bytes(), reply, "{}", key.escape_ascii());
    }
}
