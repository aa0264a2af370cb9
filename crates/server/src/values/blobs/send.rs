//! Sending a part of a large value from its file: by pieces in memory ([`super::pieces`]), or, while too many
//! parts are being sent for that, from the page cache to the socket, without a copy in this process.
//!
//! The second way takes no lasting memory, and costs a receiver on the same machine more, because pages that
//! were not used for long are copied slowly. A thread reads [`READ_IN_BYTES`] at a time and checks them; then
//! they are in the page cache and are sent from there.
//!
//! The header of the reply is sent with the first bytes of the value, not before. If these are unreadable or
//! damaged, an error takes its place ([`Opening`]). After a later error the connection has to be closed,
//! because the header has promised the rest.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ferrite_log::{BLOB_PIECE_BYTES, BlobFile};
use keyspace::ColdValue;
use parking_lot::Mutex;
use sys::poller::Poller;

use super::Work;
use super::pieces::Pieces;
use crate::limits::{READ_IN_BYTES, READ_IN_STEP_BYTES};
use crate::persistence::{NOT_THERE, Persistence};
use crate::request::{Failure, FilePart};
use crate::shared::clients::Client;
use crate::transport::Transport;
use crate::values::Values;

/// Part that is being sent, or will be.
pub(crate) struct Sending {
    part: FilePart,
    way: Way,
    /// Header of the reply, until it is sent.
    header: Option<Vec<u8>>,
}

/// State of the first bytes of a part.
pub(super) enum Opening {
    /// They can be sent.
    Goes,
    /// They can't be sent: the error.
    Fails(Arc<str>),
    /// Not known yet.
    Later,
}

/// Bytes to be sent before a part.
pub(crate) enum Before {
    /// All of them are sent.
    Nothing,
    /// Not known before a thread has read.
    Later,
    /// The header of the reply.
    Header(Vec<u8>),
    /// An error instead of header and part, without its end of line.
    Error(Vec<u8>),
}

enum Way {
    Unbegun,
    Pieces(Pieces),
    PageCache(Pages),
    /// The file is unreadable: the error.
    Failed(Arc<str>),
}

/// Part that is sent from the page cache.
#[derive(Default)]
struct Pages {
    /// `None` before it is opened. Locked by a reading thread only.
    file: Option<Arc<Mutex<BlobFile>>>,
    /// Everything before this offset was checked, and was in the page cache then.
    checked_until: u64,
}

/// Result of sending from a file.
pub(crate) enum Sent {
    Bytes(usize),
    /// A thread has to read first.
    Later,
}

/// Message to a waiting connection that it can continue to send.
pub(crate) struct Ready {
    pub(crate) client: Arc<Client>,
    number: u64,
    what: What,
}

enum What {
    /// A piece is ready, or there will be none.
    Piece,
    /// The page cache has the file up to this offset, checked.
    Pages(Arc<Mutex<BlobFile>>, u64),
    Nothing(Arc<str>),
}

/// Part of a file that a thread is to read into the page cache.
pub(crate) struct ReadIn {
    server: &'static Values,
    part: FilePart,
    file: Option<Arc<Mutex<BlobFile>>>,
    client: Arc<Client>,
    number: u64,
}

impl Persistence {
    /// Part of a value with a file of its own. The shard of its entry is locked.
    ///
    /// # Errors
    /// The value has no file.
    pub(crate) fn part_of(&self, value: ColdValue, range: Range<u64>) -> Result<FilePart, Failure> {
        let blob = self.blob_of(value).ok_or(NOT_THERE)?;
        let store = self.blob_store().ok_or(NOT_THERE)?;
        Ok(FilePart { blob, store, range })
    }
}

impl Values {
    /// Counts and logs a large value that can't be sent. Returns the text for the client.
    pub(super) fn note_unsent(&self, error: &io::Error) -> Arc<str> {
        log::error!("a large value cannot be sent: {error}");
        let failures = &self.persistence.reading.failures;
        failures.fetch_add(1, Relaxed);
        let line = format!("IOERR {error}");
        line.replace(['\r', '\n'], " ").into()
    }
}

impl Sending {
    /// A part, and the header of its reply.
    pub(crate) fn new(part: FilePart, header: Option<Vec<u8>>) -> Sending {
        let way = Way::Unbegun;
        Sending { part, way, header }
    }

    /// Bytes to be sent first.
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

    /// Whether all of it is sent.
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

    /// Sends at most `most` bytes, as far as the socket takes them.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing now. After any other error the connection has to be closed, because
    /// the reply can't be completed.
    pub(crate) fn send(
        &mut self,
        poller: &mut Poller,
        transport: &mut Transport,
        most: usize,
    ) -> io::Result<Sent> {
        let sent = match &mut self.way {
            Way::Unbegun => return Ok(Sent::Later),
            Way::Pieces(pieces) => pieces.send(poller, transport, most)?,
            Way::PageCache(pages) => pages.send(&self.part.range, poller, transport, most)?,
            Way::Failed(_) => return Err(io::Error::other("its file cannot be read")),
        };
        if let Sent::Bytes(count) = sent {
            self.part.range.start += count as u64;
        }
        Ok(sent)
    }

    /// Bytes of memory that it takes when it begins, if there is room.
    pub(crate) fn memory_wanted(&self, server: &Values) -> usize {
        match self.way {
            Way::Unbegun => Pieces::memory_wanted(server),
            _ => 0,
        }
    }

    /// Starts a thread that reads the next bytes: into memory if there is room, else into the page cache.
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

    /// Applies a message. Returns false if it is for another wait.
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
        transport: &mut Transport,
        most: usize,
    ) -> io::Result<Sent> {
        // Only a thread that was told to read locks the file, and nothing is sent then.
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
        match transport.send_file(poller, descriptor, at, most)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            sent => Ok(Sent::Bytes(sent)),
        }
    }
}

impl ReadIn {
    /// Reads into the page cache, and sends the worker a message.
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
        // Reading of the whole range is requested first, in steps that the system accepts whole, and of the
        // range behind it, which the disk can read while this one is sent.
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
    /// Message of a piece in memory, or that there will be none.
    pub(super) fn of(client: &Arc<Client>, number: u64) -> Ready {
        Ready {
            client: Arc::clone(client),
            number,
            what: What::Piece,
        }
    }
}
