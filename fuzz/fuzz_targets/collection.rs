//! Any bytes as a run: checking never panics, and what is accepted is read, edited and emptied like any
//! run. Any bytes as changes of trees of each kind: they stay what their invariants say, and equal to a
//! map, or the elements of a list to a queue, with clones held.

#![no_main]

use std::collections::{BTreeMap, VecDeque};

use keyspace::Seed;
use keyspace::collection::cell::{Cell, DECIMAL_MAX};
use keyspace::collection::clones::Frozen;
use keyspace::collection::kind::{Edge, Elements, Fields, LeafKind, Members, Scores};
use keyspace::collection::log::numbered::NumberedEdits;
use keyspace::collection::run::{Damage, Item, NUMBERED, PAIRS, Run, RunMut, TAGGED};
use keyspace::collection::tree::{End, LEAF_MAX, LIST_LEAF_MAX, Put, Tree};
use keyspace::collection::view::View;
use libfuzzer_sys::fuzz_target;

type Name = (u128, Vec<u8>);
type Content = (Option<Vec<u8>>, Option<u64>);
type Model = BTreeMap<Name, Content>;

/// Fields of whose order keys there are two.
#[derive(Clone)]
struct Colliding;

impl LeafKind for Colliding {
    const FLAGS: u8 = TAGGED | PAIRS;
    const IS_SORTED: bool = false;

    fn order(&self, item: &Item<'_>) -> u128 {
        (item.name.text_len() as u128 % 2) << 64
    }
}

/// An input that is used up.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn text(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte() % 24).min(self.0.len());
        let (text, rest) = self.0.split_at(len);
        self.0 = rest;
        text
    }
}

fn text(cell: Cell<'_>) -> Vec<u8> {
    cell.text(&mut [0; DECIMAL_MAX]).to_vec()
}

fn entry<K: LeafKind>(kind: &K, item: &Item<'_>) -> (Name, Content) {
    ((kind.order(item), text(item.name)), (item.value.map(text), item.expiry))
}

fn compare<K: LeafKind>(kind: &K, view: View<'_, K>, model: &Model) {
    let found: Vec<_> = view.iter().map(|item| entry(kind, &item)).collect();
    if K::IS_SORTED {
        assert!(found.iter().map(|(name, _)| name).eq(model.keys()));
    }
    assert_eq!(view.count() as usize, found.len());
    assert_eq!(&found.into_iter().collect::<Model>(), model);
    assert_eq!(view.count() as usize, model.len());
}

fn change<K: LeafKind + Clone>(kind: K, leaf_max: usize, mut input: Input<'_>) {
    let mut tree = Tree::new(kind.clone(), leaf_max);
    let mut model = Model::new();
    let mut clones: Vec<(Frozen<K>, Model)> = Vec::new();
    while !input.0.is_empty() {
        let (action, name, value) = (input.byte(), input.text(), input.text());
        let mut scratch = [0; 8];
        let long = vec![b'l'; usize::from(action) * 20];
        let mut item = Item::single(Cell::of(name));
        item.expiry = (action % 7 == 0).then_some(u64::from(action));
        if K::FLAGS & PAIRS != 0 {
            item.value = Some(match (K::IS_SORTED, action % 16) {
                (true, _) => Scores::cell(f64::from(value.len() as u32) / 4.0, &mut scratch),
                (false, 3) => Cell::Bytes(&long),
                _ => Cell::of(value),
            });
        }
        let (key, content) = entry(&kind, &item);
        match action {
            0..140 => {
                let is_new = model.insert(key, content).is_none();
                assert_eq!(tree.set(&item), if is_new { Put::Added } else { Put::Replaced });
                assert_eq!(tree.view().find(&item), Some(item));
            }
            140..180 => assert_eq!(tree.remove_item(&item), model.remove(&key).is_some()),
            180..210 if !model.is_empty() => {
                let rank = u64::from(action) * 7919 % tree.count();
                let gone = tree.view().at(rank).expect("there are more");
                model.remove(&entry(&kind, &gone).0).expect("the same are there");
                assert!(tree.remove_at(rank));
            }
            210..225 => {
                let other = (key.0 ^ u128::from(action) << 120, value.to_vec());
                let (from, to) = if key < other { (key, other) } else { (other, key) };
                let before = model.len();
                model.retain(|name, _| *name < from || *name >= to);
                let last = Edge { order: to.0, name: &to.1 };
                let gone = tree.cut(&Edge { order: from.0, name: &from.1 }, Some(&last));
                assert_eq!(gone as usize, before - model.len());
            }
            225..235 => clones.push((tree.freeze(), model.clone())),
            235..240 => {
                let now = value.len() as u64 * 16;
                while tree.remove_due(now, 2, &mut |_| ()) == 2 {}
                model.retain(|_, (_, expiry)| expiry.is_none_or(|at| now <= at));
            }
            240.. if !clones.is_empty() => {
                let (clone, model) = clones.swap_remove(usize::from(action) % clones.len());
                compare(&kind, clone.view(), &model);
            }
            _ => {}
        }
    }
    tree.verify();
    compare(&kind, tree.view(), &model);
    drop(tree);
    for (clone, model) in clones {
        compare(&kind, clone.view(), &model);
    }
}

