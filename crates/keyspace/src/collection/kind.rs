//! What is in the leaves of a tree, and in which order.
//!
//! A kind gives each item an order key of 128 bits. Items of one key are in the order of their names' texts
//! (`Edge::name`), so that any number of them may have one key.
//!
//! | kind | item | order key | in a leaf |
//! |---|---|---|---|
//! | [`Fields`] | field, value | hash of the field (64 bits), 0 | as they came, found by tag |
//! | [`Members`] | member | an integer, or the hash (64 bits) + 1 | likewise; in order, if all are integers |
//! | [`Scores`] | member, score | score, 8 bytes of member | in order |
//! | [`Elements`] | element | a number: the first is in the run, the others count up from it | in order |
//! | [`StreamItems`](super::stream::StreamItems) | of all that a stream has | section, ID | in order |

use super::cell::{Cell, DECIMAL_MAX};
use super::run::{DEQUE, Damage, EXPIRING, INTEGERS, Item, NUMBERED, PAIRS, Run, TAGGED};
use crate::hash::Seed;

/// See the module.
pub trait LeafKind: Sized {
    /// Flags of the leaves' runs in memory.
    const FLAGS: u8;
    /// Items of a leaf are in order; else they are found by name.
    const IS_SORTED: bool;
    /// Items say what their order keys are; else the place in a leaf says it.
    const IS_KEYED: bool = true;
    /// Leaves of integers alone are runs of integers. The order of integers is that of their order keys.
    const HAS_INTEGERS: bool = false;
    /// Items are in sections ([`LeafKind::is_border`]), and are mostly added at the end of theirs.
    const HAS_SECTIONS: bool = false;
    /// Flags of the run of a small collection.
    const SMALL_FLAGS: u8 = Self::FLAGS;

    /// The order key of an item.
    fn order(&self, item: &Item<'_>) -> u128;

    /// Whether an item is before an edge.
    #[inline]
    fn is_before(&self, item: &Item<'_>, edge: &Edge<'_>) -> bool {
        Edge::of(self, item, &mut [0; DECIMAL_MAX]) < *edge
    }

    /// The same of the item that begins at a place of a run with cells.
    #[inline]
    fn is_before_at(&self, run: Run<'_>, at: usize, edge: &Edge<'_>) -> bool {
        self.is_before(&run.one_at(at), edge)
    }

    /// The order key of an item that is at an index of a leaf.
    #[inline]
    fn order_at(&self, _run: Run<'_>, _index: usize, item: &Item<'_>) -> u128 {
        self.order(item)
    }

    /// Whether two items that follow each other are in different sections.
    #[inline]
    fn is_border(_before: u128, _after: u128) -> bool {
        false
    }

    /// Whether the leaf that begins at an edge stays in memory.
    #[inline]
    fn stays(_from: &Edge<'_>) -> bool {
        false
    }

    /// The seed of the order keys; 0 if they need none.
    fn seed(&self) -> u64 {
        0
    }

    /// Whether the cells of an item from a disk are what this kind has.
    fn is_valid(&self, _item: &Item<'_>) -> bool {
        true
    }

    /// The run of a leaf for `from..to`, from bytes of which nothing is known.
    fn check_leaf<'a>(
        &self,
        bytes: &'a [u8],
        from: &Edge<'_>,
        to: Option<&Edge<'_>>,
    ) -> Result<Run<'a>, Damage> {
        let others = if Self::HAS_INTEGERS { INTEGERS } else { 0 };
        let flags = Run::flags_of(bytes).ok_or(Damage::Length)?;
        if flags & !(EXPIRING | others) != Self::FLAGS {
            return Err(Damage::Kind);
        }
        let mut last: Option<(u128, Cell<'a>)> = None;
        Run::check_items(bytes, |item| {
            if !self.is_valid(item) {
                return Err(Damage::Kind);
            }
            if !Self::IS_KEYED {
                return Ok(());
            }
            let (order, name) = (self.order(item), item.name);
            let is_inside =
                !is_below(order, name, from) && to.is_none_or(|to| is_below(order, name, to));
            let last = last.replace((order, name)).filter(|_| Self::IS_SORTED);
            let is_next = last.is_none_or(|(before, last)| {
                let mut scratch = [0; DECIMAL_MAX];
                let name = name.text(&mut scratch);
                is_below(before, last, &Edge { order, name })
            });
            match is_inside && is_next {
                true => Ok(()),
                false => Err(Damage::Order),
            }
        })
    }
}

/// Whether an item of this order key and name is before an edge.
#[inline]
fn is_below(order: u128, name: Cell<'_>, edge: &Edge<'_>) -> bool {
    order < edge.order || order == edge.order && name.text(&mut [0; DECIMAL_MAX]) < edge.name
}

