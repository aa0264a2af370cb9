//! Every bound in the server that is not a setting, by name.
//!
//! A queue, buffer, loop or retry takes its bound from here, so that one page tells how much of
//! anything there can be.

/// Bytes of the buffer a worker reads into. Shared by all of its connections.
pub(crate) const SCRATCH_BYTES: usize = 64 * 1024;

/// Input of a group, bytes, after which its requests run before more is read: the input is still in the
/// processor's cache.
pub(crate) const GROUP_BYTES: usize = 16 * 1024;

/// The most that is read from one connection in one turn, so that a deep pipeline doesn't starve others.
pub(crate) const READ_BYTES: usize = 32 * 1024;

/// The least free room for which a read is worth its system call.
pub(crate) const READ_MIN_BYTES: usize = 16 * 1024;

/// A request of more arguments than this is one of many small ones, not of one that is large.
pub(crate) const MANY_ARGUMENTS: usize = 8;

/// The least free room for the rest of such a request: it is not known how much there is to come.
pub(crate) const READ_MANY_BYTES: usize = 64 * 1024;

/// How far a buffer for one large request runs ahead of what has arrived: a client that only claims to
/// send much costs nothing.
pub(crate) const READ_AHEAD_BYTES: usize = 1024 * 1024;

/// Requests that are parsed, and their keys prefetched, before the first of them runs.
pub(crate) const WINDOW: usize = 128;

/// Keys prefetched per request; more would push each other out of the cache.
pub(crate) const PREFETCH_KEYS: usize = 64;

/// Reply bytes gathered before they are sent, though the turn isn't over.
pub(crate) const FLUSH_BYTES: usize = 256 * 1024;

/// Threads that wait for the disk for the sake of large values: enough that their syncs come together.
pub(crate) const BLOB_THREADS: usize = 48;

/// Threads that read large values, or wait for that: enough that the disk has something to do.
pub(crate) const READ_THREADS: usize = 32;

/// How much those for the sake of large values give way to workers that do more than wait.
pub(crate) const BLOB_NICE: i32 = 10;

/// Pieces of a large value that arrives, and how many of them there are at a time.
pub(crate) const UPLOAD_PIECE_BYTES: usize = 256 * 1024;
pub(crate) const UPLOAD_PIECES: usize = 3;

/// Bytes of a large value that are read from one connection before others have their turn.
pub(crate) const UPLOAD_TURN_BYTES: usize = 128 * 1024;

/// Bytes of large values that a worker moves to files and from them in a turn; copying them takes about 100
/// us.
pub(crate) const BULK_TURN_BYTES: usize = 256 * 1024;

/// Pieces of a large value that is sent: one is read while the other is sent.
pub(crate) const SEND_PIECES: usize = 2;

/// Bytes of such a piece.
pub(crate) const SEND_PIECE_BYTES: usize = 1024 * 1024;
pub(crate) const SEND_PIECE_LEAST: usize = 128 * 1024;

/// Bytes of all of these: at most N, and at most 1/M of `maxmemory`. The next value gets at most 1/K of the
/// rest.
pub(crate) const SEND_ROOM_BYTES: usize = 64 << 20;
pub(crate) const SEND_ROOM_SHARE: usize = 16;
pub(crate) const SEND_ROOM_PART: usize = 24;

/// How often a large value is read past the page cache before it is read into it: that costs several times as
/// much as reading it.
pub(crate) const READ_PAST_TIMES: u32 = 2;

/// Bytes of a file that a thread reads into the page cache for a connection, and for how many the system is
/// asked at a time.
pub(crate) const READ_IN_BYTES: u64 = 4 << 20;
pub(crate) const READ_IN_STEP_BYTES: usize = 256 * 1024;

/// Longest value that a command may load from its file: the new value has to fit into one record of the log.
pub(crate) const JOURNAL_VALUE_BYTES: u64 = 2 << 30;

