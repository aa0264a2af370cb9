//! The browser of keys: a page of keys that begin with something, with type, size, expiry and the beginning
//! of the value.
//!
//! ```text
//! /keys.json?db=0&prefix=user%3A&cursor=0&count=50
//! { "db": 0, "cursor": "where to go on, 0 at the end", "looked": keys that were looked at,
//!   "keys": [{ "key": ..., "key_bytes": n, "type": "string", "bytes": memory, "length": bytes or fields,
//!              "expires_ms": Unix or null, "on_disk": the value is in the log alone,
//!              "preview": ... or null }] }
//! ```
//!
//! It only reads, counts as no access, and brings back no value that is on the disk alone. The work of a
//! request is bounded: it ends when there is a page of keys, after [`BROWSE_LOOKS`] keys or [`BROWSE_NS`], or
//! with the last key; the next request continues from the cursor. As with SCAN, a key that is there all the
//! time comes at least once. Keys and values are shown by their beginnings alone; bytes that are not text are
//! escaped.

use std::time::Instant;

use keyspace::collection::cell::DECIMAL_MAX;
use keyspace::collection::run::Damage;
use keyspace::collection::run::Item;
use keyspace::collection::sorted::score_of;
use keyspace::collection::stream::{EntryFields, StreamEntry, StreamItems};
use keyspace::{AnyItems, Database, EntryRef, ItemsRef, Stored, StreamRef, Turn};
use resp::number::{DOUBLE_TEXT_LEN, format_shortest};
use serde_json::{Value as Json, json};

use super::response::{Response, Status, content};
use crate::command::key::type_name;
use crate::limits::{
    BROWSE_KEY_BYTES, BROWSE_KEYS, BROWSE_LOOKS, BROWSE_NS, BROWSE_SLICE, BROWSE_VALUE_BYTES,
};
use crate::report::figures::printable;
use crate::server::Server;

/// Keys of a page where the request does not say.
const COUNT: usize = 50;

/// Keys that are looked at under one lock while a prefix is looked for, however few are missing from the
/// page.
const SLICE_AT_LEAST: usize = 16;

/// Bytes of the index for a key; MEMORY USAGE counts them too.
const INDEX_SLOT_BYTES: usize = 8;

/// Parameters of a request.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    db: usize,
    prefix: Vec<u8>,
    cursor: u64,
    count: usize,
}

/// Copy of a key, made while its shard is locked.
struct Row {
    key: Vec<u8>,
    key_bytes: usize,
    kind: &'static str,
    bytes: usize,
    length: u64,
    expires_ms: Option<i64>,
    /// The beginning of the value; `None` if it is on the disk alone.
    preview: Option<Vec<u8>>,
}

/// Answers a request by its query. The turn was entered.
pub(super) fn answer(server: &Server, turn: &Turn<'_>, query: &str) -> Response {
    let wanted = match Wanted::parse(query, server.keyspace.databases()) {
        Ok(wanted) => wanted,
        Err(reason) => return Response::line(Status::BadRequest, &reason),
    };
    let mut rows = Vec::new();
    let (cursor, looked) = match server.keyspace.existing(turn, wanted.db) {
        Some(database) => walk(database, &wanted, &mut rows),
        None => (0, 0),
    };
    let keys: Vec<Json> = rows.iter().map(Row::json).collect();
    // As text: a cursor has more bits than the numbers of a browser.
    let body =
        json!({ "db": wanted.db, "cursor": cursor.to_string(), "looked": looked, "keys": keys });
    Response::new(Status::Ok, content::JSON, body.to_string().into_bytes())
}

