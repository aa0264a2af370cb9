//! One connection: its socket, its incomplete request, and its unsent replies.
//!
//! A connection that waits for nothing owns no buffer: requests are read into its worker's scratch buffer and
//! replies are sent from its worker's output. Only the exceptions live here.

mod ahead;
mod backlog;

use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use ferrite_log::Lsn;
use keyspace::LargeValue;
use resp::request::Resume;
use sys::poller::{Interest, Poller};
use sys::socket::Socket;

use crate::command::park::Parked;
use crate::command::session::Session;
use crate::limits::{READ_AHEAD_BYTES, SEND_SLICES, SEND_TURN_BYTES};
use crate::metrics::WorkerStats;
use crate::pubsub::Log;
use crate::request::{Apart, Output};
use crate::shared::clients::{self, status};
use crate::transport::Transport;
use crate::values::blobs::{Received, Upload};
use crate::values::cold::FetchState;

pub(crate) use ahead::Ahead;
pub(crate) use backlog::Backlog;

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
    pub(crate) transport: Transport,
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
            transport: Transport::plain(socket),
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
            None => self.transport.recv(poller, buffer),
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
        client.output_pieces.store(self.backlog.pieces(), Relaxed);
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
    /// what a deferred command keeps, and unsent replies. Messages of others belong to no request.
    fn single_bytes(&self) -> usize {
        let is_told = self.session.monitor || self.session.client.has_status(status::PUBSUB);
        let replies = match is_told {
            true => 0,
            false => self.backlog.memory() + self.backlog.file_memory(),
        };
        let deferred = self.session.deferred.as_ref();
        self.pending.capacity() + deferred.map_or(0, |deferred| deferred.memory()) + replies
    }

    /// Bytes of its buffers, and of what else the server keeps for it.
    #[inline]
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
    #[inline]
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
            let sent = match self.transport.send(poller, bytes) {
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

    /// Counts bytes that were sent, for INFO and for CLIENT LIST.
    #[inline]
    pub(crate) fn note_sent(&self, stats: &WorkerStats, bytes: usize) {
        stats.note_write(bytes);
        clients::count(&self.session.client.sent, bytes);
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
            let sent = match self.transport.send(poller, &log.bytes()[part.clone()]) {
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
                match self.backlog.send_file(poller, &mut self.transport, most) {
                    Ok(sent) => total += sent,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(total),
                    Err(error) => return Err(error),
                }
                continue;
            }
            let sent = {
                let mut slices = [IoSlice::new(&[]); SEND_SLICES];
                let used = self.backlog.slices(most - total, &mut slices);
                match self.transport.send_vectored(poller, &slices[..used]) {
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
