//! Records of a tree: random edits, compaction of any part of the log, replay at any moment, and the account
//! of what rests on each record.

#[path = "collection_log/elements.rs"]
mod elements;
#[path = "collection_log/look.rs"]
mod look;
#[path = "collection_log/no_memory.rs"]
mod no_memory;
#[path = "collection_log/streams.rs"]
mod streams;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use keyspace::Seed;
use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::cell::Cell;
use keyspace::collection::log::edits::Edits;
use keyspace::collection::log::leaf::{LeafRecord, WriteLeaf};
use keyspace::collection::log::ledger::Ledger;
use keyspace::collection::log::store::{AllInMemory, TileStore};
use keyspace::collection::pieces::Pieces;
use keyspace::collection::run::Item;
use keyspace::collection::sorted::scored;
use keyspace::collection::tree::{Leaving, Put};
use keyspace::{Keyspace, Kind, Options};

use look::{contents, shares, verify};

const SEED: u64 = 99;
const LEAF_MAX: usize = 64;

/// One replay in so many is done again with a memory that is too small.
const SMALL_MEMORY_RARITY: usize = 12;

/// Values, and when they expire.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

/// A generator of numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[derive(Clone)]
enum Record {
    Leaf(Vec<u8>),
    Edit(Vec<u8>),
}

/// Bytes of each leaf record on which something rests, and the instances that are gone.
#[derive(Default)]
struct Account {
    resting: Mutex<HashMap<u64, u64>>,
    gone: Mutex<Vec<u64>>,
    /// Leaves in the log alone, and bytes of their records.
    cold: Mutex<(i64, i64)>,
}

impl Account {
    fn lose(&self, bases: impl Iterator<Item = Base>) {
        let mut resting = self.resting.lock().expect("no test thread has failed");
        for base in bases {
            let left = resting.get_mut(&base.at).expect("the record is there");
            *left = left
                .checked_sub(base.share.into())
                .expect("no share is lost twice");
        }
    }

    fn rests_on(&self, at: u64) -> u64 {
        self.resting.lock().expect("no test thread has failed")[&at]
    }
}

impl Ledger for Account {
    fn lost(&self, bases: &mut dyn Iterator<Item = Base>) {
        self.lose(bases);
    }

    fn gone(&self, instance: u64) {
        self.gone
            .lock()
            .expect("no test thread has failed")
            .push(instance);
    }

    fn cold(&self, leaves: i64, bytes: i64) {
        let mut cold = self.cold.lock().expect("no test thread has failed");
        *cold = (cold.0 + leaves, cold.1 + bytes);
    }
}

struct Log {
    records: BTreeMap<u64, Record>,
    next: u64,
    account: Arc<Account>,
    ledger: Arc<dyn Ledger>,
}

impl Log {
    fn new() -> Log {
        let account = Arc::new(Account::default());
        let ledger: Arc<dyn Ledger> = account.clone();
        Log {
            records: BTreeMap::new(),
            next: 1,
            account,
            ledger,
        }
    }

    fn append(&mut self, record: Record) -> u64 {
        let at = self.next;
        self.next += 1;
        self.records.insert(at, record);
        at
    }

    fn leaf(&mut self, contents: &[u8]) -> Base {
        let share = contents.len() as u32;
        let at = self.append(Record::Leaf(contents.to_vec()));
        let resting = &self.account.resting;
        resting
            .lock()
            .expect("no test thread has failed")
            .insert(at, share.into());
        Base { at, share }
    }

    fn begin(&mut self, tree: &Collection) {
        tree.logged().begin(1, 0, &self.ledger);
        let mut lost = Vec::new();
        assert!(tree.write_leaves(&mut lost, &mut |contents| Some(self.leaf(contents))));
        assert_eq!(lost, []);
    }

