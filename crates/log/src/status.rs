//! What a log knows about itself.

use std::sync::atomic::AtomicU64;

use crate::address::Lsn;
use crate::error::Refusal;

/// Counts that only grow.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Times somebody had to wait for room in the ring.
    pub(crate) waits: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) sync_us: AtomicU64,
    pub(crate) sync_us_max: AtomicU64,
    /// The slowest since somebody asked.
    pub(crate) slow_write_us: AtomicU64,
    pub(crate) slow_sync_us: AtomicU64,
    pub(crate) slow_compaction_us: AtomicU64,
    /// Nanoseconds that a sync takes, on an average that forgets. This one does not only grow, nor does the
    /// next.
    pub(crate) sync_ns: AtomicU64,
    /// Bytes a second that compaction may read and write now: 0 if it does nothing, the maximum for no limit.
    pub(crate) compaction_rate: AtomicU64,
    pub(crate) compacted_segments: AtomicU64,
    pub(crate) compacted_bytes: AtomicU64,
    pub(crate) moved_bytes: AtomicU64,
}

/// What took longest in some time, in microseconds; 0 for what did not happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slowest {
    /// A write to a segment.
    pub write_us: u64,
    /// A sync.
    pub sync_us: u64,
    /// A slice of compaction.
    pub compaction_us: u64,
}

/// The state of a log at one moment, for INFO.
#[derive(Clone, Debug)]
pub struct Status {
    /// The position of the next record. `durable` is not beyond `written`, which is not beyond this.
    pub tail: Lsn,
    /// Everything below is in a file.
    pub written: Lsn,
    /// Everything below is on the disk.
    pub durable: Lsn,
    /// Why nothing is accepted, if nothing is.
    pub refusal: Option<Refusal>,
    /// Segments, the one that is being written included.
    pub segments: usize,
    /// Bytes of all segments.
    pub disk_bytes: u64,
    /// Bytes of them that are still needed, as far as it is known.
    pub live_bytes: u64,
    /// Bytes of tombstones in segments that are full.
    pub tombstone_bytes: u64,
    /// Values in files of their own, and their bytes.
    pub blobs: usize,
    /// Bytes of values in files of their own.
    pub blob_bytes: u64,
    /// Times an appender had to wait for room in the ring.
    pub waits: u64,
    /// Writes to segments.
    pub writes: u64,
    /// Syncs, microseconds they took in all, and the longest of them.
    pub syncs: u64,
    /// Microseconds that syncs took in all.
    pub sync_us: u64,
    /// Microseconds of the longest sync.
    pub sync_us_max: u64,
    /// Whether compaction goes on until little garbage is left ([`crate::Log::compact_thoroughly`]).
    pub is_thorough: bool,
    /// Segments that compaction has emptied.
    pub compacted_segments: u64,
    /// Bytes of those segments.
    pub compacted_bytes: u64,
    /// Bytes that compaction wrote again.
    pub moved_bytes: u64,
    /// Bytes a second that compaction may read and write now: 0 if it does nothing, the maximum for no limit.
    pub compaction_rate: u64,
}
