//! HSCAN, SSCAN and ZSCAN: items that a page of a scan has to show, and that a whole scan must not miss.
//!
//! A request has `&` in the place of its cursor: the one that the last page of that key on the connection
//! has answered. So a scan goes on between other requests. A page shows items that are there, as they are,
//! and match its pattern. The last page completes the guarantee: an item that was there at all moments of
//! the scan, and matched the pattern of each of its pages, was shown by one of them.

use std::collections::{BTreeSet, HashMap};

use crate::support::Value;
use crate::torture::model::{Call, Expect};
use crate::torture::values::{Data, Key, halves_of};

/// Scans by command and key.
pub(crate) type Scans = HashMap<(String, Key), Scan>;

/// A scan between two of its pages.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    pub(crate) cursor: u64,
    /// Items that the pages to come have to show, unless they go.
    owed: BTreeSet<Vec<u8>>,
}

impl Scan {
    /// The collection has changed: items that have gone are no longer owed.
    pub(crate) fn keep_only(&mut self, data: &Data) {
        self.owed.retain(|name| has(data, name));
    }
}

/// The expected page.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// The collection, if there is one.
    data: Option<Data>,
    owed: BTreeSet<Vec<u8>>,
    pattern: Vec<u8>,
    has_values: bool,
}

/// Whether a command scans a collection.
pub(crate) fn is_scan(name: &str) -> bool {
    matches!(name, "hscan" | "sscan" | "zscan")
}

/// Whether a collection has an item of this name.
fn has(data: &Data, name: &[u8]) -> bool {
    match data {
        Data::Hash(fields) => fields.contains_key(name),
        Data::Set(members) => members.contains(name),
        Data::SortedSet(scores) => scores.contains_key(name),
        Data::String(_) | Data::List(_) | Data::Stream(_) => false,
    }
}

fn names(data: &Data) -> BTreeSet<Vec<u8>> {
    match data {
        Data::Hash(fields) => fields.keys().cloned().collect(),
        Data::Set(members) => Clone::clone(members),
        Data::SortedSet(scores) => scores.keys().cloned().collect(),
        Data::String(_) | Data::List(_) | Data::Stream(_) => BTreeSet::new(),
    }
}

/// Patterns of shapes have one star at most.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.iter().position(|&byte| byte == b'*') {
        None => pattern == name,
        Some(star) => {
            let (start, end) = (&pattern[..star], &pattern[star + 1..]);
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

/// The expected page of a scan that has come so far: `key cursor [MATCH pattern] [COUNT count]
/// [NOVALUES | NOSCORES]`.
pub(crate) fn page(data: Option<&Data>, scan: Option<&Scan>, name: &str, args: &[Vec<u8>]) -> Page {
    let at = args.iter().position(|word| word == b"MATCH");
    let pattern = at.map_or(b"*".to_vec(), |at| args[at + 1].clone());
    let is_bare = |word: &Vec<u8>| word == b"NOVALUES" || word == b"NOSCORES";
    let mut owed = match (cursor(&args[1]), scan) {
        (Some(0), _) => data.map(names).unwrap_or_default(),
        (from, Some(scan)) if from == Some(scan.cursor) => scan.owed.clone(),
        // Of a scan that has begun before anybody took note nothing is known.
        _ => BTreeSet::new(),
    };
    owed.retain(|item| matches(&pattern, item));
    Page {
        data: data.cloned(),
        owed,
        pattern,
        has_values: name != "sscan" && !args.iter().any(is_bare),
    }
}

/// A cursor, if it is one.
pub(crate) fn cursor(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The cursor and the words of a page.
fn parts(reply: &Value) -> Option<(u64, &[Value])> {
    match reply {
        Value::Array(parts) => match &parts[..] {
            [from, Value::Array(words)] => Some((cursor(from.bytes()?)?, words)),
            _ => None,
        },
        _ => None,
    }
}

impl Page {
    fn width(&self) -> usize {
        1 + usize::from(self.has_values)
    }

    /// Whether a reply is so.
    pub(crate) fn admits(&self, reply: &Value) -> bool {
        let Some((next, words)) = parts(reply) else {
            return false;
        };
        let are_there = words.chunks(self.width()).all(|item| self.shows(item));
        are_there && (next != 0 || self.owed_after(words).is_empty())
    }

    /// Whether an item is there, as it is shown, and matches.
    fn shows(&self, item: &[Value]) -> bool {
        let Some(name) = item[0].bytes() else {
            return false;
        };
        let value = match (&self.data, self.has_values) {
            (Some(data), false) => has(data, name),
            (Some(Data::Hash(fields)), true) => {
                let value = item.get(1).and_then(Value::bytes);
                value.is_some() && fields.get(name).map(|value| &value[..]) == value
            }
            (Some(Data::SortedSet(scores)), true) => {
                let score = item.get(1).and_then(halves_of);
                score.is_some() && scores.get(name).copied() == score
            }
            _ => false,
        };
        value && matches(&self.pattern, name)
    }

    fn owed_after(&self, words: &[Value]) -> BTreeSet<Vec<u8>> {
        let mut owed = self.owed.clone();
        for name in words.iter().step_by(self.width()).filter_map(Value::bytes) {
            owed.remove(name);
        }
        owed
    }

    /// The scan after this page; none if it is the last.
    pub(crate) fn next(&self, reply: &Value) -> Option<Scan> {
        let (cursor, words) = parts(reply).filter(|&(cursor, _)| cursor != 0)?;
        Some(Scan {
            cursor,
            owed: self.owed_after(words),
        })
    }
}

/// Of scans, which the model runs itself: it knows how far they have come.
pub(super) fn unreachable(_: &mut Call<'_>) -> Expect {
    unreachable!("the model runs scans itself")
}

/// The judge of pages is judged: wrong pages are found.
#[test]
fn a_page_shows_what_is_there_and_the_last_one_owes_nothing() {
    let data = Data::Set(std::sync::Arc::new(
        ["a1", "a2", "b1"]
            .map(|name| name.as_bytes().to_vec())
            .into(),
    ));
    let words = |text: &str| -> Vec<Vec<u8>> {
        text.split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect()
    };
    let reply = |cursor: &str, names: &[&str]| {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let names = names.iter().map(|name| bulk(name)).collect();
        Value::Array(vec![bulk(cursor), Value::Array(names)])
    };
    let first = page(Some(&data), None, "sscan", &words("k 0 COUNT 1"));
    assert!(first.admits(&reply("7", &["b1"])) && first.admits(&reply("0", &["b1", "a1", "a2"])));
    assert!(!first.admits(&reply("0", &["b1", "a1"])) && !first.admits(&reply("7", &["c"])));
    let scan = first.next(&reply("7", &["b1"])).expect("it goes on");
    let second = page(Some(&data), Some(&scan), "sscan", &words("k 7 MATCH a*"));
    assert!(second.admits(&reply("0", &["a1", "a2"])) && !second.admits(&reply("0", &["a1"])));
    assert!(!second.admits(&reply("0", &["a1", "a2", "b1"])));
    // One that nobody has begun owes nothing.
    let other = page(Some(&data), Some(&scan), "sscan", &words("k 8"));
    assert!(other.admits(&reply("0", &[])) && second.next(&reply("0", &[])).is_none());
}
