//! Scans of sorted sets, which ZSCAN is.
//!
//! A member that is there from the beginning of a scan to its end is shown at least once, whatever happens to
//! its score. There are two ways. A call costs by its count in both.
//!
//! | way | order | cursor | for |
//! |---|---|---|---|
//! | by hash | hashes of the members | the next hash: 32 bits | members whose scores differ |
//! | by place | that of the tree | number of a place that is kept ([`super::scans`]) | many of one score |
//!
//! By hash, members are found by their scores ([`super::score_table`]), and those that share a score by a
//! walk over all of these. A call that would walk far goes by place instead, from the beginning of the set:
//! members that were shown before are shown again.
//!
//! The place of a number may be gone: after a restart, in a copy of the set, when too many scans run, or when
//! too many members have moved. Then the scan begins again, and its cursor says how often it has. After
//! [`LOST_MOST`] times it goes by hash to its end, however far it walks: so every scan ends.
//!
//! ```text
//!  cursor, 48 bits   47 46 45 44 ................................. 0
//!  by hash            0  0  0   ...  hash (32)
//!  by hash to its end 0  1  0   ...  hash (32)
//!  by place           1  lost   number (45)
//! ```
//!
//! What a call shows is fixed when it begins ([`SortedSet::begin_scan`]): no leaf is needed for that. The
//! members are looked up then, in the set or in a moment of it, a leaf at a time.

use super::cell::{Cell, DECIMAL_MAX};
use super::items::ItemsRef;
use super::kind::{Edge, LeafPlace, Scores};
use super::node::Base;
use super::run::{Fraction, Item};
use super::scans::{KeptPlace, edge_of};
use super::sorted::{SortedSet, hash_of, score_edges, score_of};
use super::tree::Tree;
use super::view::{View, lower};
use crate::hash::Seed;

/// Members for each that a call by hash shows, over which it walks at most.
const WALK: u64 = 8;
/// A walk that is never too far: some microseconds.
const WALK_LEAST: u64 = 256;
/// A call that goes on may walk so many times as far as one that begins.
const LATER: u64 = 4;
/// The same of a scan that goes by hash to its end. It shows more at once where it walks farther.
const LAST_WALK: u64 = 64;
/// The largest count of a call by hash. One by place costs less for each member.
const BY_HASH_MOST: usize = 1000;
/// Moved members that a call shows at most, for each that is asked for.
const MOVED: usize = 4;

const BY_PLACE: u64 = 1 << 47;
const LAST: u64 = 1 << 46;
const LOST_SHIFT: u32 = 45;
/// Times that a scan begins again.
const LOST_MOST: u64 = 3;
const NUMBER: u64 = (1 << LOST_SHIFT) - 1;

/// What one call of a scan shows.
#[derive(Debug)]
pub struct ScanStep {
    /// The cursor to go on with, 0 at the end.
    pub next: u64,
    seed: Seed,
    /// Members that are looked up, with a score that they may have.
    moved: Vec<(f64, Box<[u8]>)>,
    /// Scores and hashes of members that are looked for, ascending, from the next one on.
    wanted: Vec<(f64, u32)>,
    at_wanted: usize,
    /// Where the walk goes on, and where it ends if it looks for none of `wanted`.
    at: LeafPlace,
    end: End,
}

/// Where the members end that are shown.
#[derive(Debug)]
enum End {
    /// None is shown.
    Here,
    /// Before a place.
    Before(LeafPlace),
    /// At the end of the set.
    Last,
}

impl ScanStep {
    fn new(next: u64, seed: &Seed) -> ScanStep {
        ScanStep {
            next,
            seed: seed.clone(),
            moved: Vec::new(),
            wanted: Vec::new(),
            at_wanted: 0,
            at: LeafPlace::default(),
            end: End::Here,
        }
    }

    /// All members of a small set.
    pub(crate) fn whole() -> ScanStep {
        ScanStep {
            end: End::Last,
            ..ScanStep::new(0, &Seed::new(0))
        }
    }

