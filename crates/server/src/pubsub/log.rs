//! Unsent messages of a worker's connections, in one protocol and in order of arrival.
//!
//! Each connection stores its own parts of the log. The log is cleared once all have been sent. A connection
//! that reads slowly keeps its parts alive: from then on the bytes are shared by reference, so that a
//! thousand slow readers of a channel hold one copy of their unread messages.

use std::ops::Range;

use keyspace::{Large, LargeValue};

use crate::limits::LOG_KEEP_BYTES;
use crate::request::Pinned;

/// Unsent messages in one protocol.
#[derive(Default)]
pub(crate) struct Log {
    /// Bytes, until they are shared.
    own: Vec<u8>,
    /// Bytes, once they are shared.
    shared: Option<LargeValue>,
    /// Payloads sent by reference, in order of position.
    large: Vec<Pinned>,
}

impl Log {
    /// Length in bytes, without large payloads.
    pub(crate) fn len(&self) -> usize {
        self.bytes().len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.shared {
            Some(shared) => shared,
            None => &self.own,
        }
    }

    /// Memory of the log, bytes.
    pub(crate) fn memory(&self) -> usize {
        self.own.capacity() + self.shared.as_ref().map_or(0, |shared| shared.len())
    }

    /// The payloads inside a part. A payload is never at its edge, because a message begins and ends with
    /// other bytes.
    pub(crate) fn large_in(&self, part: &Range<usize>) -> &[Pinned] {
        let first = self.large.partition_point(|pinned| pinned.at < part.start);
        let large = &self.large[first..];
        &large[..large.partition_point(|pinned| pinned.at < part.end)]
    }

    /// The bytes as a reference that outlives the log.
    pub(crate) fn share(&mut self) -> &LargeValue {
        let own = &mut self.own;
        self.shared
            .get_or_insert_with(|| LargeValue::new(std::mem::take(own).into()))
    }

    /// Appends messages and the payloads between them, whose positions count from `base`. Returns their
    /// range.
    pub(super) fn append(
        &mut self,
        messages: &[u8],
        large: &[Pinned],
        base: usize,
    ) -> Range<usize> {
        if let Some(shared) = self.shared.take() {
            // Other references may exist. Appending to them is rare enough for a copy.
            self.own = LargeValue::try_unwrap(shared)
                .map_or_else(|shared| shared.to_vec(), Large::into_buffer);
        }
        let from = self.own.len();
        self.own.extend_from_slice(messages);
        self.large.extend(large.iter().map(|pinned| Pinned {
            at: pinned.at - base + from,
            value: LargeValue::clone(&pinned.value),
        }));
        from..self.own.len()
    }

    /// Turns the message at `at` into a push of RESP3.
    pub(super) fn make_push(&mut self, at: usize) {
        self.own[at] = b'>';
    }

    /// Removes all bytes, once all are sent.
    pub(super) fn clear(&mut self) {
        self.shared = None;
        self.large.clear();
        self.own.clear();
        if self.own.capacity() > LOG_KEEP_BYTES {
            self.own = Vec::new();
        }
    }
}
