//! Counting replies without building values.
//!
//! A reply is a value, nothing, an error, or a push that answers no request. The types of nearly all
//! replies are told by their first byte and ended by their first line or by its length; aggregates and
//! the rest go to `resp`'s scanner. Replies that come in pieces are held until they are whole, except
//! bulk strings of more than [`HELD_REPLY_BYTES`], which are counted while they pass: a GET of a
//! gigabyte takes up no memory.
//!
//! Invariant: what is held never contains a whole reply.

use crate::limits::HELD_REPLY_BYTES;
use resp::{ReplyError, ReplyScanner};

/// What a reply says, as far as a load generator cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything that is none of the others.
    Value,
    /// There is no such key.
    Nil,
    /// The server refuses.
    Error,
    /// A message that answers no request.
    Push,
}

/// The replies of one connection.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    /// The beginning of a reply whose end has not come yet.
    held: Vec<u8>,
    /// How far the beginning has been looked at, where it is an aggregate.
    scanner: ReplyScanner,
    /// How many bytes of a large bulk string are still to come.
    passing: u64,
}

/// The beginning of the reply that came last, to recognise the next ones like it: `+OK`, `:1`, `$-1`, and
/// bulk strings of the same length.
#[derive(Clone, Copy)]
struct Last {
    /// Its first line, if that fits into a word ...
    line: u64,
    /// ... and which bits of the word that is.
    mask: u64,
    /// The length of the whole reply.
    len: usize,
    kind: Kind,
}

impl Replies {
    /// Looks at what has been received and tells `each` about the replies that are whole now: what
    /// they are, how many of them in a row, and the bytes if it is one that is no value.
    ///
    /// # Errors
    /// The bytes are no reply; what follows on the connection is lost.
    #[inline]
    pub(crate) fn read(
        &mut self,
        mut input: &[u8],
        each: &mut impl FnMut(Kind, u32, &[u8]),
    ) -> Result<(), ReplyError> {
        let mut teller = Teller { values: 0, each };
        if self.passing > 0 {
            input = self.pass(input, &mut teller);
        }
        if !self.held.is_empty() {
            input = self.complete(input, &mut teller)?;
        }
        let result = self.read_rest(input, &mut teller);
        teller.tell_values();
        result
    }

    #[inline]
    fn read_rest<E: FnMut(Kind, u32, &[u8])>(
        &mut self,
        mut input: &[u8],
        teller: &mut Teller<'_, E>,
    ) -> Result<(), ReplyError> {
        let mut last = None;
        while !input.is_empty() {
            if let Some(last) = &last {
                let count = run(input, last);
                if count > 0 {
                    // A run is within one read, far below 2^32.
                    teller.note(last.kind, count as u32, &input[..last.len]);
                    input = &input[last.len * count..];
                    continue;
                }
            }
            match self.first(input)? {
                Found::Whole(kind, len) => {
                    teller.note(kind, 1, &input[..len]);
                    last = remember(&input[..len], kind);
                    input = &input[len..];
                }
                Found::Passing(missing) => {
                    self.passing = missing;
                    return Ok(());
                }
                Found::Part => {
                    self.held.extend_from_slice(input);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Lets more of a large bulk string pass.
    fn pass<'a, E: FnMut(Kind, u32, &[u8])>(
        &mut self,
        input: &'a [u8],
        teller: &mut Teller<'_, E>,
    ) -> &'a [u8] {
        let len = usize::try_from(self.passing).map_or(input.len(), |left| left.min(input.len()));
        self.passing -= len as u64;
        if self.passing == 0 {
            teller.note(Kind::Value, 1, &[]);
        }
        &input[len..]
    }

    /// Adds to what is held until that is one whole reply, a little at a time, so that little of what
    /// follows is copied.
    fn complete<'a, E: FnMut(Kind, u32, &[u8])>(
        &mut self,
        mut input: &'a [u8],
        teller: &mut Teller<'_, E>,
    ) -> Result<&'a [u8], ReplyError> {
        const STEP: usize = 4 << 10;
        while !input.is_empty() {
            let before = self.held.len();
            let step = input.len().min(STEP);
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(&input[..step]);
            match self.first(&held)? {
                Found::Whole(kind, len) => {
                    teller.note(kind, 1, &held[..len]);
                    held.clear();
                    self.held = held;
                    return Ok(&input[len - before..]);
                }
                Found::Passing(missing) => {
                    self.passing = missing;
                    held.clear();
                    self.held = held;
                    return Ok(self.pass(&input[step..], teller));
                }
                Found::Part => self.held = held,
            }
            input = &input[step..];
        }
        Ok(input)
    }

