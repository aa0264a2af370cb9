//! Changes of many items at once: one pass over the leaves that have them.

use std::cmp::Ordering;

use super::base::Tree;
use super::fill::Size;
use super::shape::separator;
use crate::collection::cell::DECIMAL_MAX;
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::log::edits::Edit;
use crate::collection::log::waiting::{Changes, Placed, compare, sort_by_names};
use crate::collection::node::{Child, Node};
use crate::collection::run::{Item, PAIRS, Packed, Run};

/// The items of a leaf with changes applied, in order. Marks of items are of `bytes`.
#[derive(Default)]
struct Merger {
    bytes: Vec<u8>,
    /// What the leaf has.
    items: Vec<Placed>,
    /// What it is to have.
    merged: Vec<Placed>,
}

/// An item of some bytes, with its value.
fn item_of<K: LeafKind>(bytes: &[u8]) -> Item<'_> {
    Item::decode(bytes, 0, K::FLAGS & PAIRS != 0).0
}

impl Merger {
    /// Applies changes to the items of a run.
    fn merge<K: LeafKind>(&mut self, kind: &K, run: Run<'_>, changes: Changes<'_>) {
        self.read(kind, run);
        self.merged.clear();
        self.merged.reserve(self.items.len() + changes.len());
        let marks = changes.marks();
        let (mut item, mut change) = (0, 0);
        loop {
            let order = match (self.items.get(item), marks.get(change)) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(&one), Some(&other)) => one.half().cmp(&other.half()).then_with(|| {
                    let one = item_of::<K>(&self.bytes[one.place()]);
                    compare(kind, &one, &changes.key::<K>(other))
                }),
            };
            if order == Ordering::Less {
                self.merged.push(self.items[item]);
                item += 1;
                continue;
            }
            let mut there = None;
            if order == Ordering::Equal {
                there = Some(self.items[item]);
                item += 1;
            }
            let first = marks[change];
            loop {
                there = self.changed::<K>(there, changes, marks[change]);
                change += 1;
                let next = marks.get(change).filter(|its| its.half() == first.half());
                let key = |mark| changes.key::<K>(mark);
                if next.is_none_or(|&next| compare(kind, &key(first), &key(next)).is_ne()) {
                    break;
                }
            }
            self.merged.extend(there);
        }
    }

    /// Reads the items of a run, and sorts them.
    fn read<K: LeafKind>(&mut self, kind: &K, run: Run<'_>) {
        self.items.clear();
        self.bytes.clear();
        for packed in run.packed() {
            let from = self.bytes.len();
            self.bytes.resize(from + packed.size(), 0);
            packed.encode(&mut self.bytes[from..]);
            let half = (kind.order(&packed.item) >> 64) as u64;
            self.items
                .push(Placed::item(half, &(from..self.bytes.len())));
        }
        if !K::IS_SORTED {
            self.items.sort_unstable();
            let item = |mark: Placed| item_of::<K>(&self.bytes[mark.place()]);
            sort_by_names(kind, &mut self.items, item);
        }
    }

    /// What an item is after a change, if it is there.
    #[inline]
    fn changed<K: LeafKind>(
        &mut self,
        there: Option<Placed>,
        changes: Changes<'_>,
        mark: Placed,
    ) -> Option<Placed> {
        if changes.is_set(mark) {
            return Some(mark);
        }
        match changes.change::<K>(mark) {
            Edit::Reschedule(_, expiry) => {
                let there = there?;
                let before = self.item_bytes(changes, there).to_vec();
                let item = item_of::<K>(&before).with_expiry(expiry);
                let from = self.bytes.len();
                self.bytes.resize(from + item.size(), 0);
                item.encode(&mut self.bytes[from..]);
                Some(Placed::item(there.half(), &(from..self.bytes.len())))
            }
            _ => None,
        }
    }

    /// The bytes of an item that is to be there.
    #[inline]
    fn item_bytes<'m>(&'m self, changes: Changes<'m>, mark: Placed) -> &'m [u8] {
        match mark.is_change() {
            true => changes.item_bytes(mark),
            false => &self.bytes[mark.place()],
        }
    }
}

/// Leaves in the making.
struct Maker<'m, K> {
    kind: K,
    merger: &'m Merger,
    changes: Changes<'m>,
}

