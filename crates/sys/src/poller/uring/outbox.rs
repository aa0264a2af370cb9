//! Bytes on their way out: copies of what was sent since the last enter, and the order in which
//! removed connections may still get rid of theirs.
//!
//! A copy saves the system call of its own that the send would be: the kernel reads all of them
//! during the next enter. It costs about as much as that call from [`COPY_BYTES`] on, so nothing
//! longer is copied.

use super::names::Key;
use super::slots::Staged;
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
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds one, unless there are too many.
    pub(super) fn add(&mut self, key: Key, now: Instant) -> bool {
        let has_room = self.ends.len() < MAX_LINGERING;
        if has_room {
            self.ends.push_back((now + LINGER, key));
        }
        has_room
    }

    pub(super) fn remove(&mut self, key: Key) {
        self.ends.retain(|&(_, other)| other != key);
    }

    /// When the oldest has had its time.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.ends.front().map(|&(end, _)| end)
    }

    /// Removes the oldest if it has had its time.
    pub(super) fn pop_ended(&mut self, now: Instant) -> Option<Key> {
        let (_, key) = *self.ends.front().filter(|&&(end, _)| end <= now)?;
        self.ends.pop_front();
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_go_behind_each_other_or_not_at_all() {
        let mut outbox = Outbox::new();
        let (mut one, mut other) = (Staged::default(), Staged::default());
        let add = |outbox: &mut Outbox, index, staged: &mut Staged, parts: [&[u8]; 2]| {
            let size = parts.iter().map(|part| part.len()).sum();
            outbox.append(index, staged, size, &parts.map(IoSlice::new))
        };
        assert!(add(&mut outbox, 1, &mut one, [b"a", b"b"]));
        assert!(add(&mut outbox, 1, &mut one, [b"", b"c"]));
        assert!(add(&mut outbox, 2, &mut other, [b"x", b""]));
        // Something else is behind the first.
        assert!(!add(&mut outbox, 1, &mut one, [b"d", b""]));
        assert!(!add(&mut outbox, 2, &mut other, [&[0; COPY_BYTES], b""]));
        assert!(add(&mut outbox, 2, &mut other, [&[0; COPY_BYTES - 1], b""]));
        assert!(!add(&mut outbox, 2, &mut other, [b"", b"y"]));
        assert_eq!(outbox.bytes(one), b"abc");
        assert_eq!(outbox.bytes(other).len(), COPY_BYTES);
        assert_eq!(outbox.senders(), [1, 2]);
        outbox.withdraw(1);
        assert_eq!(outbox.senders(), [2]);
        let senders = outbox.reset();
        outbox.put_back(senders);
        assert!(outbox.senders().is_empty());
    }

    #[test]
    fn the_outbox_is_bounded() {
        let mut outbox = Outbox::new();
        let block = [7; COPY_BYTES];
        for index in 0..(OUTBOX_BYTES / COPY_BYTES) as u32 {
            let mut staged = Staged::default();
            assert!(outbox.append(index, &mut staged, COPY_BYTES, &[IoSlice::new(&block)]));
        }
        assert!(!outbox.append(99, &mut Staged::default(), 1, &[IoSlice::new(b"x")]));
    }

    #[test]
    fn those_that_linger_end_in_turn() {
        let key = |index| Key {
            index,
            generation: 0,
        };
        let mut lingering = Lingering::default();
        let start = Instant::now();
        for index in 0..MAX_LINGERING as u32 {
            let later = Duration::from_millis(index.into());
            assert!(lingering.add(key(index), start + later));
        }
        assert!(!lingering.add(key(9_999), start));
        lingering.remove(key(1));
        assert!(lingering.add(key(9_999), start + LINGER));
        assert_eq!(lingering.next_end(), Some(start + LINGER));
        let end = start + LINGER + Duration::from_millis(2);
        assert_eq!(lingering.pop_ended(end - Duration::from_millis(3)), None);
        assert_eq!(lingering.pop_ended(end), Some(key(0)));
        assert_eq!(lingering.pop_ended(end), Some(key(2)));
        assert_eq!(lingering.pop_ended(end), None);
    }
}
