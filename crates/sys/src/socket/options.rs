//! Opening a socket.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::OwnedFd;

/// What a socket has from its creation on, where the system can do that.
#[cfg(not(target_os = "macos"))]
pub(super) const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);
#[cfg(target_os = "macos")]
pub(super) const FLAGS: SocketFlags = SocketFlags::empty();

/// Opens a stream socket of an address family.
pub(super) fn open(family: AddressFamily) -> io::Result<OwnedFd> {
    let fd = socket_with(family, SocketType::STREAM, FLAGS, None)?;
    prepare(&fd)?;
    Ok(fd)
}

/// Gives a socket what macOS cannot ask for at its creation.
pub(super) fn prepare(_fd: &OwnedFd) -> io::Result<()> {
    #[cfg(target_os = "macos")]
    {
        use std::os::fd::AsFd;
        crate::syscall::set_cloexec_nonblocking(_fd.as_fd())?;
        rustix::net::sockopt::set_socket_nosigpipe(_fd, true)?;
    }
    Ok(())
}
