//! Reading what is read once.
//!
//! A file that is in the page cache is read from there. One that is not is read past it: filling pages for one use can cost several
//! times as much as the reading itself. For that it is opened a second time, because the choice belongs to the opening. It is made
//! once for a file, by a look at its middle: to look everywhere would make the system read ahead.
//!
//! A file system that refuses, for whatever reason, is read in the usual way.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use super::DIRECT_BLOCK;
use super::direct::{is_refusal, reopen};
use crate::syscall::retry;

/// The second opening of a file that is read past the page cache.
#[derive(Debug, Default)]
pub(super) struct Scan(OnceLock<Option<fs::File>>);

impl Scan {
    /// Reads into `buffer` from `offset` on: how many bytes, 0 at the end of the file only.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn read_at(
        &self,
        file: &fs::File,
        buffer: &mut [u8],
        offset: u64,
    ) -> io::Result<usize> {
        let is_aligned = |number: usize| number.is_multiple_of(DIRECT_BLOCK);
        if is_aligned(buffer.len())
            && is_aligned(buffer.as_ptr().addr())
            && is_aligned(offset as usize)
            && let Some(direct) = self.0.get_or_init(|| choose(file))
        {
            match retry(|| direct.read_at(buffer, offset)) {
                Err(error) if is_refusal(&error) => {}
                result => return result,
            }
        }
        retry(|| file.read_at(buffer, offset))
    }
}

/// A second opening, unless the page cache has the file.
fn choose(file: &fs::File) -> Option<fs::File> {
    let middle = file.metadata().ok()?.len() / 2;
    if is_cached(file, middle) {
        return None;
    }
    reopen(file, fs::OpenOptions::new().read(true))
}

/// Whether the page cache has the byte at `offset`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn is_cached(file: &fs::File, offset: u64) -> bool {
    use std::os::fd::AsRawFd;
    let Ok(offset) = libc::off_t::try_from(offset) else {
        return false;
    };
    let mut byte = 0u8;
    let part = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: the descriptor is open, and the one part is a byte that is ours to write.
    unsafe { libc::preadv2(file.as_raw_fd(), &part, 1, offset, libc::RWF_NOWAIT) == 1 }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn is_cached(_: &fs::File, _: u64) -> bool {
    false
}
