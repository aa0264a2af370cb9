//! Opening a socket, and its options that are integers.

use crate::syscall::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Opens a stream socket of an address family.
pub(super) fn open(family: libc::c_int) -> io::Result<OwnedFd> {
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
pub(super) fn prepare(fd: &OwnedFd) -> io::Result<()> {
    use std::os::fd::AsFd;
    crate::syscall::set_cloexec_nonblocking(fd.as_fd())?;
    set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_NOSIGPIPE, 1)
}

/// Sets a socket option that is an integer.
pub(super) fn set_option(
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
pub(super) fn option(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<libc::c_int> {
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
