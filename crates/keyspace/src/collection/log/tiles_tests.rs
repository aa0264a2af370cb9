//! Changes that wait and are applied together give what they give one by one: items, and what rests on
//! which record.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::edits::Edits;
use super::leaf::LeafRecord;
use super::store::{AllInMemory, TileStore};
use super::tiles::Tiles;
use super::waiting::compare;
use crate::collection::cell::Cell;
use crate::collection::kind::{Edge, Fields, LeafKind, Members, Scores};
use crate::collection::node::Base;
use crate::collection::run::{Item, Run};
use crate::collection::sorted::scored;
use crate::collection::tree::{LEAF_MAX, Tree};
use crate::hash::Seed;

/// An item of a kind, made of random numbers.
trait Random: LeafKind + Clone {
    fn with<R>(
        &self,
        random: &mut fastrand::Rng,
        names: u64,
        with: impl FnOnce(Item<'_>) -> R,
    ) -> R;
}

fn name(random: &mut fastrand::Rng, names: u64) -> Vec<u8> {
    let number = random.u64(..names);
    match number % 3 {
        // Names that begin alike, and integers.
        0 => format!("a longer name {number}").into_bytes(),
        1 => format!("{number}").into_bytes(),
        _ => format!("n{number}").into_bytes(),
    }
}

impl Random for Fields {
    fn with<R>(
        &self,
        random: &mut fastrand::Rng,
        names: u64,
        with: impl FnOnce(Item<'_>) -> R,
    ) -> R {
        let name = name(random, names);
        let longest = if random.u8(..50) == 0 { 300 } else { 12 };
        let value = vec![b'v'; random.usize(..longest)];
        let expiry = (random.u8(..6) == 0).then(|| random.u64(1..1 << 40));
        with(Item::pair(Cell::of(&name), Cell::of(&value)).with_expiry(expiry))
    }
}

impl Random for Members {
    fn with<R>(
        &self,
        random: &mut fastrand::Rng,
        names: u64,
        with: impl FnOnce(Item<'_>) -> R,
    ) -> R {
        let name = match random.u8(..4) {
            0 => name(random, names),
            _ => random.u64(..names).to_string().into_bytes(),
        };
        with(Item::single(Cell::of(&name)))
    }
}

impl Random for Scores {
    fn with<R>(
        &self,
        random: &mut fastrand::Rng,
        names: u64,
        with: impl FnOnce(Item<'_>) -> R,
    ) -> R {
        let name = name(random, names);
        // Few scores: members decide the order.
        let score = f64::from(random.u8(..6)) / 2.0 - 1.0;
        with(scored(Cell::of(&name), score, &mut [0; 8]))
    }
}

/// A store in which memory is short now and then, for a moment.
struct Short {
    random: RefCell<fastrand::Rng>,
    /// One time in so many; never with 0.
    rarity: u32,
    records: HashMap<u64, Vec<u8>>,
    spilled: HashMap<u64, Vec<u8>>,
    last: u64,
}

impl Short {
    /// The newest record whose range has an item.
    fn newest_covering<K: LeafKind>(&self, kind: &K, item: &Item<'_>) -> u64 {
        let covers = |contents: &[u8]| {
            let record = LeafRecord::read(contents).expect("it was written");
            let is_before = |edge: &Edge<'_>| kind.is_before(item, edge);
            !is_before(&record.from) && record.to.is_none_or(|to| is_before(&to))
        };
        let records = self.records.iter();
        let covering = records.filter(|(_, contents)| covers(contents));
        covering.map(|(&at, _)| at).max().unwrap_or(0)
    }
}

impl TileStore for Short {
    fn is_short(&self) -> bool {
        self.rarity > 0 && self.random.borrow_mut().u32(..self.rarity) == 0
    }

    fn is_nearly_short(&self) -> bool {
        self.random.borrow_mut().bool()
    }

    fn changes_max(&self) -> usize {
        self.random.borrow_mut().usize(1..500)
    }

