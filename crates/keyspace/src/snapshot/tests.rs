//! Snapshots beside a model: whatever happens while one is read, it holds what was there when it began.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::SeqCst};

use parking_lot::Mutex;

use crate::hash::Place;
use crate::shard::{Guard, New};
use crate::{Expiry, Form, Keyspace, Options, Records, Snapshot, Turn};

const DATABASES: usize = 4;

/// Of each database, keys with value and expiry.
type Model = Vec<HashMap<Vec<u8>, (Vec<u8>, Option<i64>)>>;

fn keyspace(shards: usize, workers: usize) -> Keyspace {
    Keyspace::new(&Options {
        databases: DATABASES,
        workers,
        shards,
        seed: 7,
        ticks: || 0,
        charge: |_| (),
    })
}

fn empty() -> Model {
    vec![HashMap::new(); DATABASES]
}

/// What is alive at a time.
fn alive(model: &Model, now: i64) -> Model {
    let is_alive = |expiry: Option<i64>| expiry.is_none_or(|at| now <= at);
    let of = |keys: &HashMap<Vec<u8>, (Vec<u8>, Option<i64>)>| {
        let alive = keys.iter().filter(|(_, (_, expiry))| is_alive(*expiry));
        alive
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    model.iter().map(of).collect()
}

/// Adds what a step gave out; nothing may come twice.
fn collect(records: &Records, number: usize, collected: &mut Model) {
    for record in records.iter() {
        let value = (
            record.value.bytes().expect("all are in memory").to_vec(),
            record.expiry,
        );
        let before = collected[number].insert(record.key.to_vec(), value);
        assert!(before.is_none(), "{:?} came twice", record.key);
    }
}

/// Says where two models differ, which for large ones is more help than both.
fn assert_same(collected: &Model, expected: &Model) {
    for (number, (collected, expected)) in collected.iter().zip(expected).enumerate() {
        for (key, value) in expected {
            assert_eq!(collected.get(key), Some(value), "db {number} {key:?}");
        }
        for key in collected.keys() {
            assert!(expected.contains_key(key), "db {number} {key:?}");
        }
    }
}

/// Nothing is owed and nothing is kept for a snapshot: what holds whenever there is none.
fn assert_at_rest(keyspace: &Keyspace, turn: &Turn<'_>) {
    let mark = keyspace.shared().snapshot.mark();
    for number in 0..DATABASES {
        let Some(database) = keyspace.existing(turn, number) else {
            continue;
        };
        for shard in database.shards() {
            let mut guard = database.lock_shard(shard, 0);
            let mut place = Some(Place(0));
            while let Some(at) = place {
                place = guard.visit_place(at, |entry| assert!(entry.has_mark(mark)));
            }
            assert!(!guard.has_copies());
            guard.verify();
        }
    }
}

/// One random change of a key, in the keyspace and in the model of its database.
fn change(
    guard: &mut Guard<'_>,
    hash: u64,
    name: &[u8],
    model: &mut HashMap<Vec<u8>, (Vec<u8>, Option<i64>)>,
    random: &mut fastrand::Rng,
) {
    let now = guard.now();
    let key = crate::Key { bytes: name, hash };
    if model
        .get(name)
        .is_some_and(|(_, expiry)| expiry.is_some_and(|at| now > at))
    {
        model.remove(name);
    }
    match random.u8(..12) {
        0..=3 => {
            let value = vec![random.u8(..); random.usize(..60)];
            guard.set(key, &value, Expiry::Clear);
            model.insert(name.to_vec(), (value, None));
        }
        4 => {
            let value = vec![random.u8(..); 16_380 + random.usize(..10)];
            guard.set(key, &value, Expiry::Clear);
            model.insert(name.to_vec(), (value, None));
        }
        5 => {
            let at = now + random.i64(0..300);
            guard.set(key, b"volatile", Expiry::At(at));
            model.insert(name.to_vec(), (b"volatile".to_vec(), Some(at)));
        }
        6 => {
            guard.set(key, b"kept", Expiry::Keep);
            let expiry = model.get(name).and_then(|entry| entry.1);
            model.insert(name.to_vec(), (b"kept".to_vec(), expiry));
        }
        7 => {
            let len = random.usize(..100) * if random.u8(..10) == 0 { 300 } else { 1 };
            let byte = random.u8(..);
            if let Some(mut entry) = guard.find(key) {
                let value = entry.resize_value(len, Form::Part);
                value.iter_mut().take(1).for_each(|first| *first = byte);
                let value = &mut model.get_mut(name).expect("in both").0;
                value.resize(len, 0);
                value.iter_mut().take(1).for_each(|first| *first = byte);
            }
        }
        8 => {
            let at = random.bool().then(|| now + random.i64(0..300));
            if let Some(mut entry) = guard.find(key) {
                entry.set_expiry(at);
                model.get_mut(name).expect("in both").1 = at;
            }
        }
        9 => {
            if let Some(mut detached) = guard.detach(key)
                && random.bool()
            {
                guard.write(key, New::detached(&mut detached), |_, _| None);
            } else {
                model.remove(name);
            }
        }
        _ => assert_eq!(guard.remove(key), model.remove(name).is_some()),
    }
}

/// A random change of a random key.
fn change_any(
    keyspace: &Keyspace,
    turn: &Turn<'_>,
    model: &mut Model,
    keys: u32,
    now: i64,
    random: &mut fastrand::Rng,
) {
    let number = random.usize(..DATABASES);
    let name = format!("key:{}", random.u32(..keys)).into_bytes();
    let database = keyspace.database(turn, number);
    let hash = keyspace.hash(&name);
    let mut guard = database.lock(hash, now);
    change(&mut guard, hash, &name, &mut model[number], random);
}

/// Random changes of keys of one writer, who notes them. Returns how many.
fn change_some(
    keyspace: &Keyspace,
    turn: &Turn<'_>,
    writer: usize,
    model: &Mutex<Model>,
    now: i64,
    random: &mut fastrand::Rng,
) -> usize {
    let mut model = model.lock();
    let changes = random.usize(..50);
    for _ in 0..changes {
        let name = format!("{writer}:{}", random.u32(..3000)).into_bytes();
        let number = random.usize(..DATABASES);
        let database = keyspace.database(turn, number);
        let hash = keyspace.hash(&name);
        let mut guard = database.lock(hash, now);
        change(&mut guard, hash, &name, &mut model[number], random);
    }
    changes
}

fn expire_some(keyspace: &Keyspace, turn: &Turn<'_>, now: i64) {
    let mut items = Vec::new();
    for number in 0..DATABASES {
        if let Some(database) = keyspace.existing(turn, number) {
            for shard in database.shards() {
                database
                    .lock_shard(shard, now)
                    .expire_due(10, 10, &mut items);
            }
        }
    }
}

#[test]
fn a_snapshot_holds_what_was_there_whatever_happens_meanwhile() {
    for (seed, shards, keys) in [(1, 1, 30u32), (2, 4, 1000), (3, 16, 5000), (4, 1, 20_000)] {
        let keyspace = keyspace(shards, 1);
        let mut turn = keyspace.turns().register();
        turn.enter();
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut model, mut now) = (empty(), 1000i64);
        for round in 0..40 {
            // Sometimes the tables grow or shrink a lot before, and sometimes meanwhile.
            for _ in 0..random.u32(..keys) {
                change_any(&keyspace, &turn, &mut model, keys, now, &mut random);
            }
            assert_at_rest(&keyspace, &turn);
            let snapshot = turn.exclusive(|alone| keyspace.begin_snapshot(alone, now));
            let mut snapshot = snapshot.expect("there is no other");
            assert!(
                turn.exclusive(|alone| keyspace.begin_snapshot(alone, now))
                    .is_none()
            );
            let (expected, mut collected) = (alive(&model, now), empty());
            let sizes: usize = snapshot.sizes().iter().map(|(_, sizes)| sizes.keys).sum();
            assert!(sizes >= expected.iter().map(HashMap::len).sum());
            let broken_off = round % 7 == 3;
            let (mut records, mut steps) = (Records::default(), 0);
            while let Some(number) = snapshot.step(&turn, &mut records) {
                collect(&records, number, &mut collected);
                steps += 1;
                if broken_off && steps == 3 {
                    break;
                }
                for _ in 0..random.u32(..200) {
                    change_any(&keyspace, &turn, &mut model, keys, now, &mut random);
                }
                now += random.i64(0..30);
                match random.u8(..20) {
                    0 => {
                        let number = random.usize(..DATABASES);
                        turn.exclusive(|alone| keyspace.flush(alone, number));
                        model[number].clear();
                    }
                    1 => {
                        let (one, other) = (random.usize(..DATABASES), random.usize(..DATABASES));
                        turn.exclusive(|alone| keyspace.swap(alone, one, other));
                        model.swap(one, other);
                    }
                    2..=5 => expire_some(&keyspace, &turn, now),
                    _ => {}
                }
            }
            if !broken_off {
                assert_same(&collected, &expected);
                assert!(snapshot.step(&turn, &mut records).is_none() && records.is_empty());
            }
            drop(snapshot);
            assert_at_rest(&keyspace, &turn);
        }
        turn.leave();
    }
}

