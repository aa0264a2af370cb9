//! Replies in chunks that never move and are handed to the connection as they are.

use std::collections::VecDeque;

use keyspace::{LargeValue, Lent};
use resp::reply::{Protocol, Writer};

use super::Pinned;
use crate::limits::PIECE_BYTES;

/// Part of a reply.
pub(crate) enum Chunk {
    Bytes(Vec<u8>),
    /// Value that belongs to no entry.
    Own(LargeValue),
    /// Value that belongs, or belonged, to an entry.
    Lent(Lent),
}

impl Chunk {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Chunk::Bytes(bytes) => bytes,
            Chunk::Own(value) => value,
            Chunk::Lent(value) => value,
        }
    }
}

/// Reply that grows without being moved.
#[derive(Default)]
pub(crate) struct Pieces {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    /// Bytes of values of entries, sent by reference; part of the length.
    lent: usize,
}

impl Pieces {
    /// Reply that begins with these bytes.
    pub(crate) fn beginning(bytes: Vec<u8>) -> Pieces {
        let mut pieces = Pieces::default();
        pieces.put_before(bytes);
        pieces
    }

    /// Inserts bytes at the front.
    pub(crate) fn put_before(&mut self, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.chunks.push_front(Chunk::Bytes(bytes));
    }

    /// Appends the output of `write`.
    pub(crate) fn write(&mut self, protocol: Protocol, write: impl FnOnce(&mut Writer<'_>)) {
        let is_open =
            |chunk: &Chunk| matches!(chunk, Chunk::Bytes(last) if last.len() < PIECE_BYTES);
        if !self.chunks.back().is_some_and(is_open) {
            let room = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 8);
            self.chunks.push_back(Chunk::Bytes(room));
        }
        let Some(Chunk::Bytes(out)) = self.chunks.back_mut() else {
            unreachable!("there is one now that is written to");
        };
        let before = out.len();
        write(&mut Writer::new(out, protocol));
        self.bytes += out.len() - before;
    }

    /// Appends a large value by reference.
    pub(crate) fn write_large(&mut self, protocol: Protocol, value: LargeValue) {
        self.write(protocol, |reply| reply.bulk_header(value.len()));
        self.bytes += value.len();
        self.lent += value.len();
        self.chunks.push_back(Chunk::Lent(Lent::new(value)));
        self.write(protocol, |reply| reply.crlf());
    }

    /// Appends a value that belongs to no entry.
    pub(crate) fn write_own(&mut self, protocol: Protocol, value: LargeValue) {
        self.write(protocol, |reply| reply.bulk_header(value.len()));
        self.bytes += value.len();
        self.chunks.push_back(Chunk::Own(value));
        self.write(protocol, |reply| reply.crlf());
    }

    /// Appends encoded bytes and the values between them. Positions of values count from `base`, the position
    /// of the first byte.
    pub(crate) fn append(&mut self, bytes: &[u8], large: &[Pinned], base: usize) {
        // The bytes are encoded already, so the protocol has no effect.
        let protocol = Protocol::Resp2;
        let mut at = 0;
        for pinned in large {
            let before = &bytes[at..pinned.at - base];
            self.write(protocol, |reply| reply.out.extend_from_slice(before));
            self.bytes += pinned.value.len();
            self.chunks
                .push_back(Chunk::Own(LargeValue::clone(&pinned.value)));
            at = pinned.at - base;
        }
        self.write(protocol, |reply| reply.out.extend_from_slice(&bytes[at..]));
    }

    /// Length of the reply, bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Bytes of memory that it owns.
    pub(crate) fn memory(&self) -> usize {
        self.bytes - self.lent
    }

    /// The chunks in order.
    pub(crate) fn into_iter(self) -> impl Iterator<Item = Chunk> {
        self.chunks.into_iter()
    }
}
