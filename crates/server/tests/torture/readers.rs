//! Connections that wait for the entries of a stream: XREAD and XREADGROUP with BLOCK 0, beside all else.
//!
//! The stream is in a database of its own, which only this writes, and FLUSHALL empties. Its entries have
//! numbers in the order in which they are sent, without a wait for the replies. Each reply that ends a wait
//! is held against that:
//!
//! 1. Entries that are served were sent, and their IDs ascend with their numbers.
//! 2. None is passed over between those that are served, unless it was deleted or refused.
//! 3. No entry of the group is served to two readers; all that are served are pending for their reader, also
//!    after a kill, and others are pending only for readers that were cut off.
//! 4. A wait ends without entries only by CLIENT UNBLOCK as its reply says, or because the stream has gone.
//! 5. `queue settle`: no reader waits while there is something for it.

mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, Value, encode_request};
use crate::torture::lives::Rule;
use crate::torture::model::DATABASES;
use crate::torture::process::Process;
use crate::torture::run::{Find, Runner};
use crate::torture::streams::{self, Id};
use crate::torture::wire::{Connection, Silence};

/// How many wait at most.
const READERS: usize = 4;
/// A number that a script gives to a reader, from which on it takes two entries at a time.
const TAKES_TWO: usize = 4;
/// Requests are answered so while the server loads.
const LOADING: &[u8] = b"LOADING ";

/// An entry that was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    id: Option<Id>,
    /// It was acknowledged.
    is_there: bool,
    /// It was deleted, or refused.
    is_gone: bool,
}

/// A request that waits.
#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    is_group: bool,
    /// The number of the first entry that it may be served, and whether that one has to be.
    from: usize,
    is_exact: bool,
    /// CLIENT UNBLOCK has ended it, with an error or without.
    unblocked: Option<bool>,
    /// The stream may have gone since.
    may_end: bool,
}

#[derive(Default)]
struct Reader {
    connection: Option<Connection>,
    id: i64,
    wait: Option<Wait>,
    /// The number after the last one that it was served: of XREAD, and of the group.
    next: usize,
    next_of_group: usize,
    /// A wait of it was cut off: the group may have given it something.
    was_cut: bool,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Readers {
    writer: Option<Connection>,
    readers: Vec<Reader>,
    sent: Vec<Sent>,
    unanswered: VecDeque<usize>,
    /// The readers of entries of the group.
    hands: BTreeMap<usize, usize>,
    /// FLUSHALL was sent.
    is_flushed: bool,
    /// So many were sent before the server loaded all keys anew.
    sent_before_load: usize,
}

type Outcome<T = ()> = Result<T, String>;

fn silent(silence: Silence) -> String {
    format!("a connection of the queue: {silence:?}")
}

fn ask(connection: &mut Connection, words: &str) -> Outcome<Value> {
    connection.ask(words, PATIENCE).map_err(silent)
}

fn connect(process: &Process, clock: &Arc<AtomicU64>) -> Outcome<Connection> {
    let connection = process.connect(true, clock);
    let mut connection = connection.map_err(|error| error.to_string())?;
    ask(&mut connection, &format!("SELECT {DATABASES}"))?;
    Ok(connection)
}

/// The IDs and numbers of entries that were served.
fn served(reply: &Value) -> Option<Vec<(Id, usize)>> {
    let array = |value: &Value| match value {
        Value::Array(items) => Some(items.clone()),
        _ => None,
    };
    let [stream] = &array(reply)?[..] else {
        return None;
    };
    let entries = array(array(stream)?.get(1)?)?;
    let pairs = entries.iter().map(|entry| {
        let (id, texts) = streams::entry_of(entry)?;
        Some((id, number_of(&texts)?))
    });
    pairs.collect()
}

fn number_of(texts: &[Vec<u8>]) -> Option<usize> {
    str::from_utf8(texts.get(1)?).ok()?.parse().ok()
}

impl Readers {
    /// Connects, and makes the stream.
    fn begin(&mut self, process: &Process, clock: &Arc<AtomicU64>) -> Outcome {
        *self = Readers::default();
        let mut writer = connect(process, clock)?;
        ask(&mut writer, "DEL q")?;
        ask(&mut writer, "XGROUP CREATE q g $ MKSTREAM")?;
        self.writer = Some(writer);
        for _ in 0..READERS {
            let mut reader = Reader::default();
            reader.connect(process, clock)?;
            self.readers.push(reader);
        }
        Ok(())
    }

