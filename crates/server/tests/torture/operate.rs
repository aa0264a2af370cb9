//! What the operator does in a script: maintenance, trouble, copies of the data.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, Value};
use crate::torture::history::History;
use crate::torture::inspect;
use crate::torture::lives::Rule;
use crate::torture::process::{LOG, Process};
use crate::torture::readers::Readers;
use crate::torture::run::{Find, LANES, Runner, SCRIPT_KILLED};
use crate::torture::script::Request;
use crate::torture::slots;
use crate::torture::values::{Keys, may_be};
use crate::torture::wire::Silence;

/// Errors that maintenance may answer: something else is about it.
const BUSY: &[&str] = &[
    "ERR Background save already in progress",
    "ERR Background append only file rewriting already in progress",
    "ERR another",
    "ERR Background saving is currently not in progress",
];

/// Errors of SCRIPT KILL: nothing runs, or it has changed something.
const NOT_KILLED: &[&str] = &["NOTBUSY ", "UNKILLABLE "];

/// How often SCRIPT KILL is asked for again while nothing runs, and the pause before.
const KILL_TRIES: usize = 20;
const KILL_PAUSE: Duration = Duration::from_millis(2);

/// For how long a disk is full.
const FULL_SECONDS: &str = " 20";

/// When files that nobody needs are gone.
const FILES_GO_WITHIN: Duration = Duration::from_secs(15);

/// When everything is durable, unless nothing makes it so.
const SYNCED_WITHIN: Duration = Duration::from_secs(3);

impl Runner {
    /// Sends words to the server on the operator's connection.
    pub(crate) fn ask(&mut self, words: &str) -> Result<Value, Find> {
        let Some(operator) = &mut self.operator else {
            return Err(Find::new("silence", "there is no operator"));
        };
        let reply = operator.ask(words, PATIENCE);
        reply.map_err(|silence: Silence| {
            let text = format!("{words}: {silence:?}\n{}", self.process.silent());
            Find::new("silence", text)
        })
    }

    /// A figure of INFO.
    fn info(&mut self, field: &str) -> Result<u64, Find> {
        let text = self.ask("INFO persistence")?.text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let figure = line.and_then(|figure| figure.trim().parse().ok());
        figure.ok_or_else(|| Find::new("info", format!("there is no figure {field}")))
    }

    /// A request of maintenance.
    pub(crate) fn operate(&mut self, request: &Request) -> Result<(), Find> {
        self.need_server()?;
        if self.life.is_stuck {
            return Ok(());
        }
        let words: Vec<String> = request.iter().map(ToString::to_string).collect();
        let words = words.join(" ");
        let upper = words.to_ascii_uppercase();
        let policy = upper.strip_prefix("CONFIG SET APPENDFSYNC ");
        let loads = matches!(&upper[..], "DEBUG RELOAD" | "DEBUG LOADAOF");
        if policy.is_some() || loads {
            self.readers.note_reload();
            self.settle()?;
        }
        if policy.is_some() {
            self.life.is_always = false;
            self.life.is_everysec = false;
        }
        if upper == "SCRIPT KILL" {
            return self.kill_script(&words);
        }
        let reply = self.ask(&words)?;
        if let Value::Error(text) = &reply {
            let text = String::from_utf8_lossy(text);
            let is_busy = BUSY.iter().any(|start| text.starts_with(start));
            let is_refused = self.life.has_trouble || self.life.maxmemory.is_some();
            if !is_busy && !is_refused {
                return Err(Find::new("operator", format!("{words}: {text}")));
            }
            return Ok(());
        }
        if policy == Some("ALWAYS") {
            self.life.is_always = true;
        }
        if loads {
            self.verify_running()?;
        }
        Ok(())
    }

    /// Ends the script that runs, if one does and has changed nothing, and takes all answers: requests
    /// after a script that was ended have run.
    fn kill_script(&mut self, words: &str) -> Result<(), Find> {
        let mut reply = self.ask(words)?.text();
        // The script may not have begun.
        for _ in 0..KILL_TRIES {
            if !reply.starts_with("NOTBUSY ") || self.has_all_answers() {
                break;
            }
            sleep(KILL_PAUSE);
            reply = self.ask(words)?.text();
        }
        let is_killed = reply == "OK";
        if !is_killed && !NOT_KILLED.iter().any(|start| reply.starts_with(start)) {
            return Err(Find::new("operator", format!("{words}: {reply}")));
        }
        self.life.ended_script = is_killed.then_some(SCRIPT_KILLED);
        self.totals.killed_scripts += u64::from(is_killed);
        self.settle()?;
        self.life.ended_script = None;
        Ok(())
    }

