//! A connection's socket: who is at the other end, and the options that the server sets.

use super::address;
use rustix::net::{Shutdown, getsockname, shutdown, sockopt};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// A connected stream socket; closed on drop.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    peer: Peer,
}

#[derive(Debug)]
enum Peer {
    Inet(SocketAddr),
    /// The path of the socket file. A client of one has no address of its own worth showing.
    Unix(Arc<str>),
}

impl Socket {
    pub(super) fn inet(fd: OwnedFd, peer: SocketAddr) -> Socket {
        Socket {
            fd,
            peer: Peer::Inet(peer),
        }
    }

    pub(super) fn unix(fd: OwnedFd, path: Arc<str>) -> Socket {
        Socket {
            fd,
            peer: Peer::Unix(path),
        }
    }

    /// Takes over a connection that the standard library made, as clients do.
    ///
    /// # Errors
    /// It is not connected any more.
    pub fn from_tcp(stream: TcpStream) -> io::Result<Socket> {
        stream.set_nonblocking(true)?;
        let peer = stream.peer_addr()?;
        Ok(Socket::inet(stream.into(), peer))
    }

    /// Takes over a connection that the standard library made, as clients do. Shows the path of
    /// whichever end has one.
    ///
    /// # Errors
    /// It is not connected any more.
    pub fn from_unix(stream: UnixStream) -> io::Result<Socket> {
        stream.set_nonblocking(true)?;
        let (peer, local) = (stream.peer_addr()?, stream.local_addr()?);
        let path = peer.as_pathname().or(local.as_pathname());
        let path = path.map_or_else(String::new, |path| path.to_string_lossy().into_owned());
        Ok(Socket::unix(stream.into(), path.into()))
    }

    /// Who is connected, as `CLIENT LIST` writes it: `127.0.0.1:5123`, `[::1]:5123`, and for a unix
    /// socket the path of the socket file with a port of zero, `/run/ferrite.sock:0`.
    #[must_use]
    pub fn peer_text(&self) -> String {
        match &self.peer {
            Peer::Inet(peer) => address::text(peer),
            Peer::Unix(path) => format!("{path}:0"),
        }
    }

    /// Where the peer is connected to, in the same form. Asks the kernel; `?:0` if the connection
    /// is gone.
    #[must_use]
    pub fn local_text(&self) -> String {
        match &self.peer {
            Peer::Inet(_) => self
                .local_address()
                .map_or_else(|_| "?:0".to_owned(), |address| address::text(&address)),
            Peer::Unix(path) => format!("{path}:0"),
        }
    }

    /// The address of the peer; none for a unix socket.
    #[must_use]
    pub fn peer_address(&self) -> Option<SocketAddr> {
        match self.peer {
            Peer::Inet(peer) => Some(peer),
            Peer::Unix(_) => None,
        }
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        let address = getsockname(&self.fd)?;
        SocketAddr::try_from(address).map_err(io::Error::from)
    }

    /// Connected through a unix socket.
    #[must_use]
    pub fn is_unix(&self) -> bool {
        matches!(self.peer, Peer::Unix(_))
    }

    /// The peer is on this machine, as far as its address tells: 127.0.0.0/8, `::1`, or any unix
    /// socket.
    #[must_use]
    pub fn is_loopback_peer(&self) -> bool {
        match self.peer {
            Peer::Inet(peer) => peer.ip().to_canonical().is_loopback(),
            Peer::Unix(_) => true,
        }
    }

    /// Sends small segments at once (`true`) or gathers them (`false`, Nagle's algorithm). Nothing
    /// to do on a unix socket.
    ///
    /// # Errors
    /// The connection is gone (not on Linux).
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        if self.is_unix() {
            return Ok(());
        }
        Ok(sockopt::set_tcp_nodelay(&self.fd, nodelay)?)
    }

    /// Asks a silent peer for a sign of life after `seconds`, then up to three times, a third of
    /// that apart, before the connection counts as broken. 0 turns it off. Linux allows at most
    /// 32767: more is taken as that. Nothing to do on a unix socket, whose peer cannot vanish
    /// unnoticed.
    ///
    /// # Errors
    /// The connection is gone (not on Linux).
    pub fn set_keepalive(&self, seconds: u32) -> io::Result<()> {
        const PROBES: u32 = 3;
        const LONGEST: u32 = 32_767;
        if self.is_unix() {
            return Ok(());
        }
        sockopt::set_socket_keepalive(&self.fd, seconds != 0)?;
        if seconds != 0 {
            let seconds = seconds.min(LONGEST);
            let time = |seconds: u32| Duration::from_secs(seconds.into());
            sockopt::set_tcp_keepidle(&self.fd, time(seconds))?;
            sockopt::set_tcp_keepintvl(&self.fd, time((seconds / 3).max(1)))?;
            sockopt::set_tcp_keepcnt(&self.fd, PROBES)?;
        }
        Ok(())
    }

    /// Ends the connection in both directions now, for every holder of the descriptor: what was
    /// sent still goes out, the poller reports a hangup. The descriptor stays open until the drop.
    pub fn shutdown(&self) {
        // The only failure is that there is no connection any more, which is what was asked for.
        let _ = shutdown(&self.fd, Shutdown::Both);
    }

    /// The number of the descriptor, for people (`CLIENT LIST`, logs).
    #[must_use]
    pub fn fd_number(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}