    /// Shows the next members, of one leaf. Returns whether there are more.
    pub fn step(&mut self, items: ItemsRef<'_, Scores>, visit: &mut dyn FnMut(Item<'_>)) -> bool {
        let view = match items {
            ItemsRef::Run(run) => {
                run.iter().for_each(visit);
                return false;
            }
            ItemsRef::Tree(view) => view,
        };
        if let Some((score, member)) = self.moved.pop() {
            let edge = edge_of(score, &member);
            let leaf = view.leaves(&edge).next();
            let found = leaf.and_then(|leaf| {
                let run = leaf.run();
                run.get(lower(&Scores, run, &edge, Fraction::HALF))
            });
            found.filter(|item| is_at(item, &edge)).map(visit);
        } else if self.at_wanted < self.wanted.len() {
            self.walk_wanted(view, visit);
        } else {
            self.walk(view, visit);
        }
        !self.moved.is_empty()
            || self.at_wanted < self.wanted.len()
            || !matches!(self.end, End::Here)
    }

    /// The records of the leaves at which the next step looks and that are cold; of a walk, those of the next
    /// `ahead` leaves.
    pub fn cold(&self, items: ItemsRef<'_, Scores>, ahead: usize) -> Vec<Base> {
        let ItemsRef::Tree(view) = items else {
            return Vec::new();
        };
        if let Some((score, member)) = self.moved.last() {
            return view
                .cold_covering(&edge_of(*score, member))
                .into_iter()
                .collect();
        }
        let is_walk = self.at_wanted == self.wanted.len();
        match is_walk && matches!(self.end, End::Here) {
            true => Vec::new(),
            false => items.cold_from(&self.at, if is_walk { ahead } else { 1 }),
        }
    }

    /// The records of all leaves at which it looks and that are cold.
    fn records(&self, view: View<'_, Scores>) -> Vec<Base> {
        let moved = self.moved.iter();
        let moved =
            moved.filter_map(|(score, member)| view.cold_covering(&edge_of(*score, member)));
        let mut records: Vec<Base> = moved.collect();
        let mut look = |from: &Edge<'_>, to: Option<Edge<'_>>| {
            let leaves = view.leaves(from);
            let leaves = leaves.take_while(|leaf| to.is_none_or(|to| leaf.start() < to));
            records.extend(leaves.filter(|leaf| leaf.is_cold()).map(|leaf| leaf.base()));
        };
        for same in self.wanted.chunk_by(|one, other| one.0 == other.0) {
            let (from, to) = score_edges(same[0].0);
            look(&from, Some(to));
        }
        match &self.end {
            End::Here => {}
            End::Before(to) => look(&self.at.edge(), Some(to.edge())),
            End::Last => look(&self.at.edge(), None),
        }
        records
    }

    fn walk(&mut self, view: View<'_, Scores>, visit: &mut dyn FnMut(Item<'_>)) {
        let from = std::mem::take(&mut self.at);
        let (from, to) = match std::mem::replace(&mut self.end, End::Here) {
            End::Here => return,
            End::Before(to) => (from, Some(to)),
            End::Last => (from, None),
        };
        let mut leaves = view.leaves(&from.edge());
        let Some(leaf) = leaves.next() else {
            return;
        };
        let run = leaf.run();
        let first = lower(&Scores, run, &from.edge(), Fraction::HALF);
        let to = to.as_ref().map(LeafPlace::edge);
        for item in run.range(first) {
            if to.is_some_and(|to| !view.is_before(&item, &to)) {
                return;
            }
            visit(item);
        }
        let next = leaves.next().map(|next| next.start());
        if let Some(next) = next
            && to.is_none_or(|to| next < to)
        {
            self.at = LeafPlace::of(next);
            self.end = to.map_or(End::Last, |to| End::Before(LeafPlace::of(to)));
        }
    }

    fn walk_wanted(&mut self, view: View<'_, Scores>, visit: &mut dyn FnMut(Item<'_>)) {
        let mut leaves = view.leaves(&self.at.edge());
        let Some(leaf) = leaves.next() else {
            self.at_wanted = self.wanted.len();
            return;
        };
        let run = leaf.run();
        let first = lower(&Scores, run, &self.at.edge(), Fraction::HALF);
        let score = self.wanted[self.at_wanted].0;
        let left = &self.wanted[self.at_wanted..];
        let same = &left[..left.partition_point(|wanted| wanted.0 == score)];
        for item in run.range(first) {
            if score_of(&item) != score {
                self.at_wanted += same.len();
                if let Some(&(score, _)) = self.wanted.get(self.at_wanted) {
                    self.at = LeafPlace::of(score_edges(score).0);
                }
                return;
            }
            let hash = hash_of(&self.seed, item.name);
            if same.binary_search_by_key(&hash, |wanted| wanted.1).is_ok() {
                visit(item);
            }
        }
        let Some(next) = leaves.next().map(|next| next.start()) else {
            self.at_wanted = self.wanted.len();
            return;
        };
        while let Some(&(score, _)) = self.wanted.get(self.at_wanted) {
            let (from, to) = score_edges(score);
            if to > next {
                self.at = LeafPlace::of(from.max(next));
                return;
            }
            self.pass(score);
        }
    }

    /// Passes those of a score.
    fn pass(&mut self, score: f64) {
        let left = &self.wanted[self.at_wanted..];
        self.at_wanted += left.iter().take_while(|wanted| wanted.0 == score).count();
    }
}

