//! Reading cold leaves ahead of a walk through a collection: by threads, for a connection that waits.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use ferrite_log::Hold;
use keyspace::LargeValue;
use keyspace::collection::Base;

use crate::limits::{WALK_READERS, WALK_READS};
use crate::request::Failure;
use crate::shared::Message;
use crate::values::Values;
use crate::values::pool::Job;

type Leaves = Vec<(Base, LargeValue)>;

/// Some leaves of an instance, to be read by one thread.
pub(crate) struct ReadLeaves {
    server: &'static Values,
    /// The worker that is woken afterwards.
    worker: usize,
    hold: Arc<Hold>,
    instance: u64,
    records: Vec<Base>,
    sender: Sender<Result<Leaves, Failure>>,
}

/// Leaves that are being read.
pub(crate) struct LeavesAhead {
    receiver: Receiver<Result<Leaves, Failure>>,
    /// Jobs that have not ended.
    left: usize,
    read: Leaves,
}

impl LeavesAhead {
    /// Begins to read the records of leaves of an instance, and wakes a worker when there are some.
    pub(crate) fn begin(
        (server, worker): (&'static Values, usize),
        hold: &Arc<Hold>,
        instance: u64,
        records: &[Base],
    ) -> LeavesAhead {
        let (sender, receiver) = channel();
        let jobs = records.chunks(WALK_READS).map(|records| ReadLeaves {
            server,
            worker,
            hold: Arc::clone(hold),
            instance,
            records: records.to_vec(),
            sender: sender.clone(),
        });
        let left = jobs.len();
        server.fetching.walks.add(jobs);
        LeavesAhead {
            receiver,
            left,
            read: Vec::new(),
        }
    }

    /// All leaves, once they are there.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub(crate) fn arrived(&mut self) -> Result<Option<Leaves>, Failure> {
        while self.left > 0 {
            match self.receiver.try_recv() {
                Ok(read) => {
                    self.left -= 1;
                    self.read.extend(read?);
                }
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => {
                    return Err(Failure::of("ERR leaves of the value were not read"));
                }
            }
        }
        Ok(Some(std::mem::take(&mut self.read)))
    }
}

impl Job for ReadLeaves {
    const NAME: &'static str = "walk";
    const THREADS: usize = WALK_READERS;

    fn run(self) {
        let persistence = &self.server.persistence;
        let read = self.records.iter().map(|&base| {
            let contents = persistence.leaf_now(self.instance, base, Some(&self.hold))?;
            Ok((base, contents))
        });
        // The connection may be gone.
        let _ = self.sender.send(read.collect());
        // The hold ends before the worker is told, so that none outlives the walk.
        let ReadLeaves {
            server,
            worker,
            hold,
            ..
        } = self;
        drop(hold);
        server.workers[worker].send(Message::Wake);
    }
}
