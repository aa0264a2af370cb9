//! Running the requests of a window, each to completion, in the order their connection sent them.
//!
//! How one of them runs is in [`crate::command::run`].

use std::sync::atomic::Ordering::Relaxed;

use resp::request::Span;

use crate::command::park::{self, Parked};
use crate::command::prepare::Prepared;
use crate::command::run::{Request, Timer, run, run_and_look, run_special};
use crate::command::{Command, Context, Next};
use crate::net::connection::State;
use crate::net::lane::{Lane, Source};
use crate::net::worker::Worker;
use crate::observe::tracking;
use crate::observe::waits::ready;
use crate::request::{Args, ReplyMode};
use crate::shared::clients::{self, status};

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
            if let Some(next) = self.run_lane(number, &rest[..own], &mut timer) {
                self.suspend(number, next);
            }
            rest = &rest[own..];
        }
        timer.finish_run();
        self.batch.requests = requests;
    }

    /// Runs one lane's requests of the window. Returns why it has to wait, if it does.
    #[inline]
    fn run_lane(&mut self, number: usize, requests: &[Request], timer: &mut Timer) -> Option<Next> {
        let lane = &mut self.batch.lanes[number];
        let connection = self.connections.get_mut(lane.token)?;
        if connection.session.client.killed.load(Relaxed) {
            lane.stopped = true;
            return None;
        }
        if lane.output_from == lane.output_until {
            lane.output_from = self.caller.output.bytes.len();
        }
        let buffer = lane.share_buffer(&mut connection.pending);
        let input = lane.input(buffer.as_ref(), &self.scratch, &connection.pending);
        let mut args = Args::of_input(input, buffer.as_ref(), &self.server.keyspace);
        let received = &mut connection.received;
        // Received value of the first request.
        self.caller.extras.received =
            received.take_if(|_| lane.source == Source::Pending && !requests.is_empty());
        let mut context = self
            .caller
            .context(&mut connection.session, &mut connection.fetch);
        let window = Window {
            requests,
            spans: &self.batch.spans,
            hashes: &self.batch.hashes,
        };
        // One that has parked in an earlier window of this group still waits.
        let parked = &mut connection.parked;
        let ended = parked.take_if(|_| connection.state != State::Parked);
        let stop = window.run(lane, &mut context, &mut args, timer, ended);
        tracking::set_current(0);
        context.forget_values();
        if let Some(begun) = context.extras.parked.take() {
            connection.parked = Some(begun);
        }
        if let Some(comes_again) = context.extras.received.take() {
            connection.received = Some(comes_again);
        }
        debug_assert!(stop.is_some() || context.extras.wanted.is_empty());
        let mut rewritten = None;
        if let Some(stop) = &stop {
            // These requests and all after them run later.
            let waiting = &requests[stop.first..];
            rewritten = lane.take_back(stop.from, waiting, window.spans, input);
            connection.resume.clear();
        } else if let Some(error) = lane.error.take()
            && !lane.stopped
        {
            lane.stopped = true;
            context.refuse_syntax(&error);
        }
        lane.keep_rest(buffer, rewritten, &mut connection.pending);
        lane.output_until = self.caller.output.bytes.len();
        if connection.session.client.killed.load(Relaxed) {
            lane.output_from = lane.output_until;
        }
        stop.map(|stop| stop.next)
    }

    /// Lets a connection wait whose lane has stopped before its end.
    fn suspend(&mut self, number: usize, next: Next) {
        if next == Next::Done {
            // It has given way, waits for nothing, and goes on in the next turn.
            return;
        }
        let token = self.batch.lanes[number].token;
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let client = &connection.session.client;
        connection.state = match (next, &connection.session.deferred) {
            (Next::Fetch, _) => {
                let wanted = std::mem::take(&mut self.caller.extras.wanted);
                let fetch = &mut connection.fetch;
                let poller = &mut self.poller;
                self.reads.begin(self.server, poller, client, fetch, wanted);
                State::Fetching
            }
            (Next::Defer, Some(deferred)) => {
                self.waiting.add(token, deferred);
                State::Working
            }
            _ if connection.parked.is_some() => {
                client.set_status(status::BLOCKED, true);
                State::Parked
            }
            _ => {
                client.set_status(status::BLOCKED, true);
                self.paused.push(token);
                State::Paused
            }
        };
    }
}

