//! One entry: header, expiry, key and value in one allocation.
//!
//! ```text
//!  0        8         ...           ...         ...   ...
//!  +--------+---------+-------------+-----------+-----+--------------------------+
//!  | header | expiry? | in the log? | wide key? | key | value, or 8 B (below)    |
//!  +--------+---------+-------------+-----------+-----+--------------------------+
//!
//!  header, one little-endian word
//!   0..4   kind (string, later list, hash, ...)
//!   4..6   storage: 0 the value is here, 1 it is a reference-counted buffer of its own (8 B: its address),
//!          2 it is in the log alone (8 B: its length; see `cold`)
//!   6      wide: the key's length is the 8 bytes before the key, not the header's byte
//!   7      volatile: the expiry is there (8 B, absolute Unix time in milliseconds)
//!   8..32  access clock: seconds, modulo 2^24
//!  32..40  key length
//!  40..42  form: what OBJECT ENCODING says beyond what the bytes tell (see `Form`)
//!  42      mark: equal to the keyspace's unless a running snapshot still wants the entry (see `snapshot`)
//!  43      logged: where the entry is in the log is there (8 B, see `LogAddress`)
//!  44..48  free
//!  48..64  value length, when the value is here
//! ```
//!
//! Not here: where an entry is found (index), who may look at it (shard), when it dies (expire).
//!
//! Invariants:
//! 1. An [`Entry`] is owned by exactly one index slot; whoever takes it out must free it or put it back.
//! 2. The allocation's size is `class_size` of what the header says, so it is never stored.

pub(crate) mod cold;

use std::num::NonZeroU64;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::heap::{Heap, class_size};
use crate::large::{Large, LargeValue};

/// Values of more bytes than this live in a reference-counted buffer of their own, so that a reply
/// can be sent from it without a copy.
pub const INLINE_VALUE_MAX: usize = 16 * 1024 - 1;

/// The type of a value, as TYPE names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A string of bytes.
    String = 0,
}

/// How Redis would hold the value, for OBJECT ENCODING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// A decimal integer that fits 64 bits.
    Int,
    /// A short string that was set as a whole.
    Embstr,
    /// A long string, or one that was modified in place.
    Raw,
}

impl Encoding {
    /// How a value is held that was written in a form.
    pub fn of(form: Form, bytes: &[u8]) -> Encoding {
        match form {
            Form::Whole if is_canonical_integer(bytes) => Encoding::Int,
            Form::Whole | Form::Decimal if bytes.len() <= 44 => Encoding::Embstr,
            _ => Encoding::Raw,
        }
    }
}

/// Whether the bytes are what formatting a 64-bit integer would give.
/// The room that a large value gets when it grows to `len` bytes and has to move: a part more, so that the next growth costs nothing.
fn grown(len: usize) -> usize {
    len + len / 8
}

fn is_canonical_integer(bytes: &[u8]) -> bool {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let canonical = match digits {
        [] | [b'0', _, ..] => false,
        [b'0'] => bytes.len() == 1,
        _ => digits.len() <= 19 && digits.iter().all(u8::is_ascii_digit),
    };
    canonical && str::from_utf8(bytes).is_ok_and(|text| text.parse::<i64>().is_ok())
}

/// How a value was written, as far as OBJECT ENCODING tells two ways to the same bytes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Form {
    /// As a whole: its bytes say what it is.
    Whole = 0,
    /// As a decimal number: not `int`, even if it looks like one.
    Decimal = 1,
    /// In part: `raw`, however short it is.
    Part = 2,
}

/// A value as it is stored.
#[derive(Clone, Copy, Debug)]
pub enum Stored<'a> {
    /// The bytes are inside the entry.
    Inline(&'a [u8]),
    /// The bytes have a buffer of their own.
    Large(LargeRef<'a>),
}

/// A large value inside an entry.
#[derive(Clone, Copy, Debug)]
pub struct LargeRef<'a>(&'a Large);

impl<'a> LargeRef<'a> {
    /// The value's bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// A reference of one's own, which outlives the shard's lock.
    pub fn share(self) -> LargeValue {
        let pointer: *const Large = self.0;
        // SAFETY: a `LargeRef` is only made from what `Arc::into_raw` gave, while an entry holds it.
        unsafe {
            Arc::increment_strong_count(pointer);
            Arc::from_raw(pointer)
        }
    }
}

impl<'a> Stored<'a> {
    /// The value's bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Stored::Inline(bytes) => bytes,
            Stored::Large(large) => large.bytes(),
        }
    }
}

