//! Waits of connections: their numbers and their ends. Each end first claims the wait
//! ([`Client::claim_wait`](super::clients::Client::claim_wait)), which succeeds once.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Numbers of waits: they ascend, and 0 is none.
#[derive(Default)]
pub(crate) struct WaitNumbers(AtomicU64);

impl WaitNumbers {
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Relaxed) + 1
    }
}

/// Why a wait ended.
pub(crate) enum Outcome {
    /// This is the reply.
    Reply(Vec<u8>),
    /// Its time is up, or CLIENT UNBLOCK said so.
    TimeIsUp,
    /// CLIENT UNBLOCK ERROR.
    Error,
}
