//! The other end of a connection: what a program opens that asks one server and waits for it.
//!
//! Reading and writing block, so that such a program is straight lines; [`Stream::wait`] is for the
//! moments in which it has to look at something else as well. What does not live here: the protocol,
//! and when to connect again.

use crate::syscall::retry;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, sockopt};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Which addresses of a name count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// All, in the order in which the system names them.
    #[default]
    Any,
    /// Those of IPv4 first.
    PreferV4,
    /// Those of IPv6 first.
    PreferV6,
}

/// A connected, blocking stream socket; closed on drop.
#[derive(Debug)]
pub struct Stream {
    /// A descriptor is read and written in the same way whatever it is.
    file: File,
    is_unix: bool,
}

/// What a wait ended for. Neither: the time was over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// A read will not block: bytes, the end, or an error are there.
    pub stream: bool,
    /// The other descriptor is readable.
    pub other: bool,
}

/// Refuses a connection of a socket with itself: the system makes one where nobody listens on a port of this
/// machine, and that port happens to be the one that it gives the socket. Its requests would come back as
/// replies.
fn not_itself(stream: TcpStream) -> io::Result<TcpStream> {
    match (stream.local_addr(), stream.peer_addr()) {
        (Ok(own), Ok(peer)) if own == peer => Err(rustix::io::Errno::CONNREFUSED.into()),
        _ => Ok(stream),
    }
}

impl Stream {
    /// Connects to a port of a machine: the addresses of the name in turn, until one answers.
    /// Without a `timeout`, each is tried for as long as the system tries.
    ///
    /// # Errors
    /// There is no such name, or the last address did not answer. The text is that of the system's
    /// library, without a number.
    pub fn connect_tcp(
        host: &str,
        port: u16,
        family: Family,
        timeout: Option<Duration>,
    ) -> io::Result<Stream> {
        let found = (host, port).to_socket_addrs().map_err(|error| {
            let text = error.to_string();
            // The standard library says in front that it was a look-up; the rest is the reason.
            let reason = text.split_once("information: ").map(|(_, reason)| reason);
            io::Error::new(error.kind(), reason.unwrap_or(&text).to_owned())
        })?;
        let mut addresses: Vec<SocketAddr> = found.collect();
        match family {
            Family::Any => {}
            Family::PreferV4 => addresses.sort_by_key(|address| !address.is_ipv4()),
            Family::PreferV6 => addresses.sort_by_key(SocketAddr::is_ipv4),
        }
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in addresses {
            let connected = match timeout {
                Some(timeout) => TcpStream::connect_timeout(&address, timeout),
                None => TcpStream::connect(address),
            };
            let connected = connected.and_then(not_itself);
            match connected {
                Ok(stream) => {
                    // Requests are written whole, so there is nothing to gather.
                    stream.set_nodelay(true)?;
                    return Ok(Stream::new(stream.into(), false));
                }
                Err(error) => last = error,
            }
        }
        Err(plain(&last))
    }

    /// Connects to a unix socket.
    ///
    /// # Errors
    /// Nobody listens there, or the path is none for a socket. The text is without a number.
    pub fn connect_unix(path: &Path) -> io::Result<Stream> {
        match UnixStream::connect(path) {
            Ok(stream) => Ok(Stream::new(stream.into(), true)),
            Err(error) => Err(plain(&error)),
        }
    }

    fn new(fd: OwnedFd, is_unix: bool) -> Stream {
        Stream {
            file: fd.into(),
            is_unix,
        }
    }

    /// A second handle of the same connection, so that one thread may write while another reads.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn try_clone(&self) -> io::Result<Stream> {
        Ok(Stream {
            file: self.file.try_clone()?,
            is_unix: self.is_unix,
        })
    }

    /// Lets the system look after a silent server every `seconds`, so that the end of a machine is
    /// noticed at all.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn set_keepalive(&self, seconds: u32) -> io::Result<()> {
        if self.is_unix {
            return Ok(());
        }
        let seconds = i32::try_from(seconds).unwrap_or(i32::MAX);
        let time = Duration::from_secs(seconds.unsigned_abs().into());
        sockopt::set_socket_keepalive(&self.file, true)?;
        Ok(sockopt::set_tcp_keepidle(&self.file, time)?)
    }

    /// Bounds the time that a read or a write waits for the server; then it fails with `WouldBlock`.
    ///
    /// # Errors
    /// The connection is gone, or the time is zero.
    pub fn set_patience(&self, time: Duration) -> io::Result<()> {
        for direction in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
            sockopt::set_socket_timeout(&self.file, direction, Some(time))?;
        }
        Ok(())
    }

    /// Waits until there is something to read here or from `other`, or the time is over; for ever
    /// without a `timeout`.
    ///
    /// # Errors
    /// None that a caller could cause.
    pub fn wait(
        &self,
        other: Option<BorrowedFd<'_>>,
        timeout: Option<Duration>,
    ) -> io::Result<Ready> {
        let own = PollFd::new(&self.file, PollFlags::IN);
        let other = other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN));
        let mut entries: Vec<PollFd<'_>> = std::iter::once(own).chain(other).collect();
        // A time that the system has no number for is for ever.
        let limit = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        retry(|| Ok(poll(&mut entries, limit.as_ref())?))?;
        let is_ready = |at: usize| {
            let entry: Option<&PollFd<'_>> = entries.get(at);
            entry.is_some_and(|entry| !entry.revents().is_empty())
        };
        Ok(Ready {
            stream: is_ready(0),
            other: is_ready(1),
        })
    }

    /// Whether the server has ended the connection, as far as is known here without a wait. Only
    /// between requests: what is there to be read then is the end, or something that nobody asked
    /// for.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match recv(&self.file, &mut [0; 1], flags) {
            Ok((_, count)) => count == 0,
            Err(error) => error != Errno::WOULDBLOCK,
        }
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        retry(|| (&self.file).read(buffer))
    }
}