    fn ask(&mut self, words: &str) -> Outcome<Value> {
        self.settle_writer()?;
        let writer = self.writer.as_mut().ok_or("there is no writer")?;
        ask(writer, words)
    }

    fn act(
        &mut self,
        process: &Process,
        clock: &Arc<AtomicU64>,
        verb: &str,
        number: usize,
    ) -> Outcome {
        if self.writer.is_none() {
            self.begin(process, clock)?;
        }
        if self.is_flushed {
            self.renew()?;
        }
        let reader = number % READERS;
        match verb {
            "add" => self.add(number),
            "group" | "read" | "newest" => self.wait(reader, verb, number >= TAKES_TWO),
            "unblock" => self.unblock(reader, number >= READERS)?,
            "kill" => self.kill(reader, process, clock)?,
            "delete" => self.delete()?,
            "drop" => self.renew()?,
            _ => self.settle()?,
        }
        self.poll()
    }

    fn add(&mut self, count: usize) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        for _ in 0..=count {
            let number = self.sent.len();
            let text = number.to_string();
            writer.send_bytes(&encode_request(&["XADD", "q", "*", "n", &text]));
            self.sent.push(Sent::default());
            self.unanswered.push_back(number);
        }
    }

    fn wait(&mut self, at: usize, verb: &str, takes_two: bool) {
        let reader = &mut self.readers[at];
        let (Some(connection), None) = (&mut reader.connection, reader.wait) else {
            return;
        };
        let mut wait = Wait::default();
        let count = if takes_two { "COUNT 2 " } else { "" };
        let words = if verb == "group" {
            wait.is_group = true;
            wait.from = reader.next_of_group;
            format!("XREADGROUP GROUP g r{at} {count}BLOCK 0 STREAMS q >")
        } else if verb == "read" {
            wait.is_exact = true;
            wait.from = reader.next;
            let before = reader.next.checked_sub(1).and_then(|at| self.sent[at].id);
            let before = before.unwrap_or_default().text();
            format!("XREAD {count}BLOCK 0 STREAMS q {before}")
        } else {
            wait.from = self.sent.len() - self.unanswered.len();
            "XREAD BLOCK 0 STREAMS q $".to_owned()
        };
        let words: Vec<&str> = words.split_whitespace().collect();
        connection.send_bytes(&encode_request(&words));
        reader.wait = Some(wait);
    }

    /// Takes note of the ID of an entry.
    fn learn(&mut self, number: usize, id: Id) -> Outcome {
        let sent = self.sent.get(number).copied();
        let sent = sent.ok_or_else(|| format!("nobody sent entry {number}"))?;
        let mut before = self.sent[..number].iter().rev();
        let before = before.find_map(|sent| sent.id).unwrap_or_default();
        let next = self.sent[number + 1..].iter().find_map(|sent| sent.id);
        let is_between = before < id && id < next.unwrap_or(Id::MAX);
        if sent.id.is_some_and(|known| known != id) || !is_between {
            return Err(format!(
                "entry {number} has ID {id:?}: {before:?}, {sent:?}, {next:?}"
            ));
        }
        self.sent[number].id = Some(id);
        Ok(())
    }

    fn take_added(&mut self, reply: &Value) -> Outcome {
        let number = self.unanswered.pop_front().ok_or("a reply to nothing")?;
        let may_load = number < self.sent_before_load;
        match (Id::of(reply), reply) {
            (Some(id), _) => {
                self.sent[number].is_there = true;
                self.learn(number, id)
            }
            (None, Value::Error(text))
                if text.starts_with(b"OOM") || may_load && text.starts_with(LOADING) =>
            {
                self.sent[number].is_gone = true;
                Ok(())
            }
            _ => Err(format!("XADD is answered {reply:?}")),
        }
    }

