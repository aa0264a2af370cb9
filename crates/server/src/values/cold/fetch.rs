//! Fetch: threads read values back from the log.
//!
//! The values for one request are a [`Fetch`]. They are read in parallel, and the thread that reads the last
//! one sends the worker a message.

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

/// Result of reading a value: `None` if its record has moved.
pub(crate) type Read = Result<Option<LargeValue>, Failure>;

/// Values for which a request waits.
pub(crate) struct Fetch {
    server: &'static Values,
    pub(crate) client: Arc<Client>,
    /// Number of the connection's wait.
    pub(crate) number: u64,
    pub(crate) wanted: Vec<Wanted>,
    /// Result of each value, until it is taken.
    pub(crate) read: Box<[Mutex<Option<Read>>]>,
    left: AtomicUsize,
}

/// One value of a fetch, to be read by a thread.
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

    /// Hands some of the values over to threads.
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

    /// Stores the result of one value. Returns whether it was the last.
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

    /// Reads the value. The last one sends the worker a message.
    fn run(self) {
        let FetchOne { fetch, at } = self;
        let (server, wanted) = (fetch.server, &fetch.wanted[at]);
        let read = server.persistence.read_cold(wanted.sought());
        if fetch.arrive(at, read) {
            let worker = fetch.client.worker;
            server.fetching.fetched.send(&server.workers, worker, fetch);
        }
    }
}
