//! A range of a tree while its log is replayed: its items, or where they are.
//!
//! ```text
//!  leaf      in memory, as the leaf record has them
//!  tree      in memory, edited
//!  cold      in the leaf record of the log alone            leaf <-> cold
//!  spilled   edited, in the spill file alone                tree <-> spilled, a tile for each leaf
//! ```
//!
//! The spill file has contents of leaf records. Items that expire stay in memory, as in a tree.

use crate::collection::kind::{Edge, LeafKind};
use crate::collection::log::leaf::{LeafRecord, WriteLeaf};
use crate::collection::log::store::TileStore;
use crate::collection::node::{Base, Node};
use crate::collection::run::{EXPIRING, Run};
use crate::collection::tree::{Leaf, LeafRow, LooseLeaf, Shares, Tree};

/// An edge that is kept. Ordered as edges are.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TilePlace {
    order: u128,
    name: Box<[u8]>,
}

impl TilePlace {
    pub(super) fn of(edge: &Edge<'_>) -> TilePlace {
        let (order, name) = (edge.order, edge.name.into());
        TilePlace { order, name }
    }

    pub(super) fn edge(&self) -> Edge<'_> {
        let (order, name) = (self.order, &self.name[..]);
        Edge { order, name }
    }
}

/// Where a tile ends.
#[derive(Debug)]
pub(super) enum TileEnd {
    /// Where the next one begins; the last one has the last items.
    AtNext,
    /// Before a range of which nothing is known.
    At(Box<TilePlace>),
}

impl TileEnd {
    /// Whether a tile that begins before an edge, and is the last one that does, ends before it or there.
    pub(super) fn is_before(&self, edge: &Edge<'_>) -> bool {
        matches!(self, TileEnd::At(place) if place.edge() <= *edge)
    }
}

/// What is known of a range.
#[derive(Debug)]
pub(super) struct Tile<K> {
    pub(super) end: TileEnd,
    pub(super) items: TileItems<K>,
    pub(super) base: Base,
    /// Whether the record is all that it is.
    pub(super) is_whole: bool,
}

/// Items of a tile.
#[derive(Debug)]
pub(super) enum TileItems<K> {
    /// The items of a leaf record, unchanged.
    Leaf(LooseLeaf),
    Tree(Box<Tree<K>>),
    /// So many, in the record that the tile rests on, unchanged.
    Cold(u32),
    /// In the spill file, at this place.
    Spilled(u64),
}

/// What all tiles of a tree have in common.
#[derive(Debug)]
pub(super) struct Whole<K> {
    pub(super) kind: K,
    /// The seed of the instance, which leaf records have.
    pub(super) seed: u64,
    pub(super) leaf_max: usize,
}

impl<K: LeafKind + Clone> Whole<K> {
    fn empty(&self) -> Tree<K> {
        Tree::new(self.kind.clone(), self.leaf_max)
    }

    /// The leaf in `contents`, and where it begins. They were read of the record `base`, or were spilled of
    /// its items. The store notes if they are no leaf.
    fn leaf_in<'c>(
        &self,
        contents: &'c [u8],
        base: Base,
        store: &mut dyn TileStore,
    ) -> Option<(Edge<'c>, Run<'c>)> {
        let checked = LeafRecord::read(contents).and_then(|record| {
            let (from, to) = (record.from, record.to.as_ref());
            let run = self.kind.check_leaf(record.run, &from, to)?;
            Ok((from, run))
        });
        if checked.is_err() {
            store.note_damage(base);
        }
        checked.ok()
    }

    /// The leaf in `contents` as a tree. Without them, or if they are no leaf, it is empty: the store has
    /// noted why.
    fn tree_in(&self, contents: Option<&[u8]>, base: Base, store: &mut dyn TileStore) -> Tree<K> {
        let leaf = contents.and_then(|contents| self.leaf_in(contents, base, store));
        match leaf {
            Some((_, run)) => Tree::of_run(self.kind.clone(), self.leaf_max, run),
            None => self.empty(),
        }
    }
}

