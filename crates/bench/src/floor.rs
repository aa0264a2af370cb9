//! The floor: a server that neither understands nor keeps anything. What it costs is what the system
//! charges for moving the bytes, so it is the limit that a real server is held against.
//!
//! It counts the `*` in what it reads, one per request of a load whose keys and values hold none, and
//! sends as many replies: `+OK`, or a bulk string of a given size. One thread, one receive and one send
//! per batch, no memory per request.

use crate::limits::READ_BYTES;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use sys::{Backend, Event, Interest, Listener, Poller, Socket};

/// Tokens of the listeners; connections have their index.
const TCP: u64 = u64::MAX;
const UNIX: u64 = u64::MAX - 1;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4_096;

/// What the floor is asked to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Floor {
    /// 127.0.0.1 and this port.
    pub(crate) port: Option<u16>,
    /// A socket file.
    pub(crate) socket: Option<PathBuf>,
    /// Answers with a bulk string of so many bytes instead of `+OK`.
    pub(crate) reply_bytes: Option<u64>,
}

/// A connection: replies that it is owed, in bytes.
#[derive(Debug)]
struct Peer {
    socket: Socket,
    owed: u64,
    /// Where in the pattern of replies the next byte is.
    at: usize,
    is_blocked: bool,
}

struct Server {
    poller: Poller,
    listeners: Vec<(u64, Listener)>,
    peers: Vec<Option<Peer>>,
    free: Vec<usize>,
    /// Replies, one behind the other.
    pattern: Vec<u8>,
    reply_len: u64,
    input: Vec<u8>,
}

/// Serves until the process is ended.
///
/// # Errors
/// It cannot listen there.
pub(crate) fn serve(floor: &Floor) -> Result<(), String> {
    let mut server = Server::new(floor).map_err(|error| format!("floor: {error}"))?;
    let mut events = Vec::new();
    loop {
        let waited = server.poller.wait(&mut events, None);
        waited.map_err(|error| format!("floor: {error}"))?;
        for event in &events {
            server.handle(*event);
        }
    }
}

impl Server {
    fn new(floor: &Floor) -> io::Result<Server> {
        let mut poller = Poller::new(Backend::Auto)?;
        let mut listeners = Vec::new();
        if let Some(port) = floor.port {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            listeners.push((TCP, Listener::tcp(address, BACKLOG)?));
        }
        if let Some(path) = &floor.socket {
            listeners.push((UNIX, Listener::unix(path, None, BACKLOG)?));
        }
        for (token, listener) in &listeners {
            poller.add(listener.as_fd(), *token, Interest::READ)?;
        }
        let reply = reply(floor.reply_bytes);
        Ok(Server {
            poller,
            listeners,
            peers: Vec::new(),
            free: Vec::new(),
            pattern: reply.repeat((1 << 20) / reply.len() + 2),
            reply_len: reply.len() as u64,
            input: vec![0; READ_BYTES],
        })
    }

    fn handle(&mut self, event: Event) {
        if event.token >= UNIX {
            self.accept(event.token);
            return;
        }
        let index = event.token as usize;
        // A peer that is gone is all that can go wrong with it.
        if self.exchange(index, event).is_err() {
            self.close(index);
        }
    }

    fn accept(&mut self, token: u64) {
        let listeners = self.listeners.iter();
        for (_, listener) in listeners.filter(|(own, _)| *own == token) {
            while let Ok(Some(socket)) = listener.accept() {
                let index = self.free.pop().unwrap_or(self.peers.len());
                if index == self.peers.len() {
                    self.peers.push(None);
                }
                let is_ready = socket.set_nodelay(true).is_ok()
                    && self
                        .poller
                        .add(socket.as_fd(), index as u64, Interest::READ)
                        .is_ok();
                if !is_ready {
                    self.free.push(index);
                    continue;
                }
                self.peers[index] = Some(Peer {
                    socket,
                    owed: 0,
                    at: 0,
                    is_blocked: false,
                });
            }
        }
    }