/// Collects keys from the cursor on. Returns where to go on and how many keys were looked at.
fn walk(database: &Database, wanted: &Wanted, rows: &mut Vec<Row>) -> (u64, usize) {
    let (began, now) = (Instant::now(), sys::clock::realtime_ms());
    let (mut cursor, mut looked) = (wanted.cursor, 0);
    loop {
        // Keys that fill the page; more at once if few of the keys may match.
        let least = if wanted.prefix.is_empty() {
            1
        } else {
            SLICE_AT_LEAST
        };
        let room = wanted.count - rows.len().min(wanted.count);
        let most = room.clamp(least, BROWSE_SLICE);
        cursor = database.scan(cursor, most, now, |entry| {
            looked += 1;
            if entry.key().starts_with(&wanted.prefix) {
                rows.push(Row::of(entry));
            }
        });
        let is_spent =
            looked >= BROWSE_LOOKS || began.elapsed().as_nanos() >= u128::from(BROWSE_NS);
        if cursor == 0 || rows.len() >= wanted.count || is_spent {
            return (cursor, looked);
        }
    }
}

/// No more items are shown.
struct Enough;

impl From<Damage> for Enough {
    fn from(_: Damage) -> Enough {
        Enough
    }
}

/// The first items of a collection, a line each, as far as they are in memory.
fn start_of_items(items: AnyItems<'_>) -> Vec<u8> {
    if let AnyItems::Stream(items) = items {
        return start_of_stream(items);
    }
    let mut text = Vec::new();
    let nothing = &mut |_, _| Err(Enough);
    let shown = items.try_each(nothing, &mut |item| {
        let separators: &[&[u8]] = match items {
            AnyItems::Hash(_) => &[b": ", b"\n"],
            AnyItems::Set(_) | AnyItems::List(_) => &[b"\n"],
            AnyItems::Stream(_) => &[],
            AnyItems::SortedSet(_) => {
                let mut digits = [0; DOUBLE_TEXT_LEN];
                text.extend_from_slice(format_shortest(score_of(&item), &mut digits));
                text.extend_from_slice(b": ");
                &[b"\n"]
            }
        };
        for (cell, separator) in std::iter::once(item.name).chain(item.value).zip(separators) {
            let mut scratch = [0; DECIMAL_MAX];
            let cell = cell.text(&mut scratch);
            text.extend_from_slice(&cell[..cell.len().min(BROWSE_VALUE_BYTES)]);
            text.extend_from_slice(separator);
        }
        match text.len() < BROWSE_VALUE_BYTES {
            true => Ok(()),
            false => Err(Enough),
        }
    });
    let (Ok(()) | Err(Enough)) = shown;
    text.truncate(BROWSE_VALUE_BYTES);
    text
}

/// The first entries of a stream, a line each. Its other items, of which there may be many more, are before
/// them, and are not looked at.
fn start_of_stream(items: ItemsRef<'_, StreamItems>) -> Vec<u8> {
    let (mut text, stream) = (Vec::new(), StreamRef::of(items));
    let nothing = &mut |_, _| Err(Enough);
    let shown = items.try_ranks(stream.first_rank()..items.len(), nothing, &mut |item| {
        write_entry(&mut text, stream, &item);
        match text.len() < BROWSE_VALUE_BYTES {
            true => Ok(()),
            false => Err(Enough),
        }
    });
    let (Ok(()) | Err(Enough)) = shown;
    text.truncate(BROWSE_VALUE_BYTES);
    text
}

/// An entry of a stream in a line, if the item is one.
fn write_entry(text: &mut Vec<u8>, stream: StreamRef<'_>, item: &Item<'_>) {
    let Some(entry) = StreamEntry::of(stream.base(), item) else {
        return;
    };
    text.extend_from_slice(format!("{}-{}:", entry.id.ms, entry.id.seq).as_bytes());
    for (name, value) in EntryFields::of(entry.content, &stream.shapes()) {
        for (cell, separator) in [(name, b' '), (value, b'=')] {
            let mut scratch = [0; DECIMAL_MAX];
            let cell = cell.text(&mut scratch);
            text.push(separator);
            text.extend_from_slice(&cell[..cell.len().min(BROWSE_VALUE_BYTES)]);
        }
    }
    text.push(b'\n');
}

