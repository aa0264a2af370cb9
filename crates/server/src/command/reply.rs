//! Where replies are written: one buffer per worker, and large values beside it by reference.

use std::ops::{Deref, DerefMut};

use keyspace::{LargeValue, Stored};
use resp::reply::{Protocol, Writer};

/// The replies of one group of requests.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    /// Values that belong between the bytes, in order of position.
    pub(crate) large: Vec<Pinned>,
}

/// A value that is sent from where it is stored.
pub(crate) struct Pinned {
    /// Offset in [`Output::bytes`] before which it goes.
    pub(crate) at: usize,
    pub(crate) value: LargeValue,
}

/// The reply of one command.
pub(crate) struct Reply<'c> {
    writer: Writer<'c>,
    large: &'c mut Vec<Pinned>,
}

impl<'c> Reply<'c> {
    pub(crate) fn new(output: &'c mut Output, protocol: Protocol) -> Reply<'c> {
        Reply { writer: Writer { out: &mut output.bytes, protocol }, large: &mut output.large }
    }

    /// The protocol of the connection, for the few replies whose shape differs beyond encoding.
    pub(crate) fn protocol(&self) -> Protocol {
        self.writer.protocol
    }

    /// Switches the protocol for the rest of the reply, as HELLO does.
    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.writer.protocol = protocol;
    }

    /// A stored value as a bulk string: copied when it is small, by reference when it is large.
    #[inline]
    pub(crate) fn value(&mut self, value: Stored<'_>) {
        match value {
            Stored::Inline(bytes) => self.writer.bulk(bytes),
            Stored::Large(large) => {
                self.writer.bulk_header(large.bytes().len());
                self.large.push(Pinned { at: self.writer.out.len(), value: large.share() });
                self.writer.crlf();
            }
        }
    }
}

impl<'c> Deref for Reply<'c> {
    type Target = Writer<'c>;

    fn deref(&self) -> &Writer<'c> {
        &self.writer
    }
}

impl<'c> DerefMut for Reply<'c> {
    fn deref_mut(&mut self) -> &mut Writer<'c> {
        &mut self.writer
    }
}
