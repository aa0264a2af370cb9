//! Trees against `std` collections, with clones held; and how many bytes they take.

use std::collections::BTreeMap;

use super::*;
use crate::collection::cell::{Cell, DECIMAL_MAX};
use crate::collection::clones::Frozen;
use crate::collection::kind::{Edge, Fields, LeafKind, Members, Scores};
use crate::collection::run::{Damage, Item, PAIRS, Run, RunMut, TAGGED};
use crate::collection::view::View;
use crate::hash::Seed;

/// Fields of whose order keys there are three.
#[derive(Clone)]
struct Colliding;

impl LeafKind for Colliding {
    const FLAGS: u8 = TAGGED | PAIRS;
    const IS_SORTED: bool = false;

    fn order(&self, item: &Item<'_>) -> u128 {
        (item.name.text_len() as u128 % 3) << 90
    }
}

type Name = (u128, Vec<u8>);
type Content = (Option<Vec<u8>>, Option<u64>);
type Model = BTreeMap<Name, Content>;

fn text(cell: Cell<'_>) -> Vec<u8> {
    cell.text(&mut [0; DECIMAL_MAX]).to_vec()
}

fn entry<K: LeafKind>(kind: &K, item: &Item<'_>) -> (Name, Content) {
    (
        (kind.order(item), text(item.name)),
        (item.value.map(text), item.expiry),
    )
}

fn edge((order, name): &Name) -> Edge<'_> {
    Edge {
        order: *order,
        name,
    }
}

fn compare<K: LeafKind>(view: View<'_, K>, model: &Model) {
    let mut found: Vec<_> = view.iter().map(|item| entry(view.kind, &item)).collect();
    if !K::IS_SORTED {
        found.sort();
    }
    assert!(found.iter().map(|(key, value)| (key, value)).eq(model));
    assert_eq!(view.count(), model.len() as u64);
}

/// Random changes of a tree and of a model.
struct Pair<K: LeafKind> {
    tree: Tree<K>,
    model: Model,
    clones: Vec<(Frozen<K>, Model)>,
    random: fastrand::Rng,
}

