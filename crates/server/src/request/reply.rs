//! Output of replies: one buffer per worker, and large values beside it by reference.

use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use ferrite_log::{Blob, BlobFile, BlobStore};
use keyspace::{INLINE_VALUE_MAX, LargeValue, Stored};
use resp::reply::{Limit, Protocol, Writer};

/// Replies to one group of requests.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    /// Values between the bytes, in order of position.
    pub(crate) large: Vec<Pinned<Apart>>,
}

impl Output {
    /// The values inside `bytes[from..until]`.
    #[inline]
    pub(crate) fn large_in(&self, from: usize, until: usize) -> &[Pinned<Apart>] {
        let first = self.large.partition_point(|pinned| pinned.at < from);
        let large = &self.large[first..];
        &large[..large.partition_point(|pinned| pinned.at <= until)]
    }
}

/// Value that is sent from where it is stored.
pub(crate) struct Pinned<V = LargeValue> {
    /// Its position: an offset in [`Output::bytes`].
    pub(crate) at: usize,
    pub(crate) value: V,
}

/// Storage of a value that is not copied into the output.
pub(crate) enum Apart {
    Memory(LargeValue),
    File(FilePart),
    /// Value that belongs to no entry.
    Own(LargeValue),
}

/// Part of a value with a file of its own. The file exists as long as this does.
#[derive(Clone)]
pub(crate) struct FilePart {
    pub(crate) blob: Arc<Blob>,
    pub(crate) store: BlobStore,
    pub(crate) range: Range<u64>,
}

impl FilePart {
    /// Length of the part, bytes.
    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Opens the file. May block on the disk.
    ///
    /// # Errors
    ///
    /// The file can't be opened.
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

/// Position in an output.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    bytes: usize,
    large: usize,
}

/// Reply to one command.
pub(crate) struct Reply<'c> {
    writer: Writer<'c>,
    large: &'c mut Vec<Pinned<Apart>>,
}

impl<'c> Reply<'c> {
    pub(crate) fn new(output: &'c mut Output, protocol: Protocol) -> Reply<'c> {
        Reply {
            writer: Writer::new(&mut output.bytes, protocol),
            large: &mut output.large,
        }
    }

    /// Writes a name and an integer of a map.
    pub(crate) fn named_integer(&mut self, name: &str, number: i64) {
        self.bulk(name.as_bytes());
        self.integer(number);
    }

    /// Current position, for [`Reply::take_back`].
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            bytes: self.writer.out.len(),
            large: self.large.len(),
        }
    }

    /// Limits the memory that the buffer may grow by.
    pub(crate) fn set_limit(&mut self, room: usize) {
        self.writer.limit = Limit { room, dropped: 0 };
    }

    /// Whether something had no room.
    pub(crate) fn is_cut(&self) -> bool {
        self.writer.limit.dropped > 0
    }

    /// Ends the limit. Returns the bytes that had no room.
    pub(crate) fn end_limit(&mut self) -> usize {
        std::mem::replace(&mut self.writer.limit, Limit::NONE).dropped
    }

    /// Makes room in the buffer for so many bytes.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.writer.out.reserve_exact(bytes);
    }

    /// Removes all that was written since a position.
    pub(crate) fn take_back(&mut self, mark: Mark) {
        self.writer.out.truncate(mark.bytes);
        self.large.truncate(mark.large);
    }

    /// Moves all that was written since a position: bytes to the end of `bytes`, and each large value to
    /// `put`, with its place in `bytes`.
    pub(crate) fn move_since(
        &mut self,
        mark: Mark,
        bytes: &mut Vec<u8>,
        mut put: impl FnMut(usize, Apart),
    ) {
        let base = bytes.len();
        bytes.extend_from_slice(&self.writer.out[mark.bytes..]);
        self.writer.out.truncate(mark.bytes);
        for pinned in self.large.drain(mark.large..) {
            put(pinned.at - mark.bytes + base, pinned.value);
        }
    }

    /// Bytes written since a position, large values included.
    pub(crate) fn bytes_since(&self, mark: Mark) -> usize {
        let large = self.large[mark.large..].iter();
        let large_bytes: usize = large.map(|pinned| pinned.value.len()).sum();
        self.writer.out.len() - mark.bytes + large_bytes
    }

    /// Protocol of the connection, for the few replies whose structure depends on it.
    pub(crate) fn protocol(&self) -> Protocol {
        self.writer.protocol
    }

    /// Switches the protocol for the rest of the reply (HELLO).
    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.writer.protocol = protocol;
    }

    /// Current position, for [`Reply::put_before`].
    pub(crate) fn position(&self) -> usize {
        self.writer.out.len()
    }

    /// Inserts at `position`, for example the header of an array once its length is known. Costs one move of
    /// the bytes behind it.
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

    /// Appends a reply that is encoded in the protocol of the connection.
    pub(crate) fn encoded(&mut self, bytes: &[u8]) {
        self.writer.out.extend_from_slice(bytes);
    }

    /// Removes and returns all bytes since `position`. There are no large values among them.
    pub(crate) fn split_off(&mut self, position: usize) -> Vec<u8> {
        self.writer.out.split_off(position)
    }

    /// Appends encoded bytes and the values between them. Positions of values count from `base`, the position
    /// of the first byte.
    pub(crate) fn append(&mut self, bytes: &[u8], large: &[Pinned], base: usize) {
        let from = self.writer.out.len();
        self.large.extend(large.iter().map(|pinned| Pinned {
            at: pinned.at - base + from,
            value: Apart::Own(LargeValue::clone(&pinned.value)),
        }));
        self.writer.out.extend_from_slice(bytes);
    }

    /// Appends what was written elsewhere.
    pub(crate) fn append_output(&mut self, output: Output) {
        let from = self.writer.out.len();
        self.large
            .extend(output.large.into_iter().map(|pinned| Pinned {
                at: pinned.at + from,
                ..pinned
            }));
        self.writer.out.extend_from_slice(&output.bytes);
    }

    /// Stored value as a bulk string: copied if it is small, by reference if it is large.
    #[inline]
    pub(crate) fn value(&mut self, value: Stored<'_>) {
        match value {
            Stored::Inline(bytes) => self.writer.one_bulk(bytes),
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

    /// Part of a value that belongs to no entry, as a bulk string: by reference if it is large.
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

    /// Part of a value with a file of its own, as a bulk string that is sent from the file.
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
