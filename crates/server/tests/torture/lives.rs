//! How a server's lives begin and end in a script: start, stop, kill, and the look at what is there.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::PATIENCE;
use crate::torture::history::History;
use crate::torture::inspect;
use crate::torture::process::Process;
use crate::torture::run::{Find, LANES, Life, Runner, SCRIPT_OF_END};
use crate::torture::wire::now_ms;
use crate::torture::{setting, verdict};

/// How much more than its limit of memory a server may take.
const TOLERATED_PERCENT: u64 = 10;
const TOLERATED_BYTES: u64 = 16 << 20;

/// What the last end of the server may have cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Everything that was acknowledged is there.
    KeepsAll,
    /// The end of the history may be lost: what was answered neither by a server with `appendfsync always`
    /// nor before this moment, in Unix ms.
    KeepsDurable(u64),
}

/// How long before a loss of power an answer means that a write is there, under `appendfsync everysec`: the
/// sync interval and what a sync takes. A machine that does other things as well is given time.
fn everysec_bound_ms() -> u64 {
    setting("FERRITE_CRASH_BOUND_MS").unwrap_or(10_000)
}

impl Runner {
    /// Starts the server and looks at all that is there.
    pub(crate) fn start(&mut self) -> Result<(), Find> {
        if self.process.is_running() {
            return Ok(());
        }
        self.process.spawn(&self.options);
        self.life = self.life_by_options();
        self.totals.starts += 1;
        let ready = self.process.wait_until_ready(&self.clock);
        if let Err(problem) = ready {
            self.process.kill();
            let (code, text) = self.process.check_log();
            let text = format!("{problem}\n--check-log ends with {code}: {}", text.trim());
            return Err(Find::new("start", text));
        }
        self.look(self.rule)?;
        self.look_at_queue(self.rule)?;
        self.rule = Rule::KeepsAll;
        self.operator = Some(self.reader()?);
        (0..LANES).try_for_each(|number| self.connect(number))?;
        self.look_at_output()
    }

    fn life_by_options(&self) -> Life {
        let option = |name: &str| {
            let options = self.options.iter().rev();
            let mut pairs = options.filter_map(|option| option.split_once('='));
            pairs.find(|pair| pair.0 == name).map(|pair| pair.1)
        };
        let megabytes = option("maxmemory").and_then(|text| text.strip_suffix("mb"));
        Life {
            is_always: option("appendfsync") == Some("always"),
            is_everysec: option("appendfsync") == Some("everysec"),
            maxmemory: megabytes
                .and_then(|text| text.parse().ok())
                .map(|mb: u64| mb << 20),
            ..Life::default()
        }
    }

    /// Reads everything and judges it. What was found is the base of what follows.
    fn look(&mut self, rule: Rule) -> Result<(), Find> {
        let found = self.with_all_slots(|runner| {
            let mut reader = runner.reader()?;
            let found = inspect::read(&mut reader, LANES, None, runner.life.maxmemory.is_some());
            let tail = |problem| format!("{problem}\n{}", runner.process.tail());
            found.map_err(|problem| Find::new("read", tail(problem)))
        })?;
        let histories: Vec<&History> = self.lanes.iter().map(|lane| &lane.history).collect();
        let counts = verdict::judge(&histories, &found.keys, found.asked, rule);
        let (counts, kept) = counts.map_err(|wrong| Find::new("verdict", wrong))?;
        self.totals.lost += counts.lost;
        let age = counts
            .first_lost_ms
            .map(|first| self.killed_ms.saturating_sub(first));
        self.totals.oldest_lost_ms = self.totals.oldest_lost_ms.max(age.unwrap_or_default());
        self.totals.kept_unanswered += counts.kept_unanswered;
        for ((lane, keys), kept) in self.lanes.iter_mut().zip(found.keys).zip(kept) {
            lane.history.rebase(keys, found.asked, kept);
        }
        Ok(())
    }

    /// Compares what the running server has with the model.
    pub(crate) fn verify_running(&mut self) -> Result<(), Find> {
        if !self.process.is_running() || self.life.is_stuck {
            return Ok(());
        }
        self.settle()?;
        self.look_beside(Rule::KeepsAll)
    }

    /// [`Runner::look`] beside connections that go on: their histories go on, too.
    fn look_beside(&mut self, rule: Rule) -> Result<(), Find> {
        let found = self.with_all_slots(|runner| {
            let mut reader = runner.reader()?;
            let found = inspect::read(&mut reader, LANES, None, runner.life.maxmemory.is_some());
            found.map_err(|problem| Find::new("read", problem))
        })?;
        let histories: Vec<&History> = self.lanes.iter().map(|lane| &lane.history).collect();
        let counts = verdict::judge(&histories, &found.keys, found.asked, rule);
        counts
            .map(|_| ())
            .map_err(|wrong| Find::new("verdict", format!("while it runs: {wrong}")))
    }

