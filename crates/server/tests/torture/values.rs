//! What a key holds in the model, and what of it a server may show.
//!
//! A type of values costs a variant of [`Data`] and a row of [`KINDS`].

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::support::Value;
use crate::torture::streams::{self, Stream};

/// A moment that lies between two times, in Unix milliseconds: what happened there was sent after one and
/// answered before the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) least: u64,
    pub(crate) most: u64,
}

impl Span {
    /// One that is known.
    pub(crate) fn exactly(ms: u64) -> Span {
        Span {
            least: ms,
            most: ms,
        }
    }

    /// So much later.
    pub(crate) fn after(self, ms: u64) -> Span {
        Span {
            least: self.least.saturating_add(ms),
            most: self.most.saturating_add(ms),
        }
    }
}

/// A value. Cheap to copy: changes copy on write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    String(Arc<Vec<u8>>),
    Hash(Arc<Fields>),
    Set(Arc<Members>),
    SortedSet(Arc<Scores>),
    List(Arc<Elements>),
    Stream(Arc<Stream>),
}

/// Fields and their values.
pub(crate) type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

/// Members of a set.
pub(crate) type Members = BTreeSet<Vec<u8>>;

/// Members of a sorted set, and twice their scores.
pub(crate) type Scores = BTreeMap<Vec<u8>, i64>;

/// The text of a score that is so many halves.
pub(crate) fn text_of_halves(halves: i64) -> String {
    let sign = if halves < 0 { "-" } else { "" };
    let (whole, half) = (halves.abs() / 2, halves % 2 != 0);
    format!("{sign}{whole}{}", if half { ".5" } else { "" })
}

/// Twice the score that a reply is, if it is one of the model.
pub(crate) fn halves_of(reply: &Value) -> Option<i64> {
    let score = match reply {
        Value::Double(score) => *score,
        other => str::from_utf8(other.bytes()?).ok()?.parse().ok()?,
    };
    let halves = score * 2.0;
    (halves.fract() == 0.0 && halves.abs() < 1e17).then_some(halves as i64)
}

/// The members of a reply behind their scores, in its order: in turn, or as pairs.
pub(crate) fn scored_of(reply: &Value) -> Option<Vec<(i64, Vec<u8>)>> {
    let Value::Array(words) = reply else {
        return None;
    };
    let words = words.iter().flat_map(|word| match word {
        Value::Array(pair) => &pair[..],
        word => std::slice::from_ref(word),
    });
    let words: Vec<&Value> = words.collect();
    let pairs = words.chunks(2).map(|pair| match pair {
        [member, score] => Some((halves_of(score)?, member.bytes()?.to_vec())),
        _ => None,
    });
    pairs.collect()
}

/// The scores that a reply tells, in order, each member once.
pub(crate) fn scores_of(reply: &Value) -> Option<Scores> {
    let pairs = scored_of(reply).filter(|pairs| pairs.is_sorted())?;
    let count = pairs.len();
    let scores: Scores = pairs
        .into_iter()
        .map(|(score, member)| (member, score))
        .collect();
    (scores.len() == count).then_some(scores)
}

/// Elements of a list.
pub(crate) type Elements = VecDeque<Vec<u8>>;

impl Data {
    pub(crate) fn string(bytes: Vec<u8>) -> Data {
        Data::String(Arc::new(bytes))
    }

