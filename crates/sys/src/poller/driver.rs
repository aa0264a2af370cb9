//! The poller: one of the backends behind the same functions.

#[cfg(target_os = "linux")]
use super::epoll::Epoll;
use super::event::{Backend, Event, FinishedRead, Interest};
use super::portable::Portable;
use super::transfer;
#[cfg(target_os = "linux")]
use super::uring::Uring;
use super::waker::Waker;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::time::Duration;

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
    Portable(Portable),
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
            Backend::Auto => Driver::Portable(Portable::new()?),
            Backend::Portable => Driver::Portable(Portable::new()?),
            #[cfg(not(target_os = "linux"))]
            Backend::Epoll | Backend::Uring => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "epoll and io_uring are Linux'",
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
            Driver::Portable(_) => 0,
        }
    }

    /// The backend in use: `epoll`, `io_uring` or `portable`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match &self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(_) => "epoll",
            #[cfg(target_os = "linux")]
            Driver::Uring(_) => "io_uring",
            Driver::Portable(_) => "portable",
        }
    }

    /// Registers a descriptor; its events carry `token`.
    ///
    /// # Errors
    /// `AlreadyExists` if it is registered; otherwise the kernel's.
    pub fn add(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(epoll) => epoll.add(fd, token, interest),
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.add(fd, token, interest),
            Driver::Portable(portable) => portable.add(fd, token, interest),
        }
    }

    /// Changes token and interest of a registered descriptor.
    ///
    /// # Errors
    /// `NotFound` if it is not registered; otherwise the kernel's.
    pub fn modify(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(epoll) => epoll.modify(fd, token, interest),
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.modify(fd, token, interest),
            Driver::Portable(portable) => portable.modify(fd, token, interest),
        }
    }

    /// Forgets a descriptor. Comes before its close: a duplicate of it elsewhere would keep it
    /// registered.
    ///
    /// # Errors
    /// `NotFound` if it is not registered; otherwise the kernel's.
    pub fn remove(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(epoll) => epoll.remove(fd),
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.remove(fd),
            Driver::Portable(portable) => portable.remove(fd),
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
            Driver::Portable(portable) => portable.add_waker(waker.descriptor(), token),
        }
    }

    /// Waits until something happens or `timeout` has passed (what was read of a file happens, too), and
    /// fills `events`: cleared first, at most [`super::MAX_EVENTS`], none after a timeout or when a signal
    /// ended the wait, which the portable backend goes on with.
    ///
    /// `None` waits for ever, `Some(Duration::ZERO)` only looks. A wait is never shorter than asked
    /// for, except that one of more than 24 days may end early. A `Vec` with room for
    /// [`super::MAX_EVENTS`] is never reallocated.
    ///
    /// # Errors
    /// The kernel's; none is known for an open poller.
    #[inline]
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
    #[inline]
    pub fn gather(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        self.wait_for(events, timeout, true)
    }

    #[inline]
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
            Driver::Portable(portable) => portable.wait(events, timeout),
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
            Driver::Uring(uring) => uring.recv(fd, buf),
            _ => transfer::recv(fd, buf),
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
            Driver::Uring(uring) => uring.recv_spare(fd, buf),
            _ => transfer::recv_spare(fd, buf),
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
            Driver::Uring(uring) => uring.send(fd, buf),
            _ => transfer::send(fd, buf),
        }
    }

    /// The same from several slices, in order. Looks at the first [`super::MAX_SLICES`] only.
    ///
    /// # Errors
    /// As [`Poller::send`].
    #[inline]
    pub fn send_vectored(&mut self, fd: BorrowedFd<'_>, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.driver {
            #[cfg(target_os = "linux")]
            Driver::Uring(uring) => uring.send_vectored(fd, bufs),
            _ => transfer::send_vectored(fd, bufs),
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
            Driver::Uring(uring) => uring.send_file(fd, file, offset, count),
            _ => transfer::send_file(fd, file, offset, count),
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
            _ => {
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
