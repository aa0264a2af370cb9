//! The memory that the kernel receives into: provided buffers, and the queues that what has arrived
//! waits in.
//!
//! ```text
//! entries  [ address, size, number | ... ]    a ring, the kernel takes from its front
//! bytes    [ buffer 0 | buffer 1 | ... ]      BUFFER_BYTES each
//! next     [ u16 | u16 | ... ]                links the buffers of a queue
//! ```
//!
//! The kernel uses the buffers in turn, so as many as are provided pass through the processor's
//! cache, however few bytes arrive. It starts with few, and whenever they turn out not to be enough,
//! there are twice as many. Memory of buffers that were never provided is never touched.
//!
//! Invariants:
//! 1. A buffer is either provided, or in exactly one queue. Provided ones are the kernel's.
//! 2. What is provided becomes visible to the kernel with [`Buffers::publish`].
//!
//! What does not live here: whose bytes they are.

use super::queues::Queues;
use io_uring::types::BufRingEntry;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// Bytes of one buffer. A deep pipeline's requests arrive in one or two; the address space for all
/// of them is 8 MiB.
pub(super) const BUFFER_BYTES: usize = 8 * 1024;
/// Buffers at the beginning: half a megabyte.
pub(super) const FIRST_BUFFERS: u16 = 64;
/// Buffers at most; a power of two. When they are all in queues, sockets are read without them.
pub(super) const MAX_BUFFERS: u16 = 1024;
/// Buffers at most where memory is scarce: as many, so that two connections can be read ahead.
pub(super) const LEAST_BUFFERS: u16 = 16;

const _: () = assert!(MAX_BUFFERS.is_power_of_two() && FIRST_BUFFERS <= MAX_BUFFERS);
const _: () = assert!(BUFFER_BYTES <= u16::MAX as usize);

/// Buffers that have arrived for one descriptor, in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    head: u16,
    tail: u16,
    count: u16,
    /// Bytes of the first buffer that are gone.
    offset: u16,
}

impl Queue {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Buffers in it.
    pub(super) fn count(&self) -> u16 {
        self.count
    }
}

pub(super) struct Buffers {
    entries: Mapping,
    bytes: Mapping,
    /// The buffer behind this one in its queue.
    next: Box<[u16]>,
    /// Bytes in this buffer.
    sizes: Box<[u16]>,
    /// Where the next entry goes; counts on without end.
    tail: u16,
    /// Buffers that are in use, provided or in queues: the first ones.
    active: u16,
    /// As many were in use in the beginning.
    first: u16,
    /// Buffers that are in queues.
    queued: u16,
}

impl Buffers {
    /// Maps room for `max` buffers, a power of two, and provides the ring with the first of them.
    pub(super) fn new(ring: &Queues, first: u16, max: u16) -> io::Result<Buffers> {
        assert!(max.is_power_of_two() && (1..=max).contains(&first));
        let mut buffers = Buffers {
            entries: Mapping::new(usize::from(max) * size_of::<BufRingEntry>())?,
            bytes: Mapping::new(usize::from(max) * BUFFER_BYTES)?,
            next: vec![0; max.into()].into_boxed_slice(),
            sizes: vec![0; max.into()].into_boxed_slice(),
            tail: 0,
            active: 0,
            first,
            queued: 0,
        };
        // SAFETY: a mapping begins at a page, and this one holds `max` entries. The poller drops
        // its ring before its buffers.
        unsafe { ring.register_buffers(buffers.first_entry(), max)? };
        buffers.provide_up_to(first);
        buffers.publish();
        Ok(buffers)
    }

    fn first_entry(&self) -> *mut BufRingEntry {
        self.entries.start.as_ptr().cast()
    }

    /// Provides more buffers, if there are more.
    pub(super) fn grow(&mut self) -> bool {
        let max = self.next.len() as u16;
        let can_grow = self.active < max;
        if can_grow {
            self.provide_up_to(max.min(self.active * 2));
        }
        can_grow
    }

    /// Bytes of the buffers that came into use since the beginning.
    pub(super) fn grown_bytes(&self) -> usize {
        usize::from(self.active - self.first) * BUFFER_BYTES
    }