    /// What a message says of it.
    pub(crate) fn summary(&self) -> String {
        match self {
            Data::String(bytes) => {
                let start: &[u8] = &bytes[..bytes.len().min(16)];
                format!(
                    "string of {} bytes, {} (crc {:08x})",
                    bytes.len(),
                    start.escape_ascii(),
                    sum(bytes)
                )
            }
            Data::Hash(fields) => {
                let bytes: Vec<u8> = fields
                    .iter()
                    .flat_map(|(field, value)| [&field[..], b"=", value, b";"].concat())
                    .collect();
                format!(
                    "hash of {} fields, {} bytes (crc {:08x})",
                    fields.len(),
                    bytes.len(),
                    sum(&bytes)
                )
            }
            Data::Set(members) => {
                let bytes: Vec<u8> = members
                    .iter()
                    .flat_map(|member| [member, &b";"[..]].concat())
                    .collect();
                format!("set of {} members (crc {:08x})", members.len(), sum(&bytes))
            }
            Data::SortedSet(scores) => {
                let bytes: Vec<u8> = scores
                    .iter()
                    .flat_map(|(member, score)| {
                        [&member[..], format!("={score};").as_bytes()].concat()
                    })
                    .collect();
                format!(
                    "sorted set of {} members (crc {:08x})",
                    scores.len(),
                    sum(&bytes)
                )
            }
            Data::List(elements) => {
                let bytes: Vec<u8> = elements
                    .iter()
                    .flat_map(|element| [element, &b";"[..]].concat())
                    .collect();
                let (count, sum) = (elements.len(), sum(&bytes));
                format!("list of {count} elements (crc {sum:08x})")
            }
            Data::Stream(stream) => {
                let sum = sum(format!("{stream:?}").as_bytes());
                format!("{} (crc {sum:08x})", stream.summary())
            }
        }
    }

    /// Whether a server that has this may show that. IDs that stand for others are any.
    fn may_show(&self, found: &Data) -> bool {
        match (self, found) {
            (Data::Stream(stream), Data::Stream(found)) => stream.may_show(found),
            _ => self == found,
        }
    }

    /// The value that DUMP gives: idempotent IDs of streams are not in it.
    pub(crate) fn in_payload(&self) -> Data {
        let mut data = self.clone();
        if let Data::Stream(stream) = &mut data
            && stream.idempotence.is_some()
        {
            Arc::make_mut(stream).idempotence = None;
        }
        data
    }

    /// What TYPE answers.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Data::String(_) => "string",
            Data::Hash(_) => "hash",
            Data::Set(_) => "set",
            Data::SortedSet(_) => "zset",
            Data::List(_) => "list",
            Data::Stream(_) => "stream",
        }
    }
}

/// A sum that tells values apart in messages.
fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(7, |sum: u32, &byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    })
}

/// How a type is read back.
pub(crate) struct Kind {
    /// What TYPE answers.
    pub(crate) name: &'static str,
    /// The request that reads all of a value, with `KEY` in the place of the key.
    pub(crate) read: &'static [&'static str],
    /// The value that its reply is.
    pub(crate) decode: fn(Value) -> Option<Data>,
}

/// All types.
pub(crate) const KINDS: &[Kind] = &[
    Kind {
        name: "string",
        read: &["GET", "KEY"],
        decode: |reply| match reply {
            Value::Bulk(bytes) => Some(Data::string(bytes)),
            _ => None,
        },
    },
    Kind {
        name: "hash",
        read: &["HGETALL", "KEY"],
        decode: |reply| {
            let fields = fields_of(&reply).filter(|fields| !fields.is_empty())?;
            Some(Data::Hash(Arc::new(fields)))
        },
    },
    Kind {
        name: "set",
        read: &["SMEMBERS", "KEY"],
        decode: |reply| {
            let members = members_of(&reply).filter(|members| !members.is_empty())?;
            Some(Data::Set(Arc::new(members)))
        },
    },
    Kind {
        name: "zset",
        read: &["ZRANGE", "KEY", "0", "-1", "WITHSCORES"],
        decode: |reply| {
            let scores = scores_of(&reply).filter(|scores| !scores.is_empty())?;
            Some(Data::SortedSet(Arc::new(scores)))
        },
    },
    Kind {
        name: "list",
        read: &["LRANGE", "KEY", "0", "-1"],
        decode: |reply| {
            let Value::Array(words) = reply else {
                return None;
            };
            let elements = words.iter().map(|word| Some(word.bytes()?.to_vec()));
            let elements: Option<Elements> = elements.collect();
            let elements = elements.filter(|elements| !elements.is_empty())?;
            Some(Data::List(Arc::new(elements)))
        },
    },
    Kind {
        name: "stream",
        read: &["XINFO", "STREAM", "KEY", "FULL", "COUNT", "0"],
        decode: |reply| {
            let stream = streams::decode(&reply);
            let stream = stream.inspect_err(|problem| println!("a stream is wrong: {problem}"));
            Some(Data::Stream(Arc::new(stream.ok()?)))
        },
    },
];

