//! Sending a part of a large value by pieces in memory: a thread reads one piece from the file while a worker
//! sends the piece before. A piece is checked before it is sent: whole units of [`BLOB_PIECE_BYTES`], each
//! with a checksum in the file.
//!
//! The first few reads of a value bypass the page cache, because filling its pages costs several times as
//! much as reading. Values that are read often are read into the page cache, and from there.
//!
//! All parts that are being sent share [`Room`]. The pieces are large while there are few, because a disk
//! reads these faster, and smaller the more there are. Without room, here or within `maxmemory`, a part is
//! sent from the page cache, without memory here (`send`). So slow receivers do no harm.
//!
//! ```text
//!  spare -- read --> ready -- sending -- sent --> spare ...
//!              \- the connection waits for it: the worker gets a message
//! ```

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ferrite_log::{BLOB_PIECE_BYTES, BlobFile};
use parking_lot::{Mutex, MutexGuard};
use sys::file::{DIRECT_BLOCK, is_cached};
use sys::poller::Poller;

use super::Work;
use super::send::{Opening, Ready, Sent};
use crate::config::Setting;
use crate::limits::{
    READ_IN_BYTES, READ_PAST_TIMES, READ_THREADS, SEND_PIECE_BYTES, SEND_PIECE_LEAST, SEND_PIECES,
    SEND_ROOM_BYTES, SEND_ROOM_PART, SEND_ROOM_SHARE,
};
use crate::request::FilePart;
use crate::shared::clients::Client;
use crate::transport::Transport;
use crate::values::Values;
use crate::values::pool::Job;

/// Bytes of the pieces of all parts that are being sent.
#[derive(Default)]
pub(crate) struct Room {
    taken: AtomicUsize,
}

impl Room {
    /// Takes room for the pieces of a part. Returns the bytes of each; `None` without room.
    fn take(&self, limit: usize) -> Option<usize> {
        let took = self.taken.fetch_update(Relaxed, Relaxed, |taken| {
            size(limit, taken).map(|size| taken + size * SEND_PIECES)
        });
        took.ok().and_then(|taken| size(limit, taken))
    }

    /// Bytes that [`Room::take`] would take; 0 without room.
    fn wanted(&self, limit: usize) -> usize {
        size(limit, self.taken.load(Relaxed)).unwrap_or(0) * SEND_PIECES
    }

    fn give_back(&self, size: usize) {
        self.taken.fetch_sub(size * SEND_PIECES, Relaxed);
    }
}

/// Bytes of each piece, given the limit of memory and the bytes that are taken; `None` without room.
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

/// Connection's side of a part. Dropping it cancels the rest.
pub(super) struct Pieces {
    shared: Arc<Outgoing>,
    /// Piece that is being sent, and the range of it that is left.
    sending: Piece,
}

/// Piece of a file in memory.
#[derive(Default)]
struct Piece {
    bytes: Vec<u8>,
    /// Range to be sent.
    part: Range<usize>,
}

/// State shared by worker and thread.
pub(crate) struct Outgoing {
    server: &'static Values,
    client: Arc<Client>,
    /// Number of the connection's wait.
    number: u64,
    part: FilePart,
    /// Bytes of a piece.
    size: usize,
    state: Mutex<State>,
    /// Locked by the reading thread. `None` before the file is opened.
    file: Mutex<Option<Source>>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Piece>,
    spare: Vec<Vec<u8>>,
    /// Number of pieces allocated.
    pieces: usize,
    /// Offset of the next piece in the file.
    next: u64,
    /// Whether a thread reads, or will.
    is_running: bool,
    /// Whether the rest is cancelled.
    is_abandoned: bool,
    /// Whether the connection waits for a piece.
    wants_word: bool,
    /// Error after which there are no more pieces.
    failed: Option<Arc<str>>,
}

/// File, and the way it is read.
struct Source {
    file: BlobFile,
    /// Whether it is read into the page cache.
    is_kept: bool,
    /// End of the range whose reading ahead was requested.
    asked_until: u64,
}

/// Job of the threads that read past the page cache, or from it. It takes hardly any processor time: they
/// wait for the disk.
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
    /// Bytes of memory that the next part takes.
    pub(super) fn memory_wanted(server: &Values) -> usize {
        server.blobs.room.wanted(limit_of(server))
    }

    /// Begins to read a part a piece at a time, if there is room. The connection waits for the first piece.
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

    /// Number of its wait.
    pub(super) fn number(&self) -> u64 {
        self.shared.number
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.shared.size * SEND_PIECES
    }

    /// State of the first piece. If it is not known yet, a message is requested.
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

    /// Sends at most `most` bytes of one piece, as far as the socket takes them.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing now. After any other error the connection has to be closed.
    pub(super) fn send(
        &mut self,
        poller: &mut Poller,
        transport: &mut Transport,
        most: usize,
    ) -> io::Result<Sent> {
        if Range::is_empty(&self.sending.part) && !self.turn_over()? {
            return Ok(Sent::Later);
        }
        let Piece { bytes, part } = &mut self.sending;
        let end = part.end.min(part.start + most);
        let sent = transport.send(poller, &bytes[part.start..end])?;
        part.start += sent;
        if part.start == part.end {
            // The next piece can be read into it while the ready one is sent.
            self.shared.take_back(std::mem::take(bytes));
        }
        Ok(Sent::Bytes(sent))
    }

    /// Switches to the next piece. If there is none yet, a message is requested.
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
    /// Starts a thread, if none reads and there is something to read.
    fn start(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.next >= self.part.range.end || std::mem::replace(&mut state.is_running, true) {
            return;
        }
        drop(state);
        self.server.blobs.reading.add([Read(Arc::clone(self))]);
    }

    /// Takes back the memory of a sent piece.
    fn take_back(self: &Arc<Self>, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        state.spare.push(bytes);
        self.start(state);
    }

    /// Reads while there are pieces to read into. With `may_keep` the thread has a lower priority than
    /// workers, and may spend the time to fill the page cache.
    pub(super) fn read(self: Arc<Self>, may_keep: bool) {
        if !self.read_on(may_keep) {
            self.server.blobs.slow.add([Work::Read(self)]);
        }
    }

    /// [`Outgoing::read`]; returns false if a thread with `may_keep` has to continue.
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

    /// The file; opens it at the first call.
    fn opened<'a>(&self, source: &'a mut Option<Source>) -> io::Result<&'a mut Source> {
        let source = match source {
            Some(source) => return Ok(source),
            none => none,
        };
        let FilePart { blob, range, .. } = &self.part;
        let file = self.part.open()?;
        // A cached part costs only a copy, and reads past the page cache find it too.
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

    /// Reads and checks the piece at `from`, with all bytes that share its checksums.
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

    /// Sends the worker a message, if the connection waits.
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
