//! How much of a stream a group has read: as exactly as the counts of a stream say it.

use keyspace::StreamRef;
use keyspace::collection::stream::{Group, Head, Id};

/// The facts that say it.
pub(super) struct GroupProgress {
    head: Head,
    /// The ID of the first entry; 0-0 without entries.
    first: Id,
}

impl GroupProgress {
    /// That of a stream. Its first entry is in memory.
    pub(super) fn of(stream: StreamRef<'_>) -> GroupProgress {
        let head = stream.head().unwrap_or_default();
        let first = (head.len > 0).then(|| stream.entry_at(stream.first_rank()));
        GroupProgress {
            first: first.flatten().map_or(Id::MIN, |entry| entry.id),
            head,
        }
    }

    /// The ID of the first entry; 0-0 without entries.
    pub(super) fn first(&self) -> Id {
        self.first
    }

    /// Whether an entry may have been deleted from an ID on.
    fn has_gaps_from(&self, id: Id) -> bool {
        let Head { len, deleted, .. } = self.head;
        len > 0 && deleted != Id::MIN && self.first <= deleted && id <= deleted
    }

    /// How many entries were added up to an ID, if that is known.
    fn added_up_to(&self, id: Id) -> Option<u64> {
        let Head {
            len,
            last,
            deleted,
            added,
            ..
        } = self.head;
        if added == 0 {
            return Some(0);
        }
        if len == 0 && id <= last || id == last {
            return Some(added);
        }
        let has_no_gaps = deleted == Id::MIN || deleted < self.first;
        match () {
            () if id > last || !has_no_gaps => None,
            () if id < self.first => Some(added.wrapping_sub(len)),
            () if id == self.first => Some(added.wrapping_sub(len).wrapping_add(1)),
            () => None,
        }
    }

    /// How many items are before the first entry that a group has not got, if its count of entries says so
    /// and no leaf has to be read for that.
    pub(super) fn rank_of_next(&self, stream: StreamRef<'_>, group: &Group) -> Option<u64> {
        if stream.items().has_cold_leaves() {
            return None;
        }
        let removed = self.head.added.checked_sub(self.head.len)?;
        let behind = group.read?.checked_sub(removed)?;
        let next = stream.first_rank_of(self.head.len) + behind;
        let before = (behind > 0).then(|| stream.entry_at(next - 1)).flatten();
        (before?.id == group.last).then_some(next)
    }

    /// Notes that a group gets the entry of an ID, which is after the last one that it got.
    pub(super) fn advance(&self, group: &mut Group, id: Id) {
        group.read = match group.read {
            Some(read) if !self.has_gaps_from(id) => Some(read + 1),
            _ if self.head.added > 0 => self.added_up_to(id),
            read => read,
        };
        group.last = id;
    }

    /// How many entries a group has not read yet, if that is known.
    pub(super) fn lag(&self, group: &Group) -> Option<i64> {
        let added = self.head.added;
        if added == 0 {
            return Some(0);
        }
        let read = match group.read {
            Some(read) if !self.has_gaps_from(group.last) => Some(read),
            _ => self.added_up_to(group.last),
        };
        read.map(|read| added.wrapping_sub(read) as i64)
    }
}
