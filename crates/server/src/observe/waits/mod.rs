//! Waits of connections: the lines of keys, and what ends a wait.
//!
//! Each end of a wait first claims it ([`Client::claim_wait`]), which succeeds once. How a command lets its
//! connection wait is in [`crate::command::park`]; how the connection's worker goes on is in
//! [`crate::net::waits`].

#[cfg(test)]
mod model;
pub(crate) mod ready;
mod waiters;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::observe::Observed;
use crate::shared::clients::Client;

pub(crate) use waiters::Waiters;

/// The bytes of a key.
pub(crate) type Key = Box<[u8]>;

/// What waits in the lines of keys.
pub(crate) struct KeyWait {
    pub(crate) number: u64,
    pub(crate) client: Arc<Client>,
    /// What is taken for the connection.
    pub(crate) asks: Asks,
}

/// What a connection that waits for a key is given: taken on whatever worker something was put there, by the
/// commands' rules ([`crate::command::park`]).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// The value of the key, which goes.
    Value,
}

impl KeyWait {
    /// Whether nobody has claimed the wait.
    fn is_waiting(&self) -> bool {
        self.client.wait.load(Relaxed) == self.number
    }

    /// Ends the wait, unless somebody else has.
    pub(crate) fn claim(&self) -> bool {
        self.client.claim_wait(self.number)
    }
}

impl Observed {
    /// Whether nobody waits for a key of a database. The shard is locked.
    pub(crate) fn is_line_empty(&self, db: usize, key: keyspace::Key<'_>) -> bool {
        let shard = self.keyspace.shard_of(key.hash);
        let waiters = &self.observers.waiters;
        waiters.first(shard, db, key).is_none()
    }
}
