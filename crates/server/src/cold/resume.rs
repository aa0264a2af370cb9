//! Connections that wait for values: how they begin to, and how they go on.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sys::poller::Poller;

use super::at_hand::Arrived;
use super::{Fetch, FetchState, Reads, Wanted};
use crate::clients::Client;
use crate::connection::State;
use crate::server::Server;
use crate::store::Store;
use crate::worker::Worker;

impl FetchState {
    /// Lets a connection wait for values: its worker's poller reads them, or threads do.
    pub(crate) fn begin(
        &mut self,
        server: &'static Server,
        client: &Arc<Client>,
        wanted: Vec<Wanted>,
        (poller, reads): (&mut Poller, &mut Reads),
    ) {
        self.number = server.waits.next();
        self.tries += 1;
        server.cold.promises.make(&wanted);
        let fetch = Fetch::new(server, Arc::clone(client), self.number, wanted);
        let others = reads.ask(server, poller, &fetch);
        fetch.leave_to_threads(others);
    }
}

impl Worker {
    /// Gives values back to their entries, and lets the connection go on that waited for them.
    pub(crate) fn fetched(&mut self, fetch: &Fetch) {
        let token = fetch.client.token.load(Relaxed);
        // Also if the connection has gone: what was read is likely to be of use, and there was room for it.
        let store = Store::new(
            self.server,
            &mut self.turn,
            self.stats,
            self.journal.as_ref(),
            &mut self.served,
            self.now,
        );
        let mut failure = None;
        let mut arrived = Vec::new();
        for (wanted, read) in fetch.wanted.iter().zip(&fetch.read) {
            match read.lock().take() {
                Some(Ok(Some(value))) if wanted.stays_out => {
                    let wanted = wanted.clone();
                    arrived.push(Arrived { wanted, value });
                }
                Some(Ok(Some(value))) => {
                    store.warm(wanted.db, wanted.key(), wanted.value, value);
                }
                Some(Err(problem)) => failure = Some(problem),
                // It has another address now: the command finds out when it is tried again.
                Some(Ok(None)) | None => {}
            }
            self.server.cold.promises.given_back(wanted);
        }
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        if connection.fetch.number != fetch.number || connection.state != State::Fetching {
            return;
        }
        connection.fetch.number = 0;
        if self.server.cold.is_on() {
            connection.fetch.failure = failure;
            connection.fetch.arrived.append(&mut arrived);
        } else {
            // All values are there by now: nobody asks.
            connection.fetch.done();
        }
        connection.state = State::Open;
        self.batch.add_pending(token);
    }
}
