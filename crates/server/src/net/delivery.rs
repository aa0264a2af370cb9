//! Sending what was published: each connection gets all that came for it in a turn with one send.
//!
//! Publishing only writes into memory ([`crate::pubsub`]). Towards the end of its turn a worker looks into
//! its inbox, notes what is whose and sends to a bounded number of connections; the others follow in the next
//! turn, which begins at once, and what was published meanwhile goes with the same send. A connection that
//! has requests of its own is told in between its replies instead
//! ([`Context::receive`](crate::command::Context::receive)).
//!
//! A connection that doesn't read what it is sent is dropped at its output limit, like any other. One that is
//! only told of keys that change has none usually; it is told that all have changed in place of more than it
//! has room for.

use resp::reply::Protocol;

use crate::limits::{FLUSH_BYTES, SENDS_PER_TURN, UNREAD_NEWS_BYTES};
use crate::net::connection::{Connection, State};
use crate::net::worker::Worker;
use crate::pubsub::{Due, wake_noted};
use crate::shared::clients::status;

impl Worker {
    /// Takes in what was published and sends some of it.
    #[inline]
    pub(crate) fn post(&mut self) {
        self.server.observers.tracking.broadcast(self.server);
        wake_noted(self.server);
        self.caller.listeners.collect(self.server);
        if self.caller.listeners.anybody_waits() {
            self.send_published();
        }
    }

    /// The same before the turn is over: when a deep pipeline has published so much that it had better be
    /// sent.
    #[inline]
    pub(crate) fn post_early(&mut self) {
        if self.server.inboxes[self.number].bytes() > FLUSH_BYTES {
            // Messages come after earlier replies: the invalidation of a key comes after its value.
            self.reply();
            self.post();
        }
    }

    fn send_published(&mut self) {
        let mut sends = 0;
        while self.send_next() {
            sends += 1;
            if sends >= SENDS_PER_TURN && self.caller.listeners.log_bytes() < FLUSH_BYTES {
                return;
            }
        }
    }

    /// Sends its part to the connection that waits longest. Returns whether there was one.
    fn send_next(&mut self) -> bool {
        let Worker {
            caller,
            connections,
            poller,
            stats,
            ..
        } = self;
        let listeners = &mut caller.listeners;
        let Some(Due { token, log, parts }) = listeners.next_due() else {
            return false;
        };
        let Some(connection) = connections.get_mut(token) else {
            return true;
        };
        if connection.state == State::Closing {
            return true;
        }
        let is_subscriber = connection.session.client.has_status(status::PUBSUB);
        if !is_subscriber && connection.backlog.len() > UNREAD_NEWS_BYTES {
            // A client that reads nothing is not told each invalid copy. When it has read this much, it is
            // told that all are invalid.
            connection.owes_news = true;
            listeners.give_back(token, parts);
            return true;
        }
        let result = connection.send_parts(poller, log, &parts);
        let is_behind = !connection.backlog.is_empty();
        listeners.give_back(token, parts);
        match result {
            Ok(sent) => connection.note_sent(stats, sent),
            Err(_) => {
                self.close(token);
                return true;
            }
        }
        if is_behind {
            self.slow_reader(token);
            self.settle(token);
        }
        true
    }
}

impl Connection {
    /// Tells a connection that has read everything what it was spared, which is no more than that all its
    /// copies are wrong.
    pub(crate) fn catch_up(&mut self) {
        if std::mem::take(&mut self.owes_news) {
            let news: &[u8] = match self.session.protocol {
                Protocol::Resp3 => b">2\r\n$10\r\ninvalidate\r\n_\r\n",
                // It can't be told over RESP2, nor could it be then.
                Protocol::Resp2 => b"",
            };
            self.backlog.push_bytes(news);
        }
    }
}
