//! What a command takes out of a large collection, and how large its reply is.

use keyspace::collection::any::Collection;
use keyspace::collection::cell::{Cell, DECIMAL_MAX};
use keyspace::collection::tree::End;
use keyspace::{Kind, ListRef, SortedRef};

/// Bytes of a reply beside each item: its length and line ends; of a sorted set the score, too.
fn beside_item(kind: Kind) -> usize {
    match kind {
        Kind::SortedSet => 48,
        _ => 10,
    }
}

/// What a command takes.
#[derive(Clone, Copy)]
pub(crate) enum Taking {
    /// So many items from an end.
    End(End, u64),
    /// So many by chance.
    Any(u64),
}

impl Taking {
    pub(crate) fn count(self) -> u64 {
        match self {
            Taking::End(_, count) | Taking::Any(count) => count,
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
        match self {
            _ if count == len => tree.bytes() + beside,
            Taking::End(end, _) => match bytes_at_end(tree, (end, count)) {
                Some(bytes) => bytes + beside,
                None => share(tree, count) + beside,
            },
            Taking::Any(_) => share(tree, count) + beside,
        }
    }
}

/// Bytes that so many items of a tree have if all are alike.
fn share(tree: &Collection, count: u64) -> usize {
    (tree.bytes() as u128 * u128::from(count) / u128::from(tree.count().max(1))) as usize
}

/// Bytes of so many items at an end, if all of them are in memory.
fn bytes_at_end(tree: &Collection, (end, count): (End, u64)) -> Option<usize> {
    let from = match end {
        End::Front => 0,
        End::Back => tree.count() - count,
    };
    let mut bytes = 0;
    if let Some(elements) = ListRef::of(tree) {
        let is_there = elements.cold_between(from, from + count).is_empty();
        return is_there.then(|| {
            elements.visit(from, from + count, |element| {
                bytes += bytes_of(element);
                true
            });
            bytes
        });
    }
    let items = SortedRef::of(tree)?.items();
    if !items.cold_between(from, from + count).is_empty() {
        return None;
    }
    let mut rank = from;
    while rank < from + count {
        rank = items.items_behind(rank, from + count, |item| bytes += bytes_of(item.name));
    }
    Some(bytes)
}

fn bytes_of(cell: Cell<'_>) -> usize {
    match cell {
        Cell::Int(_) => DECIMAL_MAX,
        Cell::Bytes(bytes) => bytes.len(),
    }
}
