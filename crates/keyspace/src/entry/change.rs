//! Changing an entry: where it stands if its class of allocation stays the same, or else in another one that
//! takes its place.

use std::sync::Arc;

use super::{
    ELSEWHERE, EXPIRING, Entry, Extras, Garbage, HEADER, INLINE_VALUE_MAX, KEY_LENGTH_SHIFT,
    LOGGED, LogAddress, NewValue, STORAGE_COLD, STORAGE_LARGE, Stamp, VALUE_LENGTH_SHIFT, VOLATILE,
    WIDE,
};
use crate::heap::{Heap, class_size};
use crate::large::Large;

/// The room that a large value gets when it grows to `len` bytes and has to move: a part more, so that the
/// next growth costs nothing.
fn grown(len: usize) -> usize {
    len + len / 8
}

impl Entry {
    /// Replaces the value where it stands, if that changes nothing but the value and its type: no expiry (or
    /// `keep_expiry`), the same class, both values inside the entry. Whether it did.
    #[inline]
    pub(crate) fn overwrite_in_place(self, value: &[u8], keep_expiry: bool, stamp: Stamp) -> bool {
        let header = self.header();
        // An entry whose items expire is counted, and not where this is called from.
        if header & (ELSEWHERE | EXPIRING) != 0 || (header & VOLATILE != 0 && !keep_expiry) {
            return false;
        }
        let shape = self.shape(header);
        let old_len = shape.value_slot;
        let size = shape.value_at + value.len();
        if value.len() != old_len && class_size(size) != class_size(shape.value_at + old_len) {
            return false;
        }
        self.copy_in(shape.value_at, value);
        let kept = header & (0xff << KEY_LENGTH_SHIFT | WIDE | VOLATILE | LOGGED);
        let len = (value.len() as u64) << VALUE_LENGTH_SHIFT;
        self.set_header(kept | stamp.0 | len);
        true
    }

    /// Replaces value, type and expiry, in place when the allocation's class stays the same and neither
    /// value has a buffer of its own. Returns the entry (moved or not) and a large value to drop.
    #[inline]
    pub(crate) fn overwrite(
        self,
        heap: &mut Heap,
        key: &[u8],
        value: NewValue<'_>,
        expiry: Option<i64>,
        stamp: Stamp,
    ) -> (Entry, Option<Garbage>) {
        let header = self.header();
        let extras = Extras {
            expiry,
            log: self.log_address(),
        };
        if let NewValue::Inline(bytes) = &value
            && header & ELSEWHERE == 0
        {
            let shape = self.shape(header);
            let class = class_size(shape.value_at + shape.value_slot);
            if class_size(Entry::size_for(key.len(), bytes.len(), extras)) == class {
                self.write(key, value, extras, stamp);
                return (self, None);
            }
        }
        if let NewValue::Cold(_) = &value
            && header & ELSEWHERE == STORAGE_COLD
            && (header & VOLATILE != 0) == expiry.is_some()
        {
            self.write(key, value, extras, stamp);
            return (self, None);
        }
        let replacement = Entry::new(heap, key, value, extras, stamp);
        // SAFETY: the caller replaces its only reference by the returned one.
        (replacement, unsafe { self.free(heap) })
    }

    /// Makes a value inside the entry `len` bytes long, keeping its type and what was there and adding
    /// zeroes, if the allocation's class stays the same: then nothing that is counted changes.
    #[inline]
    pub(crate) fn resize_in_place(self, len: usize) -> bool {
        let header = self.header();
        let shape = self.shape(header);
        if header & ELSEWHERE != 0
            || len > INLINE_VALUE_MAX
            || class_size(shape.value_at + len) != class_size(shape.value_at + shape.value_slot)
        {
            return false;
        }
        if len > shape.value_slot {
            // SAFETY: the class has room for `len` bytes behind `value_at`.
            unsafe {
                self.0
                    .as_ptr()
                    .add(shape.value_at + shape.value_slot)
                    .write_bytes(0, len - shape.value_slot)
            };
        }
        self.set_header(
            header & !(0xffff << VALUE_LENGTH_SHIFT) | (len as u64) << VALUE_LENGTH_SHIFT,
        );
        true
    }

    /// Makes the value `len` bytes long, keeping what was there and adding zeroes. The entry may move.
    pub(crate) fn resize_value(self, heap: &mut Heap, len: usize) -> (Entry, Option<Garbage>) {
        if self.resize_in_place(len) {
            return (self, None);
        }
        let header = self.header();
        let shape = self.shape(header);
        if header & ELSEWHERE != 0 {
            return self.resize_large(len);
        }
        let old = self.slice(shape.value_at, shape.value_slot.min(len));
        let mut bytes = Vec::with_capacity(len);
        bytes.extend_from_slice(old);
        bytes.resize(len, 0);
        let value = if len <= INLINE_VALUE_MAX {
            NewValue::Inline(&bytes)
        } else {
            NewValue::Large(Arc::new(std::mem::take(&mut bytes).into()))
        };
        self.replaced_by(heap, value)
    }

