//! Leaves of a collection of any kind that leave memory, and come back: see [`super::tree`].

use super::any::{Collection, each};
use super::cell::Cell;
use super::kind::{Edge, LeafPlace};
use super::log::leaf::LeafRecord;
use super::node::Base;
use super::run::Damage;
use super::tree::Leaving;

impl Collection {
    /// How many leaves are in the log alone. See [`super::tree`].
    pub fn cold_leaves(&self) -> usize {
        each!(Collection, self, tree => tree.cold_leaves())
    }

    /// The record of the leaf that covers a name, if it is in the log alone. Elements of a list have no
    /// names. Commands do not name items of a stream.
    pub fn cold_record(&self, name: Cell<'_>) -> Option<Base> {
        match self {
            Collection::Hash(tree) => tree.cold_record(name),
            Collection::Set(tree) => tree.cold_record(name),
            Collection::SortedSet(set) => set.cold_record(name),
            Collection::List(_) | Collection::Stream(_) => None,
        }
    }

    /// The records of all leaves that are in the log alone.
    pub fn cold_records(&self) -> impl Iterator<Item = Base> {
        let leaves = each!(Collection, self, tree => tree.view().leaves(&Edge::default()));
        leaves.filter(|leaf| leaf.is_cold()).map(|leaf| leaf.base())
    }

    /// The records of the leaves that have items of these ranks and are in the log alone; of some of them
    /// more than once.
    pub fn cold_records_of_ranks(&self, ranks: &[u64]) -> Vec<Base> {
        let record = |&rank: &u64| each!(Collection, self, tree => tree.view().cold_at(rank));
        ranks.iter().filter_map(record).collect()
    }

    /// The records of the leaves that have items of the ranks from one to another and are in the log alone.
    pub fn cold_records_between(&self, from: u64, to: u64) -> Vec<Base> {
        each!(Collection, self, tree => tree.view().cold_between(from, to))
    }

    /// The records of the leaves that are in the log alone, of those that a scan shows. See
    /// [`Tree::cold_records_of_scan`].
    pub fn cold_records_of_scan(&self, cursor: u64, count: usize) -> Vec<Base> {
        each!(Collection, self, tree => tree.cold_records_of_scan(cursor, count))
    }

    /// The leaf that is the next to leave memory, of the next `looks`. See [`Tree::next_leaving`].
    pub fn next_leaving(&mut self, looks: &mut usize) -> Option<Leaving> {
        each!(Collection, self, tree => tree.next_leaving(looks))
    }

    /// Whether [`Collection::next_leaving`] may find a leaf. See [`Tree::may_have_leaving`].
    pub fn may_have_leaving(&self) -> bool {
        each!(Collection, self, tree => tree.may_have_leaving())
    }

    /// Lets the items of a leaf leave memory. See [`Tree::chill`].
    pub fn chill(&mut self, place: &LeafPlace, record: Base) -> bool {
        each!(Collection, self, tree => tree.chill(place, record))
    }

    /// All leaves that may leave memory. See [`Tree::all_leaving`].
    pub fn all_leaving(&self) -> Vec<Leaving> {
        each!(Collection, self, tree => tree.all_leaving())
    }

    /// Sets the hand of [`Collection::next_leaving`]. See [`Tree::look_again`].
    pub fn look_again(&mut self, place: LeafPlace) {
        each!(Collection, self, tree => tree.look_again(place));
    }

    /// Whether leaves in memory take more than what is left of cold ones does.
    pub fn has_warm_leaves(&self) -> bool {
        each!(Collection, self, tree => tree.has_warm_leaves())
    }

    /// Bytes of the records of leaves that are in the log alone.
    pub fn cold_bytes(&self) -> u64 {
        each!(Collection, self, tree => tree.cold_bytes())
    }

    /// Gives a leaf its items back. See [`Tree::warm`].
    ///
    /// # Errors
    /// The record makes no sense.
    pub fn warm(&mut self, at: u64, record: &LeafRecord<'_>) -> Result<bool, Damage> {
        each!(Collection, self, tree => tree.warm(at, record))
    }
}