impl<K> TileItems<K> {
    /// Gives up the place of items that are not wanted.
    pub(super) fn forget(&self, store: &mut dyn TileStore) {
        if let TileItems::Spilled(at) = self {
            store.take(*at);
        }
    }
}

impl<K: LeafKind + Clone> TileItems<K> {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            TileItems::Leaf(leaf) => leaf.run().is_empty(),
            TileItems::Tree(tree) => tree.count() == 0,
            TileItems::Cold(_) | TileItems::Spilled(_) => false,
        }
    }

    /// The items as a tree, which may be changed. `base`: what the tile rests on.
    pub(super) fn tree(
        &mut self,
        whole: &Whole<K>,
        base: Base,
        store: &mut dyn TileStore,
    ) -> &mut Tree<K> {
        let loaded = match self {
            TileItems::Tree(_) => None,
            TileItems::Leaf(leaf) => {
                Some(Tree::of_run(whole.kind.clone(), whole.leaf_max, leaf.run()))
            }
            TileItems::Cold(_) => {
                let contents = store.record(base);
                Some(whole.tree_in(contents.as_deref(), base, store))
            }
            TileItems::Spilled(at) => {
                let bytes = store.take(*at);
                Some(whole.tree_in(bytes.as_deref(), base, store))
            }
        };
        if let Some(tree) = loaded {
            *self = TileItems::Tree(Box::new(tree));
        }
        match self {
            TileItems::Tree(tree) => tree,
            _ => unreachable!("it was made a tree"),
        }
    }
}

/// Whether what is left of a leaf that is not in memory takes less than half.
fn is_worth_it(leaf_bytes: usize, start: &Edge<'_>) -> bool {
    leaf_bytes > 2 * Node::cold_bytes(start.name)
}

impl<K: LeafKind + Clone> Tile<K> {
    /// The items as a tree, which is about to be changed.
    pub(super) fn changed(&mut self, whole: &Whole<K>, store: &mut dyn TileStore) -> &mut Tree<K> {
        self.is_whole = false;
        self.items.tree(whole, self.base, store)
    }

    /// Lets the items leave memory, if they may. The tile has the range `from..to` of a tree with this seed.
    /// Returns tiles that it gives a part of its range to.
    pub(super) fn leave(
        &mut self,
        (from, to): (&Edge<'_>, Option<&Edge<'_>>),
        seed: u64,
        store: &mut dyn TileStore,
    ) -> Vec<(TilePlace, Tile<K>)> {
        match &self.items {
            TileItems::Leaf(leaf) => {
                let run = leaf.run();
                let may_leave = !run.is_empty() && !K::stays(from) && run.flags() & EXPIRING == 0;
                if self.is_whole && may_leave && is_worth_it(leaf.bytes(), from) {
                    self.items = TileItems::Cold(run.count() as u32);
                }
                Vec::new()
            }
            TileItems::Tree(tree) if tree.count() > 0 && tree.next_due().is_none() => {
                let spilled = spill(tree, (from, to), seed, self.base, store);
                let mut tiles = spilled.into_iter();
                let Some((_, first)) = tiles.next() else {
                    return Vec::new();
                };
                let end = std::mem::replace(self, first).end;
                let mut others: Vec<_> = tiles.collect();
                match others.last_mut() {
                    Some((_, last)) => last.end = end,
                    None => self.end = end,
                }
                others
            }
            _ => Vec::new(),
        }
    }

