//! Running a script: lines against a server and the model.
//!
//! One thread sends, in the order of the script, and takes replies when a connection has as many requests
//! unanswered as the script allows (`depth`). So what was on its way when the server dies differs from run to
//! run, and all else is as the script says. A script of depth 1 has one request on its way, and runs in the
//! same order always.
//!
//! Commands that change the keys of all run while nothing else is on its way; so may a kill come between them
//! and their reply.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::sleep;
use std::time::Duration;

use crate::support::{PATIENCE, Value};
use crate::torture::history::{Deed, History, Step};
use crate::torture::lives::Rule;
use crate::torture::model::command_name;
use crate::torture::process::Process;
use crate::torture::readers::Readers;
use crate::torture::script::{Arg, Line, Request};
use crate::torture::values::Keys;
use crate::torture::wire::{Connection, Reply, Silence, encode, now_ms};

/// Connections.
pub(crate) const LANES: usize = 8;
/// Bytes of requests without an answer that a connection may have.
const UNANSWERED_BYTES_MAX: usize = 8 << 20;
/// How long a reply is waited for that a disk with trouble may keep back.
const TROUBLED_WAIT: Duration = Duration::from_millis(250);

/// Something that must not be.
#[derive(Clone, Debug)]
pub(crate) struct Find {
    /// The kind of thing, by which a shrunk script is told from one that finds something else.
    pub(crate) class: &'static str,
    pub(crate) text: String,
}

impl Find {
    pub(crate) fn new(class: &'static str, text: impl Into<String>) -> Find {
        Find {
            class,
            text: text.into(),
        }
    }

    /// Whether another find is of the same kind: of the same class, and where the server has said something,
    /// with these words.
    pub(crate) fn is_like(&self, other: &Find) -> bool {
        let words = |find: &Find| -> String {
            let text = find.text.split_once(" # ").map_or("", |(_, text)| text);
            text.chars()
                .filter(char::is_ascii_alphabetic)
                .take(24)
                .collect()
        };
        self.class == other.class && (self.class != "output" || words(self) == words(other))
    }
}

impl fmt::Display for Find {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.text)
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) starts: u64,
    pub(crate) kills: u64,
    pub(crate) answered: u64,
    pub(crate) lost: u64,
    /// How long before the server was killed the oldest of them was answered.
    pub(crate) oldest_lost_ms: u64,
    pub(crate) kept_unanswered: u64,
    pub(crate) copies: u64,
    /// Changes of a cluster's map, and requests that were refused for it.
    pub(crate) maps: u64,
    pub(crate) sent_elsewhere: u64,
    /// Scripts that were ended.
    pub(crate) killed_scripts: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} starts, {} kills, {} requests answered, {} lost as they may be (the oldest {} ms old), \
             {} there without an answer, {} copies opened",
            self.starts,
            self.kills,
            self.answered,
            self.lost,
            self.oldest_lost_ms,
            self.kept_unanswered,
            self.copies
        )?;
        if self.maps > 0 {
            write!(
                f,
                ", {} maps, {} requests of other slots",
                self.maps, self.sent_elsewhere
            )?;
        }
        write!(f, ", {} scripts ended", self.killed_scripts)
    }
}

/// A connection of the script.
pub(crate) struct Lane {
    pub(crate) connection: Option<Connection>,
    pub(crate) id: i64,
    pub(crate) history: History,
    /// Bytes of the requests that have no answer yet.
    pub(crate) unanswered_bytes: Vec<usize>,
    /// A transaction is open, on the sending side; keys are watched.
    pub(crate) in_multi: bool,
    pub(crate) is_watching: bool,
}

/// See the module.
pub(crate) struct Runner {
    pub(crate) process: Process,
    pub(crate) clock: Arc<AtomicU64>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) operator: Option<Connection>,
    pub(crate) options: Vec<String>,
    depth: usize,
    pub(crate) life: Life,
    /// What the last end of the server may have lost.
    pub(crate) rule: Rule,
    /// When the server was killed last, in Unix ms.
    pub(crate) killed_ms: u64,
    pub(crate) backups: HashMap<String, Vec<Keys>>,
    globals: u64,
    pub(crate) readers: Readers,
    pub(crate) totals: Totals,
}

