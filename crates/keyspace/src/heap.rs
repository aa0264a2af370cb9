//! The memory of one shard's entries: slabs of equal objects.
//!
//! A slab is a block of 4, 16 or 32 KiB ([`crate::pages`]) that holds objects of one size class. It belongs
//! to one shard and is used under that shard's lock, so allocating is a few plain instructions, nothing is
//! shared between workers, and an entry may be freed by another worker than the one that made it.
//!
//! ```text
//!  0       8       16     18     20     22      24
//!  +-------+-------+------+------+------+-------+--------+--------+---
//!  | next  | prev  | free | bump | used | class | object | object | ...
//!  +-------+-------+------+------+------+-------+--------+--------+---
//!  free: offset of the first freed object, which holds the offset of the next; 0 for none
//!  bump: offset of the first object that was never used
//! ```
//!
//! Classes are 4 bytes apart up to 128 and then a sixteenth of the power of two below, which bounds what an
//! entry wastes at 3 bytes or 6.3 %. What is larger than [`SLAB_MAX`] comes from the process allocator.
//!
//! Invariants:
//! 1. Slabs with a free object are in the list of their class; full slabs are in none.
//! 2. An empty slab is given back, unless it is a small one and the only one in its list. Upkeep gives that
//!    back, too ([`Heap::give_empty_back`]).
//! 3. A slab that is being evacuated is in no list and only loses objects.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use crate::pages::{BlockSize, Pages};

mod evacuation;

/// Every entry begins at a multiple of this, which frees the low two bits of a reference.
pub(crate) const ALIGN: usize = 4;

/// Slack below this many bytes is not worth moving anything.
const SLACK_KEPT: usize = 32 << 10;

/// Objects of more bytes than this are not kept in slabs.
const SLAB_MAX: usize = 2048;
/// A heap with more slack than one part in this many moves objects together before it takes more memory.
pub(crate) const PRESSED_SHARE: usize = 4;
const CLASSES: usize = class_index(SLAB_MAX) + 1;
const HEADER: usize = 24;

/// The bytes really taken by an object of `size`.
#[inline]
pub(crate) const fn class_size(size: usize) -> usize {
    if size <= 128 {
        (size + 3) & !3
    } else {
        let step = 1usize << (usize::BITS - 1 - (size - 1).leading_zeros() - 4);
        (size + step - 1) & !(step - 1)
    }
}

/// The number of a class: 0 for 4 bytes, 31 for 128, then sixteen for each doubling.
#[inline]
const fn class_index(class: usize) -> usize {
    if class <= 128 {
        class / 4 - 1
    } else {
        let exponent = (usize::BITS - 1 - (class - 1).leading_zeros()) as usize;
        32 + (exponent - 7) * 16 + ((class - 1) >> (exponent - 4)) % 16
    }
}

/// The block a class' slabs are made of: large enough that header and remainder waste little.
#[inline]
const fn block_size(class: usize) -> BlockSize {
    match class {
        0..=64 => BlockSize::K4,
        65..=256 => BlockSize::K16,
        _ => BlockSize::K32,
    }
}

#[repr(C)]
struct Slab {
    next: *mut Slab,
    prev: *mut Slab,
    free: u16,
    bump: u16,
    used: u16,
    class: u16,
}

const _: () = assert!(size_of::<Slab>() == HEADER && HEADER.is_multiple_of(ALIGN));

/// See the module.
pub(crate) struct Heap {
    /// For each class, a list of slabs that have room.
    open: [*mut Slab; CLASSES],
    pages: Arc<Pages>,
    /// Bytes of slabs and of large objects.
    reserved: usize,
    /// Bytes of objects.
    used: usize,
    /// Slabs of each class, and the objects in them.
    slabs: [u32; CLASSES],
    objects: [u32; CLASSES],
    /// A slab was added though there is much slack.
    pub(crate) is_pressed: bool,
}

// SAFETY: slabs belong to the heap alone; the pointers are no more than that.
unsafe impl Send for Heap {}

