//! A tree of any kind, as an entry of the keyspace holds it, one moment of it, and its records in a log.

use std::num::NonZeroU32;

use super::cell::{Cell, DECIMAL_MAX};
use super::clones::Frozen;
use super::kind::{Edge, Elements, Fields, LeafKind, LeafPlace, Members, Scores};
use super::log::edits::{self, Edit};
use super::log::leaf::{LeafRecord, WriteLeaf};
use super::log::ledger::{Descriptor, Logged};
use super::log::numbered::NumberedEdits;
use super::node::Base;
use super::run::{Damage, Fraction, Item, PAIRS, Run};
use super::sorted::SortedSet;
use super::stream::{Head, StreamItems};
use super::tree::{End, LEAF_MAX, Put, Tree, list_leaf_max};
use super::view::{LeafRef, lower};
use crate::entry::Kind;
use crate::hash::Seed;

/// Bytes of a run up to which a collection is inside its entry.
pub const SMALL_BYTES: usize = 4096;

/// A collection that is too large for its entry.
#[derive(Debug)]
pub enum Collection {
    /// A hash.
    Hash(Tree<Fields>),
    /// A set.
    Set(Tree<Members>),
    /// A sorted set.
    SortedSet(SortedSet),
    /// A list.
    List(Tree<Elements>),
    /// A stream.
    Stream(Tree<StreamItems>),
}

/// A collection at one moment.
#[derive(Debug)]
pub enum Moment {
    /// A hash.
    Hash(Frozen<Fields>),
    /// A set.
    Set(Frozen<Members>),
    /// A sorted set.
    SortedSet(Frozen<Scores>),
    /// A list.
    List(Frozen<Elements>),
    /// A stream.
    Stream(Frozen<StreamItems>),
}

impl Moment {
    /// Drops it, if that takes few steps.
    pub(crate) fn drop_if_light(self) -> Option<Moment> {
        match self {
            Moment::Hash(frozen) => frozen.drop_if_light().map(Moment::Hash),
            Moment::Set(frozen) => frozen.drop_if_light().map(Moment::Set),
            Moment::SortedSet(frozen) => frozen.drop_if_light().map(Moment::SortedSet),
            Moment::List(frozen) => frozen.drop_if_light().map(Moment::List),
            Moment::Stream(frozen) => frozen.drop_if_light().map(Moment::Stream),
        }
    }
}

/// What one of the enums above says of its content, whatever it is: `each!(Collection, value, tree => ...)`.
macro_rules! each {
    ($of:ident, $value:expr, $inner:ident => $result:expr) => {
        match $value {
            $of::Hash($inner) => $result,
            $of::Set($inner) => $result,
            $of::SortedSet($inner, ..) => $result,
            $of::List($inner) => $result,
            $of::Stream($inner) => $result,
        }
    };
}

pub(super) use each;

/// Where an item that is not there belongs in a run of a kind.
pub(crate) fn place_in_run(kind: Kind, run: Run<'_>, item: &Item<'_>) -> usize {
    match kind {
        Kind::SortedSet => {
            let mut scratch = [0; DECIMAL_MAX];
            let edge = Edge::of(&Scores, item, &mut scratch);
            lower(&Scores, run, &edge, Fraction::HALF)
        }
        Kind::Stream => place_in_stream(run, item).0,
        Kind::String | Kind::List | Kind::Hash | Kind::Set => run.count(),
    }
}

/// Where an item is in the run of a small stream, or belongs; whether it is there.
pub(crate) fn place_in_stream(run: Run<'_>, item: &Item<'_>) -> (usize, bool) {
    // The first item of all is the head.
    let kind = Head::of(item).map_or_else(
        || StreamItems::of_run(run),
        |head| StreamItems::new(head.base),
    );
    let mut scratch = [0; DECIMAL_MAX];
    let edge = Edge::of(&kind, item, &mut scratch);
    let place = lower(&kind, run, &edge, Fraction::HALF);
    let found = run.get(place);
    let is_it = |found: Item<'_>| found.name == item.name && kind.order(&found) == edge.order;
    (place, found.is_some_and(is_it))
}

