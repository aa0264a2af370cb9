//! Every bound of the log that is not an option, by name.

use std::time::Duration;

/// The most ring credit that is taken at once, so that the shared counter is rarely touched.
pub(crate) const LEASE_MAX: u64 = 256 << 10;
pub(crate) const LEASE_MIN: u64 = 1 << 10;

/// Ring bytes that are never lent, so that the log can always append its own marks.
pub(crate) const RING_RESERVE: u64 = 4096;

/// The part of the ring that one window of requests may ask for. More is asked for piece by piece.
pub(crate) const WINDOW_SHARE: u64 = 4;

/// The part of the ring that is written with one call at most.
pub(crate) const PIECE_SHARE: u64 = 8;

/// The part of the ring that, once filled, ends the log thread's nap.
pub(crate) const WAKE_SHARE: u64 = 4;

/// The part of the ring from which on what is complete goes past the page cache. Below, a call of the system
/// for every nap costs more than the cache.
pub(crate) const DIRECT_SHARE: u64 = 256;

/// The part of the ring that, once filled, says that the disk does not keep up.
pub(crate) const BEHIND_SHARE: u64 = 2;

/// Ways that are tried through the gaps of a ring whose writers had not noted their places. One is right; a
/// thread has to die between two instructions for a second one to be possible.
pub(crate) const TAKEOVER_ATTEMPTS: u32 = 1000;

/// So often, while the disk does not keep up, the way that was slower is tried.
pub(crate) const WAY_RETRY: u32 = 64;

/// How long the log thread naps while there is traffic.
pub(crate) const NAP: Duration = Duration::from_millis(2);

/// Naps without anything to write before the log thread sleeps until it is woken.
pub(crate) const NAPS: u32 = 16;

/// The longest any thread of the log sleeps. Nothing depends on it: what one waits for wakes it.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// How long `everysec` lets what was written wait for its sync.
pub(crate) const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// A disk whose syncs take longer than this is waited for by the log thread alone, and not by a thread that
/// has other things to do.
pub(crate) const SYNC_HERE: Duration = Duration::from_micros(500);

/// How often a write that found no space is tried again.
pub(crate) const FULL_RETRY: Duration = Duration::from_millis(50);

/// The part of the reserve of a full disk that is left to compaction: removals may use what is above it.
pub(crate) const COMPACTION_RESERVE_SHARE: u64 = 4;

/// On a nearly full disk a segment takes one part in so many of the free bytes, and so many bytes at least.
pub(crate) const TIGHT_SHARE: u64 = 4;
pub(crate) const TIGHT_MIN: u64 = 64 << 10;

/// The part of the reserve that a run leaves as space for the first segment of the next one. More than
/// compaction's part, so that keys can be deleted.
pub(crate) const LEFT_SHARE: u64 = 2;

/// Zeroes that are written ahead of the log while every turn is synced: with short records, for thousands of
/// syncs.
pub(crate) const PAVE: u64 = 1 << 20;

/// Bytes written between two marks in the log, at least: marks are evidence and cost space.
pub(crate) const MARK_INTERVAL: u64 = 4096;

/// Dead bytes that an appender notes for itself before it tells everybody.
pub(crate) const DEAD_SLACK: u64 = 64 << 10;

/// Dead records of a segment that has not begun yet, which an appender remembers one by one.
pub(crate) const EARLY_DEAD: usize = 64 << 10;

/// Bytes that compaction reads and writes before it commits and looks at its pace.
pub(crate) const COMPACTION_SLICE: u64 = 128 << 10;

/// Slices after which it looks again how fast it may go.
pub(crate) const COMPACTION_SLICES: u32 = 8;

/// How many times quicker compaction goes where garbage reaches its bound than where it begins.
pub(crate) const COMPACTION_RATE_RANGE: f64 = 16.0;

/// The part of the tolerated garbage, in percent, from which on compaction has no limit: the segment that it
/// empties counts until it is gone.
pub(crate) const COMPACTION_BOUND_PERCENT: u64 = 90;

/// The pressure (see the module `pace`) from which on whoever appends is held back, how long for each MiB and
/// each pressure more, and for how long at most.
pub(crate) const BRAKE_PRESSURE: f64 = 1.1;
pub(crate) const BRAKE_NS: u64 = 60_000_000;
pub(crate) const BRAKE_MAX_NS: u64 = 100_000_000;

/// The shortest and the longest that is waited for that at a time.
pub(crate) const BRAKE_WAIT_MIN: Duration = Duration::from_micros(100);
pub(crate) const BRAKE_WAIT_MAX: Duration = Duration::from_millis(1);

/// How hard compaction works when somebody has asked for it: see the module `pace`.
pub(crate) const THOROUGH_PRESSURE: f64 = 0.75;

/// Tombstones that are tolerated, in percent of live bytes; more, and the oldest segment is emptied, so that
/// they can go.
pub(crate) const TOMBSTONE_PERCENT: u64 = 10;

/// What compaction leaves alone when it is to be thorough: segments of which less than one part in so many is
/// garbage. More than the log's own marks, so that it comes to an end.
pub(crate) const THOROUGH_SHARE: u64 = 16;

/// So many short segments are put together.
pub(crate) const SMALL_SEGMENTS: usize = 8;

/// Files of large values that wait for the log's next sync at most, each an open file, and so many that it
/// should not wait its second.
pub(crate) const UNSYNCED_MAX: usize = 256;
pub(crate) const UNSYNCED_MANY: usize = UNSYNCED_MAX / 2;

/// Bytes of a large value after which the disk is asked to begin with them, so that its end has little to
/// wait for.
pub(crate) const WRITE_BACK_BYTES: u64 = 4 << 20;

/// The part of a segment that its hints may take before they are compared with what has been written.
pub(crate) const HINT_SLACK_SHARE: u64 = 256;

/// Room that compaction gets at least for what it writes in place of an edit, or of a leaf that was split:
/// several leaves of up to 2 KiB. More find room one by one (`Appender::may_append`).
pub(crate) const LEAVES_BYTES: u64 = 16 << 10;

/// The part of a segment that is needed at most when its hints are read first, to leave out what is not.
pub(crate) const SPARSE_SHARE: u64 = 4;

/// What is not needed of a segment is read all the same between two records that are, up to so many bytes: a
/// read takes its time.
pub(crate) const STRETCH_GAP: u64 = 64 << 10;
