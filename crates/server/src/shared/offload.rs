//! Whether values may be in the log alone, and whether they leave memory.
//!
//! Under `maxmemory-policy offload` values leave memory; a value with a file of its own may be in the log
//! alone at any time. [`Offload::is_on`] changes while no worker is inside a turn.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use keyspace::Exclusive;

use super::Shared;
use crate::config::Setting;

/// See the module.
#[derive(Default)]
pub(crate) struct Offload {
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
}

impl Offload {
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

    /// Whether that was asked for since the last call.
    pub(crate) fn take_wanted(&self) -> bool {
        self.is_wanted.swap(false, Relaxed)
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

    /// [`Offload::turn_on`] for good, because somebody said so.
    pub(crate) fn turn_on_for_good(&self, alone: &Exclusive<'_>) {
        self.is_asked.store(true, Relaxed);
        self.turn_on(alone);
    }
}

impl Shared {
    /// Whether the policy is that values leave memory for the log.
    pub(crate) fn offloads(&self) -> bool {
        self.settings.choice(Setting::MaxMemoryPolicy) == "offload"
    }

    /// Lets values leave memory from here on.
    pub(crate) fn begin_offloading(&self, alone: &Exclusive<'_>) {
        self.offload.turn_on(alone);
        self.apply_eviction_settings();
    }

    /// If all values are in memory, lets none leave until memory is nearly used up. Whether that is so.
    pub(crate) fn end_offloading(&self) -> bool {
        let alone = self.keyspace.turns().exclusive();
        let has_cold = self.keyspace.has_cold(&alone);
        if has_cold || self.offload.is_asked.load(Relaxed) {
            return false;
        }
        self.offload.is_offloading.store(false, Relaxed);
        let is_on = self.offload.is_large_expected();
        self.offload.is_on.store(is_on, Relaxed);
        self.apply_eviction_settings();
        true
    }
}
