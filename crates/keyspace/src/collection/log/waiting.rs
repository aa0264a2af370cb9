//! Changes of the items of a tree that are applied together. They come from records of a log.
//!
//! ```text
//!  bytes   | record of edits | record of edits | ...        in the order of the log
//!  marks   one for each change: the upper half of its order key, and where it is
//! ```
//!
//! When they are wanted, the marks are sorted: the changes of one place come in a row then, in the order in
//! which they came.

use std::cmp::Ordering;
use std::ops::Range;

use crate::collection::cell::DECIMAL_MAX;
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::log::edits::{self, Edit};
use crate::collection::run::{Damage, Item, PAIRS};

/// Bytes of the records whose changes are applied together, at most: a mark has 32 bits for a place.
pub(super) const WAITING_MAX: usize = 1 << 30;

/// Marks that are sorted without buckets, at most.
const FEW: usize = 32;

/// Where a change is, or an item, and where it belongs. Marks are in the order of the upper halves of order
/// keys; among these, items of leaves come first, and then changes as they came.
///
/// ```text
///  bits   64..128         63          31..63   0..31
///         half of order   is a change   at     length
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::collection) struct Placed(u128);

impl Placed {
    const LEN_BITS: u32 = 31;
    const CHANGE: u128 = 1 << 63;

    #[inline]
    fn new(half: u64, place: &Range<usize>) -> Placed {
        let (at, len) = (place.start as u128, place.len() as u128);
        Placed(u128::from(half) << 64 | at << Placed::LEN_BITS | len)
    }

    /// Of an item of a leaf.
    #[inline]
    pub(in crate::collection) fn item(half: u64, place: &Range<usize>) -> Placed {
        Placed::new(half, place)
    }

    /// The upper half of the order key.
    #[inline]
    pub(in crate::collection) fn half(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Whether it is of a change, and not of an item.
    #[inline]
    pub(in crate::collection) fn is_change(self) -> bool {
        self.0 & Placed::CHANGE != 0
    }

    /// Bytes of the item, if it is of one, or of a change that sets one.
    #[inline]
    pub(in crate::collection) fn item_len(self) -> usize {
        self.len() - usize::from(self.is_change())
    }

    #[inline]
    fn len(self) -> usize {
        self.0 as usize & ((1 << Placed::LEN_BITS) - 1)
    }

    #[inline]
    pub(in crate::collection) fn place(self) -> Range<usize> {
        let at = (self.0 >> Placed::LEN_BITS) as u32 as usize;
        at..at + self.len()
    }
}

/// See the module.
#[derive(Debug)]
pub(in crate::collection) struct Waiting<'a> {
    bytes: &'a [u8],
    marks: Vec<Placed>,
}

impl<'a> Waiting<'a> {
    /// No change yet; all will be in these bytes.
    pub(super) fn of(bytes: &'a [u8]) -> Waiting<'a> {
        let marks = Vec::new();
        Waiting { bytes, marks }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// How many changes wait: each has a mark of 16 bytes, and two while they are sorted.
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Forgets the changes: they were applied.
    pub(super) fn clear(&mut self) {
        self.marks.clear();
    }

    /// Adds the changes of a record, which ends before [`WAITING_MAX`]. Returns false, and adds none, if one
    /// of them is about a range.
    ///
    /// # Errors
    /// The record makes no sense. The changes before the damage are added.
    pub(super) fn add<K: LeafKind>(
        &mut self,
        kind: &K,
        record: Range<usize>,
    ) -> Result<bool, Damage> {
        let (base, before) = (record.start, self.marks.len());
        let mut changes = edits::read(&self.bytes[record], K::FLAGS & PAIRS != 0);
        let mut from = base;
        loop {
            if K::HAS_SECTIONS && changes.is_at_cut() {
                self.marks.truncate(before);
                return Ok(false);
            }
            let Some(item) = changes.next_key() else {
                return Ok(true);
            };
            let item = item?;
            let to = base + changes.position();
            let half = (kind.order(&item) >> 64) as u64;
            let mark = Placed::new(half, &(from..to));
            self.marks.push(Placed(mark.0 | Placed::CHANGE));
            from = to;
        }
    }

    /// All changes, in order.
    pub(super) fn sorted<K: LeafKind>(&mut self, kind: &K) -> Changes<'_> {
        sort(&mut self.marks);
        let bytes = self.bytes;
        let key = |mark: Placed| edits::trusted_key(&bytes[mark.place()], K::FLAGS & PAIRS != 0);
        sort_by_names(kind, &mut self.marks, key);
        let marks = &self.marks;
        Changes { marks, bytes }
    }
}

/// Sorts marks. Halves are mostly hashes: so the marks go to buckets first, of some eight each, which takes
/// half of the time. Where they are not, a bucket may have all.
fn sort(marks: &mut Vec<Placed>) {
    if marks.len() <= FEW {
        return marks.sort_unstable();
    }
    let halves = marks.iter().map(|mark| mark.half());
    let low = halves.clone().min().unwrap_or(0);
    let bits = u64::BITS - (halves.max().unwrap_or(0) - low).leading_zeros();
    let count = (marks.len() / 8 + 1).next_power_of_two();
    let shift = bits.saturating_sub(count.ilog2());
    let bucket = |mark: Placed| ((mark.half() - low) >> shift) as usize;
    let mut ends = vec![0; count];
    for &mark in &*marks {
        ends[bucket(mark)] += 1;
    }
    let mut end = 0;
    for its in &mut ends {
        end += *its;
        *its = end;
    }
    let mut sorted = vec![Placed(0); marks.len()];
    for &mark in marks.iter().rev() {
        let at = &mut ends[bucket(mark)];
        *at -= 1;
        sorted[*at] = mark;
    }
    // The ends are where the buckets begin now.
    let behind = ends.iter().skip(1).copied().chain([sorted.len()]);
    for (from, to) in ends.iter().copied().zip(behind) {
        sorted[from..to].sort_unstable();
    }
    *marks = sorted;
}

/// Sorts marks of one half by the rest of the order key and by name, where there are several.
pub(in crate::collection) fn sort_by_names<'a, K: LeafKind>(
    kind: &K,
    marks: &mut [Placed],
    item: impl Fn(Placed) -> Item<'a>,
) {
    for near in marks.chunk_by_mut(|one, other| one.half() == other.half()) {
        if near.len() > 1 {
            near.sort_unstable_by(|&one, &other| {
                let by_edge = compare(kind, &item(one), &item(other));
                by_edge.then(one.cmp(&other))
            });
        }
    }
}

