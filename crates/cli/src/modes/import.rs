//! `import FILE`: the keys of an RDB file, as SETs and HSETs, to any server that speaks the Redis protocol.
//!
//! The file is read twice: first to find out whether it is whole and can be written ([`survey`]), then to
//! write. Requests go out a batch at a time, and the next batch goes out before the replies of the
//! last are read, so that neither side waits. The first key that the server refuses is the end. With `-c`
//! each key goes to its node of a cluster ([`lanes`]). A collection goes in several requests
//! ([`collection`]), a stream with its groups first ([`stream`]): the first reading finds where they are.

mod collection;
mod lanes;
mod stream;
mod survey;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rdb::{Attributes, Collection as Kind, Element, GroupsPlace, Item, Typed};
use resp::cluster::Redirection;
use resp::{Value, format_i64};
use sys::clock::realtime_ms;

use super::file::wrong;
use crate::access::Access;
use crate::amounts::count;
use crate::failure::{Failure, Result};
use crate::flags::Options;
use crate::format::quoted;
use crate::limits::{IMPORT_BATCH_BYTES, IMPORT_BATCH_KEYS, MAX_REDIRECTIONS, REFUSALS_SHOWN};
use collection::Collection;
use lanes::{Astray, Lanes, Sent};
use stream::Stream;
use survey::{Survey, open, survey, unreadable};

pub(super) fn run(options: &Options, path: &Path) -> Result {
    let wanted = options
        .access
        .is_database_chosen
        .then_some(options.access.database);
    let mut survey = survey(path, wanted)?;
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
        path,
        lanes,
        groups: std::mem::take(&mut survey.groups),
        keeps_existing: options.keeps_existing,
        form: Form::Unknown,
        database: 0,
        databases: 0,
        astray: VecDeque::new(),
        open: None,
        refusals: Vec::new(),
        written: 0,
        kept: 0,
        expired: 0,
        libraries: 0,
        kept_libraries: 0,
    };
    let result = import.file(wanted);
    import.tell(&survey, result)
}

fn are(number: u64) -> String {
    if number == 1 {
        "is 1".to_owned()
    } else {
        format!("are {number}")
    }
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

struct Import<'a> {
    path: &'a Path,
    lanes: Lanes,
    /// Where the groups of the streams are that have not begun.
    groups: VecDeque<GroupsPlace>,
    keeps_existing: bool,
    form: Form,
    /// Of the keys that come.
    database: u64,
    /// How many databases there were so far.
    databases: u64,
    /// Keys that have to be sent to another node of a cluster.
    astray: VecDeque<Astray>,
    /// The collection that is being read from the file, if it is to be written.
    open: Option<Collection>,
    /// Keys that the server refused, and why.
    refusals: Vec<(Sent, String)>,
    written: u64,
    kept: u64,
    expired: u64,
    /// Libraries of functions that were loaded, and those that the server had.
    libraries: u64,
    kept_libraries: u64,
}

