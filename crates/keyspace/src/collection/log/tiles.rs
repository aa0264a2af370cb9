//! The records of a tree, put together again while a log is replayed.
//!
//! Each leaf record covers a range of the order, its *tile*, and replaces what was there. Edits go to the
//! tile that covers their name; where there is none, the leaf record that has their result follows. After
//! the last record the tiles have no gap, and become the leaves of one tree.
//!
//! A tile is a leaf until it is edited. Then it is a tree of its own, as edits may make it larger than a
//! leaf. So the base of each leaf is known exactly. (Leaves that are cut out of one large tree would get
//! older bases than they need, and each would be written once more after every start.)

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use crate::collection::cell::DECIMAL_MAX;
use crate::collection::kind::{Edge, Elements, LeafKind};
use crate::collection::log::edits::{self, Edit};
use crate::collection::log::leaf::LeafRecord;
use crate::collection::log::waiting::{Changes, WAITING_MAX, Waiting};
use crate::collection::node::Base;
use crate::collection::run::{Damage, Item, PAIRS};
use crate::collection::tree::{LeafRow, LooseLeaf, Tree};

/// A tile with at most so many times as many items as changes is made anew.
const MERGED_SHARE: u64 = 8;

/// An edge that is kept. Ordered as edges are.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    order: u128,
    name: Vec<u8>,
}

impl Place {
    fn of(edge: &Edge<'_>) -> Place {
        let (order, name) = (edge.order, edge.name.to_vec());
        Place { order, name }
    }

    fn edge(&self) -> Edge<'_> {
        let (order, name) = (self.order, &self.name[..]);
        Edge { order, name }
    }
}

/// What is known of a range.
#[derive(Debug)]
struct Tile<K> {
    /// Where it ends; none: it has the last items.
    to: Option<Place>,
    items: TileItems<K>,
    base: Base,
    /// Whether the record is all that it is.
    is_whole: bool,
}

/// Items of a tile.
#[derive(Debug)]
enum TileItems<K> {
    /// The items of a leaf record, unchanged.
    Leaf(LooseLeaf),
    Tree(Box<Tree<K>>),
}

/// What all tiles of a tree have in common.
#[derive(Debug)]
struct Whole<K> {
    kind: K,
    leaf_max: usize,
}

impl<K: LeafKind + Clone> TileItems<K> {
    fn is_empty(&self) -> bool {
        match self {
            TileItems::Leaf(leaf) => leaf.run().is_empty(),
            TileItems::Tree(tree) => tree.count() == 0,
        }
    }

    /// The items as a tree, which may be changed. A leaf is replaced by a tree.
    fn tree(&mut self, whole: &Whole<K>) -> &mut Tree<K> {
        if let TileItems::Leaf(leaf) = self {
            let tree = Tree::of_run(whole.kind.clone(), whole.leaf_max, leaf.run());
            *self = TileItems::Tree(Box::new(tree));
        }
        match self {
            TileItems::Tree(tree) => tree,
            TileItems::Leaf(_) => unreachable!("it was made a tree"),
        }
    }
}

impl<K> Tile<K> {
    fn ends_by(&self, edge: Option<&Edge<'_>>) -> bool {
        match (&self.to, edge) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(to), Some(edge)) => to.edge() <= *edge,
        }
    }
}

/// The tile that covers an edge. Nothing is allocated.
fn covering<'t, K>(
    tiles: &'t mut BTreeMap<Place, Tile<K>>,
    edge: &Edge<'_>,
) -> Option<&'t mut Tile<K>> {
    let name = Vec::new();
    let end = match edge.order.checked_add(1) {
        Some(order) => Excluded(Place { order, name }),
        None => Unbounded,
    };
    let mut before = tiles.range_mut((Unbounded, end)).rev();
    let (_, tile) = before.find(|(from, _)| from.edge() <= *edge)?;
    let to = tile.to.as_ref();
    to.is_none_or(|to| *edge < to.edge()).then_some(tile)
}

impl<K: LeafKind + Clone> Tile<K> {
    /// Applies changes of its items.
    fn apply(&mut self, whole: &Whole<K>, changes: Changes<'_>) {
        self.is_whole = false;
        let items = self.items.tree(whole);
        if changes.len() as u64 * MERGED_SHARE >= items.count() {
            return items.merge(changes);
        }
        for &mark in changes.marks() {
            apply(items, &changes.change::<K>(mark));
        }
    }
}

/// Applies a change of an item.
fn apply<K: LeafKind>(items: &mut Tree<K>, change: &Edit<'_>) {
    match *change {
        Edit::Set(item) => drop(items.set(&item)),
        Edit::Remove(name) => drop(items.remove_name(name)),
        Edit::Take(item) => drop(items.remove_item(&item)),
        Edit::Reschedule(name, expiry) => drop(items.reschedule(name, expiry)),
        Edit::Put(..) | Edit::Cut(..) | Edit::Insert(..) => {}
    }
}

