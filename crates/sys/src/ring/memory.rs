//! Memory that is mapped twice in a row, so that a range which passes its end goes on at its
//! beginning without a seam.
//!
//! ```text
//!  address  0              len            2 len
//!           +--------------+--------------+
//!           | the bytes    | the same     |
//!           +--------------+--------------+
//! ```
//!
//! The bytes belong to an anonymous file that exists in memory alone; both mappings show it. The
//! processor keeps the two views coherent, and whoever hands out slices of them sees to it that no
//! byte is written through one while it is looked at through the other.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use crate::syscall::check;

/// See the module.
#[derive(Debug)]
pub(super) struct Mirror {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to nobody's thread. Which bytes are touched by whom is decided by the
// callers of `slice` and `slice_mut`, whose contracts say so.
unsafe impl Send for Mirror {}
// SAFETY: as above.
unsafe impl Sync for Mirror {}

impl Mirror {
    /// Maps `len` bytes of zeroes twice; `len` must be whole pages.
    pub(super) fn new(len: usize) -> io::Result<Mirror> {
        let file = anonymous_file()?;
        file.set_len(len as u64)?;
        let total = len.checked_mul(2).ok_or(io::ErrorKind::InvalidInput)?;
        // Takes the addresses first, so that both halves can be put where nothing else is.
        // SAFETY: a fresh mapping without access touches nothing that exists.
        let start = unsafe { map(std::ptr::null_mut(), total, libc::PROT_NONE, ANONYMOUS, -1)? };
        let mirror = Mirror { start, len };
        for half in [0, len] {
            // SAFETY: `half` is inside the reserved addresses.
            let at = unsafe { start.as_ptr().add(half) };
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let shared = libc::MAP_SHARED | libc::MAP_FIXED;
            // SAFETY: the mapping replaces a part of the reservation, which nobody uses yet.
            // If it fails, dropping `mirror` ends what has been mapped.
            unsafe { map(at, len, access, shared, file.as_raw_fd())? };
        }
        Ok(mirror)
    }

    /// Bytes, counted once.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The bytes from `index` on.
    ///
    /// # Safety
    /// `index` is below and `len` at most [`Mirror::len`]; nobody writes these bytes, through either
    /// half, while the slice lives.
    #[inline]
    pub(super) unsafe fn slice(&self, index: usize, len: usize) -> &[u8] {
        debug_assert!(index < self.len && len <= self.len);
        // SAFETY: the range is inside the two halves; the rest is the caller's contract.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(index), len) }
    }

    /// The bytes from `index` on, to be written.
    ///
    /// # Safety
    /// `index` is below and `len` at most [`Mirror::len`]; nobody else touches these bytes, through
    /// either half, while the slice lives.
    #[inline]
    #[allow(
        clippy::mut_from_ref,
        reason = "the caller's contract makes it exclusive"
    )]
    pub(super) unsafe fn slice_mut(&self, index: usize, len: usize) -> &mut [u8] {
        debug_assert!(index < self.len && len <= self.len);
        // SAFETY: the range is inside the two halves; the rest is the caller's contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(index), len) }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and no slice outlives the mirror.
        unsafe { libc::munmap(self.start.as_ptr().cast(), 2 * self.len) };
    }
}

const ANONYMOUS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANON;

/// # Safety
/// With `MAP_FIXED`, nothing in use lives in the range.
unsafe fn map(
    at: *mut u8,
    len: usize,
    access: libc::c_int,
    flags: libc::c_int,
    fd: libc::c_int,
) -> io::Result<NonNull<u8>> {
    // SAFETY: as the caller says.
    let start = unsafe { libc::mmap(at.cast(), len, access, flags, fd, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(start.cast()).expect("the system doesn't map address 0 unasked"))
}

/// A file without a name that lives in memory.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
fn anonymous_file() -> io::Result<File> {
    // SAFETY: the name is a terminated string.
    let fd = check(unsafe { libc::memfd_create(c"ferrite-ring".as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the descriptor is open and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// A file in memory whose name is gone as soon as it is open.
#[cfg(target_os = "macos")]
fn anonymous_file() -> io::Result<File> {
    let name = std::ffi::CString::new(format!("/ferrite-ring-{}", std::process::id()))
        .expect("a number has no zero byte");
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
    // SAFETY: the name is a terminated string.
    let fd = check(unsafe { libc::shm_open(name.as_ptr(), flags, 0o600) })?;
    // SAFETY: as above.
    unsafe { libc::shm_unlink(name.as_ptr()) };
    // SAFETY: the descriptor is open and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_show_the_same_bytes() {
        let mirror = Mirror::new(1 << 16).expect("memory");
        let len = mirror.len();
        // SAFETY: no other slice exists, each is dropped before the next.
        unsafe {
            mirror.slice_mut(len - 3, 6).copy_from_slice(b"abcdef");
            assert_eq!(mirror.slice(0, 3), b"def");
            assert_eq!(mirror.slice(len - 3, 3), b"abc");
            assert_eq!(mirror.slice(len - 1, len)[..4], *b"cdef");
            assert_eq!(mirror.slice(5, 1), [0]);
        }
    }

    #[test]
    fn a_size_that_is_no_page_is_refused() {
        assert!(Mirror::new(0).is_err());
        assert!(Mirror::new(100).is_err());
        assert!(Mirror::new(usize::MAX & !0xffff).is_err());
    }
}