impl<K: LeafKind + Clone> Pair<K> {
    fn new(kind: K, leaf_max: usize, seed: u64) -> Pair<K> {
        Pair {
            tree: Tree::new(kind, leaf_max),
            model: Model::new(),
            clones: Vec::new(),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    fn name(&mut self) -> Vec<u8> {
        let number = self.random.u32(..3_000);
        match self.random.u8(..8) {
            0..2 => number.to_string().into_bytes(),
            2 => (-i64::from(number)).to_string().into_bytes(),
            3 if number < 30 => vec![b'l'; 50 * number as usize],
            _ => format!("common:{number:05}").into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        match self.random.u8(..60) {
            0 => vec![b'v'; self.random.usize(1_000..5_000)],
            1..10 => self.random.i32(..).to_string().into_bytes(),
            _ => vec![b'v'; self.random.usize(..30)],
        }
    }

    fn with_item<R>(&mut self, act: impl FnOnce(&mut Self, &Item<'_>) -> R) -> R {
        let (name, value) = (self.name(), self.value());
        let mut scratch = [0; 8];
        let expiry = (self.random.u8(..10) == 0).then(|| self.random.u64(..1 << 48));
        let mut item = Item {
            name: Cell::of(&name),
            value: None,
            expiry,
        };
        if K::FLAGS & PAIRS != 0 {
            item.value = Some(match K::IS_SORTED {
                true => Scores::cell(f64::from(self.random.i8(-2..3)) / 2.0, &mut scratch),
                false => Cell::of(&value),
            });
        }
        act(self, &item)
    }

    fn step(&mut self, grows: bool) {
        match self.random.u8(..100) {
            0..60 if grows => self.set(),
            0..25 => self.set(),
            25..90 => self.remove(),
            90..93 => self.cut(),
            93..96 => self.read(),
            96 => {
                let frozen = self.tree.freeze();
                self.clones.push((frozen, self.model.clone()));
            }
            97 if !self.clones.is_empty() => {
                let gone = self.random.usize(..self.clones.len());
                let (frozen, model) = self.clones.swap_remove(gone);
                compare(frozen.view(), &model);
                let copy = Tree::copy_of(frozen.view(), self.tree.leaf_max());
                copy.verify();
                compare(copy.view(), &model);
                if self.random.bool() {
                    drop(frozen.drop_if_light());
                }
                let copy = self.tree.copy();
                copy.verify();
                compare(copy.view(), &self.model);
            }
            98 => self.expire(),
            _ => {}
        }
    }

    /// Removes what has expired at some time, a few leaves at a time.
    fn expire(&mut self) {
        let bits = self.random.u8(40..=47);
        let now = self.random.u64(..1 << bits);
        let is_due = |(_, expiry): &Content| expiry.is_some_and(|at| now > at);
        let mut due: Vec<_> = self
            .model
            .iter()
            .filter(|(_, content)| is_due(content))
            .collect();
        due.sort();
        let due: Vec<Name> = due.into_iter().map(|(name, _)| name.clone()).collect();
        let (mut gone, kind) = (Vec::new(), self.tree.kind.clone());
        let next_due = self.model.values().filter_map(|(_, expiry)| *expiry).min();
        assert!(self.tree.next_due() <= next_due || next_due.is_none());
        assert!(next_due.is_none() || self.tree.next_due().is_some());
        while self
            .tree
            .remove_due(now, 3, &mut |item| gone.push(entry(&kind, item).0))
            == 3
        {}
        gone.sort();
        assert_eq!(gone, due);
        assert!(self.tree.next_due().is_none_or(|at| at >= now));
        self.model.retain(|_, content| !is_due(content));
        self.tree.verify();
    }

    fn set(&mut self) {
        self.with_item(|pair, item| {
            let (key, value) = entry(&pair.tree.kind, item);
            let found = pair
                .tree
                .view()
                .find(item)
                .map(|item| entry(&pair.tree.kind, &item).1);
            assert_eq!(found.as_ref(), pair.model.get(&key));
            let is_new = pair.model.insert(key.clone(), value).is_none();
            assert_eq!(
                pair.tree.set(item),
                if is_new { Put::Added } else { Put::Replaced }
            );
            assert_eq!(pair.tree.view().find(item), Some(*item));
            if K::IS_SORTED {
                let rank = pair.model.range(..key).count() as u64;
                assert_eq!(pair.tree.view().rank(item), Some(rank));
                assert_eq!(pair.tree.view().at(rank), Some(*item));
            }
        });
    }

    fn remove(&mut self) {
        let known = self
            .random
            .bool()
            .then(|| self.random.usize(..self.model.len().max(1)));
        if let Some(rank) = known.filter(|&rank| rank < self.model.len()) {
            let item = self.tree.view().at(rank as u64).expect("it is there");
            let key = entry(&self.tree.kind, &item).0;
            self.model.remove(&key).expect("the same are there");
            assert!(self.tree.remove_at(rank as u64));
            return;
        }
        self.with_item(|pair, item| {
            let key = entry(&pair.tree.kind, item).0;
            let is_there = pair.model.remove(&key).is_some();
            assert_eq!(pair.tree.remove_item(item), is_there);
            assert_eq!(pair.tree.view().find(item), None);
        });
    }

    /// Two places, of which the first is not above the second.
    fn edges(&mut self) -> [(u128, Vec<u8>); 2] {
        let mut edges = [(); 2].map(|()| {
            let (order, name) = self.with_item(|pair, item| entry(&pair.tree.kind, item).0);
            (order, if self.random.bool() { name } else { Vec::new() })
        });
        edges.sort();
        edges
    }

    fn cut(&mut self) {
        let [from, mut to] = self.edges();
        if self.random.u8(..4) > 0 {
            // Mostly little.
            let some = self.random.usize(..40);
            let next = self.model.range(from.clone()..).nth(some);
            to = next.map_or(to, |(key, _)| key.clone());
        }
        let is_open = self.random.u8(..50) == 0;
        let (first, last) = (edge(&from), edge(&to));
        let before = self.model.len();
        self.model
            .retain(|key, _| *key < from || !is_open && *key >= to);
        let gone = (before - self.model.len()) as u64;
        assert_eq!(self.tree.cut(&first, (!is_open).then_some(&last)), gone);
        self.tree.verify();
    }

    fn read(&mut self) {
        let [from, to] = self.edges();
        let (first, last) = (edge(&from), edge(&to));
        let view = self.tree.view();
        let mut found: Vec<_> = view
            .range(first, last)
            .map(|item| entry(view.kind, &item))
            .collect();
        if !K::IS_SORTED {
            found.sort();
        }
        assert!(
            found
                .iter()
                .map(|(key, value)| (key, value))
                .eq(self.model.range(from.clone()..to))
        );
        assert_eq!(
            view.count_before(&first),
            self.model.range(..from).count() as u64
        );
        let mut leaves: Vec<_> = view
            .leaves(&Edge::default())
            .map(|leaf| leaf.run().bytes().as_ptr())
            .collect();
        let end = Edge {
            order: u128::MAX,
            name: &[0xff; 2_000],
        };
        let back = view
            .leaves_back(&end)
            .map(|leaf| leaf.run().bytes().as_ptr());
        leaves.reverse();
        assert!(back.eq(leaves));
    }

    fn run(mut self, steps: usize) {
        for step in 0..steps {
            self.step((step / (steps / 6)).is_multiple_of(2));
            if step % 101 == 0 {
                self.tree.verify();
                compare(self.tree.view(), &self.model);
            }
        }
        self.tree.verify();
        for (frozen, model) in self.clones.drain(..self.clones.len() / 2) {
            compare(frozen.view(), &model);
        }
        // A tree that goes before its clones.
        let Pair {
            mut tree,
            clones,
            model,
            ..
        } = self;
        // All that expires has expired: the deadlines go with the last.
        tree.remove_due(u64::MAX, usize::MAX, &mut |_| ());
        tree.verify();
        assert_eq!(tree.next_due(), None);
        let left = model
            .values()
            .filter(|(_, expiry)| expiry.is_none())
            .count();
        assert_eq!(tree.count(), left as u64);
        drop(tree);
        for (frozen, model) in clones {
            compare(frozen.view(), &model);
        }
    }
}

const STEPS: usize = if cfg!(miri) { 300 } else { 20_000 };

fn seed() -> Seed {
    Seed::new(5)
}

#[test]
fn leaves_of_one_order_key_and_one_deadline_keep_it() {
    let mut tree = Tree::new(Colliding, 64);
    let mut item = Item::pair(Cell::Bytes(b"name"), Cell::Bytes(b"value"));
    item.expiry = Some(7);
    let names: Vec<String> = (100..130).map(|number| format!("a{number}")).collect();
    for name in &names {
        item.name = Cell::Bytes(name.as_bytes());
        tree.set(&item);
        tree.verify();
    }
    // The deadline of a leaf goes, and of others it stays, however it goes.
    for (at, name) in names.iter().enumerate().take(20) {
        item.name = Cell::Bytes(name.as_bytes());
        item.expiry = (at % 3 == 0).then_some(9);
        match at % 2 {
            0 => assert_eq!(tree.set(&item), Put::Replaced),
            _ => assert!(tree.remove_item(&item)),
        }
        tree.verify();
    }
    let gone = tree.remove_due(8, usize::MAX, &mut |_| ());
    tree.verify();
    assert!(gone > 0);
    assert_eq!((tree.count(), tree.next_due()), (10, Some(9)));
}

#[test]
fn fields_are_like_a_map() {
    for (round, leaf_max) in [64, 300, LEAF_MAX].into_iter().enumerate() {
        Pair::new(Fields { seed: seed() }, leaf_max, round as u64).run(STEPS);
    }
}

#[test]
fn members_are_like_a_map() {
    for (round, leaf_max) in [64, 300, LEAF_MAX].into_iter().enumerate() {
        Pair::new(Members { seed: seed() }, leaf_max, 10 + round as u64).run(STEPS);
    }
}

#[test]
fn scores_are_like_a_map() {
    for (round, leaf_max) in [64, 300, LEAF_MAX].into_iter().enumerate() {
        Pair::new(Scores, leaf_max, 20 + round as u64).run(STEPS);
    }
}

#[test]
fn order_keys_may_collide() {
    for (round, leaf_max) in [64, 300, LEAF_MAX].into_iter().enumerate() {
        Pair::new(Colliding, leaf_max, 30 + round as u64).run(STEPS);
    }
}

/// Held bytes are those of the nodes that changed since, and none once the clones have ended.
#[test]
fn clones_hold_what_they_see() {
    let mut tree = filled(2_000, 1);
    let before = tree.bytes();
    let clone = tree.freeze();
    let second = tree.freeze();
    assert_eq!((tree.bytes(), tree.held_bytes()), (before, 0));
    tree.set(&Item::pair(Cell::Bytes(b"one more"), Cell::Int(1)));
    let leaf_and_root = tree.held_bytes();
    assert!((1_000..=4_096).contains(&leaf_and_root), "{leaf_and_root}");
    tree.set(&Item::pair(Cell::Bytes(b"one more"), Cell::Int(2)));
    assert_eq!(tree.held_bytes(), leaf_and_root, "copied once");
    drop(clone);
    assert_eq!(tree.held_bytes(), leaf_and_root, "the second sees them too");
    let third = tree.freeze();
    tree.cut(&Edge::default(), None);
    assert!(tree.held_bytes() > before);
    drop(second);
    assert_eq!(third.view().count(), 2_001);
    drop(third);
    assert_eq!((tree.held_bytes(), tree.count()), (0, 0));
    tree.verify();
}

/// A clone ends where it is dropped if few nodes were replaced; else its owner has it still.
#[test]
fn a_clone_that_is_light_is_dropped() {
    let mut tree = filled(2_000, 1);
    assert!(tree.freeze().drop_if_light().is_none());
    let clone = tree.freeze();
    tree.set(&Item::pair(Cell::Bytes(b"one more"), Cell::Int(1)));
    assert!(tree.held_bytes() > 0);
    assert!(clone.drop_if_light().is_none());
    assert_eq!(tree.held_bytes(), 0);
    let clone = tree.freeze();
    while tree.count() > 1_000 {
        tree.remove_at(tree.count() / 2);
    }
    let clone = clone
        .drop_if_light()
        .expect("half of the nodes were replaced");
    assert_eq!(clone.view().iter().count(), 2_001);
    drop(clone);
    assert_eq!(tree.held_bytes(), 0);
    let clone = tree.freeze();
    drop(tree);
    let clone = clone.drop_if_light().expect("the tree is gone");
    assert_eq!(clone.view().iter().count(), 1_000);
}

/// A clone is read by a thread while the tree is changed by another.
#[test]
fn a_clone_is_read_beside_writes() {
    let mut tree = filled(if cfg!(miri) { 100 } else { 20_000 }, 2);
    let (clone, count) = (tree.freeze(), tree.count());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..5 {
                assert_eq!(clone.view().iter().count() as u64, count);
            }
        });
        let mut random = fastrand::Rng::with_seed(9);
        while tree.count() > count / 2 {
            tree.remove_at(random.u64(..tree.count()));
        }
    });
    tree.verify();
    assert_eq!(tree.held_bytes(), 0);
}

