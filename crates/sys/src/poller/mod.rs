//! Waiting for sockets: one [`Poller`] per worker, and the calls that move bytes once it says that
//! they are there.
//!
//! The bytes go through the poller because io_uring receives before it reports and sends after it was
//! told to: such a backend fits behind the same functions, and the worker's loop stays as it is. Each
//! backend is a module; [`Poller`] chooses with a `match`, which costs a predicted branch.
//!
//! Invariants:
//! 1. Readiness is level-triggered: what is not read or written is reported again by the next wait.
//! 2. A descriptor is registered at most once, and removed before it is closed. It is removed in order
//!    to be closed: what was received ahead for it is lost.
//! 3. A reported token may belong to a descriptor that an earlier event of the same wait made the
//!    caller remove. The poller does not look for this: tokens carry a generation where that
//!    matters.
//! 4. What a send has taken leaves in order, with the next wait or the removal at the latest, and what
//!    the peer is slow to read after that: a connection that is closed right after its last reply
//!    gets it to the peer. A removed connection is closed with the next wait at the latest.
//!
//! What does not live here: who owns the descriptors, what the tokens mean, and how long to wait.

#[cfg(target_os = "linux")]
mod epoll;
#[cfg(not(target_os = "linux"))]
mod kqueue;
mod transfer;
#[cfg(target_os = "linux")]
mod uring;
mod waker;

#[cfg(test)]
mod tests;

pub use waker::Waker;

#[cfg(target_os = "linux")]
use epoll::Epoll;
#[cfg(not(target_os = "linux"))]
use kqueue::Kqueue;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::time::Duration;
#[cfg(target_os = "linux")]
use uring::Uring;

/// The most events that one [`Poller::wait`] reports; the others come with the next.
pub const MAX_EVENTS: usize = 256;

/// The most slices that one [`Poller::send_vectored`] looks at: the kernel's own limit
/// (`UIO_MAXIOV`).
pub const MAX_SLICES: usize = 1024;

/// The mechanism of the kernel that a poller uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The one that is best on this system: epoll on Linux, kqueue on macOS and FreeBSD.
    Auto,
    /// Linux' epoll.
    Epoll,
    /// Linux' io_uring, as of Linux 6.1. The poller stays with the thread of its first wait.
    Uring,
}

/// What one wait has found out about one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number that the descriptor was registered with.
    pub token: u64,
    /// There is something to receive or to accept, or the end of the stream has come.
    pub readable: bool,
    /// There is room to send.
    pub writable: bool,
    /// The connection is closed in both directions or broken: nothing that is sent will arrive.
    /// Bytes that came before may still wait to be received. A peer that has only finished sending
    /// is `readable` (the end of the stream) and not `hangup`: it may well be waiting for replies.
    pub hangup: bool,
    /// The peer has finished sending, and [`Interest::ends`] asks for that.
    pub finished: bool,
}

/// A file's bytes that [`Poller::read_file`] was asked for.
#[derive(Debug)]
pub struct FinishedRead {
    /// The number that the read was asked for with.
    pub token: u64,
    /// Has the bytes from its beginning on.
    pub buffer: Vec<u8>,
    /// How many there are: fewer than the buffer holds at the end of the file, or where only that is in
    /// memory.
    pub result: io::Result<usize>,
}

/// What a descriptor is watched for.
///
/// On Linux a hangup of both directions is reported whatever the interest, so a connection that hung up must
/// be closed or removed, or each wait returns at once. On kqueue it is reported only with an interest in
/// writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Report that there is something to receive.
    pub readable: bool,
    /// Report that there is room to send.
    pub writable: bool,
    /// Report that the peer has finished sending, whatever it has sent before: for a connection that is not
    /// read. Linux only.
    pub ends: bool,
}

impl Interest {
    /// Bytes or connections to receive.
    pub const READ: Interest = Interest {
        readable: true,
        writable: false,
        ends: false,
    };
    /// Room to send.
    pub const WRITE: Interest = Interest {
        readable: false,
        writable: true,
        ends: false,
    };
    /// Both.
    pub const BOTH: Interest = Interest {
        readable: true,
        writable: true,
        ends: false,
    };
    /// Neither, but the end of what the peer sends: for a connection that waits for something else.
    pub const END: Interest = Interest {
        readable: false,
        writable: false,
        ends: true,
    };
    /// Neither: the descriptor stays registered, for a connection that is not to be read for a
    /// while.
    pub const NONE: Interest = Interest {
        readable: false,
        writable: false,
        ends: false,
    };
}

/// A set of descriptors to wait for, owned by one thread at a time.
#[derive(Debug)]
pub struct Poller {
    driver: Driver,
}

#[derive(Debug)]
enum Driver {
    #[cfg(target_os = "linux")]
    Epoll(Epoll),
    #[cfg(target_os = "linux")]
    Uring(Box<Uring>),
    #[cfg(not(target_os = "linux"))]
    Kqueue(Kqueue),
}

