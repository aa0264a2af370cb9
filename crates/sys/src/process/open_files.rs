//! The limit on open descriptors, which is the limit on connections.

use crate::syscall::check;
use std::io;

/// Raises the limit on descriptors to `wanted`, or as near as this process may, and returns what it
/// is now, which is more than `wanted` if it was before. `u64::MAX` is "no limit".
///
/// # Errors
/// The limit cannot be read; that it cannot be raised is no error, the caller compares.
pub fn raise_open_files(wanted: u64) -> io::Result<u64> {
    let now = limits()?;
    if from_kernel(now.rlim_cur) >= wanted {
        return Ok(from_kernel(now.rlim_cur));
    }
    let hard = from_kernel(now.rlim_max);
    // Beyond the hard limit first, which takes a privilege; then up to it; then up to what macOS
    // takes whatever it claims.
    const MACOS_LIMIT: u64 = 10_240;
    for (soft, hard) in [
        (wanted, hard.max(wanted)),
        (wanted.min(hard), hard),
        (wanted.min(MACOS_LIMIT), hard),
    ] {
        if soft > from_kernel(now.rlim_cur) && set_limits(soft, hard).is_ok() {
            break;
        }
    }
    Ok(from_kernel(limits()?.rlim_cur))
}

fn limits() -> io::Result<libc::rlimit> {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call may write the structure.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits) })?;
    Ok(limits)
}

fn set_limits(soft: u64, hard: u64) -> io::Result<()> {
    let limits = libc::rlimit {
        rlim_cur: to_kernel(soft),
        rlim_max: to_kernel(hard),
    };
    // SAFETY: the call reads the structure.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limits) })?;
    Ok(())
}

/// The kernel's word for "no limit" differs between systems, and so does the type of a limit.
#[allow(clippy::unnecessary_cast, reason = "the type is signed on FreeBSD")]
fn from_kernel(limit: libc::rlim_t) -> u64 {
    if limit == libc::RLIM_INFINITY {
        u64::MAX
    } else {
        limit as u64
    }
}

#[allow(clippy::unnecessary_cast, reason = "the type is signed on FreeBSD")]
fn to_kernel(limit: u64) -> libc::rlim_t {
    if limit >= libc::RLIM_INFINITY as u64 {
        libc::RLIM_INFINITY
    } else {
        limit as libc::rlim_t
    }
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
        assert_eq!(from_kernel(libc::RLIM_INFINITY), u64::MAX);
        assert_eq!(to_kernel(u64::MAX), libc::RLIM_INFINITY);
        assert_eq!(from_kernel(to_kernel(1_024)), 1_024);
    }
}