impl Heap {
    pub(crate) fn new(pages: Arc<Pages>) -> Heap {
        Heap {
            open: [null_mut(); CLASSES],
            pages,
            reserved: 0,
            used: 0,
            slabs: [0; CLASSES],
            objects: [0; CLASSES],
            is_pressed: false,
        }
    }

    /// Bytes of slabs that no object uses.
    #[inline]
    pub(crate) fn slack(&self) -> usize {
        self.reserved - self.used
    }

    /// An object of a class (see [`class_size`]); never null: the process ends when memory does.
    #[inline]
    pub(crate) fn allocate(&mut self, class: usize) -> NonNull<u8> {
        debug_assert_eq!(class, class_size(class));
        self.used += class;
        if class > SLAB_MAX {
            return self.allocate_large(class);
        }
        let index = class_index(class);
        let mut slab = self.open[index];
        if slab.is_null() {
            slab = self.add_slab(class, index);
        }
        self.objects[index] += 1;
        // SAFETY: the slab is in the list of this class, so it is alive and has a free object (invariant 1);
        // all offsets are inside its block.
        unsafe {
            let offset = (*slab).free;
            let object = if offset != 0 {
                let object = slab.cast::<u8>().add(usize::from(offset));
                (*slab).free = object.cast::<u16>().read();
                object
            } else {
                let object = slab.cast::<u8>().add(usize::from((*slab).bump));
                (*slab).bump += class as u16;
                object
            };
            (*slab).used += 1;
            if is_full(slab, class) {
                self.unlink(slab, index);
            }
            NonNull::new_unchecked(object)
        }
    }

    /// Gives an object back.
    ///
    /// # Safety
    /// `object` came from [`Heap::allocate`] of this heap with the same `class` and is not used afterwards.
    #[inline]
    pub(crate) unsafe fn release(&mut self, object: NonNull<u8>, class: usize) {
        self.used -= class;
        if class > SLAB_MAX {
            // SAFETY: as the caller says.
            unsafe { self.release_large(object, class) };
            return;
        }
        let index = class_index(class);
        let size = block_size(class);
        let address = object.as_ptr() as usize;
        let slab = (address & !(size.bytes() - 1)) as *mut Slab;
        self.objects[index] -= 1;
        // SAFETY: blocks are aligned to their size, so this is the object's slab; it is alive while it has
        // objects.
        unsafe {
            let was_full = is_full(slab, class);
            object.as_ptr().cast::<u16>().write((*slab).free);
            (*slab).free = (address - slab as usize) as u16;
            (*slab).used -= 1;
            if was_full {
                self.link(slab, index);
            }
            let alone = (*slab).next.is_null() && (*slab).prev.is_null();
            if (*slab).used == 0 && !(alone && size == BlockSize::K4) {
                self.unlink(slab, index);
                self.give_slab_back(slab, class);
            }
        }
    }

    /// Gives back the empty slabs that are the only ones of their lists. Returns whether there were any.
    ///
    /// For upkeep. A value that grows leaves an empty slab in each class that it has passed, and while values
    /// grow and shrink the next one needs it.
    pub(crate) fn give_empty_back(&mut self) -> bool {
        let before = self.reserved;
        for index in 0..CLASSES {
            let slab = self.open[index];
            // SAFETY: members of a list are alive; nobody uses objects of an empty slab, and it is taken out
            // of its list.
            unsafe {
                if !slab.is_null() && (*slab).used == 0 {
                    self.unlink(slab, index);
                    self.give_slab_back(slab, class_of(index));
                }
            }
        }
        self.reserved < before
    }

    /// # Safety
    /// The slab is in no list, and nobody uses its objects.
    unsafe fn give_slab_back(&mut self, slab: *mut Slab, class: usize) {
        let size = block_size(class);
        self.reserved -= size.bytes();
        self.slabs[class_index(class)] -= 1;
        // SAFETY: the block came from these pages with this size, and is not used any more.
        unsafe {
            self.pages
                .give_back(NonNull::new_unchecked(slab.cast()), size);
        }
    }

