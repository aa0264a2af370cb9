//! Waits of connections: their numbers and their ends. Each end first claims the wait
//! ([`Client::claim_wait`](super::clients::Client::claim_wait)), which succeeds once.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::request::Failure;

/// Source of the numbers of waits: ascending; 0 is no wait.
#[derive(Default)]
pub(crate) struct WaitNumbers(AtomicU64);

impl WaitNumbers {
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Relaxed) + 1
    }
}

/// Reason for the end of a wait.
pub(crate) enum Outcome {
    /// The wait has succeeded with this reply.
    Reply(Vec<u8>),
    /// There was something, but the command fails.
    Failed(Failure),
    /// The timeout has passed, or CLIENT UNBLOCK.
    TimeIsUp,
    /// CLIENT UNBLOCK ERROR.
    Error,
}
