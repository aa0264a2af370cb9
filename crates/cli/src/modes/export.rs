//! `export FILE`: all keys of a server as an RDB file, through commands that every server has.
//!
//! Keys are found by SCAN, a database at a time, and read a group at a time: how long they are first, so that
//! no group is larger than it has to be, then value and expiry together. A group is as it was at one point in
//! time, where the server has transactions; the file as a whole is not. A key that SCAN names twice is
//! written once, as servers expect of a file. `values` knows how values are read and written.

mod values;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::Path;

use rdb::{Attributes, Payload, Writer};
use resp::Value;
use sys::clock::realtime_ms;

use super::file::{Target, bar, is_output, wrong};
use super::walk::Walk;
use crate::amounts::{bytes_text, count};
use crate::failure::{Failure, Result};
use crate::flags::Options;
use crate::format::quoted;
use crate::limits::{EXPORT_GROUP_BYTES, EXPORT_GROUP_KEYS, EXPORT_SCAN};
use crate::session::Session;
use values::{Fields, Form, Readable};

/// The format is that of this release, whatever server the keys come from.
const WRITTEN_AS: &str = "7.0.15";

pub(super) fn run(mut session: Session, options: &Options, path: &Path) -> Result {
    let mut options = options.clone();
    options.keys.count.get_or_insert(EXPORT_SCAN);
    let chosen = options.access.is_database_chosen;
    let databases = if chosen {
        vec![Database::numbered(options.access.database)]
    } else {
        databases(&mut session)?
    };
    let has_timed_fields = has_timed_fields(&mut session)?;
    let mut export = Export {
        path,
        writer: begin(path, has_timed_fields)?,
        has_timed_fields,
        // A node of a cluster has transactions within a slot only.
        has_transactions: !is_cluster(&mut session)?
            && answers(&mut session, &["MULTI"])?
            && answers(&mut session, &["DISCARD"])?,
        has_times: answers(&mut session, &["PEXPIRETIME", ""])?,
        skips_unsupported: options.skips_unsupported,
        database: 0,
        names: Names::default(),
        fields: Fields::default(),
        written: 0,
        unsupported: 0,
        libraries: 0,
    };
    if !chosen {
        export.libraries(&mut session)?;
    }
    let keys = databases.iter().map(|database| database.keys).sum();
    let bar = bar(
        keys,
        "exporting {pos}/{len} keys [{wide_bar}] {per_sec}, {eta} left",
    );
    for database in &databases {
        export.begin_database(&mut session, database)?;
        let mut walk = Walk::begin(session, &options)?;
        walk.each(|session, keys, _| {
            bar.inc(keys.len() as u64);
            export.keys(session, keys)
        })?;
        if walk.is_interrupted {
            return Err(Failure::Interrupted);
        }
        session = walk.into_session();
    }
    bar.finish_and_clear();
    export.finish(databases.len() as u64)
}

fn begin(path: &Path, timed: bool) -> Result<Writer<Target>> {
    let options = rdb::Options {
        timed,
        ..rdb::Options::default()
    };
    let begin = |target| -> io::Result<Writer<Target>> {
        let mut writer = Writer::new(target, options)?;
        writer.fact("redis-ver", WRITTEN_AS)?;
        writer.fact("redis-bits", "64")?;
        writer.fact("ctime", &(realtime_ms() / 1000).to_string())?;
        writer.fact("aof-base", "0")?;
        Ok(writer)
    };
    begin(Target::create(path)?).map_err(|error| wrong(path, &error))
}

/// Whether the server understands a request.
fn answers(session: &mut Session, words: &[&str]) -> Result<bool> {
    let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    Ok(!matches!(session.ask(&words)?, Value::Error(_)))
}

fn is_cluster(session: &mut Session) -> Result<bool> {
    let reply = session.ask(&[b"INFO".to_vec(), b"cluster".to_vec()])?;
    Ok(match reply {
        Value::Bulk(text) | Value::Verbatim { text, .. } => {
            String::from_utf8_lossy(&text).contains("cluster_enabled:1")
        }
        _ => false,
    })
}

/// A database that has keys, as far as is known.
#[derive(Debug, PartialEq, Eq)]
struct Database {
    number: u64,
    keys: u64,
    volatile: u64,
}

impl Database {
    fn numbered(number: u64) -> Database {
        Database {
            number,
            keys: 0,
            volatile: 0,
        }
    }
}

