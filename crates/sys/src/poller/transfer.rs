//! Moving bytes between a socket and memory: the calls that every readiness-based backend shares.
//!
//! Each function is one system call and no allocation. `MSG_DONTWAIT` makes the promise of not
//! blocking independent of the socket's own flag.

use super::event::MAX_SLICES;
use crate::syscall::{check_size, retry};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

const RECV_FLAGS: libc::c_int = libc::MSG_DONTWAIT;
/// macOS learnt `MSG_NOSIGNAL` late; its sockets carry `SO_NOSIGPIPE` as well.
const SEND_FLAGS: libc::c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

#[inline]
pub(super) fn recv(fd: BorrowedFd<'_>, buf: &mut [u8]) -> io::Result<usize> {
    // With no room the kernel answers 0, which means the end of the stream.
    assert!(!buf.is_empty(), "a receive needs room");
    let (fd, target, length) = (fd.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len());
    retry(|| {
        // SAFETY: the pointer and the length describe `buf`, which is ours to write until we
        // return.
        check_size(unsafe { libc::recv(fd, target, length, RECV_FLAGS) })
    })
}

#[inline]
pub(super) fn recv_spare(fd: BorrowedFd<'_>, buf: &mut Vec<u8>) -> io::Result<usize> {
    let spare: &mut [MaybeUninit<u8>] = buf.spare_capacity_mut();
    assert!(!spare.is_empty(), "a receive needs room");
    let (fd, target, length) = (fd.as_raw_fd(), spare.as_mut_ptr().cast(), spare.len());
    let count = retry(|| {
        // SAFETY: the pointer and the length describe the spare capacity, which the kernel writes
        // and does not read.
        check_size(unsafe { libc::recv(fd, target, length, RECV_FLAGS) })
    })?;
    // SAFETY: the kernel has written `count` bytes from the old length on, and there was room for
    // them.
    unsafe { buf.set_len(buf.len() + count) };
    Ok(count)
}

#[inline]
pub(super) fn send(fd: BorrowedFd<'_>, buf: &[u8]) -> io::Result<usize> {
    let (fd, source, length) = (fd.as_raw_fd(), buf.as_ptr().cast(), buf.len());
    retry(|| {
        // SAFETY: the pointer and the length describe `buf`, which nobody writes until we return.
        check_size(unsafe { libc::send(fd, source, length, SEND_FLAGS) })
    })
}

#[inline]
pub(super) fn send_vectored(fd: BorrowedFd<'_>, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    // SAFETY: a msghdr is integers and pointers, for which all bits zero means "none".
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // An IoSlice has the layout of an iovec; the call does not write through the pointer.
    message.msg_iov = bufs.as_ptr().cast_mut().cast();
    // The field's type differs between systems; each of them holds the bound.
    message.msg_iovlen = bufs.len().min(MAX_SLICES) as _;
    let fd = fd.as_raw_fd();
    retry(|| {
        // SAFETY: the message names no address and no control data, and no more slices than there
        // are, which nobody writes until we return.
        check_size(unsafe { libc::sendmsg(fd, &message, SEND_FLAGS) })
    })
}

/// Sends up to `count` bytes of a file from `offset` on, without a copy of them in this process where the
/// system can do that. 0 is the end of the file.
#[cfg(target_os = "linux")]
pub(super) fn send_file(
    fd: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    offset: u64,
    count: usize,
) -> io::Result<usize> {
    let mut at = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    retry(|| {
        // SAFETY: the pointer is to an offset of ours; both descriptors are open.
        check_size(unsafe { libc::sendfile(fd.as_raw_fd(), file.as_raw_fd(), &mut at, count) })
    })
}

/// The same by way of a buffer.
#[cfg(not(target_os = "linux"))]
pub(super) fn send_file(
    fd: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    offset: u64,
    count: usize,
) -> io::Result<usize> {
    let mut buffer = [0; 16 << 10];
    let at = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let wanted = count.min(buffer.len());
    let read = retry(|| {
        // SAFETY: the pointer and the length are within `buffer`; the descriptor is open.
        check_size(unsafe { libc::pread(file.as_raw_fd(), buffer.as_mut_ptr().cast(), wanted, at) })
    })?;
    if read == 0 {
        return Ok(0);
    }
    send(fd, &buffer[..read])
}
