//! Commands: slices, transactions, migration, walks through all keys.

/// Longest slices of a deferred command, nanoseconds: of any, and of one with a reply that is sent while
/// it grows.
pub(crate) const SLICE_NS: u64 = 250_000;
pub(crate) const STREAM_SLICE_NS: u64 = 50_000;

/// Slices in a row, about a millisecond, after which the worker's processor is offered to other threads:
/// a kernel that is not asked gives it to one that has just woken up only at its next tick, 4 ms later.
pub(crate) const SLICES_IN_A_ROW: u32 = 4;

/// Keys that such a command looks at under one lock.
pub(crate) const SLICE_KEYS: usize = 128;

/// Keys from which on a command that only reads them does so a slice at a time (see
/// [`crate::observe::multi_read`]), not all under one lock.
pub(crate) const MULTI_READ_KEYS: usize = 2048;

/// So many keys, or a few more, are read while the shards of all of them are locked.
pub(crate) const MULTI_READ_REST: usize = 256;

/// Passes over keys that change as fast as they are read; after them all that are left are read under the
/// lock.
pub(crate) const MULTI_READ_PASSES: usize = 8;

/// Unread bytes of a reply that is sent while it grows, from which on it does not grow: a slow client
/// costs no more.
pub(crate) const UNREAD_PART_BYTES: usize = 512 * 1024;

/// How long a client may leave so much unread of a reply that keeps memory, or space on the disk, from
/// being given back, while there is none left.
pub(crate) const UNREAD_WORK_MS: i64 = 5_000;

/// Bytes that a command which makes the server keep something for its connection is taken to need for
/// each of its arguments, beside the argument itself.
pub(crate) const KEPT_ARGUMENT_BYTES: usize = 256;

/// Bytes of a reply from which on commands that may repeat much look whether there is room for more.
pub(crate) const REPLY_LOOK_BYTES: usize = 1 << 20;

/// Bytes from which on a value that a small request asks for (by an offset) is made room for before it is
/// made, and how often that is tried: all tries together take about 10 ms.
pub(crate) const FORESEEN_BYTES: usize = 64 * 1024;
pub(crate) const FORESEEN_TRIES: usize = 20;

/// Such tries of all commands in one turn of a worker: about 50 ms.
pub(crate) const FORESEEN_TRIES_PER_TURN: usize = 100;

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

/// Transactions that a worker keeps for those that begin, and the bytes each part of one may keep for
/// them.
pub(crate) const SPARE_QUEUES: usize = 16;
pub(crate) const QUEUE_KEEP_BYTES: usize = 16 * 1024;

/// The part of `maxmemory-clients`, in percent, that the queue of one transaction may take: less than
/// lets its client be dropped.
pub(crate) const QUEUE_CLIENTS_PERCENT: usize = 75;

/// How often DEBUG OFFLOAD looks whether the log has a value, and how long it waits in between.
pub(crate) const OFFLOAD_LOOKS: usize = 2000;
pub(crate) const OFFLOAD_NAP: std::time::Duration = std::time::Duration::from_micros(100);

/// Commands of an append-only file that run, and about how many bytes of them, before others have their
/// turns.
pub(crate) const TAKEOVER_COMMANDS: usize = 64;
pub(crate) const TAKEOVER_BYTES: usize = 256 * 1024;

/// Nanoseconds of one round of the key scan, without and with a client that waits for its result.
pub(crate) const KEY_SCAN_NS: u64 = 300_000;
pub(crate) const KEY_SCAN_ASKED_NS: u64 = 5_000_000;

/// Up to N keys, BIGKEYS looks at all of them.
pub(crate) const KEY_SCAN_AT_ONCE: usize = 1000;

/// Keys of that walk looked at under one lock.
pub(crate) const KEY_SCAN_SLICE: usize = 64;

/// Milliseconds between the end of that walk and the beginning of the next.
pub(crate) const KEY_SCAN_PAUSE_MS: i64 = 10_000;

/// Scripts that EVAL has brought and that are kept.
pub(crate) const SCRIPTS_OF_EVAL: usize = 500;

/// Functions of scripts that a worker keeps; beyond that it begins again with none.
pub(crate) const FUNCTIONS_OF_SCRIPTS: usize = 2000;

/// Bytes of the longest text of a library.
pub(crate) const LIBRARY_TEXT_MOST: usize = 16 << 20;

/// Bytes of the texts of all libraries of a payload.
pub(crate) const LIBRARIES_TEXT_MOST: usize = 128 << 20;

/// How long the text of a library may run: on the thread of a worker, in FUNCTION LOAD altogether, and where
/// it has been accepted before.
pub(crate) const LIBRARY_QUICK: std::time::Duration = std::time::Duration::from_millis(5);
pub(crate) const LIBRARY_LOAD_MOST: std::time::Duration = std::time::Duration::from_millis(500);
pub(crate) const LIBRARY_AGAIN_MOST: std::time::Duration = std::time::Duration::from_secs(10);

/// Bytes of the buffer of replies that a worker keeps between scripts.
pub(crate) const SCRIPT_BUFFER_KEPT: usize = 64 << 10;

/// Memory that a worker's Lua may have, bytes: 1/N of `maxmemory`, within bounds.
pub(crate) const SCRIPT_MEMORY_SHARE: usize = 8;
pub(crate) const SCRIPT_MEMORY_LEAST: usize = 16 << 20;
pub(crate) const SCRIPT_MEMORY_MOST: usize = 256 << 20;

/// A script that takes longer, without an effect so far, begins again on a thread of its own.
pub(crate) const SCRIPT_QUICK_NS: u64 = 5_000_000;

/// Nanoseconds in Lua, without its commands, after which a slow script ends that holds shards and has changed
/// data: requests for its keys wait meanwhile.
pub(crate) const SCRIPT_HELD_NS: u64 = 1_000_000_000;

/// How long a script on a thread of its own waits for workers that the last one has kept outside.
pub(crate) const SCRIPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// How long a worker waits for a script that keeps it from the data before it hears its connections.
pub(crate) const OUTSIDE_PATIENCE: std::time::Duration = std::time::Duration::from_millis(2);

/// The longest wait for events while it hears them.
pub(crate) const OUTSIDE_WAIT: std::time::Duration = std::time::Duration::from_millis(50);

/// Bytes that Lua may take for one run though memory is short.
pub(crate) const SCRIPT_RUN_LEAST: usize = 1 << 20;

/// Bytes of the longest reply of a script.
pub(crate) const SCRIPT_REPLY_MOST: usize = 512 << 20;
