//! The two conventions of the C interface, translated once: -1 means "look at errno", and a call
//! that a signal interrupted is made again. Also the one place that makes a descriptor
//! close-on-exec and non-blocking on systems that cannot ask for it at creation.

use std::io;

/// Turns the result of a call that answers -1 on failure into a value or the error in `errno`.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The same for calls that answer a byte count.
#[inline]
pub(crate) fn check_size(result: isize) -> io::Result<usize> {
    // Only -1 is negative in these interfaces, so the conversion fails exactly when errno holds the
    // reason.
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Repeats `call` while a signal interrupts it. Every caller's call is one that makes progress or
/// blocks for a reason of its own, so the number of repeats is bounded by the number of signals
/// that arrive.
#[inline]
pub(crate) fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Sets close-on-exec and non-blocking on a descriptor that was opened without them.
#[cfg(any(target_os = "macos", test))]
pub(crate) fn set_cloexec_nonblocking(fd: std::os::fd::BorrowedFd<'_>) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let fd = fd.as_raw_fd();
    // SAFETY: F_SETFD and F_GETFL/F_SETFL take and return plain integers; the descriptor is
    // borrowed, hence open.
    unsafe {
        check(libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC))?;
        let flags = check(libc::fcntl(fd, libc::F_GETFL))?;
        check(libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK))?;
    }
    Ok(())
}

/// A pipe, read end first; both ends are close-on-exec and non-blocking.
pub(crate) fn pipe() -> io::Result<(std::fs::File, std::fs::File)> {
    use std::os::fd::{FromRawFd, OwnedFd};
    let mut ends = [0; 2];
    #[cfg(not(target_os = "macos"))]
    // SAFETY: `ends` has room for the two descriptors that the call writes.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) })?;
    #[cfg(target_os = "macos")]
    // SAFETY: `ends` has room for the two descriptors that the call writes.
    check(unsafe { libc::pipe(ends.as_mut_ptr()) })?;
    // SAFETY: the call succeeded, so both numbers are open descriptors that nothing else owns.
    let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    #[cfg(target_os = "macos")]
    {
        use std::os::fd::AsFd;
        set_cloexec_nonblocking(read.as_fd())?;
        set_cloexec_nonblocking(write.as_fd())?;
    }
    Ok((read.into(), write.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn an_interrupted_call_is_repeated_and_other_errors_are_not() {
        let mut left = 3;
        let result = retry(|| {
            left -= 1;
            if left > 0 {
                return Err(io::Error::from_raw_os_error(libc::EINTR));
            }
            Ok("done")
        });
        assert_eq!((result.expect("it ends well"), left), ("done", 0));

        let mut calls = 0;
        let result: io::Result<()> = retry(|| {
            calls += 1;
            Err(io::Error::from_raw_os_error(libc::EAGAIN))
        });
        assert_eq!(
            result.expect_err("EAGAIN is no interruption").kind(),
            io::ErrorKind::WouldBlock
        );
        assert_eq!(calls, 1);
    }

    #[test]
    fn a_failed_call_reports_errno() {
        // SAFETY: closing a number that is no open descriptor only fails.
        let error = check(unsafe { libc::close(-1) }).expect_err("-1 is never open");
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        // SAFETY: the descriptor is invalid, so the kernel rejects the call before it looks at the
        // buffer.
        let error = check_size(unsafe { libc::read(-1, std::ptr::null_mut(), 0) });
        assert_eq!(
            error.expect_err("-1 is never open").raw_os_error(),
            Some(libc::EBADF)
        );
    }

    #[test]
    fn a_pipe_never_blocks_and_carries_bytes() {
        let (mut read, mut write) = pipe().expect("a pipe");
        let mut byte = [0];
        assert_eq!(
            read.read(&mut byte).expect_err("it is empty").kind(),
            io::ErrorKind::WouldBlock
        );
        write.write_all(b"x").expect("there is room");
        assert_eq!(read.read(&mut byte).expect("a byte is there"), 1);
        assert_eq!(byte, *b"x");
    }

    #[test]
    fn flags_are_set_after_the_fact() {
        use std::os::fd::AsRawFd;
        let (left, _right) = std::os::unix::net::UnixStream::pair().expect("a socket pair");
        set_cloexec_nonblocking(left.as_fd()).expect("the flags are valid");
        // SAFETY: F_GETFL and F_GETFD only return integers; `left` is open.
        let (status, descriptor) = unsafe {
            let fd = left.as_raw_fd();
            (
                libc::fcntl(fd, libc::F_GETFL),
                libc::fcntl(fd, libc::F_GETFD),
            )
        };
        assert_ne!(status & libc::O_NONBLOCK, 0);
        assert_ne!(descriptor & libc::FD_CLOEXEC, 0);
    }
}
