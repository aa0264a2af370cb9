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
use crate::collection::log::leaf::{LeafRecord, WriteLeaf};
use crate::collection::log::store::TileStore;
use crate::collection::log::tile::{Ending, See, Tile, TileEnd, TileItems, TilePlace, Whole};
use crate::collection::log::waiting::{Changes, WAITING_MAX, Waiting};
use crate::collection::node::Base;
use crate::collection::run::{Damage, Item, PAIRS};
use crate::collection::stream::IdRange;
use crate::collection::tree::{LeafRow, LooseLeaf, Tree};

/// A tile with at most so many times as many items as changes is made anew.
const MERGED_SHARE: u64 = 8;

/// A tile in which elements are edited leaves memory when it takes as much as so many leaves, if memory is
/// short.
const EDITED_LEAVES: usize = 16;

/// The tile that covers an edge. Nothing is allocated.
fn covering<'t, K>(
    tiles: &'t mut BTreeMap<TilePlace, Tile<K>>,
    edge: &Edge<'_>,
) -> Option<(&'t TilePlace, &'t mut Tile<K>)> {
    let end = match edge.order.checked_add(1) {
        Some(order) => Excluded(TilePlace::of(&Edge::before(order))),
        None => Unbounded,
    };
    let mut before = tiles.range_mut((Unbounded, end)).rev();
    let (from, tile) = before.find(|(from, _)| from.edge() <= *edge)?;
    (!tile.end.is_before(edge)).then_some((from, tile))
}

impl<K: LeafKind + Clone> Tile<K> {
    /// Applies changes of its items.
    fn apply(&mut self, whole: &Whole<K>, changes: Changes<'_>, store: &mut dyn TileStore) {
        let items = self.changed(whole, store);
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
        Edit::Put(..) | Edit::Cut(..) | Edit::Insert(..) | Edit::CutIds(..) => {}
    }
}

/// A tile in which elements are edited while memory is short.
#[derive(Debug)]
struct Edited {
    at: TilePlace,
    /// Bytes of memory that it may take before it leaves.
    most: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Tiles<K> {
    whole: Whole<K>,
    tiles: BTreeMap<TilePlace, Tile<K>>,
    /// The tile in which elements were edited while memory was short.
    edited: Option<Edited>,
    /// Where [`Tiles::leave`] begins.
    hand: TilePlace,
}

impl<K: LeafKind + Clone> Tiles<K> {
    /// No range is known. The tree will have leaves of up to `leaf_max` bytes.
    pub fn new(kind: K, leaf_max: usize) -> Tiles<K> {
        Tiles {
            whole: Whole {
                seed: kind.seed(),
                kind,
                leaf_max,
            },
            tiles: BTreeMap::new(),
            edited: None,
            hand: TilePlace::default(),
        }
    }

    /// The same of a tree whose kind does not have the seed of its instance.
    pub(in crate::collection) fn of_seed(mut self, seed: u64) -> Tiles<K> {
        self.whole.seed = seed;
        self
    }

    /// What is in the leaves.
    pub fn kind(&self) -> &K {
        &self.whole.kind
    }

    /// Bytes of the leaves, at most.
    pub(in crate::collection) fn leaf_max(&self) -> usize {
        self.whole.leaf_max
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
        store: &mut dyn TileStore,
    ) -> Result<(), Damage> {
        let to = record.to.as_ref();
        let run = self.whole.kind.check_leaf(record.run, &record.from, to)?;
        self.clear(&record.from, to, lost, store);
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
        let mut tile = Tile {
            end: self.end_at(to),
            items,
            base,
            is_whole: is_leaf,
        };
        let others = match store.is_short() {
            true => tile.leave((&record.from, to), self.whole.seed, store),
            false => Vec::new(),
        };
        self.tiles.extend(others);
        let from = TilePlace::of(&record.from);
        if let Some((_, before)) = self.tiles.range_mut(..&from).next_back()
            && matches!(&before.end, TileEnd::At(end) if **end == from)
        {
            before.end = TileEnd::AtNext;
        }
        self.tiles.insert(from, tile);
        Ok(())
    }

    /// The end of a tile that ends at `to`, where no other tile is in its range.
    fn end_at(&self, to: Option<&Edge<'_>>) -> TileEnd {
        match to.map(TilePlace::of) {
            Some(to) if !self.tiles.contains_key(&to) => TileEnd::At(Box::new(to)),
            _ => TileEnd::AtNext,
        }
    }

