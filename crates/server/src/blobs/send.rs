//! Parts of large values that are sent from their files: by way of pieces in memory ([`super::pieces`]), or, while too many are sent for
//! that, from the page cache to the socket, without a copy in this process.
//!
//! The second way costs this process less, and who receives on the same machine more: pages that nobody has touched for long are
//! copied slowly. Whether what comes next is in the page cache is asked before, for [`SEND_CHUNK_BYTES`] at a time: where it is not, a
//! thread reads it.

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
use super::pieces::Pieces;
use crate::clients::Client;
use crate::command::Failure;
use crate::limits::{CACHED_STEP_BYTES, READ_IN_BYTES, READ_IN_STEP_BYTES, SEND_CHUNK_BYTES};
use crate::persistence::{NOT_THERE, Persistence};
use crate::server::{Message, Server};
use crate::worker::Worker;

/// A part of a value that has a file of its own. The file stays as long as this does.
#[derive(Clone)]
pub(crate) struct FilePart {
    pub(super) blob: Arc<Blob>,
    store: BlobStore,
    pub(super) range: Range<u64>,
}

/// One that is being sent, or will be.
pub(crate) struct Sending {
    part: FilePart,
    way: Way,
}

enum Way {
    Unbegun,
    Pieces(Pieces),
    PageCache(Pages),
    /// Its file cannot be read.
    Failed,
}

/// What is sent from the page cache.
#[derive(Default)]
struct Pages {
    /// None before it is opened.
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

/// Word that there is something to send to a connection that waits for it.
pub(crate) struct Ready {
    client: Arc<Client>,
    number: u64,
    what: What,
}

enum What {
    /// A piece, or that there will be none.
    Piece,
    /// The page cache has the file up to a position.
    Pages(Arc<dyn File>, u64),
    Nothing,
}

/// A part of a file that a thread is to read into the page cache.
pub(crate) struct ReadIn {
    server: &'static Server,
    part: FilePart,
    file: Option<Arc<dyn File>>,
    client: Arc<Client>,
    number: u64,
}

impl Persistence {
    /// A part of a value that has a file of its own. The shard of its entry is locked.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn part_of(&self, value: ColdValue, range: Range<u64>) -> Result<FilePart, Failure> {
        let blob = self.blob_of(value).ok_or(NOT_THERE)?;
        let store = self.blob_store().ok_or(NOT_THERE)?;
        Ok(FilePart { blob, store, range })
    }
}

impl FilePart {
    /// Its bytes.
    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Opens its file. May wait for the disk.
    ///
    /// # Errors
    /// The disk refuses.
    pub(super) fn open(&self) -> io::Result<Box<dyn File>> {
        self.store.open(&self.blob).map_err(io::Error::other)
    }
}

impl Sending {
    pub(crate) fn new(part: FilePart) -> Sending {
        let way = Way::Unbegun;
        Sending { part, way }
    }

    /// Whether all of it was sent.
    pub(crate) fn is_over(&self) -> bool {
        self.part.len() == 0
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        match &self.way {
            Way::Pieces(pieces) => pieces.memory(),
            Way::Unbegun | Way::PageCache(_) | Way::Failed => 0,
        }
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
        let sent = match &mut self.way {
            Way::Unbegun => return Ok(Sent::Later),
            Way::Pieces(pieces) => pieces.send(poller, socket, most)?,
            Way::PageCache(pages) => pages.send(&self.part.range, poller, socket, most)?,
            Way::Failed => return Err(io::Error::other("its file cannot be read")),
        };
        if let Sent::Bytes(count) = sent {
            self.part.range.start += count as u64;
        }
        Ok(sent)
    }

    /// Bytes of memory that it takes when it begins, if it may.
    pub(crate) fn memory_wanted(&self, server: &Server) -> usize {
        match self.way {
            Way::Unbegun => Pieces::memory_wanted(server),
            _ => 0,
        }
    }