/// The members that a reply tells, each once.
pub(crate) fn members_of(reply: &Value) -> Option<Members> {
    let (Value::Set(words) | Value::Array(words)) = reply else {
        return None;
    };
    let members = words.iter().map(|word| Some(word.bytes()?.to_vec()));
    let members: Option<Members> = members.collect();
    members.filter(|members| members.len() == words.len())
}

/// The fields that a reply tells in turn with their values, each once.
pub(crate) fn fields_of(reply: &Value) -> Option<Fields> {
    let pairs: Vec<(&Value, &Value)> = match reply {
        Value::Map(pairs) => pairs.iter().map(|(field, value)| (field, value)).collect(),
        Value::Array(words) if words.len() % 2 == 0 => {
            words.chunks(2).map(|pair| (&pair[0], &pair[1])).collect()
        }
        _ => return None,
    };
    let word = |value: &Value| value.bytes().map(<[u8]>::to_vec);
    let count = pairs.len();
    let fields: Option<Fields> = pairs
        .into_iter()
        .map(|(field, value)| Some((word(field)?, word(value)?)))
        .collect();
    fields.filter(|fields| fields.len() == count)
}

/// A key's value in the model. An expiry is the moment from which on the key is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) data: Data,
    pub(crate) expiry: Option<Span>,
}

/// A key: its database and its name.
pub(crate) type Key = (u16, Vec<u8>);

/// Keys and what they hold.
pub(crate) type Keys = HashMap<Key, Entry>;

/// How long a command may run behind the moment that it takes for now.
pub(crate) const SLACK_MS: u64 = 200;

/// Whether a server that was asked during `asked` may have shown `found` for a key that holds `entry`. What
/// was found has exact expiries.
pub(crate) fn may_be(entry: Option<&Entry>, found: Option<&Entry>, asked: Span) -> bool {
    let is_over = |expiry: Span| expiry.least <= asked.most;
    match (entry, found) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some(entry), None) => entry.expiry.is_some_and(is_over),
        (Some(entry), Some(found)) => {
            let is_past = |expiry: Span| expiry.most.saturating_add(SLACK_MS) < asked.least;
            if entry.expiry.is_some_and(is_past) {
                return false;
            }
            let expiries = match (entry.expiry, found.expiry) {
                (None, None) => true,
                (Some(span), Some(at)) => span.least <= at.least && at.least <= span.most,
                _ => false,
            };
            expiries && entry.data.may_show(&found.data)
        }
    }
}

/// A key's contents for a message.
pub(crate) fn describe(entry: Option<&Entry>) -> String {
    match entry {
        None => "nothing".to_owned(),
        Some(Entry { data, expiry: None }) => data.summary(),
        Some(Entry {
            data,
            expiry: Some(at),
        }) => format!("{} until {}..{}", data.summary(), at.least, at.most),
    }
}

/// Whether two states of a watched key are one to WATCH: of a stream only entries count, as with
/// redis-server.
pub(crate) fn is_same_to_watch(one: Option<&Entry>, other: Option<&Entry>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            let is_same = match (&one.data, &other.data) {
                (Data::Stream(one), Data::Stream(other)) => one.entries == other.entries,
                (one, other) => one == other,
            };
            is_same && one.expiry == other.expiry
        }
        (one, other) => one == other,
    }
}
