//! Messages to connections that did not ask for them: published messages, keys that have changed.

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

/// Unsent bytes of a connection from which on it is not told any more which keys have changed, but in
/// the end that all have.
pub(crate) const UNREAD_NEWS_BYTES: usize = 1024 * 1024;

/// Bytes of changed keys that a worker collects for connections that track by prefix, before it tells
/// them.
pub(crate) const BROADCAST_BYTES: usize = 64 * 1024;

/// Names, keys or prefixes of a connection that one turn lets go of, and that one lock is held for.
pub(crate) const LEAVE_SLICE: usize = 512;

/// The part of all tracked keys that connections which have ended may hold before the table is searched
/// for them: one in this many.
pub(crate) const TRACKING_DEAD_SHARE: usize = 4;

/// Milliseconds after the end of tracking within which a connection may resume it with the keys it has
/// read.
pub(crate) const TRACKING_GRACE_MS: i64 = 5000;
