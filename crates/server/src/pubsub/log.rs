//! The messages that connections of a worker have yet to be sent, in one protocol and in the order in which
//! they came.
//!
//! Each connection knows its own parts of the log. Once all have been sent theirs, it starts anew. A
//! connection that is slow to read keeps its parts alive: from then on the bytes belong to all who need them,
//! so that a thousand slow readers of a channel hold one copy of what they have not read.

use std::ops::Range;

use keyspace::{Large, LargeValue};

use crate::limits::LOG_KEEP_BYTES;
use crate::request::Pinned;

/// See the module.
#[derive(Default)]
pub(crate) struct Log {
    /// The bytes, until they are shared.
    own: Vec<u8>,
    /// The bytes, once they are.
    shared: Option<LargeValue>,
    /// Payloads that belong between the bytes, in order of position.
    large: Vec<Pinned>,
}

impl Log {
    /// Bytes in it, large payloads aside.
    pub(crate) fn len(&self) -> usize {
        self.bytes().len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.shared {
            Some(shared) => shared,
            None => &self.own,
        }
    }

    /// Room that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.own.capacity() + self.shared.as_ref().map_or(0, |shared| shared.len())
    }

    /// The payloads inside a part. A payload is never at its edge: a message begins and ends with other
    /// bytes.
    pub(crate) fn large_in(&self, part: &Range<usize>) -> &[Pinned] {
        let first = self.large.partition_point(|pinned| pinned.at < part.start);
        let large = &self.large[first..];
        &large[..large.partition_point(|pinned| pinned.at < part.end)]
    }

    /// The bytes as something that outlives the log.
    pub(crate) fn share(&mut self) -> &LargeValue {
        let own = &mut self.own;
        self.shared
            .get_or_insert_with(|| LargeValue::new(std::mem::take(own).into()))
    }

    /// Appends messages, and the payloads that belong between them as seen from `base`. Returns where they
    /// are.
    pub(super) fn append(
        &mut self,
        messages: &[u8],
        large: &[Pinned],
        base: usize,
    ) -> Range<usize> {
        if let Some(shared) = self.shared.take() {
            // Others may be reading the old bytes; appending to them is rare enough to copy them.
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

    /// Makes a message that begins at `at` a push of RESP3.
    pub(super) fn make_push(&mut self, at: usize) {
        self.own[at] = b'>';
    }

    /// Starts anew, once everybody has been sent everything.
    pub(super) fn clear(&mut self) {
        self.shared = None;
        self.large.clear();
        self.own.clear();
        if self.own.capacity() > LOG_KEEP_BYTES {
            self.own = Vec::new();
        }
    }
}