    /// Takes the reply that ends a wait.
    fn take_served(&mut self, at: usize, reply: &Value) -> Outcome {
        let wrong = |wait: Wait| format!("reader {at}, {wait:?}, is answered {reply:.300?}");
        let wait = self.readers[at].wait.take();
        let wait = wait.ok_or_else(|| format!("reader {at} waits for nothing: {reply:?}"))?;
        let starts = |text: &[u8], start: &str| text.starts_with(start.as_bytes());
        let has_ended = match reply {
            Value::Null | Value::NullArray | Value::NullBulk => wait.unblocked == Some(false),
            Value::Error(text) if starts(text, "UNBLOCKED client") => wait.unblocked == Some(true),
            Value::Error(text) if text.starts_with(LOADING) => wait.may_end,
            Value::Error(text) if starts(text, "UNBLOCKED") || starts(text, "NOGROUP") => {
                wait.is_group && wait.may_end
            }
            _ => false,
        };
        if has_ended {
            return Ok(());
        }
        let entries = served(reply).filter(|entries| !entries.is_empty());
        let entries = entries.filter(|_| wait.unblocked.is_none());
        let entries = entries.ok_or_else(|| wrong(wait))?;
        let mut next = wait.is_exact.then_some(wait.from);
        for (id, number) in entries {
            self.learn(number, id)?;
            let skipped = next.unwrap_or(number)..number;
            let is_passed_over = |sent: &Sent| sent.is_there && !sent.is_gone;
            let is_behind = number < next.unwrap_or(wait.from);
            if is_behind || self.sent[skipped].iter().any(is_passed_over) {
                return Err(format!("{number}, and not {next:?}: {}", wrong(wait)));
            }
            next = Some(number + 1);
            if wait.is_group
                && let Some(other) = self.hands.insert(number, at)
            {
                return Err(format!("reader {other} has {number}: {}", wrong(wait)));
            }
        }
        let reader = &mut self.readers[at];
        match wait.is_group {
            true => reader.next_of_group = next.unwrap_or_default(),
            false => reader.next = next.unwrap_or_default(),
        }
        Ok(())
    }

    /// Takes the replies that are there.
    fn poll(&mut self) -> Outcome {
        while !self.unanswered.is_empty()
            && let Some(writer) = &mut self.writer
        {
            match writer.receive(Duration::ZERO) {
                Ok(reply) => self.take_added(&reply.value)?,
                Err(Silence::TimedOut) => break,
                Err(silence) => return Err(silent(silence)),
            }
        }
        for at in 0..self.readers.len() {
            self.receive(at, Duration::ZERO)?;
        }
        Ok(())
    }

    /// Takes the reply to a reader, if it waits for one and one comes.
    fn receive(&mut self, at: usize, patience: Duration) -> Outcome<bool> {
        let reader = &mut self.readers[at];
        let (Some(connection), Some(_)) = (&mut reader.connection, reader.wait) else {
            return Ok(true);
        };
        match connection.receive(patience) {
            Ok(reply) => self.take_served(at, &reply.value).map(|()| true),
            Err(Silence::TimedOut) => Ok(false),
            Err(silence) => Err(format!("reader {at}: {}", silent(silence))),
        }
    }

    fn settle_writer(&mut self) -> Outcome {
        while !self.unanswered.is_empty()
            && let Some(writer) = &mut self.writer
        {
            let reply = writer.receive(PATIENCE).map_err(silent)?;
            self.take_added(&reply.value)?;
        }
        Ok(())
    }

    /// A reader that waits while there is something for it.
    fn forgotten(&self) -> Option<usize> {
        let mut readers = self.readers.iter();
        readers.position(|reader| {
            let Some(wait) = reader.wait.filter(|wait| wait.is_group || wait.is_exact) else {
                return false;
            };
            let mut sent = self.sent.iter().enumerate();
            sent.any(|(number, sent)| {
                let is_for_it = match wait.is_group {
                    true => !self.hands.contains_key(&number),
                    false => number >= wait.from,
                };
                is_for_it && sent.is_there && !sent.is_gone
            })
        })
    }

    fn settle(&mut self) -> Outcome {
        self.settle_writer()?;
        let begun = Instant::now();
        loop {
            self.poll()?;
            let Some(at) = self.forgotten() else {
                break;
            };
            if begun.elapsed() > PATIENCE {
                let wait = self.readers[at].wait;
                return Err(format!(
                    "reader {at} waits on, {wait:?}, of {:?}",
                    self.sent
                ));
            }
            sleep(Duration::from_millis(1));
        }
        let stream = self.ask("XINFO STREAM q FULL COUNT 0")?;
        self.check(&stream)
    }