impl<K: LeafKind> Maker<'_, K> {
    fn item(&self, mark: Placed) -> Item<'_> {
        item_of::<K>(self.merger.item_bytes(self.changes, mark))
    }

    fn is_of_one_order(&self, one: Placed, other: Placed) -> bool {
        let order = |mark| self.kind.order(&self.item(mark));
        one.half() == other.half() && order(one) == order(other)
    }

    /// How many of these items the next leaf has, and bytes of them. They take `left` bytes in all.
    fn next(&self, items: &[Placed], left: usize, leaf_max: usize) -> (usize, usize) {
        let most = leaf_max - leaf_max / 8;
        let mut size = Size::<K>::default();
        for &mark in items {
            let integer = match K::HAS_INTEGERS {
                true => self.item(mark).integer(),
                false => None,
            };
            if size.count > 0 && size.with(integer, mark.item_len()) > most {
                break;
            }
            size.add(integer, mark.item_len());
        }
        if size.count == items.len() || Run::size_of(K::FLAGS, items.len(), left) <= leaf_max {
            return (items.len(), left);
        }
        // A leaf begins with an order key of its own, if that is near.
        let (mut count, mut bytes) = (size.count, size.bytes);
        let least = count - count / 4;
        while count > least && self.is_of_one_order(items[count - 1], items[count]) {
            count -= 1;
            bytes -= items[count].item_len();
        }
        match self.is_of_one_order(items[count - 1], items[count]) {
            true => (size.count, size.bytes),
            false => (count, bytes),
        }
    }
}

impl<K: LeafKind + Clone> Tree<K> {
    /// Applies changes. Nobody has cloned the tree, its leaves rest on nothing, and it does not know its
    /// deadlines afterwards.
    ///
    /// Touches all inner nodes, and the leaves that have the items.
    pub(in crate::collection) fn merge(&mut self, changes: Changes<'_>) {
        self.deadlines = None;
        let leaves = self.take_leaves();
        let mut merger = Merger::default();
        let mut level = Vec::with_capacity(leaves.len() + 8);
        let mut rest = changes;
        for (at, &leaf) in leaves.iter().enumerate() {
            let (here, others) = match leaves.get(at + 1) {
                None => (rest, rest.none()),
                Some(next) => rest.split(
                    &self.kind,
                    &Edge {
                        order: next.order,
                        name: next.node.fence(),
                    },
                ),
            };
            rest = others;
            if here.is_empty() {
                level.push(leaf);
                continue;
            }
            merger.merge(&self.kind, leaf.node.run(), here);
            let maker = Maker {
                kind: self.kind.clone(),
                merger: &merger,
                changes: here,
            };
            self.make_leaves(&maker, leaf, &mut level);
            self.give_up(leaf.node);
        }
        self.raise(level);
    }

    /// Leaves of merged items, which take the place of `old`. They are seven eighths full.
    fn make_leaves(&mut self, maker: &Maker<'_, K>, old: Child, level: &mut Vec<Child>) {
        let mut rest = &maker.merger.merged[..];
        let (mut order, mut fence) = (old.order, old.node.fence().to_vec());
        if rest.is_empty() && level.is_empty() {
            let node = self.new_leaf(&fence, 0);
            let count = 0;
            level.push(Child { order, node, count });
        }
        let mut left = rest.iter().map(|mark| mark.item_len()).sum();
        while !rest.is_empty() {
            let (count, bytes) = maker.next(rest, left, self.leaf_max());
            let (items, others) = rest.split_at(count);
            let node = self.merged_leaf(maker, &fence, items, bytes);
            let count = count as u64;
            level.push(Child { order, node, count });
            (rest, left) = (others, left - bytes);
            if let (Some(&last), Some(&first)) = (items.last(), others.first()) {
                order = maker.kind.order(&maker.item(first));
                fence.clear();
                if maker.is_of_one_order(last, first) {
                    let (mut below, mut name) = ([0; DECIMAL_MAX], [0; DECIMAL_MAX]);
                    let below = maker.item(last).name.text(&mut below);
                    let name = maker.item(first).name.text(&mut name);
                    fence.extend_from_slice(separator(below, name));
                }
            }
        }
    }

    /// A leaf of these items, whose cells and expiries take so many bytes.
    fn merged_leaf(
        &mut self,
        maker: &Maker<'_, K>,
        fence: &[u8],
        items: &[Placed],
        bytes: usize,
    ) -> Node {
        let packed = items
            .iter()
            .map(|&mark| Packed::of_bytes(maker.merger.item_bytes(maker.changes, mark)));
        if K::HAS_INTEGERS {
            return self.leaf_of(fence, packed);
        }
        let leaf = self.new_leaf(fence, Run::size_of(K::FLAGS, items.len(), bytes));
        leaf.edit(|run| run.extend(packed));
        leaf
    }
}