fn words(random: &mut fastrand::Rng) -> [String; 2] {
    // Of 12 to 16 bytes.
    [b'f', b'v'].map(|kind| {
        let len = random.usize(11..=15);
        let letters = (0..len).map(|_| random.alphanumeric());
        char::from(kind).to_string() + &letters.collect::<String>()
    })
}

fn filled(count: usize, seed: u64) -> Tree<Fields> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut tree = Tree::new(Fields { seed: self::seed() }, LEAF_MAX);
    for _ in 0..count {
        let [field, value] = words(&mut random);
        tree.set(&Item::pair(
            Cell::of(field.as_bytes()),
            Cell::of(value.as_bytes()),
        ));
    }
    tree
}

fn own_bytes(tree: &Tree<Fields>) -> usize {
    let bytes = |item: Item<'_>| item.name.text_len() + item.value.map_or(0, Cell::text_len);
    tree.view().iter().map(bytes).sum()
}

/// Bytes per field beyond the user's own, for fields and values of 12 to 16 bytes: at most 10; after
/// half of them were removed by chance, at most 1.3 times what a fresh tree of the rest takes.
#[test]
fn a_tree_is_small() {
    for (count, seed) in [(500, 1), (10_000, 2), (10_000, 3), (1_000_000, 4)] {
        if cfg!(miri) && count > 500 {
            return;
        }
        let mut tree = filled(count, seed);
        let each = (tree.bytes() - own_bytes(&tree)) as f64 / tree.count() as f64;
        let mut random = fastrand::Rng::with_seed(seed);
        while tree.count() > count as u64 / 2 {
            tree.remove_at(random.u64(..tree.count()));
        }
        let left = (tree.bytes() - own_bytes(&tree)) as f64 / tree.count() as f64;
        let mut fresh = Tree::new(Fields { seed: self::seed() }, LEAF_MAX);
        let mut items: Vec<_> = tree.view().iter().collect();
        random.shuffle(&mut items);
        for item in items {
            fresh.set(&item);
        }
        let ratio = tree.bytes() as f64 / fresh.bytes() as f64;
        println!(
            "{count} fields: {each:.2} bytes a field; half of them: {left:.2}, {ratio:.3} of a fresh tree"
        );
        tree.verify();
        assert!(each <= 10.0, "{each}");
        assert!(ratio <= 1.3, "{ratio}");
    }
}

