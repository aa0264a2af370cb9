//! Where the parts of a run are: see the drawing of the module above.

use super::integers::BASE;

/// Groups have tags, and no two items have one name.
pub const TAGGED: u8 = 1;
/// Items have two cells.
pub const PAIRS: u8 = 2;
/// Items may have an expiry.
pub const EXPIRING: u8 = 4;
/// There are no groups: at most [`FEW`] items, which are found by a walk.
pub const BARE: u8 = 8;
/// Items are integers, ascending, in as many bytes each: see `integers`.
pub const INTEGERS: u8 = 32;

/// The order key of the first item is behind the header: those of the others count up from it.
pub const NUMBERED: u8 = 16;

/// Beside [`NUMBERED`]: the leaf of a list in memory, see `deque`.
pub const DEQUE: u8 = 64;

/// Items up to which a run has no groups.
pub(super) const FEW: usize = 16;

/// Items in a group.
pub(super) const GROUP: usize = 8;
pub(super) const HEADER: usize = 4;
/// Bytes of the first item's order key.
pub(super) const NUMBER: usize = 8;
pub(super) const TAGS: usize = 8;
pub(super) const OFFSET: usize = 2;
/// Bytes of items in a run of more than one group.
pub(super) const ITEMS_MAX: usize = u16::MAX as usize;
/// Bytes before the cells of an item that has an expiry.
pub(in crate::collection) const EXPIRY_LEN: usize = 7;

/// Bytes of a group.
#[inline]
pub(super) const fn stride(flags: u8) -> usize {
    match flags & (TAGGED | BARE | INTEGERS) {
        0 => OFFSET,
        TAGGED => TAGS + OFFSET,
        _ => 0,
    }
}

/// Whether groups have tags.
#[inline]
pub(super) const fn has_tags(flags: u8) -> bool {
    flags & (TAGGED | BARE | INTEGERS) == TAGGED
}

/// Bytes before the groups.
#[inline]
pub(super) const fn header(flags: u8) -> usize {
    const { assert!(BASE == NUMBER) };
    match flags & (INTEGERS | NUMBERED) {
        0 => HEADER,
        _ => HEADER + NUMBER,
    }
}

/// Where the tag of an item is, in a tagged run.
#[inline]
pub(super) fn tag_at(flags: u8, index: usize) -> usize {
    HEADER + index / GROUP * stride(flags) + index % GROUP
}
