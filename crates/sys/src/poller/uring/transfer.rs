//! Moving bytes between the caller and what the kernel has received or is to send, or past both of
//! them.

use super::names::Key;
use super::outbox::COPY_BYTES;
use super::slots::Mode;
use super::state::Uring;
use crate::poller::event::{FinishedRead, MAX_SLICES};
use crate::poller::transfer;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Who has room for so many bytes in a buffer of their own receives a large request, and the next may be as
/// large: it goes there at once, and not by way of provided buffers.
const BULK_BYTES: usize = 16 * 1024;

impl Uring {
    #[inline]
    pub(in crate::poller) fn recv(
        &mut self,
        fd: BorrowedFd<'_>,
        buf: &mut [u8],
    ) -> io::Result<usize> {
        assert!(!buf.is_empty(), "a receive needs room");
        let Some(index) = self.slots.find(fd.as_raw_fd()) else {
            return transfer::recv(fd, buf);
        };
        let queue = &mut self.slots[index].queue;
        if queue.is_empty() {
            let room = buf.len();
            return self.recv_on_demand(index, room, false, || transfer::recv(fd, buf));
        }
        let mut at = 0;
        let count = self.buffers.take(queue, buf.len(), |bytes| {
            buf[at..][..bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        });
        self.has_taken(index);
        Ok(count)
    }

    #[inline]
    pub(in crate::poller) fn recv_spare(
        &mut self,
        fd: BorrowedFd<'_>,
        buf: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let room = buf.capacity() - buf.len();
        assert!(room > 0, "a receive needs room");
        let Some(index) = self.slots.find(fd.as_raw_fd()) else {
            return transfer::recv_spare(fd, buf);
        };
        let is_bulk = room >= BULK_BYTES;
        let slot = &mut self.slots[index];
        if is_bulk && slot.mode == Mode::Ahead {
            slot.mode = Mode::OnDemand;
            self.has_dirtied(index);
        }
        let queue = &mut self.slots[index].queue;
        if queue.is_empty() {
            return self.recv_on_demand(index, room, is_bulk, || transfer::recv_spare(fd, buf));
        }
        let count = self
            .buffers
            .take(queue, room, |bytes| buf.extend_from_slice(bytes));
        self.has_taken(index);
        Ok(count)
    }

    /// Some of a queue is gone. Behind the last of it there may be more, which has to be asked for
    /// where it doesn't come by itself.
    #[inline]
    fn has_taken(&mut self, index: u32) {
        let slot = &self.slots[index];
        if slot.queue.is_empty() && slot.mode == Mode::OnDemand {
            self.has_dirtied(index);
        }
    }

    /// Nothing has arrived here; the socket may know more.
    #[inline(never)]
    fn recv_on_demand(
        &mut self,
        index: u32,
        room: usize,
        is_bulk: bool,
        recv: impl FnOnce() -> io::Result<usize>,
    ) -> io::Result<usize> {
        let slot = &mut self.slots[index];
        if slot.recv_error != 0 {
            let errno = std::mem::take(&mut slot.recv_error);
            return Err(io::Error::from_raw_os_error(errno));
        }
        let result = recv();
        let is_drained = match &result {
            Ok(count) => *count < room,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        if is_drained {
            slot.is_ready = false;
            let may_be_ahead = !is_bulk && !slot.is_no_stream && self.buffers.has_spare();
            if slot.mode == Mode::OnDemand && may_be_ahead {
                slot.mode = Mode::Ahead;
            }
        }
        self.has_dirtied(index);
        result
    }

    #[inline]
    pub(in crate::poller) fn send(&mut self, fd: BorrowedFd<'_>, buf: &[u8]) -> io::Result<usize> {
        let size = buf.len();
        self.take_or_send(fd, size, &[IoSlice::new(buf)], || transfer::send(fd, buf))
    }

    #[inline]
    pub(in crate::poller) fn send_vectored(
        &mut self,
        fd: BorrowedFd<'_>,
        bufs: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        let bufs = &bufs[..bufs.len().min(MAX_SLICES)];
        let size = bufs.iter().map(|buf| buf.len()).sum();
        self.take_or_send(fd, size, bufs, || transfer::send_vectored(fd, bufs))
    }

    pub(in crate::poller) fn send_file(
        &mut self,
        fd: BorrowedFd<'_>,
        file: BorrowedFd<'_>,
        offset: u64,
        count: usize,
    ) -> io::Result<usize> {
        let send = || transfer::send_file(fd, file, offset, count);
        match self.slots.find(fd.as_raw_fd()) {
            Some(index) => self.send_at_once(index, count, send),
            None => send(),
        }
    }

    /// Copies what is short, for the next wait to send; sends the rest at once, behind what was
    /// copied before.
    #[inline]
    fn take_or_send(
        &mut self,
        fd: BorrowedFd<'_>,
        size: usize,
        parts: &[IoSlice<'_>],
        send: impl FnOnce() -> io::Result<usize>,
    ) -> io::Result<usize> {
        let Some(index) = self.slots.find(fd.as_raw_fd()) else {
            return send();
        };
        let slot = &mut self.slots[index];
        let is_clear = !slot.is_full && !slot.is_broken && slot.residue.is_empty();
        let is_stream = !slot.is_no_stream && self.ring.is_running();
        if is_clear
            && is_stream
            && (1..=COPY_BYTES).contains(&size)
            && self.outbox.append(index, &mut slot.staged, size, parts)
        {
            return Ok(size);
        }
        self.send_at_once(index, size, send)
    }

    #[inline(never)]
    fn send_at_once(
        &mut self,
        index: u32,
        size: usize,
        send: impl FnOnce() -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.send_staged(index);
        self.slots[index].flush();
        let slot = &mut self.slots[index];
        let result = if slot.send_error != 0 {
            let errno = std::mem::take(&mut slot.send_error);
            Err(io::Error::from_raw_os_error(errno))
        } else if slot.residue.is_empty() {
            send()
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        };
        slot.is_full = match &result {
            Ok(count) => *count < size,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        self.has_changed(index);
        result
    }

    /// Sends now what would leave with the next wait.
    pub(super) fn send_staged(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        let staged = std::mem::take(&mut slot.staged);
        if staged.size == 0 || self.is_dead {
            return;
        }
        self.outbox.withdraw(index);
        slot.send_or_keep(self.outbox.bytes(staged));
    }

    /// See [`crate::poller::Poller::read_file`].
    pub(in crate::poller) fn read_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        mut buffer: Vec<u8>,
        token: u64,
    ) -> Result<(), Vec<u8>> {
        if self.is_dead || !self.ring.is_running() {
            return Err(buffer);
        }
        let Some(index) = self.reads.reserve() else {
            return Err(buffer);
        };
        let key = Key {
            index,
            generation: 0,
        };
        // SAFETY: the buffer stays where it is, and is nobody's, until the answer.
        let asked = unsafe { self.ring.read(key, file.as_raw_fd(), &mut buffer, offset) };
        if asked.is_err() {
            self.reads.free.push(index);
            return Err(buffer);
        }
        self.reads.under_way[index as usize] = Some((token, buffer));
        Ok(())
    }

    /// See [`crate::poller::Poller::finished_read`].
    pub(in crate::poller) fn finished_read(&mut self) -> Option<FinishedRead> {
        self.reads.finished.pop_front()
    }
}
