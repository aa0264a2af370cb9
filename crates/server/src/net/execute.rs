//! Running the requests of a window, each to completion, in the order their connection sent them.
//!
//! Before a command runs it is *admitted* (`admit`): known, right number of arguments,
//! authenticated, not out of memory, not paused. Around it, its time is taken ([`timer`]).

mod admit;
mod sample;
mod timer;

use std::sync::atomic::Ordering::Relaxed;

use keyspace::{INLINE_VALUE_MAX, LargeValue};

use crate::blocked::ready;
use crate::clients::{NO_COMMAND, status};
use crate::cold::Prepared;
use crate::command::park;
use crate::command::queue::Transaction;
use crate::command::session::Session;
use crate::command::{Command, Context, Control, Handler, flag};
use crate::config::Setting;
use crate::limits::QUEUE_CLIENTS_PERCENT;
use crate::net::batch::{Request, Source};
use crate::net::connection::{Connection, State};
use crate::net::worker::Worker;
use crate::notify::Notifier;
use crate::request::ReplyMode;
use crate::request::reply::Mark;
use crate::request::{Args, Failure, Reply};
use crate::server::Server;
use crate::store::Store;
use crate::tracking;

use admit::{Admission, admit};
use sample::sample;
pub(crate) use timer::Timer;

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
            extras,
            served,
            waiting: those_who_wait,
            listeners,
            spares,
            journal,
            poller,
            reads,
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
            fetch,
            received,
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
        // What came for the first request.
        extras.received =
            received.take_if(|_| lane.source == Source::Pending && !requests.is_empty());
        let mut context = Context {
            server,
            store: Store {
                db,
                touch,
                ..Store::new(server, turn, stats, journal.as_ref(), served, now)
            },
            session,
            reply: Reply::new(output, protocol),
            listeners,
            command: self.table.any(),
            worker,
            spares,
            fetch,
            extras,
            again: false,
            waits_for_room: false,
            in_transaction: false,
            replies_in_parts: false,
        };
        if context.session.listens {
            tracking::set_current(context.session.client.id);
            // What was published before these requests came is told before they are answered.
            context.receive();
        }
        let mut nothing_special =
            is_plain(server, context.session, now) && context.extras.received.is_none();
        let mut last_command = None;
        // The same for all of the turn.
        let may_be_cold = server.cold.is_on();
        let cluster = server.cluster.as_ref();
        let is_here =
            cluster.is_none_or(|cluster| cluster.serves_all(requests, &batch.spans, input));
        let asks_more = may_be_cold || !is_here;
        // One that has parked in an earlier window of this group still waits.
        if *state != State::Parked
            && let Some(parked) = parked.take()
        {
            park::go_on(&mut context, *parked);
        }
        // Where the lane stops, and the requests that wait behind that.
        let mut waits_from = None;
        // The request that is looked at for HOTKEYS.
        let mut looked_at = stats.hot_keys.left();
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
                if asks_more {
                    if !is_here && context.is_sent_elsewhere(command, &args) {
                        continue;
                    }
                    if may_be_cold {
                        match context.prepare(command, &mut args) {
                            Prepared::Ready => {}
                            Prepared::Failed(failure) => {
                                context.refuse(&failure);
                                continue;
                            }
                            Prepared::Fetch | Prepared::Later => {
                                waits_from = Some((request.from, &requests[number..]));
                                break;
                            }
                        }
                    }
                }
                // What nearly all requests are: nothing to decide, and the session is the same afterwards.
                timer.count(command);
                if number == looked_at {
                    stats.hot_keys.set_left(0);
                    run_and_look(command, &mut context, &mut args);
                    looked_at = number + 1 + stats.hot_keys.left();
                } else {
                    run(command, &mut context, &mut args);
                }
                last_command = Some(command);
                if may_be_cold {
                    context.unpin();
                    if context.again {
                        waits_from = Some((request.from, &requests[number..]));
                        break;
                    }
                }
                if ready::any() {
                    park::serve(&context);
                }
                continue;
            }
            last_command = None;
            stats.hot_keys.set_left(looked_at.saturating_sub(number));
            let is_done = run_special(request, &mut context, &mut args, timer);
            looked_at = number + 1 + stats.hot_keys.left();
            if !is_done {
                waits_from = Some((request.from, &requests[number..]));
                break;
            }
            // What it has not used goes.
            context.extras.received = None;
            if context.session.deferred.is_some() {
                waits_from = Some((request.from + request.bytes, &requests[number + 1..]));
                break;
            }
            if ready::any() {
                park::serve(&context);
            }
            if context.extras.parked.is_some() {
                waits_from = Some((request.from + request.bytes, &requests[number + 1..]));
                break;
            }
            lane.stopped = context.session.closing || context.session.client.killed.load(Relaxed);
            nothing_special = is_plain(server, context.session, now);
        }
        stats
            .hot_keys
            .set_left(looked_at.saturating_sub(requests.len()));
        tracking::set_current(0);
        if let Some(command) = last_command {
            context.session.client.note_command(command.id);
        }
        let mut rewritten = None;
        if let Some(begun) = context.extras.parked.take() {
            *parked = Some(begun);
        }
        if let Some(comes_again) = context.extras.received.take() {
            *received = Some(comes_again);
        }
        debug_assert!(waits_from.is_some() || context.extras.wanted.is_empty());
        // What a request left that has not run is nobody's: the next lane may be of another connection.
        context.store.served.clear();
        context.extras.borrowed.clear();
        if let Some((from, waiting)) = waits_from {
            // Come back to these, and whatever is behind them, when the pause is over, or what was asked for
            // is there.
            rewritten = lane.take_back(from, waiting, &batch.spans, input);
            resume.clear();
            if !extras.wanted.is_empty() {
                *state = State::Fetching;
                let wanted = std::mem::take(&mut extras.wanted);
                reads.begin(server, poller, &session.client, fetch, wanted);
            } else if let Some(deferred) = &session.deferred {
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

/// Runs an admitted command. Whether it is one to look at for HOTKEYS the caller knows.
#[inline(always)]
fn run<'c>(command: &'static Command, context: &mut Context<'c>, args: &mut Args<'_>) {
    run_handler(command, command.handler, context, args);
}

/// Runs an admitted command whose handler is this one.
#[inline(always)]
fn run_handler<'c>(
    command: &'static Command,
    handler: Handler,
    context: &mut Context<'c>,
    args: &mut Args<'_>,
) {
    context.command = command;
    args.first_key = command.first_key as usize;
    args.key_shift = command.key_shift;
    let before = context.reply.mark();
    if let Err(failure) = handler(context, args) {
        context.fail(command, &failure, before);
    }
}