/// Whether fields of hashes expire now, by what INFO says. If some do the file is of a version that has their
/// times.
fn has_timed_fields(session: &mut Session) -> Result<bool> {
    let reply = session.ask(&[b"INFO".to_vec(), b"keyspace".to_vec()])?;
    let (Value::Bulk(text) | Value::Verbatim { text, .. }) = reply else {
        return Ok(false);
    };
    let text = String::from_utf8_lossy(&text);
    let counts = text.split(',').filter_map(|fact| {
        let count = fact.split_whitespace().next()?.strip_prefix("subexpiry=")?;
        count.parse::<u64>().ok()
    });
    Ok(counts.sum::<u64>() > 0)
}

/// What INFO says about databases.
fn databases(session: &mut Session) -> Result<Vec<Database>> {
    let reply = session.ask(&[b"INFO".to_vec(), b"keyspace".to_vec()])?;
    match reply {
        Value::Bulk(text) | Value::Verbatim { text, .. } => {
            Ok(read_keyspace(&String::from_utf8_lossy(&text)))
        }
        Value::Error(text) => Err(Failure::Other(format!(
            "the server does not tell which databases it has (-n 0 exports one): {}",
            String::from_utf8_lossy(&text)
        ))),
        _ => Err(Failure::other("the server's answer to INFO is no text")),
    }
}

/// Takes `db0:keys=5,expires=1,avg_ttl=0` apart, line by line.
fn read_keyspace(text: &str) -> Vec<Database> {
    let line = |line: &str| {
        let (number, facts) = line.trim().strip_prefix("db")?.split_once(':')?;
        let fact = |name: &str| {
            let mut facts = facts.split(',').filter_map(|fact| fact.split_once('='));
            facts.find(|(its, _)| *its == name)?.1.parse().ok()
        };
        Some(Database {
            number: number.parse().ok()?,
            keys: fact("keys")?,
            volatile: fact("expires").unwrap_or(0),
        })
    };
    text.lines().filter_map(line).collect()
}

struct Export<'a> {
    path: &'a Path,
    writer: Writer<Target>,
    has_transactions: bool,
    /// Fields of hashes expire.
    has_timed_fields: bool,
    /// The server tells when keys expire; otherwise, in how many milliseconds.
    has_times: bool,
    skips_unsupported: bool,
    database: u64,
    names: Names,
    fields: Fields,
    written: u64,
    unsupported: u64,
    /// Libraries of functions that were written.
    libraries: u64,
}

