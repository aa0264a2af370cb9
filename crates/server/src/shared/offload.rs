//! Whether values may be only in the log, and whether values leave memory.
//!
//! Under `maxmemory-policy offload` values leave memory. A value with a file of its own may be only in the
//! log under every policy. [`Offload::is_on`] changes while no worker is inside a turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

use keyspace::Exclusive;

use super::Shared;
use crate::config::MaxMemoryPolicy;

/// Leaves of trees that are only in the log.
#[derive(Default)]
pub(crate) struct ColdLeaves {
    leaves: AtomicI64,
    bytes: AtomicI64,
}

impl ColdLeaves {
    /// Counts so many more, or fewer, and the bytes of their records.
    pub(crate) fn add(&self, leaves: i64, bytes: i64) {
        if leaves != 0 {
            self.leaves.fetch_add(leaves, Relaxed);
            self.bytes.fetch_add(bytes, Relaxed);
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.leaves.load(Relaxed).max(0) as u64
    }

    /// Bytes of their records.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed).max(0) as u64
    }
}

/// State of offloading.
#[derive(Default)]
pub(crate) struct Offload {
    pub(crate) leaves: Arc<ColdLeaves>,
    is_on: AtomicBool,
    /// Whether large values may be only in the log.
    expects_large: AtomicBool,
    /// Large values that are arriving, or whose requests have not run yet.
    pub(crate) arriving: AtomicUsize,
    /// Pieces of large values written since the start.
    pub(crate) arrived_pieces: AtomicU64,
    /// Whether values leave memory.
    is_offloading: AtomicBool,
    /// Whether a command waits for offloading to begin before memory is nearly used up, because it needs
    /// much.
    is_wanted: AtomicBool,
    /// For tests: whether the keys of a command are offloaded before it runs.
    pub(crate) is_eager: AtomicBool,
    /// Whether offloading was turned on for good.
    is_asked: AtomicBool,
}

impl Offload {
    /// Whether values may be only in the log.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// For tests: whether the keys of a command are offloaded before it runs.
    pub(crate) fn set_eager(&self, is_eager: bool) {
        self.is_eager.store(is_eager, Relaxed);
    }

    /// Whether values leave memory when it is short.
    #[inline]
    pub(crate) fn is_offloading(&self) -> bool {
        self.is_offloading.load(Relaxed)
    }

    /// Whether offloading was asked for since the last call.
    pub(crate) fn take_wanted(&self) -> bool {
        self.is_wanted.swap(false, Relaxed)
    }

    /// Asks the control thread to begin offloading.
    #[cold]
    pub(crate) fn want_offloading(&self) {
        self.is_wanted.store(true, Relaxed);
    }

    /// Allows large values that are only in the log.
    pub(crate) fn expect_large(&self, _: &Exclusive<'_>) {
        self.expects_large.store(true, Relaxed);
        self.is_on.store(true, Relaxed);
    }

    /// Whether large values may be only in the log.
    pub(crate) fn is_large_expected(&self) -> bool {
        self.expects_large.load(Relaxed)
    }

    /// Disallows large values that are only in the log. The caller knows that there is none and that none is
    /// arriving.
    pub(crate) fn expect_no_large(&self, _: &Exclusive<'_>) {
        self.expects_large.store(false, Relaxed);
        self.is_on.store(self.is_offloading(), Relaxed);
    }

    /// Begins offloading.
    pub(crate) fn turn_on(&self, _: &Exclusive<'_>) {
        self.is_on.store(true, Relaxed);
        self.is_offloading.store(true, Relaxed);
    }

    /// [`Offload::turn_on`] that [`Shared::end_offloading`] does not undo.
    pub(crate) fn turn_on_for_good(&self, alone: &Exclusive<'_>) {
        self.is_asked.store(true, Relaxed);
        self.turn_on(alone);
    }
}

impl Shared {
    /// Whether the policy is `offload`.
    pub(crate) fn offloads(&self) -> bool {
        self.settings.max_memory_policy() == MaxMemoryPolicy::Offload
    }

    /// Begins offloading and tells the keyspace.
    pub(crate) fn begin_offloading(&self, alone: &Exclusive<'_>) {
        self.offload.turn_on(alone);
        self.apply_eviction_settings();
    }

    /// Whether values, or leaves of trees, are only in the log.
    pub(crate) fn has_cold(&self, alone: &Exclusive<'_>) -> bool {
        self.keyspace.has_cold(alone) || self.offload.leaves.count() > 0
    }

    /// Stops offloading until memory is nearly used up, if all values are in memory. Returns whether it has
    /// stopped.
    pub(crate) fn end_offloading(&self) -> bool {
        let alone = self.keyspace.turns().exclusive();
        if self.has_cold(&alone) || self.offload.is_asked.load(Relaxed) {
            return false;
        }
        self.offload.is_offloading.store(false, Relaxed);
        let is_on = self.offload.is_large_expected();
        self.offload.is_on.store(is_on, Relaxed);
        self.apply_eviction_settings();
        true
    }
}
