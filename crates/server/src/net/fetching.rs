//! Connections that wait for values in the log: begin and end of the wait.
//!
//! Where the poller is io_uring, the kernel reads the values while the worker waits for its connections;
//! elsewhere threads do. A damaged or incomplete value is passed to a thread ([`Fetch`]), which finds the
//! cause.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ferrite_log::Located;
use sys::poller::{FinishedRead, Poller};

use super::connection::State;
use super::worker::Worker;
use crate::server::Server;
use crate::shared::clients::Client;
use crate::store::Store;
use crate::values::cold::{Arrived, Fetch, FetchState, Wanted};

/// Reads of one worker's poller. Only that worker uses them.
#[derive(Default)]
pub(crate) struct Reads {
    /// By the tokens of the reads.
    under_way: Vec<Option<Read>>,
    free: Vec<usize>,
    /// Complete fetches.
    pub(crate) whole: Vec<Arc<Fetch>>,
}

/// One value of a fetch.
struct Read {
    fetch: Arc<Fetch>,
    at: usize,
    located: Located,
    began: u64,
}

impl Reads {
    /// Lets a connection wait for values: the poller reads them, or threads do.
    pub(super) fn begin(
        &mut self,
        server: &'static Server,
        poller: &mut Poller,
        client: &Arc<Client>,
        state: &mut FetchState,
        wanted: Vec<Wanted>,
    ) {
        state.number = server.waits.next();
        state.tries += 1;
        server.fetching.promises.make(&wanted);
        let fetch = Fetch::new(server, Arc::clone(client), state.number, wanted);
        let others = self.ask(server, poller, &fetch);
        fetch.leave_to_threads(others);
    }

    /// Asks the poller for the values of a fetch. Returns those that threads have to read.
    fn ask(&mut self, server: &Server, poller: &mut Poller, fetch: &Arc<Fetch>) -> Vec<usize> {
        let mut others = Vec::new();
        for at in 0..fetch.wanted.len() {
            if self.ask_for(server, poller, fetch, at).is_none() {
                others.push(at);
            }
        }
        others
    }

    fn ask_for(
        &mut self,
        server: &Server,
        poller: &mut Poller,
        fetch: &Arc<Fetch>,
        at: usize,
    ) -> Option<()> {
        let wanted = &fetch.wanted[at];
        if !poller.reads_files() {
            return None;
        }
        let located = server.persistence.locate(wanted.sought())?;
        let file = located.file()?;
        let buffer = vec![0; located.bytes()];
        let token = self.free.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            self.under_way.len() - 1
        });
        let asked = poller.read_file(file, located.offset(), buffer, token as u64);
        if asked.is_err() {
            self.free.push(token);
            return None;
        }
        self.under_way[token] = Some(Read {
            fetch: Arc::clone(fetch),
            at,
            located,
            began: sys::clock::ticks(),
        });
        Some(())
    }

    fn take(&mut self, token: u64) -> Read {
        let token = token as usize;
        self.free.push(token);
        self.under_way[token].take().expect("it was asked for")
    }
}

impl Worker {
    /// Takes the results of the poller, and resumes connections whose values are there. It runs after the
    /// events of the turn: one of them may be that a connection has sent its replies, and a connection
    /// without a wait would resume for that as well.
    #[inline]
    pub(crate) fn take_reads(&mut self) {
        while let Some(finished) = self.poller.finished_read() {
            self.take_read(finished);
        }
        while let Some(fetch) = self.reads.whole.pop() {
            self.fetched(&fetch);
        }
    }

    fn take_read(&mut self, finished: FinishedRead) {
        let Read {
            fetch,
            at,
            located,
            began,
        } = self.reads.take(finished.token);
        let FinishedRead {
            mut buffer, result, ..
        } = finished;
        let wanted = &fetch.wanted[at];
        let reading = &self.server.persistence.reading;
        let value = result.ok().and_then(|count| {
            buffer.truncate(count);
            reading.value_of(&located, buffer, wanted.sought())
        });
        let Some(value) = value else {
            return fetch.leave_to_threads(vec![at]);
        };
        reading.note_wait(began);
        if fetch.arrive(at, Ok(Some(value))) {
            self.reads.whole.push(fetch);
        }
    }

    /// Gives values back to their entries, and lets the connection go on that waited for them.
    pub(crate) fn fetched(&mut self, fetch: &Fetch) {
        let token = fetch.client.token.load(Relaxed);
        // Also if the connection has gone: the value is likely to be of use, and there was room for it.
        let store = Store::new(
            self.server,
            &mut self.caller.turn,
            self.stats,
            self.caller.journal.as_ref(),
            &mut self.caller.served,
            self.caller.now,
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
                    failure = store.give_back(wanted, value).err().or(failure);
                }
                Some(Err(problem)) => failure = Some(problem),
                // It has another address now: the command finds out when it is tried again.
                Some(Ok(None)) | None => {}
            }
            self.server.fetching.promises.given_back(wanted);
        }
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        if connection.fetch.number != fetch.number || connection.state != State::Fetching {
            return;
        }
        connection.fetch.number = 0;
        if self.server.offload.is_on() {
            connection.fetch.failure = failure;
            connection.fetch.arrived.append(&mut arrived);
        } else {
            // All values are there: the fetch is no longer used.
            connection.fetch.done();
        }
        connection.state = State::Open;
        self.batch.add_pending(token);
    }
}
