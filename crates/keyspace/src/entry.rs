//! One entry: header, expiry, key and value in one allocation.
//!
//! ```text
//!  0        8         ...           ...         ...   ...
//!  +--------+---------+-------------+-----------+-----+--------------------------+
//!  | header | expiry? | in the log? | wide key? | key | value, or 8 B (below)    |
//!  +--------+---------+-------------+-----------+-----+--------------------------+
//!
//!  header, one little-endian word
//!   0..4   kind (see `Kind`)
//!   4..6   storage: 0 the value is here, 1 it is a reference-counted buffer of its own (8 B: its address),
//!          2 it is in the log alone (8 B: its length; see `cold`), 3 it is a tree (8 B: its address)
//!   6      wide: the key's length is the 8 bytes before the key, not the header's byte
//!   7      volatile: the expiry is there (8 B, absolute Unix time in milliseconds)
//!   8..32  access clock: seconds, modulo 2^24
//!  32..40  key length
//!  40..42  form: what OBJECT ENCODING says beyond what the bytes tell (see `Form`)
//!  42      mark: equal to the keyspace's unless a running snapshot still wants the entry (see `snapshot`)
//!  43      logged: where the entry is in the log is there (8 B, see `LogAddress`)
//!  44      expiring: items of the value expire (see `items`)
//!  45..48  free
//!  48..64  value length, when the value is here
//! ```
//!
//! Not here: where an entry is found (index), who may look at it (shard), when it dies (expire).
//!
//! Invariants:
//! 1. An [`Entry`] is owned by exactly one index slot; whoever takes it out must free it or put it back.
//! 2. The allocation's size is `class_size` of what the header says, so it is never stored.

mod change;
pub(crate) mod cold;
mod items;
pub(crate) mod overwritten;
mod tree;
mod value;

use std::num::NonZeroU64;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::collection::any::Collection;
use crate::heap::{Heap, class_size};
use crate::large::{Large, LargeValue};

pub use value::{Encoding, Form, INLINE_VALUE_MAX, Kind, LargeRef, Stored, Type};

const KIND: u64 = 0xf;
const STORAGE_LARGE: u64 = 1 << 4;
const STORAGE_COLD: u64 = 1 << 5;
/// The value is not inside the entry. Both bits: it is a tree.
const ELSEWHERE: u64 = STORAGE_LARGE | STORAGE_COLD;
const STORAGE_TREE: u64 = STORAGE_LARGE | STORAGE_COLD;
const WIDE: u64 = 1 << 6;
const VOLATILE: u64 = 1 << 7;
const CLOCK_SHIFT: u32 = 8;
const CLOCK_MASK: u64 = 0xff_ffff << CLOCK_SHIFT;
const KEY_LENGTH_SHIFT: u32 = 32;
const FORM_SHIFT: u32 = 40;
const FORM: u64 = 0b11 << FORM_SHIFT;
const TYPE: u64 = KIND | FORM;
const MARK: u64 = 1 << 42;
const LOGGED: u64 = 1 << 43;
const EXPIRING: u64 = 1 << 44;
const VALUE_LENGTH_SHIFT: u32 = 48;

/// What every write leaves in a header: the type, whether items expire, the access clock, and the mark. Bits
/// in their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    /// What the value decides.
    const OF_VALUE: u64 = TYPE | EXPIRING;
    const BITS: u64 = Stamp::OF_VALUE | CLOCK_MASK | MARK;

    /// A clock (of which 24 bits count) and a mark, of a string that is written as a whole.
    #[inline]
    pub(crate) fn new(clock: u32, mark: Mark) -> Stamp {
        Stamp(type_bits(Type::STRING) | u64::from(clock) << CLOCK_SHIFT & CLOCK_MASK | mark.0)
    }

    /// The same of a value of another type.
    #[inline]
    pub(crate) fn of(self, of: Type) -> Stamp {
        Stamp(self.0 & !TYPE | type_bits(of))
    }

    /// The same with another clock and mark.
    #[inline]
    pub(crate) fn with_use(self, used: Stamp) -> Stamp {
        Stamp(self.0 & Stamp::OF_VALUE | used.0 & !Stamp::OF_VALUE)
    }
}

