//! Values of an export: which command reads one, and how it is written.

use std::io::{self, Write};

use rdb::packed::ListpackBuilder;
use rdb::{Attributes, Collection, Element, Payload, StreamValue, Writer};
use resp::Value;
use resp::number::{parse_f64, parse_i64};

use crate::failure::Result;
use crate::limits::{EXPORT_FIELD_BYTES, EXPORT_PACKED_BYTES, EXPORT_PACKED_FIELDS, EXPORT_TIMES};
use crate::session::Session;

/// How the value of a key is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    String,
    Hash,
    Set,
    SortedSet,
    List,
    Stream,
}

impl Form {
    /// The request that reads all of the value of a key.
    pub(super) fn request(self, key: &[u8]) -> Vec<&[u8]> {
        match self {
            Form::String => vec![b"GET", key],
            Form::Hash => vec![b"HGETALL", key],
            Form::Set => vec![b"SMEMBERS", key],
            Form::SortedSet => vec![b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"],
            Form::List => vec![b"LRANGE", key, b"0", b"-1"],
            // No other has groups, and the times and IDs of all that is pending, at one point in time.
            Form::Stream => vec![b"DUMP", key],
        }
    }
}

/// What a key turned out to be.
pub(super) enum Readable {
    /// Its form, and about how many bytes it has.
    Value(Form, usize),
    Unsupported,
    /// The server answered something else.
    Unexpected(Value),
}

/// Finds out the forms of keys, in their order. A key that is gone is an empty string.
pub(super) fn forms(session: &mut Session, keys: &[Vec<u8>]) -> Result<Vec<Readable>> {
    let request = |key| vec![&b"STRLEN"[..], key];
    let requests: Vec<Vec<&[u8]>> = keys.iter().map(|key| request(key)).collect();
    let lengths = session.ask_all(&requests)?;
    let mut others = Vec::new();
    let mut found = Vec::with_capacity(keys.len());
    for (key, length) in keys.iter().zip(lengths) {
        found.push(match length {
            Value::Integer(length) => {
                Readable::Value(Form::String, usize::try_from(length).unwrap_or(0))
            }
            Value::Error(text) if text.starts_with(b"WRONGTYPE") => {
                others.push(vec![&b"HLEN"[..], key]);
                others.push(vec![&b"SCARD"[..], key]);
                others.push(vec![&b"ZCARD"[..], key]);
                others.push(vec![&b"LLEN"[..], key]);
                others.push(vec![&b"XLEN"[..], key]);
                others.push(vec![&b"MEMORY"[..], b"USAGE", key]);
                Readable::Unsupported
            }
            other => Readable::Unexpected(other),
        });
    }
    if others.is_empty() {
        return Ok(found);
    }
    let mut replies = session.ask_all(&others)?.into_iter();
    for found in &mut found {
        let Readable::Unsupported = found else {
            continue;
        };
        let counts = [(); 5].map(|()| replies.next());
        let memory = replies.next();
        let forms = [
            Form::Hash,
            Form::Set,
            Form::SortedSet,
            Form::List,
            Form::Stream,
        ];
        let found_form = forms.into_iter().zip(counts).find_map(|its| match its {
            (form, Some(Value::Integer(items))) => Some((form, items)),
            _ => None,
        });
        let Some((form, items)) = found_form else {
            continue;
        };
        let bytes = match memory {
            Some(Value::Integer(bytes)) => bytes,
            // The server does not tell.
            _ => items.saturating_mul(EXPORT_FIELD_BYTES),
        };
        *found = Readable::Value(form, usize::try_from(bytes).unwrap_or(0));
    }
    Ok(found)
}

/// The members in the reply to SMEMBERS, or the elements in that to LRANGE.
///
/// # Errors
/// The reply has none; it is given back.
pub(super) fn members(reply: Value) -> std::result::Result<Vec<Vec<u8>>, Value> {
    let (Value::Set(members) | Value::Array(members)) = reply else {
        return Err(reply);
    };
    let member = |member| match member {
        Value::Bulk(member) => Ok(member),
        other => Err(other),
    };
    members.into_iter().map(member).collect()
}

/// Writes a set as redis-server does that has its default settings.
///
/// # Errors
/// Those of the writer.
pub(super) fn write_set<W: Write>(
    writer: &mut Writer<W>,
    key: &[u8],
    members: &[Vec<u8>],
    attributes: Attributes,
) -> io::Result<()> {
    if members.len() <= EXPORT_PACKED_FIELDS {
        let integers = members.iter().map(|member| parse_i64(member));
        if let Some(mut integers) = integers.collect::<Option<Vec<_>>>() {
            integers.sort_unstable();
            return writer.integers(key, &integers, attributes);
        }
    }
    writer.begin(key, Collection::Set, members.len() as u64, attributes)?;
    for member in members {
        writer.element(Element::String(member))?;
    }
    writer.end()
}

/// The members in the reply to ZRANGE, with their scores: in turn, or as pairs.
///
/// # Errors
/// The reply has none; it is given back.
pub(super) fn scores(reply: Value) -> std::result::Result<Vec<(Vec<u8>, f64)>, Value> {
    let Value::Array(words) = reply else {
        return Err(reply);
    };
    let mut words = words.into_iter().flat_map(|word| match word {
        Value::Array(pair) => pair,
        word => vec![word],
    });
    let mut scores = Vec::new();
    while let Some(member) = words.next() {
        let Value::Bulk(member) = member else {
            return Err(member);
        };
        let score = match words.next() {
            Some(Value::Double { value, .. }) => Some(value),
            Some(Value::Bulk(text)) => parse_f64(&text),
            _ => None,
        };
        scores.push((member, score.ok_or(Value::Null)?));
    }
    Ok(scores)
}

/// Writes a sorted set.
///
/// # Errors
/// Those of the writer.
pub(super) fn write_scores<W: Write>(
    writer: &mut Writer<W>,
    key: &[u8],
    scores: &[(Vec<u8>, f64)],
    attributes: Attributes,
) -> io::Result<()> {
    writer.begin(key, Collection::SortedSet, scores.len() as u64, attributes)?;
    for (member, score) in scores {
        let score = *score;
        writer.element(Element::Member { member, score })?;
    }
    writer.end()
}

/// Writes a list.
///
/// # Errors
/// Those of the writer.
pub(super) fn write_list<W: Write>(
    writer: &mut Writer<W>,
    key: &[u8],
    elements: &[Vec<u8>],
    attributes: Attributes,
) -> io::Result<()> {
    writer.begin(key, Collection::List, elements.len() as u64, attributes)?;
    for element in elements {
        writer.element(Element::String(element))?;
    }
    writer.end()
}

/// Writes the stream in a payload.
///
/// # Errors
/// Those of the writer; or the payload is not understood.
pub(super) fn write_stream<W: Write>(
    writer: &mut Writer<W>,
    key: &[u8],
    payload: &[u8],
    attributes: Attributes,
) -> std::result::Result<io::Result<()>, String> {
    let payload = Payload::check(payload)
        .ok_or("what DUMP gave is damaged, or of a version that is not known")?;
    let stream = StreamValue::read(payload);
    let stream = stream.map_err(|error| format!("what DUMP gave is damaged: {error}"))?;
    Ok(writer.stream(key, &stream, attributes))
}

/// The fields of a hash, until they are written.
#[derive(Default)]
pub(super) struct Fields {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    /// When each expires, if that was asked: -1 for never, -2 if it has.
    times: Vec<i64>,
    listpack: ListpackBuilder,
}

impl Fields {
    /// Takes the fields from the reply to HGETALL: a map, or fields and values in turn. How many there are.
    ///
    /// # Errors
    /// The reply is neither; it is given back.
    pub(super) fn take(&mut self, reply: Value) -> std::result::Result<usize, Value> {
        self.pairs.clear();
        self.times.clear();
        let pairs: Vec<(Value, Value)> = match reply {
            Value::Map(pairs) => pairs,
            Value::Array(words) if words.len() % 2 == 0 => {
                let mut words = words.into_iter();
                std::iter::from_fn(|| Some((words.next()?, words.next()?))).collect()
            }
            other => return Err(other),
        };
        for pair in pairs {
            match pair {
                (Value::Bulk(field), Value::Bulk(value)) => self.pairs.push((field, value)),
                (Value::Bulk(_), other) | (other, _) => return Err(other),
            }
        }
        Ok(self.pairs.len())
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Requests that ask when the fields expire.
    pub(super) fn time_requests(&mut self, key: &[u8]) -> Vec<Vec<Vec<u8>>> {
        self.times.resize(self.pairs.len(), -1);
        let some = self.pairs.chunks(EXPORT_TIMES);
        let request = |pairs: &[(Vec<u8>, Vec<u8>)]| {
            let count = pairs.len().to_string();
            let head = [&b"HPEXPIRETIME"[..], key, b"FIELDS", count.as_bytes()];
            let fields = pairs.iter().map(|(field, _)| &field[..]);
            head.into_iter().chain(fields).map(<[u8]>::to_vec).collect()
        };
        some.map(request).collect()
    }

    /// Takes the reply to one of those requests.
    ///
    /// # Errors
    /// It is no answer; it is given back.
    pub(super) fn note_times(
        &mut self,
        number: usize,
        reply: Value,
    ) -> std::result::Result<(), Value> {
        let Value::Array(replies) = reply else {
            return Err(reply);
        };
        let times = self.times.iter_mut().skip(number * EXPORT_TIMES);
        for (time, reply) in times.zip(replies) {
            let Value::Integer(its) = reply else {
                return Err(reply);
            };
            *time = its;
        }
        Ok(())
    }

    /// Leaves out the fields that have expired since they were read.
    pub(super) fn leave_out_expired(&mut self) {
        let mut times = self.times.iter();
        self.pairs.retain(|_| times.next() != Some(&-2));
        self.times.retain(|time| *time != -2);
    }

    /// Writes a hash as redis-server does that has its default settings.
    ///
    /// # Errors
    /// Those of the writer.
    pub(super) fn write<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        key: &[u8],
        attributes: Attributes,
    ) -> io::Result<()> {
        let times = self
            .times
            .iter()
            .filter_map(|&time| u64::try_from(time).ok());
        if let Some(first) = times.min() {
            writer.begin_timed(key, self.pairs.len() as u64, first, attributes)?;
            for ((field, value), &time) in self.pairs.iter().zip(&self.times) {
                writer.element(Element::Field {
                    field,
                    value,
                    expiry_ms: u64::try_from(time).ok(),
                })?;
            }
            return writer.end();
        }
        let is_short = |text: &[u8]| text.len() <= EXPORT_PACKED_BYTES;
        let is_packed = self.pairs.len() <= EXPORT_PACKED_FIELDS
            && (self.pairs.iter()).all(|(field, value)| is_short(field) && is_short(value));
        if is_packed {
            self.listpack.clear();
            for (field, value) in &self.pairs {
                self.listpack.push(field);
                self.listpack.push(value);
            }
            return writer.hash(key, &mut self.listpack, attributes);
        }
        writer.begin(key, Collection::Hash, self.pairs.len() as u64, attributes)?;
        for (field, value) in &self.pairs {
            writer.element(Element::Field {
                field,
                value,
                expiry_ms: None,
            })?;
        }
        writer.end()
    }
}
