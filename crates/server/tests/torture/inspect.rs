//! Reading everything a server has, and what its directory must not have.

use std::fs;
use std::path::Path;

use crate::support::{PATIENCE, Value, encode_request};
use crate::torture::commands::scripts;
use crate::torture::model::DATABASES;
use crate::torture::process::LOG;
use crate::torture::values::{Data, Entry, KINDS, Key, Keys, Kind, Span};
use crate::torture::wire::{Connection, Silence, now_ms};

/// Keys that are read in one go, and where memory is scarce.
const CHUNK: usize = 32;
const SMALL_CHUNK: usize = 1;

/// The name of a connection's key begins with its number and this.
pub(crate) const SEPARATOR: u8 = b':';

/// The connection that a key belongs to.
pub(crate) fn owner(name: &[u8]) -> Option<usize> {
    let end = name.iter().position(|&byte| byte == SEPARATOR)?;
    std::str::from_utf8(&name[..end]).ok()?.parse().ok()
}

/// What was found, by connection, and when it was asked for.
pub(crate) struct Found {
    pub(crate) keys: Vec<Keys>,
    pub(crate) asked: Span,
}

/// Reads all keys of all databases, or those of one connection.
///
/// # Errors
/// The server does not answer, or answers what cannot be.
pub(crate) fn read(
    connection: &mut Connection,
    lanes: usize,
    only: Option<usize>,
    is_scarce: bool,
) -> Result<Found, String> {
    let chunk = if is_scarce { SMALL_CHUNK } else { CHUNK };
    let least = now_ms();
    let pattern = only.map_or("*".to_owned(), |lane| format!("{lane}:*"));
    let mut keys = vec![Keys::new(); lanes];
    for db in 0..DATABASES {
        match ask(connection, &[b"SELECT", db.to_string().as_bytes()]) {
            // A cluster has one.
            Err(problem) if problem.ends_with("not allowed in cluster mode") => break,
            selected => selected?,
        };
        let Value::Array(names) = ask(connection, &[b"KEYS", pattern.as_bytes()])? else {
            return Err("KEYS answers no array".to_owned());
        };
        let names: Vec<Vec<u8>> = names
            .iter()
            .filter_map(|name| Some(name.bytes()?.to_vec()))
            .collect();
        for names in names.chunks(chunk) {
            for (key, entry) in read_chunk(connection, db, names)? {
                let lane = owner(&key.1).filter(|&lane| lane < lanes);
                let lane = lane.ok_or_else(|| format!("nobody wrote {}", key.1.escape_ascii()))?;
                keys[lane].insert(key, entry);
            }
        }
    }
    for (lane, key, entry) in read_libraries(connection, only)? {
        let own = keys.get_mut(lane);
        let own = own.ok_or_else(|| format!("nobody wrote {}", key.1.escape_ascii()))?;
        own.insert(key, entry);
    }
    let asked = Span {
        least,
        most: now_ms(),
    };
    Ok(Found { keys, asked })
}

/// The libraries, each with its connection and its key in the model.
fn read_libraries(
    connection: &mut Connection,
    only: Option<usize>,
) -> Result<Vec<(usize, Key, Entry)>, String> {
    let pattern = only.map_or("*".to_owned(), |lane| format!("L{lane}_*"));
    let request = [
        &b"FUNCTION"[..],
        b"LIST",
        b"LIBRARYNAME",
        pattern.as_bytes(),
        b"WITHCODE",
    ];
    let Value::Array(libraries) = ask(connection, &request)? else {
        return Err("FUNCTION LIST answers no array".to_owned());
    };
    let found = libraries.iter().map(|library| {
        let fact = |name: &str| fact(library, name).and_then(Value::bytes);
        let (name, text) = (fact("library_name"), fact("library_code"));
        let name = String::from_utf8_lossy(name.unwrap_or_default());
        let key = name.strip_prefix('L').and_then(scripts::key_of);
        let (lane, key) = key.ok_or_else(|| format!("nobody has loaded {name}"))?;
        let data = Data::string(text.unwrap_or_default().to_vec());
        Ok((lane, key, Entry { data, expiry: None }))
    });
    found.collect()
}

/// A fact of a reply that has names and values.
fn fact<'v>(reply: &'v Value, name: &str) -> Option<&'v Value> {
    let is_it = |word: &Value| word.bytes() == Some(name.as_bytes());
    match reply {
        Value::Map(pairs) => pairs
            .iter()
            .find(|(word, _)| is_it(word))
            .map(|(_, value)| value),
        Value::Array(words) => words.chunks(2).find(|pair| is_it(&pair[0]))?.get(1),
        _ => None,
    }
}