/// The mark of an entry, or the one that all entries shall have: a bit in its place in the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark(pub(crate) u64);

impl Mark {
    /// The other mark.
    pub(crate) fn flipped(self) -> Mark {
        Mark(self.0 ^ MARK)
    }
}

const HEADER: usize = 8;
const WORD: usize = 8;

/// Where an entry is in the log: eight bytes that mean something to the log only, except for those that are
/// named here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct LogAddress(pub NonZeroU64);

impl LogAddress {
    /// The entry has not been written to the log yet, but will be before its shard is unlocked.
    pub const PENDING: LogAddress = LogAddress(NonZeroU64::MIN);
    /// The entry is not in the log, and nobody has noted that it has to be.
    pub const NOWHERE: LogAddress = LogAddress(NonZeroU64::MIN.saturating_add(1));

    /// Whether it says where the entry is.
    #[inline]
    pub fn is_known(self) -> bool {
        self != LogAddress::PENDING && self != LogAddress::NOWHERE
    }
}

/// What an entry carries beside key and value.
#[derive(Clone, Copy, Default)]
pub(crate) struct Extras {
    /// When it expires (Unix, ms).
    pub(crate) expiry: Option<i64>,
    /// Where it is in the log, if there is a log.
    pub(crate) log: Option<LogAddress>,
}

impl Extras {
    /// Bytes they take.
    #[inline]
    fn bytes(self) -> usize {
        WORD * (usize::from(self.expiry.is_some()) + usize::from(self.log.is_some()))
    }
}

/// What an entry is made of, beside its key.
pub(crate) enum NewValue<'a> {
    Inline(&'a [u8]),
    Large(LargeValue),
    /// So many bytes that are in the log alone.
    Cold(u64),
    /// A collection.
    Tree(Box<Collection>),
}

/// What an entry leaves behind that is dropped elsewhere: it may take long.
#[derive(Debug)]
pub(crate) enum Garbage {
    /// A large value.
    Large(LargeValue),
    /// A collection.
    Tree(Box<Collection>),
}

