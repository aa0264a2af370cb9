//! What of a file is in the page cache, for who must not wait for the disk.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;

/// Whether the byte at `offset` can be read without waiting for the disk; `None` if the system cannot tell for this file. The end of
/// the file counts as read.
///
/// One system call, which reads that byte.
#[cfg(target_os = "linux")]
pub fn is_cached(file: BorrowedFd<'_>, offset: u64) -> Option<bool> {
    match read_now(file, &mut [0], offset) {
        Ok(_) => Some(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(false),
        Err(_) => None,
    }
}

/// Reads what can be read without waiting for the disk, up to the length of `buffer`.
///
/// # Errors
/// `WouldBlock` if that is nothing; or what the system says.
#[cfg(target_os = "linux")]
pub(super) fn read_now(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: the one part is memory that is ours to write; the descriptor is open.
    let read = unsafe { libc::preadv2(file.as_raw_fd(), &part, 1, offset, libc::RWF_NOWAIT) };
    crate::syscall::check_size(read)
}

/// The same where no system call does that.
///
/// # Errors
/// `Unsupported`.
#[cfg(not(target_os = "linux"))]
pub(super) fn read_now(
    _file: BorrowedFd<'_>,
    _buffer: &mut [u8],
    _offset: u64,
) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether a byte is in the page cache, where no system call tells.
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
        let mut part = [0; 3_000];
        match read_now(file.as_fd(), &mut part, 9_000) {
            Ok(count) => assert_eq!((count, &part[..1_000]), (1_000, &[7; 1_000][..])),
            Err(error) => assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
        }
        std::fs::remove_file(&path).expect("it is there");
    }
}