impl Row {
    fn of(entry: EntryRef<'_>) -> Row {
        let key = entry.key();
        let start = |bytes: &[u8], most: usize| bytes[..bytes.len().min(most)].to_vec();
        let (length, preview) = match entry.cold() {
            Some(cold) => (cold.len, None),
            None if let Some(items) = entry.all_items() => {
                let len = match items {
                    AnyItems::Stream(items) => StreamRef::of(items).len(),
                    items => items.len(),
                };
                (len, Some(start_of_items(items)))
            }
            None => {
                let value = match entry.value() {
                    Stored::Inline(bytes) => bytes,
                    Stored::Large(large) => large.bytes(),
                };
                (value.len() as u64, Some(start(value, BROWSE_VALUE_BYTES)))
            }
        };
        Row {
            key: start(key, BROWSE_KEY_BYTES),
            key_bytes: key.len(),
            kind: type_name(entry.kind()),
            bytes: entry.memory() + INDEX_SLOT_BYTES,
            length,
            expires_ms: entry.expiry(),
            preview,
        }
    }

    fn json(&self) -> Json {
        json!({
            "key": printable(&self.key), "key_bytes": self.key_bytes, "type": self.kind, "bytes": self.bytes,
            "length": self.length, "expires_ms": self.expires_ms, "on_disk": self.preview.is_none(),
            "preview": self.preview.as_deref().map(printable),
        })
    }
}

impl Wanted {
    /// Reads a query. Names that are unknown or come twice are refused: a misspelled prefix would show all
    /// keys. Reasons quote nothing of it.
    fn parse(query: &str, databases: usize) -> Result<Wanted, String> {
        let mut wanted = Wanted {
            db: 0,
            prefix: Vec::new(),
            cursor: 0,
            count: COUNT,
        };
        let mut seen = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value).ok_or("a % is followed by two hexadecimal digits")?;
            if seen.contains(&name) {
                return Err("a parameter comes twice".to_owned());
            }
            seen.push(name);
            let number = |most: u64| {
                let text = std::str::from_utf8(&value).ok()?;
                text.parse::<u64>().ok().filter(|&number| number <= most)
            };
            let wrong = || format!("{name} is no number in its range");
            match name {
                "db" => wanted.db = number(databases as u64 - 1).ok_or_else(wrong)? as usize,
                "cursor" => wanted.cursor = number(u64::MAX).ok_or_else(wrong)?,
                "count" => {
                    wanted.count = number(BROWSE_KEYS as u64)
                        .filter(|&count| count > 0)
                        .ok_or_else(wrong)? as usize
                }
                "prefix" => wanted.prefix = value,
                _ => return Err("there are db, prefix, cursor and count".to_owned()),
            }
        }
        Ok(wanted)
    }
}

/// A value of a query without its escapes; `None` if one is broken.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || (rest.next()? as char).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                // Two hexadecimal digits are a byte.
                (high * 16 + low) as u8
            }
            other => other,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_strictly() {
        let wanted = Wanted::parse(
            "db=3&prefix=a%3A%ff+%00&cursor=18446744073709551615&count=7",
            16,
        );
        let expected = Wanted {
            db: 3,
            prefix: b"a:\xff \x00".to_vec(),
            cursor: u64::MAX,
            count: 7,
        };
        assert_eq!(wanted, Ok(expected));
        assert_eq!(Wanted::parse("", 16).map(|wanted| wanted.count), Ok(COUNT));
        for query in [
            "db=16",
            "db=-1",
            "db=",
            "cursor=x",
            "count=0",
            "count=1000000",
            "prefix=%",
            "prefix=%g0",
            "prefix=%e",
            "prefx=a",
            "db=1&db=2",
            "=",
            "cursor=18446744073709551616",
        ] {
            assert!(Wanted::parse(query, 16).is_err(), "{query}");
        }
    }
}
