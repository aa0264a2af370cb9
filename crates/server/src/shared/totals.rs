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
    /// The most memory in use that was ever seen.
    pub(crate) peak_memory: Counter,
    /// Microseconds of the slowest step of resizing an index.
    pub(crate) slowest_resize_us: Counter,
    /// Keys that had expired when statistics were last set to zero.
    pub(crate) expired_at_reset: Counter,
    /// Things that had been freed in the background by then.
    pub(crate) reclaimed_at_reset: Counter,
    /// Clients dropped because they did not read their replies.
    pub(crate) output_limit_disconnects: AtomicU64,
    /// Clients dropped because all together took too much memory.
    pub(crate) evicted_clients: AtomicU64,
    /// Clients dropped because a request grew beyond client-query-buffer-limit.
    pub(crate) query_limit_disconnects: AtomicU64,
}
