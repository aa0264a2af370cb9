//! Threads that read values back from the log.
//!
//! What one request needs is a [`Fetch`]: its values are read side by side, and whoever reads the last of them tells the worker.
//! Threads are started when there is something to read for the first time, and stay.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel};

use keyspace::LargeValue;
use parking_lot::{Condvar, Mutex};

use super::Wanted;
use crate::clients::Client;
use crate::command::Failure;
use crate::limits::FETCH_THREADS;
use crate::server::{Message, Server};

/// What came of reading a value: `None` if it is not where it was any more.
pub(super) type Read = Result<Option<LargeValue>, Failure>;

/// The values that a request waits for.
pub(crate) struct Fetch {
    pub(super) client: Arc<Client>,
    /// The number of the wait, by which its connection knows it.
    pub(super) number: u64,
    pub(super) wanted: Vec<Wanted>,
    /// What came of each, until it is taken.
    pub(super) read: Box<[Mutex<Option<Read>>]>,
    left: AtomicUsize,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Pool {
    queue: Mutex<Queue>,
    is_there_work: Condvar,
}

#[derive(Default)]
struct Queue {
    /// A fetch, and which of its values is to be read.
    jobs: VecDeque<(Arc<Fetch>, usize)>,
    threads: usize,
    idle: usize,
}

impl Pool {
    /// Reads what a connection wants, of which there is at least one.
    pub(super) fn fetch(
        &self,
        server: &'static Server,
        client: Arc<Client>,
        number: u64,
        wanted: Vec<Wanted>,
    ) {
        let count = wanted.len();
        let fetch = Arc::new(Fetch {
            client,
            number,
            read: (0..count).map(|_| Mutex::default()).collect(),
            wanted,
            left: AtomicUsize::new(count),
        });
        let mut queue = self.queue.lock();
        queue
            .jobs
            .extend((0..count).map(|at| (Arc::clone(&fetch), at)));
        while queue.threads < FETCH_THREADS && queue.idle < queue.jobs.len() {
            let thread = std::thread::Builder::new().name(format!("fetch-{}", queue.threads));
            match thread.spawn(move || server.cold.pool.run(server)) {
                // It counts as idle until it has taken something.
                Ok(_) => {
                    queue.threads += 1;
                    queue.idle += 1;
                }
                Err(error) if queue.threads == 0 => {
                    log::error!(
                        "cannot start a thread that reads values, so this one does: {error}"
                    );
                    let jobs = std::mem::take(&mut queue.jobs);
                    drop(queue);
                    for (fetch, at) in jobs {
                        fetch.read(server, at);
                    }
                    return;
                }
                Err(_) => break,
            }
        }
        drop(queue);
        if count == 1 {
            self.is_there_work.notify_one();
        } else {
            self.is_there_work.notify_all();
        }
    }

    fn run(&self, server: &'static Server) {
        loop {
            let mut queue = self.queue.lock();
            while queue.jobs.is_empty() {
                self.is_there_work.wait(&mut queue);
            }
            let Some((fetch, at)) = queue.jobs.pop_front() else {
                continue;
            };
            queue.idle -= 1;
            drop(queue);
            fetch.read(server, at);
            self.queue.lock().idle += 1;
        }
    }
}

impl Fetch {
    /// Reads one of the values. Whoever does the last tells the worker.
    fn read(self: &Arc<Self>, server: &'static Server, at: usize) {
        let wanted = &self.wanted[at];
        let read = server.persistence.read_cold(&wanted.key, wanted.value);
        server.cold.promises.read(wanted);
        let before = self.read[at].lock().replace(read);
        assert!(before.is_none(), "each value is read once");
        if self.left.fetch_sub(1, AcqRel) == 1 {
            let fetched = Message::Fetched(Arc::clone(self));
            server.workers[self.client.worker].send(fetched);
        }
    }
}
