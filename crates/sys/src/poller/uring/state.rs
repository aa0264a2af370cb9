//! A poller's state: its slots, and what is on its way for them.

use super::buffers::{self, Buffers};
use super::crowd::Crowd;
use super::outbox::{Lingering, Outbox};
use super::queues::Queues;
use super::reads::Reads;
use super::slots::{Life, Slots};
use std::collections::VecDeque;
use std::fmt;
use std::io;

/// See [`super`].
pub(in crate::poller) struct Uring {
    /// Dropped before the memory it uses.
    pub(super) ring: Queues,
    pub(super) buffers: Buffers,
    pub(super) outbox: Outbox,
    pub(super) reads: Reads,
    pub(super) slots: Slots,
    /// Slots that may have an event, each once; the front is reported first.
    pub(super) listed: VecDeque<u32>,
    /// Slots whose operations may not be the wanted ones, each once.
    pub(super) dirty: Vec<u32>,
    pub(super) lingering: Lingering,
    pub(super) crowd: Crowd,
    pub(super) is_dead: bool,
    #[cfg(test)]
    pub(super) enters: usize,
}

impl Uring {
    /// Opens a poller, which will belong to the thread of its first wait, and receives into no more than
    /// about `memory` bytes.
    ///
    /// # Errors
    /// `Unsupported` and `PermissionDenied` with the reason for people; otherwise the kernel's.
    pub(in crate::poller) fn new(memory: usize) -> io::Result<Uring> {
        let wanted = memory / buffers::BUFFER_BYTES;
        let bounds = usize::from(buffers::LEAST_BUFFERS)..=usize::from(buffers::MAX_BUFFERS);
        // A power of two, like its bounds.
        let max = 1 << wanted.clamp(*bounds.start(), *bounds.end()).ilog2();
        Uring::with_buffers(buffers::FIRST_BUFFERS.min(max), max)
    }

    /// Bytes of memory that it has taken since it was opened, beside the allocator's.
    pub(in crate::poller) fn grown_bytes(&self) -> usize {
        self.buffers.grown_bytes()
    }

    pub(super) fn with_buffers(first: u16, max: u16) -> io::Result<Uring> {
        let ring = Queues::new()?;
        let buffers = Buffers::new(&ring, first, max)?;
        Ok(Uring {
            ring,
            buffers,
            outbox: Outbox::new(),
            reads: Reads::default(),
            slots: Slots::default(),
            listed: VecDeque::new(),
            dirty: Vec::new(),
            lingering: Lingering::default(),
            crowd: Crowd::default(),
            is_dead: false,
            #[cfg(test)]
            enters: 0,
        })
    }

    pub(super) fn end_lingering(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        slot.life = Life::Removed;
        slot.residue = Vec::new();
        slot.duplicate = None;
        self.lingering.remove(self.slots.key(index));
        self.has_changed(index);
    }

    /// Something about the slot is not as it was: it may have an event, and other operations than
    /// it needs.
    pub(super) fn has_changed(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        if !slot.is_listed {
            slot.is_listed = true;
            self.listed.push_back(index);
        }
        if !slot.is_dirty {
            slot.is_dirty = true;
            self.dirty.push(index);
        }
    }

    pub(super) fn has_dirtied(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        if !slot.is_dirty {
            slot.is_dirty = true;
            self.dirty.push(index);
        }
    }
}

impl fmt::Debug for Uring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uring")
            .field("slots", &self.slots.len())
            .field("is_dead", &self.is_dead)
            .finish_non_exhaustive()
    }
}
