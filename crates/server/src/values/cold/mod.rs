//! Cold values: values that are only in the log, and reading them back for the commands that need them.
//!
//! Under `maxmemory-policy offload` values leave memory ([`crate::store::make_room`] decides when, `keyspace`
//! which); keys, expiries and lengths stay. Once values may be cold ([`is_on`]), each command is
//! *prepared* before it runs:
//!
//! ```text
//!  command -- `Spec::needs`: the keys whose values it needs
//!             |- all in memory:              their shards are pinned, it runs
//!             |- the rest in the page cache: likewise (`at_hand`)
//!             \- some are not:               the connection is parked
//!  parked  -- the poller (`ring`) or threads (`fetch`) read the values
//!          -- the worker gives them back to their entries, and runs the command again
//! ```
//!
//! A pin (see [`keyspace::Guard::pin`]) lasts until the command has run, in the same turn. EXEC prepares when
//! it holds its shards, so it pins nothing. Values that are still cold when they are needed (after
//! [`FETCH_TRIES`](crate::limits::FETCH_TRIES) rounds, inside a transaction that exchanges databases, for
//! DEBUG) are read at once, blocking.
//!
//! Invariants:
//! 1. No handler finds a cold entry if its row says that it needs the value, except one that only sends
//!    values (`LargeUse::sends`), which may be served.
//! 2. [`is_on`] changes while no worker is inside a turn.
//! 3. A value is given back only to an entry that still has the address from which it was read.
//! 4. Memory of values that are being read back counts from before they are read (`promise`).
//! 5. Requests of a connection behind a parked command run after it.
//!
//! [`is_on`]: crate::shared::Offload::is_on

mod ahead;
mod fetch;
mod promise;
mod served;
mod wanted;

use std::sync::Arc;

use crate::shared::Mailboxes;
use crate::values::pool::Pool;

pub(crate) use ahead::{LeavesAhead, ReadLeaves};
pub(crate) use fetch::{Fetch, FetchOne};
pub(crate) use promise::{Promises, needed, taken};
pub(crate) use served::Served;
pub(crate) use wanted::{Arrived, FetchState, Wanted};

/// Threads that read values back, and the fetches in progress.
pub(crate) struct Fetching {
    pub(crate) threads: Pool<FetchOne>,
    /// Threads that read leaves for walks through collections.
    pub(crate) walks: Pool<ReadLeaves>,
    /// Memory promised to values.
    pub(crate) promises: Promises,
    /// Complete fetches.
    pub(crate) fetched: Mailboxes<Arc<Fetch>>,
}

impl Fetching {
    pub(crate) fn new(workers: usize) -> Fetching {
        Fetching {
            threads: Pool::default(),
            walks: Pool::default(),
            promises: Promises::default(),
            fetched: Mailboxes::new(workers),
        }
    }
}
