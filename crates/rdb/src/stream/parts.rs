//! The parts of a stream.

use std::fmt;
use std::io::Write;

use crate::packed::Cell;

/// The ID of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Unix, ms.
    pub ms: u64,
    /// Number among those of one time.
    pub seq: u64,
}

impl StreamId {
    /// The ID before this one. The least has none, and gives itself.
    pub fn before(self) -> StreamId {
        match (self.ms.checked_sub(1), self.seq.checked_sub(1)) {
            (_, Some(seq)) => StreamId { seq, ..self },
            (Some(ms), None) => StreamId { ms, seq: u64::MAX },
            (None, None) => self,
        }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

/// Strings, one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn push(&mut self, cell: Cell, packed: &[u8]) {
        match cell {
            Cell::Bytes(range) => self.bytes.extend_from_slice(&packed[range]),
            Cell::Number(number) => {
                write!(self.bytes, "{number}").expect("a vector takes everything");
            }
        }
        self.ends.push(self.bytes.len());
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.bytes[start..end])
    }
}

/// The facts about a stream, without its entries and its groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamState {
    /// Entries.
    pub len: u64,
    /// The last ID that was added.
    pub last: StreamId,
    /// The ID of the first entry.
    pub first: StreamId,
    /// The greatest ID that was deleted.
    pub deleted: StreamId,
    /// Entries that were ever added.
    pub added: u64,
}

/// A part of a stream, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StreamPart<'e> {
    /// An entry.
    Entry {
        /// Its ID, above that of the one before.
        id: StreamId,
        /// Names of fields and their values, in turn.
        fields: &'e Texts,
    },
    /// Follows the last entry.
    State(StreamState),
    /// A group. Its pending entries follow, then its consumers.
    Group {
        /// Its name.
        name: &'e [u8],
        /// The last ID that it got.
        last: StreamId,
        /// How many entries it has read, if it is known.
        read: Option<u64>,
    },
    /// An entry that was delivered to the group.
    Pending {
        /// Its ID.
        id: StreamId,
        /// When it was delivered last (Unix, ms).
        delivered_ms: u64,
        /// How often it was delivered.
        deliveries: u64,
    },
    /// A consumer of the group. The IDs of its pending entries follow.
    Consumer {
        /// Its name.
        name: &'e [u8],
        /// When it last asked (Unix, ms).
        seen_ms: u64,
        /// When it last got an entry (Unix, ms), if that is known.
        active_ms: Option<u64>,
    },
    /// A pending entry of the group is of this consumer.
    Owned {
        /// Its ID.
        id: StreamId,
    },
}
