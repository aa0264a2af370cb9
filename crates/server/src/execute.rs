//! Running the requests of a window, each to completion, in the order their connection sent them.
//!
//! Before a command runs it is *admitted*: known, right number of arguments, authenticated, not out of memory, not paused.
//! Around it, its time is taken. Reading the clock costs as much as a GET, so a run of the same fast command
//! is timed as a whole and counted at its mean; whatever might be slow (a command that is not groupable, a large
//! request, a low `slowlog-log-slower-than`) is timed alone.

use std::sync::atomic::Ordering::Relaxed;

use keyspace::{INLINE_VALUE_MAX, LargeValue};

use crate::batch::{Request, Source};
use crate::blocked;
use crate::clients::{NO_COMMAND, status};
use crate::command::server::{is_unprotected, must_wait};
use crate::command::{Args, Command, Context, Control, Failure, Reply, failure, flag};
use crate::config::Setting;
use crate::connection::{Connection, State};
use crate::gate::Closed;
use crate::hotkeys;
use crate::limits::ERROR_ECHO_BYTES;
use crate::memory::Room;
use crate::metrics::WorkerStats;
use crate::notify::{self, Notifier};
use crate::server::{PauseKind, Server};
use crate::session::{ReplyMode, Session};
use crate::store::Store;
use crate::tracking;
use crate::worker::Worker;

/// Requests of more bytes than this are timed alone.
const LARGE_REQUEST: usize = 4096;
/// Below this `slowlog-log-slower-than` (us) every command is timed alone.
const EXACT_BELOW_US: i64 = 1000;

