//! What a run found, and how it is told.

use std::collections::BTreeMap;

use super::request::{Request, shown};
use super::support::Value;
use super::words::is_key;

/// Strings up to this length are easily compared by eye.
const SHORT_BYTES: usize = 40;

/// How often a command was answered well, and with an error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) answered: usize,
    pub(crate) refused: usize,
}

/// What a run found.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) commands: usize,
    /// Messages about keys that were compared.
    pub(crate) events: usize,
    pub(crate) tallies: BTreeMap<String, Tally>,
    pub(crate) mismatches: Vec<Mismatch>,
    /// How often each deliberate difference was met, in the order of [`DIFFERENCES`].
    pub(crate) differences: Vec<usize>,
}

/// One reply that differed.
pub(crate) struct Mismatch {
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A request that was sent: its number in the run, and over which connection.
pub(crate) struct Sent {
    pub(crate) index: usize,
    pub(crate) connection: usize,
    pub(crate) request: Request,
}

/// Whether a past request may explain the reply to `sent`: it names one of its keys, or works on everything.
pub(crate) fn is_related(past: &Request, sent: &Request) -> bool {
    let is_global = matches!(
        &past.upper(0)[..],
        b"FLUSHALL" | b"FLUSHDB" | b"SWAPDB" | b"SELECT" | b"HELLO"
    );
    let shares = |word: &Vec<u8>| is_key(word) && sent.words[1..].contains(word);
    is_global || past.words[1..].iter().any(shares)
}

/// Where two long strings differ, which their beginnings may not show.
pub(crate) fn first_difference(reference: &Value, subject: &Value) -> String {
    let (Some(left), Some(right)) = (reference.bytes(), subject.bytes()) else {
        return String::new();
    };
    if left.len().max(right.len()) <= SHORT_BYTES {
        return String::new();
    }
    let common = left
        .iter()
        .zip(right)
        .take_while(|(left, right)| left == right);
    let at = common.count();
    let around = |bytes: &[u8]| shown(&bytes[at.min(bytes.len())..bytes.len().min(at + 16)]);
    format!(
        " (lengths {} and {}, from byte {at}: {} and {})",
        left.len(),
        right.len(),
        around(left),
        around(right)
    )
}

/// A reply as a report shows it.
pub(crate) fn printed(reply: &Value) -> String {
    let list = |items: &[Value]| items.iter().map(printed).collect::<Vec<_>>().join(", ");
    match reply {
        Value::Simple(text) => format!("status {}", shown(text)),
        Value::Error(text) => format!("error {}", shown(text)),
        Value::Int(number) => format!("integer {number}"),
        Value::Bulk(text) => format!("string {}", shown(text)),
        Value::Array(items) => format!("array [{}]", list(items)),
        Value::Map(pairs) => {
            let pairs = pairs
                .iter()
                .map(|(key, value)| format!("{}: {}", printed(key), printed(value)));
            format!("map {{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => format!("{other:?}"),
    }
}
