//! Memory for entries: size classes over the process allocator.
//!
//! Entries ask for a class, never for a size, so that a shard counts what is really taken and an
//! overwrite knows how much room it has. Classes are 8 bytes apart up to 128 and then an eighth of
//! the power of two below, which bounds internal waste at 12.5 %.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Every entry begins at a multiple of this, which frees the low three bits of a reference.
pub(crate) const ALIGN: usize = 8;

/// The bytes really taken by an allocation of `size`.
#[inline]
pub(crate) fn class_size(size: usize) -> usize {
    if size <= 128 {
        (size + 7) & !7
    } else {
        let step = 1usize << (usize::BITS - 1 - (size - 1).leading_zeros() - 3);
        (size + step - 1) & !(step - 1)
    }
}

/// Allocates a class of [`class_size`]; never returns null (the process ends when memory does).
pub(crate) fn allocate(class: usize) -> NonNull<u8> {
    debug_assert_eq!(class, class_size(class));
    let layout = Layout::from_size_align(class, ALIGN).expect("a class is below isize::MAX");
    // SAFETY: a class is never zero, because an entry has a header.
    let pointer = unsafe { alloc(layout) };
    NonNull::new(pointer).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Gives an allocation back.
///
/// # Safety
/// `pointer` came from [`allocate`] with the same `class` and is not used afterwards.
pub(crate) unsafe fn release(pointer: NonNull<u8>, class: usize) {
    let layout = Layout::from_size_align(class, ALIGN).expect("a class is below isize::MAX");
    // SAFETY: the caller's contract is that of `dealloc`.
    unsafe { dealloc(pointer.as_ptr(), layout) }
}

#[cfg(test)]
mod tests {
    use super::class_size;

    #[test]
    fn classes_hold_their_size_and_waste_little() {
        let mut last = 0;
        for size in 1..70_000 {
            let class = class_size(size);
            assert!(class >= size && class.is_multiple_of(8) && class >= last);
            assert!(
                class - size < 8 || (class - size) * 8 <= size,
                "{size} -> {class}"
            );
            assert_eq!(class_size(class), class);
            last = class;
        }
    }
}
