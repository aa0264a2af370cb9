//! The kqueue of macOS and FreeBSD, behind the same functions as epoll.
//!
//! **Untested until it has run on a Mac**: it compiles, and nothing more is known about it.
//!
//! A kqueue knows filters, not descriptors: reading and writing are registered and reported apart.
//! What this file adds is the pairing: one registration is up to two filters, and the two reports
//! of one wait become one event. What it cannot give is a hangup without a filter: see
//! [`Interest`].

use super::event::{Event, Interest, MAX_EVENTS};
use crate::syscall::check;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

pub(super) struct Kqueue {
    fd: OwnedFd,
    /// Where the kernel puts what is ready; only meaningful during a wait.
    ready: Box<[libc::kevent; MAX_EVENTS]>,
}

// SAFETY: the pointers in `ready` are tokens: nobody follows them.
unsafe impl Send for Kqueue {}

impl Kqueue {
    pub(super) fn new() -> io::Result<Kqueue> {
        // SAFETY: the call takes nothing and returns a descriptor.
        let fd = check(unsafe { libc::kqueue() })?;
        // SAFETY: the descriptor is open and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: F_SETFD takes an integer; the descriptor is open. The call has no flag for it.
        check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) })?;
        Ok(Kqueue {
            fd,
            ready: Box::new([change(0, 0, 0, 0); MAX_EVENTS]),
        })
    }

    /// Registers the filters that the interest names and removes the others.
    pub(super) fn set(
        &mut self,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let ident = fd.as_raw_fd();
        // EV_RECEIPT makes the kernel answer each change with an entry that holds its error, and
        // nothing else.
        let flags = |is_wanted: bool| match is_wanted {
            true => libc::EV_ADD | libc::EV_RECEIPT,
            false => libc::EV_DELETE | libc::EV_RECEIPT,
        };
        let mut changes = [
            change(ident, libc::EVFILT_READ, flags(interest.readable), token),
            change(ident, libc::EVFILT_WRITE, flags(interest.writable), token),
        ];
        let list = changes.as_mut_ptr();
        // SAFETY: the kernel reads two changes and then writes two answers over them; there is no
        // timeout to read.
        let answers =
            check(unsafe { libc::kevent(self.fd.as_raw_fd(), list, 2, list, 2, ptr::null()) })?;
        for answer in &changes[..answers as usize] {
            // Zero is success; a filter that is to go may not be there.
            let error = answer.data as i32;
            if answer.flags & libc::EV_ERROR != 0 && error != 0 && error != libc::ENOENT {
                return Err(io::Error::from_raw_os_error(error));
            }
        }
        Ok(())
    }

    /// Appends to `events`. A signal is an error here (`Interrupted`), which the caller forgives.
    pub(super) fn wait(
        &mut self,
        events: &mut Vec<Event>,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        /// Some systems reject waits of years; this is as long as epoll's.
        const LONGEST: Duration = Duration::from_secs(24 * 24 * 60 * 60);
        let limit = timeout.map(|timeout| {
            let timeout = timeout.min(LONGEST);
            libc::timespec {
                tv_sec: timeout.as_secs() as _,
                tv_nsec: timeout.subsec_nanos() as _,
            }
        });
        let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
        let (ready, capacity) = (self.ready.as_mut_ptr(), self.ready.len() as libc::c_int);
        // SAFETY: there are no changes to read; the kernel writes at most `capacity` entries, which
        // is how many `ready` holds, and reads the limit, which is null or lives until the end of
        // this function.
        let count = check(unsafe {
            libc::kevent(self.fd.as_raw_fd(), ptr::null(), 0, ready, capacity, limit)
        })?;
        events.extend(self.ready[..count as usize].iter().map(translate));
        merge(events);
        Ok(())
    }
}

impl fmt::Debug for Kqueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kqueue")
            .field("fd", &self.fd)
            .finish_non_exhaustive()
    }
}

fn change(ident: i32, filter: i16, flags: u16, token: u64) -> libc::kevent {
    // SAFETY: a kevent is integers and a pointer that is never followed; all bits zero is a value
    // of it.
    let mut change: libc::kevent = unsafe { std::mem::zeroed() };
    // A descriptor is never negative.
    change.ident = ident as libc::uintptr_t;
    change.filter = filter;
    change.flags = flags;
    change.udata = ptr::without_provenance_mut(token as usize);
    change
}

fn translate(ready: &libc::kevent) -> Event {
    let is_write = ready.filter == libc::EVFILT_WRITE;
    Event {
        token: ready.udata.addr() as u64,
        readable: ready.filter == libc::EVFILT_READ,
        writable: is_write,
        // The end of the read side alone is only the end of the stream.
        hangup: ready.flags & libc::EV_ERROR != 0 || (is_write && ready.flags & libc::EV_EOF != 0),
        finished: false,
    }
}

/// Makes one event of the two that a descriptor can have in one wait. Tokens are unique per
/// descriptor.
fn merge(events: &mut Vec<Event>) {
    events.sort_unstable_by_key(|event| event.token);
    events.dedup_by(|later, first| {
        let same = later.token == first.token;
        if same {
            first.readable |= later.readable;
            first.writable |= later.writable;
            first.hangup |= later.hangup;
        }
        same
    });
}

#[cfg(target_pointer_width = "32")]
compile_error!("a token of 64 bits does not fit the pointer that kqueue keeps");