    /// Enough buffers are provided for a receive not to end at once for want of one.
    pub(super) fn has_spare(&self) -> bool {
        self.active - self.queued > self.active / 4
    }

    fn provide_up_to(&mut self, count: u16) {
        for buffer in self.active..count {
            self.provide(buffer);
        }
        self.active = count;
    }

    fn provide(&mut self, buffer: u16) {
        let mask = self.next.len() as u16 - 1;
        let start = self.buffer_start(buffer);
        // SAFETY: masked, the index is one of the entries. The kernel doesn't look at it before
        // the tail says so, and the tail itself, which lies in the first entry, isn't touched.
        let entry = unsafe { &mut *self.first_entry().add((self.tail & mask).into()) };
        entry.set_addr(start.expose_provenance() as u64);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Lets the kernel see what was provided.
    pub(super) fn publish(&mut self) {
        // SAFETY: the pointer is to the first entry, whose field is aligned; the kernel reads it
        // while we write it, as both do atomically.
        let tail = unsafe {
            let tail = BufRingEntry::tail(self.first_entry());
            AtomicU16::from_ptr(tail.cast_mut())
        };
        tail.store(self.tail, Ordering::Release);
    }

    /// Takes back a buffer that nobody wants to read.
    pub(super) fn give_back(&mut self, buffer: u16) {
        self.provide(buffer);
    }

    /// Puts a buffer that the kernel has filled behind the others of a queue.
    #[inline]
    pub(super) fn append(&mut self, queue: &mut Queue, buffer: u16, size: usize) {
        assert!(buffer < self.active && (1..=BUFFER_BYTES).contains(&size));
        self.sizes[usize::from(buffer)] = size as u16;
        if queue.is_empty() {
            queue.head = buffer;
            queue.offset = 0;
        } else {
            self.next[usize::from(queue.tail)] = buffer;
        }
        queue.tail = buffer;
        queue.count += 1;
        self.queued += 1;
    }

    /// Hands the bytes at the front of a queue to `put`, piece by piece and `room` at most, and
    /// provides the buffers that this empties. Returns their number.
    #[inline]
    pub(super) fn take(
        &mut self,
        queue: &mut Queue,
        room: usize,
        mut put: impl FnMut(&[u8]),
    ) -> usize {
        let mut taken = 0;
        while taken < room && !queue.is_empty() {
            let left = usize::from(self.sizes[usize::from(queue.head)] - queue.offset);
            let count = left.min(room - taken);
            // SAFETY: the buffer is in a queue, so the kernel has written this many bytes of it and
            // is done with it; nobody writes it before it is provided again.
            put(unsafe {
                let start = self.buffer_start(queue.head).add(queue.offset.into());
                std::slice::from_raw_parts(start, count)
            });
            taken += count;
            queue.offset += count as u16;
            if count == left {
                self.provide_first(queue);
            }
        }
        taken
    }

    /// Throws away what is in a queue.
    pub(super) fn clear(&mut self, queue: &mut Queue) {
        while !queue.is_empty() {
            self.provide_first(queue);
        }
    }

    fn provide_first(&mut self, queue: &mut Queue) {
        let buffer = queue.head;
        queue.head = self.next[usize::from(buffer)];
        queue.offset = 0;
        queue.count -= 1;
        self.queued -= 1;
        self.provide(buffer);
    }

    fn buffer_start(&self, buffer: u16) -> *mut u8 {
        let offset = usize::from(buffer) * BUFFER_BYTES;
        assert!(offset < self.bytes.size);
        // SAFETY: the offset lies within the mapping.
        unsafe { self.bytes.start.as_ptr().add(offset) }
    }

    /// Buffers in queues, and buffers in use.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (u16, u16) {
        (self.queued, self.active)
    }
}

/// Memory straight from the system: it begins at a page, and what is never touched costs nothing.
struct Mapping {
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: memory belongs to no thread.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(size: usize) -> io::Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the system chooses the place, so nothing that exists is mapped over.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), size, access, kind, -1, 0) };
        match NonNull::new(start.cast()) {
            Some(start) if start.as_ptr() != libc::MAP_FAILED.cast() => Ok(Mapping { start, size }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is a whole mapping, and nobody refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.size) };
    }
}