    /// Lines of its log, and its memory, before it ends.
    fn look_at_output(&mut self) -> Result<(), Find> {
        let output = self.process.new_output();
        let complaints = inspect::complaints(
            &output,
            self.life.has_trouble,
            self.life.maxmemory.is_some(),
        );
        if !complaints.is_empty() {
            return Err(Find::new("output", complaints.join("\n")));
        }
        self.look_at_memory(&self.process)
    }

    /// The most memory that a server with the limit of this life has taken.
    pub(crate) fn look_at_memory(&self, process: &Process) -> Result<(), Find> {
        if let (Some(limit), Some(taken)) = (self.life.maxmemory, process.most_resident_bytes()) {
            let tolerated = limit / 100 * (100 + TOLERATED_PERCENT) + TOLERATED_BYTES;
            if taken > tolerated {
                let text = format!("{} MiB of {} are taken", taken >> 20, limit >> 20);
                return Err(Find::new("memory", text));
            }
        }
        Ok(())
    }

    fn may_lose(&self) -> Rule {
        match (self.life.is_volatile, self.life.has_trouble) {
            (false, false) => Rule::KeepsAll,
            (true, false) if self.life.is_everysec => {
                Rule::KeepsDurable(now_ms().saturating_sub(everysec_bound_ms()))
            }
            _ => Rule::KeepsDurable(0),
        }
    }

    /// SIGKILL, whatever is on its way.
    pub(crate) fn kill(&mut self) -> Result<(), Find> {
        if !self.process.is_running() {
            return Ok(());
        }
        self.look_at_output()?;
        self.rule = self.may_lose();
        self.killed_ms = now_ms();
        self.process.kill();
        self.totals.kills += 1;
        self.drain()?;
        self.look_at_output()
    }

    /// SIGTERM, or SHUTDOWN with these words. A server with a failed log is killed, because it may not end.
    pub(crate) fn stop(&mut self, words: Option<&str>) -> Result<(), Find> {
        if !self.process.is_running() {
            return Ok(());
        }
        if self.life.has_trouble {
            return self.kill();
        }
        self.look_at_output()?;
        self.rule = Rule::KeepsAll;
        if let Some(words) = words {
            let mut connection = self.reader()?;
            // No reply is the end.
            if let Ok(reply) = connection.ask(&format!("SHUTDOWN {words}"), PATIENCE) {
                return Err(Find::new("stop", format!("SHUTDOWN {words}: {reply:?}")));
            }
        }
        let stopped = self.process.stop(words.is_none());
        stopped.map_err(|problem| Find::new("stop", problem))?;
        self.life.ended_script = Some(SCRIPT_OF_END);
        self.drain()?;
        self.look_at_output()
    }

    /// A start that is killed while it is about it.
    pub(crate) fn start_kill(&mut self, ms: u64) -> Result<(), Find> {
        if self.process.is_running() {
            return Ok(());
        }
        self.process.spawn(&self.options);
        sleep(Duration::from_millis(ms));
        self.process.kill();
        self.totals.kills += 1;
        Ok(())
    }

    /// `--check-log` on the log of the stopped server: it has to be whole.
    pub(crate) fn check(&mut self) -> Result<(), Find> {
        if self.process.is_running() || self.totals.starts == 0 {
            return Ok(());
        }
        match self.process.check_log() {
            (0, _) => Ok(()),
            (code, text) => {
                let text = format!("--check-log ends with {code}: {}", text.trim());
                Err(Find::new("check", text))
            }
        }
    }

    /// Waits until something holds.
    pub(crate) fn until(
        &mut self,
        what: &str,
        holds: impl FnMut(&mut Runner) -> Result<bool, Find>,
    ) -> Result<(), Find> {
        self.until_within(PATIENCE, what, holds)
    }

    /// The same, with less patience.
    pub(crate) fn until_within(
        &mut self,
        patience: Duration,
        what: &str,
        mut holds: impl FnMut(&mut Runner) -> Result<bool, Find>,
    ) -> Result<(), Find> {
        let start = Instant::now();
        while !holds(self)? {
            if start.elapsed() > patience {
                let text = format!("{what}: not within {} s", patience.as_secs());
                return Err(Find::new("never", text));
            }
            sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}
