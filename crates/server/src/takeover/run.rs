//! Running the commands of a file, as commands of a client without connection.
//!
//! Commands between MULTI and EXEC run when EXEC is read. Without EXEC at the end of the last file they are
//! part of a torn end. Each command is journaled as it runs. After every few commands the records are handed
//! to the log, values are offloaded if memory is short, and workers have their turns.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use aof::Reader;
use keyspace::{INLINE_VALUE_MAX, LargeValue};

use crate::command::queue::Transaction;
use crate::command::session::Session;
use crate::command::{Caller, Command, Context, Control, Group, Handled, Next, flag, table};
use crate::config::Setting;
use crate::limits::{
    JOURNAL_REQUEST_BYTES, JOURNAL_VALUE_BYTES, REPLAY_REPORT_MS, TAKEOVER_BYTES, TAKEOVER_COMMANDS,
};
use crate::metrics::WorkerStats;
use crate::persistence::journal::Journal;
use crate::persistence::{Found, Persistence, Relief};
use crate::request::{Args, Failure};
use crate::server::Server;
use crate::shared::clients::Client;
use crate::values::cold::FetchState;

/// Bytes of a key that a message repeats.
const KEY_SHOWN: usize = 64;

/// See the module.
pub(super) struct Runner<'f> {
    server: &'static Server,
    found: &'f Found,
    /// Bytes of the files before this one.
    before: u64,
    caller: Caller,
    relief: Option<Relief<'static>>,
    session: Session,
    fetch: FetchState,
    reported: i64,
    commands: u64,
    /// Commands and bytes since workers had their turns.
    since: (usize, usize),
}

/// Transaction that MULTI has begun.
struct Open {
    /// Where MULTI is.
    at: u64,
    queue: Transaction,
    /// Where each queued command is.
    places: Vec<u64>,
}

/// Why a command does not run.
struct Wrong {
    at: u64,
    command: String,
    key: Option<Vec<u8>>,
    reason: String,
}

impl Wrong {
    fn of(at: u64, command: Option<&Command>, args: &Args<'_>, reason: String) -> Wrong {
        let name = &args.get(0)[..args.get(0).len().min(KEY_SHOWN)];
        let first_key = match command {
            Some(command) => command.first_key as usize,
            // Nearly all commands have it there.
            None => 1,
        };
        Wrong {
            at,
            command: name.to_ascii_uppercase().escape_ascii().to_string(),
            key: (first_key > 0)
                .then(|| args.optional(first_key))
                .flatten()
                .map(<[u8]>::to_vec),
            reason,
        }
    }

    fn told(&self, path: &Path) -> String {
        let Wrong {
            at,
            command,
            reason,
            ..
        } = self;
        let key = self.key.as_ref().map_or_else(String::new, |key| {
            let rest = if key.len() > KEY_SHOWN { "..." } else { "" };
            format!(
                ", key \"{}\"{rest}",
                key[..key.len().min(KEY_SHOWN)].escape_ascii()
            )
        });
        let path = path.display();
        format!("{path} cannot be taken over: at byte {at}, command {command}{key}: {reason}")
    }
}