    fn record(&mut self, base: Base) -> Option<Vec<u8>> {
        self.records.get(&base.at).cloned()
    }

    fn put(&mut self, bytes: &[u8]) -> Option<u64> {
        // Sometimes the disk is full.
        if self.random.borrow_mut().u8(..8) == 0 {
            return None;
        }
        self.last += 1;
        self.spilled.insert(self.last, bytes.to_vec());
        Some(self.last)
    }

    fn take(&mut self, at: u64) -> Option<Vec<u8>> {
        let taken = self.spilled.remove(&at);
        assert!(taken.is_some(), "it was put there, and taken once");
        taken
    }

    fn note_damage(&mut self, base: Base) {
        panic!("nothing is damaged, and a record at {} is", base.at);
    }
}

/// Tiles to which changes come one by one, and some to which they come together while memory is short.
struct Pair<K> {
    singly: Tiles<K>,
    together: Tiles<K>,
    /// Records of edits that wait for `together`, one behind the other, and their lengths.
    waiting: (Vec<u8>, Vec<usize>),
    store: Short,
    lost: [Vec<Base>; 2],
    random: fastrand::Rng,
    names: u64,
    at: u64,
}

impl<K: Random> Pair<K> {
    fn new(kind: &K, leaf_max: usize, seed: u64) -> Pair<K> {
        let mut random = fastrand::Rng::with_seed(seed);
        Pair {
            singly: Tiles::new(kind.clone(), leaf_max),
            together: Tiles::new(kind.clone(), leaf_max),
            waiting: Default::default(),
            store: Short {
                random: RefCell::new(random.fork()),
                rarity: random.choice([0, 1, 2, 10]).expect("there are some"),
                records: HashMap::new(),
                spilled: HashMap::new(),
                last: 0,
            },
            lost: Default::default(),
            names: random.choice([10, 100, 3_000]).expect("there are some"),
            random,
            at: 0,
        }
    }

    /// Applies the records that wait.
    fn settle(&mut self) {
        let (bytes, lens) = std::mem::take(&mut self.waiting);
        let lens = &mut lens.into_iter();
        let no_damage = &mut |_, damage| panic!("there is no damage: {damage:?}");
        self.together.edit(&bytes, lens, no_damage, &mut self.store);
        if self.store.is_short() {
            self.together.leave(&mut self.store);
        }
    }

    /// A leaf of some items of a range.
    fn leaf(&mut self, from: &Edge<'_>, to: Option<&Edge<'_>>) {
        self.settle();
        let kind = self.singly.kind().clone();
        let mut items = Tree::new(kind.clone(), LEAF_MAX);
        for _ in 0..self.random.u8(..12) {
            kind.with(&mut self.random, self.names, |item| {
                let is_inside = !kind.is_before(&item, from);
                if is_inside && to.is_none_or(|to| kind.is_before(&item, to)) {
                    items.set(&item);
                }
            });
        }
        let run = items.view().leaves(&Edge::default()).next();
        let run = run.map_or(&[][..], |leaf| leaf.run().bytes());
        self.at += 1;
        let record = LeafRecord {
            seed: 0,
            from: *from,
            to: to.copied(),
            run,
        };
        let (at, share) = (self.at, 1_000 + self.random.u32(..1_000));
        let mut contents = Vec::new();
        record.write(&mut contents);
        self.store.records.insert(at, contents);
        let stores: [&mut dyn TileStore; 2] = [&mut AllInMemory, &mut self.store];
        let tiles = [&mut self.singly, &mut self.together];
        for ((tiles, lost), store) in tiles.into_iter().zip(&mut self.lost).zip(stores) {
            let applied = tiles.leaf(&record, Base { at, share }, lost, store);
            applied.expect("it is a leaf");
        }
    }

