//! Bytes of a connection on their way to and from the poller: the only place that hands the descriptor of a
//! connection to it.
//!
//! ```text
//! Connection, large values, HTTP -> Transport -> poller -> socket
//! ```
//!
//! A transport may keep bytes of its own between two calls, so all that moves bytes takes it mutably. Today
//! there is one kind: the bytes of the socket as they are.
//!
//! Not here: listeners, which are no connections.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use sys::poller::{Interest, Poller};
use sys::socket::Socket;

/// See the module.
pub(crate) struct Transport {
    socket: Socket,
}

impl Transport {
    /// The bytes of a socket as they are.
    pub(crate) fn plain(socket: Socket) -> Transport {
        Transport { socket }
    }

    /// The socket, for facts about its peer.
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Has a poller report events of the connection under a token.
    ///
    /// # Errors
    /// Those of the poller.
    pub(crate) fn watch(
        &self,
        poller: &mut Poller,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        poller.add(self.socket.as_fd(), token, interest)
    }

    /// Changes the events that are reported.
    ///
    /// # Errors
    /// Those of the poller.
    pub(crate) fn rewatch(
        &self,
        poller: &mut Poller,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        poller.modify(self.socket.as_fd(), token, interest)
    }

    /// Ends the reports.
    ///
    /// # Errors
    /// Those of the poller.
    pub(crate) fn unwatch(&self, poller: &mut Poller) -> io::Result<()> {
        poller.remove(self.socket.as_fd())
    }

    /// Receives bytes into a buffer; 0 is the end of the peer's bytes.
    ///
    /// # Errors
    /// Those of the socket; `WouldBlock` if there are none yet.
    #[inline(always)]
    pub(crate) fn recv(&mut self, poller: &mut Poller, buffer: &mut [u8]) -> io::Result<usize> {
        poller.recv(self.socket.as_fd(), buffer)
    }

    /// Receives bytes into the spare room of a buffer, which grows by them.
    ///
    /// # Errors
    /// As [`Transport::recv`].
    #[inline]
    pub(crate) fn recv_spare(
        &mut self,
        poller: &mut Poller,
        buffer: &mut Vec<u8>,
    ) -> io::Result<usize> {
        poller.recv_spare(self.socket.as_fd(), buffer)
    }

    /// Sends as many of the bytes as the connection takes now.
    ///
    /// # Errors
    /// Those of the socket; `WouldBlock` if it takes none.
    #[inline(always)]
    pub(crate) fn send(&mut self, poller: &mut Poller, bytes: &[u8]) -> io::Result<usize> {
        poller.send(self.socket.as_fd(), bytes)
    }

    /// The same of several slices.
    ///
    /// # Errors
    /// As [`Transport::send`].
    #[inline]
    pub(crate) fn send_vectored(
        &mut self,
        poller: &mut Poller,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        poller.send_vectored(self.socket.as_fd(), slices)
    }

    /// Sends from a file: at most `most` bytes from `offset` on. 0 is the end of the file.
    ///
    /// # Errors
    /// As [`Transport::send`]; or the file cannot be read.
    #[inline]
    pub(crate) fn send_file(
        &mut self,
        poller: &mut Poller,
        file: BorrowedFd<'_>,
        offset: u64,
        most: usize,
    ) -> io::Result<usize> {
        poller.send_file(self.socket.as_fd(), file, offset, most)
    }
}
