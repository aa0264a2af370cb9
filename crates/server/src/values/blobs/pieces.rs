//! One part of a large value on its way from its file: pieces that a thread reads and a worker sends, the
//! next while the last is sent. What was read is checked before it is handed over: whole pieces of
//! [`BLOB_PIECE_BYTES`], each of which has a checksum in the file.
//!
//! A value is read past the page cache the first few times: to fill pages for it costs several times as much
//! as reading it. What is asked for again and again is read into the page cache, and from there.
//!
//! All that are sent at a time share [`Room`]. The pieces are large while few are, because a disk reads these
//! faster, and the smaller the more there are; who comes when there is no room left, here or within
//! `maxmemory`, is sent from the page cache, without any memory here (`send`). So it does not matter how long
//! somebody takes to read.
//!
//! ```text
//!  spare -- read --> ready -- sending -- sent --> spare ...
//!              \- somebody waits for it: the worker is sent word
//! ```

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ferrite_log::{BLOB_PIECE_BYTES, BlobFile};
use parking_lot::{Mutex, MutexGuard};
use sys::file::{DIRECT_BLOCK, is_cached};
use sys::poller::Poller;
use sys::socket::Socket;

use super::Work;
use super::send::{Opening, Ready, Sent};
use crate::config::Setting;
use crate::limits::{
    READ_IN_BYTES, READ_PAST_TIMES, READ_THREADS, SEND_PIECE_BYTES, SEND_PIECE_LEAST, SEND_PIECES,
    SEND_ROOM_BYTES, SEND_ROOM_PART, SEND_ROOM_SHARE,
};
use crate::request::FilePart;
use crate::shared::clients::Client;
use crate::values::Values;
use crate::values::pool::Job;

/// Bytes that pieces take, of all values that are being sent.
#[derive(Default)]
pub(crate) struct Room {
    taken: AtomicUsize,
}

impl Room {
    /// Takes room for pieces, if there is some. How many bytes each may have.
    fn take(&self, limit: usize) -> Option<usize> {
        let took = self.taken.fetch_update(Relaxed, Relaxed, |taken| {
            size(limit, taken).map(|size| taken + size * SEND_PIECES)
        });
        took.ok().and_then(|taken| size(limit, taken))
    }

    /// What [`Room::take`] would take; 0 if there is nothing left.
    fn wanted(&self, limit: usize) -> usize {
        size(limit, self.taken.load(Relaxed)).unwrap_or(0) * SEND_PIECES
    }

    fn give_back(&self, size: usize) {
        self.taken.fetch_sub(size * SEND_PIECES, Relaxed);
    }
}

/// Bytes of each piece for who comes when so many are taken, with that limit of memory.
fn size(limit: usize, taken: usize) -> Option<usize> {
    let whole = match limit {
        0 => SEND_ROOM_BYTES,
        limit => SEND_ROOM_BYTES.min(limit / SEND_ROOM_SHARE),
    };
    let free = whole.saturating_sub(taken);
    let fair = free / (SEND_PIECES * SEND_ROOM_PART);
    let size = fair.clamp(SEND_PIECE_LEAST, SEND_PIECE_BYTES);
    let size = size - size % BLOB_PIECE_BYTES;
    (size * SEND_PIECES <= free).then_some(size)
}

/// The connection's end of it. Dropping it gives the rest up.
pub(super) struct Pieces {
    shared: Arc<Outgoing>,
    /// The piece that is being sent, and what of it is left.
    sending: Piece,
}

/// Some of a file, in memory.
#[derive(Default)]
struct Piece {
    bytes: Vec<u8>,
    /// What of it is to be sent.
    part: Range<usize>,
}

/// What worker and thread share.
pub(crate) struct Outgoing {
    server: &'static Values,
    client: Arc<Client>,
    /// The number of the wait, by which its connection knows it.
    number: u64,
    part: FilePart,
    /// Bytes of a piece.
    size: usize,
    state: Mutex<State>,
    /// Whoever has taken it reads. None before it is opened.
    file: Mutex<Option<Source>>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Piece>,
    spare: Vec<Vec<u8>>,
    /// Pieces that were made.
    pieces: usize,
    /// Where the next piece begins in the file.
    next: u64,
    /// A thread reads, or will.
    is_running: bool,
    /// Nobody wants it any more.
    is_abandoned: bool,
    /// The connection waits for a piece.
    wants_word: bool,
    /// Why there will be no more.
    failed: Option<Arc<str>>,
}

/// A file, and how it is read.
struct Source {
    file: BlobFile,
    /// By way of the page cache.
    is_kept: bool,
    /// The system was asked to read so far.
    asked_until: u64,
}

