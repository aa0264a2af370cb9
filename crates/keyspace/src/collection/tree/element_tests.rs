//! Elements of lists against vectors, and what a replay of their edits gives.

use super::base::{LEAF_MAX, LIST_LEAF_MAX, Tree};
use crate::collection::cell::Cell;
use crate::collection::clones::Frozen;
use crate::collection::kind::Elements;
use crate::collection::log::edits::{self, Edit, Edits};
use crate::collection::log::numbered::NumberedEdits;
use crate::collection::run::End;
use crate::collection::view::View;

/// Changes of a test.
const STEPS: usize = if cfg!(miri) { 300 } else { 20_000 };

fn elements(view: View<'_, Elements>) -> Vec<i64> {
    let numbers = view.iter().map(|item| match item.name {
        Cell::Int(number) => number,
        Cell::Bytes(_) => unreachable!("all are numbers"),
    });
    numbers.collect()
}

/// Applies what a record says.
fn amend(tree: &mut Tree<Elements>, record: &NumberedEdits) {
    let edits = record.edits.as_ref().expect("they are collected");
    for edit in edits::read(edits.bytes(), false) {
        match edit.expect("it was written") {
            Edit::Put(number, element) => tree.put_number(number, element),
            Edit::Cut(from, to) => drop(tree.cut_numbers(from, to)),
            edit => unreachable!("{edit:?} in a record of a tree"),
        }
    }
}

#[test]
fn elements_are_like_a_vector() {
    for leaf_max in [64, LEAF_MAX, LIST_LEAF_MAX] {
        let mut random = fastrand::Rng::with_seed(leaf_max as u64);
        let mut tree = Tree::new(Elements, leaf_max);
        // What a replay gives.
        let mut again = Tree::new(Elements, leaf_max);
        let mut model: Vec<i64> = Vec::new();
        let mut clones: Vec<(Frozen<Elements>, Vec<i64>)> = Vec::new();
        for step in 0..STEPS {
            let grows = (step / (STEPS / 5)).is_multiple_of(2);
            let mut log = NumberedEdits::new(Some(Edits::default()));
            let at = match random.u8(..4) {
                0 => 0,
                1 => model.len(),
                // Again and again at one place.
                2 => model.len() / 2,
                _ => random.usize(..=model.len()),
            };
            if random.u8(..10) < if grows { 7 } else { 3 } {
                let element = random.i64(-100..100_000);
                tree.insert_rank(at as u64, Cell::Int(element), &mut log);
                model.insert(at, element);
            } else {
                let to = (at + random.usize(..3)).min(model.len());
                tree.cut_ranks(at as u64, to as u64, &mut log);
                model.drain(at..to);
            }
            if random.u8(..20) == 0 {
                let share = random.usize(1..40);
                let gone = (0..model.len()).filter(|_| random.usize(..share) == 0);
                let gone: Vec<_> = gone.map(|rank| rank as u64).collect();
                tree.remove_ranks(&gone, &mut log);
                let mut rank = 0;
                model.retain(|_| {
                    rank += 1;
                    gone.binary_search(&(rank - 1)).is_err()
                });
            }
            if !model.is_empty() {
                let at = random.usize(..model.len());
                tree.put_rank(at as u64, Cell::Int(7), &mut log);
                model[at] = 7;
            }
            amend(&mut again, &log);
            match random.u8(..100) {
                0 => clones.push((tree.freeze(), model.clone())),
                1 if !clones.is_empty() => {
                    let (frozen, model) = clones.swap_remove(random.usize(..clones.len()));
                    assert_eq!(elements(frozen.view()), model);
                }
                2 => again = again.copy(),
                _ => {}
            }
            if step % 50 == 0 {
                tree.verify();
                again.verify();
                assert_eq!(elements(tree.view()), model);
                assert_eq!(elements(again.view()), model);
            }
        }
    }
}

#[test]
fn elements_go_on_when_the_numbers_of_an_end_are_used_up() {
    for (number, end) in [(5, End::Front), (u64::MAX - 5, End::Back)] {
        let mut tree = Tree::new(Elements, 64);
        tree.put_number(number, Cell::Int(0));
        let mut model = std::collections::VecDeque::from([0]);
        for element in 1..100 {
            let mut log = NumberedEdits::default();
            tree.push(end, Cell::Int(element), &mut log);
            match end {
                End::Front => model.push_front(element),
                End::Back => model.push_back(element),
            }
            tree.verify();
            assert!(elements(tree.view()).iter().eq(&model));
        }
    }
}

/// A queue takes no more memory, and no more levels, however many elements have gone through it.
#[test]
fn a_queue_keeps_its_size() {
    let mut log = NumberedEdits::default();
    let mut tree = Tree::new(Elements, LIST_LEAF_MAX);
    let elements = if cfg!(miri) { 500 } else { 10_000 };
    for element in 0..elements {
        tree.push(End::Front, Cell::Int(element), &mut log);
    }
    let (bytes, height) = (tree.bytes(), tree.height);
    for element in elements..30 * elements {
        tree.push(End::Front, Cell::Int(element), &mut log);
        let last = tree.view().at(tree.count() - 1).map(|item| item.name);
        assert_eq!(last, Some(Cell::Int(element - elements)));
        tree.cut_ranks(elements as u64, elements as u64 + 1, &mut log);
    }
    tree.verify();
    assert!(tree.bytes() < bytes * 3 / 2, "{} {bytes}", tree.bytes());
    assert_eq!(tree.height, height);
}

/// Bytes per element beyond the user's own, of lists of 10,000 elements of 14 bytes.
#[test]
fn a_list_is_small() {
    let elements = if cfg!(miri) { 500 } else { 10_000 };
    for (end, most) in [(End::Back, 1.75), (End::Front, 1.75)] {
        let mut log = NumberedEdits::default();
        let mut tree = Tree::new(Elements, LIST_LEAF_MAX);
        for element in 0..elements {
            let text = format!(
                "{:08x}{element:06}",
                (element * 2_654_435_761_u64) & 0xffff_ffff
            );
            tree.push(end, Cell::Bytes(text.as_bytes()), &mut log);
        }
        let each = tree.bytes() as f64 / elements as f64 - 14.0;
        println!("{end:?}: {each:.2} bytes an element");
        assert!(each <= most || cfg!(miri), "{each}");
        // The leaves that a start makes of the records of these are no larger.
        let copy = tree.copy();
        assert!(
            copy.bytes() <= tree.bytes(),
            "{} {}",
            copy.bytes(),
            tree.bytes()
        );
    }
}
