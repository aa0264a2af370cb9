//! What one connection may send.

/// What one connection may send.
///
/// Whatever the limits say, 3 arguments, payloads of 9,999 bytes and lines of 16 bytes are
/// accepted: the parser's quick path does not look at the limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest payload of one argument, in bytes.
    pub max_bulk_len: usize,
    /// The most arguments of one request.
    pub max_args: usize,
    /// The longest inline request that may wait for its end, in bytes before the end of the line.
    pub max_inline_len: usize,
    /// Bytes more that an inline request may have if its end is there when it becomes longer than that: Redis
    /// looks at the length after each read of 16 KiB.
    pub whole_inline_extra: usize,
    /// Without it, a request may have at most 10 arguments of at most 16 KiB: enough to
    /// authenticate, too little to fill the memory of a server that the sender has no access to.
    pub authenticated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_bulk_len: 512 << 20,
            max_args: i32::MAX as usize,
            max_inline_len: 64 << 10,
            whole_inline_extra: (16 << 10) - 1,
            authenticated: true,
        }
    }
}

/// The most arguments of a request before authentication.
pub(super) const UNAUTHENTICATED_ARGS: usize = 10;
/// The longest payload of an argument before authentication, in bytes.
pub(super) const UNAUTHENTICATED_BULK_LEN: usize = 16 << 10;
