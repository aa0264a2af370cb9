//! `import FILE`: the keys of an RDB file, as SETs, to any server that speaks the Redis protocol.
//!
//! The file is read twice: first to find out whether it is whole and holds nothing that cannot be written, then to write. Requests
//! go out a batch at a time, and the next batch goes out before the replies of the last are read, so that neither side waits.
//! The first key that the server refuses is the end.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use indicatif::ProgressBar;
use rdb::{Attributes, Item, Reader, Unsupported};
use resp::{Value, format_i64};
use sys::clock::realtime_ms;

use super::file::{bar, count, wrong};
use crate::connection::Connection;
use crate::failure::{Failure, Result};
use crate::flags::{Access, Options};
use crate::format::quoted;
use crate::limits::{IMPORT_BATCH_BYTES, IMPORT_BATCH_KEYS, REFUSALS_SHOWN};
use crate::session::Session;

pub(super) fn run(options: &Options, path: &Path) -> Result {
    let wanted = options
        .access
        .is_database_chosen
        .then_some(options.access.database);
    let survey = survey(path, wanted)?;
    if let Some(first) = &survey.first_unsupported
        && !options.skips_unsupported
    {
        let others = match survey.unsupported {
            1 => String::new(),
            all => format!(" There {} more of the kind.", are(all - 1)),
        };
        return Err(Failure::Other(format!(
            "{}: {first}.{others} Nothing was written; --skip-unsupported leaves out what cannot be.",
            path.display()
        )));
    }
    // Databases are selected as they come in the file.
    let access = Access {
        database: 0,
        ..options.access.clone()
    };
    let session = Session::new(access, false, options.is_verbose);
    let mut import = Import {
        connection: session.into_connection()?,
        keeps_existing: options.keeps_existing,
        form: Form::Unknown,
        database: 0,
        databases: 0,
        waiting: VecDeque::new(),
        batch_keys: 0,
        batch_bytes: 0,
        refusals: Vec::new(),
        written: 0,
        kept: 0,
        expired: 0,
    };
    let result = import.file(path, wanted);
    import.tell(&survey, result)
}

fn are(number: u64) -> String {
    if number == 1 {
        "is 1".to_owned()
    } else {
        format!("are {number}")
    }
}

/// What a file holds.
#[derive(Default)]
struct Survey {
    keys: u64,
    unsupported: u64,
    /// What the first of these is, in words.
    first_unsupported: Option<String>,
}

/// Reads the whole file.
fn survey(path: &Path, wanted: Option<u64>) -> Result<Survey> {
    let mut survey = Survey::default();
    let (mut reader, bar) = open(path, "checking")?;
    let mut database = 0;
    while let Some(item) = reader.next().map_err(|error| unreadable(path, &error))? {
        let is_wanted = wanted.is_none_or(|wanted| wanted == database);
        match item {
            Item::Database(number) => database = number,
            Item::Entry(_) => survey.keys += u64::from(is_wanted),
            Item::Unsupported(Unsupported::Value { .. }) if !is_wanted => {}
            Item::Unsupported(what) => {
                survey.unsupported += 1;
                let first = &mut survey.first_unsupported;
                first.get_or_insert_with(|| describe(&what, database));
            }
            Item::Fact { .. } | Item::Sizes { .. } => {}
        }
        bar.set_position(reader.offset());
    }
    bar.finish_and_clear();
    Ok(survey)
}

fn describe(what: &Unsupported<'_>, database: u64) -> String {
    match what {
        Unsupported::Value { key, kind } => format!(
            "key {} in database {database} is a {kind}, and only strings are supported",
            quoted(key)
        ),
        Unsupported::Function(name) => {
            format!("it holds the function library '{name}', and functions are not supported")
        }
        Unsupported::Module(name) => {
            format!("it holds data of the module '{name}', and modules are not supported")
        }
    }
}

fn open(path: &Path, what: &'static str) -> Result<(Reader<File>, ProgressBar)> {
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (facts, file) = opened.map_err(|error| wrong(path, &error))?;
    if !facts.is_file() {
        return Err(Failure::Other(format!(
            "{}: this is no file, which has to be read twice",
            path.display()
        )));
    }
    let mut reader = Reader::new(file, true).map_err(|error| unreadable(path, &error))?;
    reader.pass_unsupported();
    let bar = bar(
        facts.len(),
        "{msg} {bytes}/{total_bytes} [{wide_bar}] {binary_bytes_per_sec}, {eta} left",
    );
    bar.set_message(what);
    Ok((reader, bar))
}

fn unreadable(path: &Path, error: &rdb::Error) -> Failure {
    Failure::Other(format!("{}: {error}", path.display()))
}

/// How a SET says when its key expires.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Nothing that expires was written yet.
    Unknown,
    /// At a point in time: PXAT, which servers know since Redis 6.2.
    Time,
    /// After so many milliseconds: PX.
    Span,
}

/// A key that was sent, until its reply comes.
struct Sent {
    key: Vec<u8>,
    database: u64,
}

struct Import {
    connection: Connection,
    keeps_existing: bool,
    form: Form,
    /// Of the keys that come.
    database: u64,
    /// How many databases there were so far.
    databases: u64,
    /// In the order of their replies; the last `batch_keys` of them are not on their way yet.
    waiting: VecDeque<Sent>,
    batch_keys: usize,
    batch_bytes: usize,
    /// Keys that the server refused, and why.
    refusals: Vec<(Sent, String)>,
    written: u64,
    kept: u64,
    expired: u64,
}

