//! Emptying sparse slabs: the answer to fragmentation.
//!
//! Values that change their size leave holes in the slabs of their old class. Holes are filled by new objects
//! of that class only, so a class that is out of fashion would keep its slabs for ever. An *evacuation* takes
//! a sparse slab out of its list; the owner moves the live objects (it alone knows who refers to them) into
//! slabs with more of them, and the block goes back.
//!
//! It pays only if other slabs of the class have room for what is moved, which is what
//! [`Heap::begin_evacuation`] looks for.

use std::ptr::NonNull;

use super::{CLASSES, HEADER, Heap, Slab, block_size, class_of};

/// The most objects a slab can have: 4 KiB of the smallest class.
const MOST_OBJECTS: usize = 4096 / 4;
/// Slabs of a list that are compared to find a sparse one.
const COMPARED: usize = 32;
/// A slab that is being emptied. It is in no list, so nothing is allocated in it.
pub(crate) struct Evacuation {
    slab: NonNull<Slab>,
    class: usize,
    /// Which objects are live, by number.
    live: [u64; MOST_OBJECTS / 64],
}

impl Evacuation {
    /// The size class of its objects.
    pub(crate) fn class(&self) -> usize {
        self.class
    }

    /// The live objects.
    pub(crate) fn objects(&self) -> impl Iterator<Item = NonNull<u8>> + use<> {
        let (slab, class, live) = (self.slab, self.class, self.live);
        let numbers = live.into_iter().enumerate().flat_map(|(word, mut bits)| {
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits.wrapping_sub(1);
                (bit < 64).then_some(word * 64 + bit)
            })
        });
        // SAFETY: object numbers come from inside the slab's block.
        numbers.map(move |number| unsafe { slab.cast::<u8>().add(HEADER + number * class) })
    }
}

/// Objects that a slab of a class has room for.
const fn capacity(index: usize) -> usize {
    let class = class_of(index);
    (block_size(class).bytes() - HEADER) / class
}

impl Heap {
    /// Takes a sparse slab out of its list, if moving its objects would free a block.
    pub(crate) fn begin_evacuation(&mut self) -> Option<Evacuation> {
        let index = (0..CLASSES)
            .filter(|&index| 4 * self.holes(index) >= 5 * capacity(index))
            .max_by_key(|&index| self.holes(index) * class_of(index))?;
        let mut slab = self.open[index];
        let mut sparsest = slab;
        for _ in 0..COMPARED {
            if slab.is_null() {
                break;
            }
            // SAFETY: members of a list are alive.
            unsafe {
                if (*slab).used < (*sparsest).used {
                    sparsest = slab;
                }
                slab = (*slab).next;
            }
        }
        let slab = NonNull::new(sparsest)?;
        // SAFETY: it is a member of this list.
        unsafe { self.unlink(slab.as_ptr(), index) };
        Some(Evacuation {
            slab,
            class: class_of(index),
            live: live_objects(slab, class_of(index)),
        })
    }

    /// Gives the block of a slab back whose objects have all moved.
    ///
    /// # Safety
    /// Nobody refers to the objects in it any more.
    pub(crate) unsafe fn end_evacuation(&mut self, evacuation: Evacuation) {
        let Evacuation { slab, class, .. } = evacuation;
        // SAFETY: the slab is alive until its block is given back.
        let (objects, index) = unsafe { (slab.as_ref().used, slab.as_ref().class) };
        self.used -= usize::from(objects) * class;
        self.objects[usize::from(index)] -= u32::from(objects);
        // SAFETY: it is in no list, and as the caller says, nobody uses what it held.
        unsafe { self.give_slab_back(slab.as_ptr(), class) };
    }

    /// Objects of a class that could be allocated without another slab.
    fn holes(&self, index: usize) -> usize {
        self.slabs[index] as usize * capacity(index) - self.objects[index] as usize
    }
}

/// The objects of a slab that are neither free nor fresh.
fn live_objects(slab: NonNull<Slab>, class: usize) -> [u64; MOST_OBJECTS / 64] {
    // SAFETY: the slab is alive and belongs to the caller.
    let header = unsafe { slab.as_ref() };
    let mut live = [0; MOST_OBJECTS / 64];
    for number in 0..(usize::from(header.bump) - HEADER) / class {
        live[number / 64] |= 1 << (number % 64);
    }
    let mut free = header.free;
    while free != 0 {
        let number = (usize::from(free) - HEADER) / class;
        live[number / 64] &= !(1 << (number % 64));
        // SAFETY: a freed object of the slab, which holds the offset of the next.
        free = unsafe {
            slab.cast::<u8>()
                .add(usize::from(free))
                .cast::<u16>()
                .read()
        };
    }
    live
}