/// What is special about this life of the server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    /// Answers mean that writes are durable.
    pub(crate) is_always: bool,
    /// Answers mean that writes are durable soon, from the start of the server on.
    pub(crate) is_everysec: bool,
    /// What is not synced is lost with the process.
    pub(crate) is_volatile: bool,
    /// The disk has, or had, trouble.
    pub(crate) has_trouble: bool,
    /// Nothing is answered, maybe for ever.
    pub(crate) is_stuck: bool,
    /// That ends when there is space again.
    pub(crate) is_full: bool,
    /// There is a limit of memory, in bytes.
    pub(crate) maxmemory: Option<u64>,
    /// The error of scripts that are ended now, which have done nothing.
    pub(crate) ended_script: Option<&'static str>,
}

/// The errors of scripts that are ended by SCRIPT KILL, and by the end of the server.
pub(crate) const SCRIPT_KILLED: &str = "ERR Script killed by user with SCRIPT KILL";
pub(crate) const SCRIPT_OF_END: &str = "ERR Error running script: the server shuts down";

impl Life {
    /// Errors that mean that a request did nothing.
    pub(crate) fn refusals(&self) -> Vec<&'static str> {
        let mut refusals = Vec::new();
        let mut add = |holds: bool, errors: &[&'static str]| {
            if holds {
                refusals.extend(errors);
            }
        };
        add(self.has_trouble, &["MISCONF"]);
        add(self.maxmemory.is_some(), &["OOM"]);
        add(self.may_refuse(), &["EXECABORT"]);
        refusals.extend(self.ended_script);
        refusals
    }

    /// Whether requests may be refused: then no more than one is on its way.
    pub(crate) fn may_refuse(&self) -> bool {
        self.has_trouble || self.maxmemory.is_some()
    }
}

impl Runner {
    pub(crate) fn new() -> Runner {
        let lane = || Lane {
            connection: None,
            id: 0,
            history: History::new(Keys::new()),
            unanswered_bytes: Vec::new(),
            in_multi: false,
            is_watching: false,
        };
        Runner {
            process: Process::new(),
            clock: Arc::default(),
            lanes: (0..LANES).map(|_| lane()).collect(),
            operator: None,
            options: Vec::new(),
            depth: 1,
            life: Life::default(),
            rule: Rule::KeepsAll,
            killed_ms: 0,
            backups: HashMap::new(),
            globals: 0,
            readers: Readers::default(),
            totals: Totals::default(),
        }
    }

    /// Runs a line.
    ///
    /// # Errors
    /// What must not be.
    pub(crate) fn line(&mut self, line: &Line) -> Result<(), Find> {
        match line {
            Line::Server(options) => self.options.clone_from(options),
            Line::Depth(depth) => self.depth = (*depth).max(1),
            Line::Request(lane, request) => self.request(lane % LANES, request)?,
            Line::Cut(lane, share, request) => self.cut(lane % LANES, *share, request)?,
            Line::Beside(lane, request) => self.beside(lane % LANES, request)?,
            Line::Queue(verb, number) => self.queue(verb, *number)?,
            Line::Kick(lane) => self.kick(lane % LANES)?,
            Line::Finish(lane) => self.finish_sending(lane % LANES)?,
            Line::Operator(request) => self.operate(request)?,
            Line::Settle => self.settle()?,
            Line::Idle => self.idle()?,
            Line::Sleep(ms) => sleep(Duration::from_millis(*ms)),
            Line::Relog => self.relog()?,
            Line::Map(slots) => self.change_map(*slots)?,
            Line::Check => self.check()?,
            Line::Verify => self.verify_running()?,
            Line::Trouble(word) => self.trouble(word)?,
            Line::Backup(name) => self.backup(name)?,
            Line::Open(name) => self.open(name)?,
            Line::Snapshot => self.snapshot()?,
            Line::Start => self.start()?,
            Line::Kill => self.kill()?,
            Line::StartKill(ms) => self.start_kill(*ms)?,
            Line::Stop => self.stop(None)?,
            Line::Shutdown(words) => self.stop(Some(&words.replace(',', " ")))?,
        }
        Ok(())
    }

    /// What every script ends with: an orderly stop, and a look at what is there.
    ///
    /// # Errors
    /// What must not be.
    pub(crate) fn finish(&mut self) -> Result<(), Find> {
        self.stop(None)?;
        self.check()?;
        self.start()?;
        self.settle()
    }

