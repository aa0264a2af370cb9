//! Where replies are written: one buffer per worker, and large values beside it by reference.

use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use ferrite_log::{Blob, BlobFile, BlobStore};
use keyspace::{INLINE_VALUE_MAX, LargeValue, Stored};
use resp::reply::{Protocol, Writer};

/// The replies of one group of requests.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    /// Values that belong between the bytes, in order of position.
    pub(crate) large: Vec<Pinned<Apart>>,
}

impl Output {
    /// The values that belong into `bytes[from..until]`.
    #[inline]
    pub(crate) fn large_in(&self, from: usize, until: usize) -> &[Pinned<Apart>] {
        let first = self.large.partition_point(|pinned| pinned.at < from);
        let large = &self.large[first..];
        &large[..large.partition_point(|pinned| pinned.at <= until)]
    }
}

/// A value that is sent from where it is stored.
pub(crate) struct Pinned<V = LargeValue> {
    /// Offset in [`Output::bytes`] before which it goes.
    pub(crate) at: usize,
    pub(crate) value: V,
}

/// Where a value is that is no part of the bytes around it.
pub(crate) enum Apart {
    Memory(LargeValue),
    File(FilePart),
    /// A value that no entry has.
    Own(LargeValue),
}

/// A part of a value that has a file of its own. The file stays as long as this does.
#[derive(Clone)]
pub(crate) struct FilePart {
    pub(crate) blob: Arc<Blob>,
    pub(crate) store: BlobStore,
    pub(crate) range: Range<u64>,
}

impl FilePart {
    /// Its bytes.
    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Opens its file. May wait for the disk.
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) fn open(&self) -> io::Result<BlobFile> {
        self.store.open(&self.blob).map_err(io::Error::other)
    }
}

impl Apart {
    fn len(&self) -> usize {
        match self {
            Apart::Memory(value) | Apart::Own(value) => value.len(),
            Apart::File(part) => part.len() as usize,
        }
    }
}

/// How far an output reached.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    bytes: usize,
    large: usize,
}

/// The reply of one command.
pub(crate) struct Reply<'c> {
    writer: Writer<'c>,
    large: &'c mut Vec<Pinned<Apart>>,
}

impl<'c> Reply<'c> {
    pub(crate) fn new(output: &'c mut Output, protocol: Protocol) -> Reply<'c> {
        Reply {
            writer: Writer {
                out: &mut output.bytes,
                protocol,
            },
            large: &mut output.large,
        }
    }

    /// How far the output reaches, to come back to with [`Reply::take_back`].
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            bytes: self.writer.out.len(),
            large: self.large.len(),
        }
    }

    /// Takes back everything written since a position.
    pub(crate) fn take_back(&mut self, mark: Mark) {
        self.writer.out.truncate(mark.bytes);
        self.large.truncate(mark.large);
    }

    /// Bytes written since a position, large values included.
    pub(crate) fn bytes_since(&self, mark: Mark) -> usize {
        let large = self.large[mark.large..].iter();
        let large_bytes: usize = large.map(|pinned| pinned.value.len()).sum();
        self.writer.out.len() - mark.bytes + large_bytes
    }

    /// The protocol of the connection, for the few replies whose shape differs beyond encoding.
    pub(crate) fn protocol(&self) -> Protocol {
        self.writer.protocol
    }

    /// Switches the protocol for the rest of the reply, as HELLO does.
    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.writer.protocol = protocol;
    }

    /// Where the reply has got to, for [`Reply::put_before`].
    pub(crate) fn position(&self) -> usize {
        self.writer.out.len()
    }

    /// Writes something in front of everything since `position`: the header of an array, say, whose length is
    /// known when its elements are there. Costs one move of those bytes.
    pub(crate) fn put_before(&mut self, position: usize, write: impl FnOnce(&mut Writer<'_>)) {
        let end = self.writer.out.len();
        write(&mut self.writer);
        let added = self.writer.out.len() - end;
        self.writer.out[position..].rotate_right(added);
        for pinned in self
            .large
            .iter_mut()
            .rev()
            .take_while(|pinned| pinned.at > position)
        {
            pinned.at += added;
        }
    }

    /// Appends a reply that was encoded elsewhere, in the protocol of the connection.
    pub(crate) fn encoded(&mut self, bytes: &[u8]) {
        self.writer.out.extend_from_slice(bytes);
    }

    /// Takes everything since `position` out of the reply, which has no large values there.
    pub(crate) fn split_off(&mut self, position: usize) -> Vec<u8> {
        self.writer.out.split_off(position)
    }

    /// Appends bytes that were encoded elsewhere, and the values that belong between them. Positions of
    /// values count from `base`, which is where the bytes begin.
    pub(crate) fn append(&mut self, bytes: &[u8], large: &[Pinned], base: usize) {
        let from = self.writer.out.len();
        self.large.extend(large.iter().map(|pinned| Pinned {
            at: pinned.at - base + from,
            value: Apart::Own(LargeValue::clone(&pinned.value)),
        }));
        self.writer.out.extend_from_slice(bytes);
    }

    /// A stored value as a bulk string: copied when it is small, by reference when it is large.
    #[inline]
    pub(crate) fn value(&mut self, value: Stored<'_>) {
        match value {
            Stored::Inline(bytes) => self.writer.bulk(bytes),
            Stored::Large(large) => {
                self.writer.bulk_header(large.bytes().len());
                self.large.push(Pinned {
                    at: self.writer.out.len(),
                    value: Apart::Memory(large.share()),
                });
                self.writer.crlf();
            }
        }
    }

    /// A part of a value that is nowhere else, as a bulk string: sent from where it is if it is much.
    pub(crate) fn part(&mut self, value: &LargeValue, part: Range<usize>) {
        if part.len() < value.len() || part.len() <= INLINE_VALUE_MAX {
            self.writer.bulk(&value[part]);
            return;
        }
        self.writer.bulk_header(value.len());
        self.large.push(Pinned {
            at: self.writer.out.len(),
            value: Apart::Own(LargeValue::clone(value)),
        });
        self.writer.crlf();
    }

    /// A part of a value that has a file of its own, as a bulk string that is sent from there.
    pub(crate) fn file(&mut self, part: FilePart) {
        self.writer.bulk_header(part.len() as usize);
        if part.len() > 0 {
            let at = self.writer.out.len();
            let value = Apart::File(part);
            self.large.push(Pinned { at, value });
        }
        self.writer.crlf();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_before_moves_the_rest_and_only_that() {
        let mut output = Output::default();
        let mut reply = Reply::new(&mut output, Protocol::Resp2);
        let pin = |reply: &mut Reply<'_>| {
            reply.bulk_header(3);
            let at = reply.position();
            reply.large.push(Pinned {
                at,
                value: Apart::Memory(LargeValue::new(b"xyz".to_vec().into())),
            });
            reply.crlf();
        };
        pin(&mut reply);
        let position = reply.position();
        reply.bulk(b"one");
        pin(&mut reply);
        reply.put_before(position, |before| before.array(2));
        assert_eq!(output.bytes, b"$3\r\n\r\n*2\r\n$3\r\none\r\n$3\r\n\r\n");
        assert_eq!(
            output
                .large
                .iter()
                .map(|pinned| pinned.at)
                .collect::<Vec<_>>(),
            [4, 23]
        );
        let mut reply = Reply::new(&mut output, Protocol::Resp2);
        let position = reply.position();
        reply.put_before(position, |before| before.array(0));
        assert!(output.bytes.ends_with(b"\r\n\r\n*0\r\n"));
        assert_eq!(output.large[1].at, 23);
    }
}
