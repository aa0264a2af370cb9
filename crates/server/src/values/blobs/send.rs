//! Parts of large values that are sent from their files: by way of pieces in memory ([`super::pieces`]), or,
//! while too many are sent for that, from the page cache to the socket, without a copy in this process.
//!
//! The second way takes no memory that stays, and costs who receives on the same machine more: pages that
//! nobody has touched for long are copied slowly. A thread reads what comes next, [`READ_IN_BYTES`] at a
//! time, and checks it; it is in the page cache then, and is sent from there.
//!
//! The header of the reply goes to the socket with the first bytes of the value, and not before. If these
//! cannot be read, or are not what was written, an error takes its place ([`Opening`]). Where that is found
//! out later, the connection has to end: the header has promised the rest.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ferrite_log::{BLOB_PIECE_BYTES, BlobFile};
use keyspace::ColdValue;
use parking_lot::Mutex;
use sys::poller::Poller;
use sys::socket::Socket;

use super::Work;
use super::pieces::Pieces;
use crate::limits::{READ_IN_BYTES, READ_IN_STEP_BYTES};
use crate::persistence::{NOT_THERE, Persistence};
use crate::request::{Failure, FilePart};
use crate::shared::clients::Client;
use crate::values::Values;

/// One that is being sent, or will be.
pub(crate) struct Sending {
    part: FilePart,
    way: Way,
    /// The header of the reply, before it is sent.
    header: Option<Vec<u8>>,
}

/// What is known of the first bytes of a part.
pub(super) enum Opening {
    /// They are there.
    Goes,
    /// They cannot be sent: why.
    Fails(Arc<str>),
    /// Nothing yet.
    Later,
}

/// What goes to the socket before a part does.
pub(crate) enum Before {
    /// Nothing any more.
    Nothing,
    /// Nothing is known before a thread has read.
    Later,
    /// The header of the reply.
    Header(Vec<u8>),
    /// An error, in the place of the header and the part, without the end of its line.
    Error(Vec<u8>),
}

enum Way {
    Unbegun,
    Pieces(Pieces),
    PageCache(Pages),
    /// Its file cannot be read: why.
    Failed(Arc<str>),
}

/// What is sent from the page cache.
#[derive(Default)]
struct Pages {
    /// None before it is opened. A thread has it, or nobody.
    file: Option<Arc<Mutex<BlobFile>>>,
    /// Everything before was checked, and is in the page cache, or was a moment ago.
    checked_until: u64,
}

/// What came of sending from a file.
pub(crate) enum Sent {
    Bytes(usize),
    /// A thread has to read first.
    Later,
}

/// Word that there is something to send to a connection that waits for it.
pub(crate) struct Ready {
    pub(crate) client: Arc<Client>,
    number: u64,
    what: What,
}

enum What {
    /// A piece, or that there will be none.
    Piece,
    /// The page cache has the file up to a position, and that was checked.
    Pages(Arc<Mutex<BlobFile>>, u64),
    Nothing(Arc<str>),
}

/// A part of a file that a thread is to read into the page cache.
pub(crate) struct ReadIn {
    server: &'static Values,
    part: FilePart,
    file: Option<Arc<Mutex<BlobFile>>>,
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

impl Values {
    /// Notes that a large value cannot be sent. Returns what the client is told, if it can be told.
    pub(super) fn note_unsent(&self, error: &io::Error) -> Arc<str> {
        log::error!("a large value cannot be sent: {error}");
        let failures = &self.persistence.reading.failures;
        failures.fetch_add(1, Relaxed);
        let line = format!("IOERR {error}");
        line.replace(['\r', '\n'], " ").into()
    }
}

impl Sending {
    /// A part, and the header of the reply that it is, which goes in front of it.
    pub(crate) fn new(part: FilePart, header: Option<Vec<u8>>) -> Sending {
        let way = Way::Unbegun;
        Sending { part, way, header }
    }