impl<'a> NewValue<'a> {
    /// Copies `bytes` into a buffer of their own if they are many.
    #[inline]
    pub(crate) fn copy_of(bytes: &'a [u8]) -> NewValue<'a> {
        if bytes.len() <= INLINE_VALUE_MAX {
            NewValue::Inline(bytes)
        } else {
            NewValue::Large(Arc::new(bytes.to_vec().into()))
        }
    }
}

/// The address of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Entry(NonNull<u8>);

/// Offsets that follow from a header.
struct Shape {
    key_at: usize,
    key_len: usize,
    value_at: usize,
    /// Bytes the value takes inside the entry.
    value_slot: usize,
}

impl Entry {
    #[inline]
    pub(crate) fn address(self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// # Safety
    /// `address` came from [`Entry::address`] of an entry that has not been freed.
    #[inline]
    pub(crate) unsafe fn from_address(address: u64) -> Entry {
        // SAFETY: the address of an entry is never null, by the caller's contract.
        Entry(unsafe { NonNull::new_unchecked(address as *mut u8) })
    }

    #[inline]
    fn header(self) -> u64 {
        // SAFETY: an entry is at least a header long.
        unsafe { self.0.as_ptr().cast::<u64>().read_unaligned() }
    }

    #[inline]
    fn set_header(self, header: u64) {
        // SAFETY: as in `header`; entries are written under their shard's lock.
        unsafe { self.0.as_ptr().cast::<u64>().write_unaligned(header) }
    }

    #[inline]
    fn word(self, at: usize) -> u64 {
        // SAFETY: callers pass offsets inside the allocation that the header describes.
        unsafe { self.0.as_ptr().add(at).cast::<u64>().read_unaligned() }
    }

    #[inline]
    fn set_word(self, at: usize, word: u64) {
        // SAFETY: as in `word`.
        unsafe { self.0.as_ptr().add(at).cast::<u64>().write_unaligned(word) }
    }

    #[inline]
    fn slice<'a>(self, at: usize, len: usize) -> &'a [u8] {
        // SAFETY: callers pass ranges inside the allocation that the header describes, and bound the
        // result's life by the shard lock's.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(at), len) }
    }

    #[inline]
    fn shape(self, header: u64) -> Shape {
        let mut key_at = HEADER;
        if header & (VOLATILE | LOGGED) != 0 {
            key_at += extra_bytes(header);
        }
        let mut key_len = (header >> KEY_LENGTH_SHIFT) as usize & 0xff;
        if header & WIDE != 0 {
            key_len = self.word(key_at) as usize;
            key_at += WORD;
        }
        let value_slot = if header & ELSEWHERE != 0 {
            WORD
        } else {
            (header >> VALUE_LENGTH_SHIFT) as usize
        };
        Shape {
            key_at,
            key_len,
            value_at: key_at + key_len,
            value_slot,
        }
    }

    fn size_for(key_len: usize, value_slot: usize, extras: Extras) -> usize {
        let wide = if key_len > 0xff { WORD } else { 0 };
        HEADER + extras.bytes() + wide + key_len + value_slot
    }

    /// The bytes of the allocation.
    #[inline]
    pub(crate) fn class(self) -> usize {
        let shape = self.shape(self.header());
        class_size(shape.value_at + shape.value_slot)
    }

    /// Bytes taken in all, a large value's buffer included.
    pub(crate) fn memory(self) -> usize {
        let own = match self.header() & ELSEWHERE {
            STORAGE_LARGE => self.large().capacity() + size_of::<Large>() + 16,
            STORAGE_TREE => self.tree().bytes(),
            _ => 0,
        };
        self.class() + own
    }

    #[inline]
    pub(crate) fn new(
        heap: &mut Heap,
        key: &[u8],
        value: NewValue<'_>,
        extras: Extras,
        stamp: Stamp,
    ) -> Entry {
        let slot = match &value {
            NewValue::Inline(bytes) => bytes.len(),
            NewValue::Large(_) | NewValue::Cold(_) | NewValue::Tree(_) => WORD,
        };
        let size = Entry::size_for(key.len(), slot, extras);
        let entry = Entry(heap.allocate(class_size(size)));
        entry.write(key, value, extras, stamp);
        entry
    }

    /// Writes all of a fresh (or reused) allocation that is large enough.
    #[inline]
    fn write(self, key: &[u8], value: NewValue<'_>, extras: Extras, stamp: Stamp) {
        let mut header = stamp.0;
        let mut at = HEADER;
        if let Some(expiry) = extras.expiry {
            header |= VOLATILE;
            self.set_word(at, expiry as u64);
            at += WORD;
        }
        if let Some(address) = extras.log {
            header |= LOGGED;
            self.set_word(at, address.0.get());
            at += WORD;
        }
        if key.len() > 0xff {
            header |= WIDE;
            self.set_word(at, key.len() as u64);
            at += WORD;
        } else {
            header |= (key.len() as u64) << KEY_LENGTH_SHIFT;
        }
        self.copy_in(at, key);
        at += key.len();
        match value {
            NewValue::Inline(bytes) => {
                header |= (bytes.len() as u64) << VALUE_LENGTH_SHIFT;
                self.copy_in(at, bytes);
            }
            NewValue::Large(large) => {
                header |= STORAGE_LARGE;
                self.set_word(at, Arc::into_raw(large) as u64);
            }
            NewValue::Cold(len) => {
                header |= STORAGE_COLD;
                self.set_word(at, len);
            }
            NewValue::Tree(tree) => {
                header |= STORAGE_TREE;
                self.set_word(at, Box::into_raw(tree) as u64);
            }
        }
        self.set_header(header);
    }

    #[inline]
    fn copy_in(self, at: usize, bytes: &[u8]) {
        // SAFETY: the allocation was made (or checked) for this layout, and `bytes` is not part of it:
        // it comes from a request buffer or from another entry.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.as_ptr().add(at), bytes.len())
        }
    }

