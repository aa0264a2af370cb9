//! The backlog of a connection: output that the socket did not take yet. It consists of bytes, large values
//! by reference, and parts of files.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;

use keyspace::{LargeValue, Lent};
use sys::poller::Poller;

use crate::limits::{PIECE_BYTES, PIECE_WEIGHT_BYTES, SHARE_BYTES, SHARE_LATE_BYTES};
use crate::pubsub::Log;
use crate::request::{Chunk, FilePart};
use crate::server::Server;
use crate::shared::clients::Client;
use crate::transport::Transport;
use crate::values::blobs::{Before, Ready, Sending, Sent};

/// Replies that the socket did not take yet.
#[derive(Default)]
pub(crate) struct Backlog {
    pieces: VecDeque<Piece>,
    /// Bytes of the first piece that were sent.
    sent: usize,
    bytes: usize,
    /// Of these, bytes of values that are lent.
    lent: usize,
    /// Of these, bytes kept in memory by readers alone, as of the last look.
    kept: usize,
    wait: FileWait,
}

/// Wait of the file at the front of a backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FileWait {
    #[default]
    Nothing,
    /// A thread that is to read, and was not told yet.
    Asks,
    /// A thread that reads: the number of the wait.
    Reads(u64),
}

/// Some bytes to be sent.
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    /// A value that may have no other owner.
    Large(LargeValue),
    /// A value that an entry has, or had.
    Lent(Lent),
    /// A part of a log.
    Part(LargeValue, Range<usize>),
    /// A part of a file; apart, so that the others stay small.
    File(Box<Sending>),
}

impl Piece {
    /// The bytes in memory; of a file none are.
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Piece::Bytes(bytes) => bytes,
            Piece::Large(value) => value,
            Piece::Lent(value) => value,
            Piece::Part(log, part) => &log[part.clone()],
            Piece::File(_) => &[],
        }
    }
}

impl From<Chunk> for Piece {
    fn from(chunk: Chunk) -> Piece {
        match chunk {
            Chunk::Bytes(bytes) => Piece::Bytes(bytes),
            Chunk::Own(value) => Piece::Large(value),
            Chunk::Lent(value) => Piece::Lent(value),
        }
    }
}

impl Backlog {
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes that wait, and some for each piece: one that is in a file has none in memory.
    #[inline]
    pub(crate) fn weight(&self) -> usize {
        self.bytes + self.pieces.len() * PIECE_WEIGHT_BYTES
    }

    /// Bytes that wait in memory, values sent by reference included.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Bytes that it keeps in memory: values that entries have are the keyspace's.
    /// Number of pieces.
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    pub(super) fn memory(&self) -> usize {
        self.bytes - self.lent + self.kept.min(self.lent)
    }

