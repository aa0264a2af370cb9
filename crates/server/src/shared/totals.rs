//! Counters of the whole server.

use std::sync::atomic::AtomicU64;

use crate::metrics::Counter;

/// Counters that are not on any hot path.
#[derive(Default)]
pub(crate) struct Totals {
    /// Connections accepted; written by the control thread.
    pub(crate) connections: Counter,
    /// Connections refused for `maxclients` or protected mode.
    pub(crate) rejected: Counter,
    /// Figures of the last second, kept by the control thread.
    pub(crate) commands_per_second: Counter,
    pub(crate) input_per_second: Counter,
    pub(crate) output_per_second: Counter,
    /// Peak of memory in use, bytes.
    pub(crate) peak_memory: Counter,
    /// When that was, Unix seconds.
    pub(crate) peak_memory_s: Counter,
    /// Slowest step of resizing an index, microseconds.
    pub(crate) slowest_resize_us: Counter,
    /// Expired keys at the last reset of statistics.
    pub(crate) expired_at_reset: Counter,
    pub(crate) expired_fields_at_reset: Counter,
    /// Objects freed in the background at the last reset of statistics.
    pub(crate) reclaimed_at_reset: Counter,
    /// Clients closed at their output limit.
    pub(crate) output_limit_disconnects: AtomicU64,
    /// Clients closed at `maxmemory-clients`.
    pub(crate) evicted_clients: AtomicU64,
    /// Clients closed at `client-query-buffer-limit`.
    pub(crate) query_limit_disconnects: AtomicU64,
}
