//! Input of a connection that cannot run now: reading ahead, and running it later.
//!
//! Requests of a connection run while no more than some bytes of replies wait for its peer
//! ([`Worker::most_unsent`]). Beyond that, or while it is parked or paused, it is not read from: a peer that
//! reads while it sends is slowed down by that, as it should be. A peer that sends all it has to say before
//! it reads would wait for ever. So a connection that has not moved for [`STALL_MS`] is read from all the
//! same, into memory that is its own account's ([`Ahead`](crate::net::connection::Ahead)); its requests run
//! as the socket takes replies, a read's worth of them at a time. That goes on until its peer reads.
//!
//! The end of what a peer sends is not the end of the peer: all that came before runs, and its replies are
//! sent. A peer that reads nothing for [`HALF_CLOSED_MS`] after that is given up: the remaining requests run,
//! and their replies are dropped.

use std::sync::atomic::Ordering::Relaxed;

use sys::poller::{Event, Poller};

use super::Worker;
use crate::config::Setting;
use crate::limits::{
    AHEAD_PIECE_BYTES, BACKLOG_STOP_BYTES, BACKLOG_STOP_MOST_BYTES, BACKLOG_STOP_SHARE,
    DROPPED_READS, GROUP_BYTES, HALF_CLOSED_MS, STALL_MS,
};
use crate::metrics::WorkerStats;
use crate::net::connection::{Backlog, Connection, State};
use crate::request::ReplyMode;
use crate::server::Server;
use crate::shared::clients::{self, status};

impl Server {
    /// Bytes of unsent replies up to which a connection of a worker runs requests.
    #[cold]
    pub(crate) fn most_unsent(&self, stats: &WorkerStats) -> usize {
        let Some(limit) = self.memory.clients() else {
            return BACKLOG_STOP_MOST_BYTES;
        };
        let own = stats.client_bytes.get() as usize;
        if own.saturating_mul(self.workers.len()) > limit / 2 {
            return BACKLOG_STOP_BYTES;
        }
        (limit / BACKLOG_STOP_SHARE).clamp(BACKLOG_STOP_BYTES, BACKLOG_STOP_MOST_BYTES)
    }
}

impl Worker {
    /// Bytes of unsent replies up to which a connection runs requests.
    pub(super) fn most_unsent(&self) -> usize {
        self.server.most_unsent(self.stats)
    }

    /// Reads from a connection of which nothing can run.
    #[cold]
    pub(super) fn read_ahead(&mut self, token: u64) {
        let is_short =
            self.server.memory.is_near_with(AHEAD_PIECE_BYTES) && self.make_room(AHEAD_PIECE_BYTES);
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        if !connection.reads_ahead || connection.has_ended() {
            return;
        }
        if is_short {
            // It resumes when there is room, or when its peer moves.
            connection.reads_ahead = false;
            return self.settle(token);
        }
        let ahead = connection.ahead.get_or_insert_default();
        let received = ahead.receive(&mut self.poller, &mut connection.transport);
        match received {
            Ok(0) => {
                ahead.ended = true;
                if connection.waits_for_others() {
                    return self.close(token);
                }
            }
            Ok(count) => {
                self.stats.note_read(count);
                let client = &connection.session.client;
                client.last_active_ms.store(self.caller.now, Relaxed);
                clients::count(&client.received, count);
                if connection.state == State::Closing {
                    // Nothing of it will run.
                    connection.ahead = None;
                }
                if self.is_over_query_limit(token) {
                    return self.close(token);
                }
            }
            Err(error) => {
                if ahead.len() == 0 {
                    connection.ahead = None;
                }
                return self.read_failed(token, &error);
            }
        }
        self.settle(token);
    }

    /// Whether a connection has sent more that has not run than it may. It is told of in the log and in INFO.
    pub(super) fn is_over_query_limit(&mut self, token: u64) -> bool {
        let Some(connection) = self.connections.get_mut(token) else {
            return false;
        };
        let ahead = connection.ahead.as_ref().map_or(0, |ahead| ahead.len());
        let limit = self.server.settings.int(Setting::ClientQueryBufferLimit) as usize;
        if connection.pending.len() + ahead <= limit {
            return false;
        }
        log::warn!(
            "closing client {}: what it has sent grew beyond client-query-buffer-limit",
            connection.session.client.id
        );
        let totals = &self.server.totals;
        totals.query_limit_disconnects.fetch_add(1, Relaxed);
        true
    }

