//! Connections that a load generator opens: begun without waiting, by the thousand, and finished
//! when the poller says so.
//!
//! A name is looked up once with [`resolve`], which waits; [`Socket::dial`] never does. A connection
//! is there when the poller reports it writable and [`Socket::take_error`] has none. What does not
//! live here: when to give up, and when to try again.

use super::address;
use super::options::open;
use super::stream::Socket;
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{AddressFamily, connect};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::path::PathBuf;

/// Where to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An address and port.
    Tcp(SocketAddr),
    /// The path of a socket file.
    Unix(PathBuf),
}

/// Looks up the addresses of a machine's name, in the order in which the system gives them; at least
/// one. Waits for as long as the system asks around.
///
/// # Errors
/// There is no such name, or nobody who knows.
pub fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let addresses: Vec<_> = (host, port).to_socket_addrs()?.collect();
    if addresses.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the name has no address",
        ));
    }
    Ok(addresses)
}

impl Socket {
    /// Begins to connect. Small segments are sent at once, as a client that writes whole requests
    /// wants it.
    ///
    /// # Errors
    /// What is known at once: the path is none for a socket, nobody listens there, no descriptors or
    /// ports left. `WouldBlock`: the queue of a unix socket is full, so nothing was begun; try again
    /// a little later.
    pub fn dial(to: &Endpoint) -> io::Result<Socket> {
        let (fd, begun) = match to {
            Endpoint::Tcp(address) => {
                let fd = open(address::family(address))?;
                let begun = connect(&fd, address);
                (fd, begun)
            }
            Endpoint::Unix(path) => {
                let address = address::unix(path)?;
                let fd = open(AddressFamily::UNIX)?;
                let begun = connect(&fd, &address);
                (fd, begun)
            }
        };
        match begun {
            // An interrupted connect goes on in the background like one that was only begun.
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let socket = match to {
            Endpoint::Tcp(address) => Socket::inet(fd, *address),
            Endpoint::Unix(path) => Socket::unix(fd, path.to_string_lossy().into()),
        };
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    /// The error that is pending on the socket, which this takes away: why a connection that was
    /// begun did not come about.
    ///
    /// # Errors
    /// That error; `ConnectionRefused`, for one.
    pub fn take_error(&self) -> io::Result<()> {
        Ok(socket_error(self.as_fd())??)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poller::{Backend, Interest, Poller};
    use crate::socket::Listener;
    use std::path::Path;
    use std::time::Duration;

    fn loopback() -> SocketAddr {
        "127.0.0.1:0".parse().expect("a valid address")
    }

    /// Waits for the connection to be there, or to have failed.
    fn finish(socket: &Socket) -> io::Result<()> {
        let mut poller = Poller::new(Backend::Auto).expect("a poller");
        poller
            .add(socket.as_fd(), 1, Interest::WRITE)
            .expect("an open socket");
        let mut events = Vec::new();
        poller
            .wait(&mut events, Some(Duration::from_secs(60)))
            .expect("an open poller waits");
        assert_eq!(events.len(), 1, "nothing happened for a minute");
        socket.take_error()
    }

    #[test]
    fn a_listener_is_reached() {
        let listener = Listener::tcp(loopback(), 16).expect("a free port");
        let address = listener.local_addr().expect("TCP has an address");
        let socket = Socket::dial(&Endpoint::Tcp(address)).expect("it can begin");
        finish(&socket).expect("somebody listens");
        assert_eq!(socket.peer_address(), Some(address));
        let accepted = listener.accept().expect("open").expect("it is there");
        assert_eq!(accepted.peer_text(), socket.local_text());
    }

    #[test]
    fn a_closed_port_is_refused_once() {
        let listener = Listener::tcp(loopback(), 16).expect("a free port");
        let address = listener.local_addr().expect("TCP has an address");
        drop(listener);
        let error = match Socket::dial(&Endpoint::Tcp(address)) {
            Ok(socket) => {
                let error = finish(&socket).expect_err("nobody listens");
                socket.take_error().expect("it was taken away");
                error
            }
            Err(error) => error,
        };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_unix_socket_is_reached_or_says_why_not() {
        let directory =
            std::env::temp_dir().join(format!("ferrite-sys-{}-dial", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the temporary directory is writable");
        let path = directory.join("s.sock");
        let to = Endpoint::Unix(path.clone());
        let error = Socket::dial(&to).expect_err("there is no such file");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let listener = Listener::unix(&path, None, 1).expect("a fresh path");
        let socket = Socket::dial(&to).expect("somebody listens");
        finish(&socket).expect("somebody listens");
        assert!(socket.is_unix());
        drop(listener);
        std::fs::remove_dir_all(&directory).expect("it is ours");
        let long = Endpoint::Unix(Path::new(&"x".repeat(200)).to_owned());
        let error = Socket::dial(&long).expect_err("the path is too long");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn names_become_addresses() {
        let found = resolve("127.0.0.1", 7).expect("it is an address already");
        assert_eq!(found, ["127.0.0.1:7".parse().expect("valid")]);
        assert!(
            resolve("localhost", 7)
                .expect("every machine knows itself")
                .iter()
                .all(|address| address.ip().is_loopback() && address.port() == 7)
        );
        resolve("no such name", 7).expect_err("a space is in no name");
    }
}
