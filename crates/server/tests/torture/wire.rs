//! A connection whose replies are read by a thread of its own: at once, or, on a *lazy* one, only while
//! somebody asks for a reply. A lazy one writes all that may be unanswered before it reads any of the
//! answers.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::{PATIENCE, Value, parse_value};
use crate::torture::script::Request;

/// Unix time in milliseconds, as the server has it.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// A reply, and when it was received: in the order of all connections, and in Unix ms.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) value: Value,
    pub(crate) stamp: u64,
    pub(crate) at_ms: u64,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    Closed,
    TimedOut,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn try_clone(&self) -> std::io::Result<Stream> {
        Ok(match self {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        })
    }

    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(bytes),
            Stream::Unix(stream) => stream.read(bytes),
        }
    }

    fn close(&self) {
        // It may be closed already.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

/// Whether replies may be read now.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, is_closed: bool) {
        *self.is_closed.lock().expect("nobody panics with it") = is_closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let is_closed = self.is_closed.lock().expect("nobody panics with it");
        let passed = self.opened.wait_while(is_closed, |is_closed| *is_closed);
        drop(passed.expect("nobody panics with it"));
    }
}

/// See the module.
pub(crate) struct Connection {
    stream: Stream,
    gate: Arc<Gate>,
    is_lazy: bool,
    replies: Receiver<Reply>,
    clock: Arc<AtomicU64>,
}

impl Connection {
    /// Connects over TCP. `clock` orders what is sent and received by all connections.
    ///
    /// # Errors
    /// Those of the connection attempt.
    pub(crate) fn tcp(addr: SocketAddr, clock: &Arc<AtomicU64>) -> std::io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Connection::new(Stream::Tcp(stream), clock)
    }

    /// Connects to a unix socket.
    ///
    /// # Errors
    /// Those of the connection attempt.
    pub(crate) fn unix(path: &Path, clock: &Arc<AtomicU64>) -> std::io::Result<Connection> {
        let stream = UnixStream::connect(path)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Connection::new(Stream::Unix(stream), clock)
    }

    fn new(stream: Stream, clock: &Arc<AtomicU64>) -> std::io::Result<Connection> {
        let (sender, replies) = channel();
        let (mut reading, ticks) = (stream.try_clone()?, clock.clone());
        let gate = Arc::new(Gate::default());
        let gate_of_thread = gate.clone();
        thread::spawn(move || {
            let (mut pending, mut chunk) = (Vec::new(), vec![0; 64 * 1024]);
            loop {
                gate_of_thread.pass();
                let Ok(count @ 1..) = reading.read(&mut chunk) else {
                    return;
                };
                pending.extend_from_slice(&chunk[..count]);
                let mut used = 0;
                while let Some((value, len)) = next(&pending[used..]) {
                    let reply = Reply {
                        value,
                        stamp: ticks.fetch_add(1, Ordering::SeqCst),
                        at_ms: now_ms(),
                    };
                    used += len;
                    if sender.send(reply).is_err() {
                        return;
                    }
                }
                pending.drain(..used);
            }
        });
        Ok(Connection {
            stream,
            gate,
            is_lazy: false,
            replies,
            clock: clock.clone(),
        })
    }

    /// Reads replies from now on only while somebody asks for one.
    pub(crate) fn be_lazy(&mut self) {
        self.is_lazy = true;
    }

    /// Sends bytes. When, in the order of all connections. What cannot be sent shows as a closed connection.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> u64 {
        let stamp = self.clock.fetch_add(1, Ordering::SeqCst);
        self.gate.set(self.is_lazy);
        let sent = match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
        };
        if sent.is_err() {
            self.close();
        }
        stamp
    }

    /// The next reply. An answer that is no reply closes the connection.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn receive(&mut self, wait: Duration) -> Result<Reply, Silence> {
        self.gate.set(false);
        self.replies
            .recv_timeout(wait)
            .map_err(|error| match error {
                RecvTimeoutError::Disconnected => Silence::Closed,
                RecvTimeoutError::Timeout => Silence::TimedOut,
            })
    }

    /// Sends a request of words and waits for its reply.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn ask(&mut self, words: &str, wait: Duration) -> Result<Value, Silence> {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.send_bytes(&crate::support::encode_request(&words));
        self.receive(wait).map(|reply| reply.value)
    }

    /// Ends what is sent; replies still come.
    pub(crate) fn finish(&mut self) {
        // It may be closed already.
        let _ = match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    /// Closes the connection at once.
    pub(crate) fn close(&mut self) {
        self.stream.close();
        self.gate.set(false);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

/// A request as the protocol writes it.
pub(crate) fn encode(request: &Request) -> Vec<u8> {
    let args: Vec<Vec<u8>> = request
        .iter()
        .map(crate::torture::script::Arg::bytes)
        .collect();
    crate::support::encode_request(&args)
}

/// The first reply in `bytes`. What is none is printed, and shows as a reply that never comes.
fn next(bytes: &[u8]) -> Option<(Value, usize)> {
    parse_value(bytes).unwrap_or_else(|problem| {
        eprintln!("not a reply: {problem}");
        None
    })
}
