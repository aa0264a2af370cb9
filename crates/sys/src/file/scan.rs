//! Reading what is read once.
//!
//! A file that is in the page cache is read from there. One that is not is read past it: filling pages for
//! one use can cost several times as much as the reading itself. For that it is opened a second time, because
//! the choice belongs to the opening. It is made once for a file, by a look at its middle: to look everywhere
//! would make the system read ahead.
//!
//! A file system that refuses, for whatever reason, is read in the usual way.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use super::cached::is_cached;
use super::direct::{is_refusal, reopen};
use super::files::DIRECT_BLOCK;
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
    if is_cached(file.as_fd(), middle..middle + 1) == Some(true) {
        return None;
    }
    reopen(file, fs::OpenOptions::new().read(true))
}