/// 1/N of `maxmemory` stays for everything else when it does.
pub(crate) const WARM_SHARE: u64 = 4;

/// Longest slices of a deferred command, nanoseconds: of any, and of one whose reply is sent while it grows.
pub(crate) const SLICE_NS: u64 = 250_000;
pub(crate) const STREAM_SLICE_NS: u64 = 50_000;

/// Slices in a row, about a millisecond, after which the worker's processor is offered to other threads: a
/// kernel that is not asked gives it to one that has just woken up only at its next tick, 4 ms later.
pub(crate) const SLICES_IN_A_ROW: u32 = 4;

/// Keys that such a command looks at under one lock.
pub(crate) const SLICE_KEYS: usize = 128;

/// Bytes sent to one connection before others have their turn; copying them takes about 100 us.
pub(crate) const SEND_TURN_BYTES: usize = 256 * 1024;

/// Unsent bytes of one connection at which its requests wait until it has read some: 1/N of the limit of all
/// clients, within bounds; the lower bound while clients take more than half of their limit.
pub(crate) const BACKLOG_STOP_SHARE: usize = 16;
pub(crate) const BACKLOG_STOP_BYTES: usize = 1024 * 1024;
pub(crate) const BACKLOG_STOP_MOST_BYTES: usize = 16 * 1024 * 1024;

/// Bytes that a piece of unsent replies counts for beside its own.
pub(crate) const PIECE_WEIGHT_BYTES: usize = 256;

/// Milliseconds for which a connection that is not read from has not moved, after which it is read from all
/// the same: its peer may send all it has to say before it reads.
pub(crate) const STALL_MS: i64 = 100;

/// Bytes of memory that are taken at a time for what is read so.
pub(crate) const AHEAD_PIECE_BYTES: usize = 64 * 1024;

/// Reads of dropped input, of 4 KiB each, before a connection is closed.
pub(crate) const DROPPED_READS: usize = 256;

/// Milliseconds after which a peer that has finished sending and reads nothing is given up.
pub(crate) const HALF_CLOSED_MS: i64 = 30_000;

/// Room kept in a worker's reply buffer between turns.
pub(crate) const OUTPUT_KEEP_BYTES: usize = 1024 * 1024;

/// Keys from which on a command that only reads them does so a slice at a time (see
/// [`crate::observe::multi_read`]), not all under one lock.
pub(crate) const MULTI_READ_KEYS: usize = 2048;

/// So many keys, or a few more, are read while the shards of all of them are locked.
pub(crate) const MULTI_READ_REST: usize = 256;

/// Passes over keys that change as fast as they are read; behind that all that are left are read under the
/// lock.
pub(crate) const MULTI_READ_PASSES: usize = 8;

/// Bytes at which a buffer of unsent replies is not added to any more, but followed by another.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;

/// Slices handed to one vectored send.
pub(crate) const SEND_SLICES: usize = 64;

/// Bytes of published messages in a worker's inbox from which on connections that publish are held back.
pub(crate) const INBOX_BYTES: usize = 4 * 1024 * 1024;

/// Room for published messages that a worker keeps between turns.
pub(crate) const LOG_KEEP_BYTES: usize = 256 * 1024;

/// Connections that get published messages in one turn: a message to very many does not delay other
/// connections.
pub(crate) const SENDS_PER_TURN: usize = 256;

/// Unsent bytes of published messages that are worth sharing among their readers rather than copying for
/// each.
pub(crate) const SHARE_BYTES: usize = 4 * 1024;

/// The same for a reader with more than a piece in its backlog.
pub(crate) const SHARE_LATE_BYTES: usize = 512;

/// Parts that the registry of channels is split into, each with a lock of its own.
pub(crate) const CHANNEL_PARTS: usize = 256;

/// Keys that one command forgets while there are more than `tracking-table-max-keys`.
pub(crate) const TRACKING_EVICTIONS: usize = 100;

/// Unread bytes of a reply that is sent while it grows, from which on it does not grow: a slow client costs
/// no more.
pub(crate) const UNREAD_PART_BYTES: usize = 512 * 1024;

