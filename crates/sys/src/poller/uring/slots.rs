//! What is known about each descriptor, and what follows from it: the events to report and the
//! operations that the kernel should have.
//!
//! A slot's operations are never ordered one by one: its state says which it wants
//! ([`Slot::wanted`]), and before each enter those are armed and the others cancelled. A slot lives
//! until its last operation has ended, also when its descriptor was removed long ago; until then its
//! index belongs to nobody else.

use super::buffers::Queue;
use super::names::{Key, Op};
use crate::poller::event::{Event, Interest};
use crate::poller::transfer;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// A set of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ops(u8);

impl Ops {
    pub(super) const NONE: Ops = Ops(0);

    pub(super) fn contains(self, op: Op) -> bool {
        self.0 & 1 << op as u8 != 0
    }

    pub(super) fn insert(&mut self, op: Op) {
        self.0 |= 1 << op as u8;
    }

    pub(super) fn remove(&mut self, op: Op) {
        self.0 &= !(1 << op as u8);
    }
}

/// How a descriptor is received from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The kernel receives ahead, into provided buffers.
    Ahead,
    /// The kernel says when there is something, and it is received with a system call: because
    /// more arrives than is taken, because there are no buffers, or because it is no connected
    /// socket.
    OnDemand,
    /// It is a waker: it rings and is never read.
    Waker,
}

/// How far a slot is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Not in use.
    Free,
    /// The caller knows it.
    Registered,
    /// Removed with bytes that were taken but not sent yet.
    Lingering,
    /// Removed; its operations have to end.
    Removed,
}

/// Bytes of the outbox that are a slot's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Staged {
    pub(super) start: usize,
    pub(super) size: usize,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) generation: u32,
    pub(super) token: u64,
    pub(super) fd: RawFd,
    pub(super) life: Life,
    pub(super) mode: Mode,
    pub(super) interest: Interest,
    /// Operations that have not ended.
    pub(super) armed: Ops,
    /// Those of them that were told to.
    pub(super) cancelling: Ops,
    /// In the list of slots that may have an event.
    pub(super) is_listed: bool,
    /// In the list of slots whose operations may not be the wanted ones.
    pub(super) is_dirty: bool,
    /// It can be received from without buffers only.
    pub(super) is_no_stream: bool,
    /// There is something, though nothing was received: a waker rang, or [`Op::Ready`] says so.
    pub(super) is_ready: bool,
    /// The peer has finished sending, or receiving has failed. Bytes may still wait.
    pub(super) is_ended: bool,
    /// Nothing that is sent will arrive.
    pub(super) is_broken: bool,
    /// The last send found no room.
    pub(super) is_full: bool,
    /// The window of events in which it last had one.
    pub(super) window: u32,
    /// What has arrived.
    pub(super) queue: Queue,
    /// What leaves with the next enter.
    pub(super) staged: Staged,
    /// What was taken and has not left for want of room.
    pub(super) residue: Vec<u8>,
    /// The error number to report from the next receive, or 0.
    pub(super) recv_error: i32,
    /// The error number to report from the next send, or 0.
    pub(super) send_error: i32,
    /// What keeps the socket open after its removal.
    pub(super) duplicate: Option<OwnedFd>,
}

impl Slot {
    fn new() -> Slot {
        Slot {
            generation: 0,
            token: 0,
            fd: -1,
            life: Life::Free,
            mode: Mode::Ahead,
            interest: Interest::NONE,
            armed: Ops::NONE,
            cancelling: Ops::NONE,
            is_listed: false,
            is_dirty: false,
            is_no_stream: false,
            is_ready: false,
            is_ended: false,
            is_broken: false,
            is_full: false,
            window: 0,
            queue: Queue::default(),
            staged: Staged::default(),
            residue: Vec::new(),
            recv_error: 0,
            send_error: 0,
            duplicate: None,
        }
    }

    /// The descriptor.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        assert!(matches!(self.life, Life::Registered | Life::Lingering));
        // SAFETY: a registered descriptor is open, as it is removed before it is closed; that of a
        // lingering slot is the slot's own.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }

    /// What a watch waits for beside hangups.
    pub(super) fn watched_events(&self) -> libc::c_short {
        match self.mode {
            Mode::Waker => libc::POLLIN,
            Mode::Ahead | Mode::OnDemand => libc::POLLRDHUP,
        }
    }

    /// The event to report, if there is one.
    #[inline]
    pub(super) fn event(&self) -> Option<Event> {
        if self.life != Life::Registered {
            return None;
        }
        let has_input =
            !self.queue.is_empty() || self.is_ready || self.is_ended || self.recv_error != 0;
        let readable = self.interest.readable && has_input;
        let writable = self.interest.writable && !self.is_full && self.residue.is_empty();
        let hangup = self.is_broken;
        let finished = self.interest.ends && self.is_ended;
        (readable || writable || hangup || finished).then_some(Event {
            token: self.token,
            readable,
            writable,
            hangup,
            finished,
        })
    }