    /// [`Entry::resize_value`] of a value that has a buffer of its own: in that buffer when no reply
    /// holds it, in a copy otherwise.
    fn resize_large(self, len: usize) -> (Entry, Option<Garbage>) {
        let at = self.shape(self.header()).value_at;
        let mut large = self
            .take_large()
            .expect("its header says that it has a buffer of its own");
        let garbage = match Arc::get_mut(&mut large) {
            Some(large) => {
                let bytes = large.bytes_mut();
                if len > bytes.capacity() {
                    bytes.reserve_exact(grown(len) - bytes.len());
                }
                bytes.resize(len, 0);
                None
            }
            None => {
                let mut copy = Vec::with_capacity(grown(len));
                copy.extend_from_slice(&large[..large.len().min(len)]);
                copy.resize(len, 0);
                let old = std::mem::replace(&mut large, Arc::new(copy.into()));
                Some(Garbage::Large(old))
            }
        };
        self.set_word(at, Arc::into_raw(large) as u64);
        (self, garbage)
    }

    /// Bytes that are allocated before anything is freed when the value is made `len` bytes long.
    pub(crate) fn growth(self, len: usize) -> usize {
        if self.header() & ELSEWHERE != STORAGE_LARGE {
            return len;
        }
        let large = self.large();
        if len <= large.capacity() {
            0
        } else {
            grown(len)
        }
    }

    /// A new entry with the same key, expiry and stamp, in place of this one.
    pub(crate) fn replaced_by(
        self,
        heap: &mut Heap,
        value: NewValue<'_>,
    ) -> (Entry, Option<Garbage>) {
        let replacement = Entry::new(heap, self.key(), value, self.extras(), self.stamp());
        // SAFETY: the caller replaces its only reference by the returned one.
        (replacement, unsafe { self.free(heap) })
    }

    /// The value, to be changed. The caller holds the shard's lock; a value of its own buffer must not
    /// be shared (see [`Entry::resize_value`], which unshares).
    pub(crate) fn value_mut<'a>(self) -> &'a mut [u8] {
        let header = self.header();
        let shape = self.shape(header);
        if header & ELSEWHERE == 0 {
            // SAFETY: inside the allocation; unique because the shard's lock is held.
            return unsafe {
                std::slice::from_raw_parts_mut(
                    self.0.as_ptr().add(shape.value_at),
                    shape.value_slot,
                )
            };
        }
        let mut large = self
            .take_large()
            .expect("its header says that it has a buffer of its own");
        let buffer: *mut Large = Arc::get_mut(&mut large).expect("unshared by resize_value");
        self.set_word(shape.value_at, Arc::into_raw(large) as u64);
        // SAFETY: the only reference is in the entry again, and the shard's lock makes this one unique.
        unsafe { (*buffer).bytes_mut() }
    }

    /// Sets or removes the expiry. The entry moves when one is added or removed.
    pub(crate) fn set_expiry(self, heap: &mut Heap, expiry: Option<i64>) -> Entry {
        match expiry {
            Some(at) if self.header() & VOLATILE != 0 => {
                self.set_word(HEADER, at as u64);
                self
            }
            None if self.header() & VOLATILE == 0 => self,
            _ => {
                let extras = Extras {
                    expiry,
                    log: self.log_address(),
                };
                let value = self.value_to_move();
                self.moved(heap, value, extras)
            }
        }
    }

    /// Notes where the entry is in the log. The entry moves when it had no room for that.
    pub(crate) fn set_log_address(self, heap: &mut Heap, address: LogAddress) -> Entry {
        if self.write_log_address(address) {
            return self;
        }
        let extras = Extras {
            expiry: self.expiry(),
            log: Some(address),
        };
        let value = self.value_to_move();
        self.moved(heap, value, extras)
    }

    /// The value, for [`Entry::moved`], which has to follow.
    fn value_to_move<'a>(self) -> NewValue<'a> {
        if let Some(tree) = self.take_tree() {
            return NewValue::Tree(tree);
        }
        match self.take_large() {
            Some(large) => NewValue::Large(large),
            None if self.is_cold() => NewValue::Cold(self.value_len() as u64),
            None => {
                let shape = self.shape(self.header());
                NewValue::Inline(self.slice(shape.value_at, shape.value_slot))
            }
        }
    }

    /// A new entry with the same key and stamp, in place of this one, whose value was taken.
    fn moved(self, heap: &mut Heap, value: NewValue<'_>, extras: Extras) -> Entry {
        let replacement = Entry::new(heap, self.key(), value, extras, self.stamp());
        let class = self.class();
        // SAFETY: a large value was moved out, and the caller uses the replacement from here.
        unsafe { heap.release(self.0, class) };
        replacement
    }
}