    /// Where the tile that begins at `from` ends; `None` if it has the last items.
    fn end_of(&self, from: &TilePlace) -> Option<TilePlace> {
        match &self.tiles.get(from)?.end {
            TileEnd::At(end) => Some((**end).clone()),
            TileEnd::AtNext => {
                let mut behind = self.tiles.range((Excluded(from), Unbounded));
                behind.next().map(|(next, _)| next.clone())
            }
        }
    }

    /// Takes `from..to` out of the tiles. A tile that begins at `from` follows.
    fn clear(
        &mut self,
        from: &Edge<'_>,
        to: Option<&Edge<'_>>,
        lost: &mut Vec<Base>,
        store: &mut dyn TileStore,
    ) {
        let (start, end) = (TilePlace::of(from), to.map(TilePlace::of));
        let is_within = |its: &Option<TilePlace>| match (its, &end) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(its), Some(end)) => its <= end,
        };
        // What begins before, and reaches into the range.
        let before = self.tiles.range(..&start).next_back();
        if let Some(at) = before.map(|(at, _)| at.clone())
            && let its_end = self.end_of(&at)
            && its_end.as_ref().is_none_or(|its| *its > start)
        {
            let is_inside = is_within(&its_end);
            let before = self.tiles.get_mut(&at).expect("it was just found");
            let items = before.changed(&self.whole, store);
            let rest = match to.filter(|_| !is_inside) {
                Some(to) => {
                    let mut rest = items.copy();
                    rest.cut(&Edge::default(), Some(to));
                    Some((to, rest))
                }
                None => None,
            };
            items.cut(from, None);
            let end = std::mem::replace(&mut before.end, TileEnd::AtNext);
            if let Some((to, rest)) = rest {
                let share = before.base.share / 2;
                before.base.share -= share;
                let base = Base {
                    share,
                    ..before.base
                };
                let rest = Tile {
                    end,
                    items: TileItems::Tree(Box::new(rest)),
                    base,
                    is_whole: false,
                };
                self.tiles.insert(TilePlace::of(to), rest);
            }
        }
        // What begins inside.
        let inside = match &end {
            None => (Included(&start), Unbounded),
            Some(end) => (Included(&start), Excluded(end)),
        };
        let inside: Vec<_> = self.tiles.range(inside).map(|(at, _)| at.clone()).collect();
        for at in inside {
            let is_inside = is_within(&self.end_of(&at));
            let mut tile = self.tiles.remove(&at).expect("it was just found");
            match to {
                Some(to) if !is_inside => {
                    let items = tile.changed(&self.whole, store);
                    items.cut(&Edge::default(), Some(to));
                    self.tiles.insert(TilePlace::of(to), tile);
                }
                _ => {
                    tile.items.forget(store);
                    lost.push(tile.base);
                }
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
        store: &mut dyn TileStore,
    ) {
        let changes_max = store.changes_max();
        let mut waiting = Waiting::of(bytes);
        let mut from = 0;
        for (number, len) in lens.enumerate() {
            let record = from..from + len;
            from = record.end;
            let waits = match K::IS_KEYED && from <= WAITING_MAX {
                true => waiting.add(&self.whole.kind, record.clone()),
                false => Ok(false),
            };
            let edited = match waits {
                Ok(false) => {
                    self.settle(&mut waiting, store);
                    self.edit_singly(&bytes[record], store)
                }
                other => other.map(drop),
            };
            if let Err(problem) = edited {
                damage(number, problem);
            }
            if waiting.len() >= changes_max {
                self.settle(&mut waiting, store);
            }
        }
        self.settle(&mut waiting, store);
    }

    /// Applies a record of edits, one after the other.
    ///
    /// # Errors
    /// The record makes no sense. Edits before the place of the damage are applied.
    pub(super) fn edit_singly(
        &mut self,
        bytes: &[u8],
        store: &mut dyn TileStore,
    ) -> Result<(), Damage> {
        for edit in edits::read(bytes, K::FLAGS & PAIRS != 0) {
            let edit = edit?;
            match (edit.key().filter(|_| K::IS_KEYED), edit) {
                (Some(key), _) => self.edit_item(&key, &edit, store),
                (None, Edit::CutIds(range)) => self.cut_ids(&range, store)?,
                (None, _) => self.edit_elements(edit, store)?,
            }
        }
        Ok(())
    }

    /// Applies an edit of an item to the tile that has it.
    fn edit_item(&mut self, key: &Item<'_>, edit: &Edit<'_>, store: &mut dyn TileStore) {
        let mut scratch = [0; DECIMAL_MAX];
        let edge = Edge::of(&self.whole.kind, key, &mut scratch);
        if let Some((_, tile)) = covering(&mut self.tiles, &edge) {
            apply(tile.changed(&self.whole, store), edit);
        }
    }

    /// Applies the changes that wait.
    fn settle(&mut self, waiting: &mut Waiting<'_>, store: &mut dyn TileStore) {
        if waiting.is_empty() {
            return;
        }
        let seed = self.whole.seed;
        let mut rest = waiting.sorted(&self.whole.kind);
        while let Some(first) = rest.first::<K>() {
            let mut scratch = [0; DECIMAL_MAX];
            let edge = Edge::of(&self.whole.kind, &first, &mut scratch);
            let Some((from, _)) = covering(&mut self.tiles, &edge) else {
                // The leaf record that has its result follows.
                rest = rest.skip_one();
                continue;
            };
            let from = from.clone();
            let mut tiles = self.tiles.range_mut(&from..);
            let (_, tile) = tiles.next().expect("it was just found");
            let end;
            let to = match &tile.end {
                TileEnd::AtNext => tiles.next().map(|(next, _)| next.edge()),
                TileEnd::At(place) => {
                    end = TilePlace::clone(place);
                    Some(end.edge())
                }
            };
            let (here, others) = match &to {
                None => (rest, rest.none()),
                Some(to) => rest.split(&self.whole.kind, to),
            };
            tile.apply(&self.whole, here, store);
            if store.is_short() {
                let parts = tile.leave((&from.edge(), to.as_ref()), seed, store);
                self.tiles.extend(parts);
            }
            rest = others;
        }
        waiting.clear();
    }

    /// Removes the items of a range of IDs from the tiles that have them.
    fn cut_ids(&mut self, range: &IdRange, store: &mut dyn TileStore) -> Result<(), Damage> {
        if !K::HAS_SECTIONS {
            return Err(Damage::Kind);
        }
        range.with_edges(|from, to| {
            let (start, end) = (TilePlace::of(from), TilePlace::of(to));
            let first = self.reaching(&start);
            for (_, tile) in self.tiles.range_mut(first..end) {
                if !tile.end.is_before(from) {
                    tile.changed(&self.whole, store).cut(from, Some(to));
                }
            }
        });
        Ok(())
    }

    /// Applies an edit of elements to the tiles that have them.
    fn edit_elements(&mut self, edit: Edit<'_>, store: &mut dyn TileStore) -> Result<(), Damage> {
        if K::IS_KEYED || edit.key().is_some() {
            return Err(Damage::Kind);
        }
        let Some((from, to)) = edit.numbers().filter(|(from, to)| from < to) else {
            return Ok(());
        };
        let place = |number| TilePlace::of(&Edge::before(Elements::order_of(number)));
        let (start, end) = (place(from), place(to));
        let mut first = self.reaching(&start);
        if store.is_short() && self.leave_edited(&first, store) {
            first = self.reaching(&start);
        }
        for (_, tile) in self.tiles.range_mut(first..end) {
            if tile.end.is_before(&start.edge()) {
                continue;
            }
            let items = tile.changed(&self.whole, store);
            match edit {
                Edit::Put(number, element) => items.put_number(number, element),
                Edit::Cut(from, to) => drop(items.cut_numbers(from, to)),
                _ => return Err(Damage::Kind),
            }
        }
        Ok(())
    }

    /// Lets items leave memory, tile by tile, until there is room. Begins where it has ended the last time.
    /// Returns whether all tiles were looked at.
    pub fn leave(&mut self, store: &mut dyn TileStore) -> bool {
        let (seed, mut parts) = (self.whole.seed, Vec::new());
        let mut tiles = self
            .tiles
            .range_mut(std::mem::take(&mut self.hand)..)
            .peekable();
        while let Some((from, tile)) = tiles.next() {
            let end = match &tile.end {
                TileEnd::At(end) => Some(TilePlace::clone(end)),
                TileEnd::AtNext => tiles.peek().map(|(next, _)| TilePlace::clone(next)),
            };
            let to = end.as_ref().map(TilePlace::edge);
            parts.extend(tile.leave((&from.edge(), to.as_ref()), seed, store));
            if !store.is_nearly_short()
                && let Some((next, _)) = tiles.peek()
            {
                self.hand = TilePlace::clone(next);
                break;
            }
        }
        self.tiles.extend(parts);
        self.hand == TilePlace::default()
    }

    /// Where the last tile begins that begins before a place or there; without one the place.
    fn reaching(&self, place: &TilePlace) -> TilePlace {
        let before = self.tiles.range(..=place).next_back();
        before.map_or(place, |(at, _)| at).clone()
    }

    /// Lets items leave memory before elements are edited in the tile at `next`: those of the tile in which
    /// elements were edited last. Elements that follow each other are mostly in one tile, so that leaves only
    /// when it has become large. Returns whether it was that.
    fn leave_edited(&mut self, next: &TilePlace, store: &mut dyn TileStore) -> bool {
        let usual = EDITED_LEAVES * self.whole.leaf_max;
        let mut most = match self.edited.take() {
            Some(edited) if edited.at == *next => edited.most,
            before => {
                if let Some(before) = before {
                    self.leave_at(&before.at, store);
                }
                usual
            }
        };
        let is_large = self.bytes_at(next) > most;
        if is_large {
            self.leave_at(next, store);
            // If the disk has taken nothing, it is tried again only after much has come.
            most = usual.max(2 * self.bytes_at(next));
        }
        let at = next.clone();
        self.edited = Some(Edited { at, most });
        is_large
    }

    /// Bytes of memory of the items of the tile at a place, if they have changed.
    fn bytes_at(&self, place: &TilePlace) -> usize {
        match self.tiles.get(place).map(|tile| &tile.items) {
            Some(TileItems::Tree(tree)) => tree.bytes(),
            _ => 0,
        }
    }

    /// Lets the items of the tile leave memory that begins at a place.
    fn leave_at(&mut self, from: &TilePlace, store: &mut dyn TileStore) {
        let end = self.end_of(from);
        let to = end.as_ref().map(TilePlace::edge);
        if let Some(tile) = self.tiles.get_mut(from) {
            let range = (&from.edge(), to.as_ref());
            let parts = tile.leave(range, self.whole.seed, store);
            self.tiles.extend(parts);
        }
    }

    /// Appends what rests on records to `lost`: the tree is not wanted.
    pub fn discard(self, lost: &mut Vec<Base>) {
        lost.extend(self.tiles.into_values().map(|tile| tile.base));
    }

    /// Whether some of the items are in the spill file.
    pub fn has_spilled(&self) -> bool {
        let mut tiles = self.tiles.values();
        tiles.any(|tile| matches!(tile.items, TileItems::Spilled(_)))
    }

    /// Whether no range is missing.
    pub fn is_whole(&self) -> bool {
        let first = self.tiles.first_key_value();
        let is_at_next = |tile: &Tile<K>| matches!(tile.end, TileEnd::AtNext);
        first.is_some_and(|(from, _)| *from == TilePlace::default())
            && self.tiles.values().all(is_at_next)
    }

    /// The tree of all tiles; `None` if a range is missing. What nothing rests on any more is appended to
    /// `lost`. `write` puts leaves that were spilled into the log; without it they come back into memory.
    /// `see` is shown all items.
    pub(in crate::collection) fn finish(
        mut self,
        lost: &mut Vec<Base>,
        store: &mut dyn TileStore,
        write: Option<WriteLeaf<'_>>,
        see: Option<See<'_>>,
    ) -> Option<Tree<K>> {
        if !self.is_whole() {
            return None;
        }
        self.join_empty(lost, store);
        let mut row = LeafRow::new(self.whole.kind.clone(), self.whole.leaf_max);
        let mut ending = Ending {
            lost,
            store,
            write,
            see,
        };
        for (from, tile) in self.tiles {
            tile.finish(&from.edge(), &self.whole, &mut row, &mut ending);
        }
        Some(row.finish())
    }

    /// Gives the range of a tile without items to the one before, which gets the older base of the two.
    fn join_empty(&mut self, lost: &mut Vec<Base>, store: &mut dyn TileStore) {
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
            before.end = gone.end;
            before.is_whole = false;
            if let TileItems::Cold(_) | TileItems::Spilled(_) = before.items {
                // Its record has another range.
                before.changed(&self.whole, store);
            }
            let newer = match gone.base.at < before.base.at {
                true => std::mem::replace(&mut before.base, gone.base),
                false => gone.base,
            };
            lost.push(newer);
        }
    }
}
