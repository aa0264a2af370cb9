//! Limits on the addresses of the process (`ulimit -v`): looked at before anything is mapped, because a
//! mapping that is refused later ends the process, in a library or in the middle of a command.

use sys::process::AddressLimit;

use super::{Setting, Settings};
use crate::limits::{ADDRESSES_BASE, ADDRESSES_FOR_DATA, ADDRESSES_LEAST, ADDRESSES_PER_WORKER};

/// Addresses that a server with so many workers maps without any data.
fn base(workers: usize) -> u64 {
    ADDRESSES_BASE + ADDRESSES_PER_WORKER * workers as u64
}

/// Bytes of memory that a limit leaves for data.
pub(crate) fn room(limit: AddressLimit, workers: usize) -> u64 {
    let (addresses, bytes) = ADDRESSES_FOR_DATA;
    limit.bytes.saturating_sub(base(workers)) / addresses * bytes
}

/// Looks whether the process may map what it needs.
///
/// # Errors
/// Which limit is too small, what is needed, and what to do.
pub(crate) fn check(settings: &Settings) -> Result<(), String> {
    let Some(limit) = sys::process::address_limit() else {
        return Ok(());
    };
    judge(
        limit,
        settings.workers(),
        settings.int(Setting::MaxMemory).unsigned_abs(),
    )
}

fn judge(limit: AddressLimit, workers: usize, max_memory: u64) -> Result<(), String> {
    let AddressLimit { flag, bytes } = limit;
    let room = room(limit, workers);
    let (addresses, memory) = ADDRESSES_FOR_DATA;
    let kilobytes = |bytes: u64| bytes.div_ceil(1024);
    let least = kilobytes(base(workers) + ADDRESSES_LEAST * addresses / memory);
    if room < ADDRESSES_LEAST {
        return Err(format!(
            "the process may map {} kB of addresses ({flag}), and {workers} workers need {least} kB with hardly any data: \
             raise that limit or remove it ({flag} unlimited); memory itself is bounded by 'maxmemory'",
            kilobytes(bytes),
        ));
    }
    if max_memory > room {
        let needed = base(workers).saturating_add((max_memory / memory).saturating_mul(addresses));
        return Err(format!(
            "the process may map {} kB of addresses ({flag}), and 'maxmemory' {max_memory} needs {} kB: raise that limit, remove \
             it ({flag} unlimited), or set 'maxmemory' to {room} or less",
            kilobytes(bytes),
            kilobytes(needed),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_too_small_is_named_with_what_is_needed() {
        let limit = |bytes| AddressLimit {
            flag: "ulimit -v",
            bytes,
        };
        let small = judge(limit(200 << 20), 2, 0).expect_err("it is too small");
        for part in ["204800 kB", "ulimit -v", "2 workers", "2441216 kB"] {
            assert!(small.contains(part), "{part}: {small}");
        }
        // The limit that the message names is enough.
        assert!(judge(limit(2_441_216 << 10), 2, ADDRESSES_LEAST).is_ok());
        let large = judge(limit(4 << 30), 2, 8 << 30).expect_err("it is too large");
        let room = room(limit(4 << 30), 2);
        assert!(large.contains(&format!("to {room} or less")), "{large}");
        assert!(judge(limit(4 << 30), 2, room).is_ok());
        assert!(judge(limit(u64::MAX), 64, 1 << 50).is_ok());
    }
}