    /// Whether more than one part in `share` of what objects take is taken by nobody.
    pub(crate) fn is_sparse(&self, share: usize) -> bool {
        let slack = self.slack();
        slack > SLACK_KEPT && slack > self.used / share
    }

    #[cold]
    fn add_slab(&mut self, class: usize, index: usize) -> *mut Slab {
        let size = block_size(class);
        let slab = self.pages.take(size).as_ptr().cast::<Slab>();
        self.reserved += size.bytes();
        self.is_pressed = self.is_sparse(PRESSED_SHARE);
        self.slabs[index] += 1;
        let header = Slab {
            next: null_mut(),
            prev: null_mut(),
            free: 0,
            bump: HEADER as u16,
            used: 0,
            class: index as u16,
        };
        // SAFETY: the block is ours, aligned, and larger than a header.
        unsafe {
            slab.write(header);
            self.link(slab, index);
        }
        slab
    }

    /// # Safety
    /// `slab` is alive and in no list.
    unsafe fn link(&mut self, slab: *mut Slab, index: usize) {
        let head = self.open[index];
        // SAFETY: list members are alive.
        unsafe {
            (*slab).prev = null_mut();
            (*slab).next = head;
            if !head.is_null() {
                (*head).prev = slab;
            }
        }
        self.open[index] = slab;
    }

    /// # Safety
    /// `slab` is in the list of class `index`.
    unsafe fn unlink(&mut self, slab: *mut Slab, index: usize) {
        // SAFETY: list members are alive.
        unsafe {
            let (next, prev) = ((*slab).next, (*slab).prev);
            if prev.is_null() {
                self.open[index] = next;
            } else {
                (*prev).next = next;
            }
            if !next.is_null() {
                (*next).prev = prev;
            }
            (*slab).next = null_mut();
            (*slab).prev = null_mut();
        }
    }

    #[cold]
    fn allocate_large(&mut self, class: usize) -> NonNull<u8> {
        let layout = Layout::from_size_align(class, ALIGN).expect("a class is below isize::MAX");
        // SAFETY: the class is not zero.
        let object = unsafe { alloc(layout) };
        self.reserved += class;
        NonNull::new(object).unwrap_or_else(|| handle_alloc_error(layout))
    }

    /// # Safety
    /// As [`Heap::release`].
    #[cold]
    unsafe fn release_large(&mut self, object: NonNull<u8>, class: usize) {
        let layout = Layout::from_size_align(class, ALIGN).expect("a class is below isize::MAX");
        self.reserved -= class;
        // SAFETY: made by `allocate_large` with this class.
        unsafe { dealloc(object.as_ptr(), layout) }
    }
}

impl Drop for Heap {
    /// Gives the slabs back that are left in the lists: each list may keep one empty slab. The owner has
    /// released every object before.
    fn drop(&mut self) {
        for index in 0..CLASSES {
            while !self.open[index].is_null() {
                let slab = self.open[index];
                // SAFETY: list members are alive; nobody uses their objects any more.
                unsafe {
                    self.unlink(slab, index);
                    debug_assert_eq!((*slab).used, 0, "an object outlives its heap");
                    let size = block_size(class_of(index));
                    self.pages
                        .give_back(NonNull::new_unchecked(slab.cast()), size);
                }
            }
        }
    }
}

/// The object size of a class number.
const fn class_of(index: usize) -> usize {
    if index < 32 {
        (index + 1) * 4
    } else {
        let exponent = (index - 32) / 16 + 7;
        (16 + (index - 32) % 16 + 1) << (exponent - 4)
    }
}

