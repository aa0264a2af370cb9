//! Values outside of memory: files of large values, values and leaves that are only in the log.

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

/// Bytes of large values that a worker moves to files and from them in a turn; copying them takes about
/// 100 us.
pub(crate) const BULK_TURN_BYTES: usize = 256 * 1024;

/// Pieces of a large value that is sent: one is read while the other is sent.
pub(crate) const SEND_PIECES: usize = 2;

/// Bytes of such a piece.
pub(crate) const SEND_PIECE_BYTES: usize = 1024 * 1024;
pub(crate) const SEND_PIECE_LEAST: usize = 128 * 1024;

/// Bytes of all of these: at most N, and at most 1/M of `maxmemory`. The next value gets at most 1/K of
/// the rest.
pub(crate) const SEND_ROOM_BYTES: usize = 64 << 20;
pub(crate) const SEND_ROOM_SHARE: usize = 16;
pub(crate) const SEND_ROOM_PART: usize = 24;

/// How often a large value is read past the page cache before it is read into it: that costs several
/// times as much as reading it.
pub(crate) const READ_PAST_TIMES: u32 = 2;

/// Bytes of a file that a thread reads into the page cache for a connection, and for how many the system
/// is asked at a time.
pub(crate) const READ_IN_BYTES: u64 = 4 << 20;
pub(crate) const READ_IN_STEP_BYTES: usize = 256 * 1024;

/// Longest value that a command may load from its file: the new value has to fit into one record of the
/// log.
pub(crate) const JOURNAL_VALUE_BYTES: u64 = 2 << 30;

/// 1/N of `maxmemory` stays for everything else when it does.
pub(crate) const WARM_SHARE: u64 = 4;

/// How long a log that is to end waits for large values of which nothing arrives, and how often it looks.
pub(crate) const ARRIVING_PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
pub(crate) const ARRIVING_LOOK: std::time::Duration = std::time::Duration::from_millis(1);

/// Values in the log alone from which on all of the log is read, if it is to end, and not each of them
/// by itself; and how often is looked whether some are left, which is so if clients have just sent large
/// ones.
pub(crate) const BRING_BACK_SWEEP: usize = 1000;
pub(crate) const BRING_BACK_LOOKS: usize = 10;

/// Leaves of a tree that are looked for under one lock when all come back.
pub(crate) const BRING_LEAVES: usize = 256;

/// Threads that read values back from the log, and how often a request waits for them before its values
/// are read on the spot.
pub(crate) const FETCH_THREADS: usize = 8;
pub(crate) const FETCH_TRIES: u32 = 8;

/// Threads that read cold leaves ahead of walks through collections, leaves and bytes of their records
/// that are read ahead of one, and how many of them a thread reads at once.
pub(crate) const WALK_READERS: usize = 8;
pub(crate) const WALK_AHEAD: usize = 64;
pub(crate) const WALK_AHEAD_BYTES: u32 = 128 * 1024;
pub(crate) const WALK_READS: usize = 16;

/// Leaves of one tree that are read at once for a command; one that needs more waits again.
pub(crate) const LEAVES_PER_FETCH: usize = 8192;

/// The most values, and bytes of them, that a worker reads from the page cache for one command.
pub(crate) const AT_HAND_VALUES: usize = 256;
pub(crate) const AT_HAND_BYTES: u64 = 256 << 10;

/// How often a value is looked for that is about to be written, and how long is waited in between.
pub(crate) const READ_LOOKS: usize = 10_000;
pub(crate) const READ_NAP: std::time::Duration = std::time::Duration::from_micros(100);

/// Bytes of values that the log has in parts, and that are written whole at a time before they leave
/// memory.
pub(crate) const RELOG_BYTES: u64 = 256 << 10;
