//! Writing a stream.

use std::io::{self, Write};

use super::parts::{StreamId, StreamState};
use crate::format::STREAM;
use crate::writer::{Attributes, Writer};

impl<W: Write> Writer<W> {
    /// A key with a stream of so many nodes, which come next. Its state follows, then its groups: each with
    /// its pending entries and its consumers, and each of these with the IDs of its entries.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn begin_stream(
        &mut self,
        key: &[u8],
        nodes: u64,
        attributes: Attributes,
    ) -> io::Result<()> {
        self.key_of(STREAM, key, attributes)?;
        self.length(nodes)
    }

    /// A node: its ID and its listpack.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn stream_node(&mut self, id: StreamId, listpack: &[u8]) -> io::Result<()> {
        self.length(16)?;
        self.id16(id)?;
        self.string(listpack)
    }

    /// The state of a stream, and how many groups it has.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn stream_state(&mut self, state: &StreamState, groups: u64) -> io::Result<()> {
        self.length(state.len)?;
        for id in [state.last, state.first, state.deleted] {
            self.id(id)?;
        }
        self.length(state.added)?;
        self.length(groups)
    }

    /// A group, and how many pending entries it has.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn stream_group(
        &mut self,
        name: &[u8],
        last: StreamId,
        read: Option<u64>,
        pending: u64,
    ) -> io::Result<()> {
        self.string(name)?;
        self.id(last)?;
        self.length(read.unwrap_or(u64::MAX))?;
        self.length(pending)
    }

    /// A pending entry of a group.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn stream_pending(
        &mut self,
        id: StreamId,
        delivered_ms: u64,
        deliveries: u64,
    ) -> io::Result<()> {
        self.id16(id)?;
        self.sink.put(&delivered_ms.to_le_bytes())?;
        self.length(deliveries)
    }

    /// How many consumers a group has.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn stream_consumers(&mut self, consumers: u64) -> io::Result<()> {
        self.length(consumers)
    }

    /// A consumer, and how many pending entries it has.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn stream_consumer(&mut self, name: &[u8], seen_ms: u64, pending: u64) -> io::Result<()> {
        self.string(name)?;
        self.sink.put(&seen_ms.to_le_bytes())?;
        self.length(pending)
    }

    /// The ID of a pending entry of a consumer.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn stream_owned(&mut self, id: StreamId) -> io::Result<()> {
        self.id16(id)
    }

    fn id(&mut self, id: StreamId) -> io::Result<()> {
        self.length(id.ms)?;
        self.length(id.seq)
    }

    fn id16(&mut self, id: StreamId) -> io::Result<()> {
        self.sink.put(&id.ms.to_be_bytes())?;
        self.sink.put(&id.seq.to_be_bytes())
    }
}
