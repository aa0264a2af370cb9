//! The two queues shared with the kernel: what is asked of it, and what it answers.
//!
//! This is the only file that talks to io_uring. Everything asked is named by a [`Tag`], which comes back
//! with each answer.
//!
//! Invariants:
//! 1. The kernel works on this ring during [`Queues::enter`] and at no other time: with
//!    `DEFER_TASKRUN` it is the entering thread that does the work. Between two of them no byte
//!    leaves or enters a socket on our behalf. (Reads of files may go on, in buffers that are theirs alone.)
//! 2. What is asked is read by the kernel during the enter that follows. Sends in particular are
//!    over when that enter returns: they are told not to wait.
//!
//! What does not live here: what is worth asking, and what an answer means.

use super::names::{Key, Op, Tag};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue, types};
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Requests that one enter can take; more of them need another.
const REQUESTS: u32 = 512;
/// Answers that fit before the kernel has to put them aside, which costs it an allocation each.
const ANSWERS: u32 = 4096;
/// The group of buffers that receives choose from. There is one.
pub(super) const BUFFER_GROUP: u16 = 0;

/// An answer of the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) tag: Tag,
    /// A count or a mask, or the negated error number.
    pub(super) result: i32,
    /// The provided buffer that is ours from now on.
    pub(super) buffer: Option<u16>,
    /// The operation has ended: there will be no more answers.
    pub(super) is_last: bool,
}

pub(super) struct Queues {
    inner: IoUring,
    /// The ring belongs to a thread and takes requests.
    is_running: bool,
}

impl Queues {
    /// Opens a ring that belongs to nobody yet.
    pub(super) fn new() -> io::Result<Queues> {
        let inner = IoUring::builder()
            // A wait is the one moment to do the kernel's part: no interrupts in between.
            .setup_single_issuer()
            .setup_defer_taskrun()
            // The thread that opens a poller is not the one that waits.
            .setup_r_disabled()
            // A request that fails doesn't stop those behind it.
            .setup_submit_all()
            .setup_cqsize(ANSWERS)
            .build(REQUESTS)
            .map_err(explain)?;
        let ring = Queues {
            inner,
            is_running: false,
        };
        ring.probe_enter()?;
        Ok(ring)
    }

    /// Finds out now, and not when connections depend on it, that a filter lets rings be opened but
    /// not entered.
    fn probe_enter(&self) -> io::Result<()> {
        let flags = EnterFlags::empty().bits();
        // SAFETY: nothing is submitted and there is no argument to read.
        let result = unsafe {
            let no_argument: Option<&libc::sigset_t> = None;
            self.inner.submitter().enter(0, 0, flags, no_argument)
        };
        match result {
            // What the kernel says of a ring that doesn't run yet.
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => Ok(()),
            Err(error) => Err(explain(error)),
            Ok(_) => Ok(()),
        }
    }

    /// Tells the kernel about provided buffers.
    ///
    /// # Safety
    /// `entries` is page-aligned, holds `count` entries, and like the buffers they name it lives
    /// longer than the ring.
    pub(super) unsafe fn register_buffers(
        &self,
        entries: *const types::BufRingEntry,
        count: u16,
    ) -> io::Result<()> {
        // SAFETY: the caller's contract is this function's.
        let result = unsafe {
            self.inner.submitter().register_buf_ring_with_flags(
                entries.expose_provenance() as u64,
                count,
                BUFFER_GROUP,
                0,
            )
        };
        result.map_err(explain)
    }

