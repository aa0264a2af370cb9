//! Reading a tree, or a clone of one.

use std::marker::PhantomData;
use std::ops::Range;

use super::cell::{Cell, DECIMAL_MAX};
use super::kind::{Edge, LeafKind};
use super::log::leaf::LeafRecord;
use super::node::{Base, Child, Node};
use super::path::Path;
use super::run::{Damage, Fraction, Item, Items, Run};
use super::thawed::Thawed;
use crate::large::LargeValue;

/// A tree at one moment.
#[derive(Debug)]
pub struct View<'t, K> {
    pub(super) kind: &'t K,
    pub(super) root: Node,
    pub(super) height: u8,
    pub(super) count: u64,
    /// The number of its instance in the log; 0 if there is none.
    pub(super) instance: u64,
    /// Whether leaves are cold, where it is known without a look at them.
    pub(super) has_cold: Option<bool>,
    /// What was read of leaves that are cold.
    pub(super) thawed: Option<&'t Thawed>,
    pub(super) alive: PhantomData<&'t [u8]>,
}

impl<K> Clone for View<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for View<'_, K> {}

/// The fence of the first leaf below a node that is `height` levels above leaves.
pub(super) fn first_fence<'a>(mut node: Node, height: usize) -> &'a [u8] {
    for _ in 0..height {
        node = node.children()[0].node;
    }
    node.fence()
}

/// The child that covers an edge, of those whose nodes are `height` levels above leaves.
#[inline]
pub(super) fn covering(children: &[Child], height: usize, edge: &Edge<'_>) -> usize {
    let end = children.partition_point(|child| child.order <= edge.order);
    if end == 0 || children[end - 1].order < edge.order {
        return end.saturating_sub(1);
    }
    let start = children[..end].partition_point(|child| child.order < edge.order);
    let equal = &children[start..end];
    let below = equal.partition_point(|child| first_fence(child.node, height) <= edge.name);
    (start + below).saturating_sub(1)
}

/// The first item of a sorted run that is not before an edge. It is looked for from about `part` of the run
/// on.
#[inline]
pub(super) fn lower<K: LeafKind>(kind: &K, run: Run<'_>, edge: &Edge<'_>, part: Fraction) -> usize {
    run.partition(part, |at| kind.is_before_at(run, at, edge))
}

impl<'t, K: LeafKind> View<'t, K> {
    /// How many items there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number of its instance in the log; 0 if there is none.
    pub fn instance(&self) -> u64 {
        self.instance
    }

    /// The items of a leaf: those in memory, or what was read of a cold one.
    ///
    /// # Panics
    /// The leaf is cold, and was not read.
    #[inline]
    pub(super) fn run_of(&self, leaf: Node) -> Run<'t> {
        run_of(leaf, self.thawed)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    pub(super) fn seek(&self, edge: &Edge<'_>) -> Path {
        let mut path = Path::new(self.root, self.height);
        for depth in 0..path.height {
            let children = path.nodes[depth].children();
            path.take(depth, covering(children, path.height - depth - 1, edge));
        }
        path
    }

    /// The leaf with the item of a rank, and its index there; the end of the last leaf for the rank
    /// behind all.
    pub(super) fn seek_rank(&self, rank: u64) -> (Path, usize) {
        let mut path = Path::new(self.root, self.height);
        let (mut left, mut count) = (rank.min(self.count), self.count);
        for depth in 0..path.height {
            let children = path.nodes[depth].children();
            let last = children.len() - 1;
            let mut taken;
            if left <= count / 2 {
                taken = 0;
                while left >= children[taken].count && taken < last {
                    left -= children[taken].count;
                    taken += 1;
                }
            } else {
                // The end is nearer.
                taken = last;
                let mut before = count - children[last].count;
                while left < before {
                    taken -= 1;
                    before -= children[taken].count;
                }
                left -= before;
            }
            count = children[taken].count;
            path.take(depth, taken);
        }
        (path, left as usize)
    }