    /// Empties a part of the log, as compaction does.
    fn compact(&mut self, tree: &Collection, from: u64, to: u64) {
        let old: Vec<_> = self
            .records
            .range(from..to)
            .map(|(&at, record)| (at, record.clone()))
            .collect();
        let mut lost = Vec::new();
        for (at, record) in &old {
            let mut write = |contents: &[u8]| Some(self.leaf(contents));
            match record {
                Record::Leaf(bytes) => {
                    let record = LeafRecord::read(bytes).expect("it was written");
                    assert!(tree.replace_leaf(*at, &record, &mut lost, &mut write));
                    assert!(!tree.needs_leaf(*at, &record));
                }
                Record::Edit(bytes) => {
                    let done = tree.replace_edits(*at, bytes, &mut lost, &mut write);
                    assert_eq!(done, Ok(true));
                    assert!(!tree.needs_edits(*at, bytes));
                }
            }
        }
        self.account.lose(lost.into_iter());
        // A leaf may rest on a record whose range it has left: it was split off a leaf that two had been
        // merged to. It does not need the record, and keeps its share until it is written again.
        let shares = shares(tree);
        for (at, record) in old {
            if matches!(record, Record::Leaf(_)) {
                let left = shares.get(&at).copied().unwrap_or(0);
                assert_eq!(
                    self.account.rests_on(at),
                    left,
                    "no share is lost unnoticed"
                );
            }
        }
    }

    fn drop_records(&mut self, from: u64, to: u64) {
        self.records.retain(|at, _| !(from..to).contains(at));
    }

    /// Puts the tree together, sometimes in a memory that is too small for it, too. Its account begins anew.
    fn replay(&self, keyspace: &Keyspace, kind: Kind) -> (Collection, Vec<Base>) {
        let (tree, lost) = self.replay_in(keyspace, kind, &mut AllInMemory, None);
        if !self.records.len().is_multiple_of(SMALL_MEMORY_RARITY) {
            return (tree, lost);
        }
        no_memory::replay_too(self, keyspace, &tree);
        (tree, lost)
    }

    fn replay_in(
        &self,
        keyspace: &Keyspace,
        kind: Kind,
        store: &mut dyn TileStore,
        write: Option<WriteLeaf<'_>>,
    ) -> (Collection, Vec<Base>) {
        let seed = if kind == Kind::List { 0 } else { SEED };
        let mut pieces: Pieces = keyspace.pieces(kind, seed);
        let mut lost = Vec::new();
        for (&at, record) in &self.records {
            match record {
                Record::Leaf(bytes) => {
                    let share = bytes.len() as u32;
                    let record = LeafRecord::read(bytes).expect("it was written");
                    let applied = pieces.leaf(&record, Base { at, share }, &mut lost, store);
                    applied.expect("a leaf is a leaf");
                }
                Record::Edit(bytes) => {
                    let lens = &mut std::iter::once(bytes.len());
                    let damage = &mut |_, damage| panic!("{damage:?}");
                    pieces.edit(bytes, lens, damage, store);
                }
            }
            if store.is_short() {
                pieces.leave(store);
            }
        }
        let tree = pieces.finish(&mut lost, store, write);
        (tree.expect("there is no gap"), lost)
    }
}

fn keyspace() -> Keyspace {
    let keyspace = Keyspace::new(&Options {
        databases: 1,
        workers: 1,
        shards: 1,
        seed: 7,
        ticks: || 0,
        charge: |_| (),
    });
    keyspace.set_small_bytes(LEAF_MAX);
    keyspace
}

/// A tree, its log, and what should be in it.
struct World {
    kind: Kind,
    keyspace: Keyspace,
    random: Random,
    log: Log,
    tree: Collection,
    model: Model,
    now: u64,
    /// Leaves that have left memory.
    left: u64,
}

