//! Every bound of this program, by name.

use std::time::Duration;

/// Bytes that one read from the connection may bring.
pub(crate) const READ_CHUNK: usize = 64 * 1024;
/// Bytes of standard input that `--pipe` sends at once.
pub(crate) const PIPE_CHUNK: usize = 64 * 1024;
/// After how many seconds of silence the system looks whether the server still exists.
pub(crate) const KEEPALIVE_S: u32 = 15;
/// How long a person has to wait for a server that does not answer, unless they say otherwise.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Between two attempts of a mode that waits for its server to come back.
pub(crate) const RECONNECT_PAUSE: Duration = Duration::from_secs(1);
/// Between two samples of latency.
pub(crate) const LATENCY_PAUSE: Duration = Duration::from_millis(10);
/// How many lines --stat and --latency-dist print under one heading.
pub(crate) const LINES_PER_HEADING: u64 = 20;
/// How many keys --hotkeys keeps.
pub(crate) const HOT_KEYS: usize = 16;
/// How many elements or bytes `peek` shows.
pub(crate) const PEEK_ELEMENTS: usize = 10;
pub(crate) const PEEK_BYTES: usize = 256;
/// How many keys are remembered for completion, and how many lines of history.
pub(crate) const SEEN_KEYS: usize = 1000;
pub(crate) const HISTORY_LINES: usize = 10_000;
/// From how many milliseconds on a person is told how long a command took.
pub(crate) const SLOW_MS: u64 = 500;
/// How many keys, or bytes of keys and values, `import` sends together, and how many refused keys it names.
pub(crate) const IMPORT_BATCH_KEYS: usize = 512;
pub(crate) const IMPORT_BATCH_BYTES: usize = 256 * 1024;
/// How many fields of a hash, or half of how many members of a set, `import` sets by one request.
pub(crate) const IMPORT_BATCH_FIELDS: usize = 512;
pub(crate) const REFUSALS_SHOWN: usize = 5;
/// How many keys a SCAN of `export` looks at, and how many keys, or bytes of values, it reads together.
pub(crate) const EXPORT_SCAN: u64 = 1000;
pub(crate) const EXPORT_GROUP_KEYS: usize = 128;
pub(crate) const EXPORT_GROUP_BYTES: usize = 4 * 1024 * 1024;
/// What a field of a hash, or a member of a set, counts for in a group, in bytes, if the server does not tell
/// what memory all take.
pub(crate) const EXPORT_FIELD_BYTES: i64 = 64;
/// Up to how many fields, of at most how many bytes, `export` writes a hash packed, and up to how many
/// integers a set: the defaults of redis-server, which so loads it fast.
pub(crate) const EXPORT_PACKED_FIELDS: usize = 512;
pub(crate) const EXPORT_PACKED_BYTES: usize = 64;
/// Fields of a hash that one request asks about.
pub(crate) const EXPORT_TIMES: usize = 1000;

/// How many nodes a request is sent to at most before its redirections count as a circle.
pub(crate) const MAX_REDIRECTIONS: u32 = 16;
/// How long a node of a cluster may take to serve, and to end, and between two looks at it.
pub(crate) const NODE_PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const NODE_PAUSE: Duration = Duration::from_millis(5);