/// # Safety
/// `slab` is alive.
#[inline]
unsafe fn is_full(slab: *const Slab, class: usize) -> bool {
    // SAFETY: as the caller says.
    unsafe { (*slab).free == 0 && usize::from((*slab).bump) + class > block_size(class).bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn classes_hold_their_size_and_waste_little() {
        let mut last = 0;
        for size in 1..70_000 {
            let class = class_size(size);
            assert!(class >= size && class.is_multiple_of(ALIGN) && class >= last);
            assert!(
                class - size < 4 || (class - size) * 16 <= size,
                "{size} -> {class}"
            );
            assert_eq!(class_size(class), class);
            last = class;
        }
    }

    #[test]
    fn class_numbers_are_dense_and_reversible() {
        let mut expected = 0;
        let mut last = 0;
        for size in 1..=SLAB_MAX {
            let class = class_size(size);
            if class != last {
                assert_eq!(class_index(class), expected, "class {class}");
                assert_eq!(class_of(expected), class);
                expected += 1;
                last = class;
            }
        }
        assert_eq!(expected, CLASSES);
    }

    #[test]
    fn objects_keep_their_bytes_and_memory_comes_back() {
        let pages = Arc::new(Pages::default());
        let mut heap = Heap::new(Arc::clone(&pages));
        let mut random = fastrand::Rng::with_seed(5);
        let mut held: BTreeMap<usize, (usize, u8)> = BTreeMap::new();
        for round in 0..200_000u32 {
            let growing = round / 40_000 % 2 == 0;
            if random.u8(..10) < if growing { 7 } else { 2 } || held.is_empty() {
                let most = if random.u8(..20) == 0 { 5000 } else { 300 };
                let class = class_size(random.usize(1..most));
                let object = heap.allocate(class);
                let address = object.as_ptr() as usize;
                assert_eq!(address % ALIGN, 0);
                if let Some((&before, &(its, _))) = held.range(..=address).next_back() {
                    assert!(before + its <= address, "objects overlap");
                }
                if let Some((&after, _)) = held.range(address..).next() {
                    assert!(address + class <= after, "objects overlap");
                }
                let mark = random.u8(..);
                // SAFETY: the object is ours and this long.
                unsafe { object.as_ptr().write_bytes(mark, class) };
                held.insert(address, (class, mark));
            } else {
                let near = random.usize(..usize::MAX / 2) % (1 << 47);
                let found = held.range(near..).next().or_else(|| held.iter().next());
                let (&address, &(class, mark)) = found.expect("not empty");
                held.remove(&address);
                let object = NonNull::new(address as *mut u8).expect("not null");
                // SAFETY: allocated above with this class, not used after.
                unsafe {
                    assert_eq!(
                        (
                            object.as_ptr().read(),
                            object.as_ptr().add(class - 1).read()
                        ),
                        (mark, mark)
                    );
                    heap.release(object, class);
                }
            }
        }
        let used: usize = held.values().map(|&(class, _)| class).sum();
        assert_eq!(heap.used, used);
        for (address, (class, _)) in held {
            // SAFETY: as above.
            unsafe { heap.release(NonNull::new(address as *mut u8).expect("not null"), class) };
        }
        assert!(
            heap.slack() <= CLASSES * (4 << 10),
            "at most one small empty slab a class stays"
        );
        assert!(heap.give_empty_back());
        assert_eq!((heap.slack(), heap.give_empty_back()), (0, false));
    }

    #[test]
    fn objects_of_one_size_are_packed() {
        let mut heap = Heap::new(Arc::new(Pages::default()));
        for class in [40, 48, 124, 256, 288, 512, 1024, 2048] {
            let before = heap.reserved;
            let objects: Vec<NonNull<u8>> = (0..20_000).map(|_| heap.allocate(class)).collect();
            let bound = if class <= 512 { 1.03 } else { 1.07 };
            let overhead = (heap.reserved - before) as f64 / (20_000 * class) as f64;
            assert!(overhead < bound, "class {class}: {overhead}");
            // SAFETY: allocated above.
            objects
                .into_iter()
                .for_each(|object| unsafe { heap.release(object, class) });
        }
    }
}
