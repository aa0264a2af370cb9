//! The process' allocator: it counts what it gives, and keeps what is large in runs of pages.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{NonNull, null_mut};

use super::allocator;
use super::count::charge;
use super::runs::{PAGE, Runs};

/// Sizes from this on are runs of pages; smaller ones are counted in jemalloc's classes: four for each
/// doubling.
const PAGED: usize = 16 * 1024;
/// Sizes below this are counted in words of two.
const SMALL: usize = 128;

/// What an allocation of `size` bytes takes: allocators have classes of sizes, and the system has pages.
#[inline]
const fn taken(size: usize) -> i64 {
    let step = if size >= PAGED {
        PAGE
    } else if size > SMALL {
        1 << (usize::BITS - 3 - (size - 1).leading_zeros())
    } else {
        16
    };
    ((size + step - 1) & !(step - 1)) as i64
}

/// An allocator that counts what it gives, and keeps large allocations in `runs` of its own.
pub struct Counted<A>(pub A);

/// Where large allocations come from.
pub(super) static LARGE: Runs = Runs::new();

/// Says how many bytes of free memory are kept for the next large allocations.
pub fn keep_free(bytes: usize) {
    LARGE.keep(bytes);
}

/// Starts the thread that gives memory back that nothing uses, where the allocator has one. Call it when the
/// process may have threads.
pub fn start_giving_back() {
    allocator::start_thread();
}

/// Gives memory that nothing uses back to the system now, also what is kept for the next large allocations.
pub fn purge() {
    LARGE.purge();
    allocator::purge();
}

/// Whether an allocation is kept in runs.
#[inline]
fn is_large(size: usize, layout: Layout) -> bool {
    size >= PAGED && layout.align() <= PAGE
}

// SAFETY: every call is passed on as it came, and its answer returned as it is, except that large ones are
// all for `LARGE`: which it is follows from size and alignment, so what comes back goes where it came from.
// Counting neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        charge(taken(layout.size()));
        if is_large(layout.size(), layout) {
            return LARGE
                .allocate(layout.size())
                .map_or(null_mut(), NonNull::as_ptr);
        }
        // SAFETY: as the caller says.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout.size(), layout) {
            // SAFETY: the layout is the caller's; what is written is inside what was just allocated.
            unsafe {
                let start = self.alloc(layout);
                if !start.is_null() {
                    start.write_bytes(0, layout.size());
                }
                return start;
            }
        }
        charge(taken(layout.size()));
        // SAFETY: as the caller says.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        charge(-taken(layout.size()));
        if is_large(layout.size(), layout)
            && let Some(start) = NonNull::new(pointer)
        {
            // SAFETY: it came from `LARGE` with this size, by the same rule.
            return unsafe { LARGE.free(start, layout.size()) };
        }
        // SAFETY: as the caller says.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let (was_large, is_large) = (is_large(layout.size(), layout), is_large(new_size, layout));
        if !was_large && !is_large {
            charge(taken(new_size) - taken(layout.size()));
            // SAFETY: as the caller says.
            return unsafe { self.0.realloc(pointer, layout, new_size) };
        }
        if was_large
            && is_large
            && let Some(start) = NonNull::new(pointer)
            // SAFETY: it came from `LARGE` with this size; the caller gives up what is behind a smaller one.
            && unsafe { LARGE.resize(start, layout.size(), new_size) }
        {
            charge(taken(new_size) - taken(layout.size()));
            return pointer;
        }
        // SAFETY: the caller's layout with its new size is one; both are at least as long as what is copied,
        // and the old is given up.
        unsafe {
            let new_layout = Layout::from_size_align_unchecked(new_size, layout.align());
            let moved = self.alloc(new_layout);
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(pointer, layout.size().min(new_size));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::memory::count::{published, unpublished_max, used};
    use std::alloc::System;
    use std::sync::{Mutex, MutexGuard};

    /// The counts are the process': one test at a time.
    pub(in crate::memory) fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    #[test]
    fn what_is_taken_is_no_less_than_was_asked_for_and_little_more() {
        for size in 1..300_000 {
            let taken = taken(size) as usize;
            assert!(taken >= size, "{size}");
            assert!(taken - size < 16.max(size / 4), "{size} {taken}");
        }
    }

    #[test]
    fn threads_publish_what_they_count_and_the_sum_is_exact() {
        let _alone = alone();
        let before = used();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..10_000 {
                        charge(100 + round % 7);
                        charge(-(round % 7));
                    }
                });
            }
        });
        assert_eq!(used() - before, 4_000_000);
        assert!((used() - published()).abs() <= unpublished_max());
        charge(-4_000_000);
        assert_eq!(used(), before);
    }

    #[test]
    fn what_is_counted_is_what_the_allocator_takes() {
        let classes = [
            (1, 16),
            (128, 128),
            (129, 160),
            (2048, 2048),
            (2049, 2560),
            (6100, 6144),
            (8193, 10_240),
        ];
        for (size, class) in classes {
            assert_eq!(taken(size), class, "{size}");
        }
        assert_eq!(taken(PAGED + 1), (PAGED + PAGE) as i64);
    }

    #[test]
    fn an_allocator_counts_what_it_gives_until_it_comes_back() {
        let _alone = alone();
        let before = used();
        let counted = Counted(System);
        let layout = Layout::from_size_align(100_000, 8).expect("a layout");
        // SAFETY: each is freed once, with the layout it has by then.
        unsafe {
            let first = counted.alloc(layout);
            let second = counted.alloc_zeroed(layout);
            assert!(used() - before >= 200_000);
            (*first, *first.add(99_999)) = (1, 2);
            let first = counted.realloc(first, layout, 200_000);
            assert_eq!((*first, *first.add(99_999)), (1, 2));
            assert!(used() - before >= 300_000);
            assert!((0..100_000).all(|at| *second.add(at) == 0));
            counted.dealloc(second, layout);
            let layout = Layout::from_size_align(200_000, 8).expect("a layout");
            counted.dealloc(first, layout);
        }
        assert_eq!(used(), before);
    }
}
