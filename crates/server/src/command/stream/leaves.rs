//! Which leaves of a stream commands need, of those that are in the log alone. The first leaf is always in
//! memory.

use keyspace::StreamRef;
use keyspace::collection::Base;
use keyspace::collection::stream::{Id, Pending, Section};

use super::trim::Trim;

/// Whether a stream lacks leaves that `find` finds: others changed it since they came into memory.
#[inline]
pub(super) fn lacks(stream: StreamRef<'_>, find: impl FnOnce(StreamRef<'_>) -> Vec<Base>) -> bool {
    stream.items().has_cold_leaves() && !find(stream).is_empty()
}

/// Those of some IDs.
pub(super) fn of_ids(stream: StreamRef<'_>, ids: &[Id]) -> Vec<Base> {
    ids.iter()
        .filter_map(|&id| stream.cold_at(Section::ENTRIES, id))
        .collect()
}

/// Those of the ends of the entries that a trim removes, once `more` entries were added.
pub(super) fn of_trim(stream: StreamRef<'_>, trim: &Trim, more: u64) -> Vec<Base> {
    if let Some(record) = trim
        .edge()
        .and_then(|id| stream.cold_at(Section::ENTRIES, id))
    {
        return vec![record];
    }
    let (items, first) = (stream.items(), stream.first_rank());
    if trim.is_about() {
        // How many entries a node has is told by the first.
        let records = items.cold_between(first, first + 1);
        if !records.is_empty() {
            return records;
        }
    }
    let gone = trim
        .gone(stream, stream.len(), more)
        .min(items.len() - first);
    if gone == 0 {
        return Vec::new();
    }
    of_cut(stream, first, first + gone)
}

/// Those of the items of a range of IDs, and of the place where each of them would be.
pub(super) fn of_range(stream: StreamRef<'_>, section: Section, from: Id, last: Id) -> Vec<Base> {
    of_first(stream, section, from, last, u64::MAX)
}

/// Those of so many items of a range of IDs, and of the item after them.
pub(super) fn of_first(
    stream: StreamRef<'_>,
    section: Section,
    from: Id,
    last: Id,
    most: u64,
) -> Vec<Base> {
    let ends = [from, last].map(|id| stream.cold_at(section, id));
    if ends.iter().any(Option::is_some) {
        return ends.into_iter().flatten().collect();
    }
    let from = stream.rank_of(section, from);
    let to = stream.rank_behind(section, last);
    let to = to.min(from.saturating_add(most));
    stream.items().cold_between(from.saturating_sub(1), to + 1)
}

/// Those of the ends of some ranks that are cut out. The places of the ranks are known. With its last item a
/// leaf goes to the one before.
pub(super) fn of_cut(stream: StreamRef<'_>, from: u64, to: u64) -> Vec<Base> {
    let items = stream.items();
    if from >= to {
        return Vec::new();
    }
    let mut records = items.cold_between(from.saturating_sub(1), from + 1);
    records.extend(items.cold_between(to - 1, to + 1));
    records
}

/// Those of a walk over at most `looks` pending entries of a group from an ID on, and of the entries of at
/// most `most` of them that are wanted: first those of the pending ones.
pub(super) fn of_pending_entries(
    stream: StreamRef<'_>,
    group: u32,
    from: Id,
    looks: u64,
    most: u64,
    is_wanted: impl Fn(&Pending) -> bool,
) -> Vec<Base> {
    let records = of_first(stream, Section::of_pending(group), from, Id::MAX, looks);
    if !records.is_empty() {
        return records;
    }
    let count = |count| usize::try_from(count).unwrap_or(usize::MAX);
    let pending = stream.pending_from(group, from).take(count(looks));
    let wanted = pending.filter(is_wanted).take(count(most));
    wanted
        .filter_map(|pending| stream.cold_at(Section::ENTRIES, pending.id))
        .collect()
}