    /// What `input` begins with.
    fn first(&mut self, input: &[u8]) -> Result<Found, ReplyError> {
        let kind = match input[0] {
            b'+' | b':' | b',' | b'#' | b'(' => Kind::Value,
            b'-' => Kind::Error,
            b'_' => Kind::Nil,
            b'$' => return bulk(input),
            _ => return self.scan(input),
        };
        match line_end(input) {
            Some(end) if input[end - 2] == b'\r' => Ok(Found::Whole(kind, end)),
            Some(_) => Err(ReplyError::InvalidLine),
            None => Ok(Found::Part),
        }
    }

    fn scan(&mut self, input: &[u8]) -> Result<Found, ReplyError> {
        let Some(len) = self.scanner.scan(input)? else {
            return Ok(Found::Part);
        };
        let kind = match input[0] {
            b'>' => Kind::Push,
            b'!' => Kind::Error,
            _ if input.starts_with(b"*-1") => Kind::Nil,
            _ => Kind::Value,
        };
        Ok(Found::Whole(kind, len))
    }
}

/// What some bytes begin with.
enum Found {
    /// A reply of this length.
    Whole(Kind, usize),
    /// A large bulk string of which so many bytes are still to come behind these.
    Passing(u64),
    /// A part of a reply.
    Part,
}

/// Behind the first line feed. The first byte is a type, so there are at least two in front.
#[inline]
fn line_end(input: &[u8]) -> Option<usize> {
    input
        .iter()
        .position(|&byte| byte == b'\n')
        .map(|at| at + 1)
}

#[inline]
fn bulk(input: &[u8]) -> Result<Found, ReplyError> {
    if input.starts_with(b"$-1\r\n") {
        return Ok(Found::Whole(Kind::Nil, 5));
    }
    let (mut len, mut at) = (0_u64, 1);
    loop {
        let Some(byte) = input.get(at) else {
            return Ok(Found::Part);
        };
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        len = (len.checked_mul(10))
            .and_then(|len| len.checked_add(u64::from(digit)))
            .ok_or(ReplyError::InvalidLine)?;
        at += 1;
    }
    match &input[at..] {
        [b'\r', b'\n', ..] if at > 1 => Ok(payload(input, at + 2, len)?),
        [b'\r'] if at > 1 => Ok(Found::Part),
        // What may still become `$-1`.
        rest if at == 1 && b"-1\r\n".starts_with(rest) => Ok(Found::Part),
        _ => Err(ReplyError::InvalidLine),
    }
}

/// A bulk string whose payload of `len` bytes begins at `start`.
#[inline]
fn payload(input: &[u8], start: usize, len: u64) -> Result<Found, ReplyError> {
    let total = len.saturating_add(start as u64 + 2);
    if total <= input.len() as u64 {
        // Not more than the input's length.
        let total = total as usize;
        return match &input[total - 2..total] {
            b"\r\n" => Ok(Found::Whole(Kind::Value, total)),
            _ => Err(ReplyError::InvalidPayload),
        };
    }
    if len > HELD_REPLY_BYTES {
        return Ok(Found::Passing(total - input.len() as u64));
    }
    Ok(Found::Part)
}

/// Remembers a reply whose first line fits into a word and tells how long it is.
#[inline]
fn remember(reply: &[u8], kind: Kind) -> Option<Last> {
    if !matches!(reply.first(), Some(b'+' | b':' | b'$' | b'-' | b'_')) {
        return None;
    }
    let mut padded = [0; 8];
    let head = &reply[..reply.len().min(8)];
    padded[..head.len()].copy_from_slice(head);
    let line_len = head.iter().position(|&byte| byte == b'\n')? + 1;
    let mask = u64::MAX >> (64 - 8 * line_len);
    Some(Last {
        line: u64::from_le_bytes(padded) & mask,
        mask,
        len: reply.len(),
        kind,
    })
}

/// How many replies like the last one `input` begins with, as far as whole words can be compared.
#[inline]
fn run(mut input: &[u8], last: &Last) -> usize {
    let mut count = 0;
    while input.len() >= last.len.max(8)
        && word(input) & last.mask == last.line
        && input[last.len - 2..last.len] == *b"\r\n"
    {
        input = &input[last.len..];
        count += 1;
    }
    count
}

/// Tells about replies, values in a row at once.
struct Teller<'a, E> {
    /// How many values have not been told yet.
    values: u32,
    each: &'a mut E,
}

impl<E: FnMut(Kind, u32, &[u8])> Teller<'_, E> {
    #[inline]
    fn note(&mut self, kind: Kind, count: u32, bytes: &[u8]) {
        if kind == Kind::Value {
            self.values += count;
            return;
        }
        self.tell_values();
        (self.each)(kind, count, bytes);
    }

    fn tell_values(&mut self) {
        if self.values > 0 {
            (self.each)(Kind::Value, self.values, &[]);
            self.values = 0;
        }
    }
}