#[test]
fn an_empty_keyspace_has_an_empty_snapshot() {
    let keyspace = keyspace(2, 1);
    let mut turn = keyspace.turns().register();
    turn.enter();
    for _ in 0..3 {
        let snapshot = turn.exclusive(|alone| keyspace.begin_snapshot(alone, 0));
        let mut snapshot = snapshot.expect("there is no other");
        assert!(snapshot.sizes().is_empty());
        assert_eq!(snapshot.step(&turn, &mut Records::default()), None);
        keyspace.database(&turn, 0);
    }
}

#[test]
fn databases_that_are_taken_can_be_put_back() {
    let keyspace = keyspace(2, 1);
    let mut turn = keyspace.turns().register();
    turn.enter();
    let set = |turn: &Turn<'_>, number, value: &[u8]| {
        let database = keyspace.database(turn, number);
        let key = database.key(b"key");
        database.lock(key.hash, 0).set(key, value, Expiry::Clear);
    };
    let get = |turn: &Turn<'_>, number| {
        let database = keyspace.database(turn, number);
        let key = database.key(b"key");
        let mut guard = database.lock(key.hash, 0);
        guard.find(key).map(|entry| entry.value().bytes().to_vec())
    };
    set(&turn, 0, b"before");
    set(&turn, 3, b"three");
    let taken = turn.exclusive(|alone| keyspace.take_all(alone));
    assert_eq!((get(&turn, 0), get(&turn, 3)), (None, None));
    set(&turn, 0, b"meanwhile");
    set(&turn, 1, b"meanwhile");
    turn.exclusive(|alone| keyspace.put_back(alone, taken));
    let found: Vec<_> = (0..DATABASES).map(|number| get(&turn, number)).collect();
    assert_eq!(
        found,
        [
            Some(b"before".to_vec()),
            None,
            None,
            Some(b"three".to_vec())
        ]
    );
    drop(turn.exclusive(|alone| keyspace.take_all(alone)));
    assert_eq!(get(&turn, 0), None);
}