    /// Resumes connections with requests that were read ahead.
    pub(super) fn go_on_with_ready(&mut self, mut used: usize) {
        for token in std::mem::take(&mut self.ready) {
            if let Some(connection) = self.connections.get_mut(token) {
                connection.is_listed = false;
                if used >= GROUP_BYTES {
                    self.run_group();
                    used = 0;
                }
                used += self.read(token, used);
            }
        }
    }

    /// A peer has finished sending, and all that it has sent has run but for the beginning of a request.
    pub(crate) fn end_of_input(&mut self, token: u64) {
        let is_over = !self.batch.has_lane(token);
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        if !is_over {
            // The end is handled after the input.
            connection.ahead.get_or_insert_default().ended = true;
        } else if connection.backlog.is_empty() {
            self.close(token);
        } else {
            connection.begin_closing();
            connection.ahead.get_or_insert_default().ended = true;
            self.settle(token);
        }
    }

    /// A connection is closed in both directions, which a connection that is not read from would never
    /// notice; or its peer has finished sending: a wait for other clients ends then.
    #[cold]
    pub(crate) fn peer_ended(&mut self, event: &Event) {
        let most = self.most_unsent();
        let Some(connection) = self.connections.get_mut(event.token) else {
            return;
        };
        let is_unheard = event.hangup && !connection.runs(most);
        let is_in_vain = event.finished && connection.waits_for_others();
        if is_unheard || is_in_vain {
            self.close(event.token);
        }
    }

    /// Looks after connections that have not moved for a while, of which some are given up.
    pub(super) fn move_on(&mut self, stalled: &[u64]) {
        let most = self.most_unsent();
        for &token in stalled {
            let Some(connection) = self.connections.get_mut(token) else {
                continue;
            };
            if connection.goes_on(most) {
                continue;
            }
            let quiet = self.caller.now - connection.session.client.last_active_ms.load(Relaxed);
            if connection.has_ended() && quiet > HALF_CLOSED_MS {
                self.give_up_peer(token);
            } else if connection.is_kept_waiting() && !connection.reads_ahead {
                connection.reads_ahead = true;
                self.settle(token);
            }
        }
    }

    /// Drops the replies to a peer that has finished sending and reads nothing, and runs what it has sent.
    fn give_up_peer(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        match connection.state {
            State::Closing => self.close(token),
            State::Open if connection.held.is_none() => {
                connection.backlog = Backlog::default();
                connection.session.reply_mode = ReplyMode::Off;
                self.settle(token);
            }
            // It goes on by itself.
            _ => {}
        }
    }
}

impl Connection {
    /// Whether it may stay as it is until its peer reads or another client acts.
    fn is_kept_waiting(&self) -> bool {
        let waits = matches!(self.state, State::Parked | State::Paused | State::Closing);
        waits || self.state == State::Open && !self.backlog.is_empty()
    }

    /// Whether it has not moved for a while and is not read from either.
    pub(super) fn is_stalled(&self, quiet_ms: i64) -> bool {
        quiet_ms >= STALL_MS && !self.interest.readable
    }

    /// Drops what has arrived by now: a socket that is closed with something unread resets the connection,
    /// and its peer may lose the last reply.
    #[cold]
    pub(super) fn drop_input(&mut self, poller: &mut Poller) {
        let mut dropped = [0; 4096];
        for _ in 0..DROPPED_READS {
            if !matches!(self.transport.recv(poller, &mut dropped), Ok(1..)) {
                return;
            }
        }
    }

    /// Nothing that it sends runs any more.
    pub(super) fn begin_closing(&mut self) {
        self.state = State::Closing;
        self.session.client.set_status(status::CLOSING, true);
        self.pending = Vec::new();
        self.ahead = None;
        self.upload = None;
        self.need = 0;
    }
}
