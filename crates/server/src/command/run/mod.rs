//! Running one command in one context.
//!
//! Before a command runs it is *admitted* (`admit`): known, right number of arguments, authenticated, not out
//! of memory, not paused. Around it, its time is taken ([`timer`]).

mod admit;
mod protection;
mod sample;
mod timer;

use std::sync::atomic::Ordering::Relaxed;

use resp::request::ProtocolError;

use super::prepare::Prepared;
use super::queue::Transaction;
use super::{Command, Context, Control, Handler, Next, flag};
use crate::command::track;
use crate::config::Setting;
use crate::limits::QUEUE_CLIENTS_PERCENT;
use crate::observe::notify::Notifier;
use crate::request::reply::Mark;
use crate::request::{Args, Failure, ReplyMode, failure};
use crate::shared::clients::NO_COMMAND;
use crate::shared::gate::Closed;

use admit::{Admission, admit};
use sample::sample;
pub(crate) use timer::Timer;

/// A command that a script has called, for MONITOR.
pub(crate) struct ScriptLine {
    /// The database that is selected after it.
    pub(crate) db: usize,
    /// Its arguments as others may see them.
    pub(crate) shown: Vec<Vec<u8>>,
}

/// One request.
pub(crate) struct Request {
    pub(crate) lane: usize,
    /// Where it begins in the lane's source, to come back to it if it cannot run yet.
    pub(crate) from: usize,
    pub(crate) bytes: usize,
    pub(crate) first_span: usize,
    pub(crate) spans: usize,
    pub(crate) first_hash: usize,
    pub(crate) hashes: usize,
    pub(crate) command: Option<&'static Command>,
}

/// Runs an admitted command. Whether it is one to look at for HOTKEYS the caller knows.
#[inline(always)]
pub(crate) fn run<'c>(
    command: &'static Command,
    context: &mut Context<'c>,
    args: &mut Args<'_>,
) -> Next {
    run_handler(command, command.handler, context, args)
}

/// Runs an admitted command whose handler is this one.
#[inline(always)]
fn run_handler<'c>(
    command: &'static Command,
    handler: Handler,
    context: &mut Context<'c>,
    args: &mut Args<'_>,
) -> Next {
    context.command = command;
    args.first_key = command.first_key as usize;
    args.key_shift = command.key_shift;
    let before = context.reply.mark();
    match handler(context, args) {
        Ok(next) => next,
        Err(failure) => {
            context.fail(command, &failure, before);
            Next::Done
        }
    }
}

/// Runs an admitted command, and looks at it if it is its turn.
#[inline(never)]
pub(crate) fn run_and_look<'c>(
    command: &'static Command,
    context: &mut Context<'c>,
    args: &mut Args<'_>,
) -> Next {
    let before = context.reply.mark();
    // The time of a command that is not looked at is not taken here.
    let began = (context.store.stats.hot_keys.left() == 0).then(sys::clock::ticks);
    let next = match command.spec.large.takes {
        Some((_, handler)) if context.extras.received.is_some() => {
            run_handler(command, handler, context, args)
        }
        _ => run(command, context, args),
    };
    if context.store.stats.hot_keys.is_due() {
        let replied = context.reply.bytes_since(before);
        let ticks = began.map_or(0, |began| sys::clock::ticks().saturating_sub(began));
        sample(command, context, args, ticks, replied);
    }
    next
}

/// Runs one command of a transaction or a script, timed as it would be outside of it.
pub(crate) fn run_inside(
    context: &mut Context<'_>,
    command: &'static Command,
    args: &mut Args<'_>,
    timer: &mut Timer,
) {
    if context.session.listens {
        track::remember(context, command, args);
    }
    if context.server.offload.is_on()
        && let Err(failure) = context.prepare_now(command, args)
    {
        return context.refuse(&failure);
    }
    if timer.groups(command, args.size()) {
        timer.count(command);
        let next = run_and_look(command, context, args);
        debug_assert_eq!(next, Next::Done, "nothing waits in here");
        return;
    }
    timer.begin_alone(command);
    let next = run_and_look(command, context, args);
    debug_assert_eq!(next, Next::Done, "nothing waits in here");
    timer.end_alone(command, args, context.session);
    context.refresh();
}

