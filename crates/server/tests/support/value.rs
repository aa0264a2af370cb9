//! Decoded replies of RESP2 and RESP3, and the strict decoder that produces them.
//!
//! Invariants:
//! 1. Nothing is normalised away: `$-1`, `*-1` and `_` decode to three different values, so that a server
//!    which mixes the protocols is caught.
//! 2. Numbers are canonical: a sign, a leading zero or a space where the protocol has none is a decoding
//!    error.

use std::fmt;

/// The protocol version that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Proto {
    Resp2,
    Resp3,
}

impl Proto {
    /// The number that `HELLO` takes.
    pub(crate) fn number(self) -> u8 {
        match self {
            Proto::Resp2 => 2,
            Proto::Resp3 => 3,
        }
    }
}

/// One reply as it stood on the wire.
#[derive(Clone, PartialEq)]
pub(crate) enum Value {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Int(i64),
    Bulk(Vec<u8>),
    /// `$-1`, RESP2 only.
    NullBulk,
    /// `*-1`, RESP2 only.
    NullArray,
    /// `_`, RESP3 only.
    Null,
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Set(Vec<Value>),
    Push(Vec<Value>),
    Double(f64),
    Bool(bool),
    BigNumber(Vec<u8>),
    Verbatim {
        format: [u8; 3],
        text: Vec<u8>,
    },
}

/// For the messages of failed assertions: strings as text, not as numbers.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Value::Simple(bytes) => write!(f, "+{:?}", text(bytes)),
            Value::Error(bytes) => write!(f, "-{:?}", text(bytes)),
            Value::Bulk(bytes) => write!(f, "{:?}", text(bytes)),
            Value::Verbatim {
                format,
                text: bytes,
            } => write!(f, "{}{:?}", text(format), text(bytes)),
            Value::BigNumber(bytes) => write!(f, "({})", text(bytes)),
            Value::Int(number) => write!(f, "{number}"),
            Value::Double(number) => write!(f, "{number:?}"),
            Value::Bool(truth) => write!(f, "{truth}"),
            Value::NullBulk => f.write_str("$-1"),
            Value::NullArray => f.write_str("*-1"),
            Value::Null => f.write_str("_"),
            Value::Array(items) => f.debug_list().entries(items).finish(),
            Value::Set(items) => f.debug_set().entries(items).finish(),
            Value::Push(items) => f.debug_tuple("Push").field(items).finish(),
            Value::Map(pairs) => f
                .debug_map()
                .entries(pairs.iter().map(|(key, value)| (key, value)))
                .finish(),
        }
    }
}

pub(crate) fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

pub(crate) fn bulk(bytes: impl AsRef<[u8]>) -> Value {
    Value::Bulk(bytes.as_ref().to_vec())
}

/// The number of an integer reply.
pub(crate) fn integer(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        other => panic!("not an integer: {other:?}"),
    }
}

/// The items of an array or set.
pub(crate) fn items(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) | Value::Set(items) => items,
        other => panic!("neither an array nor a set: {other:?}"),
    }
}

/// The items of an array or set as texts.
pub(crate) fn texts(value: Value) -> Vec<String> {
    items(value).iter().map(Value::text).collect()
}

