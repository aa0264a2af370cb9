//! Connections: input, parsing, replies that wait, logins.

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

/// How far a buffer for one large request runs ahead of the bytes that have arrived: a client that only
/// claims to send much costs nothing.
pub(crate) const READ_AHEAD_BYTES: usize = 1024 * 1024;

/// Requests that are parsed, and their keys prefetched, before the first of them runs.
pub(crate) const WINDOW: usize = 128;

/// Keys prefetched per request; more would push each other out of the cache.
pub(crate) const PREFETCH_KEYS: usize = 64;

/// Reply bytes gathered before they are sent, though the turn isn't over.
pub(crate) const FLUSH_BYTES: usize = 256 * 1024;

/// Bytes sent to one connection before others have their turn; copying them takes about 100 us.
pub(crate) const SEND_TURN_BYTES: usize = 256 * 1024;

/// Unsent bytes of one connection at which its requests wait until it has read some: 1/N of the limit of
/// all clients, within bounds; the lower bound while clients take more than half of their limit.
pub(crate) const BACKLOG_STOP_SHARE: usize = 16;
pub(crate) const BACKLOG_STOP_BYTES: usize = 1024 * 1024;
pub(crate) const BACKLOG_STOP_MOST_BYTES: usize = 16 * 1024 * 1024;

/// Bytes that a piece of unsent replies counts for beside its own.
pub(crate) const PIECE_WEIGHT_BYTES: usize = 256;

/// Milliseconds for which a connection that is not read from has not moved, after which it is read from
/// all the same: its peer may send all it has to say before it reads.
pub(crate) const STALL_MS: i64 = 100;

/// Bytes of memory that are taken at a time for input that is read so.
pub(crate) const AHEAD_PIECE_BYTES: usize = 64 * 1024;

/// Reads of dropped input, of 4 KiB each, before a connection is closed.
pub(crate) const DROPPED_READS: usize = 256;

/// Milliseconds after which a peer that has finished sending and reads nothing is given up.
pub(crate) const HALF_CLOSED_MS: i64 = 30_000;

/// Room kept in a worker's reply buffer between turns.
pub(crate) const OUTPUT_KEEP_BYTES: usize = 1024 * 1024;

/// Bytes at which a buffer of unsent replies is not added to any more, but followed by another.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;

/// Slices handed to one vectored send.
pub(crate) const SEND_SLICES: usize = 64;

/// Bytes that a connection takes before it has sent anything.
pub(crate) const CONNECTION_BYTES: usize = 1024;

/// Connections accepted in a row before the control thread looks at anything else.
pub(crate) const ACCEPT_BURST: usize = 256;

/// Wrong passwords from one address before attempts have to wait; how long the first of them waits and
/// the last, each twice as long as the one before; the longest that one may wait for its turn; when an
/// address is forgotten; and how many are remembered.
pub(crate) const FREE_LOGINS: u32 = 10;
pub(crate) const LOGIN_DELAY_MS: i64 = 50;
pub(crate) const LOGIN_DELAY_MAX_MS: i64 = 2000;
pub(crate) const LOGIN_WAIT_MAX_MS: i64 = 20_000;
pub(crate) const LOGIN_FORGET_MS: i64 = 600_000;
pub(crate) const LOGIN_ADDRESSES: usize = 4096;

/// Longest part of an argument that an error reply repeats.
pub(crate) const ERROR_ECHO_BYTES: usize = 128;

/// The part of a small `maxmemory` that all workers' pollers may take for input that has arrived and was
/// not read yet.
pub(crate) const POLLER_SHARE: usize = 32;
