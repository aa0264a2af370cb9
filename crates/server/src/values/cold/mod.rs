//! Values that are in the log alone: bringing them back for the commands that need them.
//!
//! Under `maxmemory-policy offload` values leave memory ([`crate::store::make_room`] decides when, `keyspace`
//! which); keys, expiries and lengths stay. From the first time on that this may have happened
//! ([`Offload::is_on`]), each command is *prepared* before it runs:
//!
//! ```text
//!  command -- its row says of which keys it needs the values (`Spec::needs`) -- all in memory: their shards are pinned, it runs
//!                                                                            |- the rest in the page cache: likewise (`at_hand`)
//!                                                                            \- some are not:   the connection is parked
//!  parked  -- the poller (`ring`) or threads (`fetch`) read the values -- the worker gives them back to their entries, and runs the command anew
//! ```
//!
//! A pin (see [`keyspace::Guard::pin`]) lasts until the command has run, in the same turn. EXEC looks when it
//! holds its shards, so it pins nothing. What still is not there when it is needed (after
//! [`FETCH_TRIES`](crate::limits::FETCH_TRIES) rounds, inside a transaction that exchanges databases, for
//! DEBUG) is read on the spot.
//!
//! Invariants:
//! 1. No handler meets a cold entry whose value its row says it needs; but if it only sends values
//!    (`LargeUse::sends`) it may be one that is served.
//! 2. [`Offload::is_on`] changes while nobody is inside a turn.
//! 3. A value is given back only to an entry that still has the address from which it was read.
//! 4. What values take that are being read back counts from before they are read (`promise`).
//! 5. What a connection has sent behind a command that is parked runs behind it.

mod fetch;
mod promise;
mod served;
mod wanted;

use std::sync::Arc;

use crate::shared::Mailboxes;
use crate::values::pool::Pool;

pub(crate) use fetch::{Fetch, FetchOne};
pub(crate) use promise::{Promises, needed, taken};
pub(crate) use served::Served;
pub(crate) use wanted::{Arrived, FetchState, Wanted};

/// The threads that read values back, and what is under way.
pub(crate) struct Fetching {
    pub(crate) threads: Pool<FetchOne>,
    /// Memory that the values will take.
    pub(crate) promises: Promises,
    /// Fetches of which every value was read.
    pub(crate) fetched: Mailboxes<Arc<Fetch>>,
}

impl Fetching {
    pub(crate) fn new(workers: usize) -> Fetching {
        Fetching {
            threads: Pool::default(),
            promises: Promises::default(),
            fetched: Mailboxes::new(workers),
        }
    }
}
