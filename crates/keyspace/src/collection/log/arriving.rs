//! A collection that is made of items as they come, and may take more memory than there is.
//!
//! The items wait, and are put together as edits of a log are while it is replayed ([`super::tiles`]): what
//! has no room in memory goes to a spill file. In the end the leaves that were spilled are written to a log.

use super::edits::Edits;
use super::leaf::{LeafRecord, WriteLeaf};
use super::numbered::MIDDLE;
use super::store::TileStore;
use crate::collection::any::Collection;
use crate::collection::build::Builder;
use crate::collection::kind::{Elements, LeafKind};
use crate::collection::node::Base;
use crate::collection::pieces::Pieces;
use crate::collection::run::{Damage, Item, Run};
use crate::collection::tree::{BLOCK, LEAF_MAX};
use crate::entry::Kind;
use crate::hash::Seed;

/// Numbers for elements that come one behind the other, as pushes at the back of a list give them.
#[derive(Debug)]
struct Numbers {
    next: u64,
    /// Elements that share a leaf with the next one, and bytes of them.
    count: usize,
    bytes: usize,
    leaf_max: usize,
}

impl Numbers {
    fn of(&mut self, element: &Item<'_>) -> u64 {
        let size = element.size();
        let len = Run::size_of(Elements::FLAGS, self.count + 1, self.bytes + size);
        if self.count > 0 && len > self.leaf_max {
            self.next = self.next.next_multiple_of(BLOCK);
            (self.count, self.bytes) = (0, 0);
        }
        self.count += 1;
        self.bytes += size;
        let number = self.next;
        self.next += 1;
        number
    }
}

/// See the module.
#[derive(Debug)]
pub struct Arriving {
    pieces: Pieces,
    /// Items that wait, and how many bytes of them may.
    edits: Edits,
    most: usize,
    numbers: Numbers,
    /// How many items came.
    items: u64,
    /// The members of a sorted set: two items of one member have different places there, if their scores
    /// differ.
    members: Option<Box<Arriving>>,
}

impl Arriving {
    /// Begins with the items of a builder. `most`: bytes of items that may wait.
    ///
    /// # Errors
    /// The items make no sense.
    pub(crate) fn new(
        builder: Builder,
        pieces: Pieces,
        most: usize,
        store: &mut dyn TileStore,
    ) -> Result<Arriving, Damage> {
        let (seed, leaf_max) = (pieces.seed(), pieces.leaf_max());
        let mut arriving = match pieces.kind() {
            Kind::SortedSet => {
                let members = Pieces::new(Kind::Set, seed, leaf_max);
                let members = Arriving::empty(members, most / 2, store)?;
                Arriving {
                    members: Some(Box::new(members)),
                    ..Arriving::empty(pieces, most / 2, store)?
                }
            }
            Kind::String | Kind::List | Kind::Hash | Kind::Set | Kind::Stream => {
                Arriving::empty(pieces, most, store)?
            }
        };
        let mut pushed = Ok(());
        builder.each(&mut |item| {
            if pushed.is_ok() {
                pushed = arriving.push(item, store);
            }
        });
        pushed.map(|()| arriving)
    }

    fn empty(
        mut pieces: Pieces,
        most: usize,
        store: &mut dyn TileStore,
    ) -> Result<Arriving, Damage> {
        let nothing = Collection::new(pieces.kind(), Seed::new(pieces.seed()), LEAF_MAX);
        let mut begun = Ok(());
        nothing.write_leaves(&mut Vec::new(), &mut |contents| {
            begun = LeafRecord::read(contents)
                .and_then(|leaf| pieces.leaf(&leaf, Base::default(), &mut Vec::new(), store));
            Some(Base::default())
        });
        begun?;
        let numbers = Numbers {
            next: MIDDLE,
            count: 0,
            bytes: 0,
            leaf_max: pieces.leaf_max(),
        };
        Ok(Arriving {
            pieces,
            edits: Edits::default(),
            most,
            numbers,
            items: 0,
            members: None,
        })
    }