/// How long a client may leave so much unread of a reply that keeps memory, or space on the disk, from being
/// given back, while there is none left.
pub(crate) const UNREAD_WORK_MS: i64 = 5_000;

/// Unsent bytes of a connection from which on it is not told any more which keys have changed, but in the end
/// that all have.
pub(crate) const UNREAD_NEWS_BYTES: usize = 1024 * 1024;

/// Bytes of changed keys that a worker collects for connections that track by prefix, before it tells them.
pub(crate) const BROADCAST_BYTES: usize = 64 * 1024;

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

/// Milliseconds after which a worker does for another's shards what that hasn't found the time for.
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

/// Milliseconds without any offloaded value after which a write is refused: a short shortage is over by then;
/// after which older evidence does not count; and after which a worker that refuses writes searches again.
pub(crate) const BARREN_MS: i64 = 750;
pub(crate) const BARREN_STALE_MS: i64 = 250;
pub(crate) const BARREN_REST_MS: i64 = 100;

/// Attempts of a worker to make room for unsent replies.
pub(crate) const ROOM_TRIES: usize = 4;

/// How often a worker spends in one turn what a command may spend on making room.
pub(crate) const TRIES_PER_TURN: u64 = 4;

/// Slabs emptied after such a slice at most, which makes its memory free for other shards.
pub(crate) const EVICT_PACKS: usize = 4;

/// Bytes of an evicted key for which space in the log is claimed; longer keys use the remaining space.
pub(crate) const EVICTED_KEY_BYTES: usize = 64;

/// Bytes that a connection takes before it has sent anything.
pub(crate) const CONNECTION_BYTES: usize = 1024;

/// Bytes that each worker may take before it checks the limit of memory again, mostly slabs and replies: 1/N
/// of the limit, within bounds.
pub(crate) const ROOM_SHARE: i64 = 224;
pub(crate) const ROOM_BYTES: i64 = 1024 * 1024;
pub(crate) const LEAST_ROOM_BYTES: i64 = 4 * 1024;

/// Bytes that stay free for what the log's threads take at once: a part of its ring, which shrinks with the
/// limit, and no more than this.
pub(crate) const LOG_WORK_SHARE: i64 = 4;
pub(crate) const LOG_WORK_BYTES: i64 = 1024 * 1024;

/// The part of `maxmemory` that clients may take while `maxmemory-clients` is 0: one in this many.
pub(crate) const CLIENTS_SHARE: i64 = 8;

/// The part of `maxmemory` that the table of tracked keys may take: one in this many. Beyond it keys leave
/// the table, and clients that have read them are told so.
pub(crate) const TRACKING_SHARE: i64 = 16;

/// The part of `maxmemory` that the slow log may take: one in this many, or a little if that is more.
pub(crate) const SLOW_LOG_SHARE: i64 = 64;
pub(crate) const LEAST_SLOW_LOG_BYTES: usize = 256 * 1024;

/// Bytes that a command which makes the server keep something for its connection is taken to need for each of
/// its arguments, beside the argument itself.
pub(crate) const KEPT_ARGUMENT_BYTES: usize = 256;

/// Bytes of a reply from which on commands that may repeat much look whether there is room for more.
pub(crate) const REPLY_LOOK_BYTES: usize = 1 << 20;

/// Bytes that the server keeps for each client, names and subscriptions, though memory is short.
pub(crate) const KEPT_FREELY_BYTES: usize = 16 * 1024;

/// Names, keys or prefixes of a connection that one turn lets go of, and that one lock is held for.
pub(crate) const LEAVE_SLICE: usize = 512;

/// The part of all tracked keys that connections which have ended may hold before the table is searched for
/// them: one in this many.
pub(crate) const TRACKING_DEAD_SHARE: usize = 4;

/// Milliseconds after the end of tracking within which a connection may resume it with the keys it has read.
pub(crate) const TRACKING_GRACE_MS: i64 = 5000;

