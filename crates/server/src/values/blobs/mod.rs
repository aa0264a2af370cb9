//! Transfer of large values between sockets and files of their own, without holding them in memory.
//!
//! With a log, a value of `log-blob-size` bytes or more in SET (or a related command) is written to a file
//! while it arrives, and the value of the key is only in the log ([`crate::values::cold`]). GET and other
//! commands that send a value or a part of it send it from the file. Neither takes more memory than a few
//! pieces, whatever the length.
//!
//! ```text
//!  socket -- worker: pieces (`receive`) -- thread: file (`upload`) -- sync -- the request runs with the file
//!  file   -- thread: pieces (`pieces`) -- worker                         -- socket
//!           \- too many at a time: page cache -- worker: sendfile (`send`) --/
//! ```
//!
//! The rest of the request stays in the connection's buffer, with a few words in the place of the value, and
//! is parsed when the file is complete. So the request runs like any other and has no effect before. Commands
//! that need the bytes of such a value get them in memory, like those of any value that is only in the log,
//! if there is room.
//!
//! Invariants:
//! 1. A worker never blocks on a disk here; threads do that ([`Work`]).
//! 2. A request that does not use its file removes it, and so does a connection that ends before.
//! 3. A key gets a large value only while its shard is not pinned: a command with a pin relies on values in
//!    memory.
//!
//! Not here: the files themselves (crate `ferrite_log`), and the commands (`command/string`).

mod pieces;
mod send;
mod upload;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ferrite_log::{Address, Blob, BlobStore};
use keyspace::{ColdValue, Turn};

use crate::limits::{BLOB_NICE, BLOB_THREADS, JOURNAL_VALUE_BYTES};
use crate::request::Failure;
use crate::shared::Mailboxes;
use crate::values::Values;
use crate::values::pool::{Job, Pool};

use send::ReadIn;
pub(crate) use send::{Before, Ready, Sending, Sent};
pub(crate) use upload::{Incoming, Upload};

/// Result of an upload: the file, or an error reply.
type Outcome = Result<Arc<Blob>, Failure>;

/// Large value of a request that has not run yet.
pub(crate) struct Received {
    pub(crate) outcome: Outcome,
    _arriving: Arriving,
}

/// Counts a large value that is arriving, or whose request has not run yet.
struct Arriving(&'static Values);

impl Arriving {
    fn new(server: &'static Values) -> Arriving {
        server.offload.arriving.fetch_add(1, Relaxed);
        Arriving(server)
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.0.offload.arriving.fetch_sub(1, Relaxed);
    }
}

impl Received {
    pub(crate) fn new(server: &'static Values, outcome: Outcome) -> Box<Received> {
        let _arriving = Arriving::new(server);
        Box::new(Received { outcome, _arriving })
    }
}

/// Transfers of large values, and their threads.
pub(crate) struct Transfers {
    /// Reads past the page cache, or from it.
    reading: Pool<pieces::Read>,
    /// Transfers that take processor time.
    slow: Pool<Work>,
    room: pieces::Room,
    /// Uploads that can continue, or are complete.
    pub(crate) uploaded: Mailboxes<Arc<Incoming>>,
    /// Messages that more of a value can be sent.
    pub(crate) ready: Mailboxes<Ready>,
}

impl Transfers {
    pub(crate) fn new(workers: usize) -> Transfers {
        Transfers {
            reading: Pool::default(),
            slow: Pool::default(),
            room: pieces::Room::default(),
            uploaded: Mailboxes::new(workers),
            ready: Mailboxes::new(workers),
        }
    }
}

/// Job of a transfer that takes processor time.
pub(crate) enum Work {
    Write(Arc<Incoming>),
    Read(Arc<pieces::Outgoing>),
    ReadIn(Box<ReadIn>),
}

impl Job for Work {
    const NAME: &'static str = "blob";
    const THREADS: usize = BLOB_THREADS;
    // Copying and checking pieces would take processor time from small requests.
    const NICE: i32 = BLOB_NICE;

    fn run(self) {
        match self {
            Work::Write(upload) => upload.write(),
            Work::Read(part) => part.read(true),
            Work::ReadIn(part) => part.read(),
        }
    }
}

/// Whether a value has a file of its own.
pub(crate) fn is_blob(value: ColdValue) -> bool {
    Address::from_bits(value.address.0.get()).is_some_and(Address::is_blob)
}

impl Values {
    /// If no value has a file any more, lets commands run without a check for such values, until one arrives.
    pub(crate) fn forget_large(&self, turn: &mut Turn<'_>) {
        if self.offload.is_large_expected() && !self.has_large() {
            turn.exclusive(|alone| {
                if !self.has_large() {
                    self.offload.expect_no_large(alone);
                }
            });
        }
    }

    /// Whether a value has a file, or may have one soon.
    fn has_large(&self) -> bool {
        let is_used = |store: BlobStore| store.is_used();
        self.offload.arriving.load(Relaxed) > 0
            || self.persistence.blob_store().is_some_and(is_used)
    }

    /// Whether a value may be loaded into memory for a command. True for offloaded values, which were in
    /// memory.
    pub(crate) fn may_hold(&self, value: ColdValue) -> bool {
        if !is_blob(value) {
            return true;
        }
        value.len <= JOURNAL_VALUE_BYTES && value.len <= self.most_held() as u64
    }
}
