//! Unsent output of connections: sending when the socket takes more, limits for clients that do not read, and
//! the poller's interest. The replies of a group are sent by the worker itself.

use std::sync::atomic::Ordering::Relaxed;

use sys::poller::Interest;

use super::Worker;
use crate::limits::SEND_TURN_BYTES;
use crate::net::connection::State;
use crate::request::ReplyMode;
use crate::values::blobs::Ready;

impl Worker {
    /// Makes the poller watch for what the connection waits for; ends it when nothing is left.
    pub(crate) fn settle(&mut self, token: u64) {
        let Some(mut connection) = self.connections.get_mut(token) else {
            return;
        };
        let ended = connection.state == State::Closing && connection.backlog.is_empty();
        if ended || connection.session.client.killed.load(Relaxed) {
            if ended {
                connection.drop_input(&mut self.poller);
            }
            self.close(token);
            return;
        }
        if connection.backlog.waits() {
            let need = connection.backlog.memory_wanted(self.server);
            let may_take = need == 0 || self.finds_room(need);
            let Some(still) = self.connections.get_mut(token) else {
                return;
            };
            connection = still;
            let client = &connection.session.client;
            connection.backlog.ask(self.server, client, may_take);
        }
        connection.note_output();
        connection.note_memory(self.stats);
        if !connection.is_idle() || connection.interest != Interest::READ {
            self.watch(token);
        }
    }

    /// Makes the poller watch for what a connection waits for that does anything but wait for requests. If it
    /// has some that may run, they will.
    #[inline(never)]
    fn watch(&mut self, token: u64) {
        let most = self.most_unsent();
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        connection.note_all_input();
        let runs = connection.goes_on(most);
        if runs {
            connection.reads_ahead = false;
            if connection.has_more() && !connection.is_listed {
                connection.is_listed = true;
                self.ready.push(token);
            }
        }
        let wanted = connection.wanted_interest(runs);
        if wanted != connection.interest {
            connection.set_interest(wanted);
            let watched = connection
                .transport
                .rewatch(&mut self.poller, token, wanted);
            if watched.is_err() {
                self.close(token);
            }
        }
    }

    /// Sends unsent output, and resumes requests that waited for that. Returns whether there are any.
    pub(crate) fn write_more(&mut self, token: u64) -> bool {
        self.write_some(token, SEND_TURN_BYTES).1
    }

    /// As [`Worker::write_more`], for so many bytes at most, or a little more; with the bytes that were sent.
    pub(super) fn write_some(&mut self, token: u64, most: usize) -> (usize, bool) {
        let Some(connection) = self.connections.get_mut(token) else {
            return (0, false);
        };
        if connection.held.is_some() {
            return (0, false);
        }
        let mut sent_now = 0;
        match connection.flush(&mut self.poller, most) {
            Ok(sent) => {
                sent_now = sent;
                connection.note_sent(self.stats, sent);
                if sent > 0 {
                    // A client that reads much output slowly is not idle.
                    connection
                        .session
                        .client
                        .last_active_ms
                        .store(self.caller.now, Relaxed);
                    connection.reads_ahead = false;
                }
                if connection.backlog.is_empty() {
                    connection.over_soft_since = None;
                    if connection.owes_news {
                        connection.catch_up();
                        return (sent, self.write_more(token));
                    }
                    if connection.state == State::Open
                        && !connection.pending.is_empty()
                        && connection.need == 0
                    {
                        self.batch.add_pending(token);
                        return (sent, true);
                    }
                }
                self.settle(token);
                self.was_read(token);
            }
            Err(_) => self.close(token),
        }
        (sent_now, false)
    }

    /// A client that does not read its replies: drop it when it is over its limit.
    pub(crate) fn slow_reader(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let limit = self
            .server
            .settings
            .output_limits(connection.session.output_class());
        let waiting = connection.backlog.len() as u64;
        if limit.soft == 0 || waiting < limit.soft {
            connection.over_soft_since = None;
        } else if connection.over_soft_since.is_none() {
            connection.over_soft_since = Some(self.caller.now);
        }
        let since = connection.over_soft_since;
        let too_long =
            since.is_some_and(|since| self.caller.now - since > limit.soft_seconds as i64 * 1000);
        if too_long || (limit.hard > 0 && waiting >= limit.hard) {
            log::warn!(
                "closing client {}: it leaves {waiting} bytes unread",
                connection.session.client.id
            );
            self.server
                .totals
                .output_limit_disconnects
                .fetch_add(1, Relaxed);
            self.close(token);
        }
    }

    /// Sends a line to a connection that monitors. One that has stopped since is not to get it.
    pub(super) fn deliver(&mut self, token: u64, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let session = &connection.session;
        if !session.monitor
            || session.reply_mode != ReplyMode::On
            || connection.state == State::Closing
        {
            return;
        }
        let was_idle = connection.backlog.is_empty();
        connection.backlog.push_bytes(bytes);
        if was_idle {
            match connection.flush(&mut self.poller, SEND_TURN_BYTES) {
                Ok(sent) => connection.note_sent(self.stats, sent),
                Err(_) => return self.close(token),
            }
        }
        // Otherwise the poller will say when there is room. Until then nothing is sent here: waits for an
        // empty backlog end in `write_more`.
        if !connection.backlog.is_empty() {
            self.slow_reader(token);
        }
        self.settle(token);
    }

    /// There is something to send to a connection: in this turn, if that moves no more than it may, or in one
    /// of the next.
    pub(crate) fn file_ready(&mut self, ready: &Ready) {
        let token = ready.client.token.load(Relaxed);
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        if connection.backlog.end_wait(ready) {
            self.bulk.push(token);
            self.settle(token);
        }
    }
}