/// Milliseconds for which clients are not searched again after a search that found none that may be dropped.
pub(crate) const CLIENTS_SPARED_MS: i64 = 10;

/// Uncounted physical memory reduces the room for data. The first 1/N of `maxmemory` is ignored, and the
/// reduction is at most 1/M.
pub(crate) const UNRETURNED_IGNORED_SHARE: i64 = 64;
pub(crate) const UNRETURNED_MOST_SHARE: i64 = 4;

/// Interval of looks at physical memory while memory is freed: the time in which 1/N of `maxmemory` may
/// arrive, at M bytes a millisecond.
pub(crate) const UNRETURNED_LOOK_SHARE: i64 = 64;
pub(crate) const FASTEST_BYTES_PER_MS: i64 = 512 * 1024;

/// Bytes from which on a value that a small request asks for (by an offset) is made room for before it is
/// made, and how often that is tried: all tries together take about 10 ms.
pub(crate) const FORESEEN_BYTES: usize = 64 * 1024;
pub(crate) const FORESEEN_TRIES: usize = 20;

/// If uncounted physical memory exceeds 1/N of `maxmemory`, allocators return their free memory at once, at
/// most once in M milliseconds.
pub(crate) const PURGE_SHARE: i64 = 16;
pub(crate) const PURGE_MS: i64 = 10;

/// Free memory that is kept for the next large values: at most N bytes, and at most 1/M of `maxmemory`.
pub(crate) const FREE_KEPT_BYTES: i64 = 64 << 20;
pub(crate) const FREE_KEPT_SHARE: i64 = 64;

/// Milliseconds until a connection that waits for room asks again.
pub(crate) const ROOM_RETRY_MS: i64 = 1;

/// The shards of a database with a small `maxmemory` hold about this much each, so that what each keeps in
/// reserve is little.
pub(crate) const SHARD_BYTES: usize = 8 << 20;

/// Shards per worker, at least, however small `maxmemory` is.
pub(crate) const FEWEST_SHARDS_PER_WORKER: usize = 2;

/// Bytes of a snapshot's file that are written at once, at most.
pub(crate) const SNAPSHOT_WRITE_BYTES: usize = 1 << 20;

/// How much the system prefers workers to threads that work in the background, as `nice` has it: at 10 these
/// get a tenth of a processor that both want.
pub(crate) const BACKGROUND_NICE: i32 = 10;

/// While all workers are busy, a snapshot sleeps N times as long as it works, unless copies of writers exceed
/// 1/M of all memory.
pub(crate) const SNAPSHOT_REST_SHARE: f64 = 8.0;
pub(crate) const SNAPSHOT_COPIES_SHARE: usize = 16;

/// Least work of a background task between two sleeps, microseconds. The second is that of a snapshot, which
/// works without end.
pub(crate) const WORK_US: u64 = 1000;
pub(crate) const SNAPSHOT_WORK_US: u64 = 200;

/// Threads that read cold values for a snapshot, and bytes that they read at a time: at most 1/N of
/// `maxmemory`.
pub(crate) const SNAPSHOT_READERS: usize = 8;
pub(crate) const SNAPSHOT_READ_BYTES: u64 = 4 << 20;
pub(crate) const SNAPSHOT_READ_SHARE: u64 = 64;

/// Bytes of a value from which DUMP makes its payload on a thread of its own.
pub(crate) const DUMP_APART_BYTES: usize = 1 << 20;

/// MIGRATEs outside of transactions that may be under way. Each has a thread; further ones wait.
pub(crate) const MIGRATIONS: usize = 64;

/// Keys that a MIGRATE sends before it reads replies: all of these fit into the buffers of a socket.
pub(crate) const MIGRATE_AHEAD_KEYS: usize = 256;

/// Bytes of a line of the target's reply.
pub(crate) const MIGRATE_REPLY_BYTES: usize = 1024;

