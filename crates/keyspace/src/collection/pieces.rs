//! The records of a collection of any kind, put together while a log is replayed.

use super::any::{Collection, each};
use super::kind::{Elements, Fields, Members, Scores};
use super::log::leaf::{LeafRecord, WriteLeaf};
use super::log::store::TileStore;
use super::log::tiles::Tiles;
use super::node::Base;
use super::run::{Damage, Run};
use super::sorted::Scored;
use super::stream::StreamItems;
use super::tree::list_leaf_max;
use crate::entry::Kind;
use crate::hash::Seed;

/// The records of a collection, put together while a log is replayed.
#[derive(Debug)]
pub enum Pieces {
    /// Of a hash.
    Hash(Tiles<Fields>),
    /// Of a set.
    Set(Tiles<Members>),
    /// Of a sorted set; its seed.
    SortedSet(Tiles<Scores>, Seed),
    /// Of a list.
    List(Tiles<Elements>),
    /// Of a stream.
    Stream(Tiles<StreamItems>),
}

impl Pieces {
    /// No record yet.
    pub(crate) fn new(kind: Kind, seed: u64, leaf_max: usize) -> Pieces {
        let seed = Seed::new(seed);
        match kind {
            Kind::Hash => Pieces::Hash(Tiles::new(Fields { seed }, leaf_max)),
            Kind::Set => Pieces::Set(Tiles::new(Members { seed }, leaf_max)),
            Kind::SortedSet => {
                let tiles = Tiles::new(Scores, leaf_max).of_seed(seed.random());
                Pieces::SortedSet(tiles, seed)
            }
            Kind::List => Pieces::List(Tiles::new(Elements, list_leaf_max(leaf_max))),
            Kind::Stream => Pieces::Stream(Tiles::new(StreamItems::new(seed.random()), leaf_max)),
            Kind::String => unreachable!("a string is no collection"),
        }
    }

    /// The seed of the order keys.
    pub fn seed(&self) -> u64 {
        match self {
            Pieces::Hash(tiles) => tiles.kind().seed.random(),
            Pieces::Set(tiles) => tiles.kind().seed.random(),
            Pieces::SortedSet(_, seed) => seed.random(),
            Pieces::List(_) => 0,
            Pieces::Stream(tiles) => tiles.kind().base(),
        }
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
        if record.seed != self.seed() {
            return Err(Damage::Kind);
        }
        each!(Pieces, self, tiles => tiles.leaf(record, base, lost, store))
    }

    /// Applies records of edits that are one behind the other in `bytes` and have these lengths. Reports the
    /// number of each that makes no sense.
    pub fn edit(
        &mut self,
        bytes: &[u8],
        lens: &mut dyn Iterator<Item = usize>,
        damage: &mut dyn FnMut(usize, Damage),
        store: &mut dyn TileStore,
    ) {
        each!(Pieces, self, tiles => tiles.edit(bytes, lens, damage, store));
    }

    /// Lets items leave memory until there is room. Returns whether all were looked at since the beginning.
    pub fn leave(&mut self, store: &mut dyn TileStore) -> bool {
        each!(Pieces, self, tiles => tiles.leave(store))
    }

    /// Bytes of the leaves of its tree, at most.
    pub(super) fn leaf_max(&self) -> usize {
        each!(Pieces, self, tiles => tiles.leaf_max())
    }

    /// Whether some of the items are in the spill file.
    pub fn has_spilled(&self) -> bool {
        each!(Pieces, self, tiles => tiles.has_spilled())
    }

    /// Whether no part is missing.
    pub fn is_whole(&self) -> bool {
        each!(Pieces, self, tiles => tiles.is_whole())
    }

    /// What it is to a key.
    pub fn kind(&self) -> Kind {
        match self {
            Pieces::Hash(_) => Kind::Hash,
            Pieces::Set(_) => Kind::Set,
            Pieces::SortedSet(..) => Kind::SortedSet,
            Pieces::List(_) => Kind::List,
            Pieces::Stream(_) => Kind::Stream,
        }
    }

    /// Appends what rests on records to `lost`: the collection is not wanted.
    pub fn discard(self, lost: &mut Vec<Base>) {
        each!(Pieces, self, tiles => tiles.discard(lost));
    }

    /// The collection; `None` if a part of it is missing. What nothing rests on any more is appended to
    /// `lost`. `write` puts leaves that were spilled into the log; without it they come back into memory.
    pub fn finish(
        self,
        lost: &mut Vec<Base>,
        store: &mut dyn TileStore,
        write: Option<WriteLeaf<'_>>,
    ) -> Option<Collection> {
        match self {
            Pieces::Hash(tiles) => tiles.finish(lost, store, write, None).map(Collection::Hash),
            Pieces::Set(tiles) => tiles.finish(lost, store, write, None).map(Collection::Set),
            Pieces::SortedSet(tiles, seed) => {
                let mut scores = Scored::new(seed);
                let see = &mut |run: Run<'_>| run.iter().for_each(|item| scores.add(&item));
                let tree = tiles.finish(lost, store, write, Some(see))?;
                Some(Collection::SortedSet(scores.with(tree)))
            }
            Pieces::List(tiles) => tiles.finish(lost, store, write, None).map(Collection::List),
            Pieces::Stream(tiles) => {
                let tree = tiles.finish(lost, store, write, None);
                tree.map(Collection::Stream)
            }
        }
    }
}
