//! Changes of items.

use super::base::Tree;
use super::cut::Cut;
use crate::collection::cell::{Cell, DECIMAL_MAX};
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::node::Child;
use crate::collection::path::Path;
use crate::collection::run::{Item, Packed};
use crate::collection::view::lower;

/// What became of an item that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// There was none of its name (and order key).
    Added,
    /// It took the place of another.
    Replaced,
}

impl<K: LeafKind> Tree<K> {
    /// Sets an item: in place of the one of its name (and order key), if there is one.
    ///
    /// Touches a child in each inner node, and the leaf: about one cache miss for each level that is not
    /// cached. Allocates when a leaf's size class is full.
    pub fn set(&mut self, item: &Item<'_>) -> Put {
        let mut scratch = [0; DECIMAL_MAX];
        let edge = Edge::of(&self.kind, item, &mut scratch);
        let view = self.view();
        let mut path = view.seek(&edge);
        let (index, found) = view.locate(&path, item, &edge);
        let is_replaced = found.is_some();
        self.put(&mut path, index, is_replaced, item);
        if is_replaced {
            Put::Replaced
        } else {
            Put::Added
        }
    }

    /// Lets the item of a name expire at this time, or never, where the order key follows from the name;
    /// whether there is one.
    pub fn reschedule(&mut self, name: Cell<'_>, expiry: Option<u64>) -> bool {
        let mut buffer = Vec::new();
        let item = self.view().get(name);
        let item = item.map(|item| item.moved_to(&mut buffer).with_expiry(expiry));
        item.is_some_and(|item| {
            self.set(&item);
            true
        })
    }

    /// Puts an item in the place of the one of a rank, which has the same name or none; whether there is
    /// one.
    pub fn replace_at(&mut self, rank: u64, item: &Item<'_>) -> bool {
        if rank >= self.count {
            return false;
        }
        let (mut path, index) = self.view().seek_rank(rank);
        self.put(&mut path, index, true, item);
        true
    }

    /// Puts an item at an index of a path's leaf. Whether the path still leads to that leaf: not if it was
    /// split or merged.
    pub(super) fn put(
        &mut self,
        path: &mut Path,
        index: usize,
        is_replaced: bool,
        item: &Item<'_>,
    ) -> bool {
        if !self.is_shared_at_all() && self.put_in_place(path, index, is_replaced, item) {
            return true;
        }
        let run = path.leaf().run();
        let deadline = self.deadline_of(run);
        let count = run.count() + usize::from(!is_replaced);
        let replaced = is_replaced.then_some(index);
        let growth = run.growth(item, replaced);
        let len = growth.map(|growth| run.filled().saturating_add_signed(growth));
        self.own_inner(path);
        let Some(len) = len.filter(|&len| len <= self.leaf_max() || count == 1) else {
            let mut buffer = Vec::new();
            let packed = Packed::new(*item, &mut buffer);
            let pieces = self.pieces(run, index, is_replaced, packed);
            let cut = match is_replaced || !K::IS_SORTED {
                true => Cut::Middle,
                false if index == run.count() && (K::HAS_SECTIONS || path.is_outermost(true)) => {
                    Cut::Last
                }
                false if index == 0 && path.is_outermost(false) => Cut::First,
                false => Cut::Middle,
            };
            self.count += u64::from(!is_replaced);
            self.change_deadline(deadline, None);
            self.split(path, &pieces, cut);
            return false;
        };
        let is_shorter = len < run.filled();
        // What is replaced moves what is behind it; what comes takes bytes of a gap.
        let gap = if is_replaced { run.gap() } else { 0 };
        let leaf = self.own_leaf(path, len + gap);
        match is_replaced {
            true => leaf.edit(|run| run.replace(index, item)),
            false => {
                leaf.edit(|run| run.insert(index, item));
                self.count_up(path, 1);
            }
        }
        if deadline.is_some() || item.expiry.is_some() {
            self.settle_leaf(leaf, deadline);
        }
        if is_shorter {
            self.slim(path);
        }
        !is_shorter
    }

    /// The same where no byte of the leaf changes but those of the item, as is usual: whether it is done. The
    /// leaf is not shared.
    #[inline]
    fn put_in_place(
        &mut self,
        path: &Path,
        index: usize,
        is_replaced: bool,
        item: &Item<'_>,
    ) -> bool {
        let (leaf, most, mut is_done) = (path.leaf(), self.leaf_max(), false);
        leaf.edit(|run| {
            is_done = match is_replaced {
                true => run.overwrite(index, item),
                false => index == run.run().count() && run.append_alone(item, most),
            };
        });
        if is_done {
            leaf.set_changed();
            if !is_replaced {
                self.count_up(path, 1);
            }
        }
        is_done
    }