/// Whether an item comes after all those of the run of a small stream that has some.
pub(crate) fn is_last_in_stream(run: Run<'_>, item: &Item<'_>) -> bool {
    let (kind, mut scratch) = (StreamItems::of_run(run), [0; DECIMAL_MAX]);
    let edge = Edge::of(&kind, item, &mut scratch);
    run.last_start()
        .is_some_and(|at| kind.is_before_at(run, at, &edge))
}

/// The seed of the tree that a run becomes: that of a stream is in its run.
pub(crate) fn seed_of(kind: Kind, run: Run<'_>, other: Seed) -> Seed {
    match kind {
        Kind::Stream => Seed::new(StreamItems::of_run(run).base()),
        Kind::String | Kind::List | Kind::Hash | Kind::Set | Kind::SortedSet => other,
    }
}

/// A kind whose trees an entry may hold.
pub trait Held: LeafKind + Sized + 'static {
    /// What it is to a key.
    const KIND: Kind;

    /// The tree; `None` if it is of another kind.
    fn tree(collection: &Collection) -> Option<&Tree<Self>>;

    /// The tree at a moment; `None` if it is of another kind.
    fn frozen(moment: &Moment) -> Option<&Frozen<Self>>;
}

impl Held for Fields {
    const KIND: Kind = Kind::Hash;

    fn tree(collection: &Collection) -> Option<&Tree<Fields>> {
        match collection {
            Collection::Hash(tree) => Some(tree),
            _ => None,
        }
    }

    fn frozen(moment: &Moment) -> Option<&Frozen<Fields>> {
        match moment {
            Moment::Hash(frozen) => Some(frozen),
            _ => None,
        }
    }
}

impl Held for Members {
    const KIND: Kind = Kind::Set;

    fn tree(collection: &Collection) -> Option<&Tree<Members>> {
        match collection {
            Collection::Set(tree) => Some(tree),
            _ => None,
        }
    }

    fn frozen(moment: &Moment) -> Option<&Frozen<Members>> {
        match moment {
            Moment::Set(frozen) => Some(frozen),
            _ => None,
        }
    }
}

impl Held for Scores {
    const KIND: Kind = Kind::SortedSet;

    fn tree(collection: &Collection) -> Option<&Tree<Scores>> {
        match collection {
            Collection::SortedSet(set) => Some(set),
            _ => None,
        }
    }

    fn frozen(moment: &Moment) -> Option<&Frozen<Scores>> {
        match moment {
            Moment::SortedSet(frozen) => Some(frozen),
            _ => None,
        }
    }
}

impl Held for Elements {
    const KIND: Kind = Kind::List;

    fn tree(collection: &Collection) -> Option<&Tree<Elements>> {
        match collection {
            Collection::List(tree) => Some(tree),
            _ => None,
        }
    }

    fn frozen(moment: &Moment) -> Option<&Frozen<Elements>> {
        match moment {
            Moment::List(frozen) => Some(frozen),
            _ => None,
        }
    }
}

impl Held for StreamItems {
    const KIND: Kind = Kind::Stream;

    fn tree(collection: &Collection) -> Option<&Tree<StreamItems>> {
        match collection {
            Collection::Stream(tree) => Some(tree),
            _ => None,
        }
    }

    fn frozen(moment: &Moment) -> Option<&Frozen<StreamItems>> {
        match moment {
            Moment::Stream(frozen) => Some(frozen),
            _ => None,
        }
    }
}

/// Flags of the runs of small collections of a kind.
///
/// # Panics
/// There are no runs of this kind.
pub fn run_flags(kind: Kind) -> u8 {
    match kind {
        Kind::Hash => Fields::SMALL_FLAGS,
        Kind::Set => Members::SMALL_FLAGS,
        Kind::SortedSet => Scores::SMALL_FLAGS,
        Kind::List => Elements::SMALL_FLAGS,
        Kind::Stream => StreamItems::SMALL_FLAGS,
        Kind::String => unreachable!("a string is no collection"),
    }
}

impl Collection {
    /// A collection without items, of the kind and the seed that a log says.
    ///
    /// # Panics
    /// There are no trees of this kind.
    pub(crate) fn unfilled(kind: Kind, descriptor: Descriptor) -> Collection {
        Collection::new(kind, Seed::new(descriptor.seed), LEAF_MAX)
    }