impl Import {
    /// Reads the file again and writes what it holds.
    fn file(&mut self, path: &Path, wanted: Option<u64>) -> Result {
        let (mut reader, bar) = open(path, "importing")?;
        let (mut database, mut selected) = (0, None);
        while let Some(item) = reader.next().map_err(|error| unreadable(path, &error))? {
            match item {
                Item::Database(number) => database = number,
                Item::Entry(entry) if wanted.is_none_or(|wanted| wanted == database) => {
                    if selected != Some(database) {
                        self.select(database)?;
                        selected = Some(database);
                    }
                    self.put(entry.key, entry.value, entry.attributes)?;
                }
                _ => {}
            }
            if !self.refusals.is_empty() {
                break;
            }
            bar.set_position(reader.offset());
        }
        bar.finish_and_clear();
        self.drain()
    }

    fn select(&mut self, database: u64) -> Result {
        self.drain()?;
        self.database = database;
        self.databases += 1;
        self.connection
            .queue(&[b"SELECT", database.to_string().as_bytes()]);
        self.connection.flush()?;
        match self.reply()? {
            Value::Error(text) => Err(Failure::Other(format!(
                "database {database} cannot be selected: {}",
                String::from_utf8_lossy(&text)
            ))),
            _ => Ok(()),
        }
    }

    /// Sends a key, with others if there are more to come.
    fn put(&mut self, key: &[u8], value: &[u8], attributes: Attributes) -> Result {
        let now = realtime_ms();
        if attributes.expiry_ms.is_some_and(|expiry| expiry <= now) {
            self.expired += 1;
            return Ok(());
        }
        let (Some(expiry), Form::Unknown) = (attributes.expiry_ms, self.form) else {
            self.queue(key, value, attributes.expiry_ms, now);
            return self.send_if_due();
        };
        // The first key that expires shows what the server understands.
        self.drain()?;
        self.form = Form::Time;
        self.queue(key, value, Some(expiry), now);
        self.drain()?;
        let is_syntax = |(_, text): &(Sent, String)| text.starts_with("ERR syntax");
        if self.refusals.last().is_some_and(is_syntax) {
            self.refusals.pop();
            self.form = Form::Span;
            self.queue(key, value, Some(expiry), now);
        }
        Ok(())
    }

    fn queue(&mut self, key: &[u8], value: &[u8], expiry: Option<i64>, now: i64) {
        let mut digits = [0; resp::number::INTEGER_TEXT_LEN];
        let mut words: Vec<&[u8]> = vec![b"SET", key, value];
        if let Some(expiry) = expiry {
            let (word, number) = match self.form {
                Form::Span => (&b"PX"[..], expiry - now),
                _ => (&b"PXAT"[..], expiry),
            };
            words.extend([word, format_i64(number, &mut digits)]);
        }
        if self.keeps_existing {
            words.push(b"NX");
        }
        self.connection.queue(&words);
        self.waiting.push_back(Sent {
            key: key.to_vec(),
            database: self.database,
        });
        self.batch_keys += 1;
        self.batch_bytes += key.len() + value.len();
    }

    /// Sends the batch if it is full, then waits for the replies of the one before.
    fn send_if_due(&mut self) -> Result {
        if self.batch_keys < IMPORT_BATCH_KEYS && self.batch_bytes < IMPORT_BATCH_BYTES {
            return Ok(());
        }
        let sent = self.send()?;
        self.take_replies(sent)
    }

    fn send(&mut self) -> Result<usize> {
        self.connection.flush()?;
        self.batch_bytes = 0;
        Ok(std::mem::take(&mut self.batch_keys))
    }

    /// Sends what is left and waits for all replies.
    fn drain(&mut self) -> Result {
        self.send()?;
        self.take_replies(0)
    }

    /// Reads replies until only so many keys wait for theirs.
    fn take_replies(&mut self, left: usize) -> Result {
        while self.waiting.len() > left {
            let reply = self.reply()?;
            let sent = self.waiting.pop_front().expect("it was just there");
            match reply {
                Value::Error(text) => {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    self.refusals.push((sent, text));
                }
                Value::Null => self.kept += 1,
                _ => self.written += 1,
            }
        }
        Ok(())
    }

    fn reply(&mut self) -> Result<Value> {
        loop {
            match self.connection.read(None)? {
                Value::Push(_) => {}
                reply => return Ok(reply),
            }
        }
    }

    /// Says what came of it.
    fn tell(&self, survey: &Survey, result: Result) -> Result {
        let so_far = || format!("{} of {} keys were written", self.written, survey.keys);
        if let Err(failure) = result {
            let place = match self.waiting.front() {
                Some(Sent { key, database }) => {
                    format!("key {} in database {database}: ", quoted(key))
                }
                None => String::new(),
            };
            let unknown = match self.waiting.len() {
                0 => String::new(),
                1 => ", 1 other may be".to_owned(),
                sent => format!(", {sent} others may be"),
            };
            let so_far = so_far();
            return Err(Failure::Other(format!(
                "{place}{failure}\n{so_far}{unknown}"
            )));
        }
        for (Sent { key, database }, text) in self.refusals.iter().take(REFUSALS_SHOWN) {
            eprintln!("key {} in database {database}: {text}", quoted(key));
        }
        if !self.refusals.is_empty() {
            let more = self.refusals.len().saturating_sub(REFUSALS_SHOWN);
            if more > 0 {
                eprintln!("... and {more} more");
            }
            return Err(Failure::Other(so_far()));
        }
        let mut text = format!(
            "{} written to {}",
            count(self.written, "key"),
            count(self.databases, "database")
        );
        for (number, what) in [
            (self.kept, "left alone that the server had"),
            (self.expired, "left out that had expired"),
            (survey.unsupported, "left out that are not supported"),
        ] {
            if number > 0 {
                text.push_str(&format!(", {number} {what}"));
            }
        }
        Ok(writeln!(io::stdout(), "{text}")?)
    }
}
