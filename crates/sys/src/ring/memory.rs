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
//! The bytes belong to a file; both mappings show it. The processor keeps the two views coherent, and
//! whoever hands out slices of them sees to it that no byte is written through one while it is looked at
//! through the other.
//!
//! In front of them the file has the ring's watermarks, mapped once ([`Shared`]), and in front of those a
//! header, which is not mapped:
//!
//! ```text
//!  offset  0        HEADER                 CONTROL or a multiple of it
//!          +--------+----------------------+-----------------------------+
//!          | header | tail, head, marks, 0 | the bytes                   |
//!          +--------+----------------------+-----------------------------+
//! ```
//!
//! The file is anonymous and exists in memory alone, or it has a name ([`super::file`]) and outlives the
//! process.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use super::watermarks::{Line, Mark, Watermarks};
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
    /// Maps `len` bytes of a file twice, from `offset` on; both must be whole pages, and the file so long.
    pub(super) fn new(file: &File, offset: usize, len: usize) -> io::Result<Mirror> {
        let total = len.checked_mul(2).ok_or(io::ErrorKind::InvalidInput)?;
        // Takes the addresses first, so that both halves can be put where nothing else is.
        // SAFETY: a fresh mapping without access touches nothing that exists.
        let start = unsafe {
            map(
                std::ptr::null_mut(),
                total,
                libc::PROT_NONE,
                ANONYMOUS,
                -1,
                0,
            )?
        };
        let mirror = Mirror { start, len };
        for half in [0, len] {
            // SAFETY: `half` is inside the reserved addresses.
            let at = unsafe { start.as_ptr().add(half) };
            let shared = libc::MAP_SHARED | libc::MAP_FIXED;
            // SAFETY: the mapping replaces a part of the reservation, which nobody uses yet.
            // If it fails, dropping `mirror` ends what has been mapped.
            unsafe { map(at, len, READ_WRITE, shared, file.as_raw_fd(), offset)? };
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

/// Bytes in front of the watermarks.
pub(super) const HEADER: usize = 4096;
/// The ring's bytes begin at a multiple of this, which is one of every system's pages.
const CONTROL: usize = 64 << 10;
/// Where a mark must not be cut by a page's end.
const _: () = assert!(HEADER.is_multiple_of(align_of::<Watermarks<AtomicU64, [u8; 0]>>()));

/// Where the ring's bytes begin in a file with the watermarks of so many producers.
pub(super) const fn control_bytes(producers: usize) -> usize {
    (HEADER + Watermarks::bytes(producers)).next_multiple_of(CONTROL)
}

/// The watermarks, in the file that has the ring's bytes.
#[derive(Debug)]
pub(super) struct Shared {
    start: NonNull<u8>,
    len: usize,
    marks: NonNull<Watermarks<AtomicU64>>,
}

// SAFETY: the mapping belongs to nobody's thread, and what is handed out of it are atomics.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Maps the watermarks of a file of zeroes and sets them for a ring that begins at `first`.
    pub(super) fn new(file: &File, producers: usize, first: u64) -> io::Result<Shared> {
        let len = control_bytes(producers);
        let fd = file.as_raw_fd();
        // SAFETY: a fresh mapping touches nothing that exists.
        let start = unsafe {
            map(
                std::ptr::null_mut(),
                len,
                READ_WRITE,
                libc::MAP_SHARED,
                fd,
                0,
            )?
        };
        // SAFETY: the offset is inside the mapping.
        let words = unsafe { start.add(HEADER) }.cast::<Line<Mark<AtomicU64>>>();
        // The slice's length is that of its last field, which is what the type's pointers carry.
        let marks = NonNull::slice_from_raw_parts(words, producers);
        let marks = marks.as_ptr() as *mut Watermarks<AtomicU64>;
        let marks = NonNull::new(marks).expect("it is inside of a mapping");
        let shared = Shared { start, len, marks };
        shared.marks().reset(first);
        Ok(shared)
    }

    /// The words.
    #[inline]
    pub(super) fn marks(&self) -> &Watermarks<AtomicU64> {
        // The words are atomics, for which any bits are a value; the mapping is as long as they are
        // (`Watermarks::bytes`), lies at a multiple of a page plus `HEADER`, and lives as long as `self`. No
        // reference to them is ever exclusive.
        // SAFETY: so the pointer is valid, aligned, and shared as atomics may be.
        unsafe { self.marks.as_ref() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and no reference to the words outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

const READ_WRITE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
const ANONYMOUS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANON;

/// # Safety
/// With `MAP_FIXED`, nothing in use lives in the range.
unsafe fn map(
    at: *mut u8,
    len: usize,
    access: libc::c_int,
    flags: libc::c_int,
    fd: libc::c_int,
    offset: usize,
) -> io::Result<NonNull<u8>> {
    let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: as the caller says.
    let start = unsafe { libc::mmap(at.cast(), len, access, flags, fd, offset) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(start.cast()).expect("the system doesn't map address 0 unasked"))
}

/// A file without a name that lives in memory.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(super) fn anonymous_file() -> io::Result<File> {
    // SAFETY: the name is a terminated string.
    let fd = check(unsafe { libc::memfd_create(c"ferrite-ring".as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the descriptor is open and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// A file in memory whose name is gone as soon as it is open.
#[cfg(target_os = "macos")]
pub(super) fn anonymous_file() -> io::Result<File> {
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

    fn mirror(offset: usize, len: usize) -> io::Result<Mirror> {
        let file = anonymous_file()?;
        file.set_len((offset as u64).saturating_add(len as u64))?;
        Mirror::new(&file, offset, len)
    }

    #[test]
    fn both_halves_show_the_same_bytes() {
        let mirror = mirror(CONTROL, 1 << 16).expect("memory");
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
        assert!(mirror(0, 0).is_err());
        assert!(mirror(0, 100).is_err());
        assert!(mirror(0, usize::MAX & !0xffff).is_err());
    }

    #[test]
    fn watermarks_lie_in_front_of_the_bytes() {
        let file = anonymous_file().expect("memory");
        for producers in [1, 3, 500, 1024] {
            let len = control_bytes(producers);
            file.set_len(len as u64).expect("memory");
            let shared = Shared::new(&file, producers, 4096).expect("memory");
            assert_eq!(
                (shared.marks().tail(), shared.marks().complete()),
                (4096, 4096)
            );
            shared.marks().producer(producers - 1).begin(5000, 8);
            assert_eq!(shared.marks().complete(), 4096);
            assert!(HEADER + size_of_val(shared.marks()) <= len);
            assert_eq!(size_of_val(shared.marks()), Watermarks::bytes(producers));
        }
    }
}
