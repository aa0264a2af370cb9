//! Sorted sets of a shard beside a model: small ones and large ones, ranks, places, scans, edits of a log.

use std::collections::{BTreeMap, HashSet};

use crate::collection::any::Collection;
use crate::collection::cell::{Cell, DECIMAL_MAX};
use crate::collection::log::edits::Edits;
use crate::collection::sorted::{SortedSet, score_of, scored};
use crate::collection::tree::{LEAF_MAX, Put};
use crate::{
    Bound, EMPTY_SORTED_SET, EntryMut, Keyspace, New, Options, SORTED_SET, Seed, SortedRef,
};

/// The name of the only key.
const NAME: &[u8] = b"scores";

fn keyspace(small_bytes: usize) -> Keyspace {
    let keyspace = Keyspace::new(&Options {
        databases: 1,
        workers: 1,
        shards: 1,
        seed: 11,
        ticks: || 0,
        charge: |_| (),
    });
    keyspace.set_small_bytes(small_bytes);
    keyspace
}

fn text(cell: Cell<'_>) -> Vec<u8> {
    cell.text(&mut [0; DECIMAL_MAX]).to_vec()
}

/// A member behind its score.
type Scored = (f64, Vec<u8>);

/// Scores by member, and members in the order of their scores.
#[derive(Default)]
struct Model(BTreeMap<Vec<u8>, f64>);

impl Model {
    fn ranked(&self) -> Vec<Scored> {
        let all = self
            .0
            .iter()
            .map(|(member, &score)| (score, member.clone()));
        let mut all: Vec<_> = all.collect();
        all.sort_by(|one, other| {
            let by_score = one.0.partial_cmp(&other.0).expect("scores are numbers");
            by_score.then_with(|| one.1.cmp(&other.1))
        });
        all
    }

    fn compare(&self, found: SortedRef<'_>, random: &mut fastrand::Rng) {
        let ranked = self.ranked();
        assert_eq!(found.len(), ranked.len() as u64);
        let mut shown = Vec::new();
        let mut at = 0;
        while at < found.len() {
            at = found.items().items_behind(at, u64::MAX, |item| {
                shown.push((score_of(&item), text(item.name)))
            });
        }
        assert_eq!(shown, ranked);
        let (mut shown, mut end) = (Vec::new(), found.len());
        while end > 0 {
            end = found.items().items_before(0, end, |item| {
                shown.push((score_of(&item), text(item.name)))
            });
        }
        shown.reverse();
        assert_eq!(shown, ranked);
        for _ in 0..10 {
            let (one, other) = (random.u64(..=found.len()), random.u64(..=found.len()));
            let (start, end) = (one.min(other), one.max(other));
            let (mut ahead, mut back, mut from, mut to) = (Vec::new(), Vec::new(), start, end);
            let items = found.items();
            while from < end {
                from = items.items_behind(from, end, |item| ahead.push(text(item.name)));
            }
            while to > start {
                to = items.items_before(start, to, |item| back.push(text(item.name)));
            }
            back.reverse();
            let wanted = ranked[start as usize..end as usize].iter();
            assert!(wanted.clone().map(|(_, name)| name).eq(&ahead));
            assert!(wanted.map(|(_, name)| name).eq(&back));
        }
        for (rank, (score, member)) in ranked.iter().enumerate() {
            assert_eq!(found.score(Cell::of(member)), Some(*score));
            assert_eq!(found.rank(Cell::of(member)), Some(rank as u64));
        }
        assert_eq!(found.score(Cell::of(b"nobody")), None);
        assert_eq!(found.rank(Cell::of(b"-1")), None);
        for _ in 0..20 {
            let score = number(random);
            let member = member(random);
            let count = |is_before: &dyn Fn(&Scored) -> bool| {
                ranked.iter().filter(|its| is_before(its)).count() as u64
            };
            let bounds = [
                (Bound::Score(score), count(&|its| its.0 < score)),
                (Bound::BehindScore(score), count(&|its| its.0 <= score)),
                (
                    Bound::Member(score, &member),
                    count(&|its| (its.0, &its.1) < (score, &member)),
                ),
                (
                    Bound::BehindMember(score, &member),
                    count(&|its| (its.0, &its.1) <= (score, &member)),
                ),
            ];
            for (bound, wanted) in bounds {
                assert_eq!(found.count_before(bound), wanted, "{bound:?}");
            }
        }
    }
}