/// See the module.
#[derive(Debug)]
pub struct Tiles<K> {
    whole: Whole<K>,
    tiles: BTreeMap<Place, Tile<K>>,
}

impl<K: LeafKind + Clone> Tiles<K> {
    /// No range is known. The tree will have leaves of up to `leaf_max` bytes.
    pub fn new(kind: K, leaf_max: usize) -> Tiles<K> {
        Tiles {
            whole: Whole { kind, leaf_max },
            tiles: BTreeMap::new(),
        }
    }

    /// What is in the leaves.
    pub fn kind(&self) -> &K {
        &self.whole.kind
    }

    /// Applies a leaf record; `base` is the record. What nothing rests on any more is appended to `lost`.
    ///
    /// # Errors
    /// The record makes no sense.
    pub fn leaf(
        &mut self,
        record: &LeafRecord<'_>,
        base: Base,
        lost: &mut Vec<Base>,
    ) -> Result<(), Damage> {
        let to = record.to.as_ref();
        let run = self.whole.kind.check_leaf(record.run, &record.from, to)?;
        self.clear(&record.from, to, lost);
        let is_leaf = run.bytes().len() <= self.whole.leaf_max || run.count() == 1;
        let items = match is_leaf {
            true => TileItems::Leaf(LooseLeaf::new::<K>(&record.from, run)),
            // Of a build with larger leaves.
            false => {
                let mut items = Tree::new(self.whole.kind.clone(), self.whole.leaf_max);
                for (index, item) in run.iter().enumerate() {
                    match K::IS_KEYED {
                        true => drop(items.set(&item)),
                        false => items.put_number(run.number() + index as u64, item.name),
                    }
                }
                TileItems::Tree(Box::new(items))
            }
        };
        let tile = Tile {
            to: to.map(Place::of),
            items,
            base,
            is_whole: is_leaf,
        };
        self.tiles.insert(Place::of(&record.from), tile);
        Ok(())
    }

    /// Takes `from..to` out of the tiles.
    fn clear(&mut self, from: &Edge<'_>, to: Option<&Edge<'_>>, lost: &mut Vec<Base>) {
        let start = Place::of(from);
        // What begins before, and reaches into the range.
        if let Some((_, before)) = self.tiles.range_mut(..&start).next_back()
            && !before.ends_by(Some(from))
        {
            let rest = match (before.ends_by(to), to) {
                (false, Some(to)) => {
                    let mut items = before.items.tree(&self.whole).copy();
                    items.cut(&Edge::default(), Some(to));
                    let share = before.base.share / 2;
                    before.base.share -= share;
                    let base = Base {
                        share,
                        ..before.base
                    };
                    let end = before.to.clone();
                    Some((
                        Place::of(to),
                        Tile {
                            to: end,
                            items: TileItems::Tree(Box::new(items)),
                            base,
                            is_whole: false,
                        },
                    ))
                }
                _ => None,
            };
            before.items.tree(&self.whole).cut(from, None);
            before.to = Some(start.clone());
            before.is_whole = false;
            self.tiles.extend(rest);
        }
        // What begins inside.
        let end = to.map(Place::of);
        let inside = match &end {
            None => (Included(&start), Unbounded),
            Some(end) => (Included(&start), Excluded(end)),
        };
        let inside: Vec<_> = self.tiles.range(inside).map(|(at, _)| at.clone()).collect();
        for at in inside {
            let mut tile = self.tiles.remove(&at).expect("it was just found");
            match to {
                Some(to) if !tile.ends_by(Some(to)) => {
                    let items = tile.items.tree(&self.whole);
                    items.cut(&Edge::default(), Some(to));
                    tile.is_whole = false;
                    self.tiles.insert(Place::of(to), tile);
                }
                _ => lost.push(tile.base),
            }
        }
    }

    /// Applies records of edits that are one behind the other in `bytes` and have these lengths. Reports the
    /// number of each that makes no sense; its edits before the place of the damage are applied.
    pub fn edit(
        &mut self,
        bytes: &[u8],
        lens: &mut dyn Iterator<Item = usize>,
        damage: &mut dyn FnMut(usize, Damage),
    ) {
        let mut waiting = Waiting::of(bytes);
        let mut from = 0;
        for (number, len) in lens.enumerate() {
            let record = from..from + len;
            from = record.end;
            let edited = match K::IS_KEYED && from <= WAITING_MAX {
                true => waiting.add(&self.whole.kind, record),
                false => {
                    self.settle(&mut waiting);
                    self.edit_singly(&bytes[record])
                }
            };
            if let Err(problem) = edited {
                damage(number, problem);
            }
            if waiting.is_full() {
                self.settle(&mut waiting);
            }
        }
        self.settle(&mut waiting);
    }

