//! A tree of members that are all known, in one pass.

use std::ops::Range;

use super::base::Tree;
use super::fill::Size;
use crate::collection::cell::Cell;
use crate::collection::kind::{LeafKind, Members};
use crate::collection::node::Child;
use crate::collection::run::{Item, Packed};

/// Different members in any order.
#[derive(Debug, Default)]
pub(in crate::collection) struct Gathered {
    integers: Vec<i64>,
    /// Order key and place of each text.
    texts: Vec<(u128, Range<usize>)>,
    bytes: Vec<u8>,
}

/// A member, and its order key.
#[derive(Clone, Copy)]
struct Member<'g> {
    order: u128,
    name: Cell<'g>,
}

impl Gathered {
    /// Adds a member, which is not there yet.
    pub(in crate::collection) fn push(&mut self, kind: &Members, name: Cell<'_>) {
        match name {
            Cell::Int(integer) => self.integers.push(integer),
            Cell::Bytes(text) => {
                let from = self.bytes.len();
                self.bytes.extend_from_slice(text);
                let order = kind.order(&Item::single(name));
                self.texts.push((order, from..self.bytes.len()));
            }
        }
    }

    /// How many members there are.
    pub(in crate::collection) fn len(&self) -> usize {
        self.integers.len() + self.texts.len()
    }

    /// The members in the order of a tree.
    fn sorted(&mut self) -> impl Iterator<Item = Member<'_>> {
        self.integers.sort_unstable();
        let bytes = &self.bytes;
        self.texts.sort_unstable_by(|one, other| {
            let by_key = one.0.cmp(&other.0);
            by_key.then_with(|| bytes[one.1.clone()].cmp(&bytes[other.1.clone()]))
        });
        let integers = self.integers.iter().map(|&integer| Member {
            order: Members::order_of(integer),
            name: Cell::Int(integer),
        });
        let texts = self.texts.iter().map(|(order, place)| Member {
            order: *order,
            name: Cell::Bytes(&bytes[place.clone()]),
        });
        let (mut integers, mut texts) = (integers.peekable(), texts.peekable());
        std::iter::from_fn(move || match (integers.peek(), texts.peek()) {
            (Some(integer), Some(text)) if text.order < integer.order => texts.next(),
            (Some(_), _) => integers.next(),
            (None, _) => texts.next(),
        })
    }

    /// A tree of the members. Its leaves are seven eighths full.
    pub(in crate::collection) fn finish(mut self, kind: Members, leaf_max: usize) -> Tree<Members> {
        let most = leaf_max - leaf_max / 8;
        let mut tree = Tree::new(kind, leaf_max);
        let mut level: Vec<Child> = Vec::new();
        let (mut leaf, mut size) = (Vec::new(), Size::<Members>::default());
        let mut last = None;
        for member in self.sorted() {
            let item = Item::single(member.name);
            if size.count > 0 && size.with(item.integer(), item.size()) > most {
                level.push(tree.member_leaf(&leaf, last));
                last = leaf.pop();
                leaf.clear();
                size = Size::default();
            }
            size.add(item.integer(), item.size());
            leaf.push(member);
        }
        if !leaf.is_empty() {
            level.push(tree.member_leaf(&leaf, last));
        }
        tree.raise(level);
        tree
    }
}

impl Tree<Members> {
    /// A leaf of these members. The first leaf has none before it.
    fn member_leaf(&mut self, members: &[Member<'_>], before: Option<Member<'_>>) -> Child {
        let first = members[0];
        let (order, fence) = match (before, first.name) {
            (None, _) => (0, &b""[..]),
            (Some(before), Cell::Bytes(text)) if before.order == first.order => (first.order, text),
            (Some(_), _) => (first.order, &b""[..]),
        };
        let items = members
            .iter()
            .map(|member| Packed::loose(Item::single(member.name)));
        let node = self.leaf_of(fence, items);
        let count = members.len() as u64;
        Child { order, node, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::tree::{LEAF_MAX, Put};
    use crate::hash::Seed;

    /// The tree has the members, whatever they are, and goes on as any other.
    #[test]
    fn a_tree_of_gathered_members() {
        let mut random = fastrand::Rng::with_seed(3);
        for leaf_max in [64, 200, LEAF_MAX] {
            for count in [1, 2, 30, 400, 5_000] {
                for share in [0, 1, 50, 100] {
                    let kind = Members { seed: Seed::new(4) };
                    let mut gathered = Gathered::default();
                    let mut model = std::collections::BTreeSet::new();
                    while model.len() < count {
                        let name = match random.u8(..100) < share {
                            true => format!("text {}", random.u64(..)),
                            false => (random.i64(..) >> random.u32(20..50)).to_string(),
                        };
                        if model.insert(name.clone()) {
                            gathered.push(&kind, Cell::of(name.as_bytes()));
                        }
                    }
                    assert_eq!(gathered.len(), count);
                    let mut tree = gathered.finish(kind, leaf_max);
                    tree.verify();
                    assert_eq!(tree.count() as usize, count);
                    for name in &model {
                        let cell = Cell::of(name.as_bytes());
                        assert!(tree.view().get(cell).is_some(), "{name}");
                    }
                    for number in 0..50 {
                        let name = format!("other {number}");
                        let cell = Cell::of(name.as_bytes());
                        assert_eq!(tree.set(&Item::single(cell)), Put::Added);
                    }
                    for name in &model {
                        assert!(tree.remove_name(Cell::of(name.as_bytes())));
                    }
                    tree.verify();
                    assert_eq!(tree.count(), 50);
                }
            }
        }
    }
}