fn number(random: &mut fastrand::Rng) -> f64 {
    match random.u8(..8) {
        0 => f64::INFINITY,
        1 => f64::NEG_INFINITY,
        2 => -0.0,
        3 => f64::from(random.i8(-4..4)) / 4.0,
        4 => f64::from(random.u32(..)) * 8.0,
        _ => f64::from(random.i8(-4..4)),
    }
}

/// Some share eight bytes or more; some are integers.
fn member(random: &mut fastrand::Rng) -> Vec<u8> {
    let number = random.u16(..150);
    let name = match number % 3 {
        0 => number.to_string(),
        1 => format!("member:{number}"),
        _ => format!("{number}\0"),
    };
    name.into_bytes()
}

fn with_entry<R>(keyspace: &Keyspace, with: impl FnOnce(&mut EntryMut<'_, '_>) -> R) -> R {
    let mut turn = keyspace.turns().register();
    turn.enter();
    let database = keyspace.database(&turn, 0);
    let key = database.key(NAME);
    let mut guard = database.lock(key.hash, 0);
    if !guard.contains(key) {
        let new = New::bytes(&EMPTY_SORTED_SET).of(SORTED_SET);
        guard.write(key, new, |_, _| None);
    }
    let result = with(&mut guard.find(key).expect("it is there"));
    guard.verify();
    drop(guard);
    turn.leave();
    result
}

/// `small_bytes`: of the longest run, and of the leaves of a tree.
fn run(small_bytes: usize, seed: u64) {
    let (keyspace, copy) = (keyspace(small_bytes), keyspace(4096));
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model = Model::default();
    for step in 0..1_500 {
        let (member, score) = (member(&mut random), number(&mut random));
        let grows = step / 300 % 2 == 0;
        let mut edits = Edits::default();
        let mut scratch = [0; 8];
        let item = scored(Cell::of(&member), score, &mut scratch);
        with_entry(&keyspace, |entry| {
            if random.u8(..10) < if grows { 8 } else { 2 } {
                let put = entry.set_item(&item);
                edits.set(&item);
                let before = model.0.insert(member.clone(), score);
                assert_eq!(put == Put::Replaced, before.is_some());
            } else {
                let is_removed = entry.remove_item(item.name);
                assert_eq!(is_removed, model.0.remove(&member).is_some());
                match random.bool() {
                    true => edits.take(&item),
                    false => edits.remove(item.name),
                }
            }
        });
        with_entry(&copy, |entry| {
            entry.amend_run(edits.bytes()).expect("they are edits");
        });
        if step % 50 == 0 {
            with_entry(&keyspace, |entry| {
                if let SortedRef::Tree(set) = entry.sorted() {
                    set.verify();
                }
                model.compare(entry.sorted(), &mut random);
                if let Some(original) = entry.original() {
                    let Collection::SortedSet(again) = original.copy() else {
                        panic!("it is a sorted set");
                    };
                    again.verify();
                    model.compare(SortedRef::Tree(&again), &mut random);
                }
            });
            with_entry(&copy, |entry| model.compare(entry.sorted(), &mut random));
        }
    }
}

#[test]
fn sorted_sets_are_in_order_whether_small_or_large() {
    for seed in 1..4 {
        run(64, seed);
        run(256, 10 + seed);
        run(4096, 20 + seed);
    }
}

/// Members of a set to be scanned, which stay there.
fn names_to_scan(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("member:{number}"))
        .collect()
}

fn set_of(names: &[String], seed: u64, mut score: impl FnMut() -> f64) -> SortedSet {
    let mut set = SortedSet::new(Seed::new(seed), LEAF_MAX);
    for name in names {
        set.set(&scored(Cell::of(name.as_bytes()), score(), &mut [0; 8]));
    }
    set
}