    fn unblock(&mut self, at: usize, has_error: bool) -> Outcome {
        if self.readers[at].wait.is_none() {
            return Ok(());
        }
        let how = if has_error { "ERROR" } else { "TIMEOUT" };
        let id = self.readers[at].id;
        // It may not have begun to wait, or be served.
        if self.ask(&format!("CLIENT UNBLOCK {id} {how}"))? == Value::Int(1) {
            let wait = &mut self.readers[at].wait;
            wait.as_mut().expect("it waits").unblocked = Some(has_error);
            if !self.receive(at, PATIENCE)? {
                return Err(format!("reader {at} waits on after CLIENT UNBLOCK"));
            }
        }
        Ok(())
    }

    /// The connection of a reader is closed, and another one takes its place.
    fn kill(&mut self, at: usize, process: &Process, clock: &Arc<AtomicU64>) -> Outcome {
        let id = self.readers[at].id;
        self.ask(&format!("CLIENT KILL ID {id}"))?;
        self.readers[at].was_cut = true;
        self.drain_reader(at)?;
        let (begun, its) = (Instant::now(), format!("id={id} "));
        let is_it = |line: &str| line.starts_with(&its);
        while self.ask("CLIENT LIST")?.text().lines().any(is_it) {
            if begun.elapsed() > PATIENCE {
                return Err(format!("reader {at} was closed, and does not go"));
            }
            sleep(Duration::from_millis(1));
        }
        let stream = self.ask("XINFO STREAM q FULL COUNT 0")?;
        self.check(&stream)?;
        self.readers[at].was_cut = false;
        self.readers[at].connect(process, clock)
    }

    /// Deletes the last entry.
    fn delete(&mut self) -> Outcome {
        self.settle_writer()?;
        let there = self.sent.iter_mut().rev();
        let mut there = there.filter(|sent| sent.is_there && !sent.is_gone);
        let Some((sent, id)) = there
            .find_map(|sent| Some((sent.id?, sent)))
            .map(|it| (it.1, it.0))
        else {
            return Ok(());
        };
        sent.is_gone = true;
        match self.ask(&format!("XDEL q {}", id.text()))? {
            Value::Int(1) => Ok(()),
            other => Err(format!("XDEL is answered {other:?}")),
        }
    }

    /// Deletes the stream, which ends all waits, and makes another one.
    fn renew(&mut self) -> Outcome {
        let waits = self
            .readers
            .iter_mut()
            .filter_map(|reader| reader.wait.as_mut());
        waits.for_each(|wait| wait.may_end = true);
        self.ask("DEL q")?;
        for at in 0..READERS {
            let begun = Instant::now();
            while let Some(wait) = self.readers[at].wait {
                if begun.elapsed() > PATIENCE {
                    return Err(format!(
                        "reader {at} waits on, {wait:?}, and the stream is gone"
                    ));
                }
                if !wait.is_group {
                    self.unblock(at, false)?;
                }
                self.receive(at, Duration::from_millis(5))?;
            }
            (self.readers[at].next, self.readers[at].next_of_group) = (0, 0);
        }
        self.sent.clear();
        self.sent_before_load = 0;
        self.hands.clear();
        self.is_flushed = false;
        match self.ask("XGROUP CREATE q g $ MKSTREAM")? {
            Value::Error(text) if !text.starts_with(b"OOM") => {
                Err(format!("XGROUP: {}", text.escape_ascii()))
            }
            _ => Ok(()),
        }
    }