    /// A collection without items, whose leaves have up to `leaf_max` bytes, or those of a long list more.
    ///
    /// # Panics
    /// There are no trees of this kind.
    pub fn new(kind: Kind, seed: Seed, leaf_max: usize) -> Collection {
        match kind {
            Kind::Hash => Collection::Hash(Tree::new(Fields { seed }, leaf_max)),
            Kind::Set => Collection::Set(Tree::new(Members { seed }, leaf_max)),
            Kind::SortedSet => Collection::SortedSet(SortedSet::new(seed, leaf_max)),
            Kind::List => Collection::List(Tree::new(Elements, list_leaf_max(leaf_max))),
            Kind::Stream => {
                let kind = StreamItems::new(seed.random());
                Collection::Stream(Tree::new(kind, leaf_max))
            }
            Kind::String => unreachable!("a string is no collection"),
        }
    }

    /// Sets an item: one of the same name is replaced. An element of a list comes behind all others.
    pub fn set(&mut self, item: &Item<'_>) -> Put {
        if let Collection::List(tree) = self {
            tree.tally = 0;
            tree.push(End::Back, item.name, &mut NumberedEdits::default());
            return Put::Added;
        }
        each!(Collection, self, tree => tree.set(item))
    }

    /// The list, to be changed.
    ///
    /// # Panics
    /// It is none.
    #[inline]
    pub fn elements_mut(&mut self) -> &mut Tree<Elements> {
        match self {
            Collection::List(tree) => {
                tree.tally = 0;
                tree
            }
            _ => unreachable!("the entry that has it is a list"),
        }
    }

    /// The number that the owner of a list keeps until its elements change.
    pub(crate) fn tally(&self) -> Option<NonZeroU32> {
        match self {
            Collection::List(tree) => NonZeroU32::new(tree.tally),
            _ => None,
        }
    }

    /// Keeps a number until the elements of the list change.
    pub(crate) fn set_tally(&mut self, tally: NonZeroU32) {
        if let Collection::List(tree) = self {
            tree.tally = tally.get();
        }
    }

    /// Removes the item of a name; whether there was one.
    pub fn remove_name(&mut self, name: Cell<'_>) -> bool {
        each!(Collection, self, tree => tree.remove_name(name))
    }

    /// Lets an item expire at this time (Unix, ms), or never; whether there is one.
    pub fn reschedule(&mut self, name: Cell<'_>, expiry: Option<u64>) -> bool {
        each!(Collection, self, tree => tree.reschedule(name, expiry))
    }

    /// Reports what nothing rests on any more since it was last called.
    pub fn tell_lost(&mut self) {
        each!(Collection, self, tree => tree.tell_lost());
    }

    /// Bytes of memory, without what only moments need.
    pub fn bytes(&self) -> usize {
        each!(Collection, self, tree => tree.bytes())
    }

    /// This moment of it, in O(1).
    pub fn freeze(&mut self) -> Moment {
        match self {
            Collection::Hash(tree) => Moment::Hash(tree.freeze()),
            Collection::Set(tree) => Moment::Set(tree.freeze()),
            Collection::SortedSet(set) => Moment::SortedSet(set.freeze()),
            Collection::List(tree) => Moment::List(tree.freeze()),
            Collection::Stream(tree) => Moment::Stream(tree.freeze()),
        }
    }

    /// How many items there are.
    pub fn count(&self) -> u64 {
        each!(Collection, self, tree => tree.count())
    }

    /// A time at or before which no item expires; none expires at all if there is none.
    #[inline]
    pub fn next_due(&self) -> Option<u64> {
        each!(Collection, self, tree => tree.next_due())
    }