impl AsFd for Socket {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    fn connected(address: &str) -> (Socket, TcpStream) {
        let listener = TcpListener::bind(address).expect("a free port");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (server, _) = listener.accept().expect("a client is there");
        (Socket::from_tcp(server).expect("connected"), client)
    }

    #[test]
    fn both_ends_are_named() {
        let (server, client) = connected("127.0.0.1:0");
        assert_eq!(
            server.peer_text(),
            client.local_addr().expect("connected").to_string()
        );
        assert_eq!(
            server.local_text(),
            client.peer_addr().expect("connected").to_string()
        );
        assert_eq!(server.peer_address(), client.local_addr().ok());
        assert!(server.is_loopback_peer() && !server.is_unix());
        assert_eq!(server.fd_number(), server.as_fd().as_raw_fd());
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let (server, _client) = connected("127.0.0.1:0");
        let Socket { mut fd, .. } = server;
        for (peer, is_loopback) in [
            ("127.0.0.1:1", true),
            ("127.8.9.10:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("10.0.0.1:1", false),
            ("[::2]:1", false),
            ("[::ffff:10.0.0.1]:1", false),
            ("[fe80::1]:1", false),
        ] {
            let socket = Socket::inet(fd, peer.parse().expect("a valid address"));
            assert_eq!(socket.is_loopback_peer(), is_loopback, "{peer}");
            fd = socket.fd;
        }
    }

    #[test]
    fn nodelay_is_set_and_cleared() {
        let (server, _client) = connected("127.0.0.1:0");
        for nodelay in [true, false] {
            server.set_nodelay(nodelay).expect("a TCP socket");
            assert_eq!(sockopt::tcp_nodelay(&server), Ok(nodelay));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn keepalive_probes_at_a_third_of_the_time() {
        let (server, _client) = connected("127.0.0.1:0");
        let is_on = || sockopt::socket_keepalive(&server).expect("a socket");
        for (seconds, idle, interval) in [
            (300, 300, 100),
            (2, 2, 1),
            (1, 1, 1),
            (32_767, 32_767, 10_922),
            (u32::MAX, 32_767, 10_922),
        ] {
            server.set_keepalive(seconds).expect("a TCP socket");
            assert!(is_on());
            let time = Duration::from_secs;
            assert_eq!(sockopt::tcp_keepidle(&server), Ok(time(idle)));
            assert_eq!(sockopt::tcp_keepintvl(&server), Ok(time(interval)));
            assert_eq!(sockopt::tcp_keepcnt(&server), Ok(3));
        }
        server.set_keepalive(0).expect("a TCP socket");
        assert!(!is_on());
    }

    #[test]
    fn a_unix_socket_takes_every_option_and_needs_none() {
        let (one, _other) = UnixStream::pair().expect("a socket pair");
        let socket = Socket::from_unix(one).expect("connected");
        assert!(socket.is_unix() && socket.is_loopback_peer());
        assert_eq!(
            (socket.peer_text(), socket.local_text()),
            (":0".to_owned(), ":0".to_owned())
        );
        assert_eq!(socket.peer_address(), None);
        socket.set_nodelay(true).expect("nothing to do");
        socket.set_keepalive(300).expect("nothing to do");
    }

    #[test]
    fn shutdown_ends_the_peers_stream_and_can_be_repeated() {
        let (server, mut client) = connected("127.0.0.1:0");
        server.shutdown();
        server.shutdown();
        assert_eq!(client.read(&mut [0; 8]).expect("a clean end"), 0);
    }

    #[test]
    fn a_socket_taken_over_never_blocks() {
        let (server, _client) = connected("127.0.0.1:0");
        let mut byte = [0_u8];
        // SAFETY: the pointer and the length describe `byte`.
        let count = unsafe { libc::recv(server.fd_number(), byte.as_mut_ptr().cast(), 1, 0) };
        assert_eq!(count, -1);
        assert_eq!(io::Error::last_os_error().kind(), io::ErrorKind::WouldBlock);
    }
}
