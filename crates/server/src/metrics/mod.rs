//! Counters of workers, latencies, errors, slow commands, hot keys, and the scan of all keys.

pub(crate) mod counters;
pub(crate) mod errorstats;
pub(crate) mod hotkeys;
pub(crate) mod key_scan;
pub(crate) mod latency;
pub(crate) mod slowlog;

pub(crate) use counters::{COUNTS, CommandStats, Counter, Distribution, WorkerStats};