/// One call of a scan. Returns its cursor and how many members it showed.
fn call(
    set: &mut SortedSet,
    cursor: u64,
    count: usize,
    random: &mut fastrand::Rng,
    seen: &mut HashSet<Vec<u8>>,
) -> (u64, usize) {
    let mut step = set.begin_scan(cursor, count, random.u64(..));
    let (mut shown, items) = (0, SortedRef::Tree(set).items());
    while step.step(items, &mut |item| {
        seen.insert(text(item.name));
        shown += 1;
    }) {}
    assert!(step.next < 1 << 48, "{}", step.next);
    (step.next, shown)
}

/// Of members whose scores change during a scan all are shown, whatever else comes and goes, and no call
/// shows more than ten times as many as it is asked for.
#[test]
fn a_scan_shows_members_whatever_happens_to_their_scores() {
    for (spread, count) in [
        (1, 10),
        (7, 1),
        (300, 10),
        (100_000, 10),
        (2, 500),
        (100_000, 5_000),
    ] {
        let mut random = fastrand::Rng::with_seed(spread + count as u64);
        let names = names_to_scan(20_000);
        let mut set = set_of(&names, spread, || random.u64(..spread) as f64);
        let (mut seen, mut cursor, mut calls) = (HashSet::new(), 0, 0);
        loop {
            calls += 1;
            let shown;
            (cursor, shown) = call(&mut set, cursor, count, &mut random, &mut seen);
            assert!(shown <= 10 * count, "{shown} of {count}");
            if cursor == 0 {
                break;
            }
            for _ in 0..random.usize(..20) {
                let name = &names[random.usize(..names.len())];
                let score = random.u64(..spread) as f64 - random.u8(..3) as f64;
                set.set(&scored(Cell::of(name.as_bytes()), score, &mut [0; 8]));
            }
            // Others come and go.
            let other = |number: u32| format!("other:{number}");
            set.set(&scored(Cell::of(other(calls).as_bytes()), 3.0, &mut [0; 8]));
            let gone = other(random.u32(..calls));
            set.remove_name(Cell::of(gone.as_bytes()));
        }
        assert!(names.iter().all(|name| seen.contains(name.as_bytes())));
        assert!(calls as usize * 10 * count > names.len(), "{calls} calls");
        set.verify();
        assert!(!set.has_scans(), "what a scan keeps goes with it");
    }
}

/// Members that are moved from the part that is to come to the part that was shown, of one score each.
#[test]
fn a_scan_shows_members_that_are_moved_behind_it() {
    let mut random = fastrand::Rng::with_seed(2);
    let names = names_to_scan(5_000);
    let mut set = set_of(&names, 2, || 1.0);
    // Each call one is moved that was not shown, and all are shown.
    let (mut seen, mut cursor, mut moved) = (HashSet::new(), 0, 0);
    loop {
        if cursor != 0 && random.u8(..4) == 0 {
            // This reply gets lost, and the client asks again.
            call(&mut set, cursor, 10, &mut random, &mut HashSet::new());
        }
        (cursor, _) = call(&mut set, cursor, 10, &mut random, &mut seen);
        if cursor == 0 {
            break;
        }
        let unseen = names
            .iter()
            .rev()
            .find(|name| !seen.contains(name.as_bytes()));
        if let Some(name) = unseen {
            set.set(&scored(Cell::of(name.as_bytes()), 0.0, &mut [0; 8]));
            moved += 1;
        }
    }
    assert!(moved > 200, "{moved}");
    assert!(names.iter().all(|name| seen.contains(name.as_bytes())));
}