impl Value {
    /// The bytes of a string reply of any kind; `None` for everything else.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Simple(bytes) | Value::Error(bytes) | Value::Bulk(bytes) => Some(bytes),
            Value::BigNumber(bytes) | Value::Verbatim { text: bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// The reply as text for a message or a pattern, with bytes that are not UTF-8 replaced.
    pub(crate) fn text(&self) -> String {
        match (self, self.bytes()) {
            (_, Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            (Value::Int(number), _) => number.to_string(),
            (other, _) => format!("{other:?}"),
        }
    }

    /// True where this value, or one inside it, exists in RESP3 only.
    pub(crate) fn is_resp3_only(&self) -> bool {
        match self {
            Value::Simple(_) | Value::Error(_) | Value::Int(_) | Value::Bulk(_) => false,
            Value::NullBulk | Value::NullArray => false,
            Value::Array(items) => items.iter().any(Value::is_resp3_only),
            _ => true,
        }
    }

    /// True where this value, or one inside it, is one of the two nulls that RESP3 replaced.
    pub(crate) fn is_resp2_only(&self) -> bool {
        match self {
            Value::NullBulk | Value::NullArray => true,
            Value::Array(items) | Value::Set(items) | Value::Push(items) => {
                items.iter().any(Value::is_resp2_only)
            }
            Value::Map(pairs) => pairs
                .iter()
                .any(|(key, value)| key.is_resp2_only() || value.is_resp2_only()),
            _ => false,
        }
    }
}

/// Decodes the first reply in `bytes`.
///
/// Returns the reply and the number of bytes it took, or `None` while it is incomplete.
///
/// # Errors
/// Says what is wrong when the bytes cannot be the beginning of a reply.
pub(crate) fn parse_value(bytes: &[u8]) -> Result<Option<(Value, usize)>, String> {
    let mut cursor = Cursor { bytes, at: 0 };
    match cursor.value(0) {
        Ok(value) => Ok(Some((value, cursor.at))),
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::Malformed(why)) => Err(why),
    }
}

/// Deeper nesting than this is a broken reply, not a reply.
const DEPTH_MAX: usize = 32;

enum Stop {
    Incomplete,
    Malformed(String),
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn value(&mut self, depth: usize) -> Result<Value, Stop> {
        if depth > DEPTH_MAX {
            return malformed("nested too deeply");
        }
        let kind = *self.bytes.get(self.at).ok_or(Stop::Incomplete)?;
        self.at += 1;
        let line = self.line()?;
        match kind {
            b'+' => Ok(Value::Simple(line.to_vec())),
            b'-' => Ok(Value::Error(line.to_vec())),
            b':' => Ok(Value::Int(parse_integer(line)?)),
            b'$' if line == b"-1" => Ok(Value::NullBulk),
            b'$' => Ok(Value::Bulk(self.payload(length(line)?)?.to_vec())),
            b'*' if line == b"-1" => Ok(Value::NullArray),
            b'*' => Ok(Value::Array(self.items(length(line)?, depth)?)),
            b'_' if line.is_empty() => Ok(Value::Null),
            b'#' if line == b"t" || line == b"f" => Ok(Value::Bool(line == b"t")),
            b',' => Ok(Value::Double(double(line)?)),
            b'(' => Ok(Value::BigNumber(line.to_vec())),
            b'=' => self.verbatim(length(line)?),
            b'~' => Ok(Value::Set(self.items(length(line)?, depth)?)),
            b'>' => Ok(Value::Push(self.items(length(line)?, depth)?)),
            b'%' => {
                let flat = self.items(length(line)? * 2, depth)?;
                let (keys, values): (Vec<_>, Vec<_>) = flat
                    .into_iter()
                    .enumerate()
                    .partition(|(index, _)| index % 2 == 0);
                let values = values.into_iter().map(|(_, value)| value);
                Ok(Value::Map(
                    keys.into_iter().map(|(_, key)| key).zip(values).collect(),
                ))
            }
            _ => malformed(&format!(
                "unexpected type byte {:?} before {:?}",
                kind as char,
                String::from_utf8_lossy(line)
            )),
        }
    }

    /// The rest of the line, and steps over its end. A carriage return inside a line is malformed.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.bytes[self.at..];
        let end = rest
            .iter()
            .position(|&byte| byte == b'\r' || byte == b'\n')
            .ok_or(Stop::Incomplete)?;
        if rest[end] == b'\n' {
            return malformed("a line ends without a carriage return");
        }
        match rest.get(end + 1) {
            None => Err(Stop::Incomplete),
            Some(b'\n') => {
                self.at += end + 2;
                Ok(&rest[..end])
            }
            Some(_) => malformed("a carriage return without a line feed"),
        }
    }

    /// `length` bytes and the line end behind them.
    fn payload(&mut self, length: usize) -> Result<&'a [u8], Stop> {
        let rest = &self.bytes[self.at..];
        if rest.len() < length + 2 {
            return Err(Stop::Incomplete);
        }
        if &rest[length..length + 2] != b"\r\n" {
            return malformed("a bulk string is longer than its length says");
        }
        self.at += length + 2;
        Ok(&rest[..length])
    }

    fn items(&mut self, count: usize, depth: usize) -> Result<Vec<Value>, Stop> {
        (0..count).map(|_| self.value(depth + 1)).collect()
    }

    fn verbatim(&mut self, length: usize) -> Result<Value, Stop> {
        let payload = self.payload(length)?;
        match payload {
            [a, b, c, b':', text @ ..] => Ok(Value::Verbatim {
                format: [*a, *b, *c],
                text: text.to_vec(),
            }),
            _ => malformed("a verbatim string without its format"),
        }
    }
}

fn malformed<T>(why: &str) -> Result<T, Stop> {
    Err(Stop::Malformed(why.to_owned()))
}

fn parse_integer(line: &[u8]) -> Result<i64, Stop> {
    let text = std::str::from_utf8(line).unwrap_or_default();
    match text.parse::<i64>() {
        Ok(number) if number.to_string() == text => Ok(number),
        _ => malformed(&format!(
            "not an integer: {:?}",
            String::from_utf8_lossy(line)
        )),
    }
}

fn length(line: &[u8]) -> Result<usize, Stop> {
    match parse_integer(line)? {
        number @ 0..=0x4000_0000 => Ok(number as usize),
        number => malformed(&format!("not a length: {number}")),
    }
}

fn double(line: &[u8]) -> Result<f64, Stop> {
    match line {
        b"inf" => Ok(f64::INFINITY),
        b"-inf" => Ok(f64::NEG_INFINITY),
        b"nan" => Ok(f64::NAN),
        _ => match std::str::from_utf8(line).unwrap_or_default().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => malformed(&format!(
                "not a double: {:?}",
                String::from_utf8_lossy(line)
            )),
        },
    }
}
