//! Listening sockets, TCP and unix, and the connections that they hand out.
//!
//! A unix socket is a file, and files stay behind: one that nobody answers on is removed at the
//! start, one that somebody answers on is left alone, and a listener removes its own when it is
//! dropped, if it still is its own.

use super::address;
#[cfg(not(target_os = "macos"))]
use super::options::FLAGS;
use super::options::{open, prepare};
use super::stream::Socket;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix};
use rustix::net::{bind, connect, getsockname, listen, sockopt};
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many connections that died in the queue one [`Listener::accept`] passes over.
const MAX_DEAD_CONNECTIONS: usize = 64;

/// A socket that accepts connections; closed on drop.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    bound: Bound,
}

#[derive(Debug)]
enum Bound {
    Tcp(SocketAddr),
    Unix(SocketFile),
}

impl Listener {
    /// Listens on an address and port; port 0 takes a free one. An IPv6 address listens for IPv6
    /// only. `backlog` is how many connections wait to be accepted, which the kernel may lower.
    ///
    /// # Errors
    /// The address is in use, is not this machine's, or its port is not allowed.
    pub fn tcp(addr: SocketAddr, backlog: i32) -> io::Result<Listener> {
        let fd = open(address::family(&addr))?;
        // A restarted server must not wait for the connections of its predecessor to time out.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        if addr.is_ipv6() {
            sockopt::set_ipv6_v6only(&fd, true)?;
        }
        bind(&fd, &addr)?;
        listen(&fd, backlog)?;
        let bound = SocketAddr::try_from(getsockname(&fd)?).unwrap_or(addr);
        Ok(Listener {
            fd,
            bound: Bound::Tcp(bound),
        })
    }

    /// Listens on a port at each of the addresses, which white space separates: names, numbers, `*` and `::*`
    /// for all of a family. One with a dash in front may be missing on this machine; so none may be left.
    ///
    /// # Errors
    /// Which address cannot be had, and why.
    pub fn tcp_at_each(addresses: &str, port: u16, backlog: i32) -> Result<Vec<Listener>, String> {
        let mut listeners = Vec::new();
        for address in addresses.split_whitespace() {
            // A leading dash: fine if this machine doesn't have it.
            let (address, needed) = match address.strip_prefix('-') {
                Some(rest) => (rest, false),
                None => (address, true),
            };
            match resolve(address, port).and_then(|address| Listener::tcp(address, backlog)) {
                Ok(listener) => listeners.push(listener),
                Err(error) if !needed && is_unavailable(&error) => {}
                Err(error) => return Err(format!("cannot listen on {address}:{port}: {error}")),
            }
        }
        Ok(listeners)
    }

    /// Listens on a path. A socket file that nobody answers on is removed first. With a `mode` the
    /// file has these permissions before the first connection can come, otherwise those of the
    /// umask.
    ///
    /// # Errors
    /// `AddrInUse` if somebody listens there or the path is something else than a socket;
    /// `InvalidInput` if the path is too long; otherwise the kernel's.
    pub fn unix(path: &Path, mode: Option<u32>, backlog: i32) -> io::Result<Listener> {
        let address = address::unix(path)?;
        remove_stale(path, &address)?;
        let fd = open(AddressFamily::UNIX)?;
        bind(&fd, &address)?;
        // From here on the file is ours, so a failure takes it away again. Nobody can connect
        // before `listen`.
        let mut file = SocketFile::of(path)?;
        if let Some(mode) = mode {
            fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
            file.identity = identity(path)?;
        }
        listen(&fd, backlog)?;
        Ok(Listener {
            fd,
            bound: Bound::Unix(file),
        })
    }

    /// The next connection that waits, non-blocking and close-on-exec; `None` if there is none now.
    /// Connections that ended while they waited are passed over.
    ///
    /// # Errors
    /// No descriptors left, for the process (`EMFILE`) or the machine (`ENFILE`), or no memory. The
    /// connection keeps waiting, so the listener stays readable: whoever handles this must pause
    /// before the next try.
    pub fn accept(&self) -> io::Result<Option<Socket>> {
        for _ in 0..MAX_DEAD_CONNECTIONS {
            match accept(&self.fd) {
                Ok((fd, peer)) => {
                    if let Some(socket) = self.socket(fd, peer) {
                        return Ok(Some(socket));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => return Err(error),
            }
        }
        // Still readable: the poller will say so again.
        Ok(None)
    }

    /// `None` if the peer has no address, which some systems report for one that is gone already.
    fn socket(&self, fd: OwnedFd, peer: Option<SocketAddrAny>) -> Option<Socket> {
        match &self.bound {
            Bound::Tcp(_) => Some(Socket::inet(fd, peer?.try_into().ok()?)),
            Bound::Unix(file) => Some(Socket::unix(fd, Arc::clone(&file.text))),
        }
    }

    /// What it listens on: `127.0.0.1:6379`, `[::1]:6379` or the path as it was given.
    #[must_use]
    pub fn local_addr_text(&self) -> String {
        match &self.bound {
            Bound::Tcp(bound) => address::text(bound),
            Bound::Unix(file) => file.text.as_ref().to_owned(),
        }
    }

    /// The address and the port, with the one taken for port 0; none for a unix socket.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match &self.bound {
            Bound::Tcp(bound) => Some(*bound),
            Bound::Unix(_) => None,
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The file of a unix socket that this process created; removed on drop.
#[derive(Debug)]
struct SocketFile {
    /// The path as it was given.
    text: Arc<str>,
    /// The path from the root, because the process may change its directory in between.
    absolute: PathBuf,
    identity: Identity,
}

/// Tells our file from one that somebody else has put in its place: device, inode, and the time of
/// its last change of status, as inodes are used again.
type Identity = (u64, u64, i64, i64);

impl SocketFile {
    fn of(path: &Path) -> io::Result<SocketFile> {
        Ok(SocketFile {
            text: path.to_string_lossy().into(),
            absolute: std::path::absolute(path)?,
            identity: identity(path)?,
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.absolute).is_ok_and(|now| now == self.identity) {
            // Left behind, it is a stale file that the next start removes.
            let _ = fs::remove_file(&self.absolute);
        }
    }
}

fn identity(path: &Path) -> io::Result<Identity> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((
        metadata.dev(),
        metadata.ino(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ))
}

/// Removes a socket file that nobody listens on any more. What is not a socket stays, and makes the
/// bind fail.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {}
        _ => return Ok(()),
    }
    if is_answered(address)? {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Somebody listens on the socket file. The probe is closed at once: its listener sees a connection
/// that says nothing.
fn is_answered(address: &SocketAddrUnix) -> io::Result<bool> {
    let probe = open(AddressFamily::UNIX)?;
    match connect(&probe, address) {
        Ok(()) => Ok(true),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
        // The queue is full, or it is a socket of another type: there is somebody.
        Err(Errno::AGAIN | Errno::INPROGRESS | Errno::PROTOTYPE) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

fn accept(listener: &OwnedFd) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
    #[cfg(not(target_os = "macos"))]
    let (fd, peer) = rustix::net::acceptfrom_with(listener, FLAGS)?;
    #[cfg(target_os = "macos")]
    let (fd, peer) = rustix::net::acceptfrom(listener)?;
    // Setting options fails on a connection that has ended; it is passed over like one that ended
    // before.
    prepare(&fd).map_err(|_| io::ErrorKind::ConnectionAborted)?;
    Ok((fd, peer))
}

/// The failure is that of the connection at the head of the queue, which is gone with it, and not
/// of the listener: Linux hands out network errors that are pending on the new socket. EINTR is no
/// failure at all.
fn concerns_one_connection(error: &io::Error) -> bool {
    // What `accept` makes of an option that cannot be set has no number.
    if error.kind() == io::ErrorKind::ConnectionAborted {
        return true;
    }
    #[cfg(target_os = "linux")]
    if Errno::from_io_error(error) == Some(Errno::NONET) {
        return true;
    }
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::INTR
                | Errno::CONNRESET
                | Errno::PROTO
                | Errno::NOPROTOOPT
                | Errno::NETDOWN
                | Errno::NETUNREACH
                | Errno::HOSTDOWN
                | Errno::HOSTUNREACH
                | Errno::OPNOTSUPP
        )
    )
}

/// The address that a text names.
fn resolve(address: &str, port: u16) -> io::Result<SocketAddr> {
    match address {
        "*" => Ok(SocketAddr::new(IpAddr::from([0, 0, 0, 0]), port)),
        "::*" => Ok(SocketAddr::new(IpAddr::from([0u16; 8]), port)),
        _ => {
            let mut found = (address, port).to_socket_addrs()?;
            found
                .next()
                .ok_or_else(|| io::Error::other("no such address"))
        }
    }
}

fn is_unavailable(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, Unsupported};
    // EAFNOSUPPORT, which a kernel without IPv6 answers, has no kind of its own.
    matches!(error.kind(), AddrNotAvailable | Unsupported) || error.raw_os_error() == Some(97)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpStream;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    fn loopback() -> SocketAddr {
        "127.0.0.1:0".parse().expect("a valid address")
    }

    /// A directory of its own for each test, removed at its end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path =
                std::env::temp_dir().join(format!("ferrite-sys-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).expect("the temporary directory is writable");
            Directory(path)
        }

        fn socket(&self) -> PathBuf {
            self.0.join("s.sock")
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_empty_queue_is_none() {
        let listener = Listener::tcp(loopback(), 16).expect("a free port");
        assert!(listener.accept().expect("an open listener").is_none());
    }

    #[test]
    fn a_connection_knows_both_ends_and_its_flags() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = Listener::tcp(address.parse().expect("valid"), 16) else {
                // A machine without IPv6 has nothing to test here.
                assert!(address.starts_with('['), "every machine has IPv4");
                continue;
            };
            let bound = listener.local_addr().expect("a TCP listener");
            assert_ne!(bound.port(), 0);
            assert_eq!(listener.local_addr_text(), bound.to_string());
            let client = TcpStream::connect(bound).expect("it listens");
            let socket = listener
                .accept()
                .expect("an open listener")
                .expect("a client is there");
            assert_eq!(
                socket.peer_text(),
                client.local_addr().expect("connected").to_string()
            );
            assert_eq!(socket.local_text(), bound.to_string());
            // SAFETY: F_GETFL and F_GETFD only return integers; the descriptor is open.
            let (status, descriptor) = unsafe {
                (
                    libc::fcntl(socket.fd_number(), libc::F_GETFL),
                    libc::fcntl(socket.fd_number(), libc::F_GETFD),
                )
            };
            assert_ne!(status & libc::O_NONBLOCK, 0);
            assert_ne!(descriptor & libc::FD_CLOEXEC, 0);
        }
    }

    #[test]
    fn a_port_in_use_is_an_error() {
        let first = Listener::tcp(loopback(), 16).expect("a free port");
        let error = Listener::tcp(first.local_addr().expect("TCP"), 16).expect_err("it is taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_port_is_free_again_while_old_connections_linger() {
        let first = Listener::tcp(loopback(), 16).expect("a free port");
        let bound = first.local_addr().expect("TCP");
        let mut client = TcpStream::connect(bound).expect("it listens");
        // The server's end closes first, so its side of the connection lingers in TIME_WAIT.
        drop(
            first
                .accept()
                .expect("an open listener")
                .expect("a client is there"),
        );
        assert_eq!(client.read(&mut [0]).expect("a clean end"), 0);
        drop((client, first));
        let second = Listener::tcp(bound, 16).expect("the port can be had again");
        assert_eq!(second.local_addr(), Some(bound));
    }

    #[test]
    fn an_ipv6_listener_does_not_take_ipv4() {
        // An IPv4 address in the form of an IPv6 one: only a socket of both families takes it.
        let mapped = "[::ffff:127.0.0.1]:0".parse().expect("a valid address");
        assert!(Listener::tcp(mapped, 16).is_err());
    }

    #[test]
    fn a_connection_reset_in_the_queue_does_no_harm() {
        let listener = Listener::tcp(loopback(), 16).expect("a free port");
        let bound = listener.local_addr().expect("TCP");
        let dead = TcpStream::connect(bound).expect("it listens");
        sockopt::set_socket_linger(&dead, Some(std::time::Duration::ZERO)).expect("a valid option");
        drop(dead);
        let alive = TcpStream::connect(bound).expect("it listens");
        // The client can be told of its connection before the listener is.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let mut peers = Vec::new();
        while !peers.contains(&alive.local_addr().ok()) {
            assert!(std::time::Instant::now() < deadline, "{peers:?}");
            let accepted = listener.accept().expect("an open listener");
            peers.extend(accepted.map(|socket| socket.peer_address()));
        }
    }

    #[test]
    fn errors_of_one_connection_are_told_from_those_of_the_listener() {
        let concerns = |code| concerns_one_connection(&io::Error::from_raw_os_error(code));
        assert!(
            concerns(libc::ECONNABORTED) && concerns(libc::EINTR) && concerns(libc::EHOSTUNREACH)
        );
        for code in [
            libc::EMFILE,
            libc::ENFILE,
            libc::ENOMEM,
            libc::ENOBUFS,
            libc::EBADF,
            libc::EINVAL,
        ] {
            assert!(!concerns(code), "{code}");
        }
    }

    #[test]
    fn a_unix_listener_has_its_mode_and_removes_its_file() {
        let directory = Directory::new("mode");
        let path = directory.socket();
        let listener = Listener::unix(&path, Some(0o640), 16).expect("a free path");
        assert_eq!(
            fs::metadata(&path).expect("the file is there").mode() & 0o7777,
            0o640
        );
        assert_eq!(listener.local_addr_text(), path.to_str().expect("text"));
        assert_eq!(listener.local_addr(), None);
        let _client = UnixStream::connect(&path).expect("it listens");
        let socket = listener
            .accept()
            .expect("an open listener")
            .expect("a client is there");
        assert_eq!(socket.peer_text(), format!("{}:0", path.display()));
        assert_eq!(socket.local_text(), socket.peer_text());
        assert!(socket.is_unix() && socket.is_loopback_peer());
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_socket_file_is_replaced() {
        let directory = Directory::new("stale");
        let path = directory.socket();
        // The standard library's listener leaves its file behind.
        drop(UnixListener::bind(&path).expect("a free path"));
        assert!(path.exists());
        let listener = Listener::unix(&path, None, 16).expect("nobody answers there");
        let _client = UnixStream::connect(&path).expect("it listens");
        assert!(listener.accept().expect("an open listener").is_some());
    }

    #[test]
    fn a_living_socket_is_left_alone() {
        let directory = Directory::new("alive");
        let path = directory.socket();
        let first = Listener::unix(&path, None, 16).expect("a free path");
        let error = Listener::unix(&path, None, 16).expect_err("somebody answers there");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let _client = UnixStream::connect(&path).expect("the first still listens");
        // The probe of the second is in the queue before it.
        assert!(first.accept().expect("an open listener").is_some());
        assert!(first.accept().expect("an open listener").is_some());
    }

    #[test]
    fn a_living_socket_with_a_full_queue_is_left_alone() {
        let directory = Directory::new("full");
        let path = directory.socket();
        let first = Listener::unix(&path, None, 0).expect("a free path");
        let _client = UnixStream::connect(&path).expect("one fits");
        assert!(is_answered(&address::unix(&path).expect("a short path")).expect("it can tell"));
        let error = Listener::unix(&path, None, 16).expect_err("somebody is there");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists());
        drop(first);
    }

    #[test]
    fn what_is_not_our_kind_of_socket_is_never_removed() {
        let directory = Directory::new("foreign");
        let path = directory.socket();
        fs::write(&path, "precious").expect("the directory is writable");
        let error = Listener::unix(&path, None, 16).expect_err("it is a file");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(fs::read(&path).expect("it is still there"), b"precious");
        fs::remove_file(&path).expect("it is ours");

        let _datagram = UnixDatagram::bind(&path).expect("a free path");
        let error = Listener::unix(&path, None, 16).expect_err("it is in use");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists());
        fs::remove_file(&path).expect("it is ours");

        std::os::unix::fs::symlink(directory.0.join("elsewhere"), &path).expect("a free path");
        let error = Listener::unix(&path, None, 16).expect_err("it is a link");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(fs::symlink_metadata(&path).is_ok());
    }

    #[test]
    fn the_file_of_a_successor_is_not_removed() {
        let directory = Directory::new("successor");
        let path = directory.socket();
        let first = Listener::unix(&path, None, 16).expect("a free path");
        fs::rename(&path, directory.0.join("moved")).expect("the directory is writable");
        let second = Listener::unix(&path, None, 16).expect("the path is free again");
        drop(first);
        let _client = UnixStream::connect(&path).expect("the second still listens");
        assert!(second.accept().expect("an open listener").is_some());
    }

    #[test]
    fn a_failed_start_leaves_no_file() {
        let directory = Directory::new("failed");
        let path = directory.0.join("x".repeat(120));
        let error = Listener::unix(&path, None, 16).expect_err("the path is too long");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(fs::read_dir(&directory.0).expect("it is there").count(), 0);
        let error =
            Listener::unix(&directory.0.join("no/such"), None, 16).expect_err("no such directory");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