/// A place between items: before all that are not below (order key, name).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge<'a> {
    /// Order key.
    pub order: u128,
    /// Text of the name, among items of this order key.
    pub name: &'a [u8],
}

impl<'a> Edge<'a> {
    /// Before all items of this order key.
    pub fn before(order: u128) -> Edge<'a> {
        Edge { order, name: b"" }
    }

    /// Before this item; `scratch` is for its name's text.
    #[inline]
    pub fn of<K: LeafKind>(
        kind: &K,
        item: &Item<'a>,
        scratch: &'a mut [u8; DECIMAL_MAX],
    ) -> Edge<'a> {
        Edge {
            order: kind.order(item),
            name: item.name.text(scratch),
        }
    }
}

/// Where a leaf of a tree begins. The default is the first.
#[derive(Clone, Debug, Default)]
pub struct LeafPlace {
    order: u128,
    fence: Box<[u8]>,
}

impl LeafPlace {
    pub(super) fn of(edge: Edge<'_>) -> LeafPlace {
        LeafPlace {
            order: edge.order,
            fence: edge.name.into(),
        }
    }

    pub(super) fn edge(&self) -> Edge<'_> {
        Edge {
            order: self.order,
            name: &self.fence,
        }
    }
}

#[inline]
pub(super) fn hash(seed: &Seed, name: Cell<'_>) -> u64 {
    match name {
        Cell::Bytes(bytes) => seed.hash(bytes),
        Cell::Int(integer) => seed.hash(&integer.to_le_bytes()),
    }
}

/// Fields and values of a hash.
#[derive(Clone, Debug)]
pub struct Fields {
    /// The instance's own.
    pub seed: Seed,
}

impl LeafKind for Fields {
    const FLAGS: u8 = TAGGED | PAIRS;
    const IS_SORTED: bool = false;

    fn seed(&self) -> u64 {
        self.seed.random()
    }

    #[inline]
    fn order(&self, item: &Item<'_>) -> u128 {
        u128::from(hash(&self.seed, item.name)) << 64
    }
}

/// Members of a set.
#[derive(Clone, Debug)]
pub struct Members {
    /// The instance's own.
    pub seed: Seed,
}

impl Members {
    /// The order key of an integer.
    #[inline]
    pub fn order_of(integer: i64) -> u128 {
        u128::from(integer as u64 ^ 1 << 63) << 64
    }
}

impl LeafKind for Members {
    const FLAGS: u8 = TAGGED;
    const IS_SORTED: bool = false;
    const HAS_INTEGERS: bool = true;

    fn seed(&self) -> u64 {
        self.seed.random()
    }

    #[inline]
    fn order(&self, item: &Item<'_>) -> u128 {
        match item.name {
            Cell::Int(integer) => Members::order_of(integer),
            Cell::Bytes(bytes) => u128::from(self.seed.hash(bytes)) << 64 | 1,
        }
    }
}

/// Members of a sorted set, by score.
#[derive(Clone, Copy, Debug)]
pub struct Scores;

/// The largest integer up to which all are `f64`s.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

impl Scores {
    /// The cell of a score that is a number; `scratch` holds what is no integer.
    pub fn cell(score: f64, scratch: &mut [u8; 8]) -> Cell<'_> {
        let is_whole = score.abs() <= WHOLE_MAX && score.fract() == 0.0;
        if is_whole && !(score == 0.0 && score.is_sign_negative()) {
            return Cell::Int(score as i64);
        }
        *scratch = score.to_le_bytes();
        Cell::Bytes(scratch)
    }

    /// The score in a cell.
    pub fn score(cell: Cell<'_>) -> Option<f64> {
        match cell {
            Cell::Int(integer) => Some(integer as f64),
            Cell::Bytes(bytes) => {
                let score = f64::from_le_bytes(bytes.try_into().ok()?);
                (!score.is_nan()).then_some(score)
            }
        }
    }

    /// The high half of the order key of an item.
    #[inline]
    fn order_of_item(item: &Item<'_>) -> u64 {
        Scores::order_of(item.value.and_then(Scores::score).unwrap_or(0.0))
    }

    /// The low half of an order key: the first bytes of the member.
    #[inline]
    pub(super) fn first_bytes(name: &[u8]) -> u64 {
        match name.first_chunk() {
            Some(&bytes) => u64::from_be_bytes(bytes),
            None => {
                let first = name
                    .iter()
                    .fold(0, |word, &byte| word << 8 | u64::from(byte));
                first.checked_shl(64 - 8 * name.len() as u32).unwrap_or(0)
            }
        }
    }

    /// The high half of an order key: scores in order; -0 as 0.
    #[inline]
    pub fn order_of(score: f64) -> u64 {
        let bits = (score + 0.0).to_bits();
        if bits >> 63 == 0 {
            bits | 1 << 63
        } else {
            !bits
        }
    }
}