    /// A leaf of any range.
    fn any_leaf(&mut self) {
        let kind = self.singly.kind().clone();
        let (mut random, names) = (self.random.fork(), self.names);
        let mut other = random.fork();
        kind.with(&mut random, names, |one| {
            kind.with(&mut other, names, |two| {
                let is_ordered = compare(&kind, &one, &two).is_lt();
                let (from, to) = if is_ordered { (one, two) } else { (two, one) };
                if compare(&kind, &from, &to).is_eq() {
                    return;
                }
                let (mut left, mut right) = ([0; 20], [0; 20]);
                let from = Edge::of(&kind, &from, &mut left);
                let to = Edge::of(&kind, &to, &mut right);
                match self.random.u8(..6) {
                    0 => self.leaf(&Edge::default(), Some(&to)),
                    1 => self.leaf(&from, None),
                    2 => self.leaf(&Edge::before(from.order), Some(&to)),
                    _ => self.leaf(&from, Some(&to)),
                }
            });
        });
    }

    /// A record of changes. Those of one name often follow each other.
    fn edit(&mut self) {
        let kind = self.singly.kind().clone();
        let most = self.random.choice([1, 4, 40, 400]).expect("there are some");
        let removals = self.random.u8(..100);
        let mut edits = Edits::default();
        for _ in 0..self.random.usize(1..=most) {
            let code = self.random.u8(..100);
            let expiry = self.random.bool().then_some(7);
            kind.with(&mut self.random, self.names, |item| match code % 4 {
                _ if code >= removals => edits.set(&item),
                0 => edits.remove(item.name),
                1 if K::FLAGS == Fields::FLAGS => edits.reschedule(item.name, expiry),
                _ => edits.take(&item),
            });
        }
        let edited = self.singly.edit_singly(edits.bytes(), &mut AllInMemory);
        edited.expect("they are edits");
        self.waiting.0.extend(edits.bytes());
        self.waiting.1.push(edits.bytes().len());
    }

