//! What is held of memory beyond what is used: the difference between what was asked for and what the system
//! gave.
//!
//! ```text
//!  allocated   what the process has asked for, of allocators and as maps of its own
//!  active      and the free places on pages that something is on
//!  resident    and free pages that are kept for who comes next
//! ```
//!
//! What is mapped counts as allocated, active and resident, touched or not.

use super::allocator;
use super::count::used;
use super::counted::LARGE;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heap {
    /// Bytes that were asked for.
    pub allocated: u64,
    /// The same with free places on used pages.
    pub active: u64,
    /// The same with free pages.
    pub resident: u64,
}

impl Heap {
    /// As it is now, as far as the allocator tells: one that tells nothing holds nothing. Takes some
    /// microseconds.
    pub fn now() -> Heap {
        let allocated = used().max(0) as u64;
        let [given, on_pages, held] = allocator::figures().unwrap_or_default();
        // Each is gathered for itself while others allocate.
        let active = allocated + on_pages.saturating_sub(given);
        let resident = active + held.saturating_sub(on_pages) + LARGE.dirty() as u64;
        Heap {
            allocated,
            active,
            resident,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::counted::tests::alone;
    use crate::memory::{Allocator, Counted};

    #[test]
    fn each_figure_holds_the_one_before() {
        let _alone = alone();
        // The allocator of a test is the system's, so of this one there is what is allocated here.
        let counted = Counted(Allocator);
        let layout = std::alloc::Layout::from_size_align(1000, 8).expect("a layout");
        // SAFETY: each is freed once, with its layout.
        let heap = unsafe {
            use std::alloc::GlobalAlloc;
            let all: Vec<*mut u8> = (0..100).map(|_| counted.alloc(layout)).collect();
            let heap = Heap::now();
            all.iter().for_each(|&one| counted.dealloc(one, layout));
            heap
        };
        assert!(heap.allocated >= 100_000 && heap.active >= heap.allocated);
        assert!(heap.resident >= heap.active);
        if super::super::ALLOCATOR == "jemalloc" {
            // It has kept statistics: it holds more than the pages that are full.
            let told = allocator::figures();
            assert!(told.is_some_and(|[given, ..]| given > 0), "{told:?}");
            assert!(heap.resident > heap.allocated);
        }
    }
}
