//! Large values on their way between sockets and files of their own, past memory.
//!
//! With a log, a value of `log-blob-size` bytes or more that SET (or one of its relatives) brings goes to a
//! file while it arrives, and the key becomes one whose value is in the log alone ([`crate::values::cold`]).
//! GET sends it from there, and so do the others that send a value or a part of it. So neither takes more
//! memory than a few pieces, however large the value is.
//!
//! ```text
//!  socket -- worker: pieces (`receive`) -- thread: file (`upload`) -- synced -- the request runs, with the file for an argument
//!  file   -- thread: pieces (`pieces`) -- worker                         -- socket
//!           \- too many at a time: page cache -- worker: sendfile (`send`) --/
//! ```
//!
//! What has arrived of the request beside the value stays in the connection's buffer, with a few words in the
//! place of the value, and is parsed when the file is there: so the request runs like any other, and until
//! then nobody sees a thing. Commands that need the bytes of such a value get them in memory, as of any that
//! is in the log alone, if there is room.
//!
//! Invariants:
//! 1. A worker never waits for a disk here: what may wait is done by threads ([`Work`]).
//! 2. A request that does not use the file it came with leaves none behind, and neither does a connection
//!    that ends before.
//! 3. A key gets a large value only while nobody has pinned its shard: who has relies on values that are in
//!    memory.
//!
//! Not here: the files themselves (crate `ferrite_log`), and what commands make of them (`command/string`).

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

/// What has become of a large value: its file, or why there is none.
type Outcome = Result<Arc<Blob>, Failure>;

/// A large value that has come with a request which has yet to run.
pub(crate) struct Received {
    pub(crate) outcome: Outcome,
    _arriving: Arriving,
}

/// A large value that is arriving, or whose request has yet to run.
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

/// Large values under way, and the threads that move them.
pub(crate) struct Transfers {
    /// Who reads past the page cache, or what is there.
    reading: Pool<pieces::Read>,
    /// Who does what takes a processor's time.
    slow: Pool<Work>,
    room: pieces::Room,
    /// Values of which more can be taken, or all of which are in their files.
    pub(crate) uploaded: Mailboxes<Arc<Incoming>>,
    /// Word that there is more of a value to send.
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

/// What threads do for large values that takes a processor's time.
pub(crate) enum Work {
    Write(Arc<Incoming>),
    Read(Arc<pieces::Outgoing>),
    ReadIn(Box<ReadIn>),
}

impl Job for Work {
    const NAME: &'static str = "blob";
    const THREADS: usize = BLOB_THREADS;
    // Copying and checking pieces takes time that those need who send small things.
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
    /// If there are no large values in files any more, lets commands run without a look for them, until one
    /// arrives.
    pub(crate) fn forget_large(&self, turn: &mut Turn<'_>) {
        if self.offload.is_large_expected() && !self.has_large() {
            turn.exclusive(|alone| {
                if !self.has_large() {
                    self.offload.expect_no_large(alone);
                }
            });
        }
    }

    /// Whether there is a large value in a file, or may be soon.
    fn has_large(&self) -> bool {
        let is_used = |store: BlobStore| store.is_used();
        self.offload.arriving.load(Relaxed) > 0
            || self.persistence.blob_store().is_some_and(is_used)
    }

    /// Whether there can ever be room in memory for a value that a command needs. What left memory has been
    /// there.
    pub(crate) fn may_hold(&self, value: ColdValue) -> bool {
        if !is_blob(value) {
            return true;
        }
        value.len <= JOURNAL_VALUE_BYTES && value.len <= self.most_held() as u64
    }
}
