//! Poller over the `polling` crate: epoll on Linux, kqueue on macOS and FreeBSD. It has run on Linux only,
//! where it is for tests and for comparison.
//!
//! `polling` knows keys and no tokens: the key is the descriptor, whose registration is kept here. It tells
//! less than the other backends:
//!
//! - The end of what a peer sends is looked for in the socket, where [`Interest::ends`] asks for it. So it is
//!   found when no bytes wait before it, and reported once.
//! - A hangup is reported where the system has a flag for it, which kqueue has not: reading and sending find
//!   out there.
//! - A signal does not end a wait.

use super::event::{Event, Interest, MAX_EVENTS};
use polling::{Event as Readiness, Events, PollMode};
use rustix::net::{RecvFlags, recv};
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub(super) struct Portable {
    poller: polling::Poller,
    /// What is ready; only meaningful during a wait.
    ready: Events,
    /// By number of the descriptor.
    registered: Vec<Option<Registration>>,
}

#[derive(Clone, Copy, Debug)]
struct Registration {
    token: u64,
    interest: Interest,
}

impl Portable {
    pub(super) fn new() -> io::Result<Portable> {
        let capacity = NonZeroUsize::new(MAX_EVENTS).expect("it is not zero");
        Ok(Portable {
            poller: polling::Poller::new()?,
            ready: Events::with_capacity(capacity),
            registered: Vec::new(),
        })
    }

    pub(super) fn add(
        &mut self,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        self.register(fd, Registration { token, interest }, mode_of(interest))
    }

    /// A waker is reported once for each time it rings.
    pub(super) fn add_waker(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let interest = Interest::READ;
        self.register(fd, Registration { token, interest }, PollMode::Edge)
    }

    fn register(
        &mut self,
        fd: BorrowedFd<'_>,
        registration: Registration,
        mode: PollMode,
    ) -> io::Result<()> {
        let at = key_of(fd);
        if self.registered.len() <= at {
            self.registered.resize(at + 1, None);
        }
        if self.registered[at].is_some() {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        let wanted = wanted(at, registration.interest);
        // SAFETY: a descriptor is removed before it is closed, or it outlives the poller (invariant 2 of
        // `poller`).
        unsafe { self.poller.add_with_mode(fd.as_raw_fd(), wanted, mode)? };
        self.registered[at] = Some(registration);
        Ok(())
    }

    pub(super) fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let at = key_of(fd);
        let registration = self.registration(at)?;
        *registration = Registration { token, interest };
        let (wanted, mode) = (wanted(at, interest), mode_of(interest));
        self.poller.modify_with_mode(fd, wanted, mode)
    }

    pub(super) fn remove(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let at = key_of(fd);
        self.registration(at)?;
        self.registered[at] = None;
        self.poller.delete(fd)
    }

    fn registration(&mut self, at: usize) -> io::Result<&mut Registration> {
        let registration = self.registered.get_mut(at).and_then(Option::as_mut);
        registration.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    /// Appends to `events`.
    pub(super) fn wait(
        &mut self,
        events: &mut Vec<Event>,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            self.ready.clear();
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let count = self.poller.wait(&mut self.ready, left)?;
            let registered = &self.registered;
            events.extend(self.ready.iter().filter_map(|ready| {
                let registration = registered.get(ready.key).copied().flatten()?;
                translate(&ready, registration)
            }));
            // What nobody has asked for ends no wait.
            if count == 0 || !events.is_empty() {
                return Ok(());
            }
        }
    }
}

/// A descriptor is never negative.
fn key_of(fd: BorrowedFd<'_>) -> usize {
    fd.as_raw_fd() as usize
}

fn wanted(key: usize, interest: Interest) -> Readiness {
    Readiness::new(key, interest.readable || interest.ends, interest.writable)
}

/// Whoever asks for the end alone leaves what comes before it unread: each arrival is one look.
fn mode_of(interest: Interest) -> PollMode {
    match interest.ends && !interest.readable {
        true => PollMode::Edge,
        false => PollMode::Level,
    }
}

/// The event to report, if it is one that somebody has asked for.
fn translate(ready: &Readiness, registration: Registration) -> Option<Event> {
    let Registration { token, interest } = registration;
    let event = Event {
        token,
        readable: interest.readable && ready.readable,
        writable: interest.writable && ready.writable,
        hangup: ready.is_interrupt() || ready.is_err() == Some(true),
        finished: interest.ends && ready.readable && is_at_end(ready.key as RawFd),
    };
    let is_one = event.readable || event.writable || event.hangup || event.finished;
    is_one.then_some(event)
}

/// Whether there is nothing more to receive, and never will be.
fn is_at_end(fd: RawFd) -> bool {
    // SAFETY: a registered descriptor is open.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(recv(fd, &mut [0; 1], flags), Ok((_, 0)))
}
