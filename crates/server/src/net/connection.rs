//! One connection: its socket, its incomplete request, and its unsent replies.
//!
//! A connection that waits for nothing owns no buffer: requests are read into its worker's scratch buffer and
//! replies are sent from its worker's output. Only the exceptions live here.

mod ahead;

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ferrite_log::Lsn;
use keyspace::{LargeValue, Lent};
use resp::request::Resume;
use sys::poller::{Interest, Poller};
use sys::socket::Socket;

use crate::command::park::Parked;
use crate::command::session::Session;
use crate::limits::{
    PIECE_BYTES, PIECE_WEIGHT_BYTES, READ_AHEAD_BYTES, SEND_SLICES, SEND_TURN_BYTES, SHARE_BYTES,
    SHARE_LATE_BYTES,
};
use crate::metrics::WorkerStats;
use crate::pubsub::Log;
use crate::request::{Apart, Chunk, FilePart, Output};
use crate::server::Server;
use crate::shared::clients::{Client, status};
use crate::values::blobs::{Before, Ready, Received, Sending, Sent, Upload};
use crate::values::cold::FetchState;

pub(crate) use ahead::Ahead;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Reads requests.
    Open,
    /// Has requests that wait for the end of CLIENT PAUSE.
    Paused,
    /// Waits for what its last request asked for; see [`crate::observe::waits`].
    Parked,
    /// Waits for a command that takes long.
    Working,
    /// Waits for values that its next request needs; see [`crate::values::cold`].
    Fetching,
    /// Has sent more of a large value than could be written, or all of it; see [`crate::values::blobs`].
    Uploading,
    /// Sends the rest, then closes.
    Closing,
}

/// See the module.
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    pub(crate) token: u64,
    pub(crate) session: Session,
    pub(crate) state: State,
    /// Its present or just ended wait.
    pub(crate) parked: Option<Box<Parked>>,
    /// State of reading values for its next request.
    pub(crate) fetch: FetchState,
    /// The large value that it is sending: the next request's.
    pub(crate) upload: Option<Box<Upload>>,
    /// State of receiving the large value of its next request.
    pub(crate) received: Option<Box<Received>>,
    /// The beginning of a request, or requests that may not run yet.
    pub(crate) pending: Vec<u8>,
    /// State of the parser for the request at the front of `pending`.
    pub(crate) resume: Resume,
    /// Bytes `pending` must hold before parsing can go on.
    pub(crate) need: usize,
    /// Bytes of the last request if it was a large one: the next is read into a buffer of that size at once.
    pub(crate) expected: usize,
    /// Input read ahead, after `pending`.
    pub(crate) ahead: Option<Box<Ahead>>,
    /// Whether it is read from though nothing of that can run.
    pub(crate) reads_ahead: bool,
    /// It is in its worker's list of those that have something to run.
    pub(crate) is_listed: bool,
    pub(crate) backlog: Backlog,
    pub(crate) interest: Interest,
    /// The backlog is not sent before everything below this position in the log is durable.
    pub(crate) held: Option<Lsn>,
    /// It was not told which keys have changed, because it has read nothing for long, and has yet to be told
    /// that all have.
    pub(crate) owes_news: bool,
    /// When the backlog went over the soft output limit (Unix, ms).
    pub(crate) over_soft_since: Option<i64>,
    /// Bytes that [`Connection::note_memory`] noted last.
    noted_bytes: usize,
}

impl Connection {
    pub(crate) fn new(socket: Socket, token: u64, session: Session) -> Connection {
        Connection {
            socket,
            token,
            session,
            state: State::Open,
            parked: None,
            fetch: FetchState::default(),
            upload: None,
            received: None,
            pending: Vec::new(),
            resume: Resume::default(),
            need: 0,
            expected: 0,
            ahead: None,
            reads_ahead: false,
            is_listed: false,
            backlog: Backlog::default(),
            interest: Interest::READ,
            held: None,
            owes_news: false,
            over_soft_since: None,
            noted_bytes: 0,
        }
    }