    /// Index and item that has this item's name (and order key, where leaves are sorted), in a leaf; the
    /// index is where it would be if it is not there.
    #[inline]
    pub(super) fn locate(
        &self,
        path: &Path,
        item: &Item<'_>,
        edge: &Edge<'_>,
    ) -> (usize, Option<Item<'t>>) {
        let run = path.leaf().run();
        if !K::IS_SORTED {
            return match run.lookup(item.name) {
                Some((index, found)) => (index, Some(found)),
                None => (run.count(), None),
            };
        }
        let index = lower(self.kind, run, edge, path.part_before(edge));
        let found = run.get(index);
        (
            index,
            found.filter(|found| found.name == item.name && self.kind.order(found) == edge.order),
        )
    }

    /// The item with this item's name, and order key.
    #[inline]
    pub fn find(&self, item: &Item<'_>) -> Option<Item<'t>> {
        let mut scratch = [0; DECIMAL_MAX];
        let edge = Edge::of(self.kind, item, &mut scratch);
        let path = self.seek(&edge);
        path.leaf().set_used();
        self.locate(&path, item, &edge).1
    }

    /// Where the item with this item's name, and order key, is: the way to its leaf, and its index there.
    #[inline]
    pub(super) fn place(&self, item: &Item<'_>) -> Option<(Path, usize)> {
        let mut scratch = [0; DECIMAL_MAX];
        let edge = Edge::of(self.kind, item, &mut scratch);
        let path = self.seek(&edge);
        path.leaf().set_used();
        let (index, found) = self.locate(&path, item, &edge);
        found.map(|_| (path, index))
    }

    /// The item of a name, where the order key follows from the name.
    #[inline]
    pub fn get(&self, name: Cell<'_>) -> Option<Item<'t>> {
        self.find(&Item::single(name))
    }

    /// How many items are before this one, if it is there.
    pub fn rank(&self, item: &Item<'_>) -> Option<u64> {
        let mut scratch = [0; DECIMAL_MAX];
        let edge = Edge::of(self.kind, item, &mut scratch);
        let path = self.seek(&edge);
        let (index, found) = self.locate(&path, item, &edge);
        found.map(|_| before(&path) + index as u64)
    }

    /// How many items are before an edge.
    pub fn count_before(&self, edge: &Edge<'_>) -> u64 {
        let path = self.seek(edge);
        let run = path.leaf().run();
        let inside = match K::IS_SORTED {
            true => lower(self.kind, run, edge, path.part_before(edge)),
            false => run.iter().filter(|item| self.is_before(item, edge)).count(),
        };
        before(&path) + inside as u64
    }

    /// How many items are before an edge that is in the leaf that covers another, or where that leaf ends.
    /// Only that leaf is looked at.
    pub(crate) fn count_before_in(&self, covered: &Edge<'_>, edge: &Edge<'_>) -> u64 {
        let path = self.seek(covered);
        let part = path.part_before(covered);
        before(&path) + lower(self.kind, path.leaf().run(), edge, part) as u64
    }

    /// How many items are in the leaves before the one that covers an edge. That leaf may be cold.
    pub(super) fn items_before_leaf(&self, edge: &Edge<'_>) -> u64 {
        before(&self.seek(edge))
    }

    /// Whether an item is before an edge.
    pub(crate) fn is_before(&self, item: &Item<'_>, edge: &Edge<'_>) -> bool {
        self.kind.is_before(item, edge)
    }

    /// The item of a rank.
    pub fn at(&self, rank: u64) -> Option<Item<'t>> {
        if rank >= self.count {
            return None;
        }
        let (path, index) = self.seek_rank(rank);
        self.run_of(path.leaf()).get(index)
    }

    /// The run of the first leaf.
    #[inline]
    pub(super) fn first_run(&self) -> Run<'t> {
        let mut node = self.root;
        for _ in 0..self.height {
            node = node.children()[0].node;
        }
        self.run_of(node)
    }

