//! Connections that wait for what others do, for the disk or for a time: when their waits end.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

use ferrite_log::Lsn;

use super::connection::State;
use super::worker::Worker;
use crate::command::park::Parked;
use crate::shared::Outcome;
use crate::shared::clients::{Client, status};

/// When whose time is up, of the connections of a worker that wait.
#[derive(Default)]
pub(crate) struct Deadlines(
    /// Unix, ms; token.
    BTreeSet<(i64, u64)>,
);

impl Deadlines {
    /// When the first time is up.
    #[inline]
    pub(crate) fn first(&self) -> Option<i64> {
        self.0.first().map(|&(until_ms, _)| until_ms)
    }
}

impl Worker {
    /// Notes when a connection's time is up, and what of the log it waits for.
    pub(crate) fn note_wait(&mut self, token: u64) {
        let connection = self.connections.get_mut(token);
        let Some(parked) = connection.and_then(|connection| connection.parked.as_ref()) else {
            return;
        };
        if let Some(lsn) = parked.wait.durable {
            self.disk_waits.insert((lsn, token));
        }
        if let Some(until_ms) = parked.wait.until_ms
            && self.deadlines.0.insert((until_ms, token))
        {
            self.server.deadlines.fetch_add(1, Relaxed);
        }
    }

    /// Forgets what [`Worker::note_wait`] has noted.
    fn forget_wait(&mut self, token: u64, until_ms: Option<i64>, durable: Option<Lsn>) {
        self.forget_deadline(token, until_ms);
        if let Some(lsn) = durable {
            self.disk_waits.remove(&(lsn, token));
        }
    }

    fn forget_deadline(&mut self, token: u64, until_ms: Option<i64>) {
        if until_ms.is_some_and(|until_ms| self.deadlines.0.remove(&(until_ms, token))) {
            self.server.deadlines.fetch_sub(1, Relaxed);
        }
    }

    /// Lets a connection go on whose wait, of this number, was claimed: its answer is the first thing that
    /// its lane writes.
    pub(crate) fn go_on(&mut self, token: u64, number: u64, outcome: Outcome) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let Some(parked) = &mut connection.parked else {
            return;
        };
        if parked.number != number {
            return;
        }
        parked.outcome = Some(outcome);
        connection.state = State::Open;
        connection.session.client.set_status(status::BLOCKED, false);
        connection
            .session
            .client
            .last_active_ms
            .store(self.caller.now, Relaxed);
        let (until_ms, durable) = (parked.wait.until_ms, parked.wait.durable);
        self.forget_wait(token, until_ms, durable);
        self.batch.add_pending(token);
    }

    /// Lets those go on whose time is up.
    pub(crate) fn end_waits(&mut self) {
        while let Some(&(until_ms, token)) = self.deadlines.0.first()
            && until_ms <= self.caller.now
        {
            self.forget_deadline(token, Some(until_ms));
            self.give_up(token);
        }
        while let Some(token) = self.first_durable() {
            self.give_up(token);
        }
        self.run_group();
    }

    /// Lets a connection go on without what it waits for.
    fn give_up(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        // Where it was claimed before, what was taken for it is on its way.
        if let Some(parked) = &connection.parked
            && connection.session.client.claim_wait(parked.number)
        {
            let number = parked.number;
            self.go_on(token, number, Outcome::TimeIsUp);
        }
    }

    /// Ends the wait of a connection that ends.
    pub(crate) fn abandon(&mut self, token: u64, parked: &Parked, client: &Client) {
        // If it was claimed before, what was taken for it is lost, like a reply that is on its way to it.
        client.claim_wait(parked.number);
        parked.leave(self.server);
        self.forget_wait(token, parked.wait.until_ms, parked.wait.durable);
    }
}