impl Export<'_> {
    /// Writes the libraries of functions of a server that has some.
    fn libraries(&mut self, session: &mut Session) -> Result {
        let request = [b"FUNCTION".to_vec(), b"DUMP".to_vec()];
        // A server before version 7 has none.
        let Value::Bulk(payload) = session.ask(&request)? else {
            return Ok(());
        };
        let texts = Payload::check(&payload).and_then(|payload| payload.libraries(usize::MAX).ok());
        let texts = texts.ok_or(Failure::other(
            "the server's answer to FUNCTION DUMP cannot be read",
        ))?;
        self.libraries = texts.len() as u64;
        for text in &texts {
            let put = self.writer.library(text);
            put.map_err(|error| wrong(self.path, &error))?;
        }
        Ok(())
    }

    fn begin_database(&mut self, session: &mut Session, database: &Database) -> Result {
        let number = database.number;
        let select = [b"SELECT".to_vec(), number.to_string().into_bytes()];
        if let Value::Error(text) = session.ask(&select)? {
            let text = String::from_utf8_lossy(&text);
            return Err(Failure::Other(format!("SELECT {number} failed: {text}")));
        }
        self.database = number;
        self.names = Names::default();
        let writer = &mut self.writer;
        let begun = writer
            .database(number)
            .and_then(|()| writer.sizes(database.keys, database.volatile));
        begun.map_err(|error| wrong(self.path, &error))
    }

    /// Exports keys, unless they are gone.
    fn keys(&mut self, session: &mut Session, mut keys: Vec<Vec<u8>>) -> Result {
        keys.retain(|key| self.names.insert(key));
        let forms = values::forms(session, &keys)?;
        let mut group: Vec<(&[u8], Form)> = Vec::new();
        let mut group_bytes = 0;
        for (key, found) in keys.iter().zip(forms) {
            let (form, bytes) = match found {
                Readable::Value(form, bytes) => (form, bytes),
                Readable::Unsupported => {
                    self.refuse(session, key)?;
                    continue;
                }
                Readable::Unexpected(reply) => return Err(self.unexpected(key, &reply)),
            };
            let is_full = group.len() == EXPORT_GROUP_KEYS
                || group_bytes + bytes > EXPORT_GROUP_BYTES && !group.is_empty();
            if is_full {
                self.group(session, &group)?;
                group.clear();
                group_bytes = 0;
            }
            group.push((key, form));
            group_bytes += bytes;
        }
        self.group(session, &group)
    }

    /// What to do with a key of another type.
    fn refuse(&mut self, session: &mut Session, key: &[u8]) -> Result {
        self.unsupported += 1;
        if self.skips_unsupported {
            return Ok(());
        }
        let kind = match session.ask(&[b"TYPE".to_vec(), key.to_vec()])? {
            Value::Simple(name) => String::from_utf8_lossy(&name).into_owned(),
            _ => "value of another type".to_owned(),
        };
        Err(Failure::Other(format!(
            "key {} in database {} is a {kind}, and only strings, hashes, sets, sorted sets, lists and \
             streams are supported. \
             Nothing was saved; --skip-unsupported leaves out what cannot be.",
            quoted(key),
            self.database
        )))
    }

    /// Reads and writes some keys.
    fn group(&mut self, session: &mut Session, keys: &[(&[u8], Form)]) -> Result {
        if keys.is_empty() {
            return Ok(());
        }
        let asks_expiry = if self.has_times {
            &b"PEXPIRETIME"[..]
        } else {
            b"PTTL"
        };
        let mut requests = Vec::with_capacity(2 * keys.len() + 2);
        for (key, form) in keys {
            requests.push(form.request(key));
            requests.push(vec![asks_expiry, key]);
        }
        if self.has_transactions {
            requests.insert(0, vec![&b"MULTI"[..]]);
            requests.push(vec![&b"EXEC"[..]]);
        }
        let mut replies = session.ask_all(&requests)?;
        let now = realtime_ms();
        if self.has_transactions {
            replies = match replies.pop() {
                Some(Value::Array(replies)) => replies,
                other => return Err(self.unexpected(keys[0].0, &other.unwrap_or(Value::Null))),
            };
        }
        let mut replies = replies.into_iter();
        for (key, form) in keys {
            let (value, expiry) = (replies.next(), replies.next());
            let expiry = self.expiry(key, expiry, now)?;
            let is_taken = *form == Form::Hash && self.has_timed_fields;
            match value {
                Some(reply) if is_taken => {
                    let taken = self.fields.take(reply);
                    let taken = taken.map_err(|reply| self.unexpected(key, &reply))?;
                    if taken > 0 {
                        self.field_times(session, key)?;
                    }
                    self.hash(key, expiry)?;
                }
                value => self.key(key, *form, value, expiry)?,
            }
        }
        Ok(())
    }

    /// Asks when the fields of a hash expire that were just read. Those that have are left out.
    fn field_times(&mut self, session: &mut Session, key: &[u8]) -> Result {
        let requests = self.fields.time_requests(key);
        for (number, reply) in session.ask_all(&requests)?.into_iter().enumerate() {
            let noted = self.fields.note_times(number, reply);
            noted.map_err(|reply| self.unexpected(key, &reply))?;
        }
        self.fields.leave_out_expired();
        Ok(())
    }

    /// Writes the hash whose fields were read.
    fn hash(&mut self, key: &[u8], expiry_ms: Option<i64>) -> Result {
        if self.fields.is_empty() {
            return Ok(());
        }
        let attributes = Attributes {
            expiry_ms,
            ..Attributes::default()
        };
        self.written += 1;
        let put = self.fields.write(&mut self.writer, key, attributes);
        put.map_err(|error| wrong(self.path, &error))
    }

    /// When a key expires, by the reply about that.
    fn expiry(&self, key: &[u8], reply: Option<Value>, now: i64) -> Result<Option<i64>> {
        Ok(match reply {
            Some(Value::Integer(..0)) => None,
            Some(Value::Integer(time)) if self.has_times => Some(time),
            Some(Value::Integer(span)) => Some(now + span),
            other => return Err(self.unexpected(key, &other.unwrap_or(Value::Null))),
        })
    }

    fn key(
        &mut self,
        key: &[u8],
        form: Form,
        value: Option<Value>,
        expiry_ms: Option<i64>,
    ) -> Result {
        let attributes = Attributes {
            expiry_ms,
            ..Attributes::default()
        };
        let put = match (form, value) {
            (Form::String, Some(Value::Bulk(value))) => self.writer.key(key, &value, attributes),
            (Form::Stream, Some(Value::Bulk(payload))) => {
                let written = values::write_stream(&mut self.writer, key, &payload, attributes);
                written.map_err(|problem| self.failed(key, &problem))?
            }
            // Gone since SCAN named it.
            (Form::String | Form::Stream, Some(Value::Null)) => return Ok(()),
            (Form::Hash, Some(reply)) => match self.fields.take(reply) {
                Ok(0) => return Ok(()),
                Ok(_) => self.fields.write(&mut self.writer, key, attributes),
                Err(reply) => return Err(self.unexpected(key, &reply)),
            },
            (Form::Set, Some(reply)) => match values::members(reply) {
                Ok(members) if members.is_empty() => return Ok(()),
                Ok(members) => values::write_set(&mut self.writer, key, &members, attributes),
                Err(reply) => return Err(self.unexpected(key, &reply)),
            },
            (Form::SortedSet, Some(reply)) => match values::scores(reply) {
                Ok(scores) if scores.is_empty() => return Ok(()),
                Ok(scores) => values::write_scores(&mut self.writer, key, &scores, attributes),
                Err(reply) => return Err(self.unexpected(key, &reply)),
            },
            (Form::List, Some(reply)) => match values::members(reply) {
                Ok(elements) if elements.is_empty() => return Ok(()),
                Ok(elements) => values::write_list(&mut self.writer, key, &elements, attributes),
                Err(reply) => return Err(self.unexpected(key, &reply)),
            },
            (_, other) => return Err(self.unexpected(key, &other.unwrap_or(Value::Null))),
        };
        self.written += 1;
        put.map_err(|error| wrong(self.path, &error))
    }

    fn unexpected(&self, key: &[u8], reply: &Value) -> Failure {
        match reply {
            Value::Error(text) => self.failed(key, &String::from_utf8_lossy(text)),
            other => self.failed(key, &format!("the server answered {other:?}")),
        }
    }

    fn failed(&self, key: &[u8], problem: &str) -> Failure {
        let place = format!("key {} in database {}", quoted(key), self.database);
        Failure::Other(format!("{place}: {problem}"))
    }

    /// Ends the file and says what is in it.
    fn finish(self, databases: u64) -> Result {
        let path = self.path;
        let target = self.writer.finish().map_err(|error| wrong(path, &error))?;
        let bytes = match &target {
            Target::File { file, .. } => file.metadata().map_or(0, |facts| facts.len()),
            Target::Output(_) => 0,
        };
        target.keep(path)?;
        let left_out = match self.unsupported {
            0 => String::new(),
            number => format!(", {number} left out that are not supported"),
        };
        let libraries = match self.libraries {
            0 => String::new(),
            1 => " and 1 library".to_owned(),
            all => format!(" and {all} libraries"),
        };
        let text = format!(
            "{}{libraries} of {} saved",
            count(self.written, "key"),
            count(databases, "database")
        );
        if is_output(path) {
            eprintln!("{text}{left_out}");
            return Ok(());
        }
        let bytes = bytes_text(i64::try_from(bytes).unwrap_or(i64::MAX));
        Ok(writeln!(
            io::stdout(),
            "{text} to {} ({bytes}){left_out}",
            path.display()
        )?)
    }
}

