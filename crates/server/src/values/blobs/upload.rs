//! Upload of one large value to its file: a worker fills pieces and a thread writes them.
//!
//! There are at most [`UPLOAD_PIECES`] pieces. They begin at pages, like all large allocations, and are whole
//! blocks, so that the disk takes them unchanged. While all of them are to be written, the connection is not
//! read; it gets a message when one is free. One thread at a time writes a value's pieces; it also creates
//! the file and completes it.
//!
//! ```text
//!  filling -- full --> queue -- written --> spare -- filling ...
//!                        \- the last: the file is complete, the result is set, the worker gets a message
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ferrite_log::{BlobDraft, BlobStore, Error, Refusal};
use parking_lot::{Mutex, MutexGuard};
use sys::file::DIRECT_BLOCK;

use super::{Arriving, Outcome, Work};
use crate::limits::{UPLOAD_PIECE_BYTES, UPLOAD_PIECES};
use crate::request::Failure;
use crate::shared::clients::Client;
use crate::values::Values;

/// Connection's side of an upload. Dropping it cancels the upload.
pub(crate) struct Upload {
    shared: Arc<Incoming>,
    /// Bytes that are not in the queue yet.
    left: u64,
    /// Piece that is being filled; none if it has no capacity.
    filling: Vec<u8>,
    _arriving: Arriving,
}

/// State shared by worker and thread.
pub(crate) struct Incoming {
    server: &'static Values,
    pub(crate) client: Arc<Client>,
    /// Number of the connection's wait.
    pub(crate) number: u64,
    store: BlobStore,
    len: u64,
    state: Mutex<State>,
    /// Locked by the writing thread.
    writer: Mutex<Writer>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    /// Number of pieces allocated.
    pieces: usize,
    /// Whether a thread writes, or will.
    is_running: bool,
    /// Whether the queue has the last piece.
    is_last: bool,
    /// Whether the upload is cancelled.
    is_abandoned: bool,
    /// Whether the connection waits for a piece.
    wants_word: bool,
    outcome: Option<Outcome>,
}

/// State of the file.
enum Writer {
    Unbegun,
    Draft(Box<BlobDraft>),
    Failed(Failure),
    Over,
}

impl Upload {
    /// Begins the upload of a value of `len` bytes, of which the first have arrived.
    pub(crate) fn begin(
        server: &'static Values,
        client: Arc<Client>,
        store: BlobStore,
        len: u64,
        arrived: &[u8],
    ) -> Upload {
        let room = arrived.len().next_multiple_of(DIRECT_BLOCK);
        let mut filling = Vec::with_capacity(UPLOAD_PIECE_BYTES.max(room));
        filling.extend_from_slice(arrived);
        Upload {
            shared: Arc::new(Incoming {
                server,
                client,
                number: server.waits.next(),
                store,
                len,
                state: Mutex::new(State {
                    pieces: 1,
                    ..State::default()
                }),
                writer: Mutex::new(Writer::Unbegun),
            }),
            left: len,
            filling,
            _arriving: Arriving::new(server),
        }
    }

    /// Number of its wait.
    pub(crate) fn number(&self) -> u64 {
        self.shared.number
    }

    /// Buffer for the next bytes, with free capacity. `None` if the connection has to wait.
    pub(crate) fn room(&mut self) -> Option<&mut Vec<u8>> {
        if self.filling.len() == self.filling.capacity() {
            let full = std::mem::take(&mut self.filling);
            let mut state = self.shared.state.lock();
            if !full.is_empty() {
                self.left -= full.len() as u64;
                state.queue.push_back(full);
                self.shared.start(state);
                state = self.shared.state.lock();
            }
            self.filling = match state.spare.pop() {
                Some(spare) => spare,
                None if state.pieces < UPLOAD_PIECES => {
                    state.pieces += 1;
                    Vec::with_capacity(UPLOAD_PIECE_BYTES)
                }
                None => {
                    state.wants_word = true;
                    return None;
                }
            };
        }
        Some(&mut self.filling)
    }

