//! What a value is, and how it is told: kind, form and encoding.

use std::sync::Arc;

use crate::large::{Large, LargeValue};

/// Values of more bytes than this live in a reference-counted buffer of their own, so that a reply
/// can be sent from it without a copy.
pub const INLINE_VALUE_MAX: usize = 16 * 1024 - 1;

/// What a value is. The numbers are those of an entry's header and of the log's records: they stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A string of bytes.
    String = 0,
    /// Elements in an order that clients choose.
    List = 1,
    /// Fields, each with a value.
    Hash = 2,
    /// Members without an order.
    Set = 3,
    /// Members ordered by their scores.
    SortedSet = 4,
    /// Entries in the order of their IDs.
    Stream = 5,
}

impl Kind {
    /// All that exist, in the order of their numbers.
    pub const ALL: [Kind; 6] = [
        Kind::String,
        Kind::List,
        Kind::Hash,
        Kind::Set,
        Kind::SortedSet,
        Kind::Stream,
    ];

    /// The kind with this number; `None` if it is of a later version.
    #[inline]
    pub const fn from_bits(bits: u8) -> Option<Kind> {
        match bits {
            0 => Some(Kind::String),
            1 => Some(Kind::List),
            2 => Some(Kind::Hash),
            3 => Some(Kind::Set),
            4 => Some(Kind::SortedSet),
            5 => Some(Kind::Stream),
            _ => None,
        }
    }
}

/// What a value is, and how it was written: all that an entry's header, a log's record or a snapshot says of
/// a value beside where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// What it is.
    pub kind: Kind,
    /// How it was written.
    pub form: Form,
}

impl Type {
    /// A string that was set as a whole.
    pub const STRING: Type = Type::whole(Kind::String);

    /// A value of a kind that was written as a whole.
    pub const fn whole(kind: Kind) -> Type {
        let form = Form::Whole;
        Type { kind, form }
    }
}

/// A string that was written in this form.
impl From<Form> for Type {
    #[inline]
    fn from(form: Form) -> Type {
        let kind = Kind::String;
        Type { kind, form }
    }
}

/// How Redis would hold a string, for OBJECT ENCODING.
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
    /// How a string is held that was written in a form.
    pub fn of(form: Form, bytes: &[u8]) -> Encoding {
        match form {
            Form::Whole if is_canonical_integer(bytes) => Encoding::Int,
            Form::Whole | Form::Decimal if bytes.len() <= 44 => Encoding::Embstr,
            _ => Encoding::Raw,
        }
    }
}

/// Whether the bytes are what formatting a 64-bit integer would give.
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
///
/// | | string | set | hash |
/// |---|---|---|---|
/// | whole | `int`, `embstr` or `raw`, as the bytes are | `intset` | `listpack` |
/// | decimal | a number that is not `int` | `listpack` | |
/// | part | `raw` | `hashtable` | `hashtable` |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Form {
    /// As a whole: its bytes say what it is.
    Whole = 0,
    /// As a decimal number: not `int`, even if it looks like one. Of a set: with members that are no
    /// integers.
    Decimal = 1,
    /// In part: `raw`, however short it is. Of a collection: beyond the limits of the packed encodings.
    Part = 2,
}

impl Form {
    /// The form with this number; what there is none for was not written as a whole.
    #[inline]
    pub(crate) const fn from_bits(bits: u8) -> Form {
        match bits {
            0 => Form::Whole,
            1 => Form::Decimal,
            _ => Form::Part,
        }
    }
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
pub struct LargeRef<'a>(pub(super) &'a Large);

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