/// Bytes that are a run, and yet no leaf of the kind and range.
#[test]
fn leaves_of_others_are_checked() {
    let run = |flags: u8, items: &[Item<'_>]| {
        let mut bytes = Run::empty(flags).to_vec();
        for (index, item) in items.iter().enumerate() {
            let (len, growth) = (bytes.len(), Run::trusted(&bytes).growth(item, None));
            bytes.resize(len.saturating_add_signed(growth.expect("it is small")), 0);
            RunMut::new(&mut bytes, len).insert(index, item);
        }
        bytes
    };
    let [one, two] = [1, 2].map(|score| Item::pair(Cell::Bytes(b"member"), Cell::Int(score)));
    let order = |item: &Item<'_>| Edge::before(Scores.order(item));
    let check = |bytes: &[u8], from: &Edge<'_>, to: Option<&Edge<'_>>| {
        Scores.check_leaf(bytes, from, to).map(Run::count)
    };
    let both = run(PAIRS, &[one, two]);
    assert_eq!(check(&both, &order(&one), None), Ok(2));
    assert_eq!(check(&both, &order(&two), None), Err(Damage::Order));
    assert_eq!(
        check(&both, &order(&one), Some(&order(&two))),
        Err(Damage::Order)
    );
    assert_eq!(
        check(&run(PAIRS, &[two, one]), &order(&one), None),
        Err(Damage::Order)
    );
    assert_eq!(
        check(&run(PAIRS, &[one, one]), &order(&one), None),
        Err(Damage::Order)
    );
    assert_eq!(
        check(&run(PAIRS | TAGGED, &[one]), &order(&one), None),
        Err(Damage::Kind)
    );
    // Members of one order key are in the order of their names.
    let [near, far] = [&b"a member"[..], b"a member and more"]
        .map(|name| Item::pair(Cell::Bytes(name), Cell::Int(1)));
    let after = Edge {
        name: b"a member and",
        ..order(&near)
    };
    let both_near = run(PAIRS, &[near, far]);
    assert_eq!(check(&both_near, &order(&near), None), Ok(2));
    assert_eq!(check(&both_near, &after, None), Err(Damage::Order));
    let up_to = check(&both_near, &order(&near), Some(&after));
    assert_eq!(up_to, Err(Damage::Order));
    for wrong in [[far, near], [near, near]] {
        let checked = check(&run(PAIRS, &wrong), &order(&near), None);
        assert_eq!(checked, Err(Damage::Order));
    }
    let no_number = Cell::Bytes(&[0xff; 8]);
    let wrong = run(PAIRS, &[Item::pair(Cell::Bytes(b"member"), no_number)]);
    assert_eq!(check(&wrong, &Edge::default(), None), Err(Damage::Kind));
    assert_eq!(check(&both[..9], &Edge::default(), None), Err(Damage::Item));
}

/// Items that come in order, at either end, fill their leaves.
#[test]
fn leaves_that_grow_at_an_end_are_full() {
    for at_end in [true, false] {
        let mut tree = Tree::new(Scores, LEAF_MAX);
        for number in 0..(STEPS as i64) {
            let score = if at_end { number } else { -number };
            tree.set(&Item::pair(Cell::Bytes(b"member"), Cell::Int(score)));
        }
        tree.verify();
        let leaves = tree.view().leaves(&Edge::default());
        let bytes: Vec<_> = leaves.map(|leaf| leaf.run().bytes().len()).collect();
        let full = bytes.iter().filter(|&&len| len > LEAF_MAX * 9 / 10).count();
        assert!(full + 1 >= bytes.len(), "{full} of {}", bytes.len());
    }
}