/// What the threads do that read past the page cache, or from it. It takes them next to no time: they wait
/// for the disk.
pub(crate) struct Read(Arc<Outgoing>);

impl Job for Read {
    const NAME: &'static str = "read";
    const THREADS: usize = READ_THREADS;

    fn run(self) {
        self.0.read(false);
    }
}

fn limit_of(server: &Values) -> usize {
    server.settings.int(Setting::MaxMemory).unsigned_abs() as usize
}

impl Pieces {
    /// Bytes of memory that the next one takes.
    pub(super) fn memory_wanted(server: &Values) -> usize {
        server.blobs.room.wanted(limit_of(server))
    }

    /// Begins to read a part, if there is room, with one piece after the other. The connection waits for the
    /// first.
    pub(super) fn begin(
        server: &'static Values,
        client: &Arc<Client>,
        part: &FilePart,
    ) -> Option<Pieces> {
        let size = server.blobs.room.take(limit_of(server))?;
        let state = State {
            next: part.range.start,
            wants_word: true,
            ..State::default()
        };
        let shared = Arc::new(Outgoing {
            server,
            client: Arc::clone(client),
            number: server.waits.next(),
            part: part.clone(),
            size,
            state: Mutex::new(state),
            file: Mutex::new(None),
        });
        shared.start(shared.state.lock());
        Some(Pieces {
            shared,
            sending: Piece::default(),
        })
    }

    /// The number of its waits.
    pub(super) fn number(&self) -> u64 {
        self.shared.number
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.shared.size * SEND_PIECES
    }

    /// Whether the first piece is there, or never will be; if that is not known, asks for word of it.
    pub(super) fn opening(&self) -> Opening {
        let mut state = self.shared.state.lock();
        match &state.failed {
            _ if !state.ready.is_empty() => Opening::Goes,
            Some(problem) => Opening::Fails(Arc::clone(problem)),
            None => {
                state.wants_word = true;
                Opening::Later
            }
        }
    }

    /// Sends what the socket takes of one piece, `most` bytes at most.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing now. Anything else is the end of the connection.
    pub(super) fn send(
        &mut self,
        poller: &mut Poller,
        socket: &Socket,
        most: usize,
    ) -> io::Result<Sent> {
        if Range::is_empty(&self.sending.part) && !self.turn_over()? {
            return Ok(Sent::Later);
        }
        let Piece { bytes, part } = &mut self.sending;
        let end = part.end.min(part.start + most);
        let sent = poller.send(socket.as_fd(), &bytes[part.start..end])?;
        part.start += sent;
        if part.start == part.end {
            // The next can be read into it while what is there already is sent.
            self.shared.take_back(std::mem::take(bytes));
        }
        Ok(Sent::Bytes(sent))
    }

    /// Goes on to the next piece; if there is none yet, asks for word of it.
    fn turn_over(&mut self) -> io::Result<bool> {
        let mut state = self.shared.state.lock();
        match state.ready.pop_front() {
            Some(piece) => self.sending = piece,
            None if state.failed.is_some() => {
                return Err(io::Error::other("its file cannot be read"));
            }
            None => {
                state.wants_word = true;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_abandoned = true;
        state.ready.clear();
    }
}

impl Outgoing {
    /// Lets a thread go on, if none does and there is something to read.
    fn start(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.next >= self.part.range.end || std::mem::replace(&mut state.is_running, true) {
            return;
        }
        drop(state);
        self.server.blobs.reading.add([Read(Arc::clone(self))]);
    }

    /// A piece was sent.
    fn take_back(self: &Arc<Self>, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        state.spare.push(bytes);
        self.start(state);
    }

    /// Reads as long as there are pieces to read into. Who `may_keep` gives way to workers, and may take the
    /// time that filling the page cache takes.
    pub(super) fn read(self: Arc<Self>, may_keep: bool) {
        if !self.read_on(may_keep) {
            self.server.blobs.slow.add([Work::Read(self)]);
        }
    }

    /// As [`Outgoing::read`]; false if somebody else has to.
    fn read_on(&self, may_keep: bool) -> bool {
        let mut source = self.file.lock();
        loop {
            let mut state = self.state.lock();
            if state.is_abandoned || state.failed.is_some() || state.next >= self.part.range.end {
                state.is_running = false;
                return true;
            }
            let bytes = match state.spare.pop() {
                Some(bytes) => bytes,
                None if state.pieces < SEND_PIECES => {
                    state.pieces += 1;
                    Vec::new()
                }
                None => {
                    state.is_running = false;
                    return true;
                }
            };
            let from = state.next;
            drop(state);
            let read = match self.opened(&mut source) {
                Ok(source) if source.is_kept && !may_keep => {
                    self.state.lock().spare.push(bytes);
                    return false;
                }
                Ok(source) => self.read_piece(source, bytes, from),
                Err(error) => Err(error),
            };
            match read {
                Ok(piece) => self.hand_over(piece, from),
                Err(error) => {
                    self.fail(&error);
                    return true;
                }
            }
        }
    }

    /// The file, opened if it is not yet.
    fn opened<'a>(&self, source: &'a mut Option<Source>) -> io::Result<&'a mut Source> {
        let source = match source {
            Some(source) => return Ok(source),
            none => none,
        };
        let FilePart { blob, range, .. } = &self.part;
        let file = self.part.open()?;
        // What is there already costs no more than a copy, and is found by those who read past it.
        let middle = range.start + (range.end - range.start) / 2;
        let is_there = |file| is_cached(file, middle..middle + 1) == Some(true);
        let is_kept =
            blob.note_read() >= READ_PAST_TIMES && !file.file().descriptor().is_some_and(is_there);
        Ok(source.insert(Source {
            file,
            is_kept,
            asked_until: 0,
        }))
    }