    /// The operations that the kernel should have.
    pub(super) fn wanted(&self) -> Ops {
        let mut wanted = Ops::NONE;
        match self.life {
            Life::Free | Life::Removed => return wanted,
            Life::Lingering => {
                wanted.insert(Op::Room);
                return wanted;
            }
            Life::Registered => {}
        }
        if !self.is_broken {
            wanted.insert(Op::Watch);
        }
        if self.is_full && (self.interest.writable || !self.residue.is_empty()) {
            wanted.insert(Op::Room);
        }
        if self.interest.readable && !self.is_ended {
            match self.mode {
                Mode::Ahead => wanted.insert(Op::Receive),
                Mode::OnDemand if self.queue.is_empty() && !self.is_ready => {
                    wanted.insert(Op::Ready);
                }
                Mode::OnDemand | Mode::Waker => {}
            }
        }
        wanted
    }

    /// Tries to send the residue.
    pub(super) fn flush(&mut self) {
        if !self.residue.is_empty() {
            let residue = std::mem::take(&mut self.residue);
            self.send_or_keep(&residue);
        }
    }

    /// Sends the bytes, which are the next in order, and keeps those that don't fit.
    pub(super) fn send_or_keep(&mut self, bytes: &[u8]) {
        assert!(self.residue.is_empty(), "the residue goes first");
        let sent = match transfer::send(self.fd(), bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return self.break_off(error.raw_os_error().unwrap_or(libc::EIO)),
        };
        self.is_full = sent < bytes.len();
        if self.is_full {
            self.residue = bytes[sent..].to_vec();
        }
    }

    /// A send has failed for good.
    pub(super) fn break_off(&mut self, errno: i32) {
        self.residue = Vec::new();
        self.send_error = errno;
        self.is_broken = true;
        self.is_full = false;
    }

    /// Everything the kernel had for the slot is over.
    fn is_over(&self) -> bool {
        self.life == Life::Removed && self.armed == Ops::NONE
    }
}

/// The slots of a poller.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// In blocks that never move: growing copies nothing and leaves nothing behind.
    blocks: Vec<Box<[Slot]>>,
    /// Slots that were ever given out.
    len: usize,
    free: Vec<u32>,
    /// The slot of each descriptor, by its number; [`NOBODY`] if it is not registered.
    by_fd: Vec<u32>,
}

const NOBODY: u32 = u32::MAX;
/// Slots in a block.
const BLOCK: usize = 128;

impl Slots {
    /// Gives a descriptor a slot. `None` if it has one.
    pub(super) fn add(&mut self, fd: RawFd) -> Option<(u32, &mut Slot)> {
        let at = usize::try_from(fd).expect("a descriptor is not negative");
        if self.by_fd.len() <= at {
            self.by_fd.resize(at + 1, NOBODY);
        }
        if self.by_fd[at] != NOBODY {
            return None;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            if self.len.is_multiple_of(BLOCK) {
                self.blocks.push((0..BLOCK).map(|_| Slot::new()).collect());
            }
            self.len += 1;
            u32::try_from(self.len - 1).expect("descriptors are fewer")
        });
        self.by_fd[at] = index;
        let slot = &mut self[index];
        slot.fd = fd;
        slot.life = Life::Registered;
        Some((index, slot))
    }

    /// The slot of a registered descriptor.
    #[inline]
    pub(super) fn find(&self, fd: RawFd) -> Option<u32> {
        let index = *self.by_fd.get(usize::try_from(fd).ok()?)?;
        (index != NOBODY).then_some(index)
    }

    /// Makes a descriptor's number free for another slot, and the slot one that is removed.
    pub(super) fn forget(&mut self, fd: RawFd) -> Option<u32> {
        let index = self.find(fd)?;
        self.by_fd[fd as usize] = NOBODY;
        self[index].life = Life::Removed;
        Some(index)
    }

    /// Makes the slot free for another descriptor if nothing of it is left.
    pub(super) fn release_if_over(&mut self, index: u32) {
        let slot = &mut self[index];
        if slot.is_over() {
            *slot = Slot {
                generation: slot.generation.wrapping_add(1) & Key::GENERATION_MASK,
                is_listed: slot.is_listed,
                is_dirty: slot.is_dirty,
                ..Slot::new()
            };
            self.free.push(index);
        }
    }

    /// The slot that an answer is for, unless it is gone.
    #[inline]
    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Slot> {
        let (block, at) = (key.index as usize / BLOCK, key.index as usize % BLOCK);
        let slot = &mut self.blocks.get_mut(block)?[at];
        (slot.generation == key.generation && slot.life != Life::Free).then_some(slot)
    }

    pub(super) fn key(&self, index: u32) -> Key {
        let generation = self[index].generation;
        Key { index, generation }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.blocks.iter_mut().flatten().take(self.len)
    }

    /// Slots that are in use.
    pub(super) fn len(&self) -> usize {
        self.len - self.free.len()
    }
}

impl std::ops::Index<u32> for Slots {
    type Output = Slot;

    #[inline]
    fn index(&self, index: u32) -> &Slot {
        &self.blocks[index as usize / BLOCK][index as usize % BLOCK]
    }
}

impl std::ops::IndexMut<u32> for Slots {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.blocks[index as usize / BLOCK][index as usize % BLOCK]
    }
}
