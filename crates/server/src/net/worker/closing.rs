//! The end of a connection: everything that knows it forgets it, at once or, where that is much, in slices.

use std::sync::atomic::Ordering::Relaxed;

use super::Worker;
use crate::limits::LEAVE_SLICE;
use crate::net::connection::State;
use crate::observe::removals::{self, Leftover};
use crate::shared::clients::{Names, status};

impl Worker {
    /// Ends a connection.
    pub(crate) fn close(&mut self, token: u64) {
        if self.is_outside() {
            return self.close_later(token);
        }
        let Some(mut connection) = self.connections.take(token) else {
            return;
        };
        // The socket closes with the connection, which also ends the poller's interest; removing it first
        // keeps pollers that don't notice out of trouble.
        let _ = connection.transport.unwatch(&mut self.poller);
        if connection.session.monitor {
            self.server.monitors.remove(self.number, token);
        }
        connection.session.end_tracking(self.server, false);
        self.caller.listeners.end(token);
        if self
            .caller
            .listeners
            .forget(self.server, token, LEAVE_SLICE)
        {
            self.connections.release(token);
        } else {
            removals::leave(self.server, Leftover::Names(token));
        }
        connection.session.client.set_status(status::ENDED, true);
        connection.forget_memory(self.stats);
        connection.session.unwatch(self.server);
        // Others may keep its record for long.
        connection
            .session
            .client
            .rename(|names| *names = Names::default());
        if let Some(parked) = &connection.parked {
            self.abandon(token, parked, &connection.session.client);
        }
        if connection.state == State::Paused {
            self.paused_gone += 1;
            if self.paused_gone > self.paused.len() / 2 {
                // Not at every close: all paused connections may close at once.
                let connections = &mut self.connections;
                self.paused
                    .retain(|&paused| connections.get_mut(paused).is_some());
                self.paused_gone = 0;
            }
        }
        self.server.clients.remove(connection.session.client.id);
        self.server.workers[self.number]
            .connections
            .fetch_sub(1, Relaxed);
    }
}
