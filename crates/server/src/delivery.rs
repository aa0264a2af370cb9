//! Sending what was published: each connection gets all that came for it in a turn with one send.
//!
//! Publishing only writes into memory ([`crate::pubsub`]). Towards the end of its turn a worker looks into its inbox, notes what is
//! whose and sends to a bounded number of connections; the others follow in the next turn, which begins at once, and what
//! was published meanwhile goes with the same send. A connection that has requests of its own is told in between its
//! replies instead ([`Context::receive`]).
//!
//! A connection that doesn't read what it is sent is dropped at its output limit, like any other.

use std::sync::atomic::Ordering::Relaxed;

use crate::command::Context;
use crate::connection::State;
use crate::limits::{FLUSH_BYTES, SENDS_PER_TURN};
use crate::pubsub::{Due, NameKind, Payload, wake_noted};
use crate::worker::Worker;

impl Worker {
    /// Takes in what was published and sends some of it.
    #[inline]
    pub(crate) fn post(&mut self) {
        self.server.observers.tracking.broadcast(self.server);
        wake_noted(self.server);
        self.listeners.collect(self.server);
        if self.listeners.anybody_waits() {
            self.send_published();
        }
    }

    /// The same before the turn is over: when a deep pipeline has published so much that it had better be sent.
    #[inline]
    pub(crate) fn post_early(&mut self) {
        if self.server.workers[self.number].published.bytes() > FLUSH_BYTES {
            // What a connection is told comes behind the replies it got before: that a key has changed, say, behind its value.
            self.reply();
            self.post();
        }
    }

    fn send_published(&mut self) {
        let mut sends = 0;
        while self.send_next() {
            sends += 1;
            if sends >= SENDS_PER_TURN && self.listeners.log_bytes() < FLUSH_BYTES {
                return;
            }
        }
    }

    /// Sends its part to the connection that waits longest. Returns whether there was one.
    fn send_next(&mut self) -> bool {
        let Worker {
            listeners,
            connections,
            poller,
            stats,
            ..
        } = self;
        let Some(Due { token, log, parts }) = listeners.next_due() else {
            return false;
        };
        let Some(connection) = connections.get_mut(token) else {
            return true;
        };
        if connection.state == State::Closing {
            return true;
        }
        let result = connection.send_parts(poller, log, &parts);
        let is_behind = !connection.backlog.is_empty();
        listeners.give_back(token, parts);
        match result {
            Ok(sent) => stats.output_bytes.add(sent as u64),
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

impl Context<'_> {
    /// The token of the connection that runs the command.
    pub(crate) fn token(&self) -> u64 {
        self.session.client.token.load(Relaxed)
    }

    /// Tells the connection, at this point among its replies, what has come for it by now.
    pub(crate) fn receive(&mut self) {
        let token = self.token();
        self.listeners.receive(self.server, token, &mut self.reply);
    }

    /// Publishes a message. Returns how many connections are sent it.
    pub(crate) fn publish(
        &mut self,
        kind: NameKind,
        channel: &[u8],
        payload: Payload<'_>,
    ) -> usize {
        let server = self.server;
        server.registry.publish(server, kind, channel, payload)
    }
}