impl<'f> Runner<'f> {
    /// Runs a file behind `before` bytes of others.
    ///
    /// # Errors
    /// The log has been closed.
    pub(super) fn new(
        server: &'static Server,
        found: &'f Found,
        before: u64,
    ) -> Result<Runner<'f>, String> {
        // Counted, and not reported. There are a few files, and one server in the life of a process.
        let stats = Box::leak(Box::new(WorkerStats::new(table().counters())));
        let client = Arc::new(Client::unconnected(0, 0));
        let mut caller = Caller::new(server, 0, stats);
        caller.journal = Some(journal(server)?);
        let now = caller.now;
        Ok(Runner {
            server,
            found,
            before,
            caller,
            relief: Relief::new(server),
            session: Session::new(client, true),
            fetch: FetchState::default(),
            reported: now,
            commands: 0,
            since: (0, 0),
        })
    }

    /// Runs all commands behind the first `from` bytes of a file. Returns how many they were.
    ///
    /// # Errors
    /// What cannot be taken over.
    pub(super) fn run_file(
        &mut self,
        path: &Path,
        from: u64,
        is_last: bool,
    ) -> Result<u64, String> {
        let named = |problem: String| format!("{} cannot be taken over: {problem}", path.display());
        let mut file = File::open(path).map_err(|error| named(error.to_string()))?;
        let sought = file.seek(SeekFrom::Start(from));
        sought.map_err(|error| named(error.to_string()))?;
        let mut reader = Reader::new(file, from, JOURNAL_VALUE_BYTES);
        self.caller.turn.enter();
        let done = self.run_all(&mut reader, path, is_last);
        self.caller.turn.leave();
        // Dropping the journal hands its records to the log.
        self.caller.journal = None;
        done.map(|()| self.commands)
    }

    fn run_all(
        &mut self,
        reader: &mut Reader<File>,
        path: &Path,
        is_last: bool,
    ) -> Result<(), String> {
        let mut open = None;
        loop {
            let begins = reader.offset();
            match reader.advance() {
                Ok(Some(at)) => {
                    let done = self.take(at, reader, &mut open);
                    done.map_err(|wrong| wrong.told(path))?;
                    self.step(reader)?;
                }
                Ok(None) => {
                    return match open {
                        None => Ok(()),
                        Some(open) => self.end_torn(path, open.at, begins, is_last),
                    };
                }
                Err(error) if error.is_torn() => {
                    let at = open.map_or(error.command, |open: Open| open.at);
                    return self.end_torn(path, at, error.offset, is_last);
                }
                Err(error) => {
                    return Err(format!("{} cannot be taken over: {error}", path.display()));
                }
            }
        }
    }

    /// A file ends in the middle of a command or a transaction that begins at a byte.
    fn end_torn(&self, path: &Path, at: u64, end: u64, is_last: bool) -> Result<(), String> {
        let path = path.display();
        if !is_last {
            return Err(format!(
                "{path} cannot be taken over: it ends in the middle of a command or a transaction, which \
                 begins at byte {at}, and is not the last file"
            ));
        }
        if !self.server.settings.flag(Setting::AofLoadTruncated) {
            return Err(format!(
                "{path} cannot be taken over: it ends in the middle of a command or a transaction, which \
                 begins at byte {at}. With 'aof-load-truncated yes' that is left out"
            ));
        }
        log::warn!(
            "{path} ends in the middle of a command or a transaction: the last {} bytes, from byte {at} \
             on, are left out (aof-load-truncated)",
            end - at
        );
        Ok(())
    }

    /// Runs or queues the command that was read.
    fn take(
        &mut self,
        at: u64,
        reader: &mut Reader<File>,
        open: &mut Option<Open>,
    ) -> Result<(), Wrong> {
        let server = self.server;
        let spans = reader.spans().to_vec();
        // A large command may become a value as it is.
        let buffer = (reader.bytes().len() > INLINE_VALUE_MAX)
            .then(|| LargeValue::new(reader.take_bytes().into()));
        let mut args = Args {
            input: buffer
                .as_ref()
                .map_or_else(|| reader.bytes(), |buffer| buffer.buffer()),
            spans: &spans,
            hashes: &[],
            first_key: 0,
            key_shift: 0,
            keyspace: &server.keyspace,
            buffer: buffer.as_ref(),
        };
        let command = table().find_with(args.get(0), args.optional(1));
        let wrong = |args: &Args<'_>, reason: String| Wrong::of(at, command, args, reason);
        let found = check(command, &args).map_err(|reason| wrong(&args, reason))?;
        match (found.control, open.is_some()) {
            (Control::Multi, false) => {
                *open = Some(Open {
                    at,
                    queue: Transaction::default(),
                    places: Vec::new(),
                });
            }
            (Control::Exec, true) => {
                let open = open.take().expect("it was just looked at");
                for (number, &at) in open.places.iter().enumerate() {
                    let command = open.queue.command(number);
                    let mut args = open.queue.args(number, &server.keyspace);
                    self.run(command, &mut args)
                        .map_err(|reason| Wrong::of(at, Some(command), &args, reason))?;
                }
            }
            (Control::Multi | Control::Exec, _) => {
                let reason = "it is not where it may be in a transaction";
                return Err(wrong(&args, reason.into()));
            }
            (_, true) => {
                let open = open.as_mut().expect("it was just looked at");
                open.queue.push(found, &args);
                open.places.push(at);
            }
            (_, false) => {
                let done = self.run(found, &mut args);
                done.map_err(|reason| wrong(&args, reason))?;
            }
        }
        Ok(())
    }

    /// Runs a command, and finds out what it would have answered if that is an error.
    fn run(&mut self, command: &'static Command, args: &mut Args<'_>) -> Result<(), String> {
        let bytes = args.size() + JOURNAL_REQUEST_BYTES as usize;
        let journal = self
            .caller
            .journal
            .as_ref()
            .expect("it is there while commands run");
        journal
            .ensure(bytes as u64)
            .map_err(|refusal| refusal.to_string())?;
        self.since = (self.since.0 + 1, self.since.1 + bytes);
        self.commands += 1;
        args.first_key = command.first_key as usize;
        args.key_shift = command.key_shift;
        let mut context = self.context(command);
        let done = match context.server.offload.is_on() {
            true => run_held(&mut context, command, args),
            false => (command.handler)(&mut context, args),
        };
        let answer = &self.caller.output.bytes;
        let outcome = match (done, answer.strip_prefix(b"-")) {
            (Err(failure), _) => Err(String::from_utf8_lossy(&failure.0).into_owned()),
            (Ok(_), Some(error)) => Err(String::from_utf8_lossy(error).trim_end().to_owned()),
            (Ok(Next::Done), None) => Ok(()),
            (Ok(_), None) => Err("its value is not at hand".into()),
        };
        self.caller.output.bytes.clear();
        self.caller.output.large.clear();
        outcome
    }

    /// The context of a command for which there is no client.
    fn context(&mut self, command: &'static Command) -> Context<'_> {
        let mut context = self.caller.context(&mut self.session, &mut self.fetch);
        context.store.touch = false;
        context.command = command;
        // Nothing may wait.
        context.in_transaction = true;
        context
    }

    /// Lets others have their turns now and then, and tells how far it has come.
    fn step(&mut self, reader: &Reader<File>) -> Result<(), String> {
        let delay = self
            .server
            .settings
            .int(Setting::KeyLoadDelay)
            .unsigned_abs();
        if self.since.0 < TAKEOVER_COMMANDS && self.since.1 < TAKEOVER_BYTES && delay == 0 {
            return Ok(());
        }
        self.since = (0, 0);
        if let Some(journal) = &self.caller.journal {
            journal.flush();
        }
        self.caller.turn.leave();
        let rested = self.rest(delay);
        self.caller.turn.enter();
        rested?;
        self.caller.now = sys::clock::realtime_ms();
        let done = self.before + reader.offset();
        self.server
            .snapshots
            .loading()
            .loaded_bytes
            .store(done, Relaxed);
        if self.caller.now - self.reported >= REPLAY_REPORT_MS {
            self.reported = self.caller.now;
            let percent = 100 * done / self.found.bytes.max(1);
            let (name, commands) = (self.found.name.display(), self.commands);
            log::info!("Taking over {name}: {percent} %, {commands} commands of this file");
        }
        Ok(())
    }

    /// Work between two turns.
    fn rest(&mut self, delay_us: u64) -> Result<(), String> {
        if self.server.is_shutting_down() {
            return Err("the server ends".into());
        }
        if delay_us > 0 {
            std::thread::sleep(Duration::from_micros(delay_us));
        }
        if let Some(relief) = &self.relief
            && self.server.memory.is_near()
        {
            // The log has one appender for both.
            self.caller.journal = None;
            relief.relieve(&mut self.caller.turn, 0)?;
            relief.let_go_of_log();
            self.caller.journal = Some(journal(self.server)?);
        }
        Ok(())
    }
}