    /// If the whole value has arrived, queues its end and returns the bytes behind it.
    pub(crate) fn take_end(&mut self) -> Option<Vec<u8>> {
        if (self.filling.len() as u64) < self.left {
            return None;
        }
        let behind = self.filling.split_off(self.left as usize);
        self.left = 0;
        let mut state = self.shared.state.lock();
        state.queue.push_back(std::mem::take(&mut self.filling));
        state.is_last = true;
        self.shared.start(state);
        Some(behind)
    }

    /// Whether the whole value has arrived and is queued.
    pub(crate) fn is_handed_over(&self) -> bool {
        self.left == 0
    }

    /// Result of the upload, once it is over.
    pub(crate) fn take_outcome(&mut self) -> Option<Outcome> {
        self.shared.state.lock().outcome.take()
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.shared.state.lock().pieces * UPLOAD_PIECE_BYTES
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_abandoned = true;
        state.queue.clear();
        // A thread removes the file.
        self.shared.start(state);
    }
}

impl Incoming {
    /// Starts a thread, if none writes.
    fn start(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if std::mem::replace(&mut state.is_running, true) {
            return;
        }
        drop(state);
        self.server.blobs.slow.add([Work::Write(Arc::clone(self))]);
    }

    /// Writes the queued pieces.
    pub(crate) fn write(self: Arc<Self>) {
        let mut writer = self.writer.lock();
        loop {
            let mut state = self.state.lock();
            if state.is_abandoned {
                // `is_running` stays true, so that no other thread starts.
                drop(state);
                *writer = Writer::Over;
                return;
            }
            if let Some(mut piece) = state.queue.pop_front() {
                let is_end = state.is_last && state.queue.is_empty();
                drop(state);
                writer.put(&self, &mut piece, is_end);
                self.server.offload.arrived_pieces.fetch_add(1, Relaxed);
                piece.clear();
                let mut state = self.state.lock();
                state.spare.push(piece);
                if std::mem::take(&mut state.wants_word) {
                    drop(state);
                    self.send_word();
                }
                continue;
            }
            if !state.is_last || state.outcome.is_some() {
                state.is_running = false;
                return;
            }
            drop(state);
            let outcome = writer.finish();
            let mut state = self.state.lock();
            state.spare = Vec::new();
            // `is_running` stays true, because there is nothing more to write.
            state.outcome = Some(outcome);
            drop(state);
            self.send_word();
            return;
        }
    }

    fn send_word(self: &Arc<Self>) {
        let (server, worker) = (self.server, self.client.worker);
        let uploaded = &server.blobs.uploaded;
        uploaded.send(&server.workers, worker, Arc::clone(self));
    }
}

impl Writer {
    /// Writes a piece. Errors are reported at the end.
    fn put(&mut self, shared: &Incoming, piece: &mut Vec<u8>, is_end: bool) {
        if matches!(self, Writer::Unbegun) {
            *self = match shared.store.begin(shared.len) {
                Ok(draft) => Writer::Draft(Box::new(draft)),
                Err(error) => Writer::Failed(failure(&error)),
            };
        }
        // The disk takes whole blocks best.
        let padding = piece.len().next_multiple_of(DIRECT_BLOCK) - piece.len();
        let padding = match is_end && piece.capacity() - piece.len() >= padding {
            true => padding,
            false => 0,
        };
        piece.resize(piece.len() + padding, 0);
        if let Writer::Draft(draft) = self
            && let Err(error) = draft.write_last(piece, padding)
        {
            *self = Writer::Failed(failure(&error));
        }
    }

    /// Completes the file. A value has at least one piece, so the file exists.
    fn finish(&mut self) -> Outcome {
        match std::mem::replace(self, Writer::Over) {
            Writer::Draft(draft) => draft.finish().map_err(|error| failure(&error)),
            Writer::Failed(failure) => Err(failure),
            Writer::Unbegun | Writer::Over => unreachable!("it was begun, and ends once"),
        }
    }
}

/// Error reply for a value that can't be stored.
fn failure(error: &Error) -> Failure {
    if !matches!(error, Error::Refused(Refusal::Closed)) {
        log::error!("a large value could not be kept: {error}");
    }
    Failure::new(format!("MISCONF Errors writing to the AOF file: {error}"))
}
