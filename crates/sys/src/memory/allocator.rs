//! The allocator that [`Counted`](super::Counted) asks for what is not large.
//!
//! jemalloc measured best (docs/benchmarks.md); features of the build put another in its place, to measure
//! again.

#[cfg(feature = "mimalloc")]
pub use mimalloc::MiMalloc as Allocator;
#[cfg(feature = "system-malloc")]
pub use std::alloc::System as Allocator;
#[cfg(not(any(feature = "mimalloc", feature = "system-malloc")))]
pub use tikv_jemallocator::Jemalloc as Allocator;

/// Its name.
pub const ALLOCATOR: &str = if cfg!(feature = "mimalloc") {
    "mimalloc"
} else if cfg!(feature = "system-malloc") {
    "libc"
} else {
    "jemalloc"
};

/// What jemalloc reads when it starts: memory that nothing uses goes back to the system within five seconds.
/// Until then it is used again without a page fault. By a thread of its own, so that it goes also when there
/// is no traffic; but that begins later, because a process that goes to the background must have no threads
/// yet.
#[cfg(not(any(feature = "mimalloc", feature = "system-malloc")))]
mod jemalloc {
    use std::ffi::{CStr, c_char, c_int, c_void};
    use std::ptr::null_mut;

    #[repr(transparent)]
    struct Text(*const c_char);

    // SAFETY: it points to a constant.
    unsafe impl Sync for Text {}

    // SAFETY: jemalloc looks for a `const char *` of this name, and nobody else has one.
    #[unsafe(export_name = "_rjem_malloc_conf")]
    #[used]
    static SETTINGS: Text = Text(c"dirty_decay_ms:5000,muzzy_decay_ms:0".as_ptr());

    unsafe extern "C" {
        #[link_name = "_rjem_mallctl"]
        fn control(
            name: *const c_char,
            old: *mut c_void,
            old_len: *mut usize,
            new: *mut c_void,
            new_len: usize,
        ) -> c_int;
    }

    /// Starts the thread that gives memory back.
    pub(crate) fn start_thread() {
        let mut is_on = true;
        // SAFETY: this control reads one `bool`, which it has. If it is refused, memory goes back when
        // something is allocated or freed.
        unsafe {
            control(
                c"background_thread".as_ptr(),
                null_mut(),
                null_mut(),
                (&raw mut is_on).cast(),
                size_of::<bool>(),
            );
        }
    }

    /// Bytes that it has given out, bytes of the pages these are on, and bytes of physical memory that it
    /// holds.
    pub(crate) fn figures() -> Option<[u64; 3]> {
        // It gathers them when it is told so, with a number that means nothing.
        write(c"epoch", 1u64)?;
        Some([
            read(c"stats.allocated")?,
            read(c"stats.active")?,
            read(c"stats.resident")?,
        ])
    }

    fn write(name: &CStr, mut value: u64) -> Option<()> {
        // SAFETY: the control reads one `u64`, which it has, and says so if it is one of another type.
        let status = unsafe {
            control(
                name.as_ptr(),
                null_mut(),
                null_mut(),
                (&raw mut value).cast(),
                size_of::<u64>(),
            )
        };
        (status == 0).then_some(())
    }

    fn read(name: &CStr) -> Option<u64> {
        let (mut value, mut bytes) = (0usize, size_of::<usize>());
        // SAFETY: the control writes one `size_t` and its length, for which there is room, and says so if it
        // is one of another type.
        let status = unsafe {
            control(
                name.as_ptr(),
                (&raw mut value).cast(),
                &raw mut bytes,
                null_mut(),
                0,
            )
        };
        (status == 0 && bytes == size_of::<usize>()).then_some(value as u64)
    }

    /// Gives back what nothing uses, at once. 4096 stands for all arenas.
    pub(crate) fn purge() {
        // SAFETY: this control neither reads nor writes anything of ours. If it is refused, memory goes back
        // with time.
        unsafe {
            control(
                c"arena.4096.purge".as_ptr(),
                null_mut(),
                null_mut(),
                null_mut(),
                0,
            );
        }
    }
}

#[cfg(not(any(feature = "mimalloc", feature = "system-malloc")))]
pub(super) use jemalloc::{figures, purge, start_thread};

/// These give back in their own time.
#[cfg(any(feature = "mimalloc", feature = "system-malloc"))]
pub(super) fn purge() {}

/// These tell nothing.
#[cfg(any(feature = "mimalloc", feature = "system-malloc"))]
pub(super) fn figures() -> Option<[u64; 3]> {
    None
}

/// These have none.
#[cfg(any(feature = "mimalloc", feature = "system-malloc"))]
pub(super) fn start_thread() {}