    /// Binds the ring to this thread, the first time it is called.
    pub(super) fn start(&mut self) -> io::Result<()> {
        if !self.is_running {
            self.inner.submitter().register_enable_rings()?;
            self.is_running = true;
        }
        Ok(())
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Asks for one of the operations that stay armed. `events` is what a watch waits for beside
    /// the end of the connection.
    pub(super) fn arm(&mut self, tag: Tag, fd: RawFd, events: libc::c_short) -> io::Result<()> {
        let fd = types::Fd(fd);
        // The kernel's poll masks are these bits whatever their type here.
        let poll = |events: libc::c_short| opcode::PollAdd::new(fd, u32::from(events as u16));
        let entry = match tag.op {
            // Edges, not levels: once a peer has finished sending, a poll that ends when it fires
            // would fire again at once, for ever.
            Op::Watch => poll(events).multi(true).build(),
            Op::Room => poll(libc::POLLOUT).multi(true).build(),
            Op::Ready => poll(libc::POLLIN).build(),
            Op::Receive => opcode::RecvMulti::new(fd, BUFFER_GROUP).build(),
            Op::Send | Op::Read => unreachable!("what is done once is not armed"),
        };
        // SAFETY: polls name no memory, and receives only the registered buffers.
        unsafe { self.push(&entry.user_data(tag.to_bits())) }
    }

    /// Asks for the end of an operation. Answered only if there is nothing to end.
    pub(super) fn cancel(&mut self, tag: Tag) -> io::Result<()> {
        let name = Tag {
            is_cancel: true,
            ..tag
        };
        let entry = opcode::AsyncCancel::new(tag.to_bits())
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(name.to_bits());
        // SAFETY: the request names no memory.
        unsafe { self.push(&entry) }
    }

    /// Sends what fits at once. Answered only if that isn't all, with the count or the error.
    ///
    /// # Safety
    /// The bytes stay where they are until the enter that follows has returned.
    pub(super) unsafe fn send(&mut self, key: Key, fd: RawFd, bytes: &[u8]) -> io::Result<()> {
        // WAITALL makes a short send count as a failure, which is what is answered; DONTWAIT
        // leaves the rest to us.
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;
        let entry = opcode::Send::new(types::Fd(fd), bytes.as_ptr(), bytes.len() as u32)
            .flags(flags)
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(Tag::new(Op::Send, key).to_bits());
        // SAFETY: the caller keeps the bytes until the kernel has read them.
        unsafe { self.push(&entry) }
    }

    /// Reads a file into `buffer`, as much as there is and fits.
    ///
    /// # Safety
    /// The buffer stays where it is, and nobody looks at it, until the read has been answered.
    pub(super) unsafe fn read(
        &mut self,
        key: Key,
        fd: RawFd,
        buffer: &mut [u8],
        offset: u64,
    ) -> io::Result<()> {
        let size = u32::try_from(buffer.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let entry = opcode::Read::new(types::Fd(fd), buffer.as_mut_ptr(), size)
            .offset(offset)
            .build()
            .user_data(Tag::new(Op::Read, key).to_bits());
        // SAFETY: the caller keeps the buffer until the answer.
        unsafe { self.push(&entry) }
    }

    /// Queues a request; hands those before it to the kernel if there is no room.
    ///
    /// # Safety
    /// What the request names lives as long as the operation.
    unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: passed on to the caller.
        if unsafe { self.inner.submission().push(entry) }.is_ok() {
            return Ok(());
        }
        self.submit(0, EnterFlags::empty(), &types::SubmitArgs::new())?;
        // SAFETY: passed on to the caller.
        unsafe { self.inner.submission().push(entry) }
            .map_err(|_| io::Error::other("io_uring takes no more requests"))
    }

    /// Hands over all requests, does what the kernel has to do, and waits for an answer: at most as
    /// long as the limit says, not at all if it is zero.
    ///
    /// # Errors
    /// `Interrupted` by a signal. Whether everything was handed over is for
    /// [`Queues::is_settled`] to say.
    pub(super) fn enter(&mut self, limit: Option<Duration>, answers: u32) -> io::Result<()> {
        let needed = match limit {
            Some(Duration::ZERO) => 0,
            _ => answers,
        };
        let time = limit.map(|limit| types::Timespec::from(limit.min(LONGEST)));
        let mut arguments = types::SubmitArgs::new();
        if let Some(time) = time.as_ref().filter(|_| needed > 0) {
            arguments = arguments.timespec(time);
        }
        // Without GETEVENTS nothing that was deferred is run.
        match self.submit(needed, EnterFlags::GETEVENTS, &arguments) {
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => Ok(()),
            result => result,
        }
    }

    fn submit(
        &mut self,
        needed: u32,
        flags: EnterFlags,
        arguments: &types::SubmitArgs<'_, '_>,
    ) -> io::Result<()> {
        let count = self.inner.submission().len() as u32;
        let flags = (flags | EnterFlags::EXT_ARG).bits();
        // SAFETY: with EXT_ARG the argument is what `SubmitArgs` is a transparent wrapper of, and
        // all of the requests were made by `push`.
        let result = unsafe {
            self.inner
                .submitter()
                .enter(count, needed, flags, Some(arguments))
        };
        match result {
            // Short of memory, or of room for answers. Requests that are left say so.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => {
                Ok(())
            }
            result => result.map(drop),
        }
    }

    /// The kernel has read every request, and no answers are put aside for want of room.
    pub(super) fn is_settled(&mut self) -> bool {
        let requests = self.inner.submission();
        requests.is_empty() && !requests.cq_overflow()
    }

    /// The next answer.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Answer> {
        let entry = self.inner.completion().next()?;
        Some(Answer {
            tag: Tag::from_bits(entry.user_data()),
            result: entry.result(),
            buffer: cqueue::buffer_select(entry.flags()),
            is_last: !cqueue::more(entry.flags()),
        })
    }
}

/// The kernel adds a wait to its clock, which must not overflow. Longer ones are repeated.
const LONGEST: Duration = Duration::from_secs(1 << 30);

/// Says why there is no ring, for a person who asked for one.
fn explain(error: io::Error) -> io::Error {
    let (kind, reason) = match error.raw_os_error() {
        Some(libc::ENOSYS) => (
            io::ErrorKind::Unsupported,
            "this kernel has no io_uring, or a seccomp filter hides it",
        ),
        Some(libc::EPERM | libc::EACCES) => (
            io::ErrorKind::PermissionDenied,
            "io_uring is forbidden here, by a seccomp filter as containers have it or by \
             kernel.io_uring_disabled",
        ),
        Some(libc::EINVAL) => (
            io::ErrorKind::Unsupported,
            "io_uring is used as of Linux 6.1, and this kernel is older",
        ),
        _ => (error.kind(), "io_uring cannot be opened"),
    };
    io::Error::new(kind, format!("{reason} ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_reason() {
        use io::ErrorKind::{OutOfMemory, PermissionDenied, Unsupported};
        for (errno, kind, word) in [
            (libc::ENOSYS, Unsupported, "no io_uring"),
            (libc::EPERM, PermissionDenied, "forbidden"),
            (libc::EINVAL, Unsupported, "6.1"),
            (libc::ENOMEM, OutOfMemory, "cannot be opened"),
        ] {
            let error = explain(io::Error::from_raw_os_error(errno));
            assert_eq!(error.kind(), kind);
            let text = error.to_string();
            assert!(
                text.contains(word) && text.contains(&format!("os error {errno}")),
                "{text}"
            );
        }
    }
}
