//! A small blocking client: one socket, typed replies, every wait bounded.
//!
//! It tracks the protocol it negotiated, and treats a reply that belongs to the other protocol as an error.
//! It knows no golden scripts.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::value::{Proto, Value, parse_value};

/// How long anything may take before the test gives up: the one limit of all waits of these tests. A test
/// that passes never waits for it to end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// What became of a wait for a reply.
#[derive(Debug)]
pub(crate) enum Link {
    /// The server closed the connection before a complete reply arrived.
    Closed,
    /// Nothing complete arrived within the wait.
    TimedOut,
    /// The bytes that arrived are not a reply; the text says why.
    Broken(String),
}

impl std::fmt::Display for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Link::Closed => write!(f, "the server closed the connection"),
            Link::TimedOut => write!(f, "no reply within the wait"),
            Link::Broken(why) => write!(f, "not a valid reply: {why}"),
        }
    }
}

/// A request as the protocol writes it: an array of bulk strings.
pub(crate) fn encode_request<T: AsRef<[u8]>>(args: &[T]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// Bytes of a reply from which on more of it is gathered before it is decoded again, as long as no pause
/// between two parts is longer than this.
const LARGE_REPLY: usize = 1 << 20;
const GATHERING: Duration = Duration::from_millis(20);

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// One connection to a server.
pub(crate) struct Client {
    stream: Stream,
    /// Bytes received and not yet decoded.
    pending: Vec<u8>,
    /// Bytes at the beginning of `pending` that were read. They are dropped when they are half of it, because
    /// to drop a few of many megabytes for each reply takes minutes.
    done: usize,
    proto: Proto,
}

impl Client {
    /// Connects over TCP with `TCP_NODELAY`; the connection speaks RESP2 until `HELLO` says otherwise.
    ///
    /// # Errors
    /// Those of the connection attempt.
    pub(crate) fn connect(addr: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: Stream::Tcp(stream),
            pending: Vec::new(),
            done: 0,
            proto: Proto::Resp2,
        })
    }

    /// Connects to a unix socket.
    ///
    /// # Errors
    /// Those of the connection attempt.
    pub(crate) fn connect_unix(path: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: Stream::Unix(stream),
            pending: Vec::new(),
            done: 0,
            proto: Proto::Resp2,
        })
    }

    /// The protocol that the last successful `HELLO` or `RESET` of [`Client::call`] left this connection in.
    pub(crate) fn proto(&self) -> Proto {
        self.proto
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// Those of the socket.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
        }
    }

    /// Sends one request and does not wait for its reply.
    ///
    /// # Errors
    /// Those of the socket.
    pub(crate) fn send<T: AsRef<[u8]>>(&mut self, args: &[T]) -> std::io::Result<()> {
        self.send_bytes(&encode_request(args))
    }

    /// Sends one request and waits for its reply.
    ///
    /// # Errors
    /// The connection was closed, the wait ended, or the reply cannot be decoded.
    pub(crate) fn call<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Result<Value, Link> {
        // A server that closed the connection may make the write fail, or only the read behind it.
        if self.send(args).is_err() {
            return Err(Link::Closed);
        }
        let before = self.proto;
        self.proto = self.proto_after(args);
        let reply = self.read(PATIENCE);
        if !matches!(
            reply,
            Ok(Value::Map(_) | Value::Array(_) | Value::Simple(_))
        ) {
            self.proto = before;
        }
        reply
    }

    /// [`Client::call`] for tests that have no use for a failure: a request of words, and a panic that names
    /// it.
    pub(crate) fn ask(&mut self, words: &str) -> Value {
        let args: Vec<&str> = words.split_whitespace().collect();
        self.call(&args)
            .unwrap_or_else(|link| panic!("{words}: {link}"))
    }

    /// The next reply or push message.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub(crate) fn read(&mut self, wait: Duration) -> Result<Value, Link> {
        loop {
            if let Some((value, length)) = parse_value(self.unread()).map_err(Link::Broken)? {
                self.drop_read(length);
                self.check_proto(&value)?;
                return Ok(value);
            }
            let tried = self.unread().len();
            self.fill(wait)?;
            // A large reply is decoded from its beginning each time: rather when there is much more of it.
            while tried > LARGE_REPLY && self.unread().len() < 2 * tried {
                if self.fill(GATHERING).is_err() {
                    break;
                }
            }
        }
    }

    fn unread(&self) -> &[u8] {
        &self.pending[self.done..]
    }

    fn drop_read(&mut self, count: usize) {
        self.done += count;
        if 2 * self.done >= self.pending.len() {
            self.pending.drain(..self.done);
            self.done = 0;
        }
    }

    /// Exactly `count` bytes; fewer where the connection closes or the wait ends before.
    pub(crate) fn read_bytes(&mut self, count: usize, wait: Duration) -> Vec<u8> {
        while self.unread().len() < count && self.fill(wait).is_ok() {}
        let count = count.min(self.unread().len());
        let bytes = self.unread()[..count].to_vec();
        self.drop_read(count);
        bytes
    }

    fn take_unread(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.pending);
        bytes.drain(..std::mem::take(&mut self.done));
        bytes
    }

    /// Everything until the connection closes (true) or is silent for `wait` (false).
    pub(crate) fn read_until_quiet(&mut self, wait: Duration) -> (Vec<u8>, bool) {
        loop {
            match self.fill(wait) {
                Ok(()) => {}
                Err(link) => {
                    return (self.take_unread(), matches!(link, Link::Closed));
                }
            }
        }
    }

    /// True once the server has closed the connection and no byte is left unread.
    pub(crate) fn is_closed(&mut self, wait: Duration) -> bool {
        self.unread().is_empty() && matches!(self.fill(wait), Err(Link::Closed))
    }

    /// Bounds what the system receives ahead of the reader: otherwise a large reply may be with the client
    /// before it reads any of it.
    pub(crate) fn receive_little_ahead(&self) {
        let done = match &self.stream {
            Stream::Tcp(stream) => set_socket_recv_buffer_size(stream, 64 << 10),
            Stream::Unix(stream) => set_socket_recv_buffer_size(stream, 64 << 10),
        };
        done.expect("a socket has a buffer");
    }

    /// Tells the server that nothing more will be sent.
    pub(crate) fn finish_sending(&self) {
        // A connection that is gone already needs no word that nothing follows.
        let _ = match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    /// Bounds how long one write may block.
    pub(crate) fn set_write_patience(&self, wait: Duration) {
        let done = match &self.stream {
            Stream::Tcp(stream) => stream.set_write_timeout(Some(wait)),
            Stream::Unix(stream) => stream.set_write_timeout(Some(wait)),
        };
        done.expect("a timeout above zero is accepted on any socket");
    }

    /// Receives once.
    fn fill(&mut self, wait: Duration) -> Result<(), Link> {
        let mut chunk = [0; 64 * 1024];
        let received = match &mut self.stream {
            Stream::Tcp(stream) => {
                stream
                    .set_read_timeout(Some(wait))
                    .expect("a timeout above zero");
                stream.read(&mut chunk)
            }
            Stream::Unix(stream) => {
                stream
                    .set_read_timeout(Some(wait))
                    .expect("a timeout above zero");
                stream.read(&mut chunk)
            }
        };
        match received {
            Ok(0) => Err(Link::Closed),
            Ok(count) => {
                self.pending.extend_from_slice(&chunk[..count]);
                Ok(())
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Err(Link::TimedOut),
                ErrorKind::Interrupted => Ok(()),
                _ => Err(Link::Closed),
            },
        }
    }

    /// The protocol the connection will speak if this request succeeds.
    fn proto_after<T: AsRef<[u8]>>(&self, args: &[T]) -> Proto {
        let word = |index: usize| {
            args.get(index)
                .map_or(&b""[..], |arg| arg.as_ref())
                .to_ascii_uppercase()
        };
        match (&word(0)[..], &word(1)[..]) {
            (b"HELLO", b"2") | (b"RESET", _) => Proto::Resp2,
            (b"HELLO", b"3") => Proto::Resp3,
            _ => self.proto,
        }
    }

    fn check_proto(&self, reply: &Value) -> Result<(), Link> {
        match self.proto {
            Proto::Resp2 if reply.is_resp3_only() => Err(Link::Broken(format!(
                "RESP3 type on a RESP2 connection: {reply:?}"
            ))),
            Proto::Resp3 if reply.is_resp2_only() => Err(Link::Broken(format!(
                "RESP2 null on a RESP3 connection: {reply:?}"
            ))),
            _ => Ok(()),
        }
    }
}
