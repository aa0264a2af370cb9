//! Packing: moving entries together when values that changed their size have left holes (see
//! [`crate::heap`]).
//!
//! It happens in two places. A shard that would take more memory though a good part of what it has is empty
//! packs one slab on the spot ([`Guard::relieve`]), so holes are bounded however fast values change. The rest
//! is done in the background, slab by slab, until little is left ([`Guard::pack`]).

use super::guard::{Guard, place_of};
use crate::entry::Entry;
use crate::heap::PRESSED_SHARE;

/// Slabs packed on the spot. One takes some microseconds.
const PACKED_ON_THE_SPOT: usize = 2;

impl Guard<'_> {
    /// After an entry was made: packs a little if memory was taken that holes could have given.
    #[inline]
    pub(super) fn relieve(&mut self) {
        if self.heap().is_pressed {
            self.relieve_now();
        }
    }

    #[cold]
    fn relieve_now(&mut self) {
        self.heap().is_pressed = false;
        for _ in 0..PACKED_ON_THE_SPOT {
            if !self.pack(PRESSED_SHARE) {
                break;
            }
        }
    }

    /// Gives slabs back that are empty, which are kept while entries come and go.
    pub fn give_empty_back(&mut self) {
        if self.heap().give_empty_back() {
            self.note_slack();
        }
    }

    /// Empties one sparse slab if holes take more than one part in `share` of what entries take. Returns
    /// whether it did.
    pub fn pack(&mut self, share: usize) -> bool {
        if !self.heap().is_sparse(share) {
            return false;
        }
        let Some(evacuation) = self.heap().begin_evacuation() else {
            return false;
        };
        let class = evacuation.class();
        for object in evacuation.objects() {
            // SAFETY: every live object of a shard's heap is an entry of that shard.
            let entry = unsafe { Entry::from_address(object.as_ptr() as u64) };
            let place = place_of(self.shared, entry);
            let copy = self.heap().allocate(class);
            // SAFETY: two objects of one class, `copy` a fresh one.
            let moved = unsafe {
                copy.as_ptr()
                    .copy_from_nonoverlapping(object.as_ptr(), class);
                Entry::from_address(copy.as_ptr() as u64)
            };
            let mut index = self.index();
            let slot = index
                .find(place, |other| other == entry)
                .expect("every entry is in the index");
            index.replace(slot, moved);
        }
        // SAFETY: the index refers to the copies now, and the lock keeps everybody else from looking.
        unsafe { self.heap().end_evacuation(evacuation) };
        self.note_slack();
        true
    }
}
