//! Running the requests of a window, each to completion, in the order their connection sent them.
//!
//! How one of them runs is in [`crate::command::run`].

use std::sync::atomic::Ordering::Relaxed;

use keyspace::{INLINE_VALUE_MAX, LargeValue};

use crate::blocked::ready;
use crate::clients::status;
use crate::command::Context;
use crate::command::park;
use crate::command::prepare::Prepared;
use crate::command::run::{Request, Timer, run, run_and_look, run_special};
use crate::command::session::Session;
use crate::net::batch::Source;
use crate::net::connection::{Connection, State};
use crate::net::worker::Worker;
use crate::request::ReplyMode;
use crate::request::{Args, Reply};
use crate::server::Server;
use crate::store::Store;
use crate::tracking;

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