/// Whether a request may run.
enum Admission {
    Run(&'static Command),
    /// With the other requests of its transaction.
    Queue(&'static Command),
    Refuse(Option<&'static Command>, Failure),
    /// Later: CLIENT PAUSE holds it back, or workers that have not caught up with what is published, or there is no room for it yet.
    Wait(&'static Command),
    /// Never, nor anything else of this connection, which gets no answer either.
    HangUp,
    /// Never: the server ends, and the connection with it.
    End,
}

impl Worker {
    /// Runs the parsed window.
    pub(crate) fn execute(&mut self) {
        let requests = std::mem::take(&mut self.batch.requests);
        self.prepare_journal(&requests);
        let mut timer = Timer::new(self.server, self.stats);
        let mut rest = &requests[..];
        let last = self.batch.at.min(self.batch.lanes.len() - 1);
        for number in self.batch.window_from..=last {
            let own = rest
                .iter()
                .take_while(|request| request.lane == number)
                .count();
            self.run_lane(number, &rest[..own], &mut timer);
            rest = &rest[own..];
        }
        timer.finish_run();
        self.batch.requests = requests;
    }

    /// Runs one lane's requests of the window.
    fn run_lane(&mut self, number: usize, requests: &[Request], timer: &mut Timer) {
        let (server, worker, now) = (self.server, self.number, self.now);
        let Worker {
            batch,
            connections,
            scratch,
            turn,
            output,
            stats,
            paused,
            waiting: those_who_wait,
            listeners,
            spares,
            journal,
            ..
        } = self;
        let lane = &mut batch.lanes[number];
        let Some(connection) = connections.get_mut(lane.token) else {
            return;
        };
        if connection.session.client.killed.load(Relaxed) {
            lane.stopped = true;
            return;
        }
        if lane.output_from == lane.output_until {
            lane.output_from = output.bytes.len();
        }
        let Connection {
            session,
            pending,
            resume,
            state,
            parked,
            ..
        } = connection;
        // A large request may become a value as it is: for that its buffer must be one that can be shared.
        let buffer = (lane.source == Source::Pending && pending.len() > INLINE_VALUE_MAX)
            .then(|| LargeValue::new(std::mem::take(pending).into()));
        lane.large = buffer.is_some();
        let input: &[u8] = match (&buffer, lane.source) {
            (Some(buffer), _) => buffer.buffer(),
            (None, Source::Scratch { from, until }) => &scratch[from..until],
            (None, Source::Pending) => pending,
        };
        let mut args = Args {
            input,
            spans: &[],
            hashes: &[],
            first_key: 0,
            key_shift: 0,
            keyspace: &server.keyspace,
            buffer: buffer.as_ref(),
        };
        let (db, touch, protocol) = (session.db, !session.no_touch, session.protocol);
        let mut context = Context {
            server,
            store: Store {
                keyspace: &server.keyspace,
                turn,
                stats,
                db,
                now,
                touch,
                notifier: Notifier::new(server),
                observers: &server.observers,
                persistence: &server.persistence,
                journal: journal.as_ref(),
            },
            session,
            reply: Reply::new(output, protocol),
            listeners,
            command: self.table.any(),
            worker,
            spares,
            parked: None,
            in_transaction: false,
            replies_in_parts: false,
        };
        if context.session.listens {
            tracking::set_current(context.session.client.id);
            // What was published before these requests came is told before they are answered.
            context.receive();
        }
        let mut nothing_special = is_plain(server, context.session, now);
        let mut last_command = None;
        if let Some(parked) = parked.take() {
            blocked::go_on(&mut context, *parked);
        }
        // Where the lane stops, and the requests that wait behind that.
        let mut waits_from = None;
        for (number, request) in requests.iter().enumerate() {
            if lane.stopped {
                break;
            }
            args.spans = &batch.spans[request.first_span..][..request.spans];
            args.hashes = &batch.hashes[request.first_hash..][..request.hashes];
            if let Some(command) = request.command
                && nothing_special
                && timer.groups(command, request.bytes)
                && command.takes(args.spans.len())
                && (!server.memory.is_near() || context.has_room(command, request.bytes))
            {
                // What nearly all requests are: nothing to decide, and the session is the same afterwards.
                timer.count(command);
                run(command, &mut context, &mut args);
                last_command = Some(command);
                if blocked::ready::any() {
                    blocked::serve(&context);
                }
                continue;
            }
            last_command = None;
            if !run_special(request, &mut context, &mut args, timer) {
                waits_from = Some((request.from, &requests[number..]));
                break;
            }
            if context.session.deferred.is_some() {
                waits_from = Some((request.from + request.bytes, &requests[number + 1..]));
                break;
            }
            if blocked::ready::any() {
                blocked::serve(&context);
            }
            if context.parked.is_some() {
                waits_from = Some((request.from + request.bytes, &requests[number + 1..]));
                break;
            }
            lane.stopped = context.session.closing || context.session.client.killed.load(Relaxed);
            nothing_special = is_plain(server, context.session, now);
        }
        tracking::set_current(0);
        if let Some(command) = last_command {
            context.session.client.note_command(command.id);
        }
        let mut rewritten = None;
        *parked = context.parked.take();
        if let Some((from, waiting)) = waits_from {
            // Come back to these, and whatever is behind them, when the pause is over, or what was asked for is there.
            rewritten = lane.take_back(from, waiting, &batch.spans, input);
            resume.clear();
            if let Some(deferred) = &session.deferred {
                *state = State::Working;
                those_who_wait.add(lane.token, deferred);
            } else if parked.is_some() {
                *state = State::Parked;
                session.client.set_status(status::BLOCKED, true);
            } else {
                *state = State::Paused;
                session.client.set_status(status::BLOCKED, true);
                paused.push(lane.token);
            }
        } else if let Some(error) = lane.error.take()
            && !lane.stopped
        {
            if session.reply_mode == ReplyMode::On {
                error.write_reply(&mut output.bytes);
            }
            stats.errors.add(1);
            server.errors.add("ERR");
            session.closing = true;
            lane.stopped = true;
        }
        if let Some(buffer) = buffer {
            match LargeValue::try_unwrap(buffer) {
                Ok(large) => *pending = large.into_buffer(),
                Err(value) => {
                    // It is a value now; what is behind the request stays.
                    *pending = value.buffer()[lane.at..].to_vec();
                    lane.at = 0;
                }
            }
        }
        if let Some(requests) = rewritten {
            *pending = requests;
            lane.source = Source::Pending;
        }
        lane.output_until = output.bytes.len();
        if session.client.killed.load(Relaxed) {
            lane.output_from = lane.output_until;
        }
    }
}

/// Whether nothing but the command itself decides what happens to a request of this session.
#[inline]
fn is_plain(server: &Server, session: &Session, now: i64) -> bool {
    session.authenticated
        && session.reply_mode == ReplyMode::On
        && session.transaction.is_none()
        && server.gate.is_open()
        && !session.listens
        && !server.crowd.any()
        && !server.monitors.any()
        && server.pause.until(now).is_none()
}

/// Runs an admitted command.
#[inline]
pub(crate) fn run<'c>(command: &'static Command, context: &mut Context<'c>, args: &mut Args<'_>) {
    context.command = command;
    args.first_key = command.first_key as usize;
    args.key_shift = command.key_shift;
    let before = context.reply.mark();
    if let Err(failure) = (command.handler)(context, args) {
        context.reply.take_back(before);
        context.refuse(&failure);
        context.store.stats.command(command.id).failed.add(1);
    }
    if context.store.stats.hot_keys.is_due() {
        let replied = context.reply.bytes_since(before);
        hotkeys::sample(command, context, args, replied);
    }
}

/// Decides what happens to a request about which there is something to decide. Returns whether it is done with: `false`
/// lets it wait.
fn run_special<'c>(
    request: &Request,
    context: &mut Context<'c>,
    args: &mut Args<'_>,
    timer: &mut Timer,
) -> bool {
    let before = context.reply.mark();
    context.replies_in_parts = false;
    let admission = admit(context, request, args);
    let admission = match admission {
        Admission::Run(command)
            if command.control == Control::WaitAof && must_wait(context, args) =>
        {
            Admission::Wait(command)
        }
        other => other,
    };
    let named = match &admission {
        Admission::Run(command) | Admission::Queue(command) | Admission::Wait(command) => {
            Some(*command)
        }
        Admission::Refuse(command, _) => *command,
        Admission::HangUp | Admission::End => None,
    };
    context
        .session
        .client
        .note_command(named.map_or(NO_COMMAND, |command| command.id));
    let mut pushes = false;
    match admission {
        Admission::Queue(command) => context.queue(command, args),
        Admission::Run(command) => {
            pushes = command.spec.has(flag::PUSHES);
            timer.begin_alone(command);
            if context.session.listens {
                tracking::remember(context, command, args);
            }
            run(command, context, args);
            match &mut context.session.deferred {
                Some(deferred) => deferred.ticks = timer.hand_over(),
                None => timer.end_alone(command, args, context.session),
            }
            context.refresh();
            context.show_monitors(context.session.db, command, args);
        }
        Admission::Refuse(command, failure) => context.reject(command, failure, args),
        Admission::Wait(_) => return false,
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
        tracking::end_command(context.session, named);
        context.receive();
    }
    true
}

impl Context<'_> {
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

    /// Puts a request behind the others of its transaction, unless that has failed already.
    fn queue(&mut self, command: &'static Command, args: &mut Args<'_>) {
        self.reply.simple("QUEUED");
        let is_dirty = self.session.is_dirty();
        let Some(transaction) = &mut self.session.transaction else {
            return;
        };
        if is_dirty || transaction.refused {
            return;
        }
        transaction.push(command, args);
        self.session.note_queue();
        self.check_queue_limit();
    }

    /// Ends a connection whose transaction grows beyond what a request may.
    pub(crate) fn check_queue_limit(&mut self) {
        let limit = self.server.settings.int(Setting::ClientQueryBufferLimit) as usize;
        if self.session.transaction_bytes() <= limit {
            return;
        }
        let client = &self.session.client;
        log::warn!(
            "closing client {}: its transaction grew beyond client-query-buffer-limit",
            client.id
        );
        let totals = &self.server.totals;
        totals.query_limit_disconnects.fetch_add(1, Relaxed);
        client.killed.store(true, Relaxed);
    }

    /// Ends the transaction without running it.
    pub(crate) fn discard(&mut self) {
        self.session.unwatch(self.server);
        if let Some(transaction) = self.session.take_transaction() {
            self.spares.give_back(transaction);
        }
    }

    /// Tells those who monitor about a command that ran and left the connection in database `db`.
    pub(crate) fn show_monitors(&self, db: usize, command: &Command, args: &Args<'_>) {
        let hidden = command.spec.flags & (flag::ADMIN | flag::SKIP_MONITOR) != 0;
        if self.server.monitors.any() && !hidden {
            let monitors = &self.server.monitors;
            monitors.feed(self.server, self.session, db, command, args);
        }
    }

    /// Takes over what the last command changed of its session.
    pub(crate) fn refresh(&mut self) {
        self.store.db = self.session.db;
        self.store.touch = !self.session.no_touch;
        self.store.notifier = Notifier::new(self.server);
        self.reply.set_protocol(self.session.protocol);
    }
}

/// Decides whether a request may run, in the order in which Redis checks.
#[inline]
fn admit(context: &Context<'_>, request: &Request, args: &Args<'_>) -> Admission {
    let (server, session, now) = (context.server, &*context.session, context.store.now);
    let Some(mut command) = request.command else {
        let is_http = args.is(0, "post") || args.is(0, "host:");
        return if is_http {
            Admission::HangUp
        } else {
            Admission::Refuse(None, unknown_command(args))
        };
    };
    if !command.subcommands.is_empty() && args.len() > 1 {
        match command.subcommand(args.get(1)) {
            Some(sub) => command = sub,
            None => return Admission::Refuse(None, unknown_subcommand(command, args)),
        }
    }
    let refuse = |failure| Admission::Refuse(Some(command), failure);
    if !command.takes(args.len()) {
        return refuse(Failure::wrong_arity(&command.full_name));
    }
    if command.spec.has(flag::PROTECTED) && !is_unprotected(server, session) {
        return refuse(failure::PROTECTED);
    }
    if !command.spec.has(flag::NO_AUTH) && !session.is_admitted(server) {
        return refuse(failure::NO_AUTH);
    }
    let control = command.control;
    let mut flags = command.spec.flags;
    let mut needs_data = !command.spec.has(flag::LOADING);
    let is_queued = match &session.transaction {
        None => false,
        Some(_) if command.spec.has(flag::NO_MULTI) => return refuse(failure::NO_MULTI),
        Some(transaction) => {
            if control == Control::Exec {
                flags |= transaction.flags;
                needs_data |= transaction.needs_data;
            }
            if !control.ends() {
                // What is queued takes memory, whatever it is.
                flags |= flag::DENYOOM;
            }
            control.is_queued()
        }
    };
    if flags & flag::DENYOOM != 0 && server.memory.is_near() {
        match context.make_room(request.bytes + session.transaction_bytes()) {
            Room::Enough => {}
            Room::Later => return Admission::Wait(command),
            Room::No => return refuse(failure::OUT_OF_MEMORY),
        }
    }
    if !server.gate.is_open()
        && let Some(admission) = at_gate(server, command, flags, needs_data)
    {
        return admission;
    }
    if session.is_subscriber_only() && !command.spec.has(flag::OF_SUBSCRIBERS) {
        return Admission::Refuse(Some(command), subscriber_only(command));
    }
    if server.crowd.any() && may_publish(server, flags) {
        return Admission::Wait(command);
    }
    // Who monitors is not a client in this respect: as in Redis, it goes on.
    if let Some((_, kind)) = server.pause.until(now)
        && !session.monitor
        && (kind == PauseKind::All || flags & (flag::WRITE | flag::MAY_REPLICATE) != 0)
    {
        return Admission::Wait(command);
    }
    if is_queued {
        Admission::Queue(command)
    } else {
        Admission::Run(command)
    }
}

/// Whether a command of these flags may publish something: itself, or because somebody wants to know what happens to keys.
#[cold]
fn may_publish(server: &Server, flags: u32) -> bool {
    let changes = flag::WRITE | flag::READONLY;
    let is_heard = || notify::is_on(server) || server.observers.tracking.any();
    flags & flag::PUBLISHES != 0 || (flags & changes != 0 && is_heard())
}

/// Decides what happens to a command while not every command may run. `flags` are those of a whole transaction, and `needs_data`
/// says whether some of it may not run while data is loaded.
#[cold]
fn at_gate(
    server: &Server,
    command: &'static Command,
    flags: u32,
    needs_data: bool,
) -> Option<Admission> {
    let gate = &server.gate;
    // As in Redis a PING finds out, too.
    let writes = flags & flag::WRITE != 0 || command.spec.name == "ping";
    let refused = if gate.has(Closed::Ending) {
        return Some(Admission::End);
    } else if gate.has(Closed::SnapshotFailed) && writes {
        failure::SNAPSHOT_FAILED
    } else if gate.has(Closed::LogRefuses) && writes {
        server.persistence.failure()
    } else if gate.has(Closed::Loading) && needs_data {
        failure::LOADING
    } else {
        return None;
    };
    Some(Admission::Refuse(Some(command), refused))
}

/// The text about a command nobody knows: its name and the beginning of its arguments.
#[cold]
fn unknown_command(args: &Args<'_>) -> Failure {
    let mut echoed = Vec::new();
    for arg in args.from(1) {
        if echoed.len() >= ERROR_ECHO_BYTES {
            break;
        }
        let room = ERROR_ECHO_BYTES - echoed.len();
        echoed.extend([b"'", failure::quoted(failure::start(arg, room)), b"' "].concat());
    }
    let name = failure::start(args.get(0), ERROR_ECHO_BYTES);
    let mut failure = Failure::about(
        "ERR unknown command '",
        name,
        "', with args beginning with: ",
    );
    failure.0.to_mut().extend(echoed);
    failure
}

/// The text about a command that a connection may not send while it gets messages over RESP2.
#[cold]
fn subscriber_only(command: &Command) -> Failure {
    Failure::new(format!(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
        command.full_name
    ))
}

#[cold]
fn unknown_subcommand(command: &Command, args: &Args<'_>) -> Failure {
    let name = failure::start(args.get(1), ERROR_ECHO_BYTES);
    let behind = format!("'. Try {} HELP.", command.full_name.to_uppercase());
    Failure::about("ERR unknown subcommand '", name, &behind)
}

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
        if self.command.is_none_or(|current| current.id != command.id) {
            self.begin_alone(command);
        } else {
            self.calls += 1;
        }
    }

    /// Before a command that is timed alone.
    pub(crate) fn begin_alone(&mut self, command: &'static Command) {
        self.finish_run();
        self.command = Some(command);
        self.calls = 1;
        self.since = sys::clock::ticks();
    }

    /// After it ran.
    pub(crate) fn end_alone(&mut self, command: &Command, args: &Args<'_>, session: &Session) {
        let ticks = sys::clock::ticks().saturating_sub(self.since);
        self.record(ticks);
        self.check_slow(command, args, session, ticks);
    }

    /// After a command that is not over, instead: the ticks it took until now.
    fn hand_over(&mut self) -> u64 {
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
            let most = self.server.settings.int(Setting::SlowlogMaxLen) as usize;
            self.server
                .slowlog
                .lock()
                .add(command, args, session, took_us, most);
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
