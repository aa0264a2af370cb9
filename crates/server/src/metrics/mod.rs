//! What the server counts of itself: counters of workers, latencies, errors, slow commands, hot keys, key
//! scans.

pub(crate) mod counters;
pub(crate) mod errorstats;
pub(crate) mod hotkeys;
pub(crate) mod key_scan;
pub(crate) mod latency;
pub(crate) mod slowlog;

pub(crate) use counters::{COUNTS, CommandStats, Counter, Distribution, WorkerStats};
