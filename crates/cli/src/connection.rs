//! A connection to a server: requests out, replies in, one after the other.
//!
//! Here bytes become values. What a reply means for the session, and when to connect again, is decided in
//! `session`.
//!
//! Invariant: bytes of `input` before `start` belong to replies that were handed out.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use resp::{ReplyScanner, Value, parse_value, write_request};
use sys::signal::Interrupts;
use sys::socket::{Family, Stream};

use crate::failure::{Broken, Failure, Result};
use crate::limits::{KEEPALIVE_S, READ_CHUNK};

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A name or an address, and a port.
    Port(String, u16),
    /// A unix socket.
    Socket(PathBuf),
}

impl std::fmt::Display for Place {
    /// As prompts show it: an address of IPv6 is in brackets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Port(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Place::Port(host, port) => write!(f, "{host}:{port}"),
            Place::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

/// How to connect.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Approach {
    pub(crate) family: Family,
    /// How long an address may take to answer; for as long as the system tries if absent.
    pub(crate) timeout: Option<Duration>,
}

/// See the module.
pub(crate) struct Connection {
    stream: Stream,
    input: Vec<u8>,
    start: usize,
    scanner: ReplyScanner,
    output: Vec<u8>,
}

impl Connection {
    /// Connects; says nothing to the server yet.
    ///
    /// # Errors
    /// In the system's words.
    pub(crate) fn open(place: &Place, approach: Approach) -> io::Result<Connection> {
        let stream = match place {
            Place::Port(host, port) => {
                Stream::connect_tcp(host, *port, approach.family, approach.timeout)?
            }
            Place::Socket(path) => Stream::connect_unix(path)?,
        };
        stream.set_keepalive(KEEPALIVE_S)?;
        Ok(Connection::resume(stream, Vec::new()))
    }

    /// A handle of the same connection for a thread that writes bytes of its own.
    pub(crate) fn writer(&self) -> io::Result<Stream> {
        self.stream.try_clone()
    }

    /// A connection on which something else was said before, with what has come since.
    pub(crate) fn resume(stream: Stream, input: Vec<u8>) -> Connection {
        Connection {
            stream,
            input,
            start: 0,
            scanner: ReplyScanner::default(),
            output: Vec::new(),
        }
    }

    /// The connection's bytes, for something that is no protocol of requests and replies: those that have
    /// come already, then the others.
    pub(crate) fn into_bytes(mut self) -> (Vec<u8>, Stream) {
        self.input.drain(..self.start);
        (self.input, self.stream)
    }

    /// Whether the server has hung up, as far as is known. Only between requests.
    pub(crate) fn is_ended(&self) -> bool {
        self.start == self.input.len() && self.stream.is_ended()
    }

    /// Adds a request to those that [`Connection::flush`] sends.
    pub(crate) fn queue<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
        write_request(&mut self.output, &words);
    }

    /// Sends what was queued.
    pub(crate) fn flush(&mut self) -> std::result::Result<(), Broken> {
        let sent = (&self.stream).write_all(&self.output);
        self.output.clear();
        sent.map_err(Broken::Io)
    }

    /// The next value that the server sends, be it a reply or a push message. Waits for it; a Ctrl-C that
    /// `interrupts` hears ends the wait.
    pub(crate) fn read(&mut self, interrupts: Option<&Interrupts>) -> Result<Value> {
        loop {
            if let Some(value) = self.take()? {
                return Ok(value);
            }
            if let Some(interrupts) = interrupts {
                let ready = self.stream.wait(Some(interrupts.as_fd()), None);
                let ready = ready.map_err(Broken::Io)?;
                if ready.other && interrupts.take() {
                    return Err(Failure::Interrupted);
                }
                if !ready.stream {
                    continue;
                }
            }
            self.fill()?;
        }
    }

    /// The same, but gives up when nothing came for a while.
    pub(crate) fn read_within(&mut self, limit: Duration) -> Result<Option<Value>> {
        loop {
            if let Some(value) = self.take()? {
                return Ok(Some(value));
            }
            let ready = self.stream.wait(None, Some(limit)).map_err(Broken::Io)?;
            if !ready.stream {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    /// The next value, if all of it has come.
    fn take(&mut self) -> std::result::Result<Option<Value>, Broken> {
        let pending = &self.input[self.start..];
        let Some(len) = self.scanner.scan(pending).map_err(Broken::Protocol)? else {
            return Ok(None);
        };
        let value = parse_value(&pending[..len]).map_err(Broken::Protocol)?;
        let (value, _) = value.expect("the scanner saw its end");
        self.start += len;
        if self.start == self.input.len() {
            self.input.clear();
            self.start = 0;
        }
        Ok(Some(value))
    }

    /// Reads what is there, or waits until something is.
    fn fill(&mut self) -> std::result::Result<(), Broken> {
        // The scanner counts from the beginning of its reply, wherever that is.
        self.input.drain(..self.start);
        self.start = 0;
        let end = self.input.len();
        self.input.resize(end + READ_CHUNK, 0);
        let count = (&self.stream).read(&mut self.input[end..]);
        self.input
            .truncate(end + count.as_ref().copied().unwrap_or(0));
        match count {
            Ok(0) => Err(Broken::Closed),
            Ok(_) => Ok(()),
            Err(error) => Err(Broken::Io(error)),
        }
    }
}
