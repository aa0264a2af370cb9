//! Memory and time: shares of `maxmemory`, eviction, expiry, shards, addresses.

/// Milliseconds between two rounds of the control thread's housekeeping.
pub(crate) const CRON_MS: i64 = 100;

/// Milliseconds between two looks at keys with an expiry.
pub(crate) const EXPIRE_MS: i64 = 10;

/// Items of a timing wheel looked at under one lock.
pub(crate) const EXPIRE_SLICE: usize = 64;

/// Items of timing wheels looked at in one turn.
pub(crate) const EXPIRE_TURN: usize = 2048;

/// Items of one shard looked at every [`EXPIRE_MS`] though they could wait.
pub(crate) const EXPIRE_SPARE: usize = 64;

/// Milliseconds after which a worker does the work on another's shards that this one hasn't found the
/// time for.
pub(crate) const EXPIRE_HELP_MS: i64 = 25;

/// Memory of holes between entries that is left alone: one part in this many.
pub(crate) const PACK_SHARE: usize = 24;

/// Nanoseconds that one turn may spend on moving entries together.
pub(crate) const PACK_NS: u64 = 500_000;

/// Milliseconds between two such turns while there is more to do, and while there is not.
pub(crate) const PACK_BUSY_MS: i64 = 10;
pub(crate) const PACK_IDLE_MS: i64 = 250;

/// Entries of a shard that are evicted under one lock, and the part of a shard that they are at most.
pub(crate) const EVICT_SLICE: usize = 64;
pub(crate) const EVICT_SLICE_SHARE: usize = 32;

/// Passes over all shards in vain, after which no value is taken to be able to leave memory.
pub(crate) const BARREN_PASSES: usize = 4;

/// Milliseconds without any offloaded value after which a write is refused: a short shortage is over by
/// then; after which older evidence does not count; and after which a worker that refuses writes
/// searches again.
pub(crate) const BARREN_MS: i64 = 750;
pub(crate) const BARREN_STALE_MS: i64 = 250;
pub(crate) const BARREN_REST_MS: i64 = 100;

/// Attempts of a worker to make room for unsent replies.
pub(crate) const ROOM_TRIES: usize = 4;

/// How often a worker spends in one turn the time that a command may spend on making room.
pub(crate) const TRIES_PER_TURN: u64 = 4;

/// Slabs emptied after such a slice at most, which makes its memory free for other shards.
pub(crate) const EVICT_PACKS: usize = 4;

/// Bytes of an evicted key for which space in the log is claimed; longer keys use the remaining space.
pub(crate) const EVICTED_KEY_BYTES: usize = 64;

/// Bytes that each worker may take before it checks the limit of memory again, mostly slabs and replies:
/// 1/N of the limit, within bounds.
pub(crate) const ROOM_SHARE: i64 = 224;
pub(crate) const ROOM_BYTES: i64 = 1024 * 1024;
pub(crate) const LEAST_ROOM_BYTES: i64 = 4 * 1024;

/// Bytes that stay free for the buffers of the log's threads: a part of its ring, which shrinks with the
/// limit, and no more than this.
pub(crate) const LOG_WORK_SHARE: i64 = 4;
pub(crate) const LOG_WORK_BYTES: i64 = 1024 * 1024;

/// The part of `maxmemory` that clients may take while `maxmemory-clients` is 0: one in this many, or a
/// little if that is more. With a `maxmemory` of some bytes a client could not even set another one.
pub(crate) const CLIENTS_SHARE: i64 = 8;
pub(crate) const LEAST_CLIENTS_BYTES: i64 = 64 * 1024;

/// The part of `maxmemory` that the table of tracked keys may take: one in this many. Beyond it keys
/// leave the table, and clients that have read them are told so.
pub(crate) const TRACKING_SHARE: i64 = 16;

/// The part of `maxmemory` that the slow log may take: one in this many, or a little if that is more.
pub(crate) const SLOW_LOG_SHARE: i64 = 64;
pub(crate) const LEAST_SLOW_LOG_BYTES: usize = 256 * 1024;

/// Bytes that the server keeps for each client, names and subscriptions, though memory is short.
pub(crate) const KEPT_FREELY_BYTES: usize = 16 * 1024;

/// Milliseconds for which clients are not searched again after a search that found none that may be
/// dropped.
pub(crate) const CLIENTS_SPARED_MS: i64 = 10;

/// Uncounted physical memory reduces the room for data. The first 1/N of `maxmemory` is ignored, and the
/// reduction is at most 1/M.
pub(crate) const UNRETURNED_IGNORED_SHARE: i64 = 64;
pub(crate) const UNRETURNED_MOST_SHARE: i64 = 4;

/// Interval of looks at physical memory while memory is freed: the time in which 1/N of `maxmemory` may
/// arrive, at M bytes a millisecond.
pub(crate) const UNRETURNED_LOOK_SHARE: i64 = 64;
pub(crate) const FASTEST_BYTES_PER_MS: i64 = 512 * 1024;

/// If uncounted physical memory exceeds 1/N of `maxmemory`, allocators return their free memory at once,
/// at most once in M milliseconds.
pub(crate) const PURGE_SHARE: i64 = 16;
pub(crate) const PURGE_MS: i64 = 10;

/// Free memory that is kept for the next large values: at most N bytes, and at most 1/M of `maxmemory`.
pub(crate) const FREE_KEPT_BYTES: i64 = 64 << 20;
pub(crate) const FREE_KEPT_SHARE: i64 = 64;

/// Milliseconds until a connection that waits for room asks again.
pub(crate) const ROOM_RETRY_MS: i64 = 1;

/// The shards of a database with a small `maxmemory` hold about this much each, so that the reserve of
/// each is little.
pub(crate) const SHARD_BYTES: usize = 8 << 20;

/// Shards per worker, at least, however small `maxmemory` is.
pub(crate) const FEWEST_SHARDS_PER_WORKER: usize = 2;

/// Shards per worker, at least; more make it rarer that two workers want the same one.
pub(crate) const SHARDS_PER_WORKER: usize = 64;

/// Addresses that a server maps without any data (less memory by far), and for each worker beside that;
/// the least that has to be left for data; and the addresses that data takes for each byte of memory, as
/// a fraction.
pub(crate) const ADDRESSES_BASE: u64 = 2 << 30;
pub(crate) const ADDRESSES_PER_WORKER: u64 = 128 << 20;
pub(crate) const ADDRESSES_LEAST: u64 = 64 << 20;
pub(crate) const ADDRESSES_FOR_DATA: (u64, u64) = (5, 4);

/// How long the end of the server waits for a script that has changed data.
pub(crate) const ENDING_PATIENCE_NS: u64 = 10_000_000_000;

/// How long a round of housekeeping waits for a script that keeps others out; after that the round is left
/// out.
pub(crate) const CRON_PATIENCE: std::time::Duration = std::time::Duration::from_millis(20);
