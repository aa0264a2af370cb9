//! Reading values back from the log, by threads.
//!
//! What one request needs is a [`Fetch`]: its values are read side by side, and whoever reads the last of
//! them tells the worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel};

use keyspace::LargeValue;
use parking_lot::Mutex;

use super::Wanted;
use crate::limits::FETCH_THREADS;
use crate::request::Failure;
use crate::shared::clients::Client;
use crate::values::Values;
use crate::values::pool::Job;

/// What came of reading a value: `None` if it is not where it was any more.
pub(crate) type Read = Result<Option<LargeValue>, Failure>;

/// The values that a request waits for.
pub(crate) struct Fetch {
    server: &'static Values,
    pub(crate) client: Arc<Client>,
    /// The number of the wait, by which its connection knows it.
    pub(crate) number: u64,
    pub(crate) wanted: Vec<Wanted>,
    /// What came of each, until it is taken.
    pub(crate) read: Box<[Mutex<Option<Read>>]>,
    left: AtomicUsize,
}

/// One of the values of a fetch, which a thread is to read.
pub(crate) struct FetchOne {
    fetch: Arc<Fetch>,
    at: usize,
}

impl Fetch {
    pub(crate) fn new(
        server: &'static Values,
        client: Arc<Client>,
        number: u64,
        wanted: Vec<Wanted>,
    ) -> Arc<Fetch> {
        Arc::new(Fetch {
            server,
            client,
            number,
            read: wanted.iter().map(|_| Mutex::default()).collect(),
            left: AtomicUsize::new(wanted.len()),
            wanted,
        })
    }

    /// Lets threads read some of the values.
    pub(crate) fn leave_to_threads(self: &Arc<Fetch>, which: Vec<usize>) {
        if which.is_empty() {
            return;
        }
        self.server
            .fetching
            .threads
            .add(which.into_iter().map(|at| FetchOne {
                fetch: Arc::clone(self),
                at,
            }));
    }

    /// Takes what came of one of the values. Whether it was the last.
    pub(crate) fn arrive(&self, at: usize, read: Read) -> bool {
        self.server.fetching.promises.read(&self.wanted[at]);
        let before = self.read[at].lock().replace(read);
        assert!(before.is_none(), "each value is read once");
        self.left.fetch_sub(1, AcqRel) == 1
    }
}

impl Job for FetchOne {
    const NAME: &'static str = "fetch";
    const THREADS: usize = FETCH_THREADS;

    /// Reads it. Whoever does the last tells the worker.
    fn run(self) {
        let FetchOne { fetch, at } = self;
        let (server, wanted) = (fetch.server, &fetch.wanted[at]);
        let read = server.persistence.read_cold(&wanted.key, wanted.value);
        if fetch.arrive(at, read) {
            let worker = fetch.client.worker;
            server.fetching.fetched.send(&server.workers, worker, fetch);
        }
    }
}
