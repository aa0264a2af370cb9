//! What is asked of a poller, and what it answers.

use std::io;

/// The most events that one [`super::Poller::wait`] reports; the others come with the next.
pub const MAX_EVENTS: usize = 256;

/// The most slices that one [`super::Poller::send_vectored`] looks at: the kernel's own limit
/// (`UIO_MAXIOV`).
pub const MAX_SLICES: usize = 1024;

/// The mechanism of the kernel that a poller uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The one that is best on this system: epoll on Linux, the portable one elsewhere.
    Auto,
    /// Linux' epoll.
    Epoll,
    /// Linux' io_uring, as of Linux 6.1. The poller stays with the thread of its first wait.
    Uring,
    /// What each system has, without what one alone has.
    Portable,
}

/// What one wait has found out about one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number that the descriptor was registered with.
    pub token: u64,
    /// There is something to receive or to accept, or the end of the stream has come.
    pub readable: bool,
    /// There is room to send.
    pub writable: bool,
    /// The connection is closed in both directions or broken: nothing that is sent will arrive.
    /// Bytes that came before may still wait to be received. A peer that has only finished sending
    /// is `readable` (the end of the stream) and not `hangup`: it may well be waiting for replies.
    pub hangup: bool,
    /// The peer has finished sending, and [`Interest::ends`] asks for that.
    pub finished: bool,
}

/// A file's bytes that [`super::Poller::read_file`] was asked for.
#[derive(Debug)]
pub struct FinishedRead {
    /// The number that the read was asked for with.
    pub token: u64,
    /// Has the bytes from its beginning on.
    pub buffer: Vec<u8>,
    /// How many there are: fewer than the buffer holds at the end of the file, or where only that is in
    /// memory.
    pub result: io::Result<usize>,
}

/// What a descriptor is watched for.
///
/// On Linux a hangup of both directions is reported whatever the interest, so a connection that hung up must
/// be closed or removed, or each wait returns at once. Elsewhere reading and sending find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Report that there is something to receive.
    pub readable: bool,
    /// Report that there is room to send.
    pub writable: bool,
    /// Report that the peer has finished sending, whatever it has sent before: for a connection that is not
    /// read. The portable backend reports it once, and only if all that came before was received.
    pub ends: bool,
}

impl Interest {
    /// Bytes or connections to receive.
    pub const READ: Interest = Interest {
        readable: true,
        writable: false,
        ends: false,
    };
    /// Room to send.
    pub const WRITE: Interest = Interest {
        readable: false,
        writable: true,
        ends: false,
    };
    /// Both.
    pub const BOTH: Interest = Interest {
        readable: true,
        writable: true,
        ends: false,
    };
    /// Neither, but the end of what the peer sends: for a connection that waits for something else.
    pub const END: Interest = Interest {
        readable: false,
        writable: false,
        ends: true,
    };
    /// Neither: the descriptor stays registered, for a connection that is not to be read for a
    /// while.
    pub const NONE: Interest = Interest {
        readable: false,
        writable: false,
        ends: false,
    };
}
