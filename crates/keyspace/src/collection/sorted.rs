//! A large sorted set: a tree of its items in the order of their scores, and the scores by member.
//!
//! The tree is what is logged, frozen and offloaded. The table ([`super::score_table`]) is derived from it
//! and stays in memory, also for members whose leaf is not.

use std::ops::Deref;

use super::cell::{Cell, DECIMAL_MAX};
use super::clones::Frozen;
use super::kind::{Edge, LeafPlace, Scores, hash};
use super::log::leaf::LeafRecord;
use super::node::Base;
use super::run::{Damage, Item};
use super::scans::Scans;
use super::score_table::{ScoreTable, plain, spread};
use super::tree::{Leaving, Put, Tree};
use crate::hash::Seed;

/// See the module.
#[derive(Debug)]
pub struct SortedSet {
    pub(super) seed: Seed,
    tree: Tree<Scores>,
    pub(super) scores: ScoreTable,
    /// Where scans are, if some run in the order of the tree.
    pub(super) scans: Option<Box<Scans>>,
}

/// The tree, to be read.
impl Deref for SortedSet {
    type Target = Tree<Scores>;

    fn deref(&self) -> &Tree<Scores> {
        &self.tree
    }
}

/// The score of an item of a sorted set.
#[inline]
pub fn score_of(item: &Item<'_>) -> f64 {
    item.value.and_then(Scores::score).unwrap_or(0.0)
}

/// An item of a sorted set; `scratch` holds a score that is no integer.
#[inline]
pub fn scored<'a>(member: Cell<'a>, score: f64, scratch: &'a mut [u8; 8]) -> Item<'a> {
    Item::pair(member, Scores::cell(score, scratch))
}

/// The scores of a sorted set that is being made.
pub(super) struct Scored {
    seed: Seed,
    scores: ScoreTable,
}

impl Scored {
    /// No member yet.
    pub(super) fn new(seed: Seed) -> Scored {
        let scores = ScoreTable::new();
        Scored { seed, scores }
    }

    /// Adds an item of the tree.
    pub(super) fn add(&mut self, item: &Item<'_>) {
        self.scores
            .insert(hash_of(&self.seed, item.name), plain(score_of(item)));
    }

    /// The sorted set of these scores and the tree that has their items.
    pub(super) fn with(self, tree: Tree<Scores>) -> SortedSet {
        let Scored { seed, scores } = self;
        SortedSet {
            seed,
            tree,
            scores,
            scans: None,
        }
    }
}

impl SortedSet {
    /// One without members, whose leaves have up to `leaf_max` bytes.
    pub fn new(seed: Seed, leaf_max: usize) -> SortedSet {
        SortedSet {
            seed,
            tree: Tree::new(Scores, leaf_max),
            scores: ScoreTable::new(),
            scans: None,
        }
    }

    /// One of the items of a tree, all of whose leaves are in memory: O(n).
    pub(super) fn of_tree(seed: Seed, tree: Tree<Scores>) -> SortedSet {
        let mut scores = Scored::new(seed);
        tree.view().iter().for_each(|item| scores.add(&item));
        scores.with(tree)
    }

    #[inline]
    pub(super) fn hash(&self, member: Cell<'_>) -> u32 {
        hash_of(&self.seed, member)
    }