impl LeafKind for Scores {
    const FLAGS: u8 = PAIRS;
    const IS_SORTED: bool = true;

    #[inline]
    fn order(&self, item: &Item<'_>) -> u128 {
        let mut scratch = [0; DECIMAL_MAX];
        let name = item.name.text(&mut scratch);
        u128::from(Scores::order_of_item(item)) << 64 | u128::from(Scores::first_bytes(name))
    }

    /// The score decides nearly always.
    #[inline]
    fn is_before(&self, item: &Item<'_>, edge: &Edge<'_>) -> bool {
        let (order, other) = (Scores::order_of_item(item), (edge.order >> 64) as u64);
        if order != other {
            return order < other;
        }
        let mut scratch = [0; DECIMAL_MAX];
        let name = item.name.text(&mut scratch);
        (Scores::first_bytes(name), name) < (edge.order as u64, edge.name)
    }

    /// The member is looked at only where the score decides nothing.
    #[inline]
    fn is_before_at(&self, run: Run<'_>, at: usize, edge: &Edge<'_>) -> bool {
        let score = Scores::score(run.value_at(at)).unwrap_or(0.0);
        let (order, other) = (Scores::order_of(score), (edge.order >> 64) as u64);
        match order == other {
            true => self.is_before(&run.one_at(at), edge),
            false => order < other,
        }
    }

    fn is_valid(&self, item: &Item<'_>) -> bool {
        item.value
            .is_some_and(|score| Scores::score(score).is_some())
    }
}

/// Elements of a list.
///
/// An element has a number, which is in no item: a leaf has that of its first element, and the others count
/// up from it. Between leaves there may be gaps. Numbers stay while elements come and go at the ends.
#[derive(Clone, Copy, Debug)]
pub struct Elements;

impl Elements {
    /// The order key of a number.
    #[inline]
    pub fn order_of(number: u64) -> u128 {
        u128::from(number) << 64
    }
}

impl LeafKind for Elements {
    const FLAGS: u8 = NUMBERED | DEQUE;
    const SMALL_FLAGS: u8 = 0;
    const IS_SORTED: bool = true;
    const IS_KEYED: bool = false;

    #[inline]
    fn order(&self, _item: &Item<'_>) -> u128 {
        unreachable!("elements are looked for by their ranks, not by what they are")
    }

    #[inline]
    fn order_at(&self, run: Run<'_>, index: usize, _item: &Item<'_>) -> u128 {
        Elements::order_of(run.number().wrapping_add(index as u64))
    }

    fn check_leaf<'a>(
        &self,
        bytes: &'a [u8],
        from: &Edge<'_>,
        to: Option<&Edge<'_>>,
    ) -> Result<Run<'a>, Damage> {
        let run = Run::check(bytes)?;
        if run.flags() != NUMBERED {
            return Err(Damage::Kind);
        }
        let first = u128::from(run.number());
        let end = first + run.count() as u128;
        // Beyond the last number the order key would have no bits.
        let is_inside = first << 64 >= from.order
            && end <= u128::from(u64::MAX)
            && to.is_none_or(|to| end << 64 <= to.order);
        match run.is_empty() || is_inside {
            true => Ok(run),
            false => Err(Damage::Order),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::run::RunMut;

    /// Elements have numbers up to the last one but one; what goes on behind is of no list.
    #[test]
    fn a_leaf_beyond_the_last_number_is_damage() {
        for (number, is_sound) in [(70, true), (u64::MAX - 3, true), (u64::MAX - 1, false)] {
            let mut buffer = [0; 64];
            buffer[..Run::EMPTY].copy_from_slice(&Run::empty(NUMBERED));
            let mut run = RunMut::new(&mut buffer, Run::empty_len(NUMBERED));
            run.set_number(number);
            (0..3).for_each(|index| run.insert(index, &Item::single(Cell::Int(7))));
            let bytes = run.run().bytes();
            let from = Edge::before(Elements::order_of(number));
            let ends = [u64::MAX, 5].map(|end| Edge::before(Elements::order_of(end)));
            assert_eq!(
                Elements.check_leaf(bytes, &from, Some(&ends[0])).is_ok(),
                is_sound
            );
            assert_eq!(Elements.check_leaf(bytes, &from, None).is_ok(), is_sound);
            assert!(Elements.check_leaf(bytes, &from, Some(&ends[1])).is_err());
        }
    }
}
