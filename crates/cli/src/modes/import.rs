//! `import FILE`: the keys of an RDB file, as SETs, to any server that speaks the Redis protocol.
//!
//! The file is read twice: first to find out whether it is whole and holds nothing that cannot be written,
//! then to write. Requests go out a batch at a time, and the next batch goes out before the replies of the
//! last are read, so that neither side waits. The first key that the server refuses is the end. With `-c`
//! each key goes to its node of a cluster ([`lanes`]).

mod lanes;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use indicatif::ProgressBar;
use rdb::{Attributes, Item, Reader, Unsupported};
use resp::cluster::Redirection;
use resp::{Value, format_i64};
use sys::clock::realtime_ms;

use super::file::{bar, wrong};
use crate::access::Access;
use crate::amounts::count;
use crate::failure::{Failure, Result};
use crate::flags::Options;
use crate::format::quoted;
use crate::limits::{IMPORT_BATCH_BYTES, IMPORT_BATCH_KEYS, MAX_REDIRECTIONS, REFUSALS_SHOWN};
use lanes::{Astray, Lanes, Sent};

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
    let lanes = Lanes::open(access, options.is_verbose)?;
    if lanes.is_cluster() && survey.keys > survey.keys_in_first {
        let they = match survey.keys - survey.keys_in_first {
            1 => "1 key is in another database".to_owned(),
            keys => format!("{keys} keys are in other databases"),
        };
        return Err(Failure::Other(format!(
            "{}: {they} than 0, which a cluster does not have. Nothing was written; -n 0 imports the others.",
            path.display()
        )));
    }
    let mut import = Import {
        lanes,
        keeps_existing: options.keeps_existing,
        form: Form::Unknown,
        database: 0,
        databases: 0,
        astray: VecDeque::new(),
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
    /// Those in database 0.
    keys_in_first: u64,
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
            Item::Entry(_) => {
                survey.keys += u64::from(is_wanted);
                survey.keys_in_first += u64::from(is_wanted && database == 0);
            }
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

struct Import {
    lanes: Lanes,
    keeps_existing: bool,
    form: Form,
    /// Of the keys that come.
    database: u64,
    /// How many databases there were so far.
    databases: u64,
    /// Keys that have to be sent to another node of a cluster.
    astray: VecDeque<Astray>,
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
        if self.lanes.is_cluster() {
            // It has one, which is selected.
            return Ok(());
        }
        let lane = &mut self.lanes.all[0];
        lane.queue(&[b"SELECT", database.to_string().as_bytes()]);
        lane.send()?;
        match lane.reply()? {
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
            let at = self.queue(key, value, attributes.expiry_ms, now);
            return self.send_if_due(at);
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

    /// Adds a key to a batch. Returns the lane of it.
    fn queue(&mut self, key: &[u8], value: &[u8], expiry: Option<i64>, now: i64) -> usize {
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
        let request = match self.lanes.is_cluster() {
            true => words.iter().map(|word| word.to_vec()).collect(),
            false => Vec::new(),
        };
        let at = self.lanes.of(key);
        let lane = &mut self.lanes.all[at];
        lane.queue(&words);
        lane.waiting.push_back(Sent {
            key: key.to_vec(),
            database: self.database,
            request,
        });
        lane.batch_keys += 1;
        lane.batch_bytes += key.len() + value.len();
        at
    }

    /// Sends the batch of a lane if it is full, then waits for the replies of the one before.
    fn send_if_due(&mut self, at: usize) -> Result {
        let lane = &mut self.lanes.all[at];
        if lane.batch_keys < IMPORT_BATCH_KEYS && lane.batch_bytes < IMPORT_BATCH_BYTES {
            return Ok(());
        }
        let sent = lane.send();
        let sent = self.lanes.at_node(at, sent)?;
        self.take_replies(at, sent)?;
        self.redirect()
    }

    /// Sends what is left and waits for all replies.
    fn drain(&mut self) -> Result {
        for at in 0..self.lanes.all.len() {
            self.drain_lane(at)?;
        }
        self.redirect()
    }

    fn drain_lane(&mut self, at: usize) -> Result {
        let sent = self.lanes.all[at].send();
        self.lanes.at_node(at, sent)?;
        self.take_replies(at, 0)
    }

    /// Reads replies of a lane until only so many keys wait for theirs.
    fn take_replies(&mut self, at: usize, left: usize) -> Result {
        while self.lanes.all[at].waiting.len() > left {
            let lane = &mut self.lanes.all[at];
            let reply = lane.reply();
            let reply = self.lanes.at_node(at, reply)?;
            let sent = self.lanes.all[at].waiting.pop_front();
            self.note(sent.expect("it was just there"), at, reply, 0);
        }
        Ok(())
    }

    /// Takes the reply to a key that was sent on so often.
    fn note(&mut self, sent: Sent, from: usize, reply: Value, count: u32) {
        let text = match reply {
            Value::Error(text) => text,
            Value::Null => return self.kept += 1,
            _ => return self.written += 1,
        };
        match Redirection::parse(&text) {
            Some(target) if self.lanes.is_cluster() && count < MAX_REDIRECTIONS => {
                self.astray.push_back(Astray {
                    sent,
                    from,
                    target,
                    count,
                });
            }
            _ => {
                let text = String::from_utf8_lossy(&text).into_owned();
                self.refusals.push((sent, text));
            }
        }
    }

    /// Sends keys to the nodes that others have named, one after the other.
    fn redirect(&mut self) -> Result {
        while let Some(key) = self.astray.pop_front() {
            let at = self.lanes.follow(key.from, &key.target)?;
            self.drain_lane(at)?;
            let reply = self.lanes.all[at].ask(&key.sent.request, key.target.is_once);
            let reply = self.lanes.at_node(at, reply)?;
            self.note(key.sent, at, reply, key.count + 1);
        }
        Ok(())
    }

    /// Says what came of it.
    fn tell(&self, survey: &Survey, result: Result) -> Result {
        let so_far = || format!("{} of {} keys were written", self.written, survey.keys);
        if let Err(failure) = result {
            let waiting = || self.lanes.all.iter().flat_map(|lane| &lane.waiting);
            let place = match waiting().next() {
                Some(Sent { key, database, .. }) if !self.lanes.is_cluster() => {
                    format!("key {} in database {database}: ", quoted(key))
                }
                _ => String::new(),
            };
            let unknown = match waiting().count() {
                0 => String::new(),
                1 => ", 1 other may be".to_owned(),
                sent => format!(", {sent} others may be"),
            };
            let so_far = so_far();
            return Err(Failure::Other(format!(
                "{place}{failure}\n{so_far}{unknown}"
            )));
        }
        for (Sent { key, database, .. }, text) in self.refusals.iter().take(REFUSALS_SHOWN) {
            eprintln!("key {} in database {database}: {text}", quoted(key));
        }
        if !self.refusals.is_empty() {
            let more = self.refusals.len().saturating_sub(REFUSALS_SHOWN);
            if more > 0 {
                eprintln!("... and {more} more");
            }
            return Err(Failure::Other(so_far()));
        }
        let place = match self.lanes.is_cluster() {
            true => count(self.lanes.all.len() as u64, "node"),
            false => count(self.databases, "database"),
        };
        let mut text = format!("{} written to {place}", count(self.written, "key"));
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
