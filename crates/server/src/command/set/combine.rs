//! The members of an intersection, a union or a difference of sets.

use std::cmp::Reverse;
use std::collections::HashSet;

use keyspace::collection::cell::Cell;
use keyspace::collection::members::Integers;
use keyspace::{LeafPlace, SetRef};

/// How many times as many members a set may have as the smallest, so that their integers are merged. A
/// look-up takes as long as the merge of some ten members.
const MERGE_RATIO: u64 = 16;
/// How many sets are asked for a member one by one. Of more, the members are gathered before.
const ASKED_SETS: usize = 4;

/// Members of some sets, each once.
pub(super) type Combined<'s> = Box<dyn Iterator<Item = Cell<'s>> + 's>;

fn names<'s>(set: SetRef<'s>) -> impl Iterator<Item = Cell<'s>> {
    set.iter().map(|item| item.name)
}

/// Whether all sets, or any of them, have a member.
fn is_in_all(sets: &[SetRef<'_>], name: Cell<'_>) -> bool {
    sets.iter().all(|set| set.get(name).is_some())
}

fn is_in_any(sets: &[SetRef<'_>], name: Cell<'_>) -> bool {
    sets.iter().any(|set| set.get(name).is_some())
}

/// The members that all sets have; there is at least one set.
pub(super) fn intersection<'s>(mut sets: Vec<SetRef<'s>>) -> Combined<'s> {
    sets.sort_by_key(|set| set.len());
    let (smallest, others) = (sets[0], sets.split_off(1));
    let Some(largest) = others.last() else {
        return Box::new(names(smallest));
    };
    // One of them tells whether there are many integers.
    let one = smallest.at(smallest.len() / 2).map(|item| item.name);
    let is_numeric = matches!(one, Some(Cell::Int(_)));
    if !is_numeric || largest.len() / MERGE_RATIO > smallest.len() {
        return Box::new(names(smallest).filter(move |&name| is_in_all(&others, name)));
    }
    let others_sorted = others.iter().copied().map(SetRef::integers).collect();
    let mut merge = Merge {
        smallest,
        place: Some(LeafPlace::default()),
        integers: Vec::new(),
        texts: Vec::new(),
        others_sorted,
        others,
    };
    Box::new(std::iter::from_fn(move || merge.next_leaf()).flatten())
}

/// An intersection, a leaf of the smallest set at a time.
struct Merge<'s> {
    smallest: SetRef<'s>,
    /// The next leaf.
    place: Option<LeafPlace>,
    /// Memory for the members of a leaf.
    integers: Vec<i64>,
    texts: Vec<Cell<'s>>,
    others_sorted: Vec<Integers<'s>>,
    others: Vec<SetRef<'s>>,
}

impl<'s> Merge<'s> {
    /// What the others have, too, of the next leaf; `None` behind the last.
    fn next_leaf(&mut self) -> Option<Vec<Cell<'s>>> {
        let place = self.place.take()?;
        let Merge {
            smallest,
            integers,
            texts,
            others_sorted,
            others,
            ..
        } = self;
        integers.clear();
        self.place = smallest.sorted_from(&place, integers, |name| texts.push(name));
        for other in others_sorted {
            other.retain_in(integers);
        }
        let found = integers.iter().map(|&integer| Cell::Int(integer));
        let texts = texts.drain(..);
        Some(
            found
                .chain(texts.filter(|&name| is_in_all(others, name)))
                .collect(),
        )
    }
}

/// Bytes of a member that is gathered, in a table that is as full as tables may be.
const GATHERED_BYTES: usize = 32;

/// Whether so many bytes may be taken. Where they may not, the members are not complete, and no more are
/// wanted.
pub(super) type MayTake<'s> = &'s dyn Fn(usize) -> bool;

/// Gathers a member; `false` if it is there. When the table is full, another of twice the size takes its
/// place, if there is room.
fn gather<'s>(gathered: &mut HashSet<Cell<'s>>, name: Cell<'s>, room: MayTake<'_>) -> bool {
    let bytes = 2 * (gathered.len() + 1) * GATHERED_BYTES;
    let has_place = gathered.len() < gathered.capacity() || room(bytes);
    has_place && gathered.insert(name)
}

/// The members that any of the sets has.
pub(super) fn union<'s>(sets: Vec<SetRef<'s>>, room: MayTake<'s>) -> Combined<'s> {
    if sets.len() <= ASKED_SETS {
        let found = (0..sets.len()).flat_map(move |number| {
            let before = sets[..number].to_vec();
            names(sets[number]).filter(move |&name| !is_in_any(&before, name))
        });
        return Box::new(found);
    }
    let mut seen = HashSet::new();
    let all = sets.into_iter().flat_map(names);
    Box::new(all.filter(move |&name| gather(&mut seen, name, room)))
}

/// The members of the first set that no other has.
pub(super) fn difference<'s>(
    first: SetRef<'s>,
    mut others: Vec<SetRef<'s>>,
    room: MayTake<'s>,
) -> Combined<'s> {
    let total: u64 = others.iter().map(|set| set.len()).sum();
    if others.len() > ASKED_SETS && total < first.len().saturating_mul(others.len() as u64) {
        let mut gone = HashSet::new();
        for name in others.into_iter().flat_map(names) {
            gather(&mut gone, name, room);
        }
        return Box::new(names(first).filter(move |name| !gone.contains(name)));
    }
    others.sort_by_key(|set| Reverse(set.len()));
    Box::new(names(first).filter(move |&name| !is_in_any(&others, name)))
}