#[inline]
fn word(input: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&input[..8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replies of every type with what they are.
    const SAMPLES: &[(&[u8], Kind)] = &[
        (b"+OK\r\n", Kind::Value),
        (b"+OK\r\n", Kind::Value),
        (b"+OK\r\n", Kind::Value),
        (b"+OJ\r\n", Kind::Value),
        (b"+\r\n", Kind::Value),
        (b":1\r\n", Kind::Value),
        (b":1\r\n", Kind::Value),
        (b":-9223372036854775808\r\n", Kind::Value),
        (b"-ERR no\r\n", Kind::Error),
        (b"$-1\r\n", Kind::Nil),
        (b"$-1\r\n", Kind::Nil),
        (b"$0\r\n\r\n", Kind::Value),
        (b"$0\r\n\r\n", Kind::Value),
        (b"$5\r\n\r\n$1\r\r\n", Kind::Value),
        (b"$5\r\nabcde\r\n", Kind::Value),
        (b"$5\r\nfghij\r\n", Kind::Value),
        (b"$10\r\n0123456789\r\n", Kind::Value),
        (b"*-1\r\n", Kind::Nil),
        (b"*0\r\n", Kind::Value),
        (b"*2\r\n$1\r\na\r\n*1\r\n-x\r\n", Kind::Value),
        (b"_\r\n", Kind::Nil),
        (b"#t\r\n", Kind::Value),
        (b",1.5\r\n", Kind::Value),
        (b"(12345678901234567890123\r\n", Kind::Value),
        (b"!5\r\nERR x\r\n", Kind::Error),
        (b"=5\r\ntxt:x\r\n", Kind::Value),
        (b"%1\r\n+a\r\n:1\r\n", Kind::Value),
        (b"~1\r\n+a\r\n", Kind::Value),
        (b">2\r\n+a\r\n:1\r\n", Kind::Push),
        (b"+OK\r\n", Kind::Value),
    ];

    /// All samples in one stream, and what is told of them: values without their bytes.
    fn stream() -> (Vec<u8>, Vec<(Kind, Vec<u8>)>) {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for (sample, kind) in SAMPLES {
            bytes.extend_from_slice(sample);
            let shown = if *kind == Kind::Value { b"" } else { *sample };
            expected.push((*kind, shown.to_vec()));
        }
        (bytes, expected)
    }

    fn read(chunks: &[&[u8]]) -> Result<Vec<(Kind, Vec<u8>)>, ReplyError> {
        let mut replies = Replies::default();
        let mut seen = Vec::new();
        for chunk in chunks {
            replies.read(chunk, &mut |kind, count, bytes| {
                for _ in 0..count {
                    seen.push((kind, bytes.to_vec()));
                }
            })?;
        }
        Ok(seen)
    }

    #[test]
    fn replies_are_the_same_however_they_are_split() {
        let (bytes, expected) = stream();
        assert_eq!(read(&[&bytes]).expect("all are replies"), expected);
        for first in 0..=bytes.len() {
            for second in [
                first,
                (first + 1).min(bytes.len()),
                (first + 9).min(bytes.len()),
            ] {
                let chunks = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(
                    read(&chunks).expect("all are replies"),
                    expected,
                    "at {first}"
                );
            }
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(read(&single).expect("all are replies"), expected);
    }

    #[test]
    fn replies_agree_with_the_parser_of_values() {
        for (sample, _) in SAMPLES {
            let (_, len) = resp::parse_value(sample).expect("valid").expect("whole");
            assert_eq!(len, sample.len());
        }
    }

    #[test]
    fn large_values_pass_without_being_held() {
        let len = 3 * HELD_REPLY_BYTES as usize;
        let mut bytes = format!("+a\r\n${len}\r\n").into_bytes();
        bytes.resize(bytes.len() + len, b'x');
        bytes.extend_from_slice(b"\r\n:7\r\n");
        let sizes = [
            1,
            7,
            4_096,
            5_000,
            bytes.len() - 5,
            bytes.len() - 1,
            bytes.len(),
        ];
        for size in sizes {
            let mut replies = Replies::default();
            let mut kinds = Vec::new();
            for chunk in bytes.chunks(size) {
                replies
                    .read(chunk, &mut |kind, count, _| {
                        kinds.extend((0..count).map(|_| kind));
                    })
                    .expect("all are replies");
                assert!(replies.held.capacity() <= 16 << 10, "{size}");
            }
            assert_eq!(kinds, [Kind::Value; 3], "{size}");
        }
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for bad in [
            &b"?\r\n"[..],
            b"+a\n",
            b"\r\n",
            b"$x\r\n",
            b"$-2\r\n",
            b"$99999999999999999999999999\r\n",
            b"$1\r\nabc",
            b"$1\r\na\r\n$1\r\nbcd",
            b"$\r\n",
            b"$-\r\n",
            b"$-12\r\n",
            b"$1x\r\n",
            b"$1\n",
            b"*x\r\n",
            b"OK\r\n",
        ] {
            assert!(read(&[bad]).is_err(), "{:?}", String::from_utf8_lossy(bad));
        }
    }
}
