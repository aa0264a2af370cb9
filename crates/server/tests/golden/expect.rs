//! What a script expects: the matching of expectations against replies. `notation.rs` reads and writes them.
//!
//! One expectation serves both protocols wherever RESP2 has a fixed form for a RESP3 type: a map is a flat
//! array there, a set or push an array, a double or verbatim string a bulk string, a boolean 1 or 0, and
//! `nil` its null. Under RESP3 the type itself is required.

use std::ops::RangeInclusive;

use regex_lite::Regex;

use crate::support::{Proto, Value};

/// What came back for one command.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Reply(Value),
    /// The answer to a `raw` command.
    Raw {
        bytes: Vec<u8>,
        closed: bool,
    },
    /// The server closed the connection instead of replying.
    Closed,
    /// No usable reply; the text says why. No expectation accepts it.
    Failed(String),
}

/// Which string type of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    Bulk,
    Simple,
    Error,
    Verbatim([u8; 3]),
}

/// What the bytes of a string have to be.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Any,
    Exact(Vec<u8>),
    /// Matches the whole string.
    Regex(Regex),
    /// Each expression matches at least one whole line.
    Lines(Vec<Regex>),
}

/// Which aggregate type of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Array,
    Set,
    Push,
}

/// How the elements of an aggregate are compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Order {
    /// `...`: elements beyond the expected ones are allowed (in order: behind them).
    pub(crate) open: bool,
    /// The elements may stand in any order.
    pub(crate) unordered: bool,
}

/// One expected reply, or one element of it.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    Any,
    Nil,
    NilArray,
    Int(RangeInclusive<i64>),
    Bool(bool),
    /// `None`: any double.
    Double(Option<f64>),
    BigNumber(Vec<u8>),
    Text {
        kind: TextKind,
        pattern: Pattern,
    },
    List {
        kind: ListKind,
        items: Vec<Expected>,
        order: Order,
    },
    Map {
        pairs: Vec<(Expected, Expected)>,
        order: Order,
    },
    Raw {
        bytes: Vec<u8>,
        closed: bool,
    },
    Closed,
}

impl Expected {
    /// True if a count of seconds or milliseconds must be one number. Below 0 are no times but answers: no
    /// key, no expiry.
    pub(crate) fn has_exact_time(&self) -> bool {
        match self {
            Expected::Int(range) => *range.start() >= 0 && range.start() == range.end(),
            Expected::List { items, .. } => items.iter().any(Expected::has_exact_time),
            _ => false,
        }
    }

    /// Whether `outcome` is what was expected on a connection that speaks `proto`.
    pub(crate) fn accepts(&self, outcome: &Outcome, proto: Proto) -> bool {
        match (self, outcome) {
            (_, Outcome::Reply(value)) => self.matches(value, proto),
            (Expected::Closed, Outcome::Closed) => true,
            (
                Expected::Raw { bytes, closed },
                Outcome::Raw {
                    bytes: got,
                    closed: got_closed,
                },
            ) => bytes == got && closed == got_closed,
            _ => false,
        }
    }

    fn matches(&self, value: &Value, proto: Proto) -> bool {
        let resp2 = proto == Proto::Resp2;
        match (self, value) {
            (Expected::Any, _) => true,
            (Expected::Nil, Value::NullBulk) | (Expected::NilArray, Value::NullArray) => resp2,
            (Expected::Nil | Expected::NilArray, Value::Null) => !resp2,
            (Expected::Int(range), Value::Int(number)) => range.contains(number),
            (Expected::Bool(expected), Value::Bool(got)) => !resp2 && expected == got,
            (Expected::Bool(expected), Value::Int(got)) => resp2 && i64::from(*expected) == *got,
            (Expected::Double(expected), Value::Double(got)) => {
                !resp2 && same_double(*expected, *got)
            }
            (Expected::Double(expected), Value::Bulk(got)) => {
                let number = std::str::from_utf8(got)
                    .ok()
                    .and_then(|text| text.parse().ok());
                resp2 && number.is_some_and(|number| same_double(*expected, number))
            }
            (Expected::BigNumber(expected), Value::BigNumber(got)) => !resp2 && expected == got,
            (Expected::BigNumber(expected), Value::Bulk(got)) => resp2 && expected == got,
            (Expected::Text { kind, pattern }, _) => matches_text(*kind, pattern, value, resp2),
            (Expected::List { kind, items, order }, _) => match elements(*kind, value, resp2) {
                Some(values) => match_all(items, &values, *order, |item, value| {
                    item.matches(value, proto)
                }),
                None => false,
            },
            (Expected::Map { pairs, order }, _) => match entries(value, resp2) {
                Some(entries) => {
                    match_all(pairs, &entries, *order, |(key, item), (got_key, got)| {
                        key.matches(got_key, proto) && item.matches(got, proto)
                    })
                }
                None => false,
            },
            _ => false,
        }
    }
}

