//! Commands and large values that have files of their own ([`crate::values::blobs`]).

use std::sync::Arc;

use ferrite_log::Blob;
use keyspace::Key;

use super::{Command, Context, Next};
use crate::request::{Args, Failure};
use crate::values::blobs::Received;

/// Whether a command copes with values that have files of their own, as they are.
pub(crate) fn copes(command: &Command, args: &Args<'_>, in_transaction: bool) -> bool {
    let large = &command.spec.large;
    (large.sends)(args) || large.shares && !in_transaction
}

impl Context<'_> {
    /// Takes the file that came with the request.
    ///
    /// # Errors
    /// There is none, for the disk or the log.
    pub(crate) fn take_received(&mut self) -> Result<Arc<Blob>, Failure> {
        let received = self.extras.received.take().ok_or(LOG_CHANGED)?;
        let blob = received.outcome?;
        match self.store.journal {
            Some(journal) if journal.has_made(&blob) => Ok(blob),
            _ => Err(LOG_CHANGED),
        }
    }

    /// How many of the pins of a key's shard are the running command's own.
    pub(crate) fn own_pins(&self, db: usize, key: Key<'_>) -> u32 {
        let shard = self.store.keyspace.shard_of(key.hash);
        let is_same = |&&(other, hash): &&(usize, u64)| {
            other == db && self.store.keyspace.shard_of(hash) == shard
        };
        self.extras.pins.iter().filter(is_same).count() as u32
    }

    /// Lets the request come again soon, with its file: a transaction or command needs the shard's values
    /// now.
    pub(crate) fn come_again(&mut self, blob: Arc<Blob>) -> Next {
        self.extras.received = Some(Received::new(self.server, Ok(blob)));
        Next::Retry
    }
}

/// Why a large value that has arrived is not kept.
const LOG_CHANGED: Failure = Failure::of(
    "MISCONF Errors writing to the AOF file: the log was closed while the value arrived",
);
