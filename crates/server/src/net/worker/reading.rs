//! Reading the input of connections: into the worker's scratch buffer, or behind an incomplete request.

use std::sync::atomic::Ordering::Relaxed;

use super::{Worker, room};
use crate::limits::{READ_BYTES, SCRATCH_BYTES};
use crate::net::connection::{Ahead, Connection, State};
use crate::net::lane::{Lane, Source};
use crate::shared::clients;

impl Worker {
    /// Reads input of a connection and makes a lane of it. Returns the bytes of scratch that it took.
    #[inline]
    pub(crate) fn read(&mut self, token: u64, used: usize) -> usize {
        let (server, stats) = (self.server, self.stats);
        let Some(connection) = self.connections.get_mut(token) else {
            return 0;
        };
        let is_idle = connection.state == State::Open && connection.backlog.is_empty();
        if !is_idle && !connection.runs(server.most_unsent(stats)) {
            self.read_ahead(token);
            return 0;
        }
        if connection.pending.is_empty() && connection.expected == 0 {
            let until = (used + READ_BYTES).min(SCRATCH_BYTES);
            match connection.receive(&mut self.poller, &mut self.scratch[used..until]) {
                Ok(0) => self.end_of_input(token),
                Ok(count) => {
                    let client = &connection.session.client;
                    client.last_active_ms.store(self.caller.now, Relaxed);
                    clients::count(&client.received, count);
                    self.stats.note_read(count);
                    self.batch.lanes.push(Lane::new(
                        token,
                        Source::Scratch {
                            from: used,
                            until: used + count,
                        },
                    ));
                    return count;
                }
                Err(error) => self.read_failed(token, &error),
            }
            return 0;
        }
        if connection.upload.is_some() {
            self.bulk.push(token);
            return 0;
        }
        if connection.need == 0 && !connection.pending.is_empty() {
            self.batch.add_pending(token);
            return 0;
        }
        self.read_pending(token);
        0
    }

    /// Reads more of an incomplete request.
    fn read_pending(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let mut need = connection.need.max(connection.expected);
        let growth = room::growth(&connection.pending, need, &connection.resume);
        if self.server.memory.is_near_with(growth) && self.make_room(growth) {
            // A little at a time until there is room for all of it.
            need = 0;
        }
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        room::reserve(&mut connection.pending, need, &connection.resume);
        let Connection {
            ahead,
            transport,
            pending,
            ..
        } = connection;
        match Ahead::take_or_receive(ahead, &mut self.poller, transport, pending) {
            Ok(0) => self.end_of_input(token),
            Ok(count) => {
                let client = &connection.session.client;
                client.last_active_ms.store(self.caller.now, Relaxed);
                clients::count(&client.received, count);
                connection.note_input();
                connection.note_memory(self.stats);
                self.stats.note_read(count);
                let is_complete = connection.pending.len() >= connection.need;
                if self.is_over_query_limit(token) {
                    self.close(token);
                } else if is_complete {
                    self.batch.add_pending(token);
                } else {
                    self.settle(token);
                }
            }
            Err(error) => {
                if connection.pending.is_empty() {
                    // Nothing came for the buffer that a large request was expected in.
                    connection.pending = Vec::new();
                    connection.expected = 0;
                }
                self.read_failed(token, &error);
            }
        }
    }

    pub(crate) fn read_failed(&mut self, token: u64, error: &std::io::Error) {
        if !matches!(
            error.kind(),
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted
        ) {
            self.close(token);
        }
    }
}