#[test]
fn what_writers_copy_is_counted_and_comes_first() {
    let keyspace = keyspace(1, 1);
    let mut turn = keyspace.turns().register();
    turn.enter();
    let set_all = |turn: &Turn<'_>, value: &[u8]| {
        for number in 0..10_000 {
            let name = format!("key:{number}").into_bytes();
            let database = keyspace.database(turn, 0);
            let key = database.key(&name);
            database.lock(key.hash, 0).set(key, value, Expiry::Clear);
        }
    };
    set_all(&turn, b"before");
    let snapshot = turn.exclusive(|alone| keyspace.begin_snapshot(alone, 0));
    let mut snapshot = snapshot.expect("there is no other");
    assert_eq!(snapshot.copied_bytes(), 0);
    set_all(&turn, b"afterwards");
    let copied = snapshot.copied_bytes();
    assert!(copied > 10_000 * 14, "{copied}");
    let (mut records, mut count) = (Records::default(), 0);
    while snapshot.step(&turn, &mut records).is_some() {
        count += records.len();
        assert!(
            records
                .iter()
                .all(|record| record.value.bytes() == Ok(b"before"))
        );
    }
    assert_eq!(count, 10_000);
}

/// Ends the threads of a test, also when one of them panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Writers that each have keys of their own in the same shards, and note what they do; one thread that
/// empties and exchanges databases; one that takes snapshots and compares them with the notes of the moment
/// they began.
#[test]
fn snapshots_beside_writers_are_what_the_writers_had_noted() {
    const WRITERS: usize = 3;
    const SNAPSHOTS: usize = 25;
    let keyspace = keyspace(8, WRITERS + 2);
    let models: Vec<Mutex<Model>> = (0..WRITERS).map(|_| Mutex::new(empty())).collect();
    let (clock, stop) = (AtomicI64::new(1000), AtomicBool::new(false));
    let changes = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (writer, model) in models.iter().enumerate() {
            let (keyspace, clock, stop, changes) = (&keyspace, &clock, &stop, &changes);
            scope.spawn(move || {
                let _stop = Stop(stop);
                let mut random = fastrand::Rng::with_seed(writer as u64);
                let mut turn = keyspace.turns().register();
                while !stop.load(SeqCst) {
                    turn.enter();
                    let now = clock.load(SeqCst);
                    let changed = change_some(keyspace, &turn, writer, model, now, &mut random);
                    changes.fetch_add(changed, SeqCst);
                    if random.u8(..10) == 0 {
                        expire_some(keyspace, &turn, now);
                    }
                    turn.leave();
                }
            });
        }
        let (keyspace, models, clock) = (&keyspace, &models, &clock);
        let (stop, changes) = (&stop, &changes);
        scope.spawn(move || {
            let _stop = Stop(stop);
            let mut random = fastrand::Rng::with_seed(99);
            let mut turn = keyspace.turns().register();
            while !stop.load(SeqCst) {
                turn.enter();
                let (one, other) = (random.usize(..DATABASES), random.usize(..DATABASES));
                let flushes = random.u8(..4) == 0;
                let passed = random.i64(0..20);
                turn.exclusive(|alone| {
                    // Time passes for all at once: each judges expiry for keys of all.
                    clock.fetch_add(passed, SeqCst);
                    if flushes {
                        keyspace.flush(alone, one);
                    } else {
                        keyspace.swap(alone, one, other);
                    }
                    for model in models {
                        let mut model = model.lock();
                        if flushes {
                            model[one].clear();
                        } else {
                            model.swap(one, other);
                        }
                    }
                });
                turn.leave();
                await_changes(changes, 500, stop);
            }
        });
        let _stop = Stop(stop);
        let mut turn = keyspace.turns().register();
        for round in 0..SNAPSHOTS {
            await_changes(changes, 2000, stop);
            turn.enter();
            let mut expected = empty();
            let snapshot = turn.exclusive(|alone| {
                let now = clock.load(SeqCst);
                for model in models {
                    for (of_all, of_one) in expected.iter_mut().zip(alive(&model.lock(), now)) {
                        of_all.extend(of_one);
                    }
                }
                keyspace.begin_snapshot(alone, now)
            });
            turn.leave();
            let snapshot = snapshot.expect("there is no other");
            read_beside(snapshot, &mut turn, &expected, round % 5 == 4);
        }
    });
}

/// Lets the writers make so many changes, however the threads are scheduled.
fn await_changes(changes: &AtomicUsize, count: usize, stop: &AtomicBool) {
    let until = changes.load(SeqCst) + count;
    while changes.load(SeqCst) < until && !stop.load(SeqCst) {
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
}

fn read_beside(mut snapshot: Snapshot, turn: &mut Turn<'_>, expected: &Model, break_off: bool) {
    let (mut collected, mut records) = (empty(), Records::default());
    for step in 0.. {
        turn.enter();
        let number = snapshot.step(turn, &mut records);
        turn.leave();
        match number {
            Some(number) => collect(&records, number, &mut collected),
            None => return assert_same(&collected, expected),
        }
        if break_off && step == 2 {
            return;
        }
        std::thread::yield_now();
    }
}