    fn exchange(&mut self, index: usize, event: Event) -> io::Result<()> {
        let Some(peer) = &mut self.peers[index] else {
            return Ok(());
        };
        if event.readable || event.hangup {
            match self.poller.recv(peer.socket.as_fd(), &mut self.input) {
                Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
                Ok(count) => peer.owed += requests(&self.input[..count]) * self.reply_len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        while peer.owed > 0 {
            let rest = &self.pattern[peer.at..];
            let len = usize::try_from(peer.owed).map_or(rest.len(), |owed| owed.min(rest.len()));
            match self.poller.send(peer.socket.as_fd(), &rest[..len]) {
                Ok(count) => {
                    peer.owed -= count as u64;
                    // The pattern is a whole number of replies long, so any reply's place will do.
                    peer.at = (peer.at + count) % self.reply_len as usize;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let is_blocked = peer.owed > 0;
        if is_blocked != peer.is_blocked {
            peer.is_blocked = is_blocked;
            // A peer that does not read is not read from.
            let interest = if is_blocked {
                Interest::WRITE
            } else {
                Interest::READ
            };
            let fd = peer.socket.as_fd();
            self.poller.modify(fd, index as u64, interest)?;
        }
        Ok(())
    }

    fn close(&mut self, index: usize) {
        if let Some(peer) = self.peers[index].take() {
            // It can only fail if the descriptor is not registered, which is what was asked for.
            let _ = self.poller.remove(peer.socket.as_fd());
            self.free.push(index);
        }
    }
}

fn reply(bytes: Option<u64>) -> Vec<u8> {
    let Some(bytes) = bytes else {
        return b"+OK\r\n".to_vec();
    };
    let mut reply = format!("${bytes}\r\n").into_bytes();
    reply.resize(reply.len() + bytes as usize, b'x');
    reply.extend_from_slice(b"\r\n");
    reply
}

/// How many requests have begun in these bytes.
fn requests(bytes: &[u8]) -> u64 {
    // In portions whose count fits into a byte, which is what the compiler makes wide instructions of.
    let count = |portion: &[u8]| {
        let stars: u8 = portion.iter().map(|&byte| u8::from(byte == b'*')).sum();
        u64::from(stars)
    };
    bytes.chunks(255).map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn stars_are_counted() {
        assert_eq!(requests(b""), 0);
        assert_eq!(requests(&[b'*'; 1_000]), 1_000);
        assert_eq!(requests(b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n"), 2);
    }

    /// Serves on a socket file of its own; the thread ends with the test's process.
    fn start(name: &str, reply_bytes: Option<u64>) -> PathBuf {
        let name = format!("ferrite-floor-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let floor = Floor {
            port: None,
            socket: Some(path.clone()),
            reply_bytes,
        };
        let mut server = Server::new(&floor).expect("a fresh path");
        std::thread::spawn(move || {
            let mut events = Vec::new();
            while server.poller.wait(&mut events, None).is_ok() {
                for event in &events {
                    server.handle(*event);
                }
            }
        });
        path
    }

    #[test]
    fn every_request_has_a_reply() {
        let path = start("ok", None);
        for _ in 0..3 {
            let mut stream = UnixStream::connect(&path).expect("it listens");
            stream.write_all(b"*1\r\n$4\r\nPI").expect("it reads");
            stream
                .write_all(b"NG\r\n*1\r\n$4\r\nPING\r\n")
                .expect("it reads");
            let mut replies = [0; 10];
            stream.read_exact(&mut replies).expect("two replies");
            assert_eq!(&replies, b"+OK\r\n+OK\r\n");
        }
        std::fs::remove_file(&path).expect("it is ours");
    }

    #[test]
    fn a_peer_that_reads_late_gets_all_of_its_replies() {
        let path = start("large", Some(70_000));
        let mut stream = UnixStream::connect(&path).expect("it listens");
        // Far more than a socket holds, before anything is read.
        stream.write_all(&[b'*'; 100]).expect("it reads");
        let reply = reply(Some(70_000));
        for _ in 0..100 {
            let mut got = vec![0; reply.len()];
            stream.read_exact(&mut got).expect("a reply");
            assert!(got == reply);
        }
        std::fs::remove_file(&path).expect("it is ours");
    }
}