/// The requests of one lane in a window.
#[derive(Clone, Copy)]
struct Window<'w> {
    requests: &'w [Request],
    spans: &'w [Span],
    hashes: &'w [u64],
}

/// Where a lane stops before its end, and why. `Done`: its requests have taken long, and others have a turn.
struct Stop {
    next: Next,
    /// Where in the lane's source the rest begins.
    from: usize,
    /// The first request of the window that is to run later; all may have run.
    first: usize,
}

impl<'w> Window<'w> {
    /// Runs the requests one after the other, behind the answer of a wait that has ended.
    #[inline(always)]
    fn run<'c>(
        self,
        lane: &mut Lane,
        context: &mut Context<'c>,
        args: &mut Args<'w>,
        timer: &mut Timer,
        ended: Option<Box<Parked>>,
    ) -> Option<Stop> {
        let (server, stats) = (context.server, context.store.stats);
        hear(context);
        let mut runs_plainly = is_plain(context) && context.extras.received.is_none();
        let mut last_command = None;
        // Changes between turns, and in commands that do not run plainly.
        let mut may_be_cold = server.offload.is_on();
        let cluster = server.cluster.as_ref();
        let is_here =
            cluster.is_none_or(|cluster| cluster.serves_all(self.requests, self.spans, args.input));
        if let Some(ended) = ended {
            park::go_on(context, *ended);
        }
        // The request that is looked at for HOTKEYS.
        let mut looked_at = stats.hot_keys.left();
        let mut stop = None;
        let slow_from = timer.alone();
        for (number, request) in self.requests.iter().enumerate() {
            if lane.stopped {
                break;
            }
            args.spans = &self.spans[request.first_span..][..request.spans];
            args.hashes = &self.hashes[request.first_hash..][..request.hashes];
            let next;
            if let Some(command) = request.command
                && runs_plainly
                && timer.groups(command, request.bytes)
                && command.takes(args.spans.len())
                && (!server.memory.is_near() || context.has_room(command, request.bytes))
            {
                // Nearly all requests: nothing to decide, and an unchanged session.
                if (may_be_cold || !is_here)
                    && let Some(next) = before(command, context, args, (is_here, may_be_cold))
                {
                    if next == Next::Done {
                        continue;
                    }
                    stop = Some(Stop::before(number, request, next));
                    break;
                }
                timer.count(command);
                next = run_in_turn(command, context, args, (number, &mut looked_at));
                last_command = Some(command);
                if may_be_cold {
                    context.unpin();
                }
            } else {
                last_command = None;
                next = run_apart(request, context, args, timer, (number, &mut looked_at));
                lane.stopped = has_ended(context);
                runs_plainly = is_plain(context);
                may_be_cold = server.offload.is_on();
                if next == Next::Done && timer.gives_way(slow_from) {
                    stop = Some(Stop::given_way(number, request, context));
                    break;
                }
            }
            if ready::any() && !matches!(next, Next::Fetch | Next::Retry) {
                park::serve(&context.store, context.server);
                context.tell_own_changes();
            }
            if next != Next::Done {
                timer.stop(next == Next::Retry && last_command.is_some());
                stop = Some(Stop::at(number, request, next));
                break;
            }
        }
        let left = looked_at.saturating_sub(self.requests.len());
        stats.hot_keys.set_left(left);
        let run = stop.as_ref().map_or(self.requests.len(), |stop| stop.first);
        note_run(context, last_command, run);
        stop
    }
}

/// Tells CLIENT LIST which command was the last, and how many have run.
#[inline]
fn note_run(context: &Context<'_>, last: Option<&Command>, run: usize) {
    let client = &context.session.client;
    if let Some(command) = last {
        client.note_command(command.id);
    }
    clients::count(&client.commands, run);
}