    /// The items from a rank on. Those of a leaf that is not sorted are in any order.
    pub fn from_rank(&self, rank: u64) -> Walk<'t> {
        let (path, index) = self.seek_rank(rank);
        Walk {
            items: path.leaf().run().range(index),
            path,
            alive: PhantomData,
        }
    }

    /// The leaves from the one on that has the item of a rank, and the index of the item there.
    #[inline]
    pub(super) fn leaves_from_rank(&self, rank: u64) -> (Leaves<'t>, usize) {
        let (path, index) = self.seek_rank(rank);
        let leaves = Leaves {
            path: Some(path),
            is_forward: true,
            count: self.count,
            thawed: self.thawed,
            alive: PhantomData,
        };
        (leaves, index)
    }

    /// The leaves towards the first, from the one on that has the item of a rank.
    pub(super) fn leaves_back_from_rank(&self, rank: u64) -> Leaves<'t> {
        let (leaves, _) = self.leaves_from_rank(rank);
        Leaves {
            is_forward: false,
            ..leaves
        }
    }

    /// All items.
    pub fn iter(&self) -> Walk<'t> {
        self.from_rank(0)
    }

    /// The items of `from..to`. Those of a leaf that is not sorted are in any order.
    pub fn range<'e>(
        &self,
        from: Edge<'e>,
        to: Edge<'e>,
    ) -> impl Iterator<Item = Item<'t>> + use<'t, 'e, K> {
        let view = *self;
        let leaves = self
            .leaves(&from)
            .take_while(move |leaf| leaf.order <= to.order);
        leaves
            .flat_map(|leaf| leaf.run().iter())
            .filter(move |item| {
                let mut scratch = [0; DECIMAL_MAX];
                let edge = Edge::of(view.kind, item, &mut scratch);
                from <= edge && edge < to
            })
    }

    /// The leaves from the one on that covers an edge.
    pub fn leaves(&self, from: &Edge<'_>) -> Leaves<'t> {
        Leaves {
            path: Some(self.seek(from)),
            is_forward: true,
            count: self.count,
            thawed: self.thawed,
            alive: PhantomData,
        }
    }

    /// The same, towards the first.
    pub fn leaves_back(&self, from: &Edge<'_>) -> Leaves<'t> {
        Leaves {
            path: Some(self.seek(from)),
            is_forward: false,
            count: self.count,
            thawed: self.thawed,
            alive: PhantomData,
        }
    }

    /// Whether items are in the log alone.
    pub fn has_cold_leaves(&self) -> bool {
        self.has_cold
            .unwrap_or_else(|| self.leaves(&Edge::default()).any(|leaf| leaf.is_cold()))
    }

    /// Shows all items. `read` gives the contents of a record of the tree's instance, on which a cold leaf
    /// rests.
    ///
    /// # Errors
    /// Those of `read` and `visit`, or a record that is not that of its leaf.
    pub fn try_each<E: From<Damage>>(
        &self,
        read: &mut dyn FnMut(u64, Base) -> Result<LargeValue, E>,
        visit: &mut dyn FnMut(Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.try_ranks(0..self.count, read, visit)
    }

    /// Shows the items of some ranks. As [`View::try_each`].
    ///
    /// # Errors
    /// As there.
    pub fn try_ranks<E: From<Damage>>(
        &self,
        ranks: Range<u64>,
        read: &mut dyn FnMut(u64, Base) -> Result<LargeValue, E>,
        visit: &mut dyn FnMut(Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (leaves, mut index) = self.leaves_from_rank(ranks.start);
        let mut left = ranks.end.saturating_sub(ranks.start);
        for leaf in leaves {
            if left == 0 {
                break;
            }
            let mut show = |run: Run<'_>| {
                let count = (run.count() as u64).saturating_sub(index as u64).min(left);
                left -= count;
                let items = run.range(index).take(count as usize);
                index = 0;
                for item in items {
                    visit(item)?;
                }
                Ok::<(), E>(())
            };
            if !leaf.is_cold() {
                show(leaf.run())?;
                continue;
            }
            let contents = read(self.instance, leaf.base())?;
            let record = LeafRecord::read(&contents)?;
            let run = self
                .kind
                .check_leaf(record.run, &record.from, record.to.as_ref())?;
            if record.from != leaf.start() || run.count() as u64 != leaf.count {
                return Err(Damage::Kind.into());
            }
            show(run)?;
        }
        Ok(())
    }
}

#[inline]
fn run_of<'t>(leaf: Node, thawed: Option<&'t Thawed>) -> Run<'t> {
    match leaf.is_cold() {
        false => leaf.run(),
        true => run_of_cold(leaf, thawed),
    }
}