    /// Ends with the same trees.
    fn finish(mut self) {
        self.settle();
        let kind = self.singly.kind().clone();
        let [singly, together] = [self.singly, self.together];
        let mut names = [BTreeSet::new(), BTreeSet::new()];
        let mut seen = names.each_mut().map(|names| {
            |run: Run<'_>| {
                let items = run.iter();
                names.extend(items.map(|item| item.name.text(&mut [0; 20]).to_vec()));
            }
        });
        let [one_seen, other_seen] = &mut seen;
        let in_memory = &mut AllInMemory;
        let one = singly.finish(&mut self.lost[0], in_memory, None, Some(one_seen));
        let store = &mut self.store;
        let other = together.finish(&mut self.lost[1], store, None, Some(other_seen));
        assert_eq!(one.is_some(), other.is_some());
        let (Some(one), Some(mut other)) = (one, other) else {
            return;
        };
        assert!(self.store.spilled.is_empty(), "all came back");
        assert_eq!(names[0], names[1]);
        assert_eq!(one.cold_leaves(), 0);
        for (&at, contents) in &self.store.records {
            let record = LeafRecord::read(contents).expect("it was written");
            other.warm(at, &record).expect("its leaf is this record");
        }
        assert_eq!(other.cold_leaves(), 0);
        let (one, other) = (&one, &other);
        one.verify();
        other.verify();
        assert_eq!(one.count(), other.count());
        // The order of items in a leaf says nothing.
        let mut items = [one, other].map(|tree| {
            let leaves = tree.view().leaves(&Edge::default());
            let items = leaves.flat_map(|leaf| {
                let bases = leaf.run().iter().map(move |item| (item, leaf.base().at));
                bases.collect::<Vec<_>>()
            });
            items.collect::<Vec<_>>()
        });
        items
            .iter_mut()
            .for_each(|items| items.sort_by(|one, other| compare(&kind, &one.0, &other.0)));
        // Tiles that were spilled have smaller ranges, so others of them are empty in the end, whose base is
        // that of their neighbour then.
        assert_eq!(items[0].len(), items[1].len());
        for ((item, at), (other, other_at)) in items[0].iter().zip(&items[1]) {
            assert_eq!(item, other);
            let covering = self.store.newest_covering(&kind, item);
            assert!((1..=covering).contains(at) && (1..=covering).contains(other_at));
        }
        let (whole, shares) = account(one, &self.lost[0]);
        let (other_whole, other_shares) = account(other, &self.lost[1]);
        assert!(other_whole.iter().all(|at| whole.contains(at)));
        assert_eq!(shares, other_shares);
    }
}

/// The records that are all of a leaf, and the bytes of each record that leaves rest on or that were lost.
fn account<K: LeafKind>(tree: &Tree<K>, lost: &[Base]) -> (Vec<u64>, BTreeMap<u64, u64>) {
    let (mut whole, mut shares) = (Vec::new(), BTreeMap::new());
    let mut note = |base: Base| *shares.entry(base.at).or_default() += u64::from(base.share);
    lost.iter().for_each(|&base| note(base));
    for leaf in tree.view().leaves(&Edge::default()) {
        whole.extend(leaf.is_whole().then_some(leaf.base().at));
        note(leaf.base());
    }
    (whole, shares)
}

fn compare_all<K: Random>(kind: &K) {
    for seed in 0..400 {
        for leaf_max in [64, 200, LEAF_MAX] {
            let mut pair = Pair::new(kind, leaf_max, seed);
            // Sometimes there are ranges without a tile.
            if seed % 3 > 0 {
                pair.leaf(&Edge::default(), None);
            }
            let leaves = pair.random.u8(..30);
            for _ in 0..pair.random.u8(..60) {
                match pair.random.u8(..100) {
                    case if case < leaves => pair.any_leaf(),
                    case if case > 95 => pair.settle(),
                    _ => pair.edit(),
                }
            }
            if seed % 3 == 0 {
                pair.leaf(&Edge::default(), Some(&Edge::before(1 << 127)));
                pair.edit();
                pair.leaf(&Edge::before(1 << 127), None);
                pair.edit();
            }
            pair.finish();
        }
    }
}

#[test]
fn changes_of_fields_together_are_those_one_by_one() {
    compare_all(&Fields { seed: Seed::new(5) });
}

#[test]
fn changes_of_members_together_are_those_one_by_one() {
    compare_all(&Members { seed: Seed::new(5) });
}

#[test]
fn changes_of_scores_together_are_those_one_by_one() {
    compare_all(&Scores);
}

/// What makes no sense is damage at once, and what came before it counts.
#[test]
fn damaged_changes_are_found_when_they_come() {
    let mut tiles = Tiles::new(Fields { seed: Seed::new(5) }, 64);
    let record = LeafRecord {
        seed: 0,
        from: Edge::default(),
        to: None,
        run: &Run::empty(Fields::FLAGS),
    };
    let store = &mut AllInMemory;
    let applied = tiles.leaf(&record, Base::default(), &mut Vec::new(), store);
    applied.expect("it is a leaf");
    let mut edits = Edits::default();
    for number in 0..9 {
        edits.set(&Item::pair(Cell::Int(number), Cell::of(b"value")));
    }
    let cut = &edits.bytes()[..edits.bytes().len() - 1];
    let mut of_list = Edits::default();
    of_list.put(7, Cell::of(b"element"));
    let mut whole = Edits::default();
    whole.remove(Cell::Int(3));
    let records = [whole.bytes(), cut, of_list.bytes(), whole.bytes()];
    let lens = &mut records.iter().map(|record| record.len());
    let mut found = Vec::new();
    let damage = &mut |number, _| found.push(number);
    tiles.edit(&records.concat(), lens, damage, store);
    assert_eq!(found, [1, 2]);
    let tree = tiles.finish(&mut Vec::new(), store, None, None);
    let tree = tree.expect("there is no gap");
    assert_eq!(tree.count(), 7);
}
