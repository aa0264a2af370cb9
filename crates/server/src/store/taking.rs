//! What a command takes out of a large collection, and how large its reply is.

use std::ops::Range;

use keyspace::collection::any::Collection;
use keyspace::collection::cell::{Cell, DECIMAL_MAX};
use keyspace::collection::tree::End;
use keyspace::{Kind, ListRef, SortedRef};

/// Bytes of a reply beside each item: its length and line ends; of a sorted set the score, too.
fn beside_item(kind: Kind) -> usize {
    match kind {
        Kind::SortedSet => 48,
        // IDs are written out, and so are the names of fields.
        Kind::Stream => 100,
        Kind::String | Kind::Hash | Kind::Set | Kind::List => 10,
    }
}

/// What a command takes.
#[derive(Clone, Copy)]
pub(crate) enum Taking {
    /// So many elements from an end of a list.
    Elements(End, u64),
    /// So many members from an end of a sorted set.
    Scored(End, u64),
    /// So many members of a set by chance.
    Drawn(u64),
    /// So many entries of a stream, which stay.
    Entries(u64),
}

impl Taking {
    pub(crate) fn count(self) -> u64 {
        match self {
            Taking::Elements(_, count)
            | Taking::Scored(_, count)
            | Taking::Drawn(count)
            | Taking::Entries(count) => count,
        }
    }

    /// The kind of value that it takes items of: another one is an error of the command.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Taking::Elements(..) => Kind::List,
            Taking::Scored(..) => Kind::SortedSet,
            Taking::Drawn(_) => Kind::Set,
            Taking::Entries(_) => Kind::Stream,
        }
    }

    /// Bytes of a reply with all items of a tree.
    pub(crate) fn bytes_of_all(tree: &Collection) -> usize {
        tree.bytes() + beside_item(tree.kind()) * tree.count() as usize
    }

    /// Bytes of a reply with the items, at most.
    pub(crate) fn reply_bytes(self, tree: &Collection) -> usize {
        let len = tree.count();
        let count = self.count().min(len);
        let beside = beside_item(tree.kind()) * count as usize;
        let bytes = match self {
            _ if count == len => None,
            Taking::Elements(end, _) => bytes_of_elements(tree, ranks_at(end, count, len)),
            Taking::Scored(end, _) => bytes_of_members(tree, ranks_at(end, count, len)),
            Taking::Drawn(_) | Taking::Entries(_) => None,
        };
        bytes.unwrap_or_else(|| share(tree, count)) + beside
    }
}

/// Bytes that so many items of a tree have if all are alike.
fn share(tree: &Collection, count: u64) -> usize {
    (tree.bytes() as u128 * u128::from(count) / u128::from(tree.count().max(1))) as usize
}

/// The ranks of so many items at an end.
fn ranks_at(end: End, count: u64, len: u64) -> Range<u64> {
    match end {
        End::Front => 0..count,
        End::Back => len - count..len,
    }
}

/// Bytes of the elements of some ranks, if all of them are in memory.
fn bytes_of_elements(tree: &Collection, ranks: Range<u64>) -> Option<usize> {
    let elements = ListRef::of(tree)?;
    let is_there = elements.cold_between(ranks.start, ranks.end).is_empty();
    is_there.then(|| {
        let mut bytes = 0;
        elements.visit(ranks.start, ranks.end, |element| {
            bytes += bytes_of(element);
            true
        });
        bytes
    })
}

/// Bytes of the members of some ranks, if all of them are in memory.
fn bytes_of_members(tree: &Collection, ranks: Range<u64>) -> Option<usize> {
    let members = SortedRef::of(tree)?.items();
    let is_there = members.cold_between(ranks.start, ranks.end).is_empty();
    is_there.then(|| {
        let (mut rank, mut bytes) = (ranks.start, 0);
        while rank < ranks.end {
            rank = members.items_behind(rank, ranks.end, |item| bytes += bytes_of(item.name));
        }
        bytes
    })
}

fn bytes_of(cell: Cell<'_>) -> usize {
    match cell {
        Cell::Int(_) => DECIMAL_MAX,
        Cell::Bytes(bytes) => bytes.len(),
    }
}