    pub(crate) fn need_server(&mut self) -> Result<(), Find> {
        if self.process.is_running() {
            Ok(())
        } else {
            self.start()
        }
    }

    fn request(&mut self, number: usize, request: &Request) -> Result<(), Find> {
        self.need_server()?;
        let depth = if self.life.may_refuse() {
            1
        } else {
            self.depth
        };
        // Only the answer to a page says where the next one begins.
        let depth = match request.contains(&Arg::Cursor) {
            true => 1,
            false => depth,
        };
        while self.lanes[number].history.pending() >= depth
            || self.lanes[number].unanswered_bytes.iter().sum::<usize>() > UNANSWERED_BYTES_MAX
        {
            if !self.pump(number)? {
                // The disk keeps the answer back: this connection waits with it.
                return Ok(());
            }
        }
        let lane = &mut self.lanes[number];
        let request = &lane.history.model.with_cursor(request);
        let name = command_name(request);
        let is_queued =
            lane.in_multi && !matches!(&name[..], "exec" | "discard" | "multi" | "watch");
        match &name[..] {
            "multi" => lane.in_multi = true,
            "exec" | "discard" => lane.in_multi = false,
            "watch" => lane.is_watching = true,
            _ => {}
        }
        let is_global = |row: &crate::torture::commands::Row| {
            matches!(row.effect, crate::torture::commands::Effect::Global(_))
        };
        let may_be_global = !is_queued
            && (name == "exec" || crate::torture::commands::row(&name).is_some_and(is_global));
        let mut globals = Vec::new();
        if may_be_global && (name != "exec" || self.has_queued_globals(number)?) {
            if self.life.is_stuck {
                return Ok(());
            }
            self.settle()?;
            let model = &self.lanes[number].history.model;
            globals = match &name[..] {
                "exec" => model.queued_globals(),
                _ => model.global(request).into_iter().collect(),
            };
        } else if self.pending_global() {
            self.settle()?;
        }
        self.send(number, request, globals);
        if self.lanes[number].is_watching && name == "exec" {
            // Its answer may tell what is not known otherwise.
            self.lanes[number].is_watching = false;
            while self.lanes[number].history.pending() > 0 && self.pump(number)? {}
        }
        Ok(())
    }

    /// Whether the transaction of a connection changes the keys of all.
    fn has_queued_globals(&mut self, number: usize) -> Result<bool, Find> {
        let is_global = |step: &Step| match &step.deed {
            Deed::Request(request) => {
                let row = crate::torture::commands::row(&command_name(request));
                row.is_some_and(|row| {
                    matches!(row.effect, crate::torture::commands::Effect::Global(_))
                })
            }
            Deed::Beside(_) | Deed::Global(..) | Deed::Reconnect => false,
        };
        let history = &self.lanes[number].history;
        let is_on_its_way = history.steps[history.answered..].iter().any(is_global);
        if is_on_its_way {
            while self.lanes[number].history.pending() > 0 && self.pump(number)? {}
        }
        Ok(!self.lanes[number].history.model.queued_globals().is_empty())
    }

    /// Whether a command that changes the keys of all has no answer yet.
    pub(crate) fn pending_global(&self) -> bool {
        let mut histories = self.lanes.iter().map(|lane| &lane.history);
        histories.any(|history| {
            let pending = &history.steps[history.answered..];
            pending.iter().any(|step| step.global.is_some())
        })
    }

    fn send(
        &mut self,
        number: usize,
        request: &Request,
        globals: Vec<crate::torture::model::Global>,
    ) {
        if globals.contains(&crate::torture::model::Global::FlushAll) {
            self.readers.note_flush();
        }
        let bytes = encode(request);
        let sent_ms = now_ms();
        let (maps, limit) = (self.maps(), self.life.maxmemory);
        let lane = &mut self.lanes[number];
        let Some(connection) = &mut lane.connection else {
            return;
        };
        lane.unanswered_bytes.push(bytes.len());
        let sent = connection.send_bytes(&bytes);
        let global = (!globals.is_empty()).then(|| {
            self.globals += 1;
            self.globals
        });
        let step = |deed| Step {
            deed,
            global,
            sent,
            sent_ms,
            answer: None,
            maps,
            limit,
        };
        let deed = Deed::Request(request.clone());
        lane.history.steps.push(step(deed));
        if global.is_some() {
            for (_, other) in self
                .lanes
                .iter_mut()
                .enumerate()
                .filter(|(index, _)| *index != number)
            {
                other
                    .history
                    .steps
                    .push(step(Deed::Global(globals.clone())));
            }
        }
    }

