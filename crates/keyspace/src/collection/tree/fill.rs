//! New leaves of given items.

use std::marker::PhantomData;

use super::base::Tree;
use crate::collection::kind::LeafKind;
use crate::collection::node::Node;
use crate::collection::run::{Packed, Run};

/// The lowest and the highest of some integers; `None` if there is none, or something else.
fn ends<'a>(items: impl Iterator<Item = Packed<'a>>) -> Option<(i64, i64)> {
    let mut ends = None;
    for packed in items {
        let integer = packed.item.integer()?;
        let (lowest, highest) = ends.unwrap_or((integer, integer));
        ends = Some((integer.min(lowest), integer.max(highest)));
    }
    ends
}

/// Bytes of a run of nothing but integers with these items; `None` if there is none.
pub(super) fn integers_size<'a>(items: impl ExactSizeIterator<Item = Packed<'a>>) -> Option<usize> {
    let count = items.len();
    let (lowest, highest) = ends(items)?;
    Some(Run::size_of_integers(count, lowest, highest))
}

/// The items of two runs, if one of them is of integers.
pub(super) fn joined<'a>(first: Run<'a>, second: Run<'a>) -> Option<Vec<Packed<'a>>> {
    let is_either = first.is_of_integers() || second.is_of_integers();
    is_either.then(|| first.packed().chain(second.packed()).collect())
}

/// Bytes of a leaf of these items.
pub(super) fn leaf_size<K: LeafKind>(items: &[Packed<'_>]) -> usize {
    let integers = integers_size(items.iter().copied()).filter(|_| K::HAS_INTEGERS);
    integers.unwrap_or_else(|| {
        let bytes = items.iter().map(Packed::size).sum();
        Run::size_of(K::FLAGS, items.len(), bytes)
    })
}

/// A leaf in the making: the bytes of its items in either flavour. They come in order.
pub(super) struct Size<K> {
    pub(super) count: usize,
    /// Those of cells and expiries.
    pub(super) bytes: usize,
    /// The first integer, while there is nothing else.
    lowest: Option<i64>,
    kind: PhantomData<K>,
}

impl<K> Default for Size<K> {
    fn default() -> Size<K> {
        Size {
            count: 0,
            bytes: 0,
            lowest: None,
            kind: PhantomData,
        }
    }
}

impl<K: LeafKind> Size<K> {
    /// Bytes of the leaf with an item more, whose cells and expiry take `bytes`. `integer`: that it is, if
    /// leaves of integers are runs of them.
    #[inline]
    pub(super) fn with(&self, integer: Option<i64>, bytes: usize) -> usize {
        match (integer, self.lowest.or(integer)) {
            (Some(integer), Some(lowest)) if self.count == 0 || self.lowest.is_some() => {
                Run::size_of_integers(self.count + 1, lowest, integer)
            }
            _ => Run::size_of(K::FLAGS, self.count + 1, self.bytes + bytes),
        }
    }

    /// Adds an item.
    #[inline]
    pub(super) fn add(&mut self, integer: Option<i64>, bytes: usize) {
        self.lowest = match self.count {
            0 => integer,
            _ => self.lowest.filter(|_| integer.is_some()),
        };
        self.count += 1;
        self.bytes += bytes;
    }
}

impl<K: LeafKind> Tree<K> {
    /// A leaf with this fence and these items, in their order.
    pub(super) fn leaf_of<'a>(
        &mut self,
        fence: &[u8],
        items: impl ExactSizeIterator<Item = Packed<'a>> + Clone,
    ) -> Node {
        let ends = ends(items.clone()).filter(|_| K::HAS_INTEGERS);
        let room = match ends {
            Some((lowest, highest)) => Run::size_of_integers(items.len(), lowest, highest),
            None => {
                let bytes = items.clone().map(|packed| packed.size()).sum();
                Run::size_of(K::FLAGS, items.len(), bytes)
            }
        };
        let leaf = self.new_leaf(fence, room);
        leaf.edit(|run| {
            if let Some((lowest, highest)) = ends {
                run.begin_integers(lowest, highest);
            }
            run.extend(items);
        });
        leaf
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::collection::cell::Cell;
    use crate::collection::kind::{Edge, Members};
    use crate::collection::run::Item;
    use crate::collection::tree::{LEAF_MAX, Put, Tree};
    use crate::hash::Seed;

    /// How many leaves are of integers, and how many there are.
    fn leaves(tree: &Tree<Members>) -> (usize, usize) {
        let all = tree.view().leaves(&Edge::default());
        let is_of_integers = all.map(|leaf| leaf.run().is_of_integers());
        is_of_integers.fold((0, 0), |(some, all), is| (some + usize::from(is), all + 1))
    }

    fn compare(tree: &Tree<Members>, model: &BTreeSet<i64>, texts: usize) {
        tree.verify();
        let integers = tree.view().iter().filter_map(|item| match item.name {
            Cell::Int(integer) => Some(integer),
            Cell::Bytes(_) => None,
        });
        // Leaves are in order, and so are the integers of a leaf of nothing else.
        let mut found: Vec<_> = integers.collect();
        if texts == 0 && leaves(tree).0 == leaves(tree).1 {
            assert!(found.is_sorted());
        }
        found.sort_unstable();
        assert!(found.iter().eq(model));
        assert_eq!(tree.count() as usize, model.len() + texts);
    }

    /// Integers are in leaves of integers, texts among them are where they belong, and what is removed makes
    /// room: bytes per member of 10,000.
    #[test]
    fn integers_have_leaves_of_their_own() {
        let mut random = fastrand::Rng::with_seed(1);
        for (bits, most) in [(20, 4.5), (32, 7.0), (64, 11.0)] {
            let mut tree = Tree::new(Members { seed: Seed::new(9) }, LEAF_MAX);
            let mut model = BTreeSet::new();
            while model.len() < 10_000 {
                let integer = random.i64(..) >> (64 - bits);
                let put = tree.set(&Item::single(Cell::Int(integer)));
                assert_eq!(put == Put::Added, model.insert(integer));
            }
            compare(&tree, &model, 0);
            let (of_integers, all) = leaves(&tree);
            assert_eq!(of_integers, all);
            let each = tree.bytes() as f64 / 10_000.0;
            println!("{bits} bits: {each:.2} bytes a member, {all} leaves");
            assert!(each <= most, "{each}");
            for number in 0..40 {
                let text = format!("text {number}");
                tree.set(&Item::single(Cell::Bytes(text.as_bytes())));
            }
            compare(&tree, &model, 40);
            assert!(leaves(&tree).0 > all / 4);
            for number in 0..40 {
                let text = format!("text {number}");
                assert!(tree.remove_name(Cell::Bytes(text.as_bytes())));
            }
            let (low, high) = (model.iter().nth(3_000), model.iter().nth(4_000));
            let (low, high) = (*low.expect("there"), *high.expect("there"));
            let edge = |integer| Edge::before(Members::order_of(integer));
            assert_eq!(tree.cut(&edge(low), Some(&edge(high))), 1_000);
            model.retain(|&integer| !(low..high).contains(&integer));
            compare(&tree, &model, 0);
            while model.len() > 2_000 {
                let rank = random.u64(..tree.count());
                let Some(Cell::Int(integer)) = tree.view().at(rank).map(|item| item.name) else {
                    panic!("there is an integer");
                };
                assert!(tree.remove_at(rank) && model.remove(&integer));
            }
            compare(&tree, &model, 0);
            let each = tree.bytes() as f64 / 2_000.0;
            println!("a fifth is left: {each:.2} bytes a member");
            assert!(each <= 2.0 * most, "{each}");
        }
    }
}