    /// Reads the piece that begins at `from`, with all of what has a checksum together with it, and checks
    /// that.
    fn read_piece(&self, source: &mut Source, mut bytes: Vec<u8>, from: u64) -> io::Result<Piece> {
        let FilePart { blob, range, .. } = &self.part;
        let skew = from % BLOB_PIECE_BYTES as u64;
        let begin = from - skew;
        let end = range.end.next_multiple_of(BLOB_PIECE_BYTES as u64);
        let left = end.min(blob.reference().len) - begin;
        let wanted = left.min(self.size as u64) as usize;
        let room = wanted.next_multiple_of(DIRECT_BLOCK);
        if bytes.len() < room {
            bytes = vec![0; room];
        }
        if source.is_kept && begin >= source.asked_until {
            let ahead = left.min(READ_IN_BYTES);
            source.file.file().will_need(begin, ahead);
            source.asked_until = begin + ahead;
        }
        let began = sys::clock::ticks();
        let mut done = 0;
        while done < wanted {
            let (rest, at) = (&mut bytes[done..room], begin + done as u64);
            let count = match source.is_kept {
                true => source.file.file().read_at(rest, at)?,
                false => source.file.file().scan_at(rest, at)?,
            };
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            done += count;
        }
        let checked = source.file.verify(&bytes[..wanted], begin);
        checked.map_err(io::Error::other)?;
        let part = skew as usize..wanted.min((range.end - begin) as usize);
        let is_first = from == range.start;
        let reading = &self.server.persistence.reading;
        reading.note_part(part.len(), is_first, began);
        Ok(Piece { bytes, part })
    }

    fn hand_over(&self, piece: Piece, from: u64) {
        let mut state = self.state.lock();
        state.next = from + piece.part.len() as u64;
        if !state.is_abandoned {
            state.ready.push_back(piece);
        }
        self.send_word(&mut state);
    }

    fn fail(&self, error: &io::Error) {
        let problem = self.server.note_unsent(error);
        let mut state = self.state.lock();
        state.failed = Some(problem);
        state.is_running = false;
        self.send_word(&mut state);
    }

    /// Tells the worker, if it waits.
    fn send_word(&self, state: &mut State) {
        if std::mem::take(&mut state.wants_word) {
            let (server, worker) = (self.server, self.client.worker);
            let word = Ready::of(&self.client, self.number);
            server.blobs.ready.send(&server.workers, worker, word);
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.server.blobs.room.give_back(self.size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_shared_and_comes_back() {
        for limit in [0, 1 << 30, 256 << 20, 48 << 20] {
            let room = Room::default();
            let whole = match limit {
                0 => SEND_ROOM_BYTES,
                limit => SEND_ROOM_BYTES.min(limit / SEND_ROOM_SHARE),
            };
            let sizes: Vec<usize> = std::iter::from_fn(|| {
                let wanted = room.wanted(limit);
                let size = room.take(limit);
                assert_eq!(wanted, size.unwrap_or(0) * SEND_PIECES);
                size
            })
            .collect();
            assert!(sizes.is_sorted_by(|one, next| one >= next));
            let is_fit = |&size: &usize| size >= SEND_PIECE_LEAST && size % DIRECT_BLOCK == 0;
            assert!(sizes.iter().all(is_fit));
            let taken = sizes.iter().sum::<usize>() * SEND_PIECES;
            assert!(taken <= whole && whole - taken < SEND_PIECE_LEAST * SEND_PIECES);
            sizes.iter().for_each(|&size| room.give_back(size));
            assert_eq!(room.take(limit), sizes.first().copied());
        }
        assert_eq!(Room::default().take(1 << 20), None);
    }
}
