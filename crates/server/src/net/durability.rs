//! A worker's turn and the log: room before requests run, a commit before their replies, replies that wait
//! for the disk.
//!
//! With `appendfsync always` a reply leaves only when everything that its requests wrote or read is durable.
//! Until then it is the connection's backlog, and nothing more is read from that connection. Many
//! connections, of all workers, wait for the same sync; the log wakes the worker when it is done.

use ferrite_log::Lsn;

use crate::command::run::Request;
use crate::limits::JOURNAL_REQUEST_BYTES;
use crate::net::worker::Worker;
use crate::persistence::Persistence;
use crate::shared::gate::Closed;

impl Worker {
    /// Gets room in the log for what a window of requests may write. If there is none writes are refused.
    #[inline]
    pub(crate) fn prepare_journal(&mut self, requests: &[Request]) {
        if self.is_outside() {
            return;
        }
        if let Some(journal) = &self.caller.journal {
            let bytes = |request: &Request| request.bytes as u64 + JOURNAL_REQUEST_BYTES;
            let bytes = requests.iter().map(bytes).sum();
            // While the gate refuses writes, only the gate decides: a worker without room does not continue
            // because another worker has just found room.
            while journal.ensure(bytes).is_err() && !self.server.follow_refusal() {}
            if self.server.gate.has(Closed::LogRefuses) && self.server.follow_refusal() {
                journal.ensure_for_removal(bytes);
            }
        }
    }

    /// Begins or ends the worker's way into the log when the server's log has begun or ended, which happens
    /// between turns.
    #[inline]
    pub(crate) fn follow_log(&mut self) {
        if self.log != self.server.persistence.current() {
            self.log = self.server.persistence.current();
            let held: Vec<u64> = self.held.iter().map(|&(_, token)| token).collect();
            self.end_journal();
            self.caller.journal = Persistence::journal(self.server, self.number);
            for token in held {
                self.write_more(token);
            }
            self.run_group();
        }
    }

    /// Hands over to the log what was written so far. Returns what must be durable before replies leave, if
    /// anything.
    #[inline]
    pub(crate) fn commit(&mut self) -> Option<Lsn> {
        self.caller.journal.as_ref()?.commit()
    }

    /// Keeps replies of a connection until everything below a position is durable: `waits_for`, or what the
    /// connection waits for already.
    pub(crate) fn hold(&mut self, token: u64, waits_for: Option<Lsn>, from: usize, until: usize) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        connection.queue(&self.caller.output, from, until);
        connection.note_memory(self.stats);
        if let Some(lsn) = waits_for {
            connection.held = Some(lsn);
            self.held.push_back((lsn, token));
        }
        self.slow_reader(token);
    }

    /// Sends replies that have become durable, and goes on with the requests after them. Waiting for the disk
    /// is left to the log thread, so that other connections have their turn.
    pub(crate) fn release_held(&mut self) {
        if !self.held.is_empty()
            && let Some(journal) = &self.caller.journal
        {
            journal.sync_here();
        }
        while let Some(&(lsn, _)) = self.held.front() {
            let Some(journal) = &self.caller.journal else {
                return;
            };
            match journal.wake_when_durable(lsn) {
                Ok(true) => self.release(),
                Ok(false) => return,
                Err(refusal) => {
                    log::error!(
                        "replies are not sent, what they tell of is not durable: {refusal}"
                    );
                    for (_, token) in std::mem::take(&mut self.held) {
                        self.close(token);
                    }
                }
            }
        }
    }

    /// A connection, taken off the list, that need not wait for the disk any longer.
    pub(crate) fn first_durable(&mut self) -> Option<u64> {
        if self.waits_for_disk() {
            return None;
        }
        self.disk_waits.pop_first().map(|(_, token)| token)
    }

    /// Whether there is nothing to do for connections that wait for the disk. Then the log wakes the worker
    /// when there is: asked behind all that a turn does, because it answers the latest question alone.
    pub(crate) fn waits_for_disk(&self) -> bool {
        match (self.disk_waits.first(), &self.caller.journal) {
            (None, _) => true,
            // Replies that are held wait for the same disk, and have asked.
            (Some(&(lsn, _)), Some(journal)) if !self.held.is_empty() => journal.durable() < lsn,
            (Some(&(lsn, _)), Some(journal)) => {
                matches!(journal.wake_when_durable(lsn), Ok(false))
            }
            // The log has ended, and with it the wait.
            (Some(_), None) => false,
        }
    }

    /// Sends the replies of all connections that need not wait any longer.
    fn release(&mut self) {
        let Some(durable) = self
            .caller
            .journal
            .as_ref()
            .map(|journal| journal.durable())
        else {
            return;
        };
        let ready = self.held.partition_point(|&(lsn, _)| lsn <= durable);
        let ready: Vec<u64> = self.held.drain(..ready).map(|(_, token)| token).collect();
        for token in ready {
            let Some(connection) = self.connections.get_mut(token) else {
                continue;
            };
            // It may have been told more since, which waits for more.
            connection.held = connection.held.filter(|&lsn| lsn > durable);
            // Requests that waited behind the reply become a lane.
            self.write_more(token);
        }
        self.run_group();
    }

    /// Ends the worker's way into the log, when everything is durable that replies wait for.
    pub(crate) fn end_journal(&mut self) {
        let held = std::mem::take(&mut self.held);
        let is_durable = held.is_empty() || self.server.persistence.sync();
        for (_, token) in held {
            if !is_durable {
                self.close(token);
            } else if let Some(connection) = self.connections.get_mut(token) {
                connection.held = None;
            }
        }
        self.caller.journal = None;
    }
}
