//! Every bound of this program, by name.

use std::time::Duration;

/// Bytes that one read from the connection may bring.
pub(crate) const READ_CHUNK: usize = 64 * 1024;
/// Bytes of standard input that `--pipe` sends at once.
pub(crate) const PIPE_CHUNK: usize = 64 * 1024;
/// After how many seconds of silence the system looks whether the server still exists.
pub(crate) const KEEPALIVE_S: u32 = 15;
