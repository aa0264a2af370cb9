//! The limits within which Redis keeps a collection packed. Here they decide what OBJECT ENCODING says, which
//! the form of a value keeps ([`keyspace::Form`]), and nothing else.

use keyspace::collection::build::Builder;
use keyspace::{Form, Kind};

use super::{Setting, Settings};

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Packed {
    /// Most items.
    pub(crate) entries: usize,
    /// Most bytes of a name or a value.
    pub(crate) value: usize,
    /// Most members of a set of integers.
    pub(crate) integers: usize,
}

fn limit(settings: &Settings, setting: Setting) -> usize {
    usize::try_from(settings.int(setting)).unwrap_or(usize::MAX)
}

impl Packed {
    /// Those of hashes: `listpack`, or beyond `hashtable`.
    #[inline]
    pub(crate) fn hash(settings: &Settings) -> Packed {
        Packed {
            entries: limit(settings, Setting::HashMaxListpackEntries),
            value: limit(settings, Setting::HashMaxListpackValue),
            integers: 0,
        }
    }

    /// Those of sets: `intset`, `listpack`, or beyond `hashtable`.
    #[inline]
    pub(crate) fn set(settings: &Settings) -> Packed {
        Packed {
            entries: limit(settings, Setting::SetMaxListpackEntries),
            value: limit(settings, Setting::SetMaxListpackValue),
            integers: limit(settings, Setting::SetMaxIntsetEntries),
        }
    }

    /// Those of sorted sets: `listpack`, or beyond `skiplist`.
    #[inline]
    pub(crate) fn sorted_set(settings: &Settings) -> Packed {
        Packed {
            entries: limit(settings, Setting::ZsetMaxListpackEntries),
            value: limit(settings, Setting::ZsetMaxListpackValue),
            integers: 0,
        }
    }

    /// How a collection counts as written that was made as a whole.
    pub(crate) fn form_of(settings: &Settings, built: &Builder) -> Form {
        let is_set = built.kind() == Kind::Set;
        let packed = match built.kind() {
            Kind::Set => Packed::set(settings),
            Kind::SortedSet => Packed::sorted_set(settings),
            _ => Packed::hash(settings),
        };
        let is_packed = built.len() <= packed.entries as u64 && built.longest() <= packed.value;
        match is_set {
            true if built.is_numeric() && built.len() <= packed.integers as u64 => Form::Whole,
            true if !built.is_numeric() && is_packed => Form::Decimal,
            false if is_packed => Form::Whole,
            _ => Form::Part,
        }
    }
}
