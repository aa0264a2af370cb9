//! Linux' signalfd: blocked signals queue in the kernel until they are read.

use super::kind::{Signal, set_of};
use crate::syscall::check;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

#[derive(Debug)]
pub(super) struct SignalFd {
    queue: File,
}

impl SignalFd {
    pub(super) fn new(signals: &[Signal]) -> io::Result<SignalFd> {
        let set = set_of(signals);
        // The descriptor first: if there is none, the signals keep their meaning.
        // SAFETY: the call reads the set and returns a new descriptor for -1.
        let fd =
            check(unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })?;
        // SAFETY: the descriptor is open and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: the call reads the set; the old mask is not asked for.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) } {
            0 => Ok(SignalFd { queue: fd.into() }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    pub(super) fn read_number(&self) -> Option<libc::c_int> {
        let mut entry = [0_u8; size_of::<libc::signalfd_siginfo>()];
        // The kernel writes whole entries, or says WouldBlock; the signal's number is the first
        // field.
        const _: () = assert!(std::mem::offset_of!(libc::signalfd_siginfo, ssi_signo) == 0);
        (&self.queue).read_exact(&mut entry).ok()?;
        let number = u32::from_ne_bytes(entry[..4].try_into().expect("four bytes are four bytes"));
        libc::c_int::try_from(number).ok()
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use crate::poller::{Backend, Interest, Poller};
    use crate::signal::{Signal, Signals};
    use std::os::fd::AsFd;
    use std::time::Duration;

    fn raise(signal: Signal) {
        // To this thread only: another thread of the test process has not blocked it.
        // SAFETY: the number is that of a signal that exists; it is blocked, so nothing runs now.
        assert_eq!(unsafe { libc::raise(signal.number()) }, 0);
    }

    #[test]
    fn blocked_signals_wait_to_be_read() {
        let signals =
            Signals::block(&[Signal::Usr1, Signal::Hup, Signal::Term]).expect("a descriptor");
        let mut poller = Poller::new(Backend::Auto).expect("a poller");
        poller
            .add(signals.as_fd(), 9, Interest::READ)
            .expect("it can be polled");
        let mut events = Vec::new();
        poller
            .wait(&mut events, Some(Duration::ZERO))
            .expect("an open poller waits");
        assert!(events.is_empty());
        assert_eq!(signals.read(), None);

        raise(Signal::Term);
        raise(Signal::Usr1);
        raise(Signal::Usr1);
        poller
            .wait(&mut events, None)
            .expect("an open poller waits");
        assert_eq!(
            (events.len(), events[0].token, events[0].readable),
            (1, 9, true)
        );
        let mut read =
            [signals.read(), signals.read()].map(|signal| signal.expect("two kinds came").name());
        read.sort_unstable();
        assert_eq!(read, ["SIGTERM", "SIGUSR1"]);
        assert_eq!(signals.read(), None);
    }
}