/// How many members are before an edge; if its leaf is cold, before the leaf.
fn rank_about(view: View<'_, Scores>, edge: &Edge<'_>) -> u64 {
    match view.cold_covering(edge) {
        None => view.count_before(edge),
        Some(_) => view.items_before_leaf(edge),
    }
}

/// Whether an item is the one of an edge.
fn is_at(item: &Item<'_>, edge: &Edge<'_>) -> bool {
    let mut scratch = [0; DECIMAL_MAX];
    Edge::of(&Scores, item, &mut scratch) == *edge
}

/// A place that is to be kept, and the number of the one from which the scan went on.
type Kept = (Option<u64>, Option<KeptPlace>);

impl SortedSet {
    /// What a call of a scan shows: about `count` members; a scan begins at cursor 0. A small part of the set
    /// is looked at here. `fresh` is a number by chance.
    pub fn begin_scan(&mut self, cursor: u64, count: usize, fresh: u64) -> ScanStep {
        let (step, (number, kept)) = self.plan(cursor, count, fresh);
        match kept {
            Some(kept) => {
                let tree = Tree::bytes(self);
                let scans = self.scans.get_or_insert_default();
                scans.go_on(number, kept, tree);
            }
            // The scan has come to its end.
            None => {
                if let (Some(number), Some(scans)) = (number, &mut self.scans) {
                    scans.take(number);
                }
                self.scans.take_if(|scans| scans.is_empty());
            }
        }
        step
    }

    /// The records of the leaves at which a call of a scan looks and that are cold.
    pub fn cold_records_of_scan(&self, cursor: u64, count: usize) -> Vec<Base> {
        if self.cold_leaves() == 0 {
            return Vec::new();
        }
        let (step, _) = self.plan(cursor, count, 0);
        step.records(self.view())
    }

    fn plan(&self, cursor: u64, count: usize, fresh: u64) -> (ScanStep, Kept) {
        let (count, fresh) = (count.max(1), fresh & NUMBER);
        if cursor & BY_PLACE != 0 {
            let lost = cursor >> LOST_SHIFT & LOST_MOST;
            let scans = self.scans.as_ref();
            let kept = scans.and_then(|scans| scans.find(cursor & NUMBER));
            let lost = lost + u64::from(kept.is_none());
            return match lost <= LOST_MOST {
                true => self.by_place(kept, count, BY_PLACE | lost << LOST_SHIFT | fresh),
                false => (self.last_by_hash(0, count), Kept::default()),
            };
        }
        let step = match u32::try_from(cursor & !LAST) {
            Ok(from) if cursor & LAST != 0 => self.last_by_hash(from, count),
            Ok(from) => match self.by_hash(from, count) {
                Some(step) => step,
                None => return self.by_place(None, count, BY_PLACE | fresh),
            },
            // None of ours.
            Err(_) => ScanStep::new(0, &self.seed),
        };
        (step, Kept::default())
    }

    /// The entries from a hash on, at least `least` if there are so many. Returns the hash behind them, 0 at
    /// the end.
    fn entries(&self, mut from: u64, least: usize, wanted: &mut Vec<(f64, u32)>) -> u64 {
        let before = wanted.len();
        loop {
            let Ok(hash) = u32::try_from(from) else {
                from = 0;
                break;
            };
            from = self
                .scores
                .entries_from(hash, &mut |hash, score| wanted.push((score, hash)));
            if wanted.len() - before > least {
                break;
            }
        }
        // Those of one hash are shown together.
        let mine = &wanted[before..];
        if let Some(&(_, last)) = mine.get(least.wrapping_sub(1)) {
            let end = before + mine.partition_point(|&(_, hash)| hash <= last);
            if let Some(&(_, next)) = wanted.get(end) {
                wanted.truncate(end);
                return u64::from(next);
            }
        }
        from
    }

