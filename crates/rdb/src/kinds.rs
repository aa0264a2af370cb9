//! Lists, sets, sorted sets, hashes and streams, and how a file holds them.
//!
//! ```text
//! 1 list, 2 set        count string...
//! 3 sorted set         count (string score)...          score: a length of one byte and digits;
//!                                                       253 to 255 alone
//! 4 hash               count (string string)...
//! 5 sorted set         count (string score8)...
//! 9 hash               a string: a zipmap
//! 10 list, 12 sorted set, 13 hash    a string: a ziplist
//! 11 set               a string: an intset
//! 14 list              count string...                  each a ziplist: the nodes of a quicklist
//! 16 hash, 17 sorted set, 20 set     a string: a listpack
//! 18 list              count (1 string | 2 string)...   a large element, or a listpack
//! 15, 19, 21 stream    see `stream`
//! 22 hash              count (time string string)...    time: when the field expires, 0 for never
//! 23 hash              a string: a listpack of field, value and time
//! 24 hash              first8 count (after string string)...   first: the earliest time; after: 0 for never,
//!                                                       else the time less the first, and one more
//! 25 hash              first8 string: as 23
//!
//! 22 hash              count (string string time8)...  in files of Valkey; time: -1 for never
//! ```
//!
//! Times are Unix milliseconds below 2^48. 22 and 23 are of candidates of Redis 7.4.

use crate::format::{STREAM, VALKEY_TIMED_HASH, VALKEY_VERSION, type_name};
use crate::packed::Form;
use crate::stream::parts::StreamPart;

/// The kind of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collection {
    /// Strings in an order.
    List,
    /// Strings.
    Set,
    /// Strings with a score.
    SortedSet,
    /// Fields and values.
    Hash,
    /// Entries with IDs, and groups.
    Stream,
}

/// A part of a collection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Element<'e> {
    /// Of a list or a set.
    String(&'e [u8]),
    /// Of a sorted set.
    Member {
        /// The member.
        member: &'e [u8],
        /// Any number, infinities too.
        score: f64,
    },
    /// Of a hash.
    Field {
        /// The field.
        field: &'e [u8],
        /// Its value.
        value: &'e [u8],
        /// When it expires (Unix, ms); below 2^48.
        expiry_ms: Option<u64>,
    },
    /// Of a stream.
    Stream(StreamPart<'e>),
}

/// How a type of the file holds a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each element for itself.
    Plain,
    /// Each element for itself, with its score in digits.
    Digits,
    /// All of them in one string.
    Packed(Form),
    /// Many of them in each of several strings.
    Ziplists,
    /// The same, or a single one.
    Listpacks,
    /// Each field for itself, with its time; the times are counted from the first of them, if `has_first`.
    Timed { has_first: bool },
    /// Each field for itself, with its time behind it.
    TimedBehind,
    /// Fields in a listpack, each with its time. The first time is before it, if `has_first`.
    TimedPacked { has_first: bool },
    /// A stream, of the first to the third form.
    Stream(u8),
}

/// Times are below this.
pub(crate) const TIME_END: u64 = 1 << 48;

/// What a type of a file of a version is; `None` if it is no collection that is read.
pub(crate) fn type_of(code: u8, version: u32) -> Option<(Collection, Layout)> {
    type_name(code, version)?;
    Some(match code {
        VALKEY_TIMED_HASH if version == VALKEY_VERSION => (Collection::Hash, Layout::TimedBehind),
        1 => (Collection::List, Layout::Plain),
        2 => (Collection::Set, Layout::Plain),
        3 => (Collection::SortedSet, Layout::Digits),
        4 => (Collection::Hash, Layout::Plain),
        5 => (Collection::SortedSet, Layout::Plain),
        9 => (Collection::Hash, Layout::Packed(Form::Zipmap)),
        10 => (Collection::List, Layout::Packed(Form::Ziplist)),
        11 => (Collection::Set, Layout::Packed(Form::Intset)),
        12 => (Collection::SortedSet, Layout::Packed(Form::Ziplist)),
        13 => (Collection::Hash, Layout::Packed(Form::Ziplist)),
        14 => (Collection::List, Layout::Ziplists),
        16 => (Collection::Hash, Layout::Packed(Form::Listpack)),
        17 => (Collection::SortedSet, Layout::Packed(Form::Listpack)),
        15 => (Collection::Stream, Layout::Stream(1)),
        18 => (Collection::List, Layout::Listpacks),
        19 => (Collection::Stream, Layout::Stream(2)),
        21 => (Collection::Stream, Layout::Stream(3)),
        20 => (Collection::Set, Layout::Packed(Form::Listpack)),
        22 | 24 => {
            let has_first = code == 24;
            (Collection::Hash, Layout::Timed { has_first })
        }
        23 | 25 => {
            let has_first = code == 25;
            (Collection::Hash, Layout::TimedPacked { has_first })
        }
        _ => return None,
    })
}

impl Collection {
    /// All of them.
    pub(crate) const ALL: &[Collection] = &[
        Collection::List,
        Collection::Set,
        Collection::SortedSet,
        Collection::Hash,
        Collection::Stream,
    ];

    /// The type that is written.
    pub(crate) fn code(self) -> u8 {
        match self {
            Collection::List => 1,
            Collection::Set => 2,
            Collection::SortedSet => 5,
            Collection::Hash => 4,
            Collection::Stream => STREAM,
        }
    }

    /// Strings that an element takes in a packed form, without a time.
    pub(crate) fn cells(self) -> u64 {
        match self {
            Collection::List | Collection::Set => 1,
            Collection::SortedSet | Collection::Hash => 2,
            Collection::Stream => unreachable!("its parts have no such form"),
        }
    }
}