    /// How many items came.
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Whether none came.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Adds an item, or an element behind all others.
    ///
    /// # Errors
    /// The items that waited make no sense.
    pub fn push(&mut self, item: &Item<'_>, store: &mut dyn TileStore) -> Result<(), Damage> {
        self.items += 1;
        if let Some(members) = &mut self.members {
            members.push(&Item::single(item.name), store)?;
        }
        match self.pieces.kind() {
            Kind::List => {
                let number = self.numbers.of(&Item::single(item.name));
                self.edits.put(number, item.name);
            }
            Kind::String | Kind::Hash | Kind::Set | Kind::SortedSet | Kind::Stream => {
                self.edits.set(item);
            }
        }
        match self.edits.bytes().len() >= self.most {
            true => self.settle(store),
            false => Ok(()),
        }
    }

    /// Sets an item of a stream in the place of the one of its name, which came before.
    pub fn replace(&mut self, item: &Item<'_>) {
        self.edits.set(item);
    }

    fn settle(&mut self, store: &mut dyn TileStore) -> Result<(), Damage> {
        let mut settled = Ok(());
        let bytes = self.edits.bytes();
        let damage = &mut |_: usize, damage| settled = Err(damage);
        self.pieces
            .edit(bytes, &mut std::iter::once(bytes.len()), damage, store);
        self.edits.clear(self.most);
        if store.is_short() {
            self.pieces.leave(store);
        }
        settled
    }