impl World {
    fn new(kind: Kind, seed: u64) -> World {
        let mut log = Log::new();
        let tree = Collection::new(kind, Seed::new(SEED), LEAF_MAX);
        log.begin(&tree);
        World {
            kind,
            keyspace: keyspace(),
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            log,
            tree,
            model: Model::new(),
            now: 1_000,
            left: 0,
        }
    }

    /// Lets some leaves leave memory. Those that have changed are written first.
    fn cool(&mut self) {
        for _ in 0..self.random.below(8) {
            let Some(Leaving { place, record }) = self.tree.next_leaving(&mut 4) else {
                continue;
            };
            let before = (self.tree.bytes(), self.tree.cold_leaves());
            match record {
                Some(record) => {
                    assert!(self.tree.chill(&place, record), "it was to leave");
                    assert!(self.tree.bytes() < before.0);
                    assert_eq!(self.tree.cold_leaves(), before.1 + 1);
                    self.left += 1;
                }
                None => {
                    let mut lost = Vec::new();
                    let write = &mut |contents: &[u8]| Some(self.log.leaf(contents));
                    assert!(self.tree.write_leaf(&place, &mut lost, write));
                    self.log.account.lose(lost.into_iter());
                }
            }
        }
        let cold = (
            self.tree.cold_leaves() as i64,
            self.tree.cold_bytes() as i64,
        );
        assert_eq!(
            *self.log.account.cold.lock().expect("no thread failed"),
            cold
        );
    }

    /// Brings the leaf back that covers a name.
    fn warm(&mut self, name: &[u8]) {
        if let Some(base) = self.tree.cold_record(Cell::of(name)) {
            self.warm_from(base);
            assert_eq!(self.tree.cold_record(Cell::of(name)), None);
        }
    }

    fn warm_from(&mut self, base: Base) {
        let Some(Record::Leaf(bytes)) = self.log.records.get(&base.at) else {
            panic!("the record of a cold leaf is not there");
        };
        assert_eq!(u64::from(base.share), bytes.len() as u64);
        let record = LeafRecord::read(bytes).expect("it was written");
        assert_eq!(self.tree.warm(base.at + 1, &record), Ok(false));
        assert_eq!(self.tree.warm(base.at, &record), Ok(true));
        assert_eq!(self.tree.warm(base.at, &record), Ok(false));
    }

    /// Brings all leaves back, and looks at what is there.
    fn warm_all(&mut self) {
        let cold: Vec<_> = self.tree.cold_records().collect();
        assert_eq!(cold.len(), self.tree.cold_leaves());
        cold.into_iter().for_each(|base| self.warm_from(base));
        assert_eq!(contents(&self.tree), self.model);
    }

    /// One record of edits; of four, so many are removals.
    fn edit(&mut self, removals: u64) {
        let kind = self.kind;
        match kind {
            Kind::List => return self.edit_elements(removals),
            Kind::Stream => return self.edit_stream(removals),
            Kind::Hash | Kind::Set | Kind::SortedSet | Kind::String => {}
        }
        let mut edits = Edits::default();
        for _ in 0..=self.random.below(3) {
            let number = self.random.below(60);
            // Half of the members of a set are integers.
            let is_integer = kind == Kind::Set && number < 30;
            let letter = if is_integer { "" } else { "f" };
            let name = format!("{letter}{number}").into_bytes();
            self.warm(&name);
            if kind == Kind::SortedSet {
                self.edit_scores(&mut edits, name, removals);
                continue;
            }
            let tree = &mut self.tree;
            if kind == Kind::Hash && self.random.below(5) == 0 {
                let expires = self.random.below(2) == 0;
                let expiry = expires.then(|| self.now + self.random.below(100));
                if tree.reschedule(Cell::of(&name), expiry) {
                    edits.reschedule(Cell::of(&name), expiry);
                    self.model.get_mut(&name).expect("in both").1 = expiry;
                }
            } else if self.random.below(4) < removals {
                if tree.remove_name(Cell::of(&name)) {
                    edits.remove(Cell::of(&name));
                }
                self.model.remove(&name);
            } else {
                let expires = kind == Kind::Hash && self.random.below(3) == 0;
                let expiry = expires.then(|| self.now + self.random.below(100));
                // An expiry takes seven bytes.
                let longest = if expires { 2 } else { 9 };
                let value = vec![b'v'; self.random.below(longest) as usize];
                let (item, value) = match kind {
                    Kind::Set => (Item::single(Cell::of(&name)), Vec::new()),
                    Kind::Hash => (Item::pair(Cell::of(&name), Cell::of(&value)), value.clone()),
                    Kind::SortedSet | Kind::List | Kind::Stream | Kind::String => {
                        unreachable!("a {kind:?} is changed elsewhere")
                    }
                };
                let item = Item { expiry, ..item };
                tree.set(&item);
                edits.set(&item);
                self.model.insert(name, (value, expiry));
            }
        }
        if !edits.is_empty() {
            self.log.append(Record::Edit(edits.bytes().to_vec()));
        }
        self.tree.tell_lost();
        verify(&self.tree);
    }

