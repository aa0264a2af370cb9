//! The limits within which Redis keeps a collection packed. Here they decide what OBJECT ENCODING says, which
//! the form of a value keeps ([`keyspace::Form`]), and nothing else.

use keyspace::collection::build::Builder;
use keyspace::collection::cell::Cell;
use keyspace::{Form, Kind, ListRef};

use super::{Setting, Settings};

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Packed {
    /// Most items.
    pub(crate) entries: usize,
    /// Most bytes of a name or a value; of a list, of the whole as Redis packs it.
    pub(crate) value: usize,
    /// Most members of a set of integers.
    pub(crate) integers: usize,
}

/// Bytes of a listpack up to which a list is one if a count limits it, and by default.
const LIST_BYTES: usize = 8192;
/// Bytes of a listpack without elements.
const LISTPACK: usize = 7;
/// The most bytes that the elements of a run take in a listpack: each takes at most half as much again as in
/// the run, and a byte more.
fn listed_most(run_bytes: usize, len: usize) -> usize {
    run_bytes + run_bytes / 2 + len
}

/// Bytes of the record of a leaf beyond twice those of its elements in a listpack, at most.
const RECORD: usize = 64;

/// Bytes of some elements in a listpack.
pub(crate) fn listed_all(elements: ListRef<'_>, from: u64, to: u64) -> usize {
    let mut bytes = 0;
    elements.visit(from, to, |element| {
        bytes += listed(element);
        true
    });
    bytes
}

/// Bytes of an element in a listpack.
#[inline]
pub(crate) fn listed(element: Cell<'_>) -> usize {
    let bytes = match element {
        Cell::Int(0..=127) => 1,
        Cell::Int(-4096..=4095) => 2,
        Cell::Int(-32_768..=32_767) => 3,
        Cell::Int(-8_388_608..=8_388_607) => 4,
        Cell::Int(integer) if i32::try_from(integer).is_ok() => 5,
        Cell::Int(_) => 9,
        Cell::Bytes(bytes) => match bytes.len() {
            len @ ..64 => 1 + len,
            len @ 64..4096 => 2 + len,
            len => 5 + len,
        },
    };
    let behind = match bytes {
        ..128 => 1,
        128..16_384 => 2,
        16_384..2_097_152 => 3,
        2_097_152..268_435_456 => 4,
        _ => 5,
    };
    bytes + behind
}

fn limit(settings: &Settings, setting: Setting) -> usize {
    usize::try_from(settings.int(setting)).unwrap_or(usize::MAX)
}

impl Packed {
    /// Those of values that have one encoding only.
    pub(crate) const NONE: Packed = Packed {
        entries: usize::MAX,
        value: usize::MAX,
        integers: usize::MAX,
    };

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

    /// Those of lists: `listpack`, or beyond `quicklist`.
    #[inline]
    pub(crate) fn list(settings: &Settings) -> Packed {
        let (entries, value) = match settings.int(Setting::ListMaxListpackSize) {
            // Redis does not let a count stand alone.
            count @ 0.. => (count.max(1) as usize, LIST_BYTES),
            level => (usize::MAX, LIST_BYTES << (-1 - level).min(4) >> 1),
        };
        Packed {
            entries,
            value,
            integers: 0,
        }
    }

    /// Whether Redis would keep a list as one listpack that has `len` elements.
    pub(crate) fn holds(&self, elements: ListRef<'_>) -> bool {
        let len = elements.len();
        if !self.may_hold_any(len) {
            return false;
        }
        // Most small lists need no look at their elements.
        if let ListRef::Run(run) = elements
            && self.holds_listed(listed_most(run.bytes().len(), len as usize))
        {
            return true;
        }
        // Cold ones are too long: see `may_hold`.
        !elements.has_cold_leaves() && self.holds_listed(listed_all(elements, 0, len))
    }

    /// Whether Redis might keep a list of `len` elements as one listpack.
    #[inline]
    pub(crate) fn may_hold_any(&self, len: u64) -> bool {
        len <= self.entries as u64 && LISTPACK as u64 + 2 * len <= self.value as u64
    }

    /// Whether it does, by the bytes that its elements take in a listpack.
    #[inline]
    pub(crate) fn holds_listed(&self, bytes: usize) -> bool {
        LISTPACK + bytes <= self.value
    }

    /// Whether a list of `len` elements is near those that may be one listpack.
    #[inline]
    pub(crate) fn is_near(&self, len: u64) -> bool {
        len <= self.value as u64
    }

    /// Whether Redis might keep a list of `len` elements as one listpack: then [`Packed::holds`] needs all of
    /// them. `cold` are bytes of the records of those of its leaves that are in the log alone.
    pub(crate) fn may_hold(&self, len: u64, cold: impl Iterator<Item = u32>) -> bool {
        // A record takes at most twice what its elements do in a listpack, and so much more.
        let least: usize = cold
            .map(|bytes| (bytes as usize / 2).saturating_sub(RECORD))
            .sum();
        self.may_hold_any(len) && least <= self.value
    }

    /// Half of it.
    pub(crate) fn half(self) -> Packed {
        Packed {
            entries: self.entries / 2,
            value: self.value / 2,
            ..self
        }
    }

    /// How a collection counts as written that was made as a whole.
    pub(crate) fn form_of(settings: &Settings, built: &Builder) -> Form {
        if let Some(elements) = built.list() {
            return match Packed::list(settings).holds(elements) {
                true => Form::Whole,
                false => Form::Part,
            };
        }
        let (len, longest) = (built.len(), built.longest());
        Packed::form_of_items(settings, built.kind(), (len, longest), built.is_numeric())
    }

    /// The same of so many items of which none is longer; lists are too long here.
    pub(crate) fn form_of_items(
        settings: &Settings,
        kind: Kind,
        (len, longest): (u64, usize),
        is_numeric: bool,
    ) -> Form {
        let packed = match kind {
            Kind::Stream => return Form::Whole,
            Kind::String | Kind::List => return Form::Part,
            Kind::Set => Packed::set(settings),
            Kind::SortedSet => Packed::sorted_set(settings),
            Kind::Hash => Packed::hash(settings),
        };
        let is_packed = len <= packed.entries as u64 && longest <= packed.value;
        match kind == Kind::Set {
            true if is_numeric && len <= packed.integers as u64 => Form::Whole,
            true if !is_numeric && is_packed => Form::Decimal,
            false if is_packed => Form::Whole,
            _ => Form::Part,
        }
    }
}