impl Stop {
    /// The request of this number has not run, and is to.
    fn before(number: usize, request: &Request, next: Next) -> Stop {
        Stop {
            next,
            from: request.from,
            first: number,
        }
    }

    /// The request of this number has run and taken long: the next one runs in the next turn.
    fn given_way(number: usize, request: &Request, context: &mut Context<'_>) -> Stop {
        if ready::any() {
            park::serve(&context.store, context.server);
            context.tell_own_changes();
        }
        Stop::at(number, request, Next::Done)
    }

    /// The request of this number was the last that runs now; whether it has run, `next` says.
    fn at(number: usize, request: &Request, next: Next) -> Stop {
        match next {
            Next::Fetch | Next::Retry => Stop::before(number, request, next),
            Next::Done | Next::Wait | Next::Defer => Stop {
                next,
                from: request.from + request.bytes,
                first: number + 1,
            },
        }
    }
}

/// Tells a connection that listens what was published before its requests came: before they are answered.
#[inline]
fn hear(context: &mut Context<'_>) {
    if context.session.listens {
        tracking::set_current(context.session.client.id);
        context.receive();
    }
}

/// Runs the command of a plain request, and looks at it for HOTKEYS if its number is the one that is looked
/// at.
#[inline(always)]
fn run_in_turn<'c>(
    command: &'static Command,
    context: &mut Context<'c>,
    args: &mut Args<'_>,
    (number, looked_at): (usize, &mut usize),
) -> Next {
    if number != *looked_at {
        return run(command, context, args);
    }
    let hot_keys = &context.store.stats.hot_keys;
    hot_keys.set_left(0);
    let next = run_and_look(command, context, args);
    *looked_at = number + 1 + context.store.stats.hot_keys.left();
    next
}

/// Runs a request that is not plain; it is looked at for HOTKEYS if its number is the one that is.
fn run_apart<'c>(
    request: &Request,
    context: &mut Context<'c>,
    args: &mut Args<'_>,
    timer: &mut Timer,
    (number, looked_at): (usize, &mut usize),
) -> Next {
    let stats = context.store.stats;
    stats.hot_keys.set_left(looked_at.saturating_sub(number));
    let next = run_special(request, context, args, timer);
    context.tell_own_changes();
    *looked_at = number + 1 + stats.hot_keys.left();
    if !matches!(next, Next::Fetch | Next::Retry) {
        drop_unused(context);
    }
    next
}

/// Before a command of a plain request runs where it may belong to another node, or its values may be in the
/// log alone. Returns what becomes of the request if it does not run now.
#[inline(always)]
fn before<'c>(
    command: &'static Command,
    context: &mut Context<'c>,
    args: &mut Args<'_>,
    (is_here, may_be_cold): (bool, bool),
) -> Option<Next> {
    if !is_here && context.is_sent_elsewhere(command, args) {
        return Some(Next::Done);
    }
    if !may_be_cold {
        return None;
    }
    match context.prepare(command, args) {
        Prepared::Ready => None,
        Prepared::Failed(failure) => {
            context.refuse(&failure);
            context.session.combining = None;
            Some(Next::Done)
        }
        Prepared::Fetch => Some(Next::Fetch),
        Prepared::Later => Some(Next::Retry),
    }
}

/// Drops the value that was received with a request that was refused, and what was made for it.
fn drop_unused(context: &mut Context<'_>) {
    context.extras.received = None;
    context.session.combining = None;
}

/// Whether the connection ends.
fn has_ended(context: &Context<'_>) -> bool {
    context.session.closing || context.session.client.killed.load(Relaxed)
}

/// Whether nothing but the command itself decides what happens to a request of the session.
#[inline]
fn is_plain(context: &Context<'_>) -> bool {
    let (server, session) = (context.server, &*context.session);
    session.authenticated
        && session.reply_mode == ReplyMode::On
        && session.transaction.is_none()
        && server.gate.is_open()
        && !context.extras.is_outside
        && !session.listens
        && !server.crowd.any()
        && !server.monitors.any()
        && server.pause.until(context.store.now).is_none()
}
