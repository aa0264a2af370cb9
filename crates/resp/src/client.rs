//! The protocol from the client's end: requests written, replies read.
//!
//! Here live the values of both protocol versions, for programs that look at replies: the command
//! line client, the load generator and the tests. Connections are theirs, and a server needs none
//! of this.
//!
//! A reply comes whole or not at all. Whoever reads a stream asks a [`ReplyScanner`], which looks
//! at every byte once, how long the next reply is, and takes it apart with [`parse_value`] only
//! then.
//!
//! Invariants:
//! 1. A count or length that a server claims reserves no memory.
//! 2. Values nest at most [`MAX_DEPTH`] deep, so that no reply exhausts the stack.
//!
//! The "streamed" strings and aggregates of RESP3 (`$?`, `*?`), which no server sends, are errors
//! here.

use std::fmt;

use crate::number::{INTEGER_TEXT_LEN, format_u64, parse_f64, parse_i64};

/// How deep values may nest.
pub const MAX_DEPTH: usize = 128;

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `+`: a status.
    Simple(Vec<u8>),
    /// `-`, or `!` of RESP3: an error, starting with its code.
    Error(Vec<u8>),
    /// `:`
    Integer(i64),
    /// `$`: bytes.
    Bulk(Vec<u8>),
    /// `_`, and `$-1` and `*-1` of RESP2.
    Null,
    /// `*`
    Array(Vec<Value>),
    /// `%`: pairs, in the order they came in.
    Map(Vec<(Value, Value)>),
    /// `~`: the members, in the order they came in.
    Set(Vec<Value>),
    /// `>`: a message that answers no request.
    Push(Vec<Value>),
    /// `,`: a double, and the text that the server wrote it as.
    Double {
        /// The number, which may be none.
        value: f64,
        /// What people are shown.
        text: Vec<u8>,
    },
    /// `#`
    Boolean(bool),
    /// `=`: a text for people and its format.
    Verbatim {
        /// `txt` or `mkd`.
        format: [u8; 3],
        /// The text.
        text: Vec<u8>,
    },
    /// `(`: the digits of an integer of any size.
    BigNumber(Vec<u8>),
    /// `|`: a reply and what it is annotated with.
    Attribute {
        /// The annotations.
        attributes: Vec<(Value, Value)>,
        /// The reply itself.
        value: Box<Value>,
    },
}

/// Bytes that are no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// No type starts with this byte.
    UnknownType(u8),
    /// The text of a number, a truth value, a length or a count is malformed.
    InvalidLine,
    /// A payload is not followed by a line end, or is no verbatim string where it has to be one.
    InvalidPayload,
    /// Values nest deeper than [`MAX_DEPTH`].
    TooDeep,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplyError::UnknownType(byte) => {
                write!(f, "unknown reply type {:?}", char::from(*byte))
            }
            ReplyError::InvalidLine => f.write_str("malformed line in reply"),
            ReplyError::InvalidPayload => f.write_str("malformed payload in reply"),
            ReplyError::TooDeep => f.write_str("reply nested too deeply"),
        }
    }
}

impl std::error::Error for ReplyError {}

