//! What of a file is in the page cache, for who must not wait for the disk.

use std::io;
use std::ops::Range;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;

/// Of so many bytes that came from the disk together one is looked at.
#[cfg(target_os = "linux")]
const STEP_BYTES: usize = 64 * 1024;

/// Whether a part of a file can be read without waiting for the disk; `None` if the system cannot tell for
/// this file. What is behind the end of the file counts as read.
///
/// Some system calls, which read a byte here and there: what is in the page cache may still be on its way
/// from the disk. Where nothing is there one call tells, if the system knows it; to read a byte makes it read
/// ahead.
#[cfg(target_os = "linux")]
pub fn is_cached(file: BorrowedFd<'_>, part: Range<u64>) -> Option<bool> {
    if part.is_empty() {
        return Some(true);
    }
    if cached_pages(file, &part) == Some(0) {
        return Some(false);
    }
    for offset in part.clone().step_by(STEP_BYTES).chain([part.end - 1]) {
        match read_now(file, &mut [0], offset) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(false),
            Err(_) => return None,
        }
    }
    Some(true)
}

/// The system call `cachestat`, which the `libc` crate does not name everywhere. Its number is the same on
/// these.
#[cfg(all(
    target_os = "linux",
    any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64"
    )
))]
const CACHESTAT: Option<libc::c_long> = Some(451);
#[cfg(all(
    target_os = "linux",
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64"
    ))
))]
const CACHESTAT: Option<libc::c_long> = None;

/// How many pages of a part of a file are in the page cache. `None` if the system does not tell: it is one
/// before Linux 6.5, or the file is of another user.
#[cfg(target_os = "linux")]
fn cached_pages(file: BorrowedFd<'_>, part: &Range<u64>) -> Option<u64> {
    let number = CACHESTAT?;
    let wanted = [part.start, part.end - part.start];
    let mut found = [0_u64; 5];
    // SAFETY: the call reads two numbers, an offset and a length, and writes five, of which the first is that
    // of pages; both are there for as long as it takes. The descriptor is open.
    let answer = unsafe {
        libc::syscall(
            number,
            file.as_raw_fd(),
            wanted.as_ptr(),
            found.as_mut_ptr(),
            0,
        )
    };
    (answer == 0).then_some(found[0])
}

/// Reads what can be read without waiting for the disk, up to the length of `buffer`.
///
/// # Errors
/// `WouldBlock` if that is nothing; or what the system says.
#[cfg(target_os = "linux")]
pub(super) fn read_now(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut parts = [io::IoSliceMut::new(buffer)];
    let flags = rustix::io::ReadWriteFlags::NOWAIT;
    Ok(rustix::io::preadv2(file, &mut parts, offset, flags)?)
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

/// Whether a part of a file is in the page cache, where no system call tells.
#[cfg(not(target_os = "linux"))]
pub fn is_cached(_file: BorrowedFd<'_>, _part: Range<u64>) -> Option<bool> {
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
        for part in [0..0, 0..1, 0..10_000, 9_999..10_000] {
            // Not every file system can tell.
            assert_ne!(
                is_cached(file.as_fd(), part.clone()),
                Some(false),
                "{part:?}"
            );
        }
        let mut part = [0; 3_000];
        match read_now(file.as_fd(), &mut part, 9_000) {
            Ok(count) => assert_eq!((count, &part[..1_000]), (1_000, &[7; 1_000][..])),
            Err(error) => assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
        }
        std::fs::remove_file(&path).expect("it is there");
    }
}