    fn has_all_answers(&self) -> bool {
        self.lanes.iter().all(|lane| lane.history.pending() == 0)
    }

    /// Waits until rewriting and saving are over; then there is nothing in the directory that nobody needs.
    pub(crate) fn idle(&mut self) -> Result<(), Find> {
        self.need_server()?;
        if self.life.has_trouble {
            return Ok(());
        }
        self.settle()?;
        self.until("maintenance ends", |runner| {
            Ok(
                runner.info("aof_rewrite_in_progress")? + runner.info("rdb_bgsave_in_progress")?
                    == 0,
            )
        })?;
        let counts = |runner: &mut Runner| {
            let files = inspect::large_value_files(runner.process.directory()) as u64;
            Ok::<_, Find>((files, runner.info("log_large_values")?))
        };
        let begun = Instant::now();
        let same = self.until_within(FILES_GO_WITHIN, "", |runner| {
            let (files, known) = counts(runner)?;
            // Files go when the records that replace them are durable, which they may never be with
            // `appendfsync no`.
            let is_durable = runner.info("log_durable")? == runner.info("log_tail")?;
            let is_open = !is_durable && begun.elapsed() > SYNCED_WITHIN;
            // Records may share a file.
            Ok(files <= known || is_open)
        });
        if same.is_err() {
            let (files, known) = counts(self)?;
            let text = format!("{files} files of large values are there, {known} are known");
            return Err(Find::new("files", text));
        }
        // A snapshot that `save` has begun meanwhile has a file, too.
        let gone = self.until_within(FILES_GO_WITHIN, "", |runner| {
            Ok(inspect::left_over(runner.process.directory()).is_empty())
        });
        gone.map_err(|_| {
            let rest = inspect::left_over(self.process.directory());
            Find::new("files", format!("{rest:?} are left over"))
        })
    }

    /// Ends the log and begins it anew, beside what is on its way.
    pub(crate) fn relog(&mut self) -> Result<(), Find> {
        self.need_server()?;
        if self.life.has_trouble || self.life.is_volatile {
            return Ok(());
        }
        if let Value::Error(_) = self.ask("CONFIG SET appendonly no")? {
            return Ok(());
        }
        self.until("the log begins again", |runner| {
            let reply = runner.ask("CONFIG SET appendonly yes")?;
            Ok(!matches!(reply, Value::Error(_)))
        })?;
        self.until("the log is complete", |runner| {
            Ok(runner.info("aof_rewrite_in_progress")? == 0)
        })
    }

    /// Makes trouble with the disk, or ends it.
    pub(crate) fn trouble(&mut self, word: &str) -> Result<(), Find> {
        self.need_server()?;
        if word == "none" && !self.life.is_full {
            return Ok(());
        }
        if word != "none" {
            self.settle()?;
        }
        let mut connection = self.reader()?;
        // The answer may wait for a disk that does nothing any more.
        let wait = if word == "none" || word == "volatile" {
            PATIENCE
        } else {
            Duration::from_secs(1)
        };
        // A full disk is not full for ever: requests that were being written wait for space, and may keep all
        // others from running.
        let lasts = if word == "full" { FULL_SECONDS } else { "" };
        let answer = connection.ask(&format!("DEBUG DISK {word}{lasts}"), wait);
        if let Ok(Value::Error(error)) = &answer {
            let error = String::from_utf8_lossy(error);
            return Err(Find::new("trouble", format!("DEBUG DISK: {error}")));
        }
        match word {
            "volatile" => self.life.is_volatile = true,
            "none" => {
                answer.map_err(|silence| Find::new("silence", format!("{silence:?}")))?;
                self.life.is_stuck = false;
                self.life.is_full = false;
                self.until("a disk with space again takes writes", |runner| {
                    let mut connection = runner.reader()?;
                    let info = connection.ask("INFO persistence", PATIENCE);
                    Ok(info.is_ok_and(|info| info.text().contains("aof_last_write_status:ok")))
                })?;
                self.settle()?;
            }
            _ => {
                self.life.has_trouble = true;
                self.readers = Readers::default();
                self.life.is_stuck = true;
                self.life.is_full = word == "full";
            }
        }
        Ok(())
    }

