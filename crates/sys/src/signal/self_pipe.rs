//! Signals through a pipe, for systems without signalfd, and for programs that start others: the
//! handler writes the signal's number, the program reads it.
//!
//! There is one pipe per process, opened once and never closed: a handler may be running on any
//! thread at any time, and must not find the descriptor closed, or worse, used again for something
//! else.

use super::kind::Signal;
use crate::syscall::check;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Where the handler writes; -1 until there is a pipe.
static WRITE_END: AtomicI32 = AtomicI32::new(-1);

#[derive(Debug)]
pub(super) struct SelfPipe {
    read_end: File,
}

impl SelfPipe {
    pub(super) fn new(signals: &[Signal]) -> io::Result<SelfPipe> {
        let (read_end, write_end) = crate::syscall::pipe()?;
        let claimed = WRITE_END.compare_exchange(
            -1,
            write_end.as_raw_fd(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if claimed.is_err() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        // From now on it belongs to the handlers.
        let _ = write_end.into_raw_fd();
        for signal in signals {
            install(signal.number())?;
        }
        Ok(SelfPipe { read_end })
    }

    pub(super) fn read_number(&self) -> Option<libc::c_int> {
        let mut number = [0];
        (&self.read_end).read_exact(&mut number).ok()?;
        Some(number[0].into())
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.read_end.as_fd()
    }
}

fn install(number: libc::c_int) -> io::Result<()> {
    // SAFETY: a sigaction is integers and a function pointer as an integer, for which all bits zero
    // is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(libc::c_int) = on_signal;
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler does only what a signal handler may, and the structure outlives the call.
    unsafe {
        libc::sigemptyset(&mut action.sa_mask);
        check(libc::sigaction(number, &action, std::ptr::null_mut()))?;
    }
    Ok(())
}

/// Runs at any moment, on any thread: reads an atomic, writes a byte, and leaves errno as it was.
extern "C" fn on_signal(number: libc::c_int) {
    let byte = number as u8;
    // SAFETY: `write` may be called by a handler; the pointer is to one byte; errno's location is
    // the thread's own. The descriptor is never closed. If the pipe is full the signal is dropped:
    // thousands are waiting to be read.
    unsafe {
        let errno = errno_location();
        let before = *errno;
        libc::write(
            WRITE_END.load(Ordering::Acquire),
            (&raw const byte).cast(),
            1,
        );
        *errno = before;
    }
}

#[cfg(target_os = "linux")]
unsafe fn errno_location() -> *mut libc::c_int {
    // SAFETY: the function has no conditions.
    unsafe { libc::__errno_location() }
}

#[cfg(not(target_os = "linux"))]
unsafe fn errno_location() -> *mut libc::c_int {
    // SAFETY: the function has no conditions.
    unsafe { libc::__error() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poller::{Backend, Interest, Poller};
    use std::time::Duration;

    /// One test for all of it, because there is one pipe per process.
    #[test]
    fn handlers_write_what_the_server_reads() {
        let pipe = SelfPipe::new(&[Signal::Usr2, Signal::Quit]).expect("the first of the process");
        assert_eq!(pipe.read_number(), None);
        let mut poller = Poller::new(Backend::Auto).expect("a poller");
        poller
            .add(pipe.descriptor(), 1, Interest::READ)
            .expect("a pipe can be polled");
        // SAFETY: raises signals that have a handler, and reads the thread's own errno.
        unsafe {
            *errno_location() = 77;
            assert_eq!(libc::raise(libc::SIGUSR2), 0);
            assert_eq!(libc::raise(libc::SIGQUIT), 0);
            assert_eq!(libc::raise(libc::SIGUSR2), 0);
            assert_eq!(*errno_location(), 77);
        }
        let mut events = Vec::new();
        poller
            .wait(&mut events, Some(Duration::ZERO))
            .expect("an open poller waits");
        assert_eq!(events.len(), 1);
        let read: Vec<_> = std::iter::from_fn(|| pipe.read_number()).collect();
        assert_eq!(read, [libc::SIGUSR2, libc::SIGQUIT, libc::SIGUSR2]);

        let second = SelfPipe::new(&[Signal::Usr2]).expect_err("there is one already");
        assert_eq!(second.kind(), io::ErrorKind::AlreadyExists);
        // SAFETY: raises a signal that has a handler.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR2) }, 0);
        assert_eq!(pipe.read_number(), Some(libc::SIGUSR2));
    }
}
