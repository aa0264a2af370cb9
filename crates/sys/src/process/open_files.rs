//! The limit on open descriptors, which is the limit on connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Raises the limit on descriptors to `wanted`, or as near as this process may, and returns what it
/// is now, which is more than `wanted` if it was before. `u64::MAX` is "no limit".
///
/// # Errors
/// The limit cannot be read; that it cannot be raised is no error, the caller compares.
pub fn raise_open_files(wanted: u64) -> io::Result<u64> {
    let now = getrlimit(Resource::Nofile);
    let (soft_now, hard) = (bound(now.current), bound(now.maximum));
    if soft_now >= wanted {
        return Ok(soft_now);
    }
    // Beyond the hard limit first, which takes a privilege; then up to it; then up to what macOS
    // takes whatever it claims.
    const MACOS_LIMIT: u64 = 10_240;
    for (soft, hard) in [
        (wanted, hard.max(wanted)),
        (wanted.min(hard), hard),
        (wanted.min(MACOS_LIMIT), hard),
    ] {
        let limits = Rlimit {
            current: known(soft),
            maximum: known(hard),
        };
        if soft > soft_now && setrlimit(Resource::Nofile, limits).is_ok() {
            break;
        }
    }
    Ok(bound(getrlimit(Resource::Nofile).current))
}

/// No limit is the greatest number.
fn bound(limit: Option<u64>) -> u64 {
    limit.unwrap_or(u64::MAX)
}

fn known(bound: u64) -> Option<u64> {
    (bound != u64::MAX).then_some(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    // That the limit rises is tested in tests/process.rs, in a process of its own.

    #[test]
    fn a_limit_is_never_lowered() {
        let now = raise_open_files(0).expect("the limit can be read");
        assert!(now > 0);
        assert_eq!(raise_open_files(1).expect("the limit can be read"), now);
        assert_eq!(raise_open_files(now).expect("the limit can be read"), now);
    }

    #[test]
    fn no_limit_has_one_form() {
        assert_eq!((bound(None), known(u64::MAX)), (u64::MAX, None));
        assert_eq!(known(bound(Some(1_024))), Some(1_024));
    }
}
