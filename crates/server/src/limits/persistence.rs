//! The log, its replay, and snapshots.

/// Bytes of a snapshot's file that are written at once, at most.
pub(crate) const SNAPSHOT_WRITE_BYTES: usize = 1 << 20;

/// How much the system prefers workers to threads that work in the background, as `nice` has it: at 10
/// these get a tenth of a processor that both want.
pub(crate) const BACKGROUND_NICE: i32 = 10;

/// While all workers are busy, a snapshot sleeps N times as long as it works, unless copies of writers
/// exceed 1/M of all memory.
pub(crate) const SNAPSHOT_REST_SHARE: f64 = 8.0;
pub(crate) const SNAPSHOT_COPIES_SHARE: usize = 16;

/// Least work of a background task between two sleeps, microseconds. The second is that of a snapshot,
/// which works without end.
pub(crate) const WORK_US: u64 = 1000;
pub(crate) const SNAPSHOT_WORK_US: u64 = 200;

/// Threads that read cold values for a snapshot, and bytes that they read at a time: at most 1/N of
/// `maxmemory`.
pub(crate) const SNAPSHOT_READERS: usize = 8;
pub(crate) const SNAPSHOT_READ_BYTES: u64 = 4 << 20;
pub(crate) const SNAPSHOT_READ_SHARE: u64 = 64;

/// Fields of a hash that are written or read between two looks at whether to go on.
pub(crate) const SNAPSHOT_FIELDS: usize = 512;

/// Fields of a hash, and bytes of a field or a value, up to which it is written packed, and members of a
/// set of integers: Redis' default limits.
pub(crate) const PACKED_ENTRIES: u64 = 512;
pub(crate) const PACKED_INTEGERS: u64 = 512;
pub(crate) const PACKED_VALUE_BYTES: usize = 64;

/// How often a log that begins or ends looks whether all workers are between two turns.
pub(crate) const BETWEEN_TURNS_LOOK: std::time::Duration = std::time::Duration::from_micros(100);

/// How often is looked whether values that come back to memory after a start are all there.
pub(crate) const WARMING_LOOK: std::time::Duration = std::time::Duration::from_millis(5);

/// Seconds after a snapshot that failed before another one begins by itself.
pub(crate) const SNAPSHOT_RETRY_S: i64 = 5;

/// Bytes of keys and values that are put into the keyspace together while a snapshot is loaded.
pub(crate) const LOAD_BUFFER_BYTES: usize = 128 * 1024;

/// The part of the limit of memory, and of all shards, that is freed in one go while a snapshot is
/// loaded; how often all shards are gone through for it.
pub(crate) const RELIEF_SHARE: usize = 8;
pub(crate) const RELIEF_PASSES: usize = 2;

/// Values, or leaves of collections, that leave memory under one lock meanwhile, if the shard has few values.
pub(crate) const RELIEF_LEAVES: usize = 256;

/// Buffers that wait for each of the threads that load a snapshot.
pub(crate) const LOAD_BUFFERS_PER_THREAD: usize = 4;

/// How often the thread that reads looks whether its buffers are in the keyspace, while memory is short;
/// bytes of a collection between two looks at whether memory is short.
pub(crate) const LOAD_LOOK: std::time::Duration = std::time::Duration::from_millis(1);
pub(crate) const LOAD_LOOK_BYTES: u64 = 1 << 20;

/// Threads that put loaded data into the keyspace; more would wait for the one that reads.
pub(crate) const LOAD_THREADS: usize = 6;

/// Keys whose places are asked for before the first of them is put into the keyspace.
pub(crate) const LOAD_WINDOW: usize = 32;

/// Bytes of one batch in the log. A command that changes more is several batches, which a crash may tear
/// apart.
pub(crate) const JOURNAL_BATCH_BYTES: u64 = 2 << 30;

/// Values of at least N bytes are logged in part when less than 1/M of them changes.
pub(crate) const PATCH_MIN_BYTES: usize = 4096;
pub(crate) const PATCH_SHARE: usize = 4;

/// Bytes that a worker keeps for noting which keys a command changes.
pub(crate) const JOURNAL_KEEP_BYTES: usize = 256 << 10;

/// Bytes that a request may append to the log beyond its own: headers of records, an expiry.
pub(crate) const JOURNAL_REQUEST_BYTES: u64 = 128;

/// 1/N of a small `maxmemory` is taken by the log's ring, but at least the minimum that it needs.
pub(crate) const LOG_RING_SHARE: u64 = 16;
pub(crate) const LEAST_LOG_RING_BYTES: usize = 1 << 20;
pub(crate) const LOG_RING_APPENDER_BYTES: usize = 16 << 10;

/// The part of a small file system that a segment of the log takes, and the bytes that it may have
/// however small that is.
pub(crate) const LOG_SEGMENT_DISK_SHARE: u64 = 16;
pub(crate) const LEAST_LOG_SEGMENT_BYTES: u64 = 2 << 20;

/// The part of a small `maxmemory` that hints of the running segment may take.
pub(crate) const LOG_HINT_SHARE: u64 = 64;

/// Segments of garbage that the log may have however little data there is: compaction costs more where
/// it is less.
pub(crate) const LOG_GARBAGE_SEGMENTS: u64 = 4;

/// Buckets, and about how many bytes of records, that are written to a new log under one lock of a shard.
pub(crate) const BEGIN_BUCKETS: usize = 16;
pub(crate) const BEGIN_BYTES: u64 = 64 * 1024;

/// How long it waits before it looks again whether a full disk has room.
pub(crate) const BEGIN_RETRY_MS: u64 = 100;

/// How long the start waits for the log before it lets clients find out that data is being loaded.
pub(crate) const LOADING_PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// Parts in which a log is replayed, at most.
pub(crate) const REPLAY_PARTS: usize = 256;

/// Threads that replay a log, beside one for each worker: while one waits for the disk another has
/// something to do.
pub(crate) const REPLAY_EXTRA_THREADS: usize = 1;

/// Values that a replay reads back because a part of them has changed, before it leaves no more values
/// in the log that are so large that this may happen to them.
pub(crate) const REPLAY_FETCHES: usize = 1000;

/// While all workers are busy, warming sleeps N times as long as it works.
pub(crate) const WARMING_SHARE: f64 = 8.0;

/// Batches of records after which a replay tries again to let values leave memory that came before, if
/// none could.
pub(crate) const BARREN_SKIPS: usize = 64;

/// Bytes of log for each worker from which on a replay is said to fill a lot of memory.
pub(crate) const REPLAY_FILLS_BYTES: u64 = 64 << 20;

/// Keys from which on it is worth noting how many there are, and the part of them that has to come or go
/// before it is noted again.
pub(crate) const SIZES_MIN_KEYS: u64 = 100_000;
pub(crate) const SIZES_CHANGE_SHARE: u64 = 16;

/// How long DEBUG LOADAOF waits for workers to let go of the log that was closed, and how often it looks.
pub(crate) const AGAIN_PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
pub(crate) const AGAIN_RETRY: std::time::Duration = std::time::Duration::from_millis(1);

/// Keys that a message about a damaged log names.
pub(crate) const NAMED_KEYS: usize = 8;

/// Milliseconds between two lines that say how far a replay has come.
pub(crate) const REPLAY_REPORT_MS: i64 = 2000;