/// The longest time that MIGRATE waits for its target, ms: 24 days.
pub(crate) const MIGRATE_TIMEOUT_MS: i64 = i32::MAX as i64;

/// The time that MIGRATE waits for its target where a request says none, ms.
pub(crate) const MIGRATE_DEFAULT_TIMEOUT_MS: i64 = 1000;

/// Fields of a hash that are written or read between two looks at whether to go on.
pub(crate) const SNAPSHOT_FIELDS: usize = 512;

/// Fields of a hash, and bytes of a field or a value, up to which it is written packed, and members of a set
/// of integers: Redis' default limits.
pub(crate) const PACKED_ENTRIES: u64 = 512;
pub(crate) const PACKED_INTEGERS: u64 = 512;
pub(crate) const PACKED_VALUE_BYTES: usize = 64;

/// How long a log that is to end waits for large values of which nothing arrives, and how often it looks.
pub(crate) const ARRIVING_PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
pub(crate) const ARRIVING_LOOK: std::time::Duration = std::time::Duration::from_millis(1);

/// How often a log that begins or ends looks whether all workers are between two turns.
pub(crate) const BETWEEN_TURNS_LOOK: std::time::Duration = std::time::Duration::from_micros(100);

/// How often is looked whether values that come back to memory after a start are all there.
pub(crate) const WARMING_LOOK: std::time::Duration = std::time::Duration::from_millis(5);

/// Values in the log alone from which on all of the log is read, if it is to end, and not each of them by
/// itself; and how often is looked whether some are left, which is so if clients have just sent large ones.
pub(crate) const BRING_BACK_SWEEP: usize = 1000;
pub(crate) const BRING_BACK_LOOKS: usize = 10;

/// Leaves of a tree that are looked for under one lock when all come back.
pub(crate) const BRING_LEAVES: usize = 256;

/// Seconds after a snapshot that failed before another one begins by itself.
pub(crate) const SNAPSHOT_RETRY_S: i64 = 5;

/// Bytes of keys and values that are put into the keyspace together while a snapshot is loaded.
pub(crate) const LOAD_BUFFER_BYTES: usize = 128 * 1024;

/// The part of the limit of memory, and of all shards, that is freed in one go while a snapshot is loaded;
/// how often all shards are gone through for it.
pub(crate) const RELIEF_SHARE: usize = 8;
pub(crate) const RELIEF_PASSES: usize = 2;

/// Buffers that wait for each of the threads that load a snapshot.
pub(crate) const LOAD_BUFFERS_PER_THREAD: usize = 4;

/// Threads that put what is loaded into the keyspace; more would wait for the one that reads.
pub(crate) const LOAD_THREADS: usize = 6;

/// Keys whose places are asked for before the first of them is put into the keyspace.
pub(crate) const LOAD_WINDOW: usize = 32;

/// Connections accepted in a row before the control thread looks at anything else.
pub(crate) const ACCEPT_BURST: usize = 256;

/// Shards per worker, at least; more make it rarer that two workers want the same one.
pub(crate) const SHARDS_PER_WORKER: usize = 64;

/// Transactions that a worker keeps for those that begin, and the bytes each part of one may keep for them.
pub(crate) const SPARE_QUEUES: usize = 16;
pub(crate) const QUEUE_KEEP_BYTES: usize = 16 * 1024;

/// The part of `maxmemory-clients`, in percent, that the queue of one transaction may take: less than what
/// lets its client be dropped.
pub(crate) const QUEUE_CLIENTS_PERCENT: usize = 75;

/// Wrong passwords from one address before attempts have to wait; how long the first of them waits and the
/// last, each twice as long as the one before; the longest that one may wait for its turn; when an address is
/// forgotten; and how many are remembered.
pub(crate) const FREE_LOGINS: u32 = 10;
pub(crate) const LOGIN_DELAY_MS: i64 = 50;
pub(crate) const LOGIN_DELAY_MAX_MS: i64 = 2000;
pub(crate) const LOGIN_WAIT_MAX_MS: i64 = 20_000;
pub(crate) const LOGIN_FORGET_MS: i64 = 600_000;
pub(crate) const LOGIN_ADDRESSES: usize = 4096;