fn ask(connection: &mut Connection, request: &[&[u8]]) -> Result<Value, String> {
    connection.send_bytes(&encode_request(request));
    next(connection)
}

fn next(connection: &mut Connection) -> Result<Value, String> {
    match connection.receive(PATIENCE) {
        Ok(reply) => match reply.value {
            Value::Error(text) => Err(String::from_utf8_lossy(&text).into_owned()),
            value => Ok(value),
        },
        Err(Silence::Closed) => Err("the connection that reads everything was closed".to_owned()),
        Err(Silence::TimedOut) => {
            Err("the connection that reads everything waits for ever".to_owned())
        }
    }
}

fn read_chunk(
    connection: &mut Connection,
    db: u16,
    names: &[Vec<u8>],
) -> Result<Vec<(Key, Entry)>, String> {
    for name in names {
        connection.send_bytes(&encode_request(&[b"TYPE", &name[..]]));
        connection.send_bytes(&encode_request(&[b"PEXPIRETIME", &name[..]]));
    }
    let mut wanted: Vec<(&Vec<u8>, &Kind, i64)> = Vec::new();
    for name in names {
        let (kind, expiry) = (next(connection)?.text(), next(connection)?);
        let Value::Int(expiry) = expiry else {
            return Err(format!("PEXPIRETIME answers {expiry:?}"));
        };
        // It may have expired since its name was told.
        if kind == "none" || expiry == -2 {
            continue;
        }
        let row = KINDS.iter().find(|row| row.name == kind);
        let row = row.ok_or_else(|| format!("{} is a {kind}", name.escape_ascii()))?;
        wanted.push((name, row, expiry));
    }
    for (name, kind, _) in &wanted {
        let word = |&word: &&'static str| match word {
            "KEY" => name.to_vec(),
            word => word.as_bytes().to_vec(),
        };
        let request: Vec<Vec<u8>> = kind.read.iter().map(word).collect();
        connection.send_bytes(&encode_request(&request));
    }
    let mut found = Vec::new();
    for (name, kind, expiry) in wanted {
        if let Some(data) = (kind.decode)(next(connection)?) {
            let expiry = u64::try_from(expiry).ok().map(Span::exactly);
            found.push(((db, name.clone()), Entry { data, expiry }));
        }
    }
    Ok(found)
}

/// Files of large values below a server's directory.
pub(crate) fn large_value_files(directory: &Path) -> usize {
    let folders = fs::read_dir(directory.join(LOG).join("blobs"));
    let folders = folders.into_iter().flatten().flatten();
    folders
        .map(|folder| fs::read_dir(folder.path()).map_or(0, Iterator::count))
        .sum()
}

/// Names in a server's directory that are not meant to stay.
pub(crate) fn left_over(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| {
            let is_snapshot = name.starts_with("temp-") && name.ends_with(".rdb");
            is_snapshot || name.ends_with(".tmp")
        })
        .collect()
}

/// Lines of the server's log that tell of trouble nobody has made.
pub(crate) fn complaints(output: &str, has_trouble: bool, is_scarce: bool) -> Vec<String> {
    /// What a warning may say.
    const EXPECTED: &[&str] = &[
        "Append Only File loaded by DEBUG LOADAOF",
        // After a change of the map.
        "keys are here of slots that this node does not have",
        "received SIGTERM",
        "requested the shutdown",
        "are put aside in",
        "the log is still being begun or ended",
        "Saving a snapshot was broken off",
        // The log that is being ended.
        "is in use by another server",
        // Killed by `start-kill` while the snapshot was written into a log that had lost all to `trouble
        // volatile`.
        "was never completed: it begins anew",
        // Killed before it began its first segment.
        "is left out: the log has no segment",
        // A power cut that only the disk had (`trouble volatile`): the ring is ahead of what the disk kept.
        "and had been written up to",
        // The disk had trouble when the process was killed.
        "is of a log that had failed",
    ];
    /// And where memory is scarce.
    const EXPECTED_IF_SCARCE: &[&str] = &[
        "clients take more than maxmemory-clients",
        "maxmemory is",
        "do not fit into memory",
    ];
    let says = |line: &str, texts: &[&str]| texts.iter().any(|text| line.contains(text));
    let is_bad = |line: &&str| {
        let is_warning = line.split_whitespace().nth(5) == Some("#");
        let is_expected =
            has_trouble || says(line, EXPECTED) || (is_scarce && says(line, EXPECTED_IF_SCARCE));
        line.contains("panicked") || (is_warning && !is_expected)
    };
    output.lines().filter(is_bad).map(str::to_owned).collect()
}
