//! Parts of large values that are sent from their files.
//!
//! Bytes go from the page cache to the socket without a copy in this process. Whether they are in the page cache is asked before, for
//! [`SEND_CHUNK_BYTES`] at a time: where they are not, a thread reads them, and the connection is sent to again when it has.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ferrite_log::{Blob, BlobStore};
use keyspace::ColdValue;
use sys::file::{File, is_cached};
use sys::poller::Poller;
use sys::socket::Socket;

use super::Work;
use crate::clients::Client;
use crate::command::Failure;
use crate::limits::{CACHED_STEP_BYTES, READ_IN_BYTES, READ_IN_STEP_BYTES, SEND_CHUNK_BYTES};
use crate::persistence::{NOT_THERE, Persistence};
use crate::server::{Message, Server};
use crate::worker::Worker;

/// A part of a value that has a file of its own. The file stays as long as this does.
#[derive(Clone)]
pub(crate) struct FilePart {
    blob: Arc<Blob>,
    store: BlobStore,
    range: Range<u64>,
    file: Option<Arc<dyn File>>,
    /// Everything before is in the page cache, or was a moment ago.
    cached_until: u64,
}

/// What came of sending from a file.
pub(crate) enum Sent {
    Bytes(usize),
    /// A thread has to read first.
    Later,
}

/// Word that bytes are in the page cache for which a connection waits, up to a position in its file.
pub(crate) struct Cached {
    client: Arc<Client>,
    number: u64,
    until: u64,
}

/// A part of a file that a thread is to read into the page cache.
pub(crate) struct ReadIn {
    server: &'static Server,
    file: Arc<dyn File>,
    from: u64,
    /// The end of what will be sent of it.
    end: u64,
    /// Who is told, and how far it goes.
    cached: Cached,
}

impl Persistence {
    /// A part of a value that has a file of its own. The shard of its entry is locked.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn part_of(&self, value: ColdValue, range: Range<u64>) -> Result<FilePart, Failure> {
        let blob = self.blob_of(value).ok_or(NOT_THERE)?;
        Ok(FilePart {
            blob,
            store: self.blob_store().ok_or(NOT_THERE)?,
            range,
            file: None,
            cached_until: 0,
        })
    }
}

impl FilePart {
    /// Bytes that have yet to be sent.
    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Sends what the socket takes, `most` bytes at most.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing now. Anything else is the end of the connection, because the reply cannot be completed.
    pub(crate) fn send(
        &mut self,
        poller: &mut Poller,
        socket: &Socket,
        most: usize,
    ) -> io::Result<Sent> {
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => {
                let file = self.store.open(&self.blob).map_err(io::Error::other)?;
                Arc::clone(self.file.insert(Arc::from(file)))
            }
        };
        let descriptor = file
            .descriptor()
            .ok_or_else(|| io::Error::other("the file is none of the system's"))?;
        let at = self.range.start;
        if at >= self.cached_until {
            let until = (at + SEND_CHUNK_BYTES).min(self.range.end);
            // What was asked for comes in any order, and one that is missing would be waited for.
            let mut looks = (at..until).step_by(CACHED_STEP_BYTES).chain([until - 1]);
            if !looks.all(|offset| is_cached(descriptor, offset) == Some(true)) {
                return Ok(Sent::Later);
            }
            self.cached_until = until;
        }
        let most = (self.cached_until - at).min(most as u64) as usize;
        let sent = poller.send_file(socket.as_fd(), descriptor, at, most)?;
        if sent == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.range.start += sent as u64;
        Ok(Sent::Bytes(sent))
    }

    /// Lets a thread read what comes next.
    pub(crate) fn read_in(&self, server: &'static Server, client: Arc<Client>, number: u64) {
        let Some(file) = self.file.clone() else {
            return;
        };
        let (from, end) = (self.range.start, self.range.end);
        server.blobs.add([Work::Read(ReadIn {
            server,
            file,
            from,
            end,
            cached: Cached {
                client,
                number,
                until: (from + READ_IN_BYTES).min(end),
            },
        })]);
    }

    /// Notes that a thread has read up to a position.
    pub(crate) fn note_cached(&mut self, until: u64) {
        self.cached_until = self.cached_until.max(until);
    }
}

impl ReadIn {
    /// Reads, and tells the worker.
    pub(super) fn read(self) {
        let (from, until) = (self.from, self.cached.until);
        // All of it is asked for before any of it is waited for, in pieces that the system takes whole; and what comes behind it, which
        // the disk can read while this is sent.
        let ahead = (until + READ_IN_BYTES).min(self.end);
        for at in (from..ahead).step_by(READ_IN_STEP_BYTES) {
            self.file
                .will_need(at, (ahead - at).min(READ_IN_STEP_BYTES as u64));
        }
        // A byte here and there waits for what is around it, and costs no copy.
        let touched = (from..until).step_by(CACHED_STEP_BYTES);
        for at in touched.chain([until - 1]) {
            // What cannot be read is found out by whoever sends it.
            if self.file.read_at(&mut [0], at).is_err() {
                break;
            }
        }
        let worker = self.cached.client.worker;
        self.server.workers[worker].send(Message::Cached(self.cached));
    }
}

impl Worker {
    /// What a connection is to be sent is in the page cache.
    pub(crate) fn cached(&mut self, cached: &Cached) {
        let token = cached.client.token.load(Relaxed);
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        if connection.backlog.end_wait(cached.number, cached.until) {
            self.write_more(token);
        }
    }
}
