//! One client of the HTTP port: its input and its unsent output.
//!
//! Invariants:
//! 1. A connection either reads or has something to send, never both: the next request is looked at when the
//!    last answer is gone.
//! 2. At most [`HTTP_HEAD_BYTES`] of a request are kept.
//! 3. It has a deadline at any time, which only a finished request or answer moves: bytes that trickle buy no
//!    time.

use std::io;
use std::sync::Arc;

use sys::poller::{Interest, Poller};
use sys::socket::Socket;

use crate::transport::Transport;

use super::request::{Parsed, Request, parse};
use super::response::{Response, Status};
use crate::limits::{HTTP_ANSWER_MS, HTTP_HEAD_BYTES, HTTP_IDLE_MS, HTTP_REQUEST_MS};

/// See the module.
pub(super) struct Connection {
    pub(super) transport: Transport,
    pub(super) token: u64,
    /// Time at which it is closed at the latest (monotonic, ms).
    pub(super) deadline_ms: u64,
    input: Vec<u8>,
    head: Vec<u8>,
    body: Arc<[u8]>,
    /// Bytes of head and body that are sent.
    sent: usize,
    keeps_open: bool,
    has_ended: bool,
}

/// Input of a connection.
pub(super) enum Said {
    Nothing,
    Request(Request),
    /// It is over.
    End,
}

impl Connection {
    pub(super) fn new(socket: Socket, token: u64, now_ms: u64) -> Connection {
        Connection {
            transport: Transport::plain(socket),
            token,
            deadline_ms: now_ms + HTTP_REQUEST_MS,
            input: Vec::new(),
            head: Vec::new(),
            body: Arc::new([]),
            sent: 0,
            keeps_open: true,
            has_ended: false,
        }
    }

    /// Whether an answer is under way.
    pub(super) fn is_sending(&self) -> bool {
        self.sent < self.head.len() + self.body.len()
    }

    /// Events that it waits for.
    pub(super) fn interest(&self) -> Interest {
        if self.is_sending() {
            Interest::WRITE
        } else {
            Interest::READ
        }
    }

    /// Receives the available bytes.
    pub(super) fn receive(&mut self, poller: &mut Poller, now_ms: u64) -> io::Result<()> {
        let mut bytes = [0; HTTP_HEAD_BYTES];
        let room = &mut bytes[self.input.len()..];
        match self.transport.recv(poller, room) {
            Ok(0) => self.has_ended = true,
            Ok(count) => {
                if self.input.is_empty() {
                    // From its first byte on a request has so long and no longer.
                    self.deadline_ms = self.deadline_ms.min(now_ms + HTTP_REQUEST_MS);
                }
                self.input.extend_from_slice(&room[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Whether another request is here already.
    pub(super) fn has_whole_request(&self) -> bool {
        !self.is_sending() && !self.input.is_empty() && parse(&self.input) != Parsed::Partial
    }

    /// The next request. One that cannot be is answered right here, and is the last.
    pub(super) fn next(&mut self, now_ms: u64) -> Said {
        match parse(&self.input) {
            Parsed::Whole(request, consumed) => {
                self.input.drain(..consumed);
                self.keeps_open = request.keeps_open;
                Said::Request(request)
            }
            _ if self.has_ended => Said::End,
            Parsed::Partial if self.input.len() < HTTP_HEAD_BYTES => Said::Nothing,
            Parsed::Partial => {
                self.refuse(Status::HeadTooLarge, now_ms);
                Said::Nothing
            }
            Parsed::Refused(status) => {
                self.refuse(status, now_ms);
                Said::Nothing
            }
        }
    }

    fn refuse(&mut self, status: Status, now_ms: u64) {
        self.keeps_open = false;
        self.input.clear();
        self.answer(Response::plain(status), false, now_ms);
    }

    /// Takes an answer to send.
    pub(super) fn answer(&mut self, response: Response, without_body: bool, now_ms: u64) {
        self.head = response.head(self.keeps_open).into_bytes();
        self.body = if without_body {
            Arc::new([])
        } else {
            response.body
        };
        self.sent = 0;
        self.deadline_ms = now_ms + HTTP_ANSWER_MS;
    }

    /// Sends as much as the socket takes. Returns whether the connection stays open.
    pub(super) fn send(&mut self, poller: &mut Poller, now_ms: u64) -> io::Result<bool> {
        while self.is_sending() {
            let part = match self.sent.checked_sub(self.head.len()) {
                None => &self.head[self.sent..],
                Some(of_body) => &self.body[of_body..],
            };
            match self.transport.send(poller, part) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        self.head.clear();
        self.body = Arc::new([]);
        self.sent = 0;
        self.deadline_ms = now_ms + HTTP_IDLE_MS;
        Ok(self.keeps_open && !self.has_ended)
    }
}
