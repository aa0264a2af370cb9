//! The memory of items that are about to be looked up, asked for before the first of them is.
//!
//! Nodes and leaves of a large tree are in no cache. A search waits for one after the other: the place of
//! each follows from the one before. Here the searches of many items go down together, a level at a time.
//! What one level needs was asked for, for all of them, while the level above was looked at.
//!
//! ```text
//!  scores by member   bucket, entries          of a sorted set: they say where in the order an item is
//!  inner nodes        header, some children    for each level
//!  leaf               header and groups, item
//! ```
//!
//! What is found here is advice: it decides what is loaded, and nothing else.

use super::any::Collection;
use super::cell::Cell;
use super::kind::{LeafKind, Scores};
use super::node::Node;
use super::path::part_before;
use super::run::{Fraction, Item};
use super::sorted::{SortedSet, scored};
use super::tree::Tree;

/// Items whose searches go together.
pub const AHEAD_MAX: usize = 64;

/// An item that is about to be looked up.
#[derive(Clone, Copy, Debug)]
pub struct Sought<'a> {
    /// Its name.
    pub name: Cell<'a>,
    /// Where it goes then.
    pub goes: Goes,
}

/// Where a member of a sorted set goes.
#[derive(Clone, Copy, Debug)]
pub enum Goes {
    /// It stays, or is no member of a sorted set.
    Nowhere,
    /// To a score.
    To(f64),
    /// To the score that it has, and this.
    By(f64),
}

/// A search: what it looks for, and the node that it has come to.
#[derive(Clone, Copy)]
struct Search {
    order: u128,
    node: Node,
    /// Which of the items.
    item: usize,
    /// About how much of the node is before it.
    part: Fraction,
}

impl Search {
    fn new(root: Node) -> Search {
        Search {
            order: 0,
            node: root,
            item: 0,
            part: Fraction::HALF,
        }
    }
}

impl Collection {
    /// Asks for up to [`AHEAD_MAX`] items. Others, and those of lists and streams, are left out.
    pub fn ask_for(&self, items: &[Sought<'_>]) {
        let items = &items[..items.len().min(AHEAD_MAX)];
        match self {
            Collection::Hash(tree) => tree.ask_for(items),
            Collection::Set(tree) => tree.ask_for(items),
            Collection::SortedSet(set) => set.ask_for(items),
            Collection::List(_) | Collection::Stream(_) => {}
        }
    }
}

impl<K: LeafKind> Tree<K> {
    fn ask_for(&self, items: &[Sought<'_>]) {
        let mut searches = [Search::new(self.view().root); AHEAD_MAX];
        let searches = &mut searches[..items.len()];
        for (number, search) in searches.iter_mut().enumerate() {
            search.order = self.kind.order(&Item::single(items[number].name));
            search.item = number;
        }
        self.go_down(searches);
        for search in searches.iter().filter(|search| !search.node.is_cold()) {
            search.node.run().ask_for(items[search.item].name);
        }
    }

    /// Leads searches from the root to their leaves, whose first bytes are asked for.
    fn go_down(&self, searches: &mut [Search]) {
        let height = self.view().height;
        for depth in 0..height {
            if depth > 0 {
                let nodes = searches.iter().map(|search| search.node);
                nodes.for_each(Node::ask_for_children);
            }
            for search in &mut *searches {
                let children = search.node.children();
                let behind = children.partition_point(|child| child.order <= search.order);
                let taken = behind.saturating_sub(1);
                let child = &children[taken];
                search.node = child.node;
                if depth + 1 < height {
                    child.node.ask_for_head();
                    continue;
                }
                child.node.ask_for_leaf(child.count, K::FLAGS);
                if K::IS_SORTED {
                    search.part = part_before(children, taken, search.order);
                }
            }
        }
    }
}

impl SortedSet {
    fn ask_for(&self, items: &[Sought<'_>]) {
        let mut hashes = [0; AHEAD_MAX];
        let hashes = &mut hashes[..items.len()];
        for (hash, item) in hashes.iter_mut().zip(items) {
            *hash = self.hash(item.name);
            self.scores.ask_for_bucket(*hash);
        }
        hashes
            .iter()
            .for_each(|hash| self.scores.ask_for_entry(*hash));
        let mut searches = [Search::new(self.view().root); 2 * AHEAD_MAX];
        let mut count = 0;
        for (number, (hash, item)) in hashes.iter().zip(items).enumerate() {
            let before = self.scores.scores(*hash).next();
            let after = match item.goes {
                Goes::Nowhere => None,
                Goes::To(score) => Some(score),
                Goes::By(score) => Some(before.unwrap_or(0.0) + score),
            };
            for score in [before, after].into_iter().flatten() {
                let search = &mut searches[count];
                search.order = Scores.order(&scored(item.name, score, &mut [0; 8]));
                search.item = number;
                count += 1;
            }
        }
        let searches = &mut searches[..count];
        self.go_down(searches);
        for search in searches.iter().filter(|search| !search.node.is_cold()) {
            search.node.run().ask_for_part(search.part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Kind;
    use crate::hash::Seed;

    /// Whatever is asked for: items that are there and others, of all kinds, in leaves of any shape.
    #[test]
    fn asking_for_items_changes_nothing() {
        let mut random = fastrand::Rng::with_seed(17);
        for kind in [Kind::Hash, Kind::Set, Kind::SortedSet, Kind::List] {
            for (leaf_max, count) in [(64, 0), (64, 3), (64, 3_000), (1984, 50), (1984, 20_000)] {
                let mut collection = Collection::new(kind, Seed::new(3), leaf_max);
                for number in 0..count {
                    let text = match random.u8(..3) {
                        0 => random.u32(..1000).to_string(),
                        _ => format!("name:{number}"),
                    };
                    let name = Cell::of(text.as_bytes());
                    collection.set(&match kind {
                        Kind::Hash => {
                            Item::pair(name, name).with_expiry(random.bool().then_some(9))
                        }
                        Kind::SortedSet => Item::pair(name, Cell::Int(random.i64(-5..5))),
                        _ => Item::single(name),
                    });
                }
                let before = (collection.count(), collection.bytes());
                for _ in 0..50 {
                    let texts: Vec<_> = (0..random.usize(..100))
                        .map(|_| match random.u8(..3) {
                            0 => random.u32(..1000).to_string(),
                            1 => String::new(),
                            _ => format!("name:{}", random.u32(..20_000)),
                        })
                        .collect();
                    let mut items = Vec::new();
                    for text in &texts {
                        let score =
                            [1.0, -0.5, f64::INFINITY, f64::NEG_INFINITY][random.usize(..4)];
                        let goes = match random.u8(..3) {
                            0 => Goes::Nowhere,
                            1 => Goes::To(score),
                            _ => Goes::By(score),
                        };
                        let name = Cell::of(text.as_bytes());
                        items.push(Sought { name, goes });
                    }
                    collection.ask_for(&items);
                }
                assert_eq!(before, (collection.count(), collection.bytes()));
            }
        }
    }
}
