//! Every bound of the load generator by name, so that nobody has to look for a number.

use std::time::Duration;

/// Connections that are being opened at the same time, per thread. A server's queue of connections
/// that wait to be accepted is often 128 long, and what does not fit tries again a second later.
pub(crate) const MAX_DIALING: usize = 64;

/// Requests that one connection has sent and not seen answered, in the open loop. Beyond that they
/// are sent late, which counts: their time runs from when they should have been sent.
pub(crate) const MAX_IN_FLIGHT: usize = 1 << 16;

/// Bytes that one thread reads from a socket at once.
pub(crate) const READ_BYTES: usize = 256 << 10;

/// Values up to this size are copied into the request; larger ones are sent from where they are.
pub(crate) const INLINE_BYTES: u64 = 4 << 10;

/// The block of data that all values are cut from.
pub(crate) const DATA_BYTES: usize = 1 << 20;

/// Bytes of small requests that one connection is given to send at once. A deeper pipeline comes in
/// several portions.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// Replies of more bytes than this are counted while they pass and not held.
pub(crate) const HELD_REPLY_BYTES: u64 = 4 << 10;

/// How often a thread hands over what it has counted, and the progress line is written.
pub(crate) const SLICE: Duration = Duration::from_millis(250);

/// The length of an interval in the log of histograms; a whole number of slices.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// The pause before a connection that could not be opened for want of ports or room is tried again.
pub(crate) const REDIAL_PAUSE: Duration = Duration::from_millis(5);

/// In the open loop a thread sleeps until this long before the next request is due, and looks
/// without sleeping for the rest: the kernel ends a sleep up to 50 us late.
pub(crate) const SPIN_BEFORE_DUE: Duration = Duration::from_micros(80);

/// The pause between two error replies that `-e` shows.
pub(crate) const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// How much of an error reply is kept to be shown.
pub(crate) const ERROR_TEXT_BYTES: usize = 200;

/// Latencies are told apart from this on (nanoseconds) ...
pub(crate) const LATENCY_LOW_NS: u64 = 100;
/// ... up to this, an hour; longer ones count as that ...
pub(crate) const LATENCY_HIGH_NS: u64 = 3_600_000_000_000;
/// ... with this many significant digits.
pub(crate) const LATENCY_DIGITS: u8 = 3;

/// The most threads, clients and requests of a pipeline that are accepted: typing errors beyond.
pub(crate) const MAX_THREADS: usize = 500;
/// The most connections.
pub(crate) const MAX_CLIENTS: usize = 1_000_000;
/// The most subscribers, and channels that each of them listens to.
pub(crate) const MAX_SUBSCRIBERS: usize = 100_000;
/// As above.
pub(crate) const MAX_CHANNELS: u64 = 10_000;
/// The most requests of a pipeline.
pub(crate) const MAX_PIPELINE: usize = 1 << 20;

/// How long the map of a cluster is believed, once a node has said that a slot is elsewhere.
pub(crate) const MAP_PAUSE: Duration = Duration::from_millis(100);