/// Addresses that a server maps without any data (less memory by far), and for each worker beside that; the
/// least that has to be left for data; and the addresses that data takes for each byte of memory, as a
/// fraction.
pub(crate) const ADDRESSES_BASE: u64 = 2 << 30;
pub(crate) const ADDRESSES_PER_WORKER: u64 = 128 << 20;
pub(crate) const ADDRESSES_LEAST: u64 = 64 << 20;
pub(crate) const ADDRESSES_FOR_DATA: (u64, u64) = (5, 4);

/// Longest part of an argument that an error reply repeats.
pub(crate) const ERROR_ECHO_BYTES: usize = 128;

/// Bytes of one batch in the log. A command that changes more is several batches, which a crash may tear
/// apart.
pub(crate) const JOURNAL_BATCH_BYTES: u64 = 2 << 30;

/// Values of at least N bytes are logged in part when less than 1/M of them changes.
pub(crate) const PATCH_MIN_BYTES: usize = 4096;
pub(crate) const PATCH_SHARE: usize = 4;

/// Bytes that a worker keeps for noting which keys a command changes.
pub(crate) const JOURNAL_KEEP_BYTES: usize = 256 << 10;

/// Threads that read values back from the log, and how often a request waits for them before what it needs is
/// read on the spot.
pub(crate) const FETCH_THREADS: usize = 8;
pub(crate) const FETCH_TRIES: u32 = 8;

/// Threads that read cold leaves ahead of walks through collections, leaves and bytes of their records that
/// are read ahead of one, and how many of them a thread reads at once.
pub(crate) const WALK_READERS: usize = 8;
pub(crate) const WALK_AHEAD: usize = 64;
pub(crate) const WALK_AHEAD_BYTES: u32 = 128 * 1024;
pub(crate) const WALK_READS: usize = 16;

/// Leaves of one tree that are read at once for a command; one that needs more waits again.
pub(crate) const LEAVES_PER_FETCH: usize = 8192;

/// The most values, and bytes of them, that a worker reads from the page cache for one command.
pub(crate) const AT_HAND_VALUES: usize = 256;
pub(crate) const AT_HAND_BYTES: u64 = 256 << 10;

/// How often DEBUG OFFLOAD looks whether the log has a value, and how long it waits in between.
pub(crate) const OFFLOAD_LOOKS: usize = 2000;
pub(crate) const OFFLOAD_NAP: std::time::Duration = std::time::Duration::from_micros(100);

/// How often a value is looked for that is about to be written, and how long is waited in between.
pub(crate) const READ_LOOKS: usize = 10_000;
pub(crate) const READ_NAP: std::time::Duration = std::time::Duration::from_micros(100);

/// Bytes of values that the log has in parts, and that are written whole at a time before they leave memory.
pub(crate) const RELOG_BYTES: u64 = 256 << 10;

/// Bytes that a request may append to the log beyond its own: headers of records, an expiry.
pub(crate) const JOURNAL_REQUEST_BYTES: u64 = 128;

/// 1/N of a small `maxmemory` is taken by the log's ring, but at least the minimum that it needs.
pub(crate) const LOG_RING_SHARE: u64 = 16;
pub(crate) const LEAST_LOG_RING_BYTES: usize = 1 << 20;
pub(crate) const LOG_RING_APPENDER_BYTES: usize = 16 << 10;

/// The part of a small file system that a segment of the log takes, and the bytes that it may have however
/// small that is.
pub(crate) const LOG_SEGMENT_DISK_SHARE: u64 = 16;
pub(crate) const LEAST_LOG_SEGMENT_BYTES: u64 = 2 << 20;

/// The part of a small `maxmemory` that hints of the running segment may take.
pub(crate) const LOG_HINT_SHARE: u64 = 64;