#[cold]
fn run_of_cold<'t>(leaf: Node, thawed: Option<&'t Thawed>) -> Run<'t> {
    let run = thawed.and_then(|thawed| thawed.run(leaf));
    run.expect("a cold leaf is read before its items are")
}

/// Items in the leaves before a path's.
fn before(path: &Path) -> u64 {
    let counts = (0..path.height).map(|depth| {
        let children = &path.nodes[depth].children()[..usize::from(path.taken[depth])];
        children.iter().map(|child| child.count).sum::<u64>()
    });
    counts.sum()
}

/// Items of a tree, leaf after leaf.
#[derive(Debug)]
pub struct Walk<'t> {
    path: Path,
    items: Items<'t>,
    alive: PhantomData<&'t [u8]>,
}

impl<'t> Iterator for Walk<'t> {
    type Item = Item<'t>;

    fn next(&mut self) -> Option<Item<'t>> {
        loop {
            if let Some(item) = self.items.next() {
                return Some(item);
            }
            if !self.path.step(true) {
                return None;
            }
            self.items = self.path.leaf().run().iter();
        }
    }
}

/// A leaf: what begins at an order key and a name.
#[derive(Clone, Copy, Debug)]
pub struct LeafRef<'t> {
    /// The order key from which on items are here; 0 in the first leaf.
    pub order: u128,
    /// What names of that key are not below; mostly nothing.
    pub fence: &'t [u8],
    /// How many items are in it.
    pub count: u64,
    node: Node,
    thawed: Option<&'t Thawed>,
    alive: PhantomData<&'t [u8]>,
}

impl<'t> LeafRef<'t> {
    /// Where it begins.
    pub fn start(self) -> Edge<'t> {
        let (order, name) = (self.order, self.fence);
        Edge { order, name }
    }

    /// The items.
    ///
    /// # Panics
    /// The leaf is cold, and was not read.
    #[inline]
    pub fn run(self) -> Run<'t> {
        run_of(self.node, self.thawed)
    }

    /// The leaf.
    pub(super) fn node(self) -> Node {
        self.node
    }

    /// Whether the items are in the log alone.
    pub fn is_cold(self) -> bool {
        self.node.is_cold()
    }

    /// Whether the record that it rests on is all that it is.
    pub fn is_whole(self) -> bool {
        self.node.is_whole()
    }

    /// What it rests on in the log.
    pub fn base(self) -> Base {
        self.node.base()
    }

    /// Notes the record that has just been made of it.
    pub fn set_whole_base(self, base: Base) {
        self.node.set_whole_base(base);
    }
}

/// Leaves of a tree.
#[derive(Debug)]
pub struct Leaves<'t> {
    path: Option<Path>,
    /// Items in the tree.
    count: u64,
    is_forward: bool,
    thawed: Option<&'t Thawed>,
    alive: PhantomData<&'t [u8]>,
}

impl<'t> Iterator for Leaves<'t> {
    type Item = LeafRef<'t>;

    fn next(&mut self) -> Option<LeafRef<'t>> {
        let path = self.path.as_mut()?;
        let (order, count) = match path.height.checked_sub(1) {
            Some(above) => {
                let child = &path.nodes[above].children()[usize::from(path.taken[above])];
                (child.order, child.count)
            }
            None => (0, self.count),
        };
        let leaf = LeafRef {
            order,
            count,
            fence: path.leaf().fence(),
            node: path.leaf(),
            thawed: self.thawed,
            alive: PhantomData,
        };
        if !path.step(self.is_forward) {
            self.path = None;
        }
        Some(leaf)
    }
}
