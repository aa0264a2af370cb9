//! The time that commands take.
//!
//! Reading the clock costs as much as a GET, so a run of the same fast command is timed as a whole and
//! counted at its mean; a command that may be slow (not groupable, a large request, a low
//! `slowlog-log-slower-than`) is timed alone.

use crate::command::session::Session;
use crate::command::{Command, flag};
use crate::config::Setting;
use crate::metrics::slowlog::Bounds;
use crate::metrics::{COUNTS, WorkerStats};
use crate::request::Args;
use crate::server::Server;

/// Requests of more bytes than this are timed alone.
const LARGE_REQUEST: usize = 4096;
/// Below this `slowlog-log-slower-than` (us) every command is timed alone.
const EXACT_BELOW_US: i64 = 1000;
/// Nanoseconds of slow requests that one connection has sent together before others have a turn.
const SLOW_REQUESTS_NS: u64 = 2_000_000;

/// Takes the time of commands; see the module.
pub(crate) struct Timer {
    server: &'static Server,
    stats: &'static WorkerStats,
    /// The command of the current run.
    command: Option<&'static Command>,
    calls: u64,
    since: u64,
    always_alone: bool,
    slow_us: i64,
    /// What commands that are timed alone took.
    alone: u64,
}

impl Timer {
    pub(crate) fn new(server: &'static Server, stats: &'static WorkerStats) -> Timer {
        let mut timer = Timer {
            server,
            stats,
            command: None,
            calls: 0,
            since: 0,
            always_alone: false,
            slow_us: 0,
            alone: 0,
        };
        timer.read_settings();
        timer
    }

    fn read_settings(&mut self) {
        self.slow_us = self.server.settings.int(Setting::SlowlogLogSlowerThan);
        self.always_alone = (0..EXACT_BELOW_US).contains(&self.slow_us);
    }

    /// Whether a command, in a request of so many bytes, is timed together with its equals.
    #[inline]
    pub(crate) fn groups(&self, command: &Command, request_bytes: usize) -> bool {
        command.groupable && request_bytes <= LARGE_REQUEST && !self.always_alone
    }

    /// Before a command that is timed together with its equals before and behind it.
    #[inline]
    pub(crate) fn count(&mut self, command: &'static Command) {
        if COUNTS && self.command.is_none_or(|current| current.id != command.id) {
            self.begin_alone(command);
        } else {
            self.calls += 1;
        }
    }

    /// After the last command of a lane in this turn. `is_again`: it is one of those that are timed together,
    /// and is to run again.
    pub(crate) fn stop(&mut self, is_again: bool) {
        self.calls -= u64::from(is_again && self.calls > 0);
        if is_again && self.calls == 0 {
            self.command = None;
        }
    }

    /// Before a command that is timed alone.
    pub(crate) fn begin_alone(&mut self, command: &'static Command) {
        self.finish_run();
        if COUNTS {
            self.command = Some(command);
            self.calls = 1;
            self.since = sys::clock::ticks();
        }
    }

    /// After it ran.
    pub(crate) fn end_alone(&mut self, command: &Command, args: &Args<'_>, session: &Session) {
        let ticks = sys::clock::ticks().saturating_sub(self.since);
        self.alone += if COUNTS { ticks } else { 0 };
        self.record(ticks);
        self.check_slow(command, args, session, ticks);
    }

    /// The time of commands that were timed alone, in ticks.
    pub(crate) fn alone(&self) -> u64 {
        self.alone
    }

    /// Whether those since then have taken so long that others are to have a turn.
    pub(crate) fn gives_way(&self, since: u64) -> bool {
        sys::clock::ticks_to_ns(self.alone - since) > SLOW_REQUESTS_NS
    }

    /// After a command that is not over, instead: the ticks it took until now.
    pub(super) fn hand_over(&mut self) -> u64 {
        self.command = None;
        sys::clock::ticks().saturating_sub(self.since)
    }

    /// After a command that took `ticks` in all, not always here.
    pub(crate) fn record_deferred(
        &mut self,
        command: &'static Command,
        args: &Args<'_>,
        session: &Session,
        ticks: u64,
    ) {
        self.command = Some(command);
        self.calls = 1;
        self.record(ticks);
        self.check_slow(command, args, session, ticks);
    }

    /// Ends a run of the same command.
    pub(crate) fn finish_run(&mut self) {
        if self.command.is_some() {
            self.record(sys::clock::ticks().saturating_sub(self.since));
        }
    }

    fn record(&mut self, ticks: u64) {
        if let Some(command) = self.command.take() {
            let queued = self.since.saturating_sub(self.stats.ready.get());
            self.stats.queued.record(queued, self.calls);
            let command = self.stats.command(command.id);
            command.record(self.calls, ticks, queued);
            self.stats.commands.add(self.calls);
        }
    }

    fn check_slow(&mut self, command: &Command, args: &Args<'_>, session: &Session, ticks: u64) {
        // A CONFIG SET that changes what is slow is judged by that already.
        self.read_settings();
        let took_us = sys::clock::ticks_to_ns(ticks) / 1000;
        if self.slow_us >= 0
            && took_us as i64 >= self.slow_us
            && !command.spec.has(flag::SKIP_SLOWLOG)
        {
            let bounds = Bounds::of(&self.server.settings);
            let shown = (0..args.len()).map(|at| command.shown(args, at));
            let client = &session.client;
            let name = client.names.lock().name.clone();
            let mut log = self.server.slowlog.lock();
            log.add(shown, (&client.peer, &name), took_us, bounds);
        }
        let threshold_ms = self.server.settings.int(Setting::LatencyMonitorThreshold);
        if threshold_ms > 0 && took_us as i64 >= threshold_ms * 1000 {
            let event = if command.spec.has(flag::FAST) {
                "fast-command"
            } else {
                "command"
            };
            self.server
                .latency
                .lock()
                .add(event, sys::clock::realtime_ms() / 1000, took_us / 1000);
        }
    }
}