const STORAGE_LARGE: u64 = 1 << 4;
const STORAGE_COLD: u64 = 1 << 5;
/// The value is not inside the entry.
const ELSEWHERE: u64 = STORAGE_LARGE | STORAGE_COLD;
const WIDE: u64 = 1 << 6;
const VOLATILE: u64 = 1 << 7;
const CLOCK_SHIFT: u32 = 8;
const CLOCK_MASK: u64 = 0xff_ffff << CLOCK_SHIFT;
const KEY_LENGTH_SHIFT: u32 = 32;
const FORM_SHIFT: u32 = 40;
const FORM: u64 = 0b11 << FORM_SHIFT;
const MARK: u64 = 1 << 42;
const LOGGED: u64 = 1 << 43;
const VALUE_LENGTH_SHIFT: u32 = 48;

/// What every write leaves in a header: the access clock, and the mark. Bits in their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    const BITS: u64 = CLOCK_MASK | MARK;

    /// A clock (of which 24 bits count) and a mark.
    #[inline]
    pub(crate) fn new(clock: u32, mark: Mark) -> Stamp {
        Stamp(u64::from(clock) << CLOCK_SHIFT & CLOCK_MASK | mark.0)
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

/// Where an entry is in the log: eight bytes that mean something to the log only, except for those that are named here.
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
        let own = if self.header() & STORAGE_LARGE == 0 {
            0
        } else {
            self.large().capacity() + size_of::<Large>() + 16
        };
        self.class() + own
    }

    pub(crate) fn new(
        heap: &mut Heap,
        key: &[u8],
        value: NewValue<'_>,
        extras: Extras,
        stamp: Stamp,
    ) -> Entry {
        let slot = match &value {
            NewValue::Inline(bytes) => bytes.len(),
            NewValue::Large(_) | NewValue::Cold(_) => WORD,
        };
        let size = Entry::size_for(key.len(), slot, extras);
        let entry = Entry(heap.allocate(class_size(size)));
        entry.write(key, value, extras, stamp);
        entry
    }

    /// Writes all of a fresh (or reused) allocation that is large enough.
    #[inline]
    fn write(self, key: &[u8], value: NewValue<'_>, extras: Extras, stamp: Stamp) {
        let mut header = Kind::String as u64 | stamp.0;
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

    /// Replaces the value where it stands, if that changes nothing but the value: no expiry (or `keep_expiry`), the same class, both
    /// values inside the entry. Whether it did.
    #[inline]
    pub(crate) fn overwrite_in_place(self, value: &[u8], keep_expiry: bool, stamp: Stamp) -> bool {
        let header = self.header();
        if header & ELSEWHERE != 0 || (header & VOLATILE != 0 && !keep_expiry) {
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
        self.set_header(
            kept | stamp.0 | Kind::String as u64 | (value.len() as u64) << VALUE_LENGTH_SHIFT,
        );
        true
    }

    /// Replaces value and expiry, in place when the allocation's class stays the same and neither
    /// value has a buffer of its own. Returns the entry (moved or not) and a large value to drop.
    #[inline]
    pub(crate) fn overwrite(
        self,
        heap: &mut Heap,
        key: &[u8],
        value: NewValue<'_>,
        expiry: Option<i64>,
        stamp: Stamp,
    ) -> (Entry, Option<LargeValue>) {
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
            && header & STORAGE_COLD != 0
            && (header & VOLATILE != 0) == expiry.is_some()
        {
            self.write(key, value, extras, stamp);
            return (self, None);
        }
        let replacement = Entry::new(heap, key, value, extras, stamp);
        // SAFETY: the caller replaces its only reference by the returned one.
        (replacement, unsafe { self.free(heap) })
    }

    /// Frees the entry; a large value is handed over, to be dropped where it doesn't hurt.
    ///
    /// # Safety
    /// The entry was made in `heap` and is not used afterwards.
    pub(crate) unsafe fn free(self, heap: &mut Heap) -> Option<LargeValue> {
        let class = self.class();
        let large = self.take_large();
        // SAFETY: the allocation was made with this class, and the caller gives it up.
        unsafe { heap.release(self.0, class) };
        large
    }

    /// Moves the reference to a large value out; the slot's word is dead afterwards.
    fn take_large(self) -> Option<LargeValue> {
        let header = self.header();
        if header & STORAGE_LARGE == 0 {
            return None;
        }
        let at = self.shape(header).value_at;
        // SAFETY: the word is what `Arc::into_raw` gave, and callers forget it after this.
        Some(unsafe { Arc::from_raw(self.word(at) as *const Large) })
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

    /// [`Entry::value`], if it is in memory.
    #[inline]
    pub(crate) fn value_in_memory<'a>(self) -> Option<Stored<'a>> {
        (self.header() & STORAGE_COLD == 0).then(|| self.value())
    }

    /// The buffer of a value that has one of its own.
    ///
    /// # Panics
    /// The value is in the log alone: whoever reads a value sees to it that it is in memory.
    #[inline]
    fn large<'a>(self) -> &'a Large {
        let header = self.header();
        assert!(header & STORAGE_LARGE != 0, "the value is not in memory");
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
            _ => self.word(self.shape(header).value_at) as usize,
        }
    }

    pub(crate) fn kind(self) -> Kind {
        Kind::String
    }

    /// Makes a value inside the entry `len` bytes long, keeping what was there and adding zeroes, if the allocation's
    /// class stays the same: then nothing that is counted changes.
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
    pub(crate) fn resize_value(self, heap: &mut Heap, len: usize) -> (Entry, Option<LargeValue>) {
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
    fn resize_large(self, len: usize) -> (Entry, Option<LargeValue>) {
        let at = self.shape(self.header()).value_at;
        let mut large = self.take_large().expect("the caller saw a large value");
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
                Some(std::mem::replace(&mut large, Arc::new(copy.into())))
            }
        };
        self.set_word(at, Arc::into_raw(large) as u64);
        (self, garbage)
    }

    /// Bytes that are allocated before anything is freed when the value is made `len` bytes long.
    pub(crate) fn growth(self, len: usize) -> usize {
        if self.header() & STORAGE_LARGE == 0 {
            return len;
        }
        let large = self.large();
        if len <= large.capacity() {
            0
        } else {
            grown(len)
        }
    }

    /// A new entry with the same key, expiry, stamp and form, in place of this one.
    fn replaced_by(self, heap: &mut Heap, value: NewValue<'_>) -> (Entry, Option<LargeValue>) {
        let replacement = Entry::new(heap, self.key(), value, self.extras(), self.stamp());
        replacement.set_header(replacement.header() | self.header() & FORM);
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
        let mut large = self.take_large().expect("storage says so");
        let buffer: *mut Large = Arc::get_mut(&mut large).expect("unshared by resize_value");
        self.set_word(shape.value_at, Arc::into_raw(large) as u64);
        // SAFETY: the only reference is in the entry again, and the shard's lock makes this one unique.
        unsafe { (*buffer).bytes_mut() }
    }

    #[inline]
    pub(crate) fn expiry(self) -> Option<i64> {
        if self.header() & VOLATILE == 0 {
            None
        } else {
            Some(self.word(HEADER) as i64)
        }
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

    #[inline]
    fn extras(self) -> Extras {
        Extras {
            expiry: self.expiry(),
            log: self.log_address(),
        }
    }

    /// The value, for [`Entry::moved`], which has to follow.
    fn value_to_move<'a>(self) -> NewValue<'a> {
        match self.take_large() {
            Some(large) => NewValue::Large(large),
            None if self.is_cold() => NewValue::Cold(self.value_len() as u64),
            None => {
                let shape = self.shape(self.header());
                NewValue::Inline(self.slice(shape.value_at, shape.value_slot))
            }
        }
    }

    /// A new entry with the same key, stamp and form, in place of this one, whose value was taken.
    fn moved(self, heap: &mut Heap, value: NewValue<'_>, extras: Extras) -> Entry {
        let replacement = Entry::new(heap, self.key(), value, extras, self.stamp());
        replacement.set_header(replacement.header() | self.header() & FORM);
        let class = self.class();
        // SAFETY: a large value was moved out, and the caller uses the replacement from here.
        unsafe { heap.release(self.0, class) };
        replacement
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
        match (self.header() & FORM) >> FORM_SHIFT {
            0 => Form::Whole,
            1 => Form::Decimal,
            _ => Form::Part,
        }
    }

    #[inline]
    pub(crate) fn set_form(self, form: Form) {
        self.set_header(self.header() & !FORM | (form as u64) << FORM_SHIFT);
    }
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
mod tests {
    use super::*;

    fn heap() -> Heap {
        Heap::new(Arc::default())
    }

    fn free(heap: &mut Heap, entry: Entry) {
        // SAFETY: each test frees what it made, last.
        drop(unsafe { entry.free(heap) });
    }

    #[test]
    fn entries_hold_what_they_were_given() {
        let (mut heap, mut mark) = (heap(), Mark::default());
        for key_len in [0, 1, 16, 255, 256, 70_000] {
            for value_len in [
                0,
                1,
                16,
                100,
                INLINE_VALUE_MAX,
                INLINE_VALUE_MAX + 1,
                100_000,
            ] {
                let expiries = [None, Some(1), Some(i64::MAX)];
                let logs = [None, Some(LogAddress::PENDING)];
                for (expiry, log) in expiries
                    .into_iter()
                    .flat_map(|expiry| logs.map(|log| (expiry, log)))
                {
                    let (key, value) = (vec![b'k'; key_len], vec![b'v'; value_len]);
                    let entry = Entry::new(
                        &mut heap,
                        &key,
                        NewValue::copy_of(&value),
                        Extras { expiry, log },
                        Stamp::new(0x1ff_ffff, mark),
                    );
                    assert_eq!(entry.log_address(), log);
                    assert!(entry.has_mark(mark) && !entry.has_mark(mark.flipped()));
                    assert_eq!(entry.key(), key);
                    assert!(entry.has_key(&key) && !entry.has_key(b"other"));
                    assert_eq!(entry.value().bytes(), value);
                    assert_eq!(entry.expiry(), expiry);
                    assert_eq!(entry.clock(), 0xff_ffff);
                    let entry = entry
                        .set_expiry(&mut heap, Some(7))
                        .set_expiry(&mut heap, Some(8));
                    assert_eq!(
                        (entry.expiry(), entry.value().bytes()),
                        (Some(8), &value[..])
                    );
                    let entry = entry.set_expiry(&mut heap, None);
                    assert_eq!(
                        (entry.expiry(), entry.key(), entry.value().bytes()),
                        (None, &key[..], &value[..])
                    );
                    assert!(entry.has_mark(mark) && entry.clock() == 0xff_ffff);
                    assert_eq!(entry.log_address(), log);
                    let address = LogAddress(NonZeroU64::MAX);
                    let entry = entry.set_log_address(&mut heap, address);
                    let entry = entry.set_expiry(&mut heap, Some(9));
                    assert_eq!(
                        (entry.log_address(), entry.expiry(), entry.key()),
                        (Some(address), Some(9), &key[..])
                    );
                    assert_eq!(entry.value().bytes(), value);
                    mark = mark.flipped();
                    free(&mut heap, entry);
                }
            }
        }
    }

    #[test]
    fn overwriting_and_resizing_match_a_vector() {
        let mut heap = heap();
        let mut random = fastrand::Rng::with_seed(7);
        let sizes = [
            0usize, 1, 7, 8, 9, 20, 64, 200, 16_000, 16_383, 16_384, 40_000,
        ];
        let key = b"some key";
        let (first, second) = (
            Stamp::new(1, Mark::default()),
            Stamp::new(2, Mark::default()),
        );
        let mut model = b"start".to_vec();
        let value = NewValue::copy_of(&model);
        let mut entry = Entry::new(&mut heap, key, value, Extras::default(), first);
        let (mut held, mut address) = (Vec::new(), None);
        for round in 0..20_000 {
            if round >= 10_000 && random.u8(..) < 30 {
                address = NonZeroU64::new(random.u64(1..)).map(LogAddress);
                entry = entry.set_log_address(&mut heap, address.expect("not zero"));
            }
            assert_eq!(entry.log_address(), address);
            let len = sizes[random.usize(..sizes.len())];
            if random.bool() {
                model = vec![random.u8(..); len];
                let expiry = random.bool().then_some(round);
                entry = entry
                    .overwrite(&mut heap, key, NewValue::copy_of(&model), expiry, second)
                    .0;
                assert_eq!(entry.expiry(), expiry);
            } else {
                entry = entry.resize_value(&mut heap, len).0;
                model.resize(len, 0);
                let byte = random.u8(..);
                if let Some(at) = len.checked_sub(1) {
                    entry.value_mut()[at] = byte;
                    model[at] = byte;
                }
            }
            // A reply that still holds the value must not see later changes.
            if let Stored::Large(large) = entry.value()
                && random.u8(..) < 30
            {
                held.push((large.share(), model.clone()));
            }
            assert_eq!(entry.value().bytes(), model);
            assert_eq!(entry.key(), key);
            if held.len() > 8 {
                for (large, then) in held.drain(..) {
                    assert_eq!(&large[..], then);
                }
            }
        }
        free(&mut heap, entry);
    }
}
