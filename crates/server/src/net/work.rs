//! Connections that wait for commands which take long: their slices, and their answers.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use super::connection::State;
use super::worker::Worker;
use crate::command::deferred::{Around, Deferred, Parts, Progress, Slice};
use crate::command::run::Timer;
use crate::limits::{SLICES_IN_A_ROW, UNREAD_PART_BYTES, UNREAD_WORK_MS};
use crate::request::{Failure, Pieces};
use crate::shared::gate::Closed;
use crate::store::Store;

/// The connections of a worker that wait for work, by token.
#[derive(Default)]
pub(crate) struct Waiting {
    /// For slices, those first that have waited longest.
    slices: VecDeque<u64>,
    /// For threads.
    apart: Vec<u64>,
    /// Slices done since the worker last gave way.
    in_a_row: u32,
}

impl Waiting {
    /// Lets other threads have the processor, between two turns and if slices have kept it for long enough:
    /// those of clients on this machine, or another worker that was woken on this processor.
    #[inline]
    pub(crate) fn give_way(&mut self) {
        if self.in_a_row >= SLICES_IN_A_ROW {
            self.in_a_row = 0;
            std::thread::yield_now();
        }
    }

    /// Whether there is something for the worker to do.
    pub(crate) fn is_busy(&self) -> bool {
        !self.slices.is_empty()
    }

    /// Adds a connection that waits for its deferred work.
    pub(crate) fn add(&mut self, token: u64, deferred: &Deferred) {
        if deferred.work.is_apart() {
            self.apart.push(token);
        } else {
            self.slices.push_back(token);
        }
    }
}

impl Worker {
    /// Goes on with deferred work: one slice, and the results of threads.
    pub(crate) fn work_on(&mut self) {
        if let Some(token) = self.waiting.slices.pop_front() {
            self.go_on_with(token);
            self.waiting.in_a_row += 1;
        }
        if !self.waiting.apart.is_empty() {
            for token in std::mem::take(&mut self.waiting.apart) {
                self.go_on_with(token);
            }
        }
        self.run_group();
    }

    fn go_on_with(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let Some(mut deferred) = connection.session.deferred.take() else {
            return;
        };
        if let Some(errand) = deferred.work.errand() {
            self.waiting.add(token, &deferred);
            connection.session.deferred = Some(deferred);
            return self.add_errand(errand);
        }
        let began = sys::clock::ticks();
        let (server, session) = (self.server, &mut connection.session);
        let mut around = Around {
            store: Store {
                db: session.db,
                touch: !session.no_touch && server.memory.counts_reads(),
                ..Store::new(
                    server,
                    &mut self.caller.turn,
                    self.stats,
                    self.caller.journal.as_ref(),
                    &mut self.caller.served,
                    self.caller.now,
                )
            },
            args: deferred.request.args(0, &server.keyspace),
            protocol: session.protocol,
            server,
            listeners: &mut self.caller.listeners,
            session,
        };
        let slice = Slice::begin_of(&*deferred.work);
        let progress = deferred.work.go_on(&mut around, &slice);
        deferred.ticks += sys::clock::ticks().saturating_sub(began);
        match progress {
            Progress::More => {
                self.waiting.add(token, &deferred);
                connection.session.deferred = Some(deferred);
            }
            Progress::Part(pieces) => self.answer_in_part(token, deferred, pieces),
            Progress::Done(answer) => self.answer(token, *deferred, answer),
        }
    }

    /// Sends a part of an answer. If the work has to wait, it goes on when the client has read most of the
    /// part.
    fn answer_in_part(&mut self, token: u64, mut deferred: Box<Deferred>, pieces: Pieces) {
        let streams = deferred.work.streams();
        // The data of the answer has to be durable first if replies wait for that. It was read before the
        // first part.
        let waits_for = match streams && deferred.parts == Parts::None {
            true => self.commit(),
            false => None,
        };
        deferred.parts = Parts::Sent;
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        connection.session.deferred = Some(deferred);
        for chunk in pieces.into_iter() {
            connection.backlog.push_piece(chunk.into());
        }
        if let Some(lsn) = waits_for {
            connection.held = Some(lsn);
            self.held.push_back((lsn, token));
        }
        self.write_more(token);
        self.slow_reader(token);
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let unread = connection.backlog.len();
        if let Some(deferred) = &mut connection.session.deferred {
            if streams && unread > UNREAD_PART_BYTES {
                deferred.parts = Parts::Unread;
                deferred.unread_since = self.caller.now;
            } else {
                self.waiting.add(token, deferred);
            }
        }
    }

    /// Closes a connection whose client does not read the reply of work that keeps memory, or space on the
    /// disk, from being given back where there is none left.
    pub(super) fn end_unread_work(&mut self, token: u64) {
        let is_short = self.server.memory.is_near() || self.server.gate.has(Closed::LogRefuses);
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let Some(deferred) = &connection.session.deferred else {
            return;
        };
        let waits = deferred.parts == Parts::Unread && deferred.work.pins();
        if is_short && waits && self.caller.now - deferred.unread_since > UNREAD_WORK_MS {
            log::warn!(
                "closing client {}: it does not read a large reply, for which memory and the log are kept",
                connection.session.client.id
            );
            let totals = &self.server.totals;
            totals.output_limit_disconnects.fetch_add(1, Relaxed);
            self.close(token);
        }
    }

    /// Resumes work that has waited until the client has read most of its part.
    #[inline]
    pub(super) fn was_read(&mut self, token: u64) {
        if let Some(connection) = self.connections.get_mut(token)
            && let Some(deferred) = &mut connection.session.deferred
            && deferred.parts == Parts::Unread
            && connection.backlog.len() <= UNREAD_PART_BYTES
        {
            deferred.parts = Parts::Sent;
            self.waiting.add(token, deferred);
        }
    }

    /// Answers a waiting connection, and goes on with its next requests. As with every reply, the data of the
    /// answer has to be durable first if replies wait for that.
    fn answer(&mut self, token: u64, deferred: Deferred, answer: Result<Pieces, Failure>) {
        let waits_for = self.commit();
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let Deferred {
            command,
            request,
            ticks,
            parts,
            ..
        } = deferred;
        if let (Err(failure), true) = (&answer, parts != Parts::None) {
            // A part of the reply was sent. An error would be read as the next part.
            let text = String::from_utf8_lossy(&failure.0);
            log::error!("a connection is closed, the rest of its reply is not there: {text}");
            self.stats.errors.add(1);
            self.caller.spares.give_back(request);
            return self.close(token);
        }
        let pieces = answer.unwrap_or_else(|failure| {
            self.stats.errors.add(1);
            self.stats.command(command.id).failed.add(1);
            self.server.errors.add(failure.code());
            let mut pieces = Pieces::default();
            let protocol = connection.session.protocol;
            pieces.write(protocol, |reply| reply.error(&failure.0));
            pieces
        });
        let args = request.args(0, &self.server.keyspace);
        let mut timer = Timer::new(self.server, self.stats);
        timer.record_deferred(command, &args, &connection.session, ticks);
        self.caller.spares.give_back(request);
        for chunk in pieces.into_iter() {
            connection.backlog.push_piece(chunk.into());
        }
        connection.state = State::Open;
        connection
            .session
            .client
            .last_active_ms
            .store(self.caller.now, Relaxed);
        if let Some(lsn) = waits_for {
            connection.held = Some(lsn);
            self.held.push_back((lsn, token));
        }
        if !self.write_more(token) {
            self.slow_reader(token);
        }
    }
}
