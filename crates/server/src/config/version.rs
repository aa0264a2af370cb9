//! Which version this is, and which one clients are told.

/// The version of the Redis protocol and command set that clients are told; some switch on it.
pub(crate) const REDIS_VERSION: &str = "7.4.0";
/// The same as numbers.
pub(crate) fn redis_version() -> [u8; 3] {
    let mut parts = REDIS_VERSION
        .split('.')
        .map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

/// The version of Ferrite.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