    /// The collection. `write` puts leaves into the log, which gets all of them.
    ///
    /// # Errors
    /// The items make no sense, or one came twice. `write` has refused a leaf if the inner result is none.
    pub fn finish(
        mut self,
        store: &mut dyn TileStore,
        write: WriteLeaf<'_>,
    ) -> Result<Option<Collection>, Damage> {
        if let Some(members) = self.members.take() {
            // They are counted, and go nowhere.
            let nowhere = Base { at: 1, share: 0 };
            members.finish(store, &mut |_| Some(nowhere))?;
        }
        self.settle(store)?;
        let collection = self.pieces.finish(&mut Vec::new(), store, Some(write));
        let collection = collection.ok_or(Damage::Order)?;
        if collection.count() != self.items {
            return Err(Damage::Twice);
        }
        let is_written = collection.write_missing_leaves(write);
        Ok(is_written.then_some(collection))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::collection::build::Built;
    use crate::collection::cell::Cell;
    use crate::collection::sorted::scored;

    /// Puts everything into a spill file.
    #[derive(Default)]
    struct Short {
        spilled: HashMap<u64, Vec<u8>>,
        puts: u64,
    }

    impl TileStore for Short {
        fn is_short(&self) -> bool {
            true
        }

        fn is_nearly_short(&self) -> bool {
            true
        }

        fn changes_max(&self) -> usize {
            1 << 20
        }

        fn record(&mut self, _: Base) -> Option<Vec<u8>> {
            panic!("nothing is in the log");
        }

        fn put(&mut self, bytes: &[u8]) -> Option<u64> {
            self.puts += 1;
            self.spilled.insert(self.puts, bytes.to_vec());
            Some(self.puts)
        }

        fn take(&mut self, at: u64) -> Option<Vec<u8>> {
            self.spilled.remove(&at)
        }

        fn note_damage(&mut self, _: Base) {
            panic!("there is no damage");
        }
    }

    const SMALL_LEAF: usize = 128;

    fn builder(kind: Kind) -> Builder {
        Builder::new(kind, 64, SMALL_LEAF, Seed::new(5))
    }

    fn with_item<R>(kind: Kind, number: u64, with: impl FnOnce(&Item<'_>) -> R) -> R {
        let mut scratch = [0; 8];
        let (name, value) = (format!("name:{number}"), format!("value:{}", number * 7));
        let name = match number % 3 {
            0 => Cell::of(name.as_bytes()),
            _ => Cell::Int(number as i64),
        };
        let item = match kind {
            Kind::Hash if number.is_multiple_of(5) => {
                Item::pair(name, Cell::of(value.as_bytes())).with_expiry(Some(number + 1))
            }
            Kind::Hash => Item::pair(name, Cell::of(value.as_bytes())),
            Kind::SortedSet => scored(name, (number % 17) as f64, &mut scratch),
            _ => Item::single(name),
        };
        with(&item)
    }

    /// All leaves that are written, as a start would find them.
    fn read_again(kind: Kind, leaves: &[(Base, Vec<u8>)]) -> Collection {
        let mut pieces = Pieces::new(kind, 5, SMALL_LEAF);
        let (mut lost, mut store) = (Vec::new(), super::super::store::AllInMemory);
        for (base, contents) in leaves {
            let leaf = LeafRecord::read(contents).expect("it is a leaf");
            let leaf = pieces.leaf(&leaf, *base, &mut lost, &mut store);
            leaf.expect("it makes sense");
        }
        let whole = pieces.finish(&mut lost, &mut store, None);
        whole.expect("no range is missing")
    }

    fn items_of(collection: &Collection) -> Vec<String> {
        let mut items = Vec::new();
        collection.each(&mut |item| items.push(format!("{item:?}")));
        // Items of a leaf are in no order, if they have names.
        if collection.kind() != Kind::List {
            items.sort_unstable();
        }
        items
    }

    /// However few items may wait, the collection has all of them, and its leaves are written.
    #[test]
    fn what_arrives_is_what_a_builder_makes() {
        for kind in [Kind::Hash, Kind::Set, Kind::SortedSet, Kind::List] {
            for (first, most) in [(0, 1), (10, 500), (300, 5_000)] {
                let mut store = Short::default();
                let pieces = Pieces::new(kind, 5, SMALL_LEAF);
                let (mut begun, mut whole) = (builder(kind), builder(kind));
                for number in 0..600 {
                    with_item(kind, number, |item| whole.push(item)).expect("it is new");
                }
                for number in 0..first {
                    with_item(kind, number, |item| begun.push(item)).expect("it is new");
                }
                let arriving = Arriving::new(begun, pieces, most, &mut store);
                let mut arriving = arriving.expect("it makes sense");
                for number in first..600 {
                    let pushed = with_item(kind, number, |item| arriving.push(item, &mut store));
                    pushed.expect("it makes sense");
                }
                let mut leaves = Vec::new();
                let finished = arriving.finish(&mut store, &mut |contents| {
                    let (at, share) = (8 * (1 + leaves.len() as u64), contents.len() as u32);
                    leaves.push((Base { at, share }, contents.to_vec()));
                    Some(Base { at, share })
                });
                let collection = finished.expect("it makes sense").expect("it is written");
                assert_eq!(collection.count(), 600);
                assert!(store.puts > 0 && store.spilled.is_empty(), "{kind:?}");
                let Built::Tree(whole) = whole.finish() else {
                    panic!("it is large");
                };
                let expected = items_of(&whole);
                let found = items_of(&read_again(kind, &leaves));
                assert!(found == expected, "{kind:?} begun with {first}");
            }
        }
    }

    /// An item that comes twice is found, wherever the first one is by then.
    #[test]
    fn what_comes_twice_is_found() {
        for kind in [Kind::Hash, Kind::Set, Kind::SortedSet] {
            for twice in [0, 299] {
                let mut store = Short::default();
                let pieces = Pieces::new(kind, 5, SMALL_LEAF);
                let arriving = Arriving::new(builder(kind), pieces, 500, &mut store);
                let mut arriving = arriving.expect("it makes sense");
                for number in 0..300 {
                    let pushed = with_item(kind, number, |item| arriving.push(item, &mut store));
                    pushed.expect("it makes sense");
                }
                let again = with_item(kind, twice, |item| {
                    let mut scratch = [0; 8];
                    match kind {
                        Kind::SortedSet => {
                            let other = scored(item.name, 77.0, &mut scratch);
                            arriving.push(&other, &mut store)
                        }
                        _ => arriving.push(item, &mut store),
                    }
                });
                again.expect("it is found in the end");
                let base = Base { at: 8, share: 1 };
                let finished = arriving.finish(&mut store, &mut |_| Some(base));
                assert_eq!(finished.err(), Some(Damage::Twice), "{kind:?}");
            }
        }
    }
}