    /// Puts an item in the place of the one at an index of a path's leaf, which has the same name, and gives
    /// it its own place. Leaves are sorted.
    ///
    /// Where both places are in one leaf, one item of it moves.
    pub(in crate::collection) fn move_item(
        &mut self,
        mut path: Path,
        index: usize,
        new: &Item<'_>,
    ) {
        let mut scratch = [0; DECIMAL_MAX];
        let to = Edge::of(&self.kind, new, &mut scratch);
        let mut to_path = self.view().seek(&to);
        let (leaf, run) = (path.leaf(), to_path.leaf().run());
        let is_near = to_path.leaf() == leaf;
        let growth = run.growth(new, is_near.then_some(index));
        let len = growth.map(|growth| run.filled().saturating_add_signed(growth));
        match len.filter(|&len| len <= self.leaf_max()) {
            Some(len) if is_near => {
                let place = lower(&self.kind, run, &to, to_path.part_before(&to));
                let is_shorter = len < run.filled();
                self.own_inner(&mut path);
                let leaf = self.own_leaf(&mut path, len);
                leaf.edit(|run| run.replace_and_move(index, place, new));
                if is_shorter {
                    self.slim(&mut path);
                }
            }
            // Neither a split nor a copy makes the other path one of the past.
            Some(_) if !self.is_shared_at_all() => {
                let place = lower(&self.kind, run, &to, to_path.part_before(&to));
                self.put(&mut to_path, place, false, new);
                self.take_out(&mut path, index);
            }
            _ => {
                self.take_out(&mut path, index);
                self.set(new);
            }
        }
    }

    /// Removes the item with this item's name, and order key; whether there was one.
    pub fn remove_item(&mut self, item: &Item<'_>) -> bool {
        let mut scratch = [0; DECIMAL_MAX];
        let edge = Edge::of(&self.kind, item, &mut scratch);
        let view = self.view();
        let mut path = view.seek(&edge);
        let (index, found) = view.locate(&path, item, &edge);
        let is_there = found.is_some();
        if is_there {
            self.take_out(&mut path, index);
        }
        is_there
    }

    /// Removes the item of a name, where the order key follows from the name; whether there was one.
    pub fn remove_name(&mut self, name: Cell<'_>) -> bool {
        self.remove_item(&Item::single(name))
    }

    /// Removes the item of a rank; whether there was one.
    pub fn remove_at(&mut self, rank: u64) -> bool {
        if rank >= self.count {
            return false;
        }
        let (mut path, index) = self.view().seek_rank(rank);
        self.take_out(&mut path, index);
        true
    }

    pub(super) fn take_out(&mut self, path: &mut Path, index: usize) {
        let deadline = self.deadline_of(path.leaf().run());
        self.own_inner(path);
        let leaf = self.own_leaf(path, 0);
        leaf.edit(|run| run.remove(index));
        self.count_up(path, -1);
        if deadline.is_some() {
            self.settle_leaf(leaf, deadline);
        }
        self.slim(path);
    }

    /// Removes all items of `from..to`, where `None` is behind all; how many there were. Leaves between
    /// the two ends go without being looked at, cold ones, too. In memory are the leaf of `from`, the one
    /// before it if no item is left of that of `from`, and the leaf that has items on both sides of `to`.
    pub fn cut(&mut self, from: &Edge<'_>, to: Option<&Edge<'_>>) -> u64 {
        if to.is_some_and(|to| to <= from) {
            return 0;
        }
        let all = Child {
            order: 0,
            node: self.root,
            count: self.count,
        };
        let lost = self.lost_bases().len();
        let left = self.cut_node(all, usize::from(self.height), Some(from), to);
        let gone = self.count - left.count;
        (self.root, self.count) = (left.node, left.count);
        self.lower_root();
        if gone > 0 {
            let mut path = self.view().seek(from);
            self.own_inner(&mut path);
            // The leaf may have got the ranges of others: it is not what its record says.
            path.leaf().set_changed();
            self.take_older(&path, lost);
            self.slim(&mut path);
        }
        gone
    }
}