    /// Applies a record of edits, one after the other.
    ///
    /// # Errors
    /// The record makes no sense. Edits before the place of the damage are applied.
    pub(super) fn edit_singly(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        for edit in edits::read(bytes, K::FLAGS & PAIRS != 0) {
            let edit = edit?;
            match edit.key().filter(|_| K::IS_KEYED) {
                Some(key) => self.edit_item(&key, &edit),
                None => self.edit_elements(edit)?,
            }
        }
        Ok(())
    }

    /// Applies an edit of an item to the tile that has it.
    fn edit_item(&mut self, key: &Item<'_>, edit: &Edit<'_>) {
        let mut scratch = [0; DECIMAL_MAX];
        let edge = Edge::of(&self.whole.kind, key, &mut scratch);
        if let Some(tile) = covering(&mut self.tiles, &edge) {
            tile.is_whole = false;
            apply(tile.items.tree(&self.whole), edit);
        }
    }

    /// Applies the changes that wait.
    fn settle(&mut self, waiting: &mut Waiting<'_>) {
        if waiting.is_empty() {
            return;
        }
        let mut rest = waiting.sorted(&self.whole.kind);
        while let Some(first) = rest.first::<K>() {
            let mut scratch = [0; DECIMAL_MAX];
            let edge = Edge::of(&self.whole.kind, &first, &mut scratch);
            let Some(tile) = covering(&mut self.tiles, &edge) else {
                // The leaf record that has its result follows.
                rest = rest.skip_one();
                continue;
            };
            let (here, others) = match &tile.to {
                None => (rest, rest.none()),
                Some(to) => rest.split(&self.whole.kind, &to.edge()),
            };
            tile.apply(&self.whole, here);
            rest = others;
        }
        waiting.clear();
    }

    /// Applies an edit of elements to the tiles that have them.
    fn edit_elements(&mut self, edit: Edit<'_>) -> Result<(), Damage> {
        if K::IS_KEYED || edit.key().is_some() {
            return Err(Damage::Kind);
        }
        let Some((from, to)) = edit.numbers().filter(|(from, to)| from < to) else {
            return Ok(());
        };
        let place = |number| Place::of(&Edge::before(Elements::order_of(number)));
        let (start, end) = (place(from), place(to));
        let first = self.tiles.range(..=&start).next_back();
        let first = first.map_or(start.clone(), |(at, _)| at.clone());
        for (_, tile) in self.tiles.range_mut(first..end) {
            if tile.ends_by(Some(&start.edge())) {
                continue;
            }
            tile.is_whole = false;
            let items = tile.items.tree(&self.whole);
            match edit {
                Edit::Put(number, element) => items.put_number(number, element),
                Edit::Cut(from, to) => drop(items.cut_numbers(from, to)),
                _ => return Err(Damage::Kind),
            }
        }
        Ok(())
    }

    /// Appends what rests on records to `lost`: the tree is not wanted.
    pub fn discard(self, lost: &mut Vec<Base>) {
        lost.extend(self.tiles.into_values().map(|tile| tile.base));
    }

    /// The tree of all tiles; `None` if a range is missing. What nothing rests on any more is appended to
    /// `lost`.
    pub fn finish(mut self, lost: &mut Vec<Base>) -> Option<Tree<K>> {
        let mut at = Some(Place::default());
        for (from, tile) in &self.tiles {
            if at.as_ref() != Some(from) {
                return None;
            }
            at.clone_from(&tile.to);
        }
        if at.is_some() {
            return None;
        }
        self.join_empty(lost);
        let mut row = LeafRow::new(self.whole.kind.clone(), self.whole.leaf_max);
        for (from, tile) in self.tiles {
            match tile.items {
                TileItems::Leaf(leaf) => row.take(from.order, leaf, tile.base, tile.is_whole),
                TileItems::Tree(mut tree) => {
                    row.adopt(&from.edge(), &mut tree, tile.base, tile.is_whole);
                }
            }
        }
        Some(row.finish())
    }

    /// Gives the range of a tile without items to the one before, which gets the older base of the two.
    fn join_empty(&mut self, lost: &mut Vec<Base>) {
        let is_empty = |tile: &Tile<K>| tile.items.is_empty();
        let empty = self.tiles.iter().skip(1).filter(|(_, tile)| is_empty(tile));
        let empty: Vec<_> = empty.map(|(at, _)| at.clone()).collect();
        for at in empty {
            let gone = self.tiles.remove(&at).expect("it was just found");
            let (_, before) = self
                .tiles
                .range_mut(..at)
                .next_back()
                .expect("the first stays");
            before.to = gone.to;
            before.is_whole = false;
            let newer = match gone.base.at < before.base.at {
                true => std::mem::replace(&mut before.base, gone.base),
                false => gone.base,
            };
            lost.push(newer);
        }
    }
}
