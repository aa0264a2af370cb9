//! Connections that send a large value: how they begin to, how it is read, and how their request runs in the
//! end.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::config::Setting;
use crate::limits::UPLOAD_TURN_BYTES;
use crate::net::connection::{Ahead, Connection, State};
use crate::net::worker::Worker;
use crate::persistence::Phase;
use crate::shared::clients;
use crate::values::blobs::{Incoming, Received, Upload};

impl Worker {
    /// Lets the argument that a connection is sending go to a file, if it is a large value of a command that
    /// takes one so.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_upload(&mut self, token: u64) {
        let server = self.server;
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let pending = &connection.pending;
        let Some(awaited) = connection.resume.awaited(pending) else {
            return;
        };
        let arrived = pending.len() - awaited.payload;
        let least = server.settings.int(Setting::LogBlobSize) as usize;
        if awaited.len < least || arrived >= awaited.len {
            return;
        }
        let name = connection.resume.argument(0);
        let command = name.and_then(|name| self.table.find(name.of(pending)));
        let takes = command.and_then(|command| command.spec.large.takes);
        let is_value = takes.is_some_and(|(argument, _)| argument == awaited.argument);
        let may = connection.state == State::Open
            && connection.upload.is_none()
            && connection.session.transaction.is_none()
            && self.caller.journal.is_some()
            && server.persistence.phase() != Phase::Ending;
        let Some(store) = server.persistence.blob_store().filter(|_| is_value && may) else {
            return;
        };
        let client = Arc::clone(&connection.session.client);
        let arrived = &pending[awaited.payload..];
        let upload = Upload::begin(server, client, store, awaited.len as u64, arrived);
        // A few words stand for the value, for the slow log and MONITOR.
        let words = format!("<{} bytes>", awaited.len);
        connection.pending.truncate(awaited.header);
        let header = format!("${}\r\n{words}", words.len());
        connection.pending.extend_from_slice(header.as_bytes());
        connection.pending.shrink_to_fit();
        connection.resume.clear();
        connection.upload = Some(Box::new(upload));
        connection.expected = 0;
        // Nothing is parsed before the value is there.
        connection.need = usize::MAX;
        if !server.offload.is_large_expected() {
            self.caller
                .turn
                .exclusive(|alone| server.offload.expect_large(alone));
        }
    }

    /// Reads more of the value that a connection sends, until there are `most` bytes or a few more. Returns
    /// how many.
    pub(crate) fn read_upload(&mut self, token: u64, most: usize) -> usize {
        let (mut used, mut failed) = (0, None);
        let Some(connection) = self.connections.get_mut(token) else {
            return 0;
        };
        let Connection {
            upload: Some(upload),
            ahead,
            transport,
            state,
            pending,
            ..
        } = connection
        else {
            return 0;
        };
        while used < most.min(UPLOAD_TURN_BYTES) {
            let Some(room) = upload.room() else {
                *state = State::Uploading;
                break;
            };
            let free = room.capacity() - room.len();
            match Ahead::take_or_receive(ahead, &mut self.poller, transport, room) {
                Ok(0) => {
                    self.end_of_input(token);
                    return used;
                }
                Ok(count) => {
                    used += count;
                    if let Some(behind) = upload.take_end() {
                        pending.extend_from_slice(&behind);
                        *state = State::Uploading;
                        break;
                    }
                    if count < free {
                        break;
                    }
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        self.stats.note_read(used);
        let client = &connection.session.client;
        client.last_active_ms.store(self.caller.now, Relaxed);
        clients::count(&client.received, used);
        if let Some(error) = failed {
            self.read_failed(token, &error);
        }
        self.settle(token);
        used
    }

    /// There is room again for what a connection sends, or all of it is in its file.
    pub(crate) fn uploaded(&mut self, shared: &Incoming) {
        let token = shared.client.token.load(Relaxed);
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let Some(upload) = &mut connection.upload else {
            return;
        };
        if upload.number() != shared.number || connection.state != State::Uploading {
            return;
        }
        match upload.take_outcome() {
            Some(outcome) => {
                connection.received = Some(Received::new(self.server, outcome));
                connection.upload = None;
                connection.need = 0;
                connection.state = State::Open;
                self.batch.add_pending(token);
            }
            // Word of a piece may come when all has been handed over.
            None if upload.is_handed_over() => {}
            None => {
                connection.state = State::Open;
                self.read_upload(token, UPLOAD_TURN_BYTES);
            }
        }
    }
}
