//! Input of a connection, read before it can run.

use std::collections::VecDeque;
use std::io;

use sys::poller::Poller;

use crate::limits::AHEAD_PIECE_BYTES;
use crate::transport::Transport;

/// Input that could not run when it was read: beyond the bound of unsent replies, or during a wait.
#[derive(Default)]
pub(crate) struct Ahead {
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that were taken.
    taken: usize,
    /// Bytes that are left.
    bytes: usize,
    /// Bytes of memory of all pieces.
    capacity: usize,
    /// Its peer has finished sending.
    pub(crate) ended: bool,
}

impl Ahead {
    /// Bytes that are left.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(super) fn memory(&self) -> usize {
        self.capacity + size_of::<Ahead>()
    }

    /// Receives after the existing bytes. 0 is the end.
    pub(crate) fn receive(
        &mut self,
        poller: &mut Poller,
        transport: &mut Transport,
    ) -> io::Result<usize> {
        let has_room = |piece: &Vec<u8>| piece.capacity() - piece.len() >= AHEAD_PIECE_BYTES / 4;
        if !self.pieces.back().is_some_and(has_room) {
            self.pieces.push_back(Vec::with_capacity(AHEAD_PIECE_BYTES));
            self.capacity += AHEAD_PIECE_BYTES;
        }
        let last = self.pieces.back_mut().expect("there is one now");
        let received = transport.recv_spare(poller, last);
        if let Ok(count) = &received {
            self.bytes += count;
        }
        if last.is_empty() {
            self.pieces.pop_back();
            self.capacity -= AHEAD_PIECE_BYTES;
        }
        received
    }

    /// Takes up to `most` of the first bytes; nothing is left of it when all are taken and more may come.
    /// Returns how many they are: 0 at the end.
    pub(super) fn take(
        ahead: &mut Option<Box<Ahead>>,
        most: usize,
        put: impl FnOnce(&[u8]),
    ) -> usize {
        let Some(own) = ahead else { return 0 };
        let Some(first) = own.pieces.front() else {
            return 0;
        };
        let left = &first[own.taken..];
        let count = left.len().min(most);
        put(&left[..count]);
        own.taken += count;
        own.bytes -= count;
        if own.taken == first.len() {
            own.taken = 0;
            own.capacity -= AHEAD_PIECE_BYTES;
            own.pieces.pop_front();
        }
        if own.bytes == 0 && !own.ended {
            *ahead = None;
        }
        count
    }

    /// As [`super::Connection::receive`], into the spare capacity of a buffer.
    pub(crate) fn take_or_receive(
        ahead: &mut Option<Box<Ahead>>,
        poller: &mut Poller,
        transport: &mut Transport,
        buffer: &mut Vec<u8>,
    ) -> io::Result<usize> {
        if ahead.is_none() {
            return transport.recv_spare(poller, buffer);
        }
        let free = buffer.capacity() - buffer.len();
        Ok(Ahead::take(ahead, free, |bytes| {
            buffer.extend_from_slice(bytes)
        }))
    }
}

#[cfg(test)]
mod tests {
    use sys::poller::Backend;

    use super::*;

    #[test]
    fn what_was_read_ahead_comes_in_order_and_its_memory_goes_with_it() {
        let mut poller = Poller::new(Backend::Auto).expect("a poller");
        let (mut other, own) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let own = sys::socket::Socket::from_unix(own).expect("a socket");
        let mut own = Transport::plain(own);
        let mut ahead = Some(Box::<Ahead>::default());
        let sent: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
        let mut left = &sent[..];
        while !left.is_empty() {
            let (piece, behind) = left.split_at(left.len().min(10_000));
            std::io::Write::write_all(&mut other, piece).expect("there is room");
            left = behind;
            let own_ahead = ahead.as_mut().expect("nothing is taken yet");
            while own_ahead.receive(&mut poller, &mut own).is_ok() {}
        }
        let memory = ahead.as_ref().map(|ahead| ahead.memory());
        assert!(
            memory.is_some_and(|memory| (300_000..450_000).contains(&memory)),
            "{memory:?}"
        );
        let mut got = Vec::new();
        while ahead.is_some() {
            let taken = Ahead::take(&mut ahead, 7_777, |bytes| got.extend_from_slice(bytes));
            assert!((1..=7_777).contains(&taken));
        }
        assert!(got == sent);
        drop(other);
        let mut at_end = Some(Box::<Ahead>::default());
        let end = at_end.as_mut().expect("it is there");
        assert_eq!(
            end.receive(&mut poller, &mut own)
                .expect("an end is no error"),
            0
        );
        end.ended = true;
        assert_eq!(
            Ahead::take(&mut at_end, 1, |_| panic!("there is nothing")),
            0
        );
        assert!(at_end.is_some_and(|end| end.ended));
    }
}