    /// Takes one answer. `false` if a disk with trouble keeps it back.
    pub(crate) fn pump(&mut self, number: usize) -> Result<bool, Find> {
        let wait = if self.life.is_stuck {
            TROUBLED_WAIT
        } else {
            PATIENCE
        };
        let lane = &mut self.lanes[number];
        let is_others = lane.history.steps.get(lane.history.answered);
        if matches!(
            is_others,
            Some(Step {
                deed: Deed::Global(..),
                ..
            })
        ) {
            // Whoever has asked for it waits for the answer.
            let asker = self.asker();
            return asker.map_or(Ok(false), |asker| self.pump(asker));
        }
        let Some(connection) = &mut lane.connection else {
            return Ok(false);
        };
        match connection.receive(wait) {
            Ok(reply) => self.take(number, &reply).map(|()| true),
            Err(Silence::TimedOut) if self.life.is_stuck => Ok(false),
            // Where what an answer tells of cannot be made durable, the connection is closed in its place.
            Err(Silence::Closed) if self.life.is_stuck => {
                lane.connection = None;
                Ok(false)
            }
            // A client whose replies take too much memory is closed.
            Err(Silence::Closed) if self.life.maxmemory.is_some() => {
                self.reconnect(number).map(|()| true)
            }
            Err(silence) => {
                let text = format!(
                    "connection {number}: {silence:?}\n{}",
                    self.process.silent()
                );
                Err(Find::new("silence", text))
            }
        }
    }

    /// The connection whose command that changes the keys of all has no answer yet.
    fn asker(&self) -> Option<usize> {
        self.lanes.iter().position(|lane| {
            let next = lane.history.steps.get(lane.history.answered);
            next.is_some_and(|step| step.global.is_some() && matches!(step.deed, Deed::Request(_)))
        })
    }

    /// Takes note of an answer.
    pub(crate) fn take(&mut self, number: usize, reply: &Reply) -> Result<(), Find> {
        let life = self.life;
        let lane = &mut self.lanes[number];
        if !lane.unanswered_bytes.is_empty() {
            lane.unanswered_bytes.remove(0);
        }
        let index = lane.history.answered;
        let answered = lane.history.answer(reply, life.is_always, &life.refusals());
        let step = lane.history.steps.get(index);
        let global = step.and_then(|step| Some((step.global?, step.answer.clone()?)));
        self.totals.answered += 1;
        if let Value::Error(text) = &reply.value {
            let is_elsewhere = text.starts_with(b"MOVED ") || text.starts_with(b"CROSSSLOT ");
            self.totals.sent_elsewhere += u64::from(is_elsewhere);
        }
        if let Some((_, answer)) = global {
            // A transaction whose watched keys have changed does nothing.
            let was_run = matches!(reply.value, Value::Array(_) | Value::Simple(_));
            for (_, other) in self
                .lanes
                .iter_mut()
                .enumerate()
                .filter(|(index, _)| *index != number)
            {
                other.history.answer_global(&answer, was_run);
            }
        }
        answered.map_err(|wrong| Find::new("reply", format!("connection {number}: {wrong}")))
    }

    /// Waits until everything is answered.
    pub(crate) fn settle(&mut self) -> Result<(), Find> {
        for number in 0..LANES {
            while self.lanes[number].history.pending() > 0 && self.pump(number)? {}
        }
        Ok(())
    }

    /// Takes what arrives until the connections are closed: the server has ended.
    pub(crate) fn drain(&mut self) -> Result<(), Find> {
        for number in 0..LANES {
            while self.lanes[number].history.pending() > 0
                && let Some(connection) = &mut self.lanes[number].connection
                && let Ok(reply) = connection.receive(PATIENCE)
            {
                self.take(number, &reply)?;
            }
        }
        for lane in &mut self.lanes {
            lane.connection = None;
        }
        self.operator = None;
        let drained = self.readers.drain();
        drained.map_err(|text| Find::new("queue", format!("at the end: {text}")))
    }

    /// A connection that reads keys.
    pub(crate) fn reader(&mut self) -> Result<Connection, Find> {
        let connection = self.process.connect(true, &self.clock);
        connection.map_err(|error| Find::new("connect", error.to_string()))
    }
}