    /// The item of a member.
    pub fn get(&self, member: Cell<'_>) -> Option<Item<'_>> {
        let view = self.tree.view();
        let mut scores = self.scores.scores(self.hash(member));
        scores.find_map(|score| view.find(&scored(member, score, &mut [0; 8])))
    }

    /// How many members come before one, if it is there.
    pub fn rank(&self, member: Cell<'_>) -> Option<u64> {
        let view = self.tree.view();
        let mut scores = self.scores.scores(self.hash(member));
        scores.find_map(|score| view.rank(&scored(member, score, &mut [0; 8])))
    }

    /// Gives a member a score.
    pub fn set(&mut self, item: &Item<'_>) -> Put {
        match self.change(item.name, |_| Some(score_of(item))) {
            Some((Some(_), _)) => Put::Replaced,
            _ => Put::Added,
        }
    }

    /// Gives a member the score that `decide` says for the one that it has, if it says one. Returns both.
    pub fn change(
        &mut self,
        member: Cell<'_>,
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Option<(Option<f64>, f64)> {
        let hash = self.hash(member);
        let view = self.tree.view();
        let mut scores = self.scores.scores(hash);
        let found = scores.find_map(|score| {
            let place = view.place(&scored(member, score, &mut [0; 8]))?;
            Some((score, place))
        });
        drop(scores);
        let before = found.as_ref().map(|(score, _)| *score);
        let after = decide(before)?;
        let mut scratch = [0; 8];
        let item = scored(member, after, &mut scratch);
        match found {
            None => {
                self.scores.insert(hash, plain(after));
                self.tree.set(&item);
            }
            Some((score, (path, index))) => {
                if score != after {
                    self.scores.change(hash, plain(score), plain(after));
                    if after < score && self.scans.is_some() {
                        self.tell_scans(member, score, after);
                    }
                }
                self.tree.move_item(path, index, &item);
            }
        }
        Some((before, after))
    }

    /// Tells the scans that run that a member gets a lower score.
    #[cold]
    fn tell_scans(&mut self, member: Cell<'_>, from: f64, to: f64) {
        if let Some(scans) = &mut self.scans {
            scans.note_move(member, (from, to), self.tree.bytes());
        }
        self.scans.take_if(|scans| scans.is_empty());
    }

    /// Whether it keeps places of scans.
    #[cfg(test)]
    pub(crate) fn has_scans(&self) -> bool {
        self.scans.is_some()
    }

    /// Removes a member; whether it was there.
    pub fn remove_name(&mut self, member: Cell<'_>) -> bool {
        let score = self.get(member).map(|item| score_of(&item));
        score.is_some_and(|score| self.take(&scored(member, score, &mut [0; 8])))
    }

    /// Removes a member that has this score; whether it was there.
    pub fn take(&mut self, item: &Item<'_>) -> bool {
        let is_removed = self.tree.remove_item(item);
        if is_removed {
            self.scores
                .remove(self.hash(item.name), plain(score_of(item)));
        }
        is_removed
    }

    /// Members do not expire.
    pub fn reschedule(&mut self, _: Cell<'_>, _: Option<u64>) -> bool {
        false
    }

    /// See [`Tree::tell_lost`].
    pub fn tell_lost(&mut self) {
        self.tree.tell_lost();
    }

    /// Bytes of memory, without what only moments need.
    pub fn bytes(&self) -> usize {
        let scans = self.scans.as_ref().map_or(0, |scans| scans.bytes());
        let own = size_of::<SortedSet>() - size_of::<Tree<Scores>>();
        own + self.tree.bytes() + self.scores.bytes() + scans
    }

    /// This moment of the tree, in O(1).
    pub fn freeze(&mut self) -> Frozen<Scores> {
        self.tree.freeze()
    }

    /// Members do not expire.
    pub fn remove_due(&mut self, now: u64, most: usize, visit: &mut dyn FnMut(&Item<'_>)) -> usize {
        self.tree.remove_due(now, most, visit)
    }

    /// See [`Tree::cold_record`]. Of members that have one hash all are looked at.
    pub fn cold_record(&self, member: Cell<'_>) -> Option<Base> {
        if self.tree.cold_leaves() == 0 {
            return None;
        }
        let mut scores = self.scores.scores(self.hash(member));
        scores.find_map(|score| self.cold_record_at(&scored(member, score, &mut [0; 8])))
    }

    /// The record of the leaf where an item is, or would be, if it is cold.
    pub fn cold_record_at(&self, item: &Item<'_>) -> Option<Base> {
        let mut text = [0; DECIMAL_MAX];
        let edge = Edge::of(&Scores, item, &mut text);
        let leaf = self.tree.view().leaves(&edge).next()?;
        leaf.is_cold().then(|| leaf.base())
    }

    /// The records of the cold leaves where a member is, and where it would be with another score. `to` says
    /// which it gets, by the one that it has.
    pub fn cold_records_of_move(
        &self,
        member: Cell<'_>,
        to: &dyn Fn(Option<f64>) -> f64,
    ) -> Vec<Base> {
        let mut records = Vec::new();
        let mut look = |score: f64| {
            if !score.is_nan() {
                records.extend(self.cold_record_at(&scored(member, score, &mut [0; 8])));
            }
        };
        look(to(None));
        for score in self.scores.scores(self.hash(member)) {
            look(score);
            look(to(Some(score)));
        }
        records
    }

    /// See [`Tree::next_leaving`].
    pub fn next_leaving(&mut self, looks: &mut usize) -> Option<Leaving> {
        self.tree.next_leaving(looks)
    }

    /// See [`Tree::may_have_leaving`].
    pub fn may_have_leaving(&self) -> bool {
        self.tree.may_have_leaving()
    }

    /// See [`Tree::look_again`].
    pub fn look_again(&mut self, place: LeafPlace) {
        self.tree.look_again(place);
    }

    /// See [`Tree::chill`].
    pub fn chill(&mut self, place: &LeafPlace, record: Base) -> bool {
        self.tree.chill(place, record)
    }

    /// See [`Tree::warm`].
    ///
    /// # Errors
    /// The record makes no sense.
    pub fn warm(&mut self, at: u64, record: &LeafRecord<'_>) -> Result<bool, Damage> {
        self.tree.warm(at, record)
    }

    /// Checks every invariant, of cold leaves as far as they can be.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn verify(&self) {
        self.tree.verify();
        self.scores.verify();
        self.scans.iter().for_each(|scans| scans.verify());
        assert_eq!(self.scores.len(), self.tree.count());
        for leaf in self.tree.view().leaves(&Edge::default()) {
            if leaf.is_cold() {
                continue;
            }
            for item in leaf.run().iter() {
                let mut scores = self.scores.scores(self.hash(item.name));
                assert!(scores.any(|score| score == score_of(&item)), "{item:?}");
            }
        }
    }
}

/// Where the members of a score begin, and where they end.
pub(super) fn score_edges<'e>(score: f64) -> (Edge<'e>, Edge<'e>) {
    let order = u128::from(Scores::order_of(score));
    (Edge::before(order << 64), Edge::before((order + 1) << 64))
}

pub(super) fn hash_of(seed: &Seed, member: Cell<'_>) -> u32 {
    spread((hash(seed, member) >> 32) as u32)
}
