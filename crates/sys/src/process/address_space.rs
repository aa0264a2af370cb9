//! Limits on the addresses that a process may map (`ulimit -v`, `ulimit -d`). Beyond one of them memory is
//! refused that the machine has.

use rustix::process::{Resource, getrlimit};

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
    let limits = [(Resource::As, "ulimit -v"), (Resource::Data, "ulimit -d")];
    let known = limits.into_iter().filter_map(|(resource, flag)| {
        let bytes = getrlimit(resource).current?;
        Some(AddressLimit { flag, bytes })
    });
    known.min_by_key(|limit| limit.bytes)
}

// That a limit is found is tested in the server's tests, by a process that has one.
