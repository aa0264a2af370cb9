//! The HTTP port and its dashboard.

/// Connections to the HTTP port, and how many are accepted in a row.
pub(crate) const HTTP_CONNECTIONS: usize = 64;
pub(crate) const HTTP_ACCEPT_BURST: usize = 16;

/// Bytes of the head of an HTTP request.
pub(crate) const HTTP_HEAD_BYTES: usize = 8 * 1024;

/// Milliseconds that an HTTP client may take to send a request, to take its answer, and to think of
/// another request.
pub(crate) const HTTP_REQUEST_MS: u64 = 5_000;
pub(crate) const HTTP_ANSWER_MS: u64 = 20_000;
pub(crate) const HTTP_IDLE_MS: u64 = 75_000;

/// Milliseconds for which gathered figures are served again.
pub(crate) const HTTP_FRESH_MS: u64 = 100;

/// How long a request by HTTP waits for a script before it is answered without figures.
pub(crate) const HTTP_PATIENCE: std::time::Duration = std::time::Duration::from_millis(200);

/// The history of the dashboard: milliseconds between two looks, how many of them make a point of the
/// coarse row, and the points of both rows: ten minutes at a second each, an hour at ten.
pub(crate) const HISTORY_STEP_MS: u64 = 1000;
pub(crate) const HISTORY_COARSE_STEPS: usize = 10;
pub(crate) const HISTORY_FINE_POINTS: usize = 600;
pub(crate) const HISTORY_COARSE_POINTS: usize = 360;

/// The browser of keys: keys of a page, keys that a request looks at and those under one lock,
/// nanoseconds of a request, and bytes of each key and each value that are shown.
pub(crate) const BROWSE_KEYS: usize = 100;
pub(crate) const BROWSE_LOOKS: usize = 10_000;
pub(crate) const BROWSE_SLICE: usize = 64;
pub(crate) const BROWSE_NS: u64 = 2_000_000;
pub(crate) const BROWSE_KEY_BYTES: usize = 256;
pub(crate) const BROWSE_VALUE_BYTES: usize = 128;

/// Prefixes of keys that are counted apart.
pub(crate) const PREFIXES: usize = 1024;