impl Poller {
    /// Opens a poller with nothing registered.
    ///
    /// # Errors
    /// `Unsupported` if this system has no such backend, `PermissionDenied` if it is not allowed
    /// here, as io_uring is in few containers; otherwise the kernel's (no descriptors left).
    pub fn new(backend: Backend) -> io::Result<Poller> {
        Poller::with_memory(backend, usize::MAX)
    }

    /// The same, for a poller that keeps no more than about so many bytes of what has arrived and was not
    /// asked for yet. io_uring needs some 128 KiB, and never takes more than 8 MiB; others keep nothing.
    ///
    /// # Errors
    /// As [`Poller::new`].
    pub fn with_memory(backend: Backend, memory: usize) -> io::Result<Poller> {
        #[cfg(not(target_os = "linux"))]
        let _ = memory;
        let driver = match backend {
            #[cfg(target_os = "linux")]
            Backend::Auto | Backend::Epoll => Driver::Epoll(Epoll::new()?),
            #[cfg(target_os = "linux")]
            Backend::Uring => Driver::Uring(Box::new(Uring::new(memory)?)),
            #[cfg(not(target_os = "linux"))]
            Backend::Auto => Driver::Kqueue(Kqueue::new()?),
            #[cfg(not(target_os = "linux"))]
            Backend::Epoll | Backend::Uring => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "epoll and io_uring are Linux'; this system has kqueue",
                ));
            }
        };
        Ok(Poller { driver })
    }

    /// Bytes of memory that it has taken since it was opened, beside what comes from the allocator.
    #[must_use]
    pub fn grown_bytes(&self) -> usize {
        match &self.driver {
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.grown_bytes(),
            #[cfg(target_os = "linux")]
            Driver::Epoll(_) => 0,
            #[cfg(not(target_os = "linux"))]
            Driver::Kqueue(_) => 0,
        }
    }

    /// The backend in use: `epoll`, `io_uring` or `kqueue`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match &self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(_) => "epoll",
            #[cfg(target_os = "linux")]
            Driver::Uring(_) => "io_uring",
            #[cfg(not(target_os = "linux"))]
            Driver::Kqueue(_) => "kqueue",
        }
    }

    /// Registers a descriptor; its events carry `token`.
    ///
    /// # Errors
    /// `AlreadyExists` if it is registered (kqueue changes the registration instead); otherwise the
    /// kernel's.
    pub fn add(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(epoll) => epoll.add(fd, token, interest),
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.add(fd, token, interest),
            #[cfg(not(target_os = "linux"))]
            Driver::Kqueue(kqueue) => kqueue.set(fd, token, interest),
        }
    }

    /// Changes token and interest of a registered descriptor.
    ///
    /// # Errors
    /// `NotFound` if it is not registered (kqueue registers it instead); otherwise the kernel's.
    pub fn modify(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(epoll) => epoll.modify(fd, token, interest),
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.modify(fd, token, interest),
            #[cfg(not(target_os = "linux"))]
            Driver::Kqueue(kqueue) => kqueue.set(fd, token, interest),
        }
    }

    /// Forgets a descriptor. Comes before its close: a duplicate of it elsewhere would keep it
    /// registered.
    ///
    /// # Errors
    /// `NotFound` if it is not registered (not on kqueue); otherwise the kernel's.
    pub fn remove(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(epoll) => epoll.remove(fd),
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.remove(fd),
            #[cfg(not(target_os = "linux"))]
            Driver::Kqueue(kqueue) => kqueue.set(fd, 0, Interest::NONE),
        }
    }

    /// Registers a waker: its wakes end a wait of this poller with a readable event that carries
    /// `token`.
    ///
    /// # Errors
    /// As [`Poller::add`].
    pub fn add_waker(&mut self, waker: &Waker, token: u64) -> io::Result<()> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(epoll) => epoll.add_waker(waker.descriptor(), token),
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.add_waker(waker.descriptor(), token),
            #[cfg(not(target_os = "linux"))]
            Driver::Kqueue(kqueue) => kqueue.set(waker.descriptor(), token, Interest::READ),
        }
    }

    /// Waits until something happens or `timeout` has passed (what was read of a file happens, too), and
    /// fills `events`: cleared first, at most [`MAX_EVENTS`], none after a timeout or when a signal ended the
    /// wait.
    ///
    /// `None` waits for ever, `Some(Duration::ZERO)` only looks. A wait is never shorter than asked
    /// for, except that one of more than 24 days may end early. A `Vec` with room for
    /// [`MAX_EVENTS`] is never reallocated.
    ///
    /// # Errors
    /// The kernel's; none is known for an open poller.
    pub fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        self.wait_for(events, timeout, false)
    }

    /// As [`Poller::wait`], for who serves many connections and has nothing else to wait for. Where the
    /// kernel can do that, and the last wait found several events, this one goes on until there are several
    /// again, for some tens of microseconds at most: to be woken for each of them costs the peers'
    /// processors, and this one, more than a moment's patience.
    ///
    /// # Errors
    /// As [`Poller::wait`].
    pub fn gather(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        self.wait_for(events, timeout, true)
    }

    #[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
    fn wait_for(
        &mut self,
        events: &mut Vec<Event>,
        timeout: Option<Duration>,
        gathers: bool,
    ) -> io::Result<()> {
        events.clear();
        let result = match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(epoll) => epoll.wait(events, timeout),
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.wait(events, timeout, gathers),
            #[cfg(not(target_os = "linux"))]
            Driver::Kqueue(kqueue) => kqueue.wait(events, timeout),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            result => result,
        }
    }

    /// Receives what is there, up to the length of `buf`, which must not be empty. `Ok(0)` is the
    /// end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there; `ConnectionReset` and others if the connection is broken.
    #[inline]
    pub fn recv(&mut self, fd: BorrowedFd<'_>, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(_) => transfer::recv(fd, buf),
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.recv(fd, buf),
            #[cfg(not(target_os = "linux"))]
            Driver::Kqueue(_) => transfer::recv(fd, buf),
        }
    }

    /// Receives into the spare capacity of `buf`, of which there must be some, and appends without
    /// zeroing it first. The `Vec` is never reallocated. `Ok(0)` is the end of the stream.
    ///
    /// # Errors
    /// As [`Poller::recv`]; `buf` is then unchanged.
    #[inline]
    pub fn recv_spare(&mut self, fd: BorrowedFd<'_>, buf: &mut Vec<u8>) -> io::Result<usize> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(_) => transfer::recv_spare(fd, buf),
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.recv_spare(fd, buf),
            #[cfg(not(target_os = "linux"))]
            Driver::Kqueue(_) => transfer::recv_spare(fd, buf),
        }
    }

    /// Sends from the front of `buf` and answers how many bytes were taken: by the kernel or, with
    /// io_uring, for the next wait to send. Never raises SIGPIPE.
    ///
    /// # Errors
    /// `WouldBlock` if the socket is full; `BrokenPipe` and others if the connection is broken,
    /// which for bytes that were taken is found out by the next wait: it reports a hangup.
    #[inline]
    pub fn send(&mut self, fd: BorrowedFd<'_>, buf: &[u8]) -> io::Result<usize> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(_) => transfer::send(fd, buf),
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.send(fd, buf),
            #[cfg(not(target_os = "linux"))]
            Driver::Kqueue(_) => transfer::send(fd, buf),
        }
    }

    /// The same from several slices, in order. Looks at the first [`MAX_SLICES`] only.
    ///
    /// # Errors
    /// As [`Poller::send`].
    #[inline]
    pub fn send_vectored(&mut self, fd: BorrowedFd<'_>, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(_) => transfer::send_vectored(fd, bufs),
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.send_vectored(fd, bufs),
            #[cfg(not(target_os = "linux"))]
            Driver::Kqueue(_) => transfer::send_vectored(fd, bufs),
        }
    }

    /// The same from a file, from `offset` on and `count` bytes at most, behind all that was taken before.
    /// `Ok(0)` is the end of the file. Waits for the disk if the file's bytes are not in memory: see
    /// [`crate::file::is_cached`].
    ///
    /// # Errors
    /// As [`Poller::send`]; or the file cannot be read.
    pub fn send_file(
        &mut self,
        fd: BorrowedFd<'_>,
        file: BorrowedFd<'_>,
        offset: u64,
        count: usize,
    ) -> io::Result<usize> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(_) => transfer::send_file(fd, file, offset, count),
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.send_file(fd, file, offset, count),
            #[cfg(not(target_os = "linux"))]
            Driver::Kqueue(_) => transfer::send_file(fd, file, offset, count),
        }
    }

    /// Whether [`Poller::read_file`] does.
    #[inline]
    pub fn reads_files(&self) -> bool {
        match &self.driver {
            #[cfg(target_os = "linux")]
            Driver::Uring(_) => true,
            _ => false,
        }
    }

    /// Begins to read a file from `offset` on, as much as `buffer` is long, with the next wait: the file must
    /// be open until that returns. A wait ends when something was read; [`Poller::finished_read`] has it
    /// then. What is under way cannot be taken back.
    ///
    /// # Errors
    /// The buffer, if this backend does not read files, or has too much to read: somebody else has to.
    pub fn read_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        buffer: Vec<u8>,
        token: u64,
    ) -> Result<(), Vec<u8>> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.read_file(file, offset, buffer, token),
            #[cfg(target_os = "linux")]
            Driver::Epoll(_) => Err(buffer),
            #[cfg(not(target_os = "linux"))]
            Driver::Kqueue(_) => {
                let _ = (file, offset, token);
                Err(buffer)
            }
        }
    }

    /// The next read that is over; `None` if there is no other yet.
    #[inline]
    pub fn finished_read(&mut self) -> Option<FinishedRead> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.finished_read(),
            _ => None,
        }
    }
}