    /// Makes a backup of this moment.
    pub(crate) fn backup(&mut self, name: &str) -> Result<(), Find> {
        self.need_server()?;
        if self.life.has_trouble || self.backups.contains_key(name) {
            return Ok(());
        }
        self.settle()?;
        let reply = self.ask(&format!("BACKUP {name}"))?;
        if !matches!(reply, Value::Array(_)) {
            return Err(Find::new("backup", format!("BACKUP answers {reply:?}")));
        }
        self.backups.insert(name.to_owned(), self.keys());
        Ok(())
    }

    /// What the model says that there is.
    fn keys(&self) -> Vec<Keys> {
        let lanes = self.lanes.iter();
        lanes.map(|lane| lane.history.model.keys.clone()).collect()
    }

    /// Starts a second server on a backup.
    pub(crate) fn open(&mut self, name: &str) -> Result<(), Find> {
        let Some(keys) = self.backups.remove(name) else {
            return Ok(());
        };
        let copy = Process::new();
        let places = ["", "backups"].map(|place| self.process.directory().join(place).join(name));
        let moved = places
            .iter()
            .any(|place| fs::rename(place.join(LOG), copy.directory().join(LOG)).is_ok());
        if !moved {
            return Err(Find::new("backup", format!("there is no backup {name}")));
        }
        for place in places {
            let _ = fs::remove_dir(place);
        }
        let (code, text) = copy.check_log();
        if code != 0 {
            let text = format!("--check-log of a backup ends with {code}: {}", text.trim());
            return Err(Find::new("backup", text));
        }
        let options = self.options.clone();
        self.compare(copy, &options, &keys, "backup")
    }

    /// Saves a snapshot and starts a second server on it.
    pub(crate) fn snapshot(&mut self) -> Result<(), Find> {
        self.need_server()?;
        if self.life.has_trouble {
            return Ok(());
        }
        self.settle()?;
        self.until("a snapshot is saved", |runner| {
            Ok(!matches!(runner.ask("SAVE")?, Value::Error(_)))
        })?;
        let copy = Process::new();
        let name = "dump.rdb";
        let copied = fs::copy(
            self.process.directory().join(name),
            copy.directory().join(name),
        );
        copied.map_err(|error| Find::new("snapshot", format!("{name}: {error}")))?;
        // Where memory is scarce, all of it may not fit: a log that begins with the snapshot takes the rest.
        let has_log = if self.life.maxmemory.is_some() {
            "yes"
        } else {
            "no"
        };
        let options = [&self.options[..], &[format!("appendonly={has_log}")]].concat();
        let keys = self.keys();
        self.compare(copy, &options, &keys, "snapshot")
    }

    /// Starts a second server, which has to have these keys.
    fn compare(
        &mut self,
        mut copy: Process,
        options: &[String],
        keys: &[Keys],
        class: &'static str,
    ) -> Result<(), Find> {
        self.totals.copies += 1;
        // It is a server on its own, which shows all keys.
        let options: Vec<String> = options
            .iter()
            .filter(|option| *option != slots::OPTION)
            .cloned()
            .collect();
        copy.spawn(&options);
        let wrong = |text: String| Find::new(class, text);
        copy.wait_until_ready(&self.clock).map_err(wrong)?;
        let mut reader = copy
            .connect(true, &self.clock)
            .map_err(|error| wrong(error.to_string()))?;
        let found = inspect::read(&mut reader, LANES, None, true).map_err(wrong)?;
        for (keys, there) in keys.iter().zip(&found.keys) {
            let names = keys.keys().chain(there.keys());
            let mut different =
                names.filter(|key| !may_be(keys.get(*key), there.get(*key), found.asked));
            if different.next().is_some() {
                let judged = History::new(keys.clone()).judge(there, found.asked, Rule::KeepsAll);
                return Err(wrong(judged.err().unwrap_or_default()));
            }
        }
        self.look_at_memory(&copy)?;
        copy.stop(true).map_err(wrong)
    }
}