    /// What is to be sent first.
    pub(crate) fn before(&mut self) -> Before {
        if self.header.is_none() {
            return Before::Nothing;
        }
        let opening = match &self.way {
            Way::Unbegun => Opening::Later,
            Way::Pieces(pieces) => pieces.opening(),
            Way::PageCache(pages) if pages.checked_until > self.part.range.start => Opening::Goes,
            Way::PageCache(_) => Opening::Later,
            Way::Failed(problem) => Opening::Fails(Arc::clone(problem)),
        };
        match opening {
            Opening::Goes => self.header.take().map_or(Before::Nothing, Before::Header),
            Opening::Fails(problem) => Before::Error(format!("-{problem}").into_bytes()),
            Opening::Later => Before::Later,
        }
    }

    /// Whether all of it was sent.
    pub(crate) fn is_over(&self) -> bool {
        self.part.len() == 0
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        match &self.way {
            Way::Pieces(pieces) => pieces.memory(),
            Way::Unbegun | Way::PageCache(_) | Way::Failed(_) => 0,
        }
    }

    /// Sends what the socket takes, `most` bytes at most.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing now. Anything else is the end of the connection, because the reply
    /// cannot be completed.
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
            Way::Failed(_) => return Err(io::Error::other("its file cannot be read")),
        };
        if let Sent::Bytes(count) = sent {
            self.part.range.start += count as u64;
        }
        Ok(sent)
    }

    /// Bytes of memory that it takes when it begins, if it may.
    pub(crate) fn memory_wanted(&self, server: &Values) -> usize {
        match self.way {
            Way::Unbegun => Pieces::memory_wanted(server),
            _ => 0,
        }
    }

    /// Lets a thread read what comes next: into memory if it may take some, or else into the page cache.
    /// Returns the number of the wait.
    pub(crate) fn ask(
        &mut self,
        server: &'static Values,
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
            Way::Unbegun | Way::Failed(_) => 0,
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
                pages.checked_until = pages.checked_until.max(*until);
            }
            (way, What::Nothing(problem)) => *way = Way::Failed(Arc::clone(problem)),
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
        // Nobody has the file but a thread that is told to read, and then nothing is sent.
        let file = self.file.as_ref().and_then(|file| file.try_lock());
        let at = range.start;
        let Some(file) = file.filter(|_| at < self.checked_until) else {
            return Ok(Sent::Later);
        };
        let descriptor = file
            .file()
            .descriptor()
            .ok_or_else(|| io::Error::other("the file is none of the system's"))?;
        let most = (self.checked_until - at).min(most as u64) as usize;
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
            Err(error) => What::Nothing(self.server.note_unsent(&error)),
        };
        let ready = Ready {
            client: self.client,
            number: self.number,
            what,
        };
        let server = self.server;
        server.blobs.ready.send(&server.workers, worker, ready);
    }

    fn read_pages(&self) -> io::Result<(Arc<Mutex<BlobFile>>, u64)> {
        let shared = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::new(Mutex::new(self.part.open()?)),
        };
        let mut file = shared.lock();
        let piece = BLOB_PIECE_BYTES as u64;
        let Range { start, end } = self.part.range;
        let begin = start - start % piece;
        let end = end
            .next_multiple_of(piece)
            .min(self.part.blob.reference().len);
        let until = (begin + READ_IN_BYTES).min(end);
        // All of it is asked for before any of it is waited for, in pieces that the system takes whole; and
        // what comes behind it, which the disk can read while this is sent.
        let ahead = (until + READ_IN_BYTES).min(end);
        for at in (begin..ahead).step_by(READ_IN_STEP_BYTES) {
            file.file()
                .will_need(at, (ahead - at).min(READ_IN_STEP_BYTES as u64));
        }
        let mut bytes = vec![0; BLOB_PIECE_BYTES];
        for at in (begin..until).step_by(BLOB_PIECE_BYTES) {
            let bytes = &mut bytes[..(until - at).min(piece) as usize];
            file.file().read_exact_at(bytes, at)?;
            file.verify(bytes, at).map_err(io::Error::other)?;
        }
        drop(file);
        Ok((shared, until))
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
