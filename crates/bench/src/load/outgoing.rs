//! Requests on their way out: bytes of their own, with pieces of the shared data in between.
//!
//! ```text
//! bytes     *3..SET..$8192\r\n | \r\n*3..SET..$8192\r\n | \r\n
//! inserts                      ^ 8192 bytes             ^ 8192 bytes
//! ```
//!
//! Small values are among the bytes; a large one is an [`Insert`], so that a value of a gigabyte takes
//! up no memory. What a socket does not take at once stays here with the place where to go on.

use super::data::Data;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use sys::Poller;

/// How many slices one call is given; what is left over goes with the next.
const SLICES: usize = 256;

/// A piece of the shared data.
#[derive(Clone, Copy, Debug)]
struct Insert {
    /// It goes out when this many of the own bytes have.
    at: usize,
    start: u64,
    len: u64,
}

/// Bytes to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// Requests, appended by whoever makes them.
    pub(crate) bytes: Vec<u8>,
    inserts: Vec<Insert>,
    /// How many of the own bytes are gone.
    sent: usize,
    /// How many inserts are gone as a whole.
    inserts_sent: usize,
}

impl Outgoing {
    /// Puts a value of the shared data behind what is there.
    pub(crate) fn insert(&mut self, start: u64, len: u64) {
        self.inserts.push(Insert {
            at: self.bytes.len(),
            start,
            len,
        });
    }

    /// Forgets everything, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.inserts.clear();
        self.sent = 0;
        self.inserts_sent = 0;
    }

    /// Everything is gone, or there never was anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len() && self.inserts_sent == self.inserts.len()
    }

    /// How many bytes there are in all, sent or not.
    pub(crate) fn total(&self) -> u64 {
        let inserted: u64 = self.inserts.iter().map(|insert| insert.len).sum();
        self.bytes.len() as u64 + inserted
    }

    /// Puts all of another, of which nothing was sent, behind what is here; the other is empty then.
    pub(crate) fn append(&mut self, other: &mut Outgoing) {
        let before = self.bytes.len();
        self.bytes.append(&mut other.bytes);
        self.inserts
            .extend(other.inserts.drain(..).map(|insert| Insert {
                at: before + insert.at,
                ..insert
            }));
        other.clear();
    }

    /// Sends as much as the socket takes. `Ok(true)`: that was all.
    ///
    /// # Errors
    /// The connection is broken.
    #[inline]
    pub(crate) fn send(
        &mut self,
        poller: &mut Poller,
        fd: BorrowedFd<'_>,
        data: &Data,
    ) -> io::Result<bool> {
        while !self.is_empty() {
            let sent = if self.inserts.is_empty() {
                poller.send(fd, &self.bytes[self.sent..])
            } else {
                self.send_slices(poller, fd, data)
            };
            match sent {
                Ok(count) => self.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn send_slices(
        &self,
        poller: &mut Poller,
        fd: BorrowedFd<'_>,
        data: &Data,
    ) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut used = 0;
        self.visit(data, |piece| {
            if !piece.is_empty() {
                slices[used] = IoSlice::new(piece);
                used += 1;
            }
            used < SLICES
        });
        poller.send_vectored(fd, &slices[..used])
    }

    /// Shows what is left, piece by piece, until `wants_more` says no.
    fn visit<'a>(&'a self, data: &'a Data, mut wants_more: impl FnMut(&'a [u8]) -> bool) {
        let mut at = self.sent;
        for insert in &self.inserts[self.inserts_sent..] {
            if !wants_more(&self.bytes[at..insert.at]) {
                return;
            }
            at = insert.at;
            let mut done = 0;
            while done < insert.len {
                let piece = data.piece(insert.start + done, insert.len - done);
                if !wants_more(piece) {
                    return;
                }
                done += piece.len() as u64;
            }
        }
        wants_more(&self.bytes[at..]);
    }

    /// Notes that so many bytes are gone.
    fn advance(&mut self, mut count: usize) {
        while let Some(insert) = self.inserts.get_mut(self.inserts_sent) {
            let own = count.min(insert.at - self.sent);
            self.sent += own;
            count -= own;
            if self.sent < insert.at {
                return;
            }
            let shared = insert.len.min(count as u64);
            insert.start += shared;
            insert.len -= shared;
            // Not more than `count`, which is a usize.
            count -= shared as usize;
            if insert.len > 0 {
                return;
            }
            self.inserts_sent += 1;
        }
        self.sent += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(outgoing: &Outgoing, data: &Data) -> Vec<u8> {
        let mut bytes = Vec::new();
        outgoing.visit(data, |piece| {
            bytes.extend_from_slice(piece);
            true
        });
        bytes
    }

    fn sample() -> Outgoing {
        let mut outgoing = Outgoing::default();
        outgoing.bytes.extend_from_slice(b"one ");
        outgoing.insert(10, 7);
        outgoing.bytes.extend_from_slice(b" two ");
        outgoing.insert(0, 0);
        outgoing.insert(crate::limits::DATA_BYTES as u64 - 2, 5);
        outgoing.bytes.extend_from_slice(b" three");
        outgoing
    }

    #[test]
    fn any_way_of_taking_the_bytes_gives_the_same() {
        let data = Data::new(5);
        let whole = left(&sample(), &data);
        assert_eq!(whole.len() as u64, sample().total());
        for step in 1..=whole.len() {
            let mut outgoing = sample();
            let mut at = 0;
            while at < whole.len() {
                assert!(!outgoing.is_empty());
                let count = step.min(whole.len() - at);
                assert_eq!(left(&outgoing, &data), whole[at..], "step {step} at {at}");
                outgoing.advance(count);
                at += count;
            }
            assert!(left(&outgoing, &data).is_empty());
            outgoing.advance(0);
            assert!(outgoing.is_empty(), "step {step}");
        }
    }

    #[test]
    fn one_behind_the_other_is_both() {
        let data = Data::new(5);
        let whole = left(&sample(), &data);
        for count in [0, 3, 4, 8, whole.len()] {
            let (mut first, mut second) = (sample(), sample());
            first.advance(count);
            first.append(&mut second);
            assert!(second.is_empty());
            assert_eq!(left(&first, &data), [&whole[count..], &whole].concat());
        }
    }

    #[test]
    fn a_cleared_one_is_as_new() {
        let mut outgoing = sample();
        outgoing.advance(9);
        outgoing.clear();
        assert!(outgoing.is_empty());
        assert_eq!(outgoing.total(), 0);
        outgoing.bytes.extend_from_slice(b"x");
        assert_eq!(left(&outgoing, &Data::new(1)), b"x");
    }
}
