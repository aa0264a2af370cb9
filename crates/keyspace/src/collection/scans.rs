//! Places that a sorted set keeps for scans which run.
//!
//! A member may get another score while a scan runs, so an order by scores does not tell alone which members
//! a scan has shown. The order of hashes does, but the members of one score are in no order of hashes: to
//! find those of a few hashes among a million is a walk over the million. So where many members share a
//! score, a scan goes in the order of the tree, and the set keeps what that needs: the place where the scan
//! goes on, and the members that were moved back since, which are shown too if they were moved over that
//! place.
//!
//! The cursor is a number by which the place is found again. A place that is not kept any more costs no
//! member: the scan begins again ([`super::sorted_scan`]).
//!
//! | what | bound |
//! |---|---|
//! | bytes of places and moves | [`Scans::most`]: a 32nd of the tree, at least 4 KiB |
//! | scans | [`SCANS_MOST`]; a new one takes the place of the one that was least lately asked for |
//! | moves | the older half goes at the bound, with the places of scans that have not seen them |
//!
//! So a scan that a client gives up costs a sorted set some memory, until members have moved often enough.
//! A set without scans keeps nothing.

use std::collections::VecDeque;

use super::cell::{Cell, DECIMAL_MAX};
use super::kind::{Edge, LeafPlace, Scores};

/// Scans of one set that may run at once, in the order of the tree.
const SCANS_MOST: usize = 256;
/// Bytes that any set may keep.
const BYTES_LEAST: usize = 4096;
/// The part of the bytes of a tree that it may keep.
const PART: usize = 32;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Scans {
    running: Vec<Running>,
    /// Members that got a lower score.
    moves: VecDeque<Move>,
    /// The number of the first of them.
    first: u64,
    /// Bytes of all.
    bytes: usize,
    /// Counts calls.
    calls: u64,
}

/// A place where a scan goes on.
#[derive(Clone, Debug)]
pub(super) struct KeptPlace {
    /// By which it is found.
    pub(super) number: u64,
    pub(super) place: LeafPlace,
    /// The number of the first move that the scan has not seen.
    pub(super) since: u64,
}

/// A scan. The place before the last one stays, for a client that asks again because it got no reply.
#[derive(Debug)]
struct Running {
    next: KeptPlace,
    before: Option<KeptPlace>,
    called: u64,
}

#[derive(Debug)]
struct Move {
    member: Box<[u8]>,
    from: f64,
    to: f64,
}

impl Move {
    fn bytes(&self) -> usize {
        size_of::<Move>() + self.member.len()
    }

    /// Whether it went from behind a place to before it.
    fn is_over(&self, place: &Edge<'_>) -> bool {
        let edge = |score| edge_of(score, &self.member);
        edge(self.from) >= *place && edge(self.to) < *place
    }
}

/// Before the member of a score.
pub(super) fn edge_of(score: f64, member: &[u8]) -> Edge<'_> {
    let high = u128::from(Scores::order_of(score)) << 64;
    Edge {
        order: high | u128::from(Scores::first_bytes(member)),
        name: member,
    }
}

impl KeptPlace {
    fn bytes(&self) -> usize {
        size_of::<KeptPlace>() + self.place.edge().name.len()
    }
}

impl Running {
    fn bytes(&self) -> usize {
        size_of::<Running>() + self.next.bytes() + self.before.as_ref().map_or(0, KeptPlace::bytes)
    }
}

impl Scans {
    /// Bytes that a tree of so many may keep.
    fn most(tree: usize) -> usize {
        (tree / PART).max(BYTES_LEAST)
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Scans>() + self.bytes
    }

    /// Whether no scan runs.
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// The number that the next move gets.
    pub(super) fn now(&self) -> u64 {
        self.first + self.moves.len() as u64
    }

    /// The place of a number.
    pub(super) fn find(&self, number: u64) -> Option<&KeptPlace> {
        let all = self.running.iter();
        let mut places = all.flat_map(|scan| [Some(&scan.next), scan.before.as_ref()]);
        places.find_map(|kept| kept.filter(|kept| kept.number == number))
    }

    /// Members that were moved over a place since it was kept, up to `most` of them. Returns the number of
    /// the first move that was not looked at.
    pub(super) fn moved(&self, kept: &KeptPlace, most: usize, members: &mut Vec<Box<[u8]>>) -> u64 {
        let place = kept.place.edge();
        for number in kept.since..self.now() {
            if members.len() >= most {
                return number;
            }
            let its = &self.moves[(number - self.first) as usize];
            if its.is_over(&place) {
                members.push(its.member.clone());
            }
        }
        self.now()
    }

    /// Keeps where a scan goes on that was at the place of a number, or has just begun.
    pub(super) fn go_on(&mut self, from: Option<u64>, next: KeptPlace, tree: usize) {
        self.calls += 1;
        let called = self.calls;
        let before = from.and_then(|number| self.take(number));
        let running = Running {
            next,
            before,
            called,
        };
        self.bytes += running.bytes();
        self.running.push(running);
        while self.running.len() > SCANS_MOST
            || self.running.len() > 1 && self.bytes > Scans::most(tree)
        {
            let all = self.running.iter().enumerate();
            let oldest = all.min_by_key(|(_, scan)| scan.called);
            let (index, _) = oldest.expect("there is more than one");
            self.bytes -= self.running.swap_remove(index).bytes();
        }
    }

    /// Forgets the scan that was at the place of a number. Returns that place.
    pub(super) fn take(&mut self, number: u64) -> Option<KeptPlace> {
        let has = |kept: &KeptPlace| kept.number == number;
        let mut all = self.running.iter();
        let index =
            all.position(|scan| has(&scan.next) || scan.before.as_ref().is_some_and(has))?;
        let scan = self.running.swap_remove(index);
        self.bytes -= scan.bytes();
        match has(&scan.next) {
            true => Some(scan.next),
            false => scan.before,
        }
    }

    /// Notes that a member got a lower score.
    pub(super) fn note_move(&mut self, member: Cell<'_>, (from, to): (f64, f64), tree: usize) {
        let member = member.text(&mut [0; DECIMAL_MAX]).into();
        let its = Move { member, from, to };
        self.bytes += its.bytes();
        self.moves.push_back(its);
        if self.bytes <= Scans::most(tree) {
            return;
        }
        let half = self.moves.len().div_ceil(2);
        let gone: usize = self.moves.drain(..half).map(|its| its.bytes()).sum();
        self.first += half as u64;
        self.bytes -= gone;
        let first = self.first;
        self.running.retain_mut(|scan| {
            self.bytes -= scan.bytes();
            scan.before.take_if(|before| before.since < first);
            let stays = scan.next.since >= first;
            self.bytes += if stays { scan.bytes() } else { 0 };
            stays
        });
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// If one does not hold.
    pub(super) fn verify(&self) {
        let places: usize = self.running.iter().map(Running::bytes).sum();
        let moves: usize = self.moves.iter().map(Move::bytes).sum();
        assert_eq!(places + moves, self.bytes);
        assert!(self.running.len() <= SCANS_MOST);
        for scan in &self.running {
            assert!((self.first..=self.now()).contains(&scan.next.since));
        }
    }
}