    /// Whether its requests run now: it waits for nothing, and at most `most` bytes of replies are unsent.
    /// Messages to it come before any reply.
    #[inline]
    pub(crate) fn runs(&self, most: usize) -> bool {
        let may_wait = self.held.is_none() && !self.owes_news && self.backlog.weight() <= most;
        self.state == State::Open && (self.backlog.is_empty() || may_wait)
    }

    /// Whether its requests run, or run again: a connection that was stopped at `most` bytes resumes when
    /// half of them are sent.
    pub(crate) fn goes_on(&self, most: usize) -> bool {
        let most = match self.interest.readable {
            true => most,
            false => most / 2,
        };
        self.runs(most)
    }

    /// Whether it does nothing but wait for requests: nothing is to be sent, and nothing is here but the
    /// beginning of a request.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.state == State::Open
            && self.backlog.is_empty()
            && !self.reads_ahead
            && !self.has_more()
    }

    /// Whether something is here that has not run, beside the beginning of a request; or the end of all that
    /// its peer sends.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.ahead.is_some() || (self.need == 0 && !self.pending.is_empty())
    }

    /// Whether its peer has finished sending, and that was found out before all of it could run.
    pub(crate) fn has_ended(&self) -> bool {
        self.ahead.as_ref().is_some_and(|ahead| ahead.ended)
    }

    /// Receives the next input into the front of `buffer`: input read ahead, or from the socket. 0 is the
    /// end.
    #[inline]
    pub(crate) fn receive(&mut self, poller: &mut Poller, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.ahead {
            None => poller.recv(self.socket.as_fd(), buffer),
            ahead => Ok(Ahead::take(ahead, buffer.len(), |bytes| {
                buffer[..bytes.len()].copy_from_slice(bytes);
            })),
        }
    }

    /// Events that the poller reports for a connection whose requests run or do not.
    pub(crate) fn wanted_interest(&self, runs: bool) -> Interest {
        let reads = match runs {
            true => !self.has_more(),
            false => self.reads_ahead && !self.has_ended(),
        };
        // Requests sent before the end of the peer run, except after a wait that may never end.
        let ends = self.waits_for_others();
        Interest {
            readable: reads,
            writable: !self.backlog.is_empty() && self.held.is_none() && !self.backlog.waits(),
            ends,
        }
    }

    /// Whether it is parked until others do something, which may be never.
    pub(crate) fn waits_for_others(&self) -> bool {
        let parked = self.parked.as_ref();
        self.state == State::Parked && parked.is_some_and(|parked| parked.is_for_others())
    }

    pub(crate) fn set_interest(&mut self, interest: Interest) {
        self.interest = interest;
        self.session
            .client
            .set_status(status::READS, interest.readable);
        self.session
            .client
            .set_status(status::WRITES, interest.writable);
    }

    /// Tells CLIENT LIST how much of a request is here.
    pub(crate) fn note_input(&self) {
        let client = &self.session.client;
        client.input_bytes.store(self.pending.len(), Relaxed);
        client
            .input_free
            .store(self.pending.capacity() - self.pending.len(), Relaxed);
    }

    /// The same, with what was read ahead.
    pub(crate) fn note_all_input(&self) {
        let ahead = self.ahead.as_ref().map_or(0, |ahead| ahead.len());
        let bytes = self.pending.len() + ahead;
        self.session.client.input_bytes.store(bytes, Relaxed);
    }

    /// Tells CLIENT LIST how much waits to be sent.
    pub(crate) fn note_output(&self) {
        let client = &self.session.client;
        client.output_bytes.store(self.backlog.len(), Relaxed);
        client
            .output_pieces
            .store(self.backlog.pieces.len(), Relaxed);
    }

    /// Removes the first `count` bytes of `pending`, and the room that a large request needed with it.
    pub(crate) fn consume(&mut self, count: usize) {
        self.pending.drain(..count);
        if self.pending.is_empty() {
            self.pending = Vec::new();
        } else if self.pending.capacity() > READ_AHEAD_BYTES.max(4 * self.pending.len()) {
            self.pending.shrink_to_fit();
        }
    }

    /// Keeps the worker's sum of what its clients take up to date.
    #[inline]
    pub(crate) fn note_memory(&mut self, stats: &WorkerStats) {
        let bytes = self.buffer_bytes();
        if bytes != self.noted_bytes {
            let more = (bytes as u64).wrapping_sub(self.noted_bytes as u64);
            stats.client_bytes.add(more);
            self.noted_bytes = bytes;
            let client = &self.session.client;
            client.memory.store(bytes, Relaxed);
            client.single_memory.store(self.single_bytes(), Relaxed);
        }
    }

    /// Takes what was noted out of the sum, at the end.
    pub(crate) fn forget_memory(&self, stats: &WorkerStats) {
        let bytes = self.noted_bytes as u64;
        stats.client_bytes.add(bytes.wrapping_neg());
    }

    /// Bytes of one request and its replies: an incomplete or waiting request, after which little is read,
    /// and unsent replies. Messages of others belong to no request.
    fn single_bytes(&self) -> usize {
        let is_told = self.session.monitor || self.session.client.has_status(status::PUBSUB);
        let replies = match is_told {
            true => 0,
            false => self.backlog.memory() + self.backlog.file_memory(),
        };
        self.pending.capacity() + replies
    }

    /// Bytes of its buffers, and of what else the server keeps for it.
    pub(crate) fn buffer_bytes(&self) -> usize {
        let deferred = self.session.deferred.as_ref();
        self.session.client.kept.load(Relaxed)
            + self.pending.capacity()
            + self.ahead.as_ref().map_or(0, |ahead| ahead.memory())
            + self.backlog.memory()
            + self.backlog.file_memory()
            + self.upload.as_ref().map_or(0, |upload| upload.memory())
            + self.session.queue_bytes()
            + deferred.map_or(0, |deferred| deferred.memory())
    }

    /// Puts `output[from..until]` and its large values behind what is waiting already.
    pub(crate) fn queue(&mut self, output: &Output, from: usize, until: usize) {
        let large = output.large_in(from, until);
        let mut at = from;
        for pinned in large {
            let before = &output.bytes[at..pinned.at];
            match &pinned.value {
                Apart::Memory(value) => {
                    self.backlog.push_bytes(before);
                    self.backlog.push_lent(value.clone());
                }
                Apart::Own(value) => {
                    self.backlog.push_bytes(before);
                    self.backlog.push_large(value.clone());
                }
                Apart::File(part) => self.backlog.push_file(before, part),
            }
            at = pinned.at;
        }
        self.backlog.push_bytes(&output.bytes[at..until]);
    }

    /// Sends `output[from..until]` and its large values behind what is waiting already; what the socket
    /// doesn't take now waits. Returns the bytes sent.
    pub(crate) fn send(
        &mut self,
        poller: &mut Poller,
        output: &Output,
        from: usize,
        until: usize,
    ) -> io::Result<usize> {
        if output.large_in(from, until).is_empty() && self.backlog.is_empty() {
            // The common case: one call, no bookkeeping.
            let bytes = &output.bytes[from..until];
            let sent = match poller.send(self.socket.as_fd(), bytes) {
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) => return Err(error),
            };
            if sent < bytes.len() {
                self.backlog.push_bytes(&bytes[sent..]);
            }
            return Ok(sent);
        }
        let waited = !self.backlog.is_empty();
        self.queue(output, from, until);
        if waited {
            // The poller will say when there is room.
            return Ok(0);
        }
        self.flush(poller, SEND_TURN_BYTES)
    }

    /// Sends parts of a log behind what is waiting already; what the socket doesn't take now waits. Returns
    /// the bytes sent.
    pub(crate) fn send_parts(
        &mut self,
        poller: &mut Poller,
        log: &mut Log,
        parts: &[Range<usize>],
    ) -> io::Result<usize> {
        if let [part] = parts
            && self.backlog.is_empty()
            && log.large_in(part).is_empty()
        {
            // The common case: one call, no bookkeeping.
            let sent = match poller.send(self.socket.as_fd(), &log.bytes()[part.clone()]) {
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) => return Err(error),
            };
            if sent < part.len() {
                self.backlog.push_part(log, part.start + sent..part.end);
            }
            return Ok(sent);
        }
        let waited = !self.backlog.is_empty();
        for part in parts {
            let mut at = part.start;
            for number in 0..log.large_in(part).len() {
                let pinned = &log.large_in(part)[number];
                let (until, value) = (pinned.at, LargeValue::clone(&pinned.value));
                self.backlog.push_part(log, at..until);
                self.backlog.push_large(value);
                at = until;
            }
            self.backlog.push_part(log, at..part.end);
        }
        if waited {
            // The poller will say when there is room. Until then nothing is sent here: waits for an empty
            // backlog end when the worker gets that event.
            return Ok(0);
        }
        self.flush(poller, SEND_TURN_BYTES)
    }

    /// Sends what is waiting, `most` bytes at most, as far as the socket takes it. Returns the bytes sent.
    pub(crate) fn flush(&mut self, poller: &mut Poller, most: usize) -> io::Result<usize> {
        let mut total = 0;
        while !self.backlog.is_empty() && !self.backlog.waits() && total < most {
            self.backlog.open_file();
            if self.backlog.waits() {
                return Ok(total);
            }
            if self.backlog.begins_with_file() {
                let most = most - total;
                match self.backlog.send_file(poller, &self.socket, most) {
                    Ok(sent) => total += sent,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(total),
                    Err(error) => return Err(error),
                }
                continue;
            }
            let sent = {
                let mut slices = [IoSlice::new(&[]); SEND_SLICES];
                let used = self.backlog.slices(most - total, &mut slices);
                match poller.send_vectored(self.socket.as_fd(), &slices[..used]) {
                    Ok(sent) => sent,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(total),
                    Err(error) => return Err(error),
                }
            };
            self.backlog.consume(sent);
            total += sent;
        }
        Ok(total)
    }
}

