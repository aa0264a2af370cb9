//! The server as a script sees it: runs the commands that the script calls.
//!
//! A command runs in the context of the request, as a request of a transaction does. Its reply goes into the
//! reply of the request, and from there to Lua.

use std::borrow::Cow;

use keyspace::LargeValue;
use lua::{Arguments, Called, Captured, Host, Interrupt, KNOWN_KEYS, Large, Level};

use crate::command::route::Home;
use crate::command::row::{Control, Reach};
use crate::command::run::{ScriptLine, Timer, run_inside};
use crate::command::{Args, Command, Context, Failure, flag, table};
use crate::limits::{JOURNAL_REQUEST_BYTES, SCRIPT_HELD_NS, SCRIPT_QUICK_NS};
use crate::request::{Apart, failure};
use crate::script::{Script, log_line};
use crate::shared::RunningFunction;

const UNKNOWN: Failure = Failure::of("ERR Unknown Redis command called from script");
const WRONG_ARITY: Failure =
    Failure::of("ERR Wrong number of args calling Redis command from script");
const NOT_FROM_SCRIPT: Failure = Failure::of("ERR This Redis command is not allowed from script");
const READ_ONLY: Failure =
    Failure::of("ERR Write commands are not allowed from read-only scripts.");
const NOT_NAMED: Failure =
    Failure::of("ERR Script attempted to access a key that is not among its KEYS");
const IN_FILE: Failure =
    Failure::of("ERR the value is in a file of its own, and is not read for a script");

/// A large value for Lua.
struct Bytes(LargeValue);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Why a run was stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Killed,
    /// The server ends.
    Ending,
    /// It takes long, or a key that it has not named, and has had no effect: it begins again on a thread of
    /// its own.
    Slow,
    /// A command needs a value that is not in memory, and it has had no effect: it begins again when that is
    /// there.
    Cold,
    /// It holds shards, has had an effect, and takes very long between commands.
    TooLong,
}

/// The thread and the surroundings of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RunPlace {
    /// The thread of a worker, which holds the shards of the script's keys.
    Shards,
    /// The thread of a worker, and no other worker is inside a turn.
    Worker,
    /// The thread of a worker, and it can't begin again.
    Transaction,
    /// A thread of its own.
    Apart,
}

/// Commands that a script may call.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) place: RunPlace,
    pub(super) may_write: bool,
    /// Memory is short: until the script has changed data, it may call nothing that takes more.
    pub(super) refuses_growth: bool,
}

/// Flags of commands with effects that others see.
const EFFECTS: u32 = flag::WRITE | flag::PUBLISHES | flag::MAY_REPLICATE;

/// A run that has ended.
pub(super) struct Finished {
    /// The lines for MONITOR.
    pub(super) lines: Vec<ScriptLine>,
    /// Why it was stopped, if it was.
    pub(super) cause: Option<Cause>,
    /// Its result has an error.
    pub(super) has_failed: bool,
    pub(super) ns: u64,
}

/// The script of a run, and its request.
#[derive(Clone, Copy)]
pub(super) struct ScriptCall<'r> {
    pub(super) script: &'r Script,
    pub(super) args: &'r Args<'r>,
}

/// One run.
pub(super) struct Run<'r, 'c> {
    context: &'r mut Context<'c>,
    asked: ScriptCall<'r>,
    rules: Rules,
    home: Home,
    /// Hashes of the first keys.
    hashes: [u64; KNOWN_KEYS],
    timer: Timer,
    /// It has called a command that changes data.
    has_written: bool,
    /// It has called one that others see.
    has_effects: bool,
    has_failed: bool,
    /// It has taken long. Others may be outside of their turns.
    is_slow: bool,
    /// Ticks in Lua since then, and the tick from which on they count next.
    in_lua: u64,
    in_lua_since: u64,
    cause: Option<Cause>,
    began: u64,
    lines: Option<Vec<ScriptLine>>,
    /// Bytes that the log gets at the end of the run.
    owed: usize,
}

impl<'r, 'c> Run<'r, 'c> {
    pub(super) fn new(
        context: &'r mut Context<'c>,
        rules: Rules,
        home: Home,
        hashes: [u64; KNOWN_KEYS],
        asked: ScriptCall<'r>,
    ) -> Run<'r, 'c> {
        Run {
            asked,
            rules,
            home,
            hashes,
            timer: Timer::new(context.server, context.store.stats),
            has_written: false,
            has_effects: false,
            has_failed: false,
            is_slow: false,
            in_lua: 0,
            in_lua_since: 0,
            cause: None,
            began: sys::clock::ticks(),
            owed: 0,
            lines: context.server.monitors.any().then(Vec::new),
            context,
        }
    }