/// Runs an admitted command, and looks at it if it is its turn.
#[inline(never)]
pub(crate) fn run_and_look<'c>(
    command: &'static Command,
    context: &mut Context<'c>,
    args: &mut Args<'_>,
) {
    let before = context.reply.mark();
    // The time of a command that is not looked at is not taken here.
    let began = (context.store.stats.hot_keys.left() == 0).then(sys::clock::ticks);
    match command.spec.large.takes {
        Some((_, handler)) if context.extras.received.is_some() => {
            run_handler(command, handler, context, args);
        }
        _ => run(command, context, args),
    }
    if context.store.stats.hot_keys.is_due() {
        let replied = context.reply.bytes_since(before);
        let ticks = began.map_or(0, |began| sys::clock::ticks().saturating_sub(began));
        sample(command, context, args, ticks, replied);
    }
}

/// Decides what happens to a request about which there is something to decide. Returns whether it is done
/// with: `false` lets it wait.
fn run_special<'c>(
    request: &Request,
    context: &mut Context<'c>,
    args: &mut Args<'_>,
    timer: &mut Timer,
) -> bool {
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
    let mut pushes = false;
    match admission {
        Admission::Queue(command) => context.queue(command, args),
        Admission::Run(command) => {
            pushes = command.spec.has(flag::PUSHES);
            if context.server.cold.is_on() && command.control != Control::Exec {
                match context.prepare(command, args) {
                    Prepared::Ready => {}
                    Prepared::Failed(failure) => return context.fail_unprepared(&failure, before),
                    Prepared::Fetch | Prepared::Later => return false,
                }
            }
            timer.begin_alone(command);
            if context.session.listens {
                tracking::remember(context, command, args);
            }
            run_and_look(command, context, args);
            context.unpin();
            if std::mem::take(&mut context.again) {
                timer.hand_over();
                return false;
            }
            if !context.extras.wanted.is_empty() || std::mem::take(&mut context.waits_for_room) {
                // It has not run: what it needs is to be read back first.
                timer.hand_over();
                return false;
            }
            match &mut context.session.deferred {
                Some(deferred) => deferred.ticks = timer.hand_over(),
                None => timer.end_alone(command, args, context.session),
            }
            context.refresh();
            context.show_monitors(context.session.db, command, args);
        }
        Admission::Refuse(command, failure) => context.reject(command, failure, args),
        Admission::Elsewhere(command, failure) => context.send_elsewhere(command, &failure),
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
    /// What becomes of a command whose handler has failed.
    #[cold]
    #[inline(never)]
    fn fail(&mut self, command: &Command, failure: &Failure, before: Mark) {
        self.reply.take_back(before);
        if !self.again {
            self.refuse(failure);
            let stats = self.store.stats.command(command.id);
            stats.failed.add(1);
        }
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
    fn is_sent_elsewhere(&mut self, command: &'static Command, args: &Args<'_>) -> bool {
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

    /// Tells those who monitor about a command that ran and left the connection in database `db`.
    pub(crate) fn show_monitors(&self, db: usize, command: &Command, args: &Args<'_>) {
        let hidden = command.spec.flags & (flag::ADMIN | flag::SKIP_MONITOR) != 0;
        if self.server.monitors.any() && !hidden {
            let monitors = &self.server.monitors;
            let shown = (0..args.len()).map(|at| command.shown(args, at));
            monitors.feed(self.server, &self.session.client, db, shown);
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
