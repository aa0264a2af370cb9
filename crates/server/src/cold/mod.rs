//! Values that are in the log alone: bringing them back for the commands that need them.
//!
//! Under `maxmemory-policy offload` values leave memory (`memory/keys.rs` decides when, `keyspace` which);
//! keys, expiries and lengths stay. From the first time on that this may have happened ([`Cold::is_on`]),
//! each command is *prepared* before it runs:
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
//! 2. [`Cold::is_on`] changes while nobody is inside a turn.
//! 3. A value is given back only to an entry that still has the address from which it was read.
//! 4. What values take that are being read back counts from before they are read (`promise`).
//! 5. What a connection has sent behind a command that is parked runs behind it.

mod fetch;
mod promise;
mod served;
mod wanted;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use keyspace::Exclusive;

use crate::config::Setting;
use crate::persistence::Phase;
use crate::pool::Pool;
use crate::server::Server;

pub(crate) use fetch::{Fetch, FetchOne};
pub(crate) use promise::{Promises, needed, taken};
pub(crate) use served::Served;
pub(crate) use wanted::{Arrived, FetchState, Wanted};

/// What all workers share.
#[derive(Default)]
pub(crate) struct Cold {
    is_on: AtomicBool,
    /// Whether values may be in the log alone because they are large.
    expects_large: AtomicBool,
    /// Large values that are arriving, or whose requests have yet to run.
    pub(crate) arriving: AtomicUsize,
    /// Pieces of such values that were written since the start.
    pub(crate) arrived_pieces: AtomicU64,
    /// Whether values leave memory.
    is_offloading: AtomicBool,
    /// Whether somebody waits for that to begin, who needs so much that memory is short before it is nearly
    /// used up.
    is_wanted: AtomicBool,
    /// Whether what a command uses leaves memory before it runs: tests want that.
    pub(crate) is_eager: AtomicBool,
    /// Whether values leave memory because somebody said so.
    is_asked: AtomicBool,
    pub(crate) threads: Pool<FetchOne>,
    /// What is being read back.
    pub(crate) promises: Promises,
}

impl Cold {
    /// Whether values may be in the log alone.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Says whether what a command uses leaves memory before it runs.
    pub(crate) fn set_eager(&self, is_eager: bool) {
        self.is_eager.store(is_eager, Relaxed);
    }

    /// Whether values leave memory when it is short.
    #[inline]
    pub(crate) fn is_offloading(&self) -> bool {
        self.is_offloading.load(Relaxed)
    }

    /// Asks the control thread to let values leave memory.
    #[cold]
    pub(crate) fn want_offloading(&self) {
        self.is_wanted.store(true, Relaxed);
    }

    /// Lets values be in the log alone from here on: large ones, which come that way at any time.
    pub(crate) fn expect_large(&self, _: &Exclusive<'_>) {
        self.expects_large.store(true, Relaxed);
        self.is_on.store(true, Relaxed);
    }

    /// Whether that was done.
    pub(crate) fn is_large_expected(&self) -> bool {
        self.expects_large.load(Relaxed)
    }

    /// Ends that: there are none, and none is arriving.
    pub(crate) fn expect_no_large(&self, _: &Exclusive<'_>) {
        self.expects_large.store(false, Relaxed);
        self.is_on.store(self.is_offloading(), Relaxed);
    }

    /// Lets values leave memory from here on.
    pub(crate) fn turn_on(&self, _: &Exclusive<'_>) {
        self.is_on.store(true, Relaxed);
        self.is_offloading.store(true, Relaxed);
    }

    /// [`Cold::turn_on`] for good, because somebody said so.
    pub(crate) fn turn_on_for_good(&self, alone: &Exclusive<'_>) {
        self.is_asked.store(true, Relaxed);
        self.turn_on(alone);
    }
}

impl Server {
    /// Whether the policy is that values leave memory for the log.
    pub(crate) fn offloads(&self) -> bool {
        self.settings.choice(Setting::MaxMemoryPolicy) == "offload"
    }

    /// Whether values may leave memory now, as far as the log is concerned: it has all there is.
    pub(crate) fn may_offload(&self) -> bool {
        self.persistence.is_open() && self.persistence.phase() == Phase::Settled
    }

    /// Whether it is time to let values leave memory for the first time.
    pub(crate) fn should_begin_offloading(&self) -> bool {
        !self.cold.is_offloading()
            && self.offloads()
            && (self.cold.is_wanted.swap(false, Relaxed) || self.memory.is_near())
            && self.may_offload()
    }

    /// Lets values leave memory from here on.
    pub(crate) fn begin_offloading(&self, alone: &Exclusive<'_>) {
        self.cold.turn_on(alone);
        self.apply_eviction_settings();
    }

    /// If all values are in memory, lets none leave until memory is nearly used up. Whether that is so.
    pub(crate) fn end_offloading(&self) -> bool {
        let alone = self.keyspace.turns().exclusive();
        let has_cold = self.keyspace.has_cold(&alone);
        if has_cold || self.cold.is_asked.load(Relaxed) {
            return false;
        }
        self.cold.is_offloading.store(false, Relaxed);
        let is_on = self.cold.is_large_expected();
        self.cold.is_on.store(is_on, Relaxed);
        self.apply_eviction_settings();
        true
    }
}
