//! Limits on the addresses that a process may map (`ulimit -v`, `ulimit -d`). Beyond one of them memory is
//! refused that the machine has.

use crate::syscall::check;

/// A limit on addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressLimit {
    /// The flag of the shell's `ulimit` that sets it, in kilobytes.
    pub flag: &'static str,
    /// Bytes that may be mapped.
    pub bytes: u64,
}

/// The smallest limit on addresses of this process; `None` if there is no limit.
#[must_use]
pub fn address_limit() -> Option<AddressLimit> {
    let limits = [
        (libc::RLIMIT_AS, "ulimit -v"),
        (libc::RLIMIT_DATA, "ulimit -d"),
    ];
    let known = limits.into_iter().filter_map(|(resource, flag)| {
        let mut limits = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the call may write the structure.
        check(unsafe { libc::getrlimit(resource, &mut limits) }).ok()?;
        let is_limited = limits.rlim_cur != libc::RLIM_INFINITY;
        #[allow(clippy::unnecessary_cast, reason = "the type is signed on FreeBSD")]
        is_limited.then_some(AddressLimit {
            flag,
            bytes: limits.rlim_cur as u64,
        })
    });
    known.min_by_key(|limit| limit.bytes)
}

// That a limit is found is tested in the server's tests, by a process that has one.