impl Import<'_> {
    /// Reads the file again and writes what it holds.
    fn file(&mut self, wanted: Option<u64>) -> Result {
        let path = self.path;
        let (mut reader, bar) = open(path, "importing")?;
        let (mut database, mut selected) = (0, None);
        while let Some(item) = reader.next().map_err(|error| unreadable(path, &error))? {
            let is_wanted = wanted.is_none_or(|wanted| wanted == database);
            let is_key = matches!(item, Typed::Begin { .. } | Typed::Item(Item::Entry(_)));
            if is_key && is_wanted && selected != Some(database) {
                self.select(database)?;
                selected = Some(database);
            }
            let is_stream = matches!(
                item,
                Typed::Begin {
                    kind: Kind::Stream,
                    ..
                }
            );
            let groups = if is_stream {
                self.groups.pop_front()
            } else {
                None
            };
            match item {
                Typed::Item(Item::Database(number)) => database = number,
                Typed::Item(Item::Library(text)) if wanted.is_none_or(|wanted| wanted == 0) => {
                    self.library(text)?;
                }
                Typed::Item(Item::Entry(entry)) if is_wanted => {
                    self.put(entry.key, entry.value, entry.attributes)?;
                }
                Typed::Begin {
                    key,
                    kind,
                    attributes,
                    ..
                } if is_wanted => self.begin_collection(key, kind, attributes, groups)?,
                Typed::Element(Element::Field {
                    field,
                    value,
                    expiry_ms,
                }) => self.add(|open| open.add(field, value, expiry_ms))?,
                Typed::Element(Element::String(member)) => {
                    self.add(|open| open.add_member(member))?;
                }
                Typed::Element(Element::Member { member, score }) => {
                    self.add(|open| open.add_scored(member, score))?;
                }
                Typed::Element(Element::Stream(part)) => self.add(|open| open.add_part(&part))?,
                Typed::End => self.end_collection()?,
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

    /// Adds a library of functions, on every node of a cluster. It takes the place of one of the same name,
    /// unless such ones are to be left alone.
    fn library(&mut self, text: &[u8]) -> Result {
        self.drain()?;
        let mut words = vec![b"FUNCTION".to_vec(), b"LOAD".to_vec()];
        if !self.keeps_existing {
            words.push(b"REPLACE".to_vec());
        }
        words.push(text.to_vec());
        let mut is_kept = false;
        for lane in &mut self.lanes.all {
            match lane.ask(&words, true)? {
                Value::Error(text)
                    if self.keeps_existing && text.ends_with(b"' already exists") =>
                {
                    is_kept = true;
                }
                Value::Error(text) => {
                    return Err(Failure::Other(format!(
                        "a library of functions cannot be loaded: {}",
                        String::from_utf8_lossy(&text)
                    )));
                }
                _ => {}
            }
        }
        match is_kept {
            true => self.kept_libraries += 1,
            false => self.libraries += 1,
        }
        Ok(())
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
        if self.has_expired(attributes, now) {
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

    /// Whether a key has expired, which is counted.
    fn has_expired(&mut self, attributes: Attributes, now: i64) -> bool {
        let has_expired = attributes.expiry_ms.is_some_and(|expiry| expiry <= now);
        self.expired += u64::from(has_expired);
        has_expired
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
        let at = self.lanes.begin_key(key, self.database);
        self.lanes.queue_for_key(at, &words);
        self.lanes.end_key(at);
        at
    }

    /// Begins a collection, unless it is left out.
    fn begin_collection(
        &mut self,
        key: &[u8],
        kind: Kind,
        attributes: Attributes,
        groups: Option<GroupsPlace>,
    ) -> Result {
        if self.has_expired(attributes, realtime_ms()) {
            return Ok(());
        }
        if self.keeps_existing {
            self.drain()?;
            if self.lanes.exists(key)? {
                self.kept += 1;
                return Ok(());
            }
        }
        let stream = groups.map(|place| self.stream(&place)).transpose()?;
        let at = self.lanes.begin_key(key, self.database);
        if !self.keeps_existing {
            self.lanes.queue_for_key(at, &[b"DEL", key]);
        }
        self.open = Some(Collection::new(at, kind, key, attributes.expiry_ms, stream));
        Ok(())
    }

    /// A stream with its groups, which are in this place of the file.
    fn stream(&self, place: &GroupsPlace) -> Result<Stream> {
        let file = File::open(self.path).map_err(|error| wrong(self.path, &error))?;
        let groups = place.read(file);
        let groups = groups.map_err(|error| unreadable(self.path, &error))?;
        Ok(Stream::new(groups))
    }

    /// Adds an item to the collection that was begun, if it is not left out. `add` says whether there are
    /// enough for a request.
    fn add(&mut self, add: impl FnOnce(&mut Collection) -> bool) -> Result {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if !add(open) {
            return Ok(());
        }
        open.queue_items(&mut self.lanes);
        let at = open.at;
        let sent = self.lanes.all[at].flush();
        self.lanes.at_node(at, sent)?;
        while self.take_reply(at)? {}
        self.end_refused(at);
        Ok(())
    }

    /// Ends the collection that was begun, if the server has refused a part of it. In a cluster another node
    /// may be the one to ask.
    fn end_refused(&mut self, at: usize) {
        let waiting = &self.lanes.all[at].waiting;
        let is_refused = |sent: &Sent| matches!(sent.reply, Value::Error(_));
        if waiting.back().is_some_and(is_refused) && !self.lanes.is_cluster() {
            self.open = None;
            if let Some(sent) = self.lanes.all[at].waiting.pop_back() {
                self.note(sent, at, 0);
            }
        }
    }

    /// Ends the collection that was begun.
    fn end_collection(&mut self) -> Result {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        open.queue_end(&mut self.lanes);
        self.lanes.end_key(open.at);
        self.send_if_due(open.at)
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
            if !self.take_reply(at)? {
                break;
            }
        }
        self.note_answered(at);
        Ok(())
    }

    /// Reads the next reply of a lane. `false` if the first key that waits has none to come.
    fn take_reply(&mut self, at: usize) -> Result<bool> {
        self.note_answered(at);
        let lane = &mut self.lanes.all[at];
        if lane.waiting.front().is_none_or(|sent| sent.unanswered == 0) {
            return Ok(false);
        }
        let reply = lane.reply();
        let reply = self.lanes.at_node(at, reply)?;
        let waiting = &mut self.lanes.all[at].waiting;
        let sent = waiting.front_mut().expect("it was just there");
        sent.take(reply);
        sent.unanswered -= 1;
        self.note_answered(at);
        Ok(true)
    }

    /// Takes note of the first keys of a lane for which no reply is to come. A collection may have had all
    /// its replies before it ended.
    fn note_answered(&mut self, at: usize) {
        let is_answered = |sent: &Sent| sent.is_whole && sent.unanswered == 0;
        let waiting = |import: &mut Import| {
            let waiting = &mut import.lanes.all[at].waiting;
            let is_first = waiting.front().is_some_and(is_answered);
            is_first.then(|| waiting.pop_front()).flatten()
        };
        while let Some(sent) = waiting(self) {
            self.note(sent, at, 0);
        }
    }

    /// Takes note of the replies to a key that was sent on so often.
    fn note(&mut self, sent: Sent, from: usize, count: u32) {
        let text = match &sent.reply {
            Value::Error(text) => text.clone(),
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
            let mut sent = key.sent;
            sent.reply = Value::Null;
            for request in &sent.requests {
                let reply = self.lanes.all[at].ask(request, key.target.is_once);
                let reply = self.lanes.at_node(at, reply)?;
                if !matches!(sent.reply, Value::Error(_)) {
                    sent.reply = reply;
                }
            }
            self.note(sent, at, key.count + 1);
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
        let libraries = match self.libraries {
            0 => String::new(),
            1 => " and 1 library".to_owned(),
            all => format!(" and {all} libraries"),
        };
        let mut text = format!(
            "{}{libraries} written to {place}",
            count(self.written, "key")
        );
        let kept = self.kept + self.kept_libraries;
        for (number, what) in [
            (kept, "left alone that the server had"),
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
