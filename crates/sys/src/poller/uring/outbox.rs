//! Bytes on their way out: copies of what was sent since the last enter, and the order in which
//! removed connections may still get rid of theirs.
//!
//! A copy saves the system call of its own that the send would be: the kernel reads all of them
//! during the next enter. It costs about as much as that call from [`COPY_BYTES`] on, so nothing
//! longer is copied.

use super::slots::{Key, Staged};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::time::{Duration, Instant};

/// The most bytes that are copied for one descriptor between two enters.
pub(super) const COPY_BYTES: usize = 4 * 1024;
/// Room for the copies of all descriptors.
const OUTBOX_BYTES: usize = 256 * 1024;
/// How long a removed connection may take to read what was already taken for it.
pub(super) const LINGER: Duration = Duration::from_secs(30);
/// Removed connections that may do so at a time; of others the rest is lost.
pub(super) const MAX_LINGERING: usize = 256;

pub(super) struct Outbox {
    bytes: Box<[u8]>,
    used: usize,
    /// Whose they are.
    senders: Vec<u32>,
}

impl Outbox {
    pub(super) fn new() -> Outbox {
        Outbox {
            bytes: vec![0; OUTBOX_BYTES].into_boxed_slice(),
            used: 0,
            senders: Vec::new(),
        }
    }

    /// Copies `size` bytes behind those that the slot has here, unless they would be too many or
    /// something else is behind those.
    #[inline]
    pub(super) fn append(
        &mut self,
        index: u32,
        staged: &mut Staged,
        size: usize,
        parts: &[IoSlice<'_>],
    ) -> bool {
        let is_first = staged.size == 0;
        let is_last = staged.start + staged.size == self.used;
        let fits = staged.size + size <= COPY_BYTES && self.used + size <= self.bytes.len();
        if !fits || !(is_first || is_last) {
            return false;
        }
        if is_first {
            staged.start = self.used;
            self.senders.push(index);
        }
        for part in parts {
            self.bytes[self.used..][..part.len()].copy_from_slice(part);
            self.used += part.len();
        }
        staged.size += size;
        true
    }

    #[inline]
    pub(super) fn bytes(&self, staged: Staged) -> &[u8] {
        &self.bytes[staged.start..][..staged.size]
    }

    pub(super) fn senders(&self) -> &[u32] {
        &self.senders
    }

    /// Takes a sender out: its bytes go another way.
    pub(super) fn withdraw(&mut self, index: u32) {
        // Nearly always that of the last send.
        if let Some(at) = self.senders.iter().rposition(|&sender| sender == index) {
            self.senders.swap_remove(at);
        }
    }

    /// Forgets the bytes, which are gone, and returns the list of senders to be emptied and given
    /// back.
    pub(super) fn reset(&mut self) -> Vec<u32> {
        self.used = 0;
        std::mem::take(&mut self.senders)
    }

    pub(super) fn put_back(&mut self, mut senders: Vec<u32>) {
        senders.clear();
        self.senders = senders;
    }
}

/// Removed connections with bytes that the peer is slow to read, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    ends: VecDeque<(Instant, Key)>,
}

impl Lingering {
    pub(super) fn has_room(&self) -> bool {
        self.ends.len() < MAX_LINGERING
    }

    pub(super) fn add(&mut self, key: Key) {
        self.ends.push_back((Instant::now() + LINGER, key));
    }

    pub(super) fn remove(&mut self, key: Key) {
        self.ends.retain(|&(_, other)| other != key);
    }

    /// How long until the oldest has had its time; `None` if there is none.
    pub(super) fn next_end(&self) -> Option<Duration> {
        let (end, _) = self.ends.front()?;
        Some(end.saturating_duration_since(Instant::now()))
    }

    /// Removes the oldest if it has had its time.
    pub(super) fn pop_ended(&mut self) -> Option<Key> {
        if self.next_end()? > Duration::ZERO {
            return None;
        }
        Some(self.ends.pop_front()?.1)
    }
}
