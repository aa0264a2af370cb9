//! Lists, sets, sorted sets and hashes, and how a file holds them.
//!
//! ```text
//! 1 list, 2 set        count string... 3 sorted set         count (string score)...            score: a
//! length of one byte and digits; 253 to 255 alone 4 hash               count (string string)... 5 sorted set
//! count (string score8)... 9 hash               a string: a zipmap 10 list, 12 sorted set, 13 hash         a
//! string: a ziplist 11 set               a string: an intset 14 list              count string...
//! each a ziplist: the nodes of a quicklist 16 hash, 17 sorted set, 20 set          a string: a listpack 18
//! list              count (1 string | 2 string)...     a large element, or a listpack
//! ```

use crate::packed::Form;

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
    },
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
}

/// What a type of the file is; `None` if it is no collection that is read.
pub(crate) fn type_of(code: u8) -> Option<(Collection, Layout)> {
    Some(match code {
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
        18 => (Collection::List, Layout::Listpacks),
        20 => (Collection::Set, Layout::Packed(Form::Listpack)),
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
    ];

    /// The type that is written.
    pub(crate) fn code(self) -> u8 {
        match self {
            Collection::List => 1,
            Collection::Set => 2,
            Collection::SortedSet => 5,
            Collection::Hash => 4,
        }
    }

    /// Strings that an element takes in a packed form.
    pub(crate) fn cells(self) -> u64 {
        match self {
            Collection::List | Collection::Set => 1,
            Collection::SortedSet | Collection::Hash => 2,
        }
    }
}
