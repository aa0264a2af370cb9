//! Splits and merges.

use std::ops::Range;

use super::base::Tree;
use super::cut::{Cut, Cutter, Piece};
use super::fill::{joined, leaf_size};
use crate::collection::cell::DECIMAL_MAX;
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::node::{Base, CHILDREN_MAX, Child, Node};
use crate::collection::path::Path;
use crate::collection::run::{EXPIRING, Fraction, Item, Packed, Run};
use crate::collection::view::lower;

/// An inner node with fewer children is merged with a neighbour, if they have not too many together.
const CHILDREN_FEW: usize = 16;
const CHILDREN_MERGED: usize = 48;
/// A leaf of few bytes looks whether it can be merged when its count is a multiple of this.
const LOOK_EVERY: usize = 4;

/// A leaf at an end of a list keeps its room while that is not more than so many times what the run takes,
/// and so many bytes: elements come and go there.
const KEPT_TIMES: usize = 4;
const KEPT_BYTES: usize = 256;

/// The shares of a base that the leaves get into which one is split.
pub(in crate::collection) struct Shares {
    base: Base,
    items: usize,
}

impl Shares {
    pub(in crate::collection) fn new(base: Base, items: usize) -> Shares {
        Shares { base, items }
    }

    /// The base of the next leaf, which has so many of the items.
    pub(in crate::collection) fn next(&mut self, items: usize) -> Base {
        let part = u64::from(self.base.share) * items as u64 / self.items.max(1) as u64;
        let share = if items >= self.items {
            self.base.share
        } else {
            part as u32
        };
        self.base.share -= share;
        self.items -= items.min(self.items);
        Base { share, ..self.base }
    }
}

/// The shortest text that is above `below` and not above `name`.
pub(super) fn separator<'a>(below: &[u8], name: &'a [u8]) -> &'a [u8] {
    let common = below
        .iter()
        .zip(name)
        .take_while(|(one, other)| one == other)
        .count();
    &name[..(common + 1).min(name.len())]
}