/// A way into the log that belongs to no worker.
fn journal(server: &'static Server) -> Result<Journal, String> {
    let persistence: &'static Persistence = &server.persistence;
    let appender = persistence.appender()?;
    Ok(Journal::new(appender, persistence))
}

/// The command that a file has, if it is one that redis-server writes there and this server has.
fn check(command: Option<&'static Command>, args: &Args<'_>) -> Result<&'static Command, String> {
    let Some(command) = command else {
        return Err("this server does not have the command".into());
    };
    let writes = command.spec.has(flag::WRITE) && command.subcommands.is_empty();
    let is_control = matches!(
        command.control,
        Control::Multi | Control::Exec | Control::Select
    );
    if command.spec.group == Group::Scripting && !writes {
        return Err("scripts of an append-only file are not run yet".into());
    }
    if !writes && !is_control {
        return Err("no such command is in an append-only file, because it changes no data".into());
    }
    if !command.takes(args.len()) {
        let failure = Failure::wrong_arity(&command.full_name);
        return Err(String::from_utf8_lossy(&failure.0).into_owned());
    }
    Ok(command)
}

/// Runs a command whose values may be in the log alone: they come back before, and stay because its shards
/// are held.
fn run_held(context: &mut Context<'_>, command: &'static Command, args: &Args<'_>) -> Handled {
    let mut alone = Transaction::default();
    alone.push(command, args);
    let holds = alone.want(&mut context.store, context.server.selectable_databases());
    if holds {
        context.store.hold();
    } else {
        context.store.release();
        context.store.begin_alone();
    }
    let prepared = context.prepare_now(command, args);
    let done = prepared.and_then(|()| (command.handler)(context, args));
    if holds {
        context.store.release();
    } else {
        context.store.end_alone();
    }
    done
}