/// Decides what happens to a request about which there is something to decide.
pub(crate) fn run_special<'c>(
    request: &Request,
    context: &mut Context<'c>,
    args: &mut Args<'_>,
    timer: &mut Timer,
) -> Next {
    let before = context.reply.mark();
    context.replies_in_parts = false;
    let admission = admit(context, request, args);
    let named = match &admission {
        Admission::Run(command)
        | Admission::Queue(command)
        | Admission::Wait(command)
        | Admission::Elsewhere(command, _) => Some(*command),
        Admission::Refuse(command, _) => *command,
        Admission::HangUp | Admission::End => None,
    };
    context
        .session
        .client
        .note_command(named.map_or(NO_COMMAND, |command| command.id));
    let (mut next, mut pushes) = (Next::Done, false);
    match admission {
        Admission::Queue(command) => context.queue(command, args),
        Admission::Run(command) => {
            pushes = command.spec.has(flag::PUSHES);
            if context.server.offload.is_on() && !command.control.finds_its_values() {
                match context.prepare(command, args) {
                    Prepared::Ready => context.dawdle(),
                    Prepared::Failed(failure) => {
                        context.fail_unprepared(&failure, before);
                        return Next::Done;
                    }
                    Prepared::Fetch => return Next::Fetch,
                    Prepared::Later => return Next::Retry,
                }
            }
            timer.begin_alone(command);
            if context.session.listens {
                track::remember(context, command, args);
            }
            next = run_and_look(command, context, args);
            context.unpin();
            match (next, &mut context.session.deferred) {
                (Next::Fetch | Next::Retry, _) => {
                    timer.hand_over();
                    context.reply.take_back(before);
                    return next;
                }
                (Next::Defer, Some(deferred)) => deferred.ticks = timer.hand_over(),
                _ => timer.end_alone(command, args, context.session),
            }
            context.refresh();
            context.show_monitors(context.session.db, command, args);
        }
        Admission::Refuse(command, failure) => context.reject(command, failure, args),
        Admission::Elsewhere(command, failure) => context.send_elsewhere(command, &failure),
        Admission::Wait(_) => return Next::Retry,
        Admission::HangUp => {
            let client = &context.session.client;
            log::warn!("closing client {}: it speaks HTTP", client.peer);
            client.killed.store(true, Relaxed);
        }
        Admission::End => context.session.closing = true,
    }
    if context.session.reply_mode != ReplyMode::On {
        if !pushes && !context.replies_in_parts {
            context.reply.take_back(before);
        }
        context.session.reply_mode = context.session.reply_mode.behind_a_command();
    }
    if context.session.listens && !context.session.closing {
        track::end_command(context.session, named);
        context.receive();
    }
    next
}