    /// Looks at whose memory the values are that are sent by reference. Takes a step for each piece.
    pub(crate) fn look_at_lent(&mut self) {
        if self.lent > 0 {
            let lent = self.pieces.iter().map(|piece| match piece {
                Piece::Lent(value) => value.kept_bytes(),
                _ => 0,
            });
            self.kept = lent.sum();
        }
    }

    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes += bytes.len();
        match self.pieces.back_mut() {
            // A piece has an end, because what was sent of it is freed with its last byte.
            Some(Piece::Bytes(last)) if last.len() < PIECE_BYTES => last.extend_from_slice(bytes),
            _ => self.pieces.push_back(Piece::Bytes(bytes.to_vec())),
        }
    }

    /// Appends a piece as it is.
    pub(crate) fn push_piece(&mut self, piece: Piece) {
        let len = piece.as_slice().len();
        self.bytes += len;
        if matches!(piece, Piece::Lent(_)) {
            self.lent += len;
        }
        if len > 0 || matches!(piece, Piece::File(_)) {
            self.pieces.push_back(piece);
        }
    }

    /// Appends bytes and a part of a file, whose header they end with. It waits with the part: it may have to
    /// be an error.
    pub(super) fn push_file(&mut self, bytes: &[u8], part: &FilePart) {
        let header = format!("${}\r\n", part.len()).into_bytes();
        let rest = bytes.strip_suffix(&header[..]);
        debug_assert!(rest.is_some(), "a part of a file is a bulk string");
        self.push_bytes(rest.unwrap_or(bytes));
        let part = Sending::new(part.clone(), rest.map(|_| header));
        self.pieces.push_back(Piece::File(Box::new(part)));
    }

    /// Sees to what has to go before the file at the front.
    pub(super) fn open_file(&mut self) {
        let Some(Piece::File(part)) = self.pieces.front_mut() else {
            return;
        };
        match part.before() {
            Before::Nothing => {}
            Before::Later => self.wait = FileWait::Asks,
            Before::Header(header) => {
                self.bytes += header.len();
                self.pieces.push_front(Piece::Bytes(header));
            }
            Before::Error(line) => {
                // The end of the line is the one that comes behind the value.
                self.bytes += line.len();
                self.pieces[0] = Piece::Bytes(line);
            }
        }
    }

    pub(crate) fn begins_with_file(&self) -> bool {
        matches!(self.pieces.front(), Some(Piece::File(_)))
    }

    /// Whether nothing is sent before a thread has read.
    pub(crate) fn waits(&self) -> bool {
        self.wait != FileWait::Nothing
    }

    /// Sends from the file that is the next piece. Returns the bytes sent.
    pub(super) fn send_file(
        &mut self,
        poller: &mut Poller,
        transport: &mut Transport,
        most: usize,
    ) -> io::Result<usize> {
        let Some(Piece::File(part)) = self.pieces.front_mut() else {
            return Ok(0);
        };
        match part.send(poller, transport, most)? {
            Sent::Bytes(count) => {
                if part.is_over() {
                    self.pieces.pop_front();
                    if self.pieces.is_empty() {
                        self.pieces = VecDeque::new();
                    }
                }
                Ok(count)
            }
            Sent::Later => {
                self.wait = FileWait::Asks;
                Ok(0)
            }
        }
    }

    /// Bytes of memory that [`Backlog::ask`] takes if it may.
    pub(crate) fn memory_wanted(&self, server: &Server) -> usize {
        match self.pieces.front() {
            Some(Piece::File(part)) if self.wait == FileWait::Asks => part.memory_wanted(server),
            _ => 0,
        }
    }

    /// Lets a thread read, if that is what the next piece waits for. Into memory only if it may take some.
    pub(crate) fn ask(&mut self, server: &'static Server, client: &Arc<Client>, may_take: bool) {
        if self.wait == FileWait::Asks
            && let Some(Piece::File(part)) = self.pieces.front_mut()
        {
            self.wait = FileWait::Reads(part.ask(server, client, may_take));
        }
    }

    /// A thread has read. Whether that is what the file at the front waits for.
    pub(crate) fn end_wait(&mut self, ready: &Ready) -> bool {
        let FileWait::Reads(number) = self.wait else {
            return false;
        };
        let is_it = match self.pieces.front_mut() {
            Some(Piece::File(part)) => part.note(ready, number),
            _ => false,
        };
        if is_it {
            self.wait = FileWait::Nothing;
        }
        is_it
    }

    /// Bytes of memory that the file at the front takes.
    pub(super) fn file_memory(&self) -> usize {
        match self.pieces.front() {
            Some(Piece::File(part)) => part.memory(),
            _ => 0,
        }
    }

    pub(super) fn push_lent(&mut self, value: LargeValue) {
        self.push_piece(Piece::Lent(Lent::new(value)));
    }

    pub(super) fn push_large(&mut self, value: LargeValue) {
        self.bytes += value.len();
        self.pieces.push_back(Piece::Large(value));
    }

    /// Appends a part of a log: by reference where that is worth it.
    pub(super) fn push_part(&mut self, log: &mut Log, part: Range<usize>) {
        // A client with much unread output will not read this soon.
        let least = if self.bytes < PIECE_BYTES {
            SHARE_BYTES
        } else {
            SHARE_LATE_BYTES
        };
        if part.len() < least {
            return self.push_bytes(&log.bytes()[part]);
        }
        self.bytes += part.len();
        let log = LargeValue::clone(log.share());
        self.pieces.push_back(Piece::Part(log, part));
    }

    /// The first bytes that wait, `most` of them at most. Returns how many slices they are.
    pub(super) fn slices<'a>(&'a self, most: usize, slices: &mut [IoSlice<'a>]) -> usize {
        let mut used = 0;
        let mut left = most;
        let in_memory = |piece: &&Piece| !matches!(piece, Piece::File(_));
        for (slice, piece) in slices
            .iter_mut()
            .zip(self.pieces.iter().take_while(in_memory))
        {
            let skip = if used == 0 { self.sent } else { 0 };
            let bytes = &piece.as_slice()[skip..];
            *slice = IoSlice::new(&bytes[..bytes.len().min(left)]);
            used += 1;
            left = left.saturating_sub(bytes.len());
            if left == 0 {
                break;
            }
        }
        used
    }

    pub(super) fn consume(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(first) = self.pieces.front() {
            if count == 0 && matches!(first, Piece::File(_)) {
                return;
            }
            let left = first.as_slice().len() - self.sent;
            let taken = count.min(left);
            if matches!(first, Piece::Lent(_)) {
                self.lent -= taken;
            }
            if count < left {
                self.sent += count;
                return;
            }
            count -= left;
            self.sent = 0;
            self.pieces.pop_front();
        }
        self.pieces = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_gives_out_its_bytes_in_order_however_they_are_taken() {
        for (step, most) in [(1, 100), (2, 1), (3, 4), (5, 7), (100, 100), (100, 3)] {
            let mut backlog = Backlog::default();
            backlog.push_bytes(b"one");
            backlog.push_bytes(b"two");
            backlog.push_large(Arc::new(b"LARGE".to_vec().into()));
            backlog.push_bytes(b"");
            backlog.push_large(Arc::new(b"x".to_vec().into()));
            backlog.push_bytes(b"end");
            let mut seen = Vec::new();
            while !backlog.is_empty() {
                let mut slices = [IoSlice::new(&[]); 2];
                let used = backlog.slices(most, &mut slices);
                let all: Vec<u8> = slices[..used]
                    .iter()
                    .flat_map(|slice| slice.iter().copied())
                    .collect();
                assert!(!all.is_empty() && all.len() <= most);
                let taken = step.min(all.len());
                seen.extend_from_slice(&all[..taken]);
                backlog.consume(taken);
            }
            assert_eq!(seen, b"onetwoLARGExend");
            assert_eq!(backlog.len(), 0);
        }
    }

    #[test]
    fn what_was_sent_is_freed_though_the_backlog_never_runs_empty() {
        let mut backlog = Backlog::default();
        backlog.push_bytes(&[0; 30_000]);
        for _ in 0..1_000 {
            backlog.push_bytes(&[0; 10_000]);
            backlog.consume(10_000);
        }
        assert_eq!(backlog.len(), 30_000);
        let held: usize = backlog
            .pieces
            .iter()
            .map(|piece| piece.as_slice().len())
            .sum();
        assert!(
            held < backlog.len() + 2 * PIECE_BYTES,
            "{held} bytes for {}",
            backlog.len()
        );
    }
}