    /// Compares the stream with all that is known of it.
    fn check(&mut self, reply: &Value) -> Outcome {
        let stream = streams::decode(reply)?;
        let mut found = vec![false; self.sent.len()];
        for (&id, texts) in &stream.entries {
            let number = number_of(texts).ok_or("an entry without a number")?;
            self.learn(number, id)?;
            found[number] = true;
        }
        for (number, sent) in self.sent.iter().enumerate() {
            if sent.is_there && sent.is_gone == found[number] {
                return Err(format!(
                    "entry {number} is there: {}; {sent:?}",
                    found[number]
                ));
            }
        }
        let group = stream.groups.get(&b"g"[..]).ok_or("the group is gone")?;
        let mut pending = BTreeMap::new();
        for (&id, its) in &group.pending {
            let number = self.sent.iter().position(|sent| sent.id == Some(id));
            let number = number.ok_or_else(|| format!("{id:?} is pending"))?;
            let mut names = (0..READERS).map(|at| format!("r{at}").into_bytes());
            let at = names.position(|name| name == its.consumer);
            pending.insert(number, at.ok_or("a consumer that is none")?);
        }
        for (number, at) in &self.hands {
            if pending.get(number) != Some(at) {
                let owner = pending.get(number);
                return Err(format!("{number} was served to {at}, and is of {owner:?}"));
            }
        }
        for (number, at) in pending {
            let reader = &self.readers[at];
            let is_served = self.hands.contains_key(&number);
            if !is_served && reader.was_cut {
                self.hands.insert(number, at);
            } else if !is_served && !reader.wait.is_some_and(|wait| wait.is_group) {
                return Err(format!("{number} is pending for {at}, and was not served"));
            }
        }
        Ok(())
    }

    /// Takes the last replies to a reader that is closed.
    fn drain_reader(&mut self, at: usize) -> Outcome {
        let connection = self.readers[at].connection.take();
        if let (Some(mut connection), Some(_)) = (connection, self.readers[at].wait)
            && let Ok(reply) = connection.receive(PATIENCE)
            // Waits end so, too, when the server does.
            && !matches!(reply.value, Value::Error(_))
        {
            self.readers[at].was_cut = false;
            self.take_served(at, &reply.value)?;
        }
        self.readers[at].wait = None;
        Ok(())
    }

    /// The server has ended: takes all that arrives.
    pub(crate) fn drain(&mut self) -> Outcome {
        let writer = self.writer.take();
        if let Some(mut writer) = writer {
            while !self.unanswered.is_empty()
                && let Ok(reply) = writer.receive(PATIENCE)
            {
                self.take_added(&reply.value)?;
            }
        }
        self.unanswered.clear();
        for at in 0..self.readers.len() {
            self.readers[at].was_cut = self.readers[at].wait.is_some();
            self.drain_reader(at)?;
        }
        Ok(())
    }

    /// FLUSHALL is on its way.
    pub(crate) fn note_flush(&mut self) {
        self.is_flushed = self.writer.is_some();
        self.note_reload();
        // Entries before the next one may go.
        let waits = self
            .readers
            .iter_mut()
            .filter_map(|reader| reader.wait.as_mut());
        waits.for_each(|wait| wait.is_exact = false);
    }

    /// The server is about to load all keys anew.
    pub(crate) fn note_reload(&mut self) {
        self.sent_before_load = self.sent.len();
        let waits = self
            .readers
            .iter_mut()
            .filter_map(|reader| reader.wait.as_mut());
        waits.for_each(|wait| wait.may_end = true);
    }
}

impl Reader {
    fn connect(&mut self, process: &Process, clock: &Arc<AtomicU64>) -> Outcome {
        let mut connection = connect(process, clock)?;
        self.id = match ask(&mut connection, "CLIENT ID")? {
            Value::Int(id) => id,
            other => return Err(format!("CLIENT ID answers {other:?}")),
        };
        self.connection = Some(connection);
        self.wait = None;
        Ok(())
    }
}

impl Runner {
    /// Something about the stream for which connections wait.
    pub(crate) fn queue(&mut self, verb: &str, number: usize) -> Result<(), Find> {
        self.need_server()?;
        if self.is_cluster() || self.life.may_refuse() || self.life.is_stuck {
            return Ok(());
        }
        if self.readers.is_flushed {
            self.settle()?;
        }
        let done = self.readers.act(&self.process, &self.clock, verb, number);
        done.map_err(|text| Find::new("queue", format!("{verb} {number}: {text}")))
    }

    /// Looks at the stream after a start that has lost nothing. The next line about it begins anew.
    pub(crate) fn look_at_queue(&mut self, rule: Rule) -> Result<(), Find> {
        let mut readers = std::mem::take(&mut self.readers);
        if readers.sent.is_empty() || readers.is_flushed || rule != Rule::KeepsAll {
            return Ok(());
        }
        let done = connect(&self.process, &self.clock).and_then(|mut connection| {
            let stream = ask(&mut connection, "XINFO STREAM q FULL COUNT 0")?;
            readers.check(&stream)
        });
        done.map_err(|text| Find::new("queue", format!("after a start: {text}")))
    }
}