/// Appends a request: its arguments as bulk strings, the command's name first.
pub fn write_request(out: &mut Vec<u8>, args: &[&[u8]]) {
    write_header(out, b'*', args.len());
    for arg in args {
        write_header(out, b'$', arg.len());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

fn write_header(out: &mut Vec<u8>, kind: u8, value: usize) {
    out.push(kind);
    out.extend_from_slice(format_u64(value as u64, &mut [0; INTEGER_TEXT_LEN]));
    out.extend_from_slice(b"\r\n");
}

/// The first part of a value: all of a scalar, or the header of an aggregate.
enum Token<'a> {
    Simple(&'a [u8]),
    Error(&'a [u8]),
    Integer(i64),
    Bulk(&'a [u8]),
    Null,
    Double(f64, &'a [u8]),
    Boolean(bool),
    Verbatim {
        format: [u8; 3],
        text: &'a [u8],
    },
    BigNumber(&'a [u8]),
    /// `*`, `~`, `>`: the kind, and how many values follow.
    Values(u8, usize),
    /// `%`, `|`: the kind, and how many pairs follow.
    Pairs(u8, usize),
}

/// Reads the token that starts at `input[at]`, and where it ends. `None` if it is not all there.
fn read_token(input: &[u8], at: usize) -> Result<Option<(Token<'_>, usize)>, ReplyError> {
    let Some((&kind, rest)) = input.get(at..).and_then(<[u8]>::split_first) else {
        return Ok(None);
    };
    if !b"+-:$_*%~>,#=!(|".contains(&kind) {
        return Err(ReplyError::UnknownType(kind));
    }
    let Some(line_len) = rest.iter().position(|&byte| byte == b'\n') else {
        return Ok(None);
    };
    let [line @ .., b'\r'] = &rest[..line_len] else {
        return Err(ReplyError::InvalidLine);
    };
    let end = at + 1 + line_len + 1;
    let token = match kind {
        b'+' => Token::Simple(line),
        b'-' => Token::Error(line),
        b'(' => Token::BigNumber(line),
        b':' => Token::Integer(parse_i64(line).ok_or(ReplyError::InvalidLine)?),
        b',' => Token::Double(parse_double(line).ok_or(ReplyError::InvalidLine)?, line),
        b'_' if line.is_empty() => Token::Null,
        b'#' if line == b"t" => Token::Boolean(true),
        b'#' if line == b"f" => Token::Boolean(false),
        b'_' | b'#' => return Err(ReplyError::InvalidLine),
        b'$' | b'*' if line == b"-1" => Token::Null,
        _ => {
            let count = parse_i64(line).and_then(|count| usize::try_from(count).ok());
            let count = count.ok_or(ReplyError::InvalidLine)?;
            return match kind {
                b'%' | b'|' => Ok(Some((Token::Pairs(kind, count), end))),
                b'*' | b'~' | b'>' => Ok(Some((Token::Values(kind, count), end))),
                _ => read_payload(kind, input, end, count),
            };
        }
    };
    Ok(Some((token, end)))
}

/// Reads the payload of `len` bytes at `input[start]` and the line end behind it.
fn read_payload(
    kind: u8,
    input: &[u8],
    start: usize,
    len: usize,
) -> Result<Option<(Token<'_>, usize)>, ReplyError> {
    let rest = &input[start..];
    if rest.len() < len.saturating_add(2) {
        return Ok(None);
    }
    let (payload, rest) = rest.split_at(len);
    if !rest.starts_with(b"\r\n") {
        return Err(ReplyError::InvalidPayload);
    }
    let token = match kind {
        b'$' => Token::Bulk(payload),
        b'!' => Token::Error(payload),
        _ => match payload {
            [a, b, c, b':', text @ ..] => Token::Verbatim {
                format: [*a, *b, *c],
                text,
            },
            _ => return Err(ReplyError::InvalidPayload),
        },
    };
    Ok(Some((token, start + len + 2)))
}

/// Unlike a request, a reply may hold the double that is no number.
fn parse_double(text: &[u8]) -> Option<f64> {
    if text.eq_ignore_ascii_case(b"nan") || text.eq_ignore_ascii_case(b"-nan") {
        return Some(f64::NAN);
    }
    parse_f64(text)
}

/// Takes the reply apart that `input` starts with, and says how many bytes it takes up. `None` if
/// it is not all there.
///
/// # Errors
///
/// The bytes are no reply: what follows on the connection is lost.
pub fn parse_value(input: &[u8]) -> Result<Option<(Value, usize)>, ReplyError> {
    let mut at = 0;
    let value = read_value(input, &mut at, 0)?;
    Ok(value.map(|value| (value, at)))
}

fn read_value(input: &[u8], at: &mut usize, depth: usize) -> Result<Option<Value>, ReplyError> {
    if depth > MAX_DEPTH {
        return Err(ReplyError::TooDeep);
    }
    let Some((token, end)) = read_token(input, *at)? else {
        return Ok(None);
    };
    *at = end;
    Ok(Some(match token {
        Token::Simple(text) => Value::Simple(text.to_vec()),
        Token::Error(text) => Value::Error(text.to_vec()),
        Token::Integer(value) => Value::Integer(value),
        Token::Bulk(bytes) => Value::Bulk(bytes.to_vec()),
        Token::Null => Value::Null,
        Token::Double(value, text) => Value::Double {
            value,
            text: text.to_vec(),
        },
        Token::Boolean(value) => Value::Boolean(value),
        Token::Verbatim { format, text } => Value::Verbatim {
            format,
            text: text.to_vec(),
        },
        Token::BigNumber(digits) => Value::BigNumber(digits.to_vec()),
        Token::Values(kind, count) => {
            let Some(values) = read_values(input, at, depth, count)? else {
                return Ok(None);
            };
            match kind {
                b'*' => Value::Array(values),
                b'~' => Value::Set(values),
                _ => Value::Push(values),
            }
        }
        Token::Pairs(kind, count) => {
            let Some(pairs) = read_pairs(input, at, depth, count)? else {
                return Ok(None);
            };
            if kind == b'%' {
                return Ok(Some(Value::Map(pairs)));
            }
            let Some(value) = read_value(input, at, depth + 1)? else {
                return Ok(None);
            };
            Value::Attribute {
                attributes: pairs,
                value: Box::new(value),
            }
        }
    }))
}

fn read_values(
    input: &[u8],
    at: &mut usize,
    depth: usize,
    count: usize,
) -> Result<Option<Vec<Value>>, ReplyError> {
    let mut values = Vec::new();
    for _ in 0..count {
        match read_value(input, at, depth + 1)? {
            Some(value) => values.push(value),
            None => return Ok(None),
        }
    }
    Ok(Some(values))
}

type Pairs = Vec<(Value, Value)>;

fn read_pairs(
    input: &[u8],
    at: &mut usize,
    depth: usize,
    count: usize,
) -> Result<Option<Pairs>, ReplyError> {
    let mut pairs = Vec::new();
    for _ in 0..count {
        let Some(key) = read_value(input, at, depth + 1)? else {
            return Ok(None);
        };
        let Some(value) = read_value(input, at, depth + 1)? else {
            return Ok(None);
        };
        pairs.push((key, value));
    }
    Ok(Some(pairs))
}

/// Finds the end of a reply that arrives in pieces, without looking at its complete parts again and
/// without allocation.
#[derive(Clone, Copy, Debug)]
pub struct ReplyScanner {
    /// Where the next token starts.
    at: usize,
    /// How many values have not begun yet. Nesting needs no stack: an aggregate owes its elements
    /// on top.
    missing: u64,
}

impl Default for ReplyScanner {
    fn default() -> Self {
        ReplyScanner { at: 0, missing: 1 }
    }
}

impl ReplyScanner {
    /// The length of the reply that `input` starts with, in bytes; then the scanner is ready for
    /// the next one. `None` if it is not all there: call again with the same reply, wherever it is
    /// then, and more of it.
    ///
    /// # Errors
    ///
    /// The bytes are no reply. How deep values nest is left to [`parse_value`].
    pub fn scan(&mut self, input: &[u8]) -> Result<Option<usize>, ReplyError> {
        while self.missing > 0 {
            let Some((token, end)) = read_token(input, self.at)? else {
                return Ok(None);
            };
            self.at = end;
            self.missing -= 1;
            let owed = match token {
                Token::Values(_, count) => count as u64,
                Token::Pairs(b'%', count) => (count as u64).saturating_mul(2),
                // The reply that is annotated comes behind the pairs.
                Token::Pairs(_, count) => (count as u64).saturating_mul(2).saturating_add(1),
                _ => 0,
            };
            self.missing = self.missing.saturating_add(owed);
        }
        let len = self.at;
        *self = ReplyScanner::default();
        Ok(Some(len))
    }
}

#[cfg(test)]
mod tests;