/// The keys of a database that were seen: 128 bits of each, by hashes that nobody can foresee, so that two
/// keys are never taken for one.
#[derive(Default)]
struct Names {
    hashes: [RandomState; 2],
    seen: HashSet<u128>,
}

impl Names {
    /// Remembers a key; whether it is new.
    fn insert(&mut self, key: &[u8]) -> bool {
        let [high, low] = &self.hashes;
        let hash = u128::from(high.hash_one(key)) << 64 | u128::from(low.hash_one(key));
        self.seen.insert(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_read_from_info() {
        let text = "# Keyspace\r\ndb0:keys=5,expires=1,avg_ttl=0\r\n\
                    db12:keys=7,expires=0,avg_ttl=0,subexpiry=0\r\n\
                    dbx:keys=1\r\ndb3:nothing\r\n";
        let database = |number, keys, volatile| Database {
            number,
            keys,
            volatile,
        };
        assert_eq!(read_keyspace(text), [database(0, 5, 1), database(12, 7, 0)]);
        assert_eq!(read_keyspace("# Keyspace\r\n"), []);
    }

    #[test]
    fn a_key_is_new_once() {
        let mut names = Names::default();
        for number in 0..1000_u32 {
            assert!(names.insert(&number.to_le_bytes()));
        }
        for number in 0..1000_u32 {
            assert!(!names.insert(&number.to_le_bytes()));
        }
        assert!(names.insert(b""));
        assert!(!names.insert(b""));
    }
}