impl Write for &Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        (&self.file).write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The same error with the system's words alone, as people know them.
fn plain(error: &io::Error) -> io::Error {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or(&text);
    io::Error::new(error.kind(), reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_does_not_talk_to_itself() {
        use rustix::net::{AddressFamily, SocketType, bind, connect, getsockname, socket};

        let own = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&own, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let address = SocketAddr::try_from(getsockname(&own).expect("it is bound"));
        connect(&own, &address.expect("it is of the internet")).expect("with itself");
        let refused = not_itself(TcpStream::from(own)).map(drop);
        let kind = refused.map_err(|error| error.kind());
        assert_eq!(kind, Err(io::ErrorKind::ConnectionRefused));

        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let other = TcpStream::connect(listener.local_addr().expect("it is bound"));
        assert!(not_itself(other.expect("it listens")).is_ok());
    }

    fn pair() -> (Stream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let stream = Stream::connect_tcp("127.0.0.1", port, Family::Any, None).expect("it listens");
        let (peer, _) = listener.accept().expect("a client is there");
        (stream, peer)
    }

    #[test]
    fn bytes_go_both_ways() {
        let (stream, mut peer) = pair();
        (&stream).write_all(b"ping").expect("connected");
        let mut bytes = [0; 4];
        peer.read_exact(&mut bytes).expect("connected");
        assert_eq!(&bytes, b"ping");
        peer.write_all(b"pong").expect("connected");
        let second = stream.try_clone().expect("a descriptor");
        (&second).read_exact(&mut bytes).expect("connected");
        assert_eq!(&bytes, b"pong");
        stream.set_keepalive(15).expect("connected");
    }

    #[test]
    fn reads_and_writes_end_with_their_patience() {
        let (stream, peer) = pair();
        stream
            .set_patience(Duration::from_millis(1))
            .expect("connected");
        let is_over = |result: io::Result<()>| {
            assert_eq!(
                result.map_err(|error| error.kind()),
                Err(io::ErrorKind::WouldBlock)
            );
        };
        is_over((&stream).read_exact(&mut [0]));
        // More than the system keeps for a peer that does not read.
        is_over((&stream).write_all(&vec![0; 64 << 20]));
        drop(peer);
    }

    #[test]
    fn a_wait_tells_what_it_ended_for() {
        let (stream, mut peer) = pair();
        let (mut one, other) = UnixStream::pair().expect("a socket pair");
        let wait = |limit| stream.wait(Some(other.as_fd()), limit).expect("open");
        let moment = Some(Duration::from_micros(1));
        assert_eq!(wait(moment), Ready::default());
        one.write_all(b"x").expect("connected");
        assert!(wait(None).other && !wait(None).stream);
        peer.write_all(b"x").expect("connected");
        let alone = stream.wait(None, None).expect("open");
        assert!(alone.stream && !alone.other);
    }

    #[test]
    fn the_end_is_seen_between_requests() {
        let (stream, mut peer) = pair();
        assert!(!stream.is_ended());
        peer.write_all(b"x").expect("connected");
        stream.wait(None, None).expect("open");
        assert!(!stream.is_ended());
        drop(peer);
        (&stream).read_exact(&mut [0]).expect("the byte is there");
        stream.wait(None, None).expect("open");
        assert!(stream.is_ended());
        assert_eq!((&stream).read(&mut [0]).expect("a clean end"), 0);
    }

    #[test]
    fn errors_are_the_systems_words() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        drop(listener);
        for timeout in [None, Some(Duration::from_secs(5))] {
            let error = Stream::connect_tcp("127.0.0.1", port, Family::PreferV4, timeout)
                .expect_err("nobody listens");
            assert_eq!(error.to_string(), "Connection refused");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        }
        let error = Stream::connect_tcp("no such name", 1, Family::PreferV6, None)
            .expect_err("no name has spaces");
        assert!(!error.to_string().contains("lookup"), "{error}");
        let error =
            Stream::connect_unix(Path::new("/nonexistent/socket")).expect_err("nobody listens");
        assert_eq!(error.to_string(), "No such file or directory");
    }

    #[test]
    fn a_unix_socket_is_the_same() {
        let name = format!("ferrite-sys-client-{}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listener = UnixListener::bind(&path).expect("a free path");
        let stream = Stream::connect_unix(&path).expect("it listens");
        let (mut peer, _) = listener.accept().expect("a client is there");
        std::fs::remove_file(&path).expect("it is ours");
        stream.set_keepalive(15).expect("nothing to do");
        peer.write_all(b"x").expect("connected");
        (&stream).read_exact(&mut [0]).expect("connected");
    }
}