    /// Frees the entry; what may take long to drop is handed over, to be dropped where it doesn't hurt.
    ///
    /// # Safety
    /// The entry was made in `heap` and is not used afterwards.
    pub(crate) unsafe fn free(self, heap: &mut Heap) -> Option<Garbage> {
        let class = self.class();
        let garbage = match self.header() & ELSEWHERE {
            STORAGE_LARGE => self.take_large().map(Garbage::Large),
            STORAGE_TREE => self.take_tree().map(Garbage::Tree),
            _ => None,
        };
        // SAFETY: the allocation was made with this class, and the caller gives it up.
        unsafe { heap.release(self.0, class) };
        garbage
    }

    /// Moves the reference to a large value out; the slot's word is dead afterwards.
    fn take_large(self) -> Option<LargeValue> {
        let header = self.header();
        if header & ELSEWHERE != STORAGE_LARGE {
            return None;
        }
        let at = self.shape(header).value_at;
        // SAFETY: the word is what `Arc::into_raw` gave, and callers forget it after this.
        Some(unsafe { Arc::from_raw(self.word(at) as *const Large) })
    }

    /// Moves a collection out; the slot's word is dead afterwards.
    pub(crate) fn take_tree(self) -> Option<Box<Collection>> {
        let header = self.header();
        if header & ELSEWHERE != STORAGE_TREE {
            return None;
        }
        let at = self.shape(header).value_at;
        // SAFETY: the word is what `Box::into_raw` gave, and callers forget it after this.
        Some(unsafe { Box::from_raw(self.word(at) as *mut Collection) })
    }

    /// Whether the value is a tree.
    #[inline]
    pub(crate) fn is_tree(self) -> bool {
        self.header() & ELSEWHERE == STORAGE_TREE
    }

    /// The collection of an entry whose value is a tree.
    pub(crate) fn tree<'a>(self) -> &'a Collection {
        assert!(self.is_tree(), "the value is no tree");
        let tree = self.word(self.shape(self.header()).value_at) as *const Collection;
        // SAFETY: the word is what `Box::into_raw` gave; the entry owns it, and its shard is locked.
        unsafe { &*tree }
    }

    #[inline]
    pub(crate) fn key<'a>(self) -> &'a [u8] {
        let shape = self.shape(self.header());
        self.slice(shape.key_at, shape.key_len)
    }

    /// Whether this is the entry of `key`. One load of the header decides nearly always.
    #[inline]
    pub(crate) fn has_key(self, key: &[u8]) -> bool {
        let shape = self.shape(self.header());
        shape.key_len == key.len() && self.slice(shape.key_at, shape.key_len) == key
    }

    #[inline]
    pub(crate) fn value<'a>(self) -> Stored<'a> {
        let header = self.header();
        let shape = self.shape(header);
        if header & ELSEWHERE == 0 {
            return Stored::Inline(self.slice(shape.value_at, shape.value_slot));
        }
        Stored::Large(LargeRef(self.large()))
    }

    /// Whether the value is in the log alone.
    #[inline]
    pub(crate) fn is_cold(self) -> bool {
        self.header() & ELSEWHERE == STORAGE_COLD
    }

    /// [`Entry::value`], if it is in memory.
    #[inline]
    pub(crate) fn value_in_memory<'a>(self) -> Option<Stored<'a>> {
        (!self.is_cold()).then(|| self.value())
    }

    /// The buffer of a value that has one of its own.
    ///
    /// # Panics
    /// The value is in the log alone: whoever reads a value sees to it that it is in memory.
    #[inline]
    fn large<'a>(self) -> &'a Large {
        let header = self.header();
        assert!(
            header & ELSEWHERE == STORAGE_LARGE,
            "the value is not in memory"
        );
        let buffer = self.word(self.shape(header).value_at) as *const Large;
        // SAFETY: the word is what `Arc::into_raw` gave; the entry keeps that reference alive.
        unsafe { &*buffer }
    }

    #[inline]
    pub(crate) fn value_len(self) -> usize {
        let header = self.header();
        match header & ELSEWHERE {
            0 => (header >> VALUE_LENGTH_SHIFT) as usize,
            STORAGE_LARGE => self.large().len(),
            STORAGE_TREE => self.tree().bytes(),
            _ => self.word(self.shape(header).value_at) as usize,
        }
    }