    /// A change of a sorted set: what is removed is named with its score, and what gets another is removed.
    fn edit_scores(&mut self, edits: &mut Edits, name: Vec<u8>, removals: u64) {
        let name_cell = Cell::of(&name);
        let is_removal = self.random.below(4) < removals;
        let score = self.random.below(12) as f64 / 2.0 - 1.0;
        let (mut scratch, mut buffer) = ([0; 8], Vec::new());
        let item = scored(name_cell, score, &mut scratch);
        if !is_removal
            && let Collection::SortedSet(set) = &self.tree
            && let Some(base) = set.cold_record_at(&item)
        {
            self.warm_from(base);
        }
        let Collection::SortedSet(set) = &mut self.tree else {
            panic!("it is a sorted set");
        };
        if let Some(old) = set.get(name_cell).map(|old| old.moved_to(&mut buffer)) {
            edits.take(&old);
        }
        if is_removal {
            let is_removed = set.remove_name(name_cell);
            assert_eq!(self.model.remove(&name).is_some(), is_removed);
        } else {
            let put = set.set(&item);
            edits.set(&item);
            let value = item
                .value
                .expect("it has a score")
                .text(&mut [0; 20])
                .to_vec();
            let before = self.model.insert(name, (value, None));
            assert_eq!(put == Put::Replaced, before.is_some());
        }
    }

    /// Removes what has expired, as a shard does it: a few leaves and a record at a time.
    fn expire(&mut self) {
        self.now += self.random.below(20);
        let now = self.now;
        loop {
            let mut edits = Edits::default();
            let looked_at = self
                .tree
                .remove_due(now, 2, &mut |item| edits.remove(item.name));
            if !edits.is_empty() {
                self.log.append(Record::Edit(edits.bytes().to_vec()));
            }
            self.tree.tell_lost();
            if looked_at < 2 {
                break;
            }
        }
        self.model
            .retain(|_, (_, expiry)| expiry.is_none_or(|at| now <= at));
        assert!(self.tree.next_due().is_none_or(|at| at >= now));
    }

    fn compact(&mut self) {
        let from = self.random.below(self.log.next) + 1;
        let to = (from + self.random.below(30)).min(self.log.next);
        self.log.compact(&self.tree, from, to);
        // A crash before the records are dropped.
        let (early, _) = self.log.replay(&self.keyspace, self.kind);
        assert_eq!(contents(&early), self.model);
        self.log.drop_records(from, to);
    }