    /// Removes items that have expired at `now`: see [`Tree::remove_due`].
    pub fn remove_due(&mut self, now: u64, most: usize, visit: &mut dyn FnMut(&Item<'_>)) -> usize {
        let looked_at = each!(Collection, self, tree => tree.remove_due(now, most, visit));
        self.tell_lost();
        looked_at
    }

    /// Whether an item has not expired at `now`.
    pub(crate) fn has_live_item(&self, now: u64) -> bool {
        each!(Collection, self, tree => tree.has_live_item(now))
    }

    /// What its log knows of it.
    #[inline]
    pub fn logged(&self) -> &Logged {
        each!(Collection, self, tree => &tree.logged)
    }

    /// What the record of its key has in its place; `None` if its leaves are not in the log.
    pub fn descriptor(&self) -> Option<Descriptor> {
        let (instance, _) = self.logged().place()?;
        let seed = self.seed();
        Some(Descriptor { instance, seed })
    }

    /// The seed of the order keys.
    pub(super) fn seed(&self) -> u64 {
        match self {
            Collection::Hash(tree) => tree.kind.seed.random(),
            Collection::Set(tree) => tree.kind.seed.random(),
            Collection::SortedSet(set) => set.seed.random(),
            Collection::List(_) => 0,
            Collection::Stream(tree) => tree.kind.base(),
        }
    }

    /// Writes all leaves. What no leaf rests on any more is appended to `lost`. Returns false if there is no
    /// room for all.
    pub fn write_leaves(&self, lost: &mut Vec<Base>, write: WriteLeaf<'_>) -> bool {
        let (seed, all) = (self.seed(), (&Edge::default(), None));
        each!(Collection, self, tree => tree.write_leaves(seed, all, None, &|_| true, lost, write))
    }

    /// Writes the leaves that rest on no record. Returns false if there is no room for all.
    pub(super) fn write_missing_leaves(&self, write: WriteLeaf<'_>) -> bool {
        let (seed, all) = (self.seed(), (&Edge::default(), None));
        let is_missing = |leaf: &LeafRef<'_>| leaf.base().at == 0;
        each!(Collection, self, tree => {
            tree.write_leaves(seed, all, None, &is_missing, &mut Vec::new(), write)
        })
    }

    /// Shows all items, which are in memory.
    pub(super) fn each(&self, visit: &mut dyn FnMut(&Item<'_>)) {
        each!(Collection, self, tree => {
            let leaves = tree.view().leaves(&Edge::default());
            leaves.for_each(|leaf| leaf.run().iter().for_each(|item| visit(&item)));
        });
    }

    /// Notes what all leaves rest on, in their order.
    pub fn set_bases(&self, bases: impl IntoIterator<Item = Base>) {
        let leaves = each!(Collection, self, tree => tree.view().leaves(&Edge::default()));
        leaves
            .zip(bases)
            .for_each(|(leaf, base)| leaf.set_whole_base(base));
    }

    /// Writes the leaves that a leaf record of the log at `at` is still needed for: those in its range that
    /// rest on it or on an older one. As [`Collection::write_leaves`].
    pub fn replace_leaf(
        &self,
        at: u64,
        record: &LeafRecord<'_>,
        lost: &mut Vec<Base>,
        write: WriteLeaf<'_>,
    ) -> bool {
        let (from, to) = (&record.from, record.to.as_ref());
        let known = Some((at, record));
        let is_stale = |leaf: &LeafRef<'_>| leaf.base().at <= at;
        each!(Collection, self, tree => {
            tree.write_leaves(record.seed, (from, to), known, &is_stale, lost, write)
        })
    }

    /// Writes the leaves that a record of edits at `at` is still needed for: those that cover its names and
    /// rest on an older record. As [`Collection::write_leaves`].
    ///
    /// # Errors
    /// The record makes no sense.
    pub fn replace_edits(
        &self,
        at: u64,
        bytes: &[u8],
        lost: &mut Vec<Base>,
        write: WriteLeaf<'_>,
    ) -> Result<bool, Damage> {
        let seed = self.seed();
        each!(Collection, self, tree => tree.write_amended(seed, at, bytes, lost, write))
    }

    /// Writes the leaf that begins at a place. As [`Collection::write_leaves`].
    pub fn write_leaf(
        &self,
        place: &LeafPlace,
        lost: &mut Vec<Base>,
        write: WriteLeaf<'_>,
    ) -> bool {
        let edge = place.edge();
        let range = (&edge, Some(&edge));
        let seed = self.seed();
        each!(Collection, self, tree => tree.write_leaves(seed, range, None, &|_| true, lost, write))
    }

    /// Whether a record of a leaf at `at` is still needed. See [`Collection::replace_leaf`].
    pub fn needs_leaf(&self, at: u64, record: &LeafRecord<'_>) -> bool {
        !self.replace_leaf(at, record, &mut Vec::new(), &mut |_| None)
    }

    /// Whether a record of edits at `at` is still needed. See [`Collection::replace_edits`].
    pub fn needs_edits(&self, at: u64, bytes: &[u8]) -> bool {
        self.replace_edits(at, bytes, &mut Vec::new(), &mut |_| None) != Ok(true)
    }
}

impl<K: LeafKind> Tree<K> {
    /// Writes the leaves in a range that are stale. `known`: a record, and its position. A leaf that
    /// is cold is that record, if it is stale.
    fn write_leaves(
        &self,
        seed: u64,
        (from, to): (&Edge<'_>, Option<&Edge<'_>>),
        known: Option<(u64, &LeafRecord<'_>)>,
        is_stale: &dyn Fn(&LeafRef<'_>) -> bool,
        lost: &mut Vec<Base>,
        write: WriteLeaf<'_>,
    ) -> bool {
        let (mut contents, mut logged) = (Vec::new(), Vec::new());
        let mut leaves = self.view().leaves(from).peekable();
        while let Some(leaf) = leaves.next() {
            if leaf.start() > *from && to.is_some_and(|to| leaf.start() >= *to) {
                break;
            }
            let base = leaf.base();
            if !is_stale(&leaf) {
                continue;
            }
            let run = match known {
                Some((at, record)) if leaf.is_cold() && base.at == at => record.run,
                _ => leaf.run().logged(&mut logged).bytes(),
            };
            contents.clear();
            let record = LeafRecord {
                seed,
                from: leaf.start(),
                to: leaves.peek().map(|next| next.start()),
                run,
            };
            record.write(&mut contents);
            let Some(fresh) = write(&contents) else {
                return false;
            };
            leaf.set_whole_base(fresh);
            lost.extend(Some(base).filter(|base| base.at != 0));
        }
        true
    }

    fn write_amended(
        &self,
        seed: u64,
        at: u64,
        bytes: &[u8],
        lost: &mut Vec<Base>,
        write: WriteLeaf<'_>,
    ) -> Result<bool, Damage> {
        for edit in edits::read(bytes, K::FLAGS & PAIRS != 0) {
            let edit = edit?;
            // A cold leaf is its record: later changes are not of its items.
            let is_stale = |leaf: &LeafRef<'_>| leaf.base().at < at && !leaf.is_cold();
            if let Edit::CutIds(range) = edit
                && K::HAS_SECTIONS
            {
                let is_written = range.with_edges(|from, to| {
                    self.write_leaves(seed, (from, Some(to)), None, &is_stale, lost, write)
                });
                if !is_written {
                    return Ok(false);
                }
                continue;
            }
            if edit.key().is_some() != K::IS_KEYED {
                return Err(Damage::Kind);
            }
            let Some(key) = edit.key() else {
                let (from, to) = edit.numbers().unwrap_or_default();
                let edge = |number| Edge::before(Elements::order_of(number));
                // The elements of `from` to before `to`; nothing, if these are the same.
                let range = (&edge(from), Some(&edge(to)));
                if !self.write_leaves(seed, range, None, &is_stale, lost, write) {
                    return Ok(false);
                }
                continue;
            };
            let mut scratch = [0; DECIMAL_MAX];
            let edge = Edge::of(&self.kind, &key, &mut scratch);
            let range = (&edge, Some(&edge));
            if !self.write_leaves(seed, range, None, &is_stale, lost, write) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Collection {
    /// What it is to a key.
    pub fn kind(&self) -> Kind {
        match self {
            Collection::Hash(_) => Kind::Hash,
            Collection::Set(_) => Kind::Set,
            Collection::SortedSet(_) => Kind::SortedSet,
            Collection::List(_) => Kind::List,
            Collection::Stream(_) => Kind::Stream,
        }
    }
}
