//! Whether a byte of a file is in the page cache: whether somebody who must not wait may ask for it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Whether the byte at `offset` can be read without waiting for the disk; `None` if the system cannot tell for this file. The end of
/// the file counts as read.
///
/// One system call, which reads that byte.
#[cfg(target_os = "linux")]
pub fn is_cached(file: BorrowedFd<'_>, offset: u64) -> Option<bool> {
    let offset = libc::off_t::try_from(offset).ok()?;
    let mut byte = 0_u8;
    let part = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: the slice is one byte that the call may write; the descriptor is open.
    let read = unsafe { libc::preadv2(file.as_raw_fd(), &part, 1, offset, libc::RWF_NOWAIT) };
    match crate::syscall::check_size(read) {
        Ok(_) => Some(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(false),
        Err(_) => None,
    }
}

/// The same where no system call tells.
#[cfg(not(target_os = "linux"))]
pub fn is_cached(_file: BorrowedFd<'_>, _offset: u64) -> Option<bool> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn what_was_just_written_is_there() {
        let path = std::env::temp_dir().join(format!("ferrite-cached-{}", std::process::id()));
        let mut file = std::fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .expect("a file");
        file.write_all(&[7; 10_000]).expect("there is space");
        for offset in [0, 9_999, 10_000, 1 << 40] {
            // Not every file system can tell.
            assert_ne!(is_cached(file.as_fd(), offset), Some(false), "{offset}");
        }
        std::fs::remove_file(&path).expect("it is there");
    }
}