    /// Puts the tile behind the others of a tree.
    pub(super) fn finish(
        self,
        from: &Edge<'_>,
        whole: &Whole<K>,
        row: &mut LeafRow<K>,
        ends: &mut Ending<'_, '_, '_>,
    ) {
        let (base, is_whole) = (self.base, self.is_whole);
        match self.items {
            TileItems::Leaf(leaf) => {
                ends.show(leaf.run());
                row.take(from.order, leaf, base, is_whole);
            }
            TileItems::Tree(mut tree) => {
                let leaves = tree.view().leaves(&Edge::default());
                leaves.for_each(|leaf| ends.show(leaf.run()));
                row.adopt(from, &mut tree, base, is_whole);
            }
            TileItems::Cold(count) => {
                if ends.see.is_some()
                    && let Some(contents) = ends.store.record(base)
                    && let Some((_, run)) = whole.leaf_in(&contents, base, ends.store)
                {
                    ends.show(run);
                }
                row.cold(from, count.into(), base);
            }
            TileItems::Spilled(at) => {
                if let Some(contents) = ends.store.take(at) {
                    finish_spilled(&contents, base, whole, row, ends);
                }
            }
        }
    }
}

/// Puts a leaf that was spilled behind the others. It rests on `base`, if it cannot be written.
fn finish_spilled<K: LeafKind + Clone>(
    contents: &[u8],
    base: Base,
    whole: &Whole<K>,
    row: &mut LeafRow<K>,
    ends: &mut Ending<'_, '_, '_>,
) {
    let Some((start, run)) = whole.leaf_in(contents, base, ends.store) else {
        return;
    };
    ends.show(run);
    let written = ends.write.as_mut().and_then(|write| write(contents));
    if written.is_some() {
        ends.lost.push(base);
    }
    match written {
        Some(fresh) if is_worth_it(run.bytes().len(), &start) && !K::stays(&start) => {
            row.cold(&start, run.count() as u64, fresh);
        }
        _ => row.push(&Leaf {
            start,
            run,
            base: written.unwrap_or(base),
            is_whole: written.is_some(),
        }),
    }
}

/// Is shown the runs of all leaves.
pub(in crate::collection) type See<'s> = &'s mut dyn FnMut(Run<'_>);

/// What the end of tiles needs.
pub(super) struct Ending<'e, 'w, 's> {
    /// Gets what nothing rests on any more.
    pub(super) lost: &'e mut Vec<Base>,
    pub(super) store: &'e mut dyn TileStore,
    /// Puts leaves that were spilled into the log; without it they come back into memory.
    pub(super) write: Option<WriteLeaf<'w>>,
    pub(super) see: Option<See<'s>>,
}

impl Ending<'_, '_, '_> {
    fn show(&mut self, run: Run<'_>) {
        if let Some(see) = &mut self.see {
            see(run);
        }
    }
}

/// Puts the leaves of a tree that has the range `from..to` into the spill file. Returns a tile for each, or
/// none if there is no room. All rest on `base`. The end of the last is not set.
fn spill<K: LeafKind>(
    tree: &Tree<K>,
    (from, to): (&Edge<'_>, Option<&Edge<'_>>),
    seed: u64,
    base: Base,
    store: &mut dyn TileStore,
) -> Vec<(TilePlace, Tile<K>)> {
    let (mut logged, mut contents) = (Vec::new(), Vec::new());
    let mut shares = Shares::new(base, tree.count() as usize);
    // The range of a leaf without items is a part of that of the one before.
    let leaves = tree.view().leaves(&Edge::default());
    let mut leaves = leaves.filter(|leaf| leaf.count > 0).peekable();
    let (mut tiles, mut start) = (Vec::new(), *from);
    while let Some(leaf) = leaves.next() {
        let end = leaves.peek().map(|next| next.start());
        let record = LeafRecord {
            seed,
            from: start,
            to: end.or(to.copied()),
            run: leaf.run().logged(&mut logged).bytes(),
        };
        contents.clear();
        record.write(&mut contents);
        let Some(at) = store.put(&contents) else {
            let tiles: Vec<(TilePlace, Tile<K>)> = tiles;
            tiles.iter().for_each(|(_, tile)| tile.items.forget(store));
            return Vec::new();
        };
        let tile = Tile {
            end: TileEnd::AtNext,
            items: TileItems::Spilled(at),
            base: shares.next(leaf.count as usize),
            is_whole: false,
        };
        tiles.push((TilePlace::of(&start), tile));
        start = end.unwrap_or(start);
    }
    tiles
}
