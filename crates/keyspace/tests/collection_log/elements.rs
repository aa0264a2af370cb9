//! Changes of a list, and what should be in it.

use keyspace::ListRef;
use keyspace::collection::Base;
use keyspace::collection::cell::Cell;
use keyspace::collection::kind::Elements;
use keyspace::collection::log::edits::Edits;
use keyspace::collection::log::numbered::NumberedEdits;
use keyspace::collection::tree::{End, Tree};

use super::{Model, Record, World, verify};

/// The elements of a list, each by its rank.
pub(super) fn elements(tree: &Tree<Elements>) -> Model {
    tree.verify();
    let elements = tree.view().iter().enumerate().map(|(rank, item)| {
        let text = item.name.text(&mut [0; 20]).to_vec();
        (rank_name(rank), (text, None))
    });
    elements.collect()
}

fn rank_name(rank: usize) -> Vec<u8> {
    format!("{rank:09}").into_bytes()
}

/// A change of a list, of the element of a rank if it does not say which.
enum Change {
    Remove(Vec<u64>),
    Cut(u64, u64),
    Put,
    Push(End),
    Insert,
}

impl World {
    /// A change; of four, so many are removals.
    fn change(&mut self, removals: u64, rank: u64, len: u64) -> Change {
        let random = &mut self.random;
        if random.below(4) < removals {
            return match random.below(30) {
                0..3 => Change::Remove((0..len).filter(|_| random.below(9) == 0).collect()),
                3 => Change::Cut(0, rank),
                4 => Change::Cut(rank, len),
                _ => Change::Cut(rank, (rank + random.below(4)).min(len)),
            };
        }
        match random.below(4) {
            0 if rank < len => Change::Put,
            1 => Change::Push(End::Front),
            2 => Change::Push(End::Back),
            _ => Change::Insert,
        }
    }

    /// Brings back the leaves that a change needs.
    fn warm_for(&mut self, change: &Change, len: u64) {
        let elements = ListRef::of(&self.tree).expect("it is a list");
        let mut cold = match *change {
            Change::Remove(_) | Change::Insert | Change::Put => self.tree.cold_records().collect(),
            Change::Cut(from, to) if (from, to) == (0, len) => self.tree.cold_records().collect(),
            Change::Cut(from, to) => elements.cold_for_cut(from, to),
            Change::Push(end) => elements.cold_for_push(end),
        };
        cold.sort_by_key(|base: &Base| base.at);
        cold.dedup();
        cold.into_iter().for_each(|base| self.warm_from(base));
    }

    /// One record of changes of a list; of four, so many are removals.
    pub(super) fn edit_elements(&mut self, removals: u64) {
        let mut log = NumberedEdits::new(Some(Edits::default()));
        let mut model: Vec<_> = std::mem::take(&mut self.model).into_values().collect();
        for _ in 0..=self.random.below(3) {
            let len = model.len() as u64;
            let element = self.random.below(1_000_000).to_string().into_bytes();
            let rank = match self.random.below(5) {
                0 => 0,
                1 => len,
                2 => len / 2,
                _ => self.random.below(len + 1),
            };
            let (change, log) = (self.change(removals, rank, len), &mut log);
            self.warm_for(&change, len);
            let (tree, cell) = (self.tree.elements_mut(), Cell::of(&element));
            match change {
                Change::Remove(gone) => {
                    tree.remove_ranks(&gone, log);
                    for &rank in gone.iter().rev() {
                        model.remove(rank as usize);
                    }
                }
                Change::Cut(from, to) => {
                    tree.cut_ranks(from, to, log);
                    model.drain(from as usize..to as usize);
                }
                Change::Put => {
                    tree.put_rank(rank, cell, log);
                    model[rank as usize].0 = element;
                }
                Change::Push(End::Front) => {
                    tree.push(End::Front, cell, log);
                    model.insert(0, (element, None));
                }
                Change::Push(End::Back) => {
                    tree.push(End::Back, cell, log);
                    model.push((element, None));
                }
                Change::Insert => {
                    tree.insert_rank(rank, cell, log);
                    model.insert(rank as usize, (element, None));
                }
            }
        }
        let model = model.into_iter().enumerate();
        self.model = model
            .map(|(rank, element)| (rank_name(rank), element))
            .collect();
        let edits = log.edits.expect("they are collected");
        if !edits.is_empty() {
            self.log.append(Record::Edit(edits.bytes().to_vec()));
        }
        self.tree.tell_lost();
        verify(&self.tree);
    }
}