/// The part of a small `maxmemory` that all workers' pollers may take for what has arrived and was not read
/// yet.
pub(crate) const POLLER_SHARE: usize = 32;

/// Segments of garbage that the log may have however little data there is: compaction costs more where it is
/// less.
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

/// Threads that replay a log, beside one for each worker: while one waits for the disk another has something
/// to do.
pub(crate) const REPLAY_EXTRA_THREADS: usize = 1;

/// Values that a replay reads back because a part of them has changed, before it leaves no more values in the
/// log that are so large that this may happen to them.
pub(crate) const REPLAY_FETCHES: usize = 1000;

/// While all workers are busy, warming sleeps N times as long as it works.
pub(crate) const WARMING_SHARE: f64 = 8.0;

/// Batches of records after which a replay tries again to let values leave memory that came before, if none
/// could.
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

/// Commands of an append-only file that run, and about how many bytes of them, before others have their
/// turns.
pub(crate) const TAKEOVER_COMMANDS: usize = 64;
pub(crate) const TAKEOVER_BYTES: usize = 256 * 1024;

/// Keys that a message about a damaged log names.
pub(crate) const NAMED_KEYS: usize = 8;

/// Milliseconds between two lines that say how far a replay has come.
pub(crate) const REPLAY_REPORT_MS: i64 = 2000;

/// Connections to the HTTP port, and how many are accepted in a row.
pub(crate) const HTTP_CONNECTIONS: usize = 64;
pub(crate) const HTTP_ACCEPT_BURST: usize = 16;

/// Bytes of the head of an HTTP request.
pub(crate) const HTTP_HEAD_BYTES: usize = 8 * 1024;

/// Milliseconds that an HTTP client may take to send a request, to take its answer, and to think of another
/// request.
pub(crate) const HTTP_REQUEST_MS: u64 = 5_000;
pub(crate) const HTTP_ANSWER_MS: u64 = 20_000;
pub(crate) const HTTP_IDLE_MS: u64 = 75_000;

/// Milliseconds for which gathered figures are served again.
pub(crate) const HTTP_FRESH_MS: u64 = 100;

/// The history of the dashboard: milliseconds between two looks, how many of them make a point of the coarse
/// row, and the points of both rows: ten minutes at a second each, an hour at ten.
pub(crate) const HISTORY_STEP_MS: u64 = 1000;
pub(crate) const HISTORY_COARSE_STEPS: usize = 10;
pub(crate) const HISTORY_FINE_POINTS: usize = 600;
pub(crate) const HISTORY_COARSE_POINTS: usize = 360;

/// The browser of keys: keys of a page, keys that a request looks at and those under one lock, nanoseconds of
/// a request, and bytes of each key and each value that are shown.
pub(crate) const BROWSE_KEYS: usize = 100;
pub(crate) const BROWSE_LOOKS: usize = 10_000;
pub(crate) const BROWSE_SLICE: usize = 64;
pub(crate) const BROWSE_NS: u64 = 2_000_000;
pub(crate) const BROWSE_KEY_BYTES: usize = 256;
pub(crate) const BROWSE_VALUE_BYTES: usize = 128;

/// Nanoseconds of one round of the key scan, without and with a client that waits for its result.
pub(crate) const KEY_SCAN_NS: u64 = 300_000;
pub(crate) const KEY_SCAN_ASKED_NS: u64 = 5_000_000;

/// Up to N keys, BIGKEYS looks at all of them.
pub(crate) const KEY_SCAN_AT_ONCE: usize = 1000;

/// Keys of that walk looked at under one lock.
pub(crate) const KEY_SCAN_SLICE: usize = 64;

/// Milliseconds between the end of that walk and the beginning of the next.
pub(crate) const KEY_SCAN_PAUSE_MS: i64 = 10_000;

/// Prefixes of keys that are counted apart.
pub(crate) const PREFIXES: usize = 1024;