/// The order of two items.
pub(in crate::collection) fn compare<K: LeafKind>(
    kind: &K,
    one: &Item<'_>,
    other: &Item<'_>,
) -> Ordering {
    let (mut left, mut right) = ([0; DECIMAL_MAX], [0; DECIMAL_MAX]);
    Edge::of(kind, one, &mut left).cmp(&Edge::of(kind, other, &mut right))
}

/// Changes in order.
#[derive(Clone, Copy, Debug)]
pub(in crate::collection) struct Changes<'a> {
    marks: &'a [Placed],
    bytes: &'a [u8],
}

impl<'a> Changes<'a> {
    #[inline]
    pub(in crate::collection) fn is_empty(self) -> bool {
        self.marks.is_empty()
    }

    pub(in crate::collection) fn len(self) -> usize {
        self.marks.len()
    }

    #[inline]
    pub(in crate::collection) fn marks(self) -> &'a [Placed] {
        self.marks
    }

    /// All but the first.
    pub(super) fn skip_one(self) -> Changes<'a> {
        let marks = &self.marks[1..];
        Changes { marks, ..self }
    }

    /// The same without any.
    pub(in crate::collection) fn none(self) -> Changes<'a> {
        let marks = &[];
        Changes { marks, ..self }
    }

    /// Whether a change sets an item.
    #[inline]
    pub(in crate::collection) fn is_set(self, mark: Placed) -> bool {
        edits::is_set(&self.bytes[mark.place()])
    }

    /// The bytes of an item that is set: those behind the code.
    #[inline]
    pub(in crate::collection) fn item_bytes(self, mark: Placed) -> &'a [u8] {
        &self.bytes[mark.place()][1..]
    }

    /// A change, which [`Waiting::add`] has checked.
    pub(in crate::collection) fn change<K: LeafKind>(self, mark: Placed) -> Edit<'a> {
        let mut changes = edits::read(&self.bytes[mark.place()], K::FLAGS & PAIRS != 0);
        let change = changes.next().and_then(Result::ok);
        change.expect("it was read before")
    }

    /// What a change is about.
    #[inline]
    pub(in crate::collection) fn key<K: LeafKind>(self, mark: Placed) -> Item<'a> {
        edits::trusted_key(&self.bytes[mark.place()], K::FLAGS & PAIRS != 0)
    }

    /// What the first change is about.
    pub(super) fn first<K: LeafKind>(self) -> Option<Item<'a>> {
        self.marks.first().map(|&mark| self.key::<K>(mark))
    }

    /// Those before an edge, and the others.
    pub(in crate::collection) fn split<K: LeafKind>(
        self,
        kind: &K,
        edge: &Edge<'_>,
    ) -> (Changes<'a>, Changes<'a>) {
        let half = (edge.order >> 64) as u64;
        let at = self.marks.partition_point(|&mark| {
            mark.half() < half || mark.half() == half && kind.is_before(&self.key::<K>(mark), edge)
        });
        let (before, behind) = self.marks.split_at(at);
        let of = |marks| Changes { marks, ..self };
        (of(before), of(behind))
    }
}