    /// A call by hash; `None` if it would walk too far.
    fn by_hash(&self, from: u32, count: usize) -> Option<ScanStep> {
        if count > BY_HASH_MOST {
            return None;
        }
        let mut wanted = Vec::new();
        let next = self.entries(u64::from(from), count, &mut wanted);
        let most = (WALK * wanted.len() as u64).max(WALK_LEAST);
        // A scan that goes on does not begin again because of one score.
        let most = if from == 0 { most } else { most * LATER };
        (self.walk_of(&wanted) <= most).then(|| self.step_of(next, wanted))
    }

    /// A call of a scan that goes by hash to its end.
    fn last_by_hash(&self, from: u32, count: usize) -> ScanStep {
        let mut wanted = Vec::new();
        let mut next = self.entries(u64::from(from), count, &mut wanted);
        let least = usize::try_from(self.walk_of(&wanted) / LAST_WALK).unwrap_or(usize::MAX);
        if next != 0 && wanted.len() < least {
            next = self.entries(next, least - wanted.len(), &mut wanted);
        }
        self.step_of(if next == 0 { 0 } else { next | LAST }, wanted)
    }

    fn step_of(&self, next: u64, mut wanted: Vec<(f64, u32)>) -> ScanStep {
        wanted.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let at = wanted
            .first()
            .map(|wanted| LeafPlace::of(score_edges(wanted.0).0));
        ScanStep {
            at: at.unwrap_or_default(),
            wanted,
            ..ScanStep::new(next, &self.seed)
        }
    }

    /// About how many members have the scores of these entries, where they fill more than a leaf. No leaf is
    /// looked at.
    fn walk_of(&self, wanted: &[(f64, u32)]) -> u64 {
        let mut scores: Vec<f64> = wanted.iter().map(|&(score, _)| score).collect();
        scores.sort_unstable_by(f64::total_cmp);
        scores.dedup();
        let view = self.view();
        let counts = scores.into_iter().map(|score| {
            let (from, to) = score_edges(score);
            view.items_before_leaf(&to) - view.items_before_leaf(&from)
        });
        counts.sum()
    }

    /// A call by place, from a place that was kept or from the beginning. `next`: the cursor of where it
    /// ends.
    fn by_place(&self, kept: Option<&KeptPlace>, count: usize, next: u64) -> (ScanStep, Kept) {
        let mut step = ScanStep::new(0, &self.seed);
        let (mut moved, mut since, mut is_up_to_date) = (Vec::new(), 0, true);
        if let Some(scans) = &self.scans {
            since = match kept {
                Some(kept) => scans.moved(kept, count.saturating_mul(MOVED), &mut moved),
                None => scans.now(),
            };
            is_up_to_date = since == scans.now();
        }
        for member in moved {
            let scores = self.scores.scores(self.hash(Cell::of(&member)));
            step.moved
                .extend(scores.map(|score| (score, member.clone())));
        }
        let number = kept.map(|kept| kept.number);
        step.at = kept.map(|kept| kept.place.clone()).unwrap_or_default();
        // What was moved meanwhile is shown before the scan goes on.
        let end = match is_up_to_date {
            true => self.place_behind(&step.at, count.saturating_sub(step.moved.len()).max(1)),
            false => Some(step.at.clone()),
        };
        let Some(place) = end else {
            step.end = End::Last;
            return (step, (number, None));
        };
        step.next = next;
        if is_up_to_date {
            step.end = End::Before(place.clone());
        }
        let number_of_next = next & NUMBER;
        let kept = KeptPlace {
            number: number_of_next,
            place,
            since,
        };
        (step, (number, Some(kept)))
    }

    /// The place about `count` members behind another; `None` if fewer are left. Where a leaf is cold it is
    /// the end of a leaf.
    fn place_behind(&self, place: &LeafPlace, count: usize) -> Option<LeafPlace> {
        let (view, from) = (self.view(), place.edge());
        let rank = rank_about(view, &from).saturating_add(count as u64);
        if rank >= view.count() {
            return None;
        }
        let (mut leaves, index) = view.leaves_from_rank(rank);
        let leaf = leaves.next()?;
        if !leaf.is_cold() {
            let item = leaf.run().get(index)?;
            let mut scratch = [0; DECIMAL_MAX];
            return Some(LeafPlace::of(Edge::of(&Scores, &item, &mut scratch)));
        }
        match leaf.start() > from {
            true => Some(LeafPlace::of(leaf.start())),
            false => leaves.next().map(|next| LeafPlace::of(next.start())),
        }
    }
}
