//! Changes of a list, and what should be in it.

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

impl World {
    /// One record of changes of a list; of four, so many are removals.
    pub(super) fn edit_elements(&mut self, removals: u64) {
        // As the server does it.
        let cold: Vec<_> = self.tree.cold_records().collect();
        cold.into_iter().for_each(|base| self.warm_from(base));
        let mut log = NumberedEdits::new(Some(Edits::default()));
        let mut model: Vec<_> = std::mem::take(&mut self.model).into_values().collect();
        for _ in 0..=self.random.below(3) {
            let (random, len) = (&mut self.random, model.len() as u64);
            let tree = self.tree.elements_mut();
            let element = random.below(1_000_000).to_string().into_bytes();
            let rank = match random.below(5) {
                0 => 0,
                1 => len,
                2 => len / 2,
                _ => random.below(len + 1),
            };
            if random.below(4) < removals {
                let to = (rank + random.below(4)).min(len);
                match random.below(30) {
                    0..4 => {
                        let gone: Vec<_> = (0..len).filter(|_| random.below(9) == 0).collect();
                        tree.remove_ranks(&gone, &mut log);
                        for &rank in gone.iter().rev() {
                            model.remove(rank as usize);
                        }
                    }
                    4 => {
                        tree.cut_ranks(0, rank, &mut log);
                        model.drain(..rank as usize);
                    }
                    _ => {
                        tree.cut_ranks(rank, to, &mut log);
                        model.drain(rank as usize..to as usize);
                    }
                }
            } else if rank < len && random.below(4) == 0 {
                tree.put_rank(rank, Cell::of(&element), &mut log);
                model[rank as usize].0 = element;
            } else if random.below(3) == 0 {
                tree.push(End::Front, Cell::of(&element), &mut log);
                model.insert(0, (element, None));
            } else {
                tree.insert_rank(rank, Cell::of(&element), &mut log);
                model.insert(rank as usize, (element, None));
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