/// A list: its leaves are deques.
fn elements(leaf_max: usize, mut input: Input<'_>) {
    let (mut tree, mut model) = (Tree::new(Elements, leaf_max), VecDeque::<Vec<u8>>::new());
    let mut clones: Vec<(Frozen<Elements>, VecDeque<Vec<u8>>)> = Vec::new();
    let mut log = NumberedEdits::default();
    let compare = |view: View<'_, Elements>, model: &VecDeque<Vec<u8>>| {
        assert!(view.iter().map(|item| text(item.name)).eq(model.iter().cloned()));
    };
    while !input.0.is_empty() {
        let (action, element) = (input.byte(), input.text());
        let (cell, count) = (Cell::of(element), model.len());
        let at = usize::from(input.byte()) * count / 256;
        match action {
            0..80 => {
                tree.push(End::Front, cell, &mut log);
                model.push_front(element.to_vec());
            }
            80..160 => {
                tree.push(End::Back, cell, &mut log);
                model.push_back(element.to_vec());
            }
            160..180 if count > 0 => {
                tree.cut_ranks(0, 1, &mut log);
                model.pop_front();
            }
            180..200 if count > 0 => {
                tree.cut_ranks(count as u64 - 1, count as u64, &mut log);
                model.pop_back();
            }
            200..215 if count > 0 => {
                tree.put_rank(at as u64, cell, &mut log);
                model[at] = element.to_vec();
            }
            215..225 => {
                tree.insert_rank(at as u64, cell, &mut log);
                model.insert(at, element.to_vec());
            }
            225..235 => {
                let to = (at + element.len()).min(count);
                tree.cut_ranks(at as u64, to as u64, &mut log);
                model.drain(at..to);
            }
            235..245 => clones.push((tree.freeze(), model.clone())),
            _ if !clones.is_empty() => {
                let (clone, model) = clones.swap_remove(usize::from(action) % clones.len());
                compare(clone.view(), &model);
            }
            _ => {}
        }
    }
    tree.verify();
    compare(tree.view(), &model);
    drop(tree);
    for (clone, model) in clones {
        compare(clone.view(), &model);
    }
}

/// A leaf is a run whose items are inside its range, and in their order where they have one.
fn check_leaf<K: LeafKind>(kind: &K, bytes: &[u8]) {
    let Ok(run) = Run::check(bytes) else {
        assert!(kind.check_leaf(bytes, &Edge::default(), None).is_err());
        return;
    };
    let edges: Vec<Name> = run
        .iter()
        .map(|item| (kind.order(&item), item.name.text(&mut [0; DECIMAL_MAX]).to_vec()))
        .collect();
    let edge = |index: usize| edges.get(index).map(|(order, name)| Edge { order: *order, name });
    let count = edges.len();
    for (from, to) in [(None, None), (edge(0), None), (edge(count / 2), edge(count.saturating_sub(1)))] {
        let from = from.unwrap_or_default();
        let is_inside = (0..count).filter_map(edge).all(|it| from <= it && to.is_none_or(|to| it < to));
        let is_right = is_inside && (!K::IS_SORTED || edges.is_sorted_by(|one, other| one < other));
        match kind.check_leaf(bytes, &from, to.as_ref()) {
            Ok(_) => assert!(is_right),
            Err(Damage::Order) => assert!(!is_right),
            Err(_) => {}
        }
    }
}

/// What is accepted as a run is one in every way.
fn check(bytes: &[u8]) {
    let kinds = (Fields { seed: Seed::new(1) }, Members { seed: Seed::new(1) });
    check_leaf(&kinds.0, bytes);
    check_leaf(&kinds.1, bytes);
    check_leaf(&Scores, bytes);
    check_leaf(&Colliding, bytes);
    let Ok(run) = Run::check(bytes) else { return };
    if Scores.check_leaf(bytes, &Edge::default(), None).is_ok() {
        let scores = run.iter().map(|item| Scores::score(item.value.expect("it has a score")));
        let scores: Option<Vec<f64>> = scores.collect();
        assert!(scores.expect("they are numbers").is_sorted());
    }
    let items: Vec<Item<'_>> = run.iter().collect();
    assert_eq!(items.len(), run.count());
    for (index, item) in items.iter().enumerate().take(100) {
        assert_eq!(run.get(index), Some(*item));
        if run.flags() & TAGGED != 0 {
            assert_eq!(run.find(item.name), Some(index));
        }
    }
    let value = (run.flags() & PAIRS != 0).then_some(Cell::Int(1));
    let expiry = (run.flags() & NUMBERED == 0).then_some(9);
    let one = Item { name: Cell::Int(-77), value, expiry };
    let growth = run.growth(&one, None);
    let room = growth.unwrap_or_default().max(0) as usize;
    let mut buffer = [bytes, &vec![0xff; room]].concat();
    let mut edited = RunMut::new(&mut buffer, bytes.len());
    if growth.is_some() && run.find(one.name).is_none() {
        edited.insert(items.len() / 2, &one);
        Run::check(edited.run().bytes()).expect("it is one still");
        edited.remove(items.len() / 2);
    }
    while !edited.is_empty() && items.len() < 200 {
        edited.remove(edited.run().count() / 3);
        Run::check(edited.run().bytes()).expect("it is one still");
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    let leaf_max = if first & 8 == 0 { 64 } else { LEAF_MAX };
    let (seed, input) = (Seed::new(1), Input(rest));
    match first & 7 {
        0 => change(Fields { seed }, leaf_max, input),
        1 => change(Members { seed }, leaf_max, input),
        2 => change(Scores, leaf_max, input),
        3 => change(Colliding, leaf_max, input),
        4 => elements(if leaf_max == LEAF_MAX { LIST_LEAF_MAX } else { leaf_max }, input),
        _ => check(rest),
    }
});
