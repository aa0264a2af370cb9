//! Which leaves of a list commands need, of those that are in the log alone; and whether one of them is cold
//! after all, because others pushed or popped since the leaves were found: then the command runs again.

use keyspace::ListRef;
use keyspace::collection::Base;
use keyspace::collection::tree::End;

use crate::config::Packed;
use crate::store::List;

/// The leaves of the elements that are left, of the ranks `from..to`, if these are so few that Redis might
/// pack them.
fn cold_if_packed(elements: ListRef<'_>, (from, to): (u64, u64), packed: Packed) -> Vec<Base> {
    if from >= to || !packed.may_hold(to - from, std::iter::empty()) {
        return Vec::new();
    }
    let cold = elements.cold_between(from, to);
    match packed.may_hold(to - from, cold.iter().map(|base| base.share)) {
        true => cold,
        false => Vec::new(),
    }
}

fn all_if_packed(elements: ListRef<'_>, packed: Packed) -> Vec<Base> {
    cold_if_packed(elements, (0, elements.len()), packed)
}

/// Those of a push at an end.
pub(super) fn of_push(elements: ListRef<'_>, end: End, packed: Packed) -> Vec<Base> {
    let mut records = elements.cold_for_push(end);
    records.extend(all_if_packed(elements, packed));
    records
}

/// Those of a pop of so many elements from an end.
pub(super) fn of_pop(elements: ListRef<'_>, (end, count): (End, u64), packed: Packed) -> Vec<Base> {
    let len = elements.len();
    let count = count.min(len);
    if count == 0 {
        return Vec::new();
    }
    let ((from, to), left) = match end {
        End::Front => ((0, count), (count, len)),
        End::Back => ((len - count, len), (0, len - count)),
    };
    let mut records = elements.cold_between(from, to);
    records.extend(elements.cold_for_cut(from, to));
    records.extend(cold_if_packed(elements, left, packed));
    records
}

/// Those of a cut that leaves the elements of some ranks.
pub(super) fn of_trim(
    elements: ListRef<'_>,
    kept: std::ops::Range<u64>,
    packed: Packed,
) -> Vec<Base> {
    let len = elements.len();
    if kept.is_empty() || kept == (0..len) {
        return Vec::new();
    }
    let mut records = elements.cold_for_cut(kept.end, len);
    records.extend(elements.cold_for_cut(0, kept.start));
    records.extend(cold_if_packed(elements, (kept.start, kept.end), packed));
    records
}

/// Those of a new element in the place of that of a rank.
pub(super) fn of_put(elements: ListRef<'_>, rank: u64, packed: Packed) -> Vec<Base> {
    let mut records = elements.cold_between(rank, rank + 1);
    records.extend(all_if_packed(elements, packed));
    records
}

/// Those of a move from the first end, or to the second, or both. A pop can empty the leaf at the end, and
/// then a push at the same end changes the next one.
pub(super) fn of_move(elements: ListRef<'_>, ends: [End; 2], packed: Packed) -> Vec<Base> {
    let mut records = of_pop(elements, (ends[0], 1), packed);
    records.extend(of_push(elements, ends[1], packed));
    let len = elements.len();
    if ends[0] == ends[1] && len > 1 {
        let next = match ends[0] {
            End::Front => 1,
            End::Back => len - 2,
        };
        records.extend(elements.cold_between(next, next + 1));
    }
    records
}

/// Whether a list lacks leaves in memory.
pub(super) fn lacks(list: &List<'_, '_>, leaves: impl FnOnce(ListRef<'_>) -> Vec<Base>) -> bool {
    list.has_cold_leaves() && !leaves(list.items()).is_empty()
}