/// Replies that the socket did not take yet.
#[derive(Default)]
pub(crate) struct Backlog {
    pieces: VecDeque<Piece>,
    /// Bytes of the first piece that were sent.
    sent: usize,
    bytes: usize,
    /// Of these, bytes of values that are lent.
    lent: usize,
    /// Of these, bytes kept in memory by readers alone, as of the last look.
    kept: usize,
    wait: FileWait,
}

/// Wait of the file at the front of a backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FileWait {
    #[default]
    Nothing,
    /// A thread that is to read, and was not told yet.
    Asks,
    /// A thread that reads: the number of the wait.
    Reads(u64),
}

/// Some bytes to be sent.
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    /// A value that may have no other owner.
    Large(LargeValue),
    /// A value that an entry has, or had.
    Lent(Lent),
    /// A part of a log.
    Part(LargeValue, Range<usize>),
    /// A part of a file; apart, so that the others stay small.
    File(Box<Sending>),
}

impl Piece {
    /// The bytes in memory; of a file none are.
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Piece::Bytes(bytes) => bytes,
            Piece::Large(value) => value,
            Piece::Lent(value) => value,
            Piece::Part(log, part) => &log[part.clone()],
            Piece::File(_) => &[],
        }
    }
}

impl From<Chunk> for Piece {
    fn from(chunk: Chunk) -> Piece {
        match chunk {
            Chunk::Bytes(bytes) => Piece::Bytes(bytes),
            Chunk::Own(value) => Piece::Large(value),
            Chunk::Lent(value) => Piece::Lent(value),
        }
    }
}

