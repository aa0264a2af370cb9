//! Entries whose value is in the log alone.
//!
//! Such an entry is *cold*: header, expiry, address and key are as before, and in the place of the value is
//! its length. What asks for no more than these goes on as with any entry; what asks for the value finds an
//! assertion. Whoever may meet cold entries brings the values back first ([`Entry::warmed`]), or looks
//! whether the entry is one of them.
//!
//! Invariants:
//! 1. A cold entry has the address of a record that holds its whole value and can be read.
//! 2. A cold value has at least [`COLD_MIN_BYTES`], unless somebody asked for less
//!    ([`crate::Keyspace::set_cold_min`]).
//!
//! Not here: which entries become cold, and when (`shard/offloading.rs`).

use std::num::NonZeroU64;

use super::{Entry, Garbage, LogAddress, NewValue};
use crate::heap::Heap;

/// Values of fewer bytes stay in memory: what is left of an entry without its value takes eight bytes for the
/// length, and the sizes of allocations are 8 to 16 bytes apart, so there would be hardly anything to gain.
pub const COLD_MIN_BYTES: usize = 64;

/// Where a value is that is in the log alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColdValue {
    /// The record that holds it.
    pub address: LogAddress,
    /// Its bytes.
    pub len: u64,
}

impl ColdValue {
    pub(crate) fn of(entry: Entry) -> Option<ColdValue> {
        if !entry.is_cold() {
            return None;
        }
        let address = entry.log_address();
        Some(ColdValue {
            address: address.expect("a cold entry is in the log"),
            len: entry.value_len() as u64,
        })
    }

    pub(crate) fn to_bytes(self) -> [u8; 16] {
        let words = u128::from(self.address.0.get()) << 64 | u128::from(self.len);
        words.to_ne_bytes()
    }

    /// What [`ColdValue::to_bytes`] gave.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<ColdValue> {
        let words = u128::from_ne_bytes(*bytes.first_chunk()?);
        Some(ColdValue {
            address: LogAddress(NonZeroU64::new((words >> 64) as u64)?),
            len: words as u64,
        })
    }
}

impl Entry {
    /// Whether the value is in memory and of at least so many bytes, and may be in the log alone as a whole.
    /// A tree's may not, and none whose items expire.
    pub(crate) fn may_be_cold(self, least: usize) -> bool {
        !self.is_cold() && !self.is_tree() && !self.is_expiring() && self.value_len() >= least
    }

    /// Whether it may be a candidate for leaving memory: as a value of at least so many bytes, or as a tree
    /// of which not all leaves were looked at in vain.
    pub(crate) fn may_leave(self, least: usize) -> bool {
        match self.is_tree() {
            true => {
                let tree = self.tree();
                tree.may_have_leaving() && tree.logged().place().is_some() && tree.bytes() >= least
            }
            false => self.may_be_cold(least),
        }
    }

    /// The same entry without its value, in place of this one; a large value to drop.
    pub(crate) fn chilled(self, heap: &mut Heap) -> (Entry, Option<Garbage>) {
        let len = self.value_len();
        assert!(!self.is_cold());
        self.replaced_by(heap, NewValue::Cold(len as u64))
    }

    /// The same entry with the value that it had, in place of this one.
    pub(crate) fn warmed(self, heap: &mut Heap, value: NewValue<'_>) -> Entry {
        assert!(self.is_cold());
        self.replaced_by(heap, value).0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::entry::{Extras, Form, Kind, Mark, Stamp, Type};
    use crate::heap::class_size;

    const ADDRESS: LogAddress = LogAddress(NonZeroU64::MAX);

    #[test]
    fn all_but_the_value_stays_and_the_value_comes_back() {
        let mut heap = Heap::new(Arc::default());
        let mut kinds = Kind::ALL.into_iter().cycle();
        for key in [&b"k"[..], &[b'k'; 300]] {
            for len in [64, 200, 16_383, 16_384, 100_000] {
                for expiry in [None, Some(17)] {
                    let value = vec![b'v'; len];
                    let extras = Extras {
                        expiry,
                        log: Some(ADDRESS),
                    };
                    let stamp = Stamp::new(77, Mark::default().flipped());
                    let of = Type {
                        kind: kinds.next().expect("it has no end"),
                        form: Form::Part,
                    };
                    let new = NewValue::copy_of(&value);
                    let entry = Entry::new(&mut heap, key, new, extras, stamp.of(of));
                    let (cold, garbage) = entry.chilled(&mut heap);
                    assert_eq!(garbage.is_some(), len >= 16_384);
                    let same = |entry: Entry| {
                        assert_eq!((entry.key(), entry.value_len()), (key, len));
                        assert_eq!((entry.value_type(), entry.clock()), (of, 77));
                        assert!(entry.has_mark(Mark::default().flipped()));
                        assert_eq!(entry.log_address(), Some(ADDRESS));
                    };
                    assert!(cold.is_cold() && cold.expiry() == expiry);
                    same(cold);
                    let wide = if key.len() > 255 { 8 } else { 0 };
                    let extra = if expiry.is_some() { 16 } else { 8 };
                    assert_eq!(cold.memory(), class_size(8 + extra + wide + key.len() + 8));
                    // An expiry comes and goes without the value.
                    let cold = cold.set_expiry(&mut heap, Some(5));
                    let cold = cold.set_expiry(&mut heap, None);
                    assert!(cold.is_cold() && cold.expiry().is_none());
                    same(cold);
                    let warm = cold.warmed(&mut heap, NewValue::copy_of(&value));
                    assert!(!warm.is_cold() && warm.value().bytes() == value);
                    same(warm);
                    // SAFETY: it was made in this heap and is not used again.
                    drop(unsafe { warm.free(&mut heap) });
                }
            }
        }
    }

    #[test]
    fn a_cold_value_is_never_overwritten_where_it_stands() {
        let mut heap = Heap::new(Arc::default());
        let extras = Extras {
            expiry: None,
            log: Some(ADDRESS),
        };
        let stamp = Stamp::new(1, Mark::default());
        let of = Type::whole(Kind::Hash);
        let value = NewValue::Inline(&[b'v'; 64]);
        let entry = Entry::new(&mut heap, b"k", value, extras, stamp.of(of));
        let (cold, _) = entry.chilled(&mut heap);
        assert!(!cold.overwrite_in_place(b"12345678", false, stamp));
        assert!(!cold.resize_in_place(8));
        let cold_type = cold.value_type();
        let value = NewValue::Inline(b"12345678");
        let (warm, garbage) = cold.overwrite(&mut heap, b"k", value, None, stamp);
        assert!(garbage.is_none() && !warm.is_cold());
        assert_eq!(warm.value().bytes(), b"12345678");
        assert_eq!(warm.log_address(), Some(ADDRESS));
        assert_eq!((cold_type, warm.value_type()), (of, Type::STRING));
        // SAFETY: it was made in this heap and is not used again.
        drop(unsafe { warm.free(&mut heap) });
    }

    #[test]
    #[should_panic(expected = "not in memory")]
    fn reading_a_cold_value_is_a_mistake() {
        // It ends with the panic, and the entry is not freed before.
        let mut heap = std::mem::ManuallyDrop::new(Heap::new(Arc::default()));
        let value = NewValue::Inline(&[b'v'; 64]);
        let stamp = Stamp::new(1, Mark::default());
        let entry = Entry::new(&mut heap, b"k", value, Extras::default(), stamp);
        entry.chilled(&mut heap).0.value();
    }
}