fn same_double(expected: Option<f64>, got: f64) -> bool {
    expected.is_none_or(|expected| expected == got || expected.is_nan() && got.is_nan())
}

fn matches_text(kind: TextKind, pattern: &Pattern, value: &Value, resp2: bool) -> bool {
    match (kind, value) {
        (TextKind::Bulk, Value::Bulk(bytes))
        | (TextKind::Simple, Value::Simple(bytes))
        | (TextKind::Error, Value::Error(bytes)) => pattern.accepts(bytes),
        (TextKind::Verbatim(_), Value::Bulk(bytes)) => resp2 && pattern.accepts(bytes),
        (TextKind::Verbatim(expected), Value::Verbatim { format, text }) => {
            !resp2 && expected == *format && pattern.accepts(text)
        }
        _ => false,
    }
}

impl Pattern {
    fn accepts(&self, bytes: &[u8]) -> bool {
        match self {
            Pattern::Any => true,
            Pattern::Exact(expected) => expected == bytes,
            Pattern::Regex(regex) => regex.is_match(&String::from_utf8_lossy(bytes)),
            Pattern::Lines(regexes) => {
                let text = String::from_utf8_lossy(bytes);
                regexes
                    .iter()
                    .all(|regex| text.lines().any(|line| regex.is_match(line)))
            }
        }
    }
}

/// The elements of `value` where it is an aggregate of this kind.
fn elements(kind: ListKind, value: &Value, resp2: bool) -> Option<Vec<&Value>> {
    match (kind, value) {
        (ListKind::Set, Value::Set(items)) | (ListKind::Push, Value::Push(items)) => {
            (!resp2).then(|| items.iter().collect())
        }
        (ListKind::Array, Value::Array(items)) => Some(items.iter().collect()),
        (ListKind::Set | ListKind::Push, Value::Array(items)) => {
            resp2.then(|| items.iter().collect())
        }
        _ => None,
    }
}

/// The pairs of `value` where it is a map, or under RESP2 a flat array of pairs.
fn entries(value: &Value, resp2: bool) -> Option<Vec<(&Value, &Value)>> {
    match value {
        Value::Map(pairs) if !resp2 => {
            Some(pairs.iter().map(|(key, value)| (key, value)).collect())
        }
        Value::Array(items) if resp2 && items.len() % 2 == 0 => Some(
            items
                .chunks_exact(2)
                .map(|pair| (&pair[0], &pair[1]))
                .collect(),
        ),
        _ => None,
    }
}

/// Compares a sequence with the expected one as `order` says.
fn match_all<E, V>(expected: &[E], got: &[V], order: Order, same: impl Fn(&E, &V) -> bool) -> bool {
    if got.len() < expected.len() || (got.len() > expected.len() && !order.open) {
        return false;
    }
    if !order.unordered {
        return expected
            .iter()
            .zip(got)
            .all(|(expected, got)| same(expected, got));
    }
    let candidates: Vec<Vec<usize>> = expected
        .iter()
        .map(|expected| {
            (0..got.len())
                .filter(|&index| same(expected, &got[index]))
                .collect()
        })
        .collect();
    assign(&candidates, &mut vec![None; got.len()])
}

/// Whether every expectation can have an element of its own (augmenting paths: patterns may overlap).
fn assign(candidates: &[Vec<usize>], owner: &mut [Option<usize>]) -> bool {
    fn place(
        index: usize,
        candidates: &[Vec<usize>],
        owner: &mut [Option<usize>],
        seen: &mut [bool],
    ) -> bool {
        for &element in &candidates[index] {
            if std::mem::replace(&mut seen[element], true) {
                continue;
            }
            let free = match owner[element] {
                None => true,
                Some(other) => place(other, candidates, owner, seen),
            };
            if free {
                owner[element] = Some(index);
                return true;
            }
        }
        false
    }
    (0..candidates.len())
        .all(|index| place(index, candidates, owner, &mut vec![false; owner.len()]))
}
