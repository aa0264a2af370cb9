//! Sockets: what the server listens on and what it accepts, whose bytes move through the poller, not
//! through these types; and the connections of programs at the other end, which wait for one server.
//!
//! Everything opened here is close-on-exec from the start, and non-blocking except for the latter.
//! What does not live here: what a connection is to the server, and when one is too many.

mod address;
mod client;
mod dial;
mod listener;
mod stream;

pub use client::{Family, Ready, Stream};
pub use dial::{Endpoint, resolve};
pub use listener::Listener;
pub use stream::Socket;

use crate::syscall::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Opens a stream socket of an address family.
fn open(family: libc::c_int) -> io::Result<OwnedFd> {
    #[cfg(not(target_os = "macos"))]
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    #[cfg(target_os = "macos")]
    let kind = libc::SOCK_STREAM;
    // SAFETY: the call takes integers and returns a descriptor.
    let fd = check(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: the descriptor is open and nothing else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    #[cfg(target_os = "macos")]
    prepare(&fd)?;
    Ok(fd)
}

/// Gives a socket what macOS cannot ask for at its creation.
#[cfg(target_os = "macos")]
fn prepare(fd: &OwnedFd) -> io::Result<()> {
    use std::os::fd::AsFd;
    crate::syscall::set_cloexec_nonblocking(fd.as_fd())?;
    set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_NOSIGPIPE, 1)
}

/// Sets a socket option that is an integer.
fn set_option(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let size = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the pointer and the size describe `value`, which the call only reads.
    check(unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), size)
    })?;
    Ok(())
}

/// Reads a socket option that is an integer.
#[cfg(test)]
fn option(fd: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut size = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the pointer and the size describe `value`, which the call may write.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &mut size,
        )
    })?;
    Ok(value)
}