    /// Lets a thread read what comes next: into memory if it may take some, or else into the page cache. Returns the number of the wait.
    pub(crate) fn ask(
        &mut self,
        server: &'static Server,
        client: &Arc<Client>,
        may_take: bool,
    ) -> u64 {
        if matches!(self.way, Way::Unbegun) {
            let begin = || Pieces::begin(server, client, &self.part);
            self.way = match may_take.then(begin).flatten() {
                Some(pieces) => Way::Pieces(pieces),
                None => Way::PageCache(Pages::default()),
            };
        }
        match &self.way {
            Way::Pieces(pieces) => pieces.number(),
            Way::Unbegun | Way::Failed => 0,
            Way::PageCache(pages) => {
                let number = server.waits.next();
                server.blobs.slow.add([Work::ReadIn(Box::new(ReadIn {
                    server,
                    part: self.part.clone(),
                    file: pages.file.clone(),
                    client: Arc::clone(client),
                    number,
                }))]);
                number
            }
        }
    }

    /// Whether this is the word that it waits for, under the number of the wait. Notes what there is.
    pub(crate) fn note(&mut self, ready: &Ready, number: u64) -> bool {
        if ready.number != number {
            return false;
        }
        match (&mut self.way, &ready.what) {
            (Way::PageCache(pages), What::Pages(file, until)) => {
                pages.file = Some(Arc::clone(file));
                pages.cached_until = pages.cached_until.max(*until);
            }
            (way, What::Nothing) => *way = Way::Failed,
            _ => {}
        }
        true
    }
}

impl Pages {
    fn send(
        &mut self,
        range: &Range<u64>,
        poller: &mut Poller,
        socket: &Socket,
        most: usize,
    ) -> io::Result<Sent> {
        let Some(file) = &self.file else {
            return Ok(Sent::Later);
        };
        let descriptor = file
            .descriptor()
            .ok_or_else(|| io::Error::other("the file is none of the system's"))?;
        let at = range.start;
        if at >= self.cached_until {
            let until = (at + SEND_CHUNK_BYTES).min(range.end);
            if is_cached(descriptor, at..until) != Some(true) {
                return Ok(Sent::Later);
            }
            self.cached_until = until;
        }
        let most = (self.cached_until - at).min(most as u64) as usize;
        match poller.send_file(socket.as_fd(), descriptor, at, most)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            sent => Ok(Sent::Bytes(sent)),
        }
    }
}

impl ReadIn {
    /// Reads into the page cache, and tells the worker.
    pub(super) fn read(self) {
        let worker = self.client.worker;
        let what = match self.read_pages() {
            Ok((file, until)) => What::Pages(file, until),
            Err(error) => {
                log::error!("a large value cannot be sent: {error}");
                What::Nothing
            }
        };
        let ready = Ready {
            client: self.client,
            number: self.number,
            what,
        };
        self.server.workers[worker].send(Message::Ready(ready));
    }

    fn read_pages(&self) -> io::Result<(Arc<dyn File>, u64)> {
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::from(self.part.open()?),
        };
        let Range { start, end } = self.part.range;
        let until = (start + READ_IN_BYTES).min(end);
        // All of it is asked for before any of it is waited for, in pieces that the system takes whole; and what comes behind it, which
        // the disk can read while this is sent.
        let ahead = (until + READ_IN_BYTES).min(end);
        for at in (start..ahead).step_by(READ_IN_STEP_BYTES) {
            file.will_need(at, (ahead - at).min(READ_IN_STEP_BYTES as u64));
        }
        // A byte here and there waits for what is around it, and costs no copy.
        let touched = (start..until).step_by(CACHED_STEP_BYTES);
        for at in touched.chain([until - 1]) {
            file.read_exact_at(&mut [0], at)?;
        }
        Ok((file, until))
    }
}

impl Ready {
    /// Word of a piece in memory, or that there will be none.
    pub(super) fn of(client: &Arc<Client>, number: u64) -> Ready {
        Ready {
            client: Arc::clone(client),
            number,
            what: What::Piece,
        }
    }
}

impl Worker {
    /// There is something to send to a connection: in this turn, if that moves no more than it may, or in one of the next.
    pub(crate) fn file_ready(&mut self, ready: &Ready) {
        let token = ready.client.token.load(Relaxed);
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        if connection.backlog.end_wait(ready) {
            self.bulk.push(token);
            self.settle(token);
        }
    }
}