    /// Ends the run.
    pub(super) fn finish(mut self) -> Finished {
        self.timer.finish_run();
        if self.is_slow {
            match self.rules.place {
                RunPlace::Shards => self.context.server.running.note_lasting(false),
                RunPlace::Worker | RunPlace::Transaction | RunPlace::Apart => {
                    self.context.server.wake_workers();
                }
            }
        }
        Finished {
            lines: self.lines.take().unwrap_or_default(),
            cause: self.cause,
            has_failed: self.has_failed,
            ns: self.ns(),
        }
    }

    /// Lets FUNCTION STATS see it, if it is a function.
    #[cold]
    pub(super) fn show(&self) {
        let ScriptCall { script, args } = self.asked;
        if script.library.is_some() && self.rules.place != RunPlace::Shards {
            self.context.server.running.show(RunningFunction {
                name: script.name.clone(),
                words: args.from(0).map(<[u8]>::to_vec).collect(),
            });
        }
    }

    /// Nanoseconds since it began.
    fn ns(&self) -> u64 {
        sys::clock::ticks_to_ns(sys::clock::ticks().saturating_sub(self.began))
    }

    /// Whether nothing is left of it when it ends here.
    fn may_begin_again(&self) -> bool {
        matches!(self.rules.place, RunPlace::Worker | RunPlace::Shards) && !self.has_effects
    }

    fn stop(&mut self, cause: Cause) -> Interrupt {
        self.cause = Some(cause);
        Interrupt::Stop
    }

    /// Finds the command of a call, if it may run.
    fn admit(&mut self, args: &Args<'_>) -> Result<&'static Command, Failure> {
        let command = table().find_with(args.get(0), args.optional(1));
        let command = command.ok_or(UNKNOWN)?;
        if !command.takes(args.len()) {
            return Err(WRONG_ARITY);
        }
        if command.spec.has(flag::NOSCRIPT) {
            return Err(NOT_FROM_SCRIPT);
        }
        let writes = command.spec.has(flag::WRITE);
        if (writes || command.spec.has(flag::MAY_REPLICATE)) && !self.rules.may_write {
            return Err(READ_ONLY);
        }
        let server = self.context.server;
        if !self.has_written {
            if writes && let Some(failure) = self.context.refusal_of_writes() {
                return Err(failure);
            }
            if self.rules.refuses_growth && command.spec.has(flag::DENYOOM) {
                return Err(failure::OUT_OF_MEMORY);
            }
        }
        // Nothing is evicted during the run, so it ends at the limit, after a change, too. At its end the
        // log gets all changes at once.
        let bytes = args.size() + self.owed;
        let grows = command.spec.has(flag::DENYOOM);
        if grows && server.memory.is_near_with(bytes) && bytes > server.room_now() {
            return Err(failure::OUT_OF_MEMORY);
        }
        if let Some(cluster) = &server.cluster
            && let Some(failure) =
                cluster.refusal_of_call(self.context, command, args, &mut self.home)
        {
            return Err(failure);
        }
        match self.context.may_reply(command) {
            true => Ok(command),
            false => Err(failure::OUT_OF_MEMORY),
        }
    }

    /// The hashes of those first keys of a call that are among the first of the script.
    fn hashes_of(
        &self,
        command: &Command,
        arguments: &Arguments<'_>,
        hashes: &mut [u64; KNOWN_KEYS],
    ) -> usize {
        let mut count = 0;
        for at in command.key_positions(arguments.len()).take(KNOWN_KEYS) {
            let Some(key) = arguments.key(at) else { break };
            hashes[count] = self.hashes[key];
            count += 1;
        }
        count
    }

    /// Whether the shards of all keys that a call may use are held. `known`: so many of the first keys are
    /// the script's.
    fn holds_keys_of(&self, command: &Command, args: &Args<'_>, known: usize) -> bool {
        let holds = |at: usize| self.context.store.is_held(args.key(at).hash);
        let stays = (command.spec.elsewhere)(args).is_none() && command.control == Control::None;
        stays
            && match command.reach(args) {
                Reach::Nothing => true,
                Reach::Range => command.key_positions(args.len()).skip(known).all(holds),
                Reach::Found(places) => places.into_iter().all(holds),
                Reach::Everything => false,
            }
    }

    fn run(&mut self, arguments: &Arguments<'_>) -> Called {
        let keyspace = self.context.store.keyspace;
        let mut args = Args {
            spans: arguments.spans,
            ..Args::of_input(arguments.input, None, keyspace)
        };
        let command = match self.admit(&args) {
            Ok(command) => command,
            Err(failure) => {
                self.context.refuse(&failure);
                return Called::Replied;
            }
        };
        let mut hashes = [0; KNOWN_KEYS];
        let known = self.hashes_of(command, arguments, &mut hashes);
        args.hashes = &hashes[..known];
        args.first_key = command.first_key as usize;
        args.key_shift = command.key_shift;
        let holds = self.rules.place == RunPlace::Shards;
        if holds && !self.holds_keys_of(command, &args, known) {
            let (name, script) = (&command.full_name, self.context.command);
            debug_assert!(false, "the proof was wrong: {name} of {}", script.full_name);
            log::error!(
                "A script uses a key that it has not named, by {name}. Please report its text"
            );
            if !self.has_effects {
                self.cause = Some(Cause::Slow);
                return Called::Stop;
            }
            self.context.refuse(&NOT_NAMED);
            return Called::Replied;
        }
        if self.may_begin_again()
            && self.context.server.offload.is_on()
            && self.context.wants_of_call(command, &args)
        {
            self.cause = Some(Cause::Cold);
            return Called::Stop;
        }
        self.has_effects |= command.spec.has_any(EFFECTS);
        if command.spec.has(flag::WRITE) {
            let is_first = !self.has_written && !holds;
            if is_first && !self.context.server.running.note_write() {
                self.cause = Some(Cause::Killed);
                return Called::Stop;
            }
            self.has_written = true;
            if self.context.store.journal.is_some() {
                self.owed += args.size() + JOURNAL_REQUEST_BYTES as usize;
            }
        }
        run_inside(self.context, command, &mut args, &mut self.timer);
        if let Some(lines) = &mut self.lines {
            let shown = (0..args.len()).map(|at| command.shown(&args, at).to_vec());
            lines.push(ScriptLine {
                db: self.context.session.db,
                shown: shown.collect(),
            });
        }
        Called::Replied
    }
}

impl Host for Run<'_, '_> {
    fn call(&mut self, arguments: &Arguments<'_>, reply: &mut Captured) -> Called {
        let before = self.context.reply.mark();
        self.context.reply.set_protocol(reply.protocol);
        if self.is_slow {
            let now = sys::clock::ticks();
            self.in_lua += now.saturating_sub(self.in_lua_since);
        }
        if self.run(arguments) == Called::Stop {
            return Called::Stop;
        }
        if self.is_slow {
            self.in_lua_since = sys::clock::ticks();
        }
        let Captured { bytes, large, .. } = reply;
        let mut is_in_file = false;
        self.context
            .reply
            .move_since(before, bytes, |at, value| match value {
                Apart::Memory(value) | Apart::Own(value) => large.push(Large {
                    at,
                    value: Box::new(Bytes(value)),
                }),
                Apart::File(_) => is_in_file = true,
            });
        if is_in_file {
            reply.bytes.clear();
            reply.large.clear();
            self.context.refuse(&IN_FILE);
            self.context
                .reply
                .move_since(before, &mut reply.bytes, |_, _| {});
        }
        Called::Replied
    }