    /// The tree that the log has takes the place of the other. The account is what replay says.
    fn start_again(&mut self) {
        let (again, lost) = self.log.replay(&self.keyspace, self.kind);
        let records = self.log.records.iter();
        let leaves = records.filter_map(|(&at, record)| match record {
            Record::Leaf(bytes) => Some((at, bytes.len() as u64)),
            Record::Edit(_) => None,
        });
        let account = Account {
            resting: Mutex::new(leaves.collect()),
            gone: Mutex::default(),
            cold: Mutex::default(),
        };
        account.lose(lost.into_iter());
        self.log.account = Arc::new(account);
        self.log.ledger = self.log.account.clone();
        self.tree = again;
        self.tree.logged().begin(1, 0, &self.log.ledger);
    }

    fn check(&self) {
        let (again, _) = self.log.replay(&self.keyspace, self.kind);
        assert_eq!(contents(&again), self.model);
        for (at, share) in shares(&self.tree) {
            let left = self.log.account.rests_on(at);
            assert_eq!(
                left, share,
                "the leaves of a record share what is left of it"
            );
        }
    }
}

/// Returns how many leaves have left memory.
fn run(kind: Kind, seed: u64, steps: u64) -> u64 {
    let mut world = World::new(kind, seed);
    // The size to which the hash tends changes now and then.
    let mut removals = 1;
    for step in 0..steps {
        if step % 50 == 0 {
            removals = world.random.below(4);
        }
        world.edit(removals);
        if world.random.below(5) == 0 {
            world.expire();
        }
        if world.random.below(8) == 0 {
            world.compact();
        }
        if world.random.below(20) == 0 {
            world.start_again();
        }
        if world.random.below(3) == 0 {
            world.cool();
        }
        if world.random.below(40) == 0 {
            world.warm_all();
        }
        world.check();
    }
    let left = world.left;
    let World { log, tree, .. } = world;
    drop(tree);
    let resting = log
        .account
        .resting
        .lock()
        .expect("no test thread has failed");
    let is_dead = |&left: &u64| left == 0;
    assert!(
        resting.values().all(is_dead),
        "nothing rests on records of a tree that is gone"
    );
    assert_eq!(
        *log.account.gone.lock().expect("no test thread has failed"),
        [1]
    );
    left
}

#[test]
fn a_tree_comes_back_from_its_records_whatever_is_compacted() {
    for kind in Kind::ALL.into_iter().filter(|&kind| kind != Kind::String) {
        // A list may be short in all of its life.
        let left: u64 = (1..=60).map(|seed| run(kind, seed, 300)).sum();
        assert!(left >= 60 * 30, "{kind:?}: {left} leaves have left memory");
    }
}

/// A tile that has grown by edits has several levels, and leaves with other bounds than those of the record
/// that takes a part of it.
#[test]
fn a_leaf_takes_any_part_of_a_tile_of_several_levels() {
    let empty = || Collection::new(Kind::Hash, Seed::new(SEED), LEAF_MAX);
    let names: Vec<_> = (0..900).map(|number| format!("f{number}")).collect();
    let (mut edits, mut model) = (Edits::default(), Model::new());
    for name in &names {
        edits.set(&Item::pair(Cell::of(name.as_bytes()), Cell::of(b"value")));
        model.insert(name.clone().into_bytes(), (b"value".to_vec(), None));
    }
    let mut log = Log::new();
    log.begin(&empty());
    log.append(Record::Edit(edits.bytes().to_vec()));
    let mut other = empty();
    for name in names.iter().rev() {
        other.set(&Item::pair(Cell::of(name.as_bytes()), Cell::of(b"value")));
    }
    let mut parts = Vec::new();
    let mut keep = |contents: &[u8]| {
        parts.push(contents.to_vec());
        Some(Base { at: 9, share: 9 })
    };
    assert!(other.write_leaves(&mut Vec::new(), &mut keep));
    assert!(parts.len() > 64 * 3, "{}", parts.len());
    let (from, keyspace) = (log.next, keyspace());
    for part in parts {
        log.append(Record::Leaf(part));
        let (tree, _) = log.replay(&keyspace, Kind::Hash);
        assert_eq!(contents(&tree), model);
        log.drop_records(from, log.next);
    }
}