impl Backlog {
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes that wait, and some for each piece: one that is in a file has none in memory.
    #[inline]
    pub(crate) fn weight(&self) -> usize {
        self.bytes + self.pieces.len() * PIECE_WEIGHT_BYTES
    }

    /// Bytes that wait in memory, values sent by reference included.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Bytes that it keeps in memory: values that entries have are the keyspace's.
    fn memory(&self) -> usize {
        self.bytes - self.lent + self.kept.min(self.lent)
    }

    /// Looks at whose memory the values are that are sent by reference. Takes a step for each piece.
    pub(crate) fn look_at_lent(&mut self) {
        if self.lent > 0 {
            let lent = self.pieces.iter().map(|piece| match piece {
                Piece::Lent(value) => value.kept_bytes(),
                _ => 0,
            });
            self.kept = lent.sum();
        }
    }

    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes += bytes.len();
        match self.pieces.back_mut() {
            // A piece has an end, because what was sent of it is freed with its last byte.
            Some(Piece::Bytes(last)) if last.len() < PIECE_BYTES => last.extend_from_slice(bytes),
            _ => self.pieces.push_back(Piece::Bytes(bytes.to_vec())),
        }
    }

    /// Appends a piece as it is.
    pub(crate) fn push_piece(&mut self, piece: Piece) {
        let len = piece.as_slice().len();
        self.bytes += len;
        if matches!(piece, Piece::Lent(_)) {
            self.lent += len;
        }
        if len > 0 || matches!(piece, Piece::File(_)) {
            self.pieces.push_back(piece);
        }
    }

    /// Appends bytes and a part of a file, whose header they end with. It waits with the part: it may have to
    /// be an error.
    fn push_file(&mut self, bytes: &[u8], part: &FilePart) {
        let header = format!("${}\r\n", part.len()).into_bytes();
        let rest = bytes.strip_suffix(&header[..]);
        debug_assert!(rest.is_some(), "a part of a file is a bulk string");
        self.push_bytes(rest.unwrap_or(bytes));
        let part = Sending::new(part.clone(), rest.map(|_| header));
        self.pieces.push_back(Piece::File(Box::new(part)));
    }

    /// Sees to what has to go before the file at the front.
    fn open_file(&mut self) {
        let Some(Piece::File(part)) = self.pieces.front_mut() else {
            return;
        };
        match part.before() {
            Before::Nothing => {}
            Before::Later => self.wait = FileWait::Asks,
            Before::Header(header) => {
                self.bytes += header.len();
                self.pieces.push_front(Piece::Bytes(header));
            }
            Before::Error(line) => {
                // The end of the line is the one that comes behind the value.
                self.bytes += line.len();
                self.pieces[0] = Piece::Bytes(line);
            }
        }
    }

    pub(crate) fn begins_with_file(&self) -> bool {
        matches!(self.pieces.front(), Some(Piece::File(_)))
    }

    /// Whether nothing is sent before a thread has read.
    pub(crate) fn waits(&self) -> bool {
        self.wait != FileWait::Nothing
    }

    /// Sends from the file that is the next piece. Returns the bytes sent.
    fn send_file(
        &mut self,
        poller: &mut Poller,
        socket: &Socket,
        most: usize,
    ) -> io::Result<usize> {
        let Some(Piece::File(part)) = self.pieces.front_mut() else {
            return Ok(0);
        };
        match part.send(poller, socket, most)? {
            Sent::Bytes(count) => {
                if part.is_over() {
                    self.pieces.pop_front();
                    if self.pieces.is_empty() {
                        self.pieces = VecDeque::new();
                    }
                }
                Ok(count)
            }
            Sent::Later => {
                self.wait = FileWait::Asks;
                Ok(0)
            }
        }
    }

    /// Bytes of memory that [`Backlog::ask`] takes if it may.
    pub(crate) fn memory_wanted(&self, server: &Server) -> usize {
        match self.pieces.front() {
            Some(Piece::File(part)) if self.wait == FileWait::Asks => part.memory_wanted(server),
            _ => 0,
        }
    }

    /// Lets a thread read, if that is what the next piece waits for. Into memory only if it may take some.
    pub(crate) fn ask(&mut self, server: &'static Server, client: &Arc<Client>, may_take: bool) {
        if self.wait == FileWait::Asks
            && let Some(Piece::File(part)) = self.pieces.front_mut()
        {
            self.wait = FileWait::Reads(part.ask(server, client, may_take));
        }
    }

    /// A thread has read. Whether that is what the file at the front waits for.
    pub(crate) fn end_wait(&mut self, ready: &Ready) -> bool {
        let FileWait::Reads(number) = self.wait else {
            return false;
        };
        let is_it = match self.pieces.front_mut() {
            Some(Piece::File(part)) => part.note(ready, number),
            _ => false,
        };
        if is_it {
            self.wait = FileWait::Nothing;
        }
        is_it
    }

    /// Bytes of memory that the file at the front takes.
    fn file_memory(&self) -> usize {
        match self.pieces.front() {
            Some(Piece::File(part)) => part.memory(),
            _ => 0,
        }
    }

    fn push_lent(&mut self, value: LargeValue) {
        self.push_piece(Piece::Lent(Lent::new(value)));
    }

    fn push_large(&mut self, value: LargeValue) {
        self.bytes += value.len();
        self.pieces.push_back(Piece::Large(value));
    }

    /// Appends a part of a log: by reference where that is worth it.
    fn push_part(&mut self, log: &mut Log, part: Range<usize>) {
        // A client with much unread output will not read this soon.
        let least = if self.bytes < PIECE_BYTES {
            SHARE_BYTES
        } else {
            SHARE_LATE_BYTES
        };
        if part.len() < least {
            return self.push_bytes(&log.bytes()[part]);
        }
        self.bytes += part.len();
        let log = LargeValue::clone(log.share());
        self.pieces.push_back(Piece::Part(log, part));
    }

    /// The first bytes that wait, `most` of them at most. Returns how many slices they are.
    fn slices<'a>(&'a self, most: usize, slices: &mut [IoSlice<'a>]) -> usize {
        let mut used = 0;
        let mut left = most;
        let in_memory = |piece: &&Piece| !matches!(piece, Piece::File(_));
        for (slice, piece) in slices
            .iter_mut()
            .zip(self.pieces.iter().take_while(in_memory))
        {
            let skip = if used == 0 { self.sent } else { 0 };
            let bytes = &piece.as_slice()[skip..];
            *slice = IoSlice::new(&bytes[..bytes.len().min(left)]);
            used += 1;
            left = left.saturating_sub(bytes.len());
            if left == 0 {
                break;
            }
        }
        used
    }

    fn consume(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(first) = self.pieces.front() {
            if count == 0 && matches!(first, Piece::File(_)) {
                return;
            }
            let left = first.as_slice().len() - self.sent;
            let taken = count.min(left);
            if matches!(first, Piece::Lent(_)) {
                self.lent -= taken;
            }
            if count < left {
                self.sent += count;
                return;
            }
            count -= left;
            self.sent = 0;
            self.pieces.pop_front();
        }
        self.pieces = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_backlog_gives_out_its_bytes_in_order_however_they_are_taken() {
        for (step, most) in [(1, 100), (2, 1), (3, 4), (5, 7), (100, 100), (100, 3)] {
            let mut backlog = Backlog::default();
            backlog.push_bytes(b"one");
            backlog.push_bytes(b"two");
            backlog.push_large(Arc::new(b"LARGE".to_vec().into()));
            backlog.push_bytes(b"");
            backlog.push_large(Arc::new(b"x".to_vec().into()));
            backlog.push_bytes(b"end");
            let mut seen = Vec::new();
            while !backlog.is_empty() {
                let mut slices = [IoSlice::new(&[]); 2];
                let used = backlog.slices(most, &mut slices);
                let all: Vec<u8> = slices[..used]
                    .iter()
                    .flat_map(|slice| slice.iter().copied())
                    .collect();
                assert!(!all.is_empty() && all.len() <= most);
                let taken = step.min(all.len());
                seen.extend_from_slice(&all[..taken]);
                backlog.consume(taken);
            }
            assert_eq!(seen, b"onetwoLARGExend");
            assert_eq!(backlog.len(), 0);
        }
    }

    #[test]
    fn what_was_sent_is_freed_though_the_backlog_never_runs_empty() {
        let mut backlog = Backlog::default();
        backlog.push_bytes(&[0; 30_000]);
        for _ in 0..1_000 {
            backlog.push_bytes(&[0; 10_000]);
            backlog.consume(10_000);
        }
        assert_eq!(backlog.len(), 30_000);
        let held: usize = backlog
            .pieces
            .iter()
            .map(|piece| piece.as_slice().len())
            .sum();
        assert!(
            held < backlog.len() + 2 * PIECE_BYTES,
            "{held} bytes for {}",
            backlog.len()
        );
    }
}