impl Context<'_> {
    /// End of a command whose handler has failed.
    #[cold]
    #[inline(never)]
    pub(super) fn fail(&mut self, command: &Command, failure: &Failure, before: Mark) {
        self.reply.take_back(before);
        self.refuse(failure);
        let stats = self.store.stats.command(command.id);
        stats.failed.add(1);
    }

    /// Answers a request that breaks the rules of the protocol. Nothing behind it is understood: the
    /// connection ends.
    #[cold]
    pub(crate) fn refuse_syntax(&mut self, error: &ProtocolError) {
        if self.session.reply_mode == ReplyMode::On {
            error.write_reply(self.reply.out);
        }
        self.store.stats.errors.add(1);
        self.server.errors.add("ERR");
        self.session.closing = true;
    }

    /// Answers an error and counts it.
    #[cold]
    pub(crate) fn refuse(&mut self, failure: &Failure) {
        // Line ends at its end belong to an argument that it repeats, and would only be spaces.
        let end = failure
            .0
            .iter()
            .rposition(|&byte| !matches!(byte, b'\r' | b'\n'))
            .map_or(0, |last| last + 1);
        self.reply.error(&failure.0[..end]);
        self.store.stats.errors.add(1);
        self.server.errors.add(failure.code());
    }

    /// Refuses a request that was not admitted. The transaction it was meant for fails with it.
    #[cold]
    fn reject(&mut self, command: Option<&'static Command>, failure: Failure, args: &Args<'_>) {
        if let Some(command) = command {
            self.store.stats.command(command.id).rejected.add(1);
        }
        match command {
            Some(command) if command.control == Control::Exec => {
                self.discard();
                self.refuse(&failure.of_exec());
                self.show_monitors(self.session.db, command, args);
            }
            _ => {
                if let Some(transaction) = &mut self.session.transaction {
                    transaction.refused = true;
                }
                self.refuse(&failure);
            }
        }
    }

    /// Tells the client where its request is to be sent, if it cannot run on this node. Returns whether that
    /// is so.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_sent_elsewhere(&mut self, command: &'static Command, args: &Args<'_>) -> bool {
        let cluster = self.server.cluster.as_ref();
        let cluster = cluster.filter(|cluster| !cluster.serves(command, args));
        let failure = cluster.and_then(|cluster| cluster.refusal(self, command, args));
        if let Some(failure) = &failure {
            self.send_elsewhere(command, failure);
        }
        failure.is_some()
    }

    /// Tells the client that its request cannot run on this node. The transaction it was meant for fails with
    /// it; where the transaction as a whole cannot run, it is over.
    #[cold]
    #[inline(never)]
    fn send_elsewhere(&mut self, command: &'static Command, failure: &Failure) {
        self.store.stats.command(command.id).rejected.add(1);
        if command.control == Control::Exec {
            self.discard();
        } else if let Some(transaction) = &mut self.session.transaction {
            transaction.refused = true;
        }
        self.refuse(failure);
    }

    /// Puts a request behind the others of its transaction, unless that has failed already. Beyond the limit
    /// of a transaction the request is refused, and what was queued before it goes: EXEC will not run it.
    fn queue(&mut self, command: &'static Command, args: &mut Args<'_>) {
        let is_dirty = self.session.is_dirty();
        let fits = self.check_queue_limit(args.size());
        let Some(transaction) = &mut self.session.transaction else {
            return;
        };
        if is_dirty || transaction.refused {
            return self.reply.simple("QUEUED");
        }
        if let Err(failure) = fits {
            **transaction = Transaction::default();
            self.session.note_queue();
            return self.reject(Some(command), failure, args);
        }
        transaction.push(command, args);
        self.session.note_queue();
        self.reply.simple("QUEUED");
    }

    /// Whether `bytes` more may be kept for a transaction: no more than a request may have, nor than one
    /// client among all.
    ///
    /// # Errors
    /// What to tell the client. Its connection stays.
    pub(crate) fn check_queue_limit(&self, bytes: usize) -> Result<(), Failure> {
        let (used, taken) = self.session.transaction_bytes_with(bytes);
        let limit = self.server.settings.int(Setting::ClientQueryBufferLimit) as usize;
        let clients = self.server.memory.clients();
        let share = clients.map_or(usize::MAX, |bytes| bytes / 100 * QUEUE_CLIENTS_PERCENT);
        let (limit, setting) = match (used > limit, taken > share) {
            (false, false) => return Ok(()),
            (true, _) => (limit, "client-query-buffer-limit"),
            (false, true) => (share, "maxmemory-clients"),
        };
        Err(Failure::new(format!(
            "ERR a transaction and its watched keys may take {limit} bytes ({setting})"
        )))
    }

    /// Ends the transaction without running it.
    pub(crate) fn discard(&mut self) {
        self.session.unwatch(self.server);
        if let Some(transaction) = self.session.take_transaction() {
            self.spares.give_back(transaction);
        }
    }

    /// Shows MONITOR a command that ran and left the connection in database `db`.
    pub(crate) fn show_monitors(&self, db: usize, command: &Command, args: &Args<'_>) {
        let hidden = command.spec.flags & (flag::ADMIN | flag::SKIP_MONITOR) != 0;
        if self.server.monitors.any() && !hidden {
            let monitors = &self.server.monitors;
            let shown = (0..args.len()).map(|at| command.shown(args, at));
            monitors.feed(self.server, &self.session.client, db, shown);
        }
    }

    /// Shows MONITOR a script's request, and the commands that the script has called.
    pub(crate) fn show_script(&self, args: &Args<'_>, lines: Vec<ScriptLine>) {
        let (server, db) = (self.server, self.session.db);
        if !server.monitors.any() {
            return;
        }
        let shown = args.from(0);
        server
            .monitors
            .feed(server, &self.session.client, db, shown);
        for ScriptLine { db, shown } in &lines {
            server
                .monitors
                .feed_script(server, *db, shown.iter().map(|arg| &arg[..]));
        }
    }

    /// The reason why no command may change data, if there is one.
    pub(crate) fn refusal_of_writes(&self) -> Option<Failure> {
        let gate = &self.server.gate;
        if gate.has(Closed::SnapshotFailed) {
            Some(failure::SNAPSHOT_FAILED)
        } else if gate.has(Closed::LogRefuses) {
            Some(self.server.persistence.failure())
        } else {
            None
        }
    }

    /// Takes over what the last command changed of its session.
    pub(crate) fn refresh(&mut self) {
        self.store.db = self.session.db;
        self.store.touch = !self.session.no_touch && self.server.memory.counts_reads();
        self.store.notifier = Notifier::new(self.server);
        self.reply.set_protocol(self.session.protocol);
    }
}