impl<K: LeafKind> Tree<K> {
    /// The items of a leaf in order, with `item` at `index`, in place of what is there if `is_replaced`.
    pub(super) fn pieces<'a>(
        &self,
        run: Run<'a>,
        index: usize,
        is_replaced: bool,
        item: Packed<'a>,
    ) -> Vec<Piece<'a>> {
        let mut items = Vec::with_capacity(run.count() + 1);
        items.extend(run.packed());
        match is_replaced {
            true => items[index] = item,
            false => items.insert(index, item),
        }
        // An element that comes before the first has the number before.
        let is_lower = !K::IS_KEYED && index == 0 && !is_replaced && !run.is_empty();
        let below = u128::from(is_lower) << 64;
        let order = |(index, packed): (usize, Packed<'a>)| Piece {
            order: self.kind.order_at(run, index, &packed.item) - below,
            packed,
        };
        let mut pieces: Vec<_> = items.into_iter().enumerate().map(order).collect();
        if !K::IS_SORTED {
            pieces.sort_unstable_by(|one, other| {
                one.order.cmp(&other.order).then_with(|| {
                    let (mut left, mut right) = ([0; DECIMAL_MAX], [0; DECIMAL_MAX]);
                    let below = one.packed.item.name.text(&mut left);
                    below.cmp(other.packed.item.name.text(&mut right))
                })
            });
        }
        pieces
    }

    /// Leaves of these pieces in place of a path's, whose inner nodes are owned.
    pub(super) fn split(&mut self, path: &mut Path, pieces: &[Piece<'_>], cut: Cut) {
        let ranges = Cutter::new::<K>(pieces, self.leaf_max()).ranges(cut);
        let old = path.leaf();
        let first_order = self.child_order(path);
        let mut children: Vec<Child> = Vec::with_capacity(ranges.len());
        let mut shares = Shares::new(old.base(), pieces.len());
        let mut deadlines = Vec::new();
        for range in ranges {
            let (mut left, mut right) = ([0; DECIMAL_MAX], [0; DECIMAL_MAX]);
            let first = &pieces[range.start];
            let (order, fence) = match range.start.checked_sub(1) {
                None => (first_order, old.fence()),
                Some(last) if pieces[last].order == first.order && K::IS_KEYED => {
                    let below = pieces[last].packed.item.name.text(&mut left);
                    (
                        first.order,
                        separator(below, first.packed.item.name.text(&mut right)),
                    )
                }
                Some(_) => (first.order, &b""[..]),
            };
            let part = pieces[range.clone()].iter();
            let leaf = self.leaf_of(fence, part.map(|piece| piece.packed));
            if !K::IS_KEYED {
                leaf.edit(|run| run.set_number((first.order >> 64) as u64));
            }
            leaf.set_base(shares.next(range.len()));
            deadlines.extend(self.deadline_of(leaf.run()));
            children.push(Child {
                order,
                node: leaf,
                count: range.len() as u64,
            });
        }
        let at = path
            .height
            .checked_sub(1)
            .map_or(0, |above| usize::from(path.taken[above]));
        let at_end = cut == Cut::Last && path.is_outermost(true);
        self.replace_children(path, path.height, at..at + 1, &children, at_end);
        self.give_up(old);
        for deadline in deadlines {
            self.change_deadline(None, Some(deadline));
        }
    }

    /// The order key of a path's leaf.
    pub(super) fn child_order(&self, path: &Path) -> u128 {
        match path.height.checked_sub(1) {
            None => 0,
            Some(above) => path.nodes[above].children()[usize::from(path.taken[above])].order,
        }
    }

    /// Nodes at this depth in place of some that a path's parent has. The path is of no use below the
    /// parent afterwards, and the nodes that were there are the caller's.
    pub(super) fn replace_children(
        &mut self,
        path: &mut Path,
        depth: usize,
        gone: Range<usize>,
        new: &[Child],
        at_end: bool,
    ) {
        let Some(above) = depth.checked_sub(1) else {
            if let [only] = new {
                self.root = only.node;
            } else {
                self.root = self.new_inner(new);
                self.height += 1;
            }
            return;
        };
        let parent = path.nodes[above];
        let old = parent.children();
        let children = [&old[..gone.start], new, &old[gone.end..]].concat();
        if children.len() <= CHILDREN_MAX {
            let node = self.with_children(parent, &children);
            self.relink(path, above, node);
            self.count_again(path, above);
            if children.len() < CHILDREN_FEW {
                self.merge_inner(path, above);
            }
            return;
        }
        // Where items come at the end, full nodes stay full.
        let half = if at_end {
            CHILDREN_MAX - 1
        } else {
            children.len() / 2
        };
        let halves = [&children[..half], &children[half..]].map(|part| {
            let node = self.new_inner(part);
            Child {
                order: part[0].order,
                node,
                count: part.iter().map(|child| child.count).sum(),
            }
        });
        let at = above
            .checked_sub(1)
            .map_or(0, |over| usize::from(path.taken[over]));
        self.replace_children(path, above, at..at + 1, &halves, at_end);
        self.give_up(parent);
    }

    /// Notes a node that took the place of the one at this depth.
    fn relink(&mut self, path: &mut Path, depth: usize, node: Node) {
        path.nodes[depth] = node;
        match depth.checked_sub(1) {
            None => self.root = node,
            Some(above) => {
                path.nodes[above]
                    .child_mut(usize::from(path.taken[above]))
                    .node = node
            }
        }
    }

    /// Counts anew above the node at this depth.
    fn count_again(&mut self, path: &Path, depth: usize) {
        for below in (1..=depth).rev() {
            let count = path.nodes[below]
                .children()
                .iter()
                .map(|child| child.count)
                .sum();
            path.nodes[below - 1]
                .child_mut(usize::from(path.taken[below - 1]))
                .count = count;
        }
    }

    /// Merges an inner node that has few children with a neighbour; the root, with its only child.
    fn merge_inner(&mut self, path: &mut Path, depth: usize) {
        let Some(above) = depth.checked_sub(1) else {
            return self.lower_root();
        };
        let siblings = path.nodes[above].children();
        let at = usize::from(path.taken[above]);
        for left in [at, at.wrapping_sub(1)] {
            let Some([one, other]) = siblings.get(left..left.wrapping_add(2)) else {
                continue;
            };
            let (one, other) = (*one, *other);
            let children = [one.node.children(), other.node.children()].concat();
            if children.len() <= CHILDREN_MERGED {
                let node = self.new_inner(&children);
                let merged = Child {
                    order: one.order,
                    node,
                    count: one.count + other.count,
                };
                self.replace_children(path, depth, left..left + 2, &[merged], false);
                self.give_up(one.node);
                self.give_up(other.node);
                return;
            }
        }
    }

    /// Takes roots away that have one child.
    pub(super) fn lower_root(&mut self) {
        while self.height > 0 && self.root.children().len() == 1 {
            let root = self.root;
            self.root = root.children()[0].node;
            self.height -= 1;
            self.give_up(root);
        }
    }

    /// Merges the leaf of a path with a neighbour if both are small, or gives unused room back. The
    /// path's inner nodes are owned; the path is of no use afterwards.
    pub(super) fn slim(&mut self, path: &mut Path) {
        // To look at the neighbours costs two cache misses: not each time.
        let run = path.leaf().run();
        let looks = run.count().is_multiple_of(LOOK_EVERY);
        if !K::IS_KEYED
            && !run.is_empty()
            && (path.is_outermost(true) || path.is_outermost(false))
            && path.leaf().run_room() <= KEPT_TIMES * run.filled() + KEPT_BYTES
        {
            return;
        }
        self.slim_if(path, looks);
    }

    /// [`Tree::slim`] after several items were removed.
    pub(super) fn slim_now(&mut self, path: &mut Path) {
        self.slim_if(path, true);
    }

    fn slim_if(&mut self, path: &mut Path, looks: bool) {
        let leaf = path.leaf();
        let run = leaf.run();
        if let Some(above) = path.height.checked_sub(1)
            && run.filled() < self.leaf_max() / 2
            && looks
        {
            let siblings = path.nodes[above].children();
            let at = usize::from(path.taken[above]);
            for left in [at.wrapping_sub(1), at] {
                let Some([one, other]) = siblings.get(left..left.wrapping_add(2)) else {
                    continue;
                };
                let (one, other) = (*one, *other);
                if one.node.is_cold() || other.node.is_cold() {
                    continue;
                }
                if self.merge_leaves(path, left, one, other) {
                    return;
                }
            }
        }
        let len = run.filled();
        if leaf.run_room() > len + len / 4 + 64 {
            let fresh = self.new_leaf_of(leaf, len);
            self.link(path, path.height, fresh);
        }
    }

    pub(super) fn new_leaf_of(&mut self, leaf: Node, room: usize) -> Node {
        let fresh = self.new_leaf(leaf.fence(), room);
        fresh.edit(|run| run.append(leaf.run()));
        fresh.set_base(leaf.base());
        fresh
    }

    /// What the merged leaf of two rests on: the older base. The share of a newer one is lost.
    fn older(&mut self, one: Base, other: Base) -> Base {
        if one.at == other.at {
            let share = one.share + other.share;
            return Base { share, ..one };
        }
        let (older, newer) = if one.at < other.at {
            (one, other)
        } else {
            (other, one)
        };
        self.lose(newer);
        older
    }

    /// Merges two leaves that have a common parent, if both are small together; whether they were.
    fn merge_leaves(&mut self, path: &mut Path, left: usize, one: Child, other: Child) -> bool {
        let (first, second) = (one.node.run(), other.node.run());
        if second.is_empty() {
            // Its range is the first one's now.
            let base = self.older(one.node.base(), other.node.base());
            one.node.set_base(base);
            self.replace_children(path, path.height, left + 1..left + 2, &[], false);
            self.give_up(other.node);
            return true;
        }
        let has_gap = !K::IS_KEYED
            && !first.is_empty()
            && first.number() + first.count() as u64 != second.number();
        if has_gap {
            return false;
        }
        let items = joined(first, second);
        let size = match &items {
            Some(items) => leaf_size::<K>(items),
            None => first.filled() + second.filled(),
        };
        if size > self.leaf_max() * 3 / 4 && !first.is_empty() {
            return false;
        }
        let leaf = match items {
            Some(items) => self.leaf_of(one.node.fence(), items.into_iter()),
            None => {
                let leaf = self.new_leaf(one.node.fence(), size);
                leaf.edit(|run| {
                    run.append(first);
                    run.append(second);
                });
                leaf
            }
        };
        leaf.set_base(self.older(one.node.base(), other.node.base()));
        let merged = Child {
            order: one.order,
            node: leaf,
            count: one.count + other.count,
        };
        self.replace_children(path, path.height, left..left + 2, &[merged], false);
        self.give_up(one.node);
        self.give_up(other.node);
        true
    }

    /// What remains of a node when items of `from..to` go, where `None` is below, or above, all: the
    /// node in its place and its count.
    pub(super) fn cut_node(
        &mut self,
        child: Child,
        height: usize,
        from: Option<&Edge<'_>>,
        to: Option<&Edge<'_>>,
    ) -> Child {
        let Some(below) = height.checked_sub(1) else {
            return self.cut_leaf(child, from, to);
        };
        let mut children = child.node.children().to_vec();
        let covering = |edge| crate::collection::view::covering(&children, below, edge);
        let first = from.map_or(0, covering);
        let last = to.map_or(children.len(), covering);
        for inner in children.iter().take(last).skip(first + 1) {
            self.give_up_all(inner.node, below);
        }
        children[first] = self.cut_node(children[first], below, from, to.filter(|_| first == last));
        if last < children.len() && last != first {
            children[last] = self.cut_node(children[last], below, None, to);
            if children[last].count == 0 {
                self.give_up_all(children[last].node, below);
                children.remove(last);
            }
        }
        children.drain(first + 1..last.max(first + 1).min(children.len()));
        if first > 0 && children[first].count == 0 {
            self.give_up_all(children[first].node, below);
            children.remove(first);
        }
        let count = children.iter().map(|child| child.count).sum();
        Child {
            node: self.with_children(child.node, &children),
            count,
            ..child
        }
    }

    /// Removes the items of some indexes of a leaf that no moment has, and of which no item expires.
    fn cut_own_leaf(child: Child, from: usize, to: usize) -> Child {
        child.node.set_changed();
        child.node.edit(|run| run.remove_range(from, to));
        let count = child.node.run().count() as u64;
        Child { count, ..child }
    }

    fn cut_leaf(&mut self, child: Child, from: Option<&Edge<'_>>, to: Option<&Edge<'_>>) -> Child {
        if child.node.is_cold() {
            return self.cut_cold_leaf(child, from, to);
        }
        let run = child.node.run();
        let may_edit = run.flags() & EXPIRING == 0 && !self.is_shared(child.node);
        if K::IS_SORTED && K::IS_KEYED && may_edit {
            let place = |edge| lower(&self.kind, run, edge, Fraction::HALF);
            let (from, to) = (from.map_or(0, place), to.map_or(run.count(), place));
            return match from < to {
                true => Self::cut_own_leaf(child, from, to),
                false => child,
            };
        }
        let is_gone = |index: usize, item: &Item<'_>| {
            let mut scratch = [0; DECIMAL_MAX];
            let edge = Edge {
                order: self.kind.order_at(run, index, item),
                name: match K::IS_KEYED {
                    true => item.name.text(&mut scratch),
                    false => b"",
                },
            };
            from.is_none_or(|from| *from <= edge) && to.is_none_or(|to| edge < *to)
        };
        let all = run.packed().enumerate();
        let kept: Vec<_> = all
            .filter(|(index, packed)| !is_gone(*index, &packed.item))
            .collect();
        let first = kept.first().map_or(0, |&(index, _)| index);
        let kept: Vec<_> = kept.into_iter().map(|(_, packed)| packed).collect();
        if kept.len() == run.count() {
            return child;
        }
        let count = kept.len() as u64;
        let leaf = self.leaf_of(child.node.fence(), kept.into_iter());
        if !K::IS_KEYED {
            leaf.edit(|into| into.set_number(run.number() + first as u64));
        }
        leaf.set_base(child.node.base());
        self.give_up(child.node);
        Child {
            node: leaf,
            count,
            ..child
        }
    }

    /// What remains of a cold leaf: all, or nothing. Of one that has items on both sides of an edge the items
    /// have to be in memory.
    fn cut_cold_leaf(
        &mut self,
        child: Child,
        from: Option<&Edge<'_>>,
        to: Option<&Edge<'_>>,
    ) -> Child {
        let start = Edge {
            order: child.order,
            name: child.node.fence(),
        };
        if to.is_some_and(|to| *to <= start) {
            return child;
        }
        let is_all = to.is_none() && from.is_none_or(|from| *from <= start);
        assert!(is_all, "a part of a cold leaf is cut");
        let leaf = self.new_leaf(child.node.fence(), 0);
        leaf.set_base(child.node.base());
        self.give_up(child.node);
        Child {
            node: leaf,
            count: 0,
            ..child
        }
    }
}
