//! The allocator for everything that is not an entry (those have slabs of their own) and not large (that has runs of pages): quick, and
//! made for many threads. What it gives is counted, for there is a limit of all memory.
//!
//! mimalloc measured best (docs/benchmarks.md); features of the build put another in its place, to measure again.

#[cfg(not(any(feature = "jemalloc", feature = "system-malloc")))]
use mimalloc::MiMalloc as Allocator;
#[cfg(feature = "system-malloc")]
use std::alloc::System as Allocator;
#[cfg(feature = "jemalloc")]
use tikv_jemallocator::Jemalloc as Allocator;

/// Its name, as INFO tells it.
pub(crate) const NAME: &str = if cfg!(feature = "jemalloc") {
    "jemalloc"
} else if cfg!(feature = "system-malloc") {
    "libc"
} else {
    "mimalloc"
};

#[global_allocator]
static ALLOCATOR: sys::memory::Counted<Allocator> = sys::memory::Counted(Allocator);