    fn interrupt(&mut self) -> Interrupt {
        let server = self.context.server;
        // Changes of a script are there whole or not at all, so one that has made some goes on.
        if !self.has_written && (server.is_ending() || server.is_shutting_down()) {
            return self.stop(Cause::Ending);
        }
        let place = self.rules.place;
        if place != RunPlace::Shards && server.running.is_killed() {
            return self.stop(Cause::Killed);
        }
        if place != RunPlace::Apart && !self.is_slow && self.ns() > SCRIPT_QUICK_NS {
            if self.may_begin_again() {
                return self.stop(Cause::Slow);
            }
            self.is_slow = true;
            self.show();
            self.in_lua_since = sys::clock::ticks();
            if place == RunPlace::Shards {
                server.running.note_lasting(true);
            }
        }
        if place == RunPlace::Shards && self.is_slow {
            let now = sys::clock::ticks();
            let in_lua = self.in_lua + now.saturating_sub(self.in_lua_since);
            if sys::clock::ticks_to_ns(in_lua) > SCRIPT_HELD_NS {
                return self.stop(Cause::TooLong);
            }
        }
        Interrupt::Continue
    }

    fn replied_error(&mut self, text: &[u8], is_counted: bool) {
        self.has_failed = true;
        if !is_counted {
            self.context.store.stats.errors.add(1);
            let failure = Failure(Cow::Owned(text.to_vec()));
            self.context.server.errors.add(failure.code());
        }
    }

    fn log(&mut self, level: Level, text: &[u8]) {
        log_line(level, text);
    }

    fn may_call(&mut self, arguments: &Arguments<'_>) -> Option<bool> {
        let next = (arguments.len() > 1).then(|| arguments.get(1));
        table().find_with(arguments.get(0), next).map(|_| true)
    }
}