    /// Whether the value is a string.
    #[inline(always)]
    pub(crate) fn is_string(self) -> bool {
        self.header() & KIND == Kind::String as u64
    }

    /// The bytes of a string that is inside the entry: what most values are, found out by one test.
    #[inline(always)]
    pub(crate) fn plain<'a>(self) -> Option<&'a [u8]> {
        let header = self.header();
        if header & (KIND | ELSEWHERE) != 0 {
            return None;
        }
        let shape = self.shape(header);
        Some(self.slice(shape.value_at, shape.value_slot))
    }

    /// What the value is.
    #[inline]
    pub(crate) fn kind(self) -> Kind {
        let kind = Kind::from_bits((self.header() & KIND) as u8);
        kind.expect("what is written is one of the kinds that exist")
    }

    /// What the value is, and how it was written.
    #[inline]
    pub(crate) fn value_type(self) -> Type {
        Type {
            kind: self.kind(),
            form: self.form(),
        }
    }

    #[inline]
    pub(crate) fn expiry(self) -> Option<i64> {
        if self.header() & VOLATILE == 0 {
            None
        } else {
            Some(self.word(HEADER) as i64)
        }
    }

    /// Where the entry is in the log, if it has room for that.
    #[inline]
    pub(crate) fn log_address(self) -> Option<LogAddress> {
        let header = self.header();
        if header & LOGGED == 0 {
            return None;
        }
        NonZeroU64::new(self.word(log_address_at(header))).map(LogAddress)
    }

    /// Notes where the entry is in the log, if it has room for that; whether it has.
    #[inline]
    pub(crate) fn write_log_address(self, address: LogAddress) -> bool {
        let header = self.header();
        if header & LOGGED == 0 {
            return false;
        }
        self.set_word(log_address_at(header), address.0.get());
        true
    }

    #[inline]
    fn extras(self) -> Extras {
        Extras {
            expiry: self.expiry(),
            log: self.log_address(),
        }
    }

    #[inline]
    fn stamp(self) -> Stamp {
        Stamp(self.header() & Stamp::BITS)
    }

    #[inline]
    pub(crate) fn has_mark(self, mark: Mark) -> bool {
        self.header() & MARK == mark.0
    }

    pub(crate) fn set_mark(self, mark: Mark) {
        self.set_header(self.header() & !MARK | mark.0);
    }

    /// The access clock: seconds modulo 2^24.
    #[inline]
    pub(crate) fn clock(self) -> u32 {
        ((self.header() & CLOCK_MASK) >> CLOCK_SHIFT) as u32
    }

    #[inline]
    pub(crate) fn set_clock(self, clock: u32) {
        let header = self.header();
        let word = u64::from(clock) << CLOCK_SHIFT & CLOCK_MASK;
        // A hot key is read by many: don't make its line dirty for nothing.
        if header & CLOCK_MASK != word {
            self.set_header(header & !CLOCK_MASK | word);
        }
    }

    pub(crate) fn form(self) -> Form {
        Form::from_bits(((self.header() & FORM) >> FORM_SHIFT) as u8)
    }

    #[inline]
    pub(crate) fn set_form(self, form: Form) {
        self.set_header(self.header() & !FORM | (form as u64) << FORM_SHIFT);
    }
}

/// The bits that a type has in a header.
#[inline]
const fn type_bits(of: Type) -> u64 {
    of.kind as u64 | (of.form as u64) << FORM_SHIFT
}

/// Bytes between a header and what follows expiry and address.
#[inline]
fn extra_bytes(header: u64) -> usize {
    WORD * (usize::from(header & VOLATILE != 0) + usize::from(header & LOGGED != 0))
}

/// Where the address is, in an entry that has one.
#[inline]
fn log_address_at(header: u64) -> usize {
    HEADER + if header & VOLATILE != 0 { WORD } else { 0 }
}

const _: () = assert!(INLINE_VALUE_MAX < 1 << 16);

#[cfg(test)]
mod tests;
