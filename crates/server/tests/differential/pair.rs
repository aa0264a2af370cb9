//! Two servers side by side: the reference and the subject, with connections in pairs that carry the same
//! bytes.
//!
//! Invariant: a connection is written by a thread of its own, so that neither server can be waiting for us to
//! read while we wait for it to read.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use super::support::{Link, PATIENCE, Proto, Server, Value, encode_request, parse_value};

/// Bytes asked of the socket at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// One connection to one server.
struct Connection {
    stream: TcpStream,
    /// Pieces to write; each becomes a write of its own.
    pieces: Option<Sender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    received: Vec<u8>,
    /// Where in `received` the next reply begins.
    at: usize,
}

impl Connection {
    /// Nothing where the server does not listen any more.
    fn open(addr: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(addr).ok()?;
        stream.set_nodelay(true).expect("a TCP socket");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout above zero");
        let mut output = stream.try_clone().expect("a socket can be duplicated");
        let (pieces, queue) = channel::<Vec<u8>>();
        let writer = std::thread::spawn(move || {
            for piece in queue {
                // A server that has closed the connection is noticed where its reply is missing.
                if output.write_all(&piece).is_err() {
                    return;
                }
            }
        });
        Some(Self {
            stream,
            pieces: Some(pieces),
            writer: Some(writer),
            received: Vec::new(),
            at: 0,
        })
    }

    fn send(&self, piece: Vec<u8>) {
        if let Some(pieces) = &self.pieces {
            // Fails only after the writer has met a closed connection.
            let _ = pieces.send(piece);
        }
    }

    fn read(&mut self) -> Result<Value, Link> {
        loop {
            if let Some((value, length)) =
                parse_value(&self.received[self.at..]).map_err(Link::Broken)?
            {
                self.at += length;
                return Ok(value);
            }
            self.received.drain(..self.at);
            self.at = 0;
            let held = self.received.len();
            self.received.resize(held + CHUNK_BYTES, 0);
            let count = self.stream.read(&mut self.received[held..]);
            self.received
                .truncate(held + count.as_ref().map_or(0, |&count| count));
            match count {
                Ok(0) => return Err(Link::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    return Err(Link::TimedOut);
                }
                Err(_) => return Err(Link::Closed),
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A writer that is stuck in a write ends with the connection; one that has no work, with its queue.
        let _ = self.stream.shutdown(Shutdown::Both);
        self.pieces = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// One connection to each server.
pub(crate) struct Pair {
    reference: Connection,
    subject: Connection,
}

impl Pair {
    /// Connects to both and agrees on the protocol. Nothing where the subject is no longer there, or refuses.
    pub(crate) fn open(reference: &Server, subject: &Server, proto: Proto) -> Option<Self> {
        let mut pair = Self {
            reference: Connection::open(reference.addr()).expect("redis-server listens"),
            subject: Connection::open(subject.addr())?,
        };
        let (_, subject) = pair.ask(&["HELLO", &proto.number().to_string()])?;
        (!matches!(subject, Value::Error(_))).then_some(pair)
    }

    /// Sends the same bytes to both, cut into pieces at the same places.
    pub(crate) fn send(&self, bytes: &[u8], cuts: &[usize]) {
        let mut rest = bytes;
        let mut pieces = Vec::new();
        for window in std::iter::once(&0)
            .chain(cuts)
            .collect::<Vec<_>>()
            .windows(2)
        {
            let (piece, after) = rest.split_at(window[1] - window[0]);
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
            self.reference.send(piece.to_vec());
            self.subject.send(piece.to_vec());
        }
    }

    /// The next reply of the reference. It must come.
    pub(crate) fn read_reference(&mut self) -> Value {
        self.reference
            .read()
            .unwrap_or_else(|link| panic!("redis-server: {link}"))
    }

    /// The next reply of the subject.
    pub(crate) fn read_subject(&mut self) -> Result<Value, Link> {
        self.subject.read()
    }

    /// One request to the reference (side 0) or the subject (side 1), and its reply.
    pub(crate) fn ask_side(&mut self, side: usize, words: &[Vec<u8>]) -> Result<Value, Link> {
        let connection = match side {
            0 => &mut self.reference,
            _ => &mut self.subject,
        };
        connection.send(encode_request(words));
        connection.read()
    }

    /// One request to both and both replies, or none where the subject does not answer.
    pub(crate) fn ask<T: AsRef<[u8]>>(&mut self, words: &[T]) -> Option<(Value, Value)> {
        self.send(&encode_request(words), &[]);
        let reference = self.read_reference();
        self.read_subject().ok().map(|subject| (reference, subject))
    }
}
