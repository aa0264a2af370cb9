//! Values that the kernel reads for a worker while it waits for its connections: where the poller is io_uring, it needs no thread for that.
//!
//! What is damaged, or not whole in what was read, goes on to a thread ([`super::fetch`]), which finds out why.

use std::sync::Arc;

use ferrite_log::Located;
use sys::poller::{FinishedRead, Poller};

use super::Fetch;
use crate::server::Server;
use crate::worker::Worker;

/// What one worker's poller reads. Only that worker has it.
#[derive(Default)]
pub(crate) struct Reads {
    /// By the tokens of the reads.
    under_way: Vec<Option<Read>>,
    free: Vec<usize>,
    /// Fetches of which all is there, whoever has read it.
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
    /// Asks the poller for the values of a fetch. Returns those that somebody else has to read.
    pub(super) fn ask(
        &mut self,
        server: &Server,
        poller: &mut Poller,
        fetch: &Arc<Fetch>,
    ) -> Vec<usize> {
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
        let located = server.persistence.locate(&wanted.key, wanted.value)?;
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
    /// Takes what the poller has read, and lets connections go on whose values are there. This comes behind the events of the turn: one of
    /// them may be that a connection has sent its replies, and who is not waiting any more would go on for that as well.
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
            reading.value_of(&located, buffer, &wanted.key, wanted.value)
        });
        let Some(value) = value else {
            return fetch.leave_to_threads(vec![at]);
        };
        reading.note_wait(began);
        if fetch.arrive(at, Ok(Some(value))) {
            self.reads.whole.push(fetch);
        }
    }
}