/// Scans whose places are lost begin again, and come to their end by hash: after restarts, beside many other
/// scans, and with more moves than are kept.
#[test]
fn a_scan_whose_place_is_lost_shows_all() {
    let names = names_to_scan(3_000);
    for way in 0..3 {
        let mut random = fastrand::Rng::with_seed(way);
        let mut set = set_of(&names, way, || 1.0);
        let (mut seen, mut cursor, mut calls) = (HashSet::new(), 0, 0);
        loop {
            (cursor, _) = call(&mut set, cursor, 20, &mut random, &mut seen);
            calls += 1;
            if cursor == 0 {
                break;
            }
            match way {
                // A restart.
                0 if calls % 30 == 0 => set = set_of(&names, way, || 1.0),
                1 => {
                    for _ in 0..300 {
                        call(&mut set, 0, 10, &mut random, &mut HashSet::new());
                    }
                }
                2 => {
                    for number in 0..2_000 {
                        let name = &names[random.usize(..names.len())];
                        let score = -f64::from(number);
                        set.set(&scored(Cell::of(name.as_bytes()), score, &mut [0; 8]));
                    }
                }
                _ => {}
            }
            set.verify();
        }
        assert!(
            names.iter().all(|name| seen.contains(name.as_bytes())),
            "{way}"
        );
        assert!(calls < 1_000, "{calls} calls");
    }
}

/// A call that asks for more than there can be comes to the end, members that were moved included.
#[test]
fn a_scan_may_ask_for_any_count() {
    for count in [usize::MAX / 2, 1 << 62, usize::MAX] {
        let names = names_to_scan(5_000);
        let mut random = fastrand::Rng::with_seed(6);
        let (mut set, mut seen) = (set_of(&names, 6, || 1.0), HashSet::new());
        let (cursor, _) = call(&mut set, 0, 10, &mut random, &mut seen);
        assert!(set.has_scans() && cursor != 0);
        for name in &names[..100] {
            set.set(&scored(Cell::of(name.as_bytes()), -1.0, &mut [0; 8]));
        }
        let (next, _) = call(&mut set, cursor, count, &mut random, &mut seen);
        assert_eq!((next, seen.len()), (0, names.len()));
    }
}

/// What scans keep is a small part of the set, however many begin and are given up.
#[test]
fn scans_that_are_given_up_take_little() {
    let names = names_to_scan(20_000);
    let mut random = fastrand::Rng::with_seed(4);
    let mut set = set_of(&names, 4, || 1.0);
    let before = set.bytes();
    for _ in 0..5_000 {
        call(&mut set, 0, 10, &mut random, &mut HashSet::new());
    }
    let kept = set.bytes() - before;
    assert!(0 < kept && kept < before / 16, "{kept} of {before}");
    for number in 0..20_000 {
        let name = &names[random.usize(..names.len())];
        set.set(&scored(
            Cell::of(name.as_bytes()),
            -f64::from(number),
            &mut [0; 8],
        ));
    }
    assert!(!set.has_scans(), "members have moved too often");
}

/// Bytes beyond the user's own, members of 12 to 16 bytes that come in any order: at most 22; after half of
/// them were removed by chance, at most 1.3 times what a fresh one takes.
#[test]
fn a_sorted_set_is_small() {
    for (count, bound) in [(10_000_u32, 22.0), (1_000_000, 22.0)] {
        if cfg!(miri) {
            return;
        }
        let mut random = fastrand::Rng::with_seed(5);
        let mut set = SortedSet::new(Seed::new(5), LEAF_MAX);
        let name = |number: u32| format!("member:{:07}", number).into_bytes();
        for number in 0..count {
            let score = f64::from(random.u32(..count));
            set.set(&scored(Cell::of(&name(number)), score, &mut [0; 8]));
        }
        let each = set.bytes() as f64 / f64::from(count) - 14.0;
        for number in (0..count).filter(|_| random.bool()) {
            set.remove_name(Cell::of(&name(number)));
        }
        let mut fresh = SortedSet::new(Seed::new(6), LEAF_MAX);
        let mut items: Vec<_> = set.view().iter().collect();
        random.shuffle(&mut items);
        for item in &items {
            fresh.set(item);
        }
        let ratio = set.bytes() as f64 / fresh.bytes() as f64;
        println!(
            "{count} members: {each:.2} bytes a member; half of them: {ratio:.3} of a fresh one"
        );
        set.verify();
        assert!(each <= bound, "{each} at {count}");
        assert!(ratio <= 1.3, "{ratio}");
    }
}
