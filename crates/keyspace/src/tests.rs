//! Model tests: a keyspace beside standard collections, under random operations.

mod built;
mod expiry;
mod hashes;
mod scans;
mod sorted;
mod writing;

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{Database, Expiry, Form, Key, Keyspace, New, Options, Position, ShardSet};

fn keyspace(shards: usize, workers: usize) -> Keyspace {
    Keyspace::new(&Options {
        databases: 2,
        workers,
        shards,
        seed: 42,
        ticks: || 0,
        charge: |_| (),
    })
}

fn key<'a>(database: &Database, bytes: &'a [u8]) -> Key<'a> {
    database.key(bytes)
}

/// Removes every key whose time has come, as the server's workers do.
fn expire_all(database: &Database, now: i64) {
    let mut items = Vec::new();
    for shard in database.shards() {
        while database.next_due_ms(shard) <= now {
            database
                .lock_shard(shard, now)
                .expire_due(10, 10, &mut items);
        }
    }
}

#[test]
fn random_operations_match_a_map() {
    for (seed, shards, keys) in [(1, 1, 50u32), (2, 4, 3_000), (3, 16, 40_000)] {
        let keyspace = keyspace(shards, 1);
        let mut turn = keyspace.turns().register();
        turn.enter();
        let database = keyspace.database(&turn, 0);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut model: HashMap<Vec<u8>, (Vec<u8>, Option<i64>)> = HashMap::new();
        let mut now = 1_000_000i64;
        for round in 0..200_000u32 {
            // Phases of growth and of deletion, so that tables grow and shrink several times.
            let deleting = round / 40_000 % 2 == 1;
            let name = format!("key:{}", random.u32(..keys)).into_bytes();
            let key = key(database, &name);
            model.retain_expired(&name, now);
            let mut guard = database.lock(key.hash, now);
            match random.u8(..10) {
                0..=2 if deleting => assert_eq!(guard.remove(key), model.remove(&name).is_some()),
                0..=2 => {
                    let value = vec![random.u8(..); random.usize(..40)];
                    guard.set(key, &value, Expiry::Clear);
                    model.insert(name, (value, None));
                }
                3 => {
                    let at = now + random.i64(-50..3000);
                    guard.set(key, b"volatile", Expiry::At(at));
                    model.insert(name, (b"volatile".to_vec(), Some(at)));
                }
                4 => {
                    guard.set(key, b"kept", Expiry::Keep);
                    let expiry = model.get(&name).and_then(|entry| entry.1);
                    model.insert(name, (b"kept".to_vec(), expiry));
                }
                5 => {
                    let len = random.usize(..30_000);
                    if let Some(mut entry) = guard.find(key) {
                        entry.resize_value(len, Form::Part);
                        model.get_mut(&name).expect("in both").0.resize(len, 0);
                    }
                }
                6 => {
                    let at = random.bool().then(|| now + random.i64(0..500));
                    if let Some(mut entry) = guard.find(key) {
                        entry.set_expiry(at);
                        model.get_mut(&name).expect("in both").1 = at;
                    }
                }
                7 => {
                    if let Some(mut detached) = guard.detach(key) {
                        assert!(!guard.contains(key));
                        guard.write(key, New::detached(&mut detached), |_, _| None);
                    }
                }
                _ => {
                    let found = guard
                        .find(key)
                        .map(|entry| (entry.value().bytes().to_vec(), entry.expiry()));
                    assert_eq!(found, model.get(&name).cloned());
                }
            }
            drop(guard);
            now += i64::from(random.u8(..100) == 0) * 13;
            if random.u16(..2000) == 0 {
                expire_all(database, now);
                model
                    .retain(|_, entry| entry.1.is_none_or(|at| now <= at + crate::expire::TICK_MS));
                check_whole(database, &model, now);
            }
        }
        for shard in database.shards() {
            while database.lock_shard(shard, now).maintain() {}
        }
        turn.leave();
    }
}

trait RetainExpired {
    fn retain_expired(&mut self, name: &[u8], now: i64);
}

impl RetainExpired for HashMap<Vec<u8>, (Vec<u8>, Option<i64>)> {
    fn retain_expired(&mut self, name: &[u8], now: i64) {
        if self
            .get(name)
            .is_some_and(|entry| entry.1.is_some_and(|at| now > at))
        {
            self.remove(name);
        }
    }
}

fn check_whole(database: &Database, model: &HashMap<Vec<u8>, (Vec<u8>, Option<i64>)>, now: i64) {
    for shard in database.shards() {
        database.lock_shard(shard, now).verify();
    }
    let live = |entry: &&(Vec<u8>, Option<i64>)| entry.1.is_none_or(|at| now <= at);
    let expected: BTreeMap<&[u8], &[u8]> = model
        .iter()
        .filter(|(_, entry)| live(entry))
        .map(|(k, v)| (&k[..], &v.0[..]))
        .collect();
    let mut seen = BTreeMap::new();
    database.for_each(now, |entry| {
        assert!(
            seen.insert(entry.key().to_vec(), entry.value().bytes().to_vec())
                .is_none(),
            "a key twice"
        );
    });
    assert_eq!(seen.len(), expected.len());
    assert!(
        seen.iter()
            .all(|(k, v)| expected.get(&k[..]) == Some(&&v[..]))
    );
    let mut scanned = HashSet::new();
    let mut cursor = 0;
    loop {
        cursor = database.scan(cursor, 7, now, |entry| {
            scanned.insert(entry.key().to_vec());
        });
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(scanned.len(), expected.len());
}

#[test]
fn accounting_returns_to_what_an_empty_database_takes() {
    let keyspace = keyspace(4, 1);
    let mut turn = keyspace.turns().register();
    turn.enter();
    let empty = keyspace.database(&turn, 0).memory();
    for round in 0..3 {
        let database = keyspace.database(&turn, 0);
        for n in 0..20_000u32 {
            let name = n.to_string().into_bytes();
            let key = key(database, &name);
            let expiry = if n % 3 == 0 {
                Expiry::At(1 << 40)
            } else {
                Expiry::Clear
            };
            database
                .lock(key.hash, 0)
                .set(key, &vec![b'v'; (n % 300) as usize], expiry);
        }
        assert!(database.memory() > empty + 20_000 * 150);
        let overhead = database.overhead(0);
        assert!(overhead.wheel_bytes > 0 && overhead.index_bytes > 0);
        assert!(database.memory() - overhead.bytes() > 20_000 * 150);
        assert_eq!(database.len(), 20_000);
        for n in 0..20_000u32 {
            let name = n.to_string().into_bytes();
            let key = key(database, &name);
            assert!(database.lock(key.hash, 0).remove(key));
        }
        assert_eq!((database.len(), database.volatile()), (0, 0));
        assert_eq!(database.memory(), database.overhead(0).bytes());
        // Replaced tables are kept while the turn in which they were replaced goes on.
        turn.leave();
        turn.enter();
        let database = keyspace.database(&turn, 0);
        turn_over(database);
        let left = database.memory() - empty;
        assert!(left < 700_000, "round {round}: {left} bytes for no keys");
    }
    turn.leave();
}

fn turn_over(database: &Database) {
    for shard in database.shards() {
        while database.lock_shard(shard, 0).maintain() {}
    }
}

#[test]
fn a_scan_meets_every_key_that_stays_while_the_table_grows_and_shrinks() {
    go_through(|database, cursor: u64, seen| {
        let next = database.scan(cursor, 10, 0, |entry| seen.push(entry.key().to_vec()));
        (next != 0).then_some(next)
    });
}

#[test]
fn a_walk_meets_every_key_that_stays_once() {
    for mut names in go_through(|database, at: Position, seen| {
        database.walk(at, 10, 0, |entry| seen.push(entry.key().to_vec()))
    }) {
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a key was met twice");
    }
}

/// Goes through databases that grow and shrink meanwhile, with steps that tell what they met and where to go
/// on, and makes sure that they meet all keys that stay. Returns which of those they met, for each database.
fn go_through<At: Default>(
    step: impl Fn(&Database, At, &mut Vec<Vec<u8>>) -> Option<At>,
) -> Vec<Vec<Vec<u8>>> {
    let mut met = Vec::new();
    for seed in 0..20 {
        let keyspace = keyspace(1 << (seed % 4), 1);
        let mut turn = keyspace.turns().register();
        turn.enter();
        let database = keyspace.database(&turn, 0);
        let mut random = fastrand::Rng::with_seed(seed);
        let set = |n: u32| {
            let name = n.to_string().into_bytes();
            let key = key(database, &name);
            database.lock(key.hash, 0).set(key, b"", Expiry::Clear);
        };
        let remove = |n: u32| {
            let name = n.to_string().into_bytes();
            let key = key(database, &name);
            database.lock(key.hash, 0).remove(key);
        };
        let staying = 0..500u32;
        staying.clone().for_each(set);
        let mut volatile = 1000u32..1000;
        let mut seen = Vec::new();
        let mut at = At::default();
        let mut calls = 0;
        while let Some(next) = step(database, at, &mut seen) {
            at = next;
            calls += 1;
            if random.bool() || calls < 4 {
                for _ in 0..random.u32(..2000) {
                    set(volatile.end);
                    volatile.end += 1;
                }
            } else {
                let until = volatile.end - random.u32(..=volatile.end - volatile.start);
                for n in volatile.start..until {
                    remove(n);
                }
                volatile.start = until;
            }
        }
        let stays = |name: &Vec<u8>| {
            let number = std::str::from_utf8(name).expect("digits").parse();
            staying.contains(&number.expect("digits"))
        };
        seen.retain(stays);
        let names: HashSet<&Vec<u8>> = seen.iter().collect();
        assert_eq!(names.len(), staying.len(), "seed {seed}: some were missed");
        met.push(seen);
        turn.leave();
    }
    met
}

#[test]
fn random_keys_are_live_and_varied() {
    let keyspace = keyspace(8, 1);
    let mut turn = keyspace.turns().register();
    turn.enter();
    let database = keyspace.database(&turn, 0);
    let mut random = fastrand::Rng::with_seed(1);
    assert_eq!(database.random_key(0, || random.u64(..), |_| ()), None);
    for n in 0..200u32 {
        let name = n.to_string().into_bytes();
        let key = key(database, &name);
        database.lock(key.hash, 0).set(
            key,
            b"",
            if n < 100 {
                Expiry::At(10)
            } else {
                Expiry::Clear
            },
        );
    }
    let mut seen = HashSet::new();
    for _ in 0..5000 {
        let name = database
            .random_key(11, || random.u64(..), |entry| entry.key().to_vec())
            .expect("there are keys");
        assert!(
            str::from_utf8(&name).unwrap().parse::<u32>().unwrap() >= 100,
            "an expired key"
        );
        seen.insert(name);
    }
    assert_eq!(seen.len(), 100);
    turn.leave();
}

#[test]
fn increments_of_many_threads_are_all_kept_and_sums_never_torn() {
    let keyspace = keyspace(8, 4);
    let names: Vec<Vec<u8>> = (0..64u32)
        .map(|n| format!("account:{n}").into_bytes())
        .collect();
    {
        let mut turn = keyspace.turns().register();
        turn.enter();
        let database = keyspace.database(&turn, 0);
        for name in &names {
            let key = database.key(name);
            database
                .lock(key.hash, 0)
                .set(key, &1000i64.to_le_bytes(), Expiry::Clear);
        }
        turn.leave();
    }
    std::thread::scope(|scope| {
        for worker in 0..3u64 {
            let (keyspace, names) = (&keyspace, &names);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(worker);
                let mut turn = keyspace.turns().register();
                for round in 0..4000u32 {
                    turn.enter();
                    let database = keyspace.database(&turn, 0);
                    if worker == 0 {
                        assert_eq!(sum(database, names), 64_000);
                    } else {
                        transfer(
                            database,
                            &names[random.usize(..64)],
                            &names[random.usize(..64)],
                            random.i64(-9..9),
                        );
                        // Growth and shrinking go on beside it.
                        let name = format!("other:{worker}:{}", round % 1500).into_bytes();
                        let key = database.key(&name);
                        database.prefetch_bucket(key.hash);
                        database.prefetch_entry(key.hash);
                        let mut guard = database.lock(key.hash, 0);
                        if !guard.remove(key) {
                            guard.set(key, b"x", Expiry::Clear);
                        }
                    }
                    turn.leave();
                }
            });
        }
    });
}

fn sum(database: &Database, names: &[Vec<u8>]) -> i64 {
    let mut set = ShardSet::default();
    names
        .iter()
        .for_each(|name| set.add(database.shard_of(database.key(name).hash)));
    let mut locked = database.lock_set(set, 0);
    names
        .iter()
        .map(|name| {
            read(
                &mut locked.shard(database.key(name).hash),
                database.key(name),
            )
        })
        .sum()
}

fn read(guard: &mut crate::Guard<'_>, key: Key<'_>) -> i64 {
    let entry = guard.find(key).expect("accounts stay");
    i64::from_le_bytes(entry.value().bytes().try_into().expect("eight bytes"))
}

fn transfer(database: &Database, from: &[u8], to: &[u8], amount: i64) {
    let (from, to) = (database.key(from), database.key(to));
    let mut set = ShardSet::default();
    set.add(database.shard_of(from.hash));
    set.add(database.shard_of(to.hash));
    let mut locked = database.lock_set(set, 0);
    for (key, change) in [(from, -amount), (to, amount)] {
        let mut guard = locked.shard(key.hash);
        let value = read(&mut guard, key) + change;
        guard.set(key, &value.to_le_bytes(), Expiry::Clear);
    }
}

#[test]
fn flush_and_swap_are_seen_whole() {
    let keyspace = keyspace(4, 2);
    let mut turn = keyspace.turns().register();
    turn.enter();
    for (index, value) in [(0, b"zero"), (1, b"one!")] {
        let database = keyspace.database(&turn, index);
        let key = database.key(b"k");
        database.lock(key.hash, 0).set(key, value, Expiry::Clear);
    }
    turn.exclusive(|alone| keyspace.swap(alone, 0, 1));
    {
        let database = keyspace.database(&turn, 0);
        let key = database.key(b"k");
        assert_eq!(
            database
                .lock(key.hash, 0)
                .find(key)
                .unwrap()
                .value()
                .bytes(),
            b"one!"
        );
    }
    turn.exclusive(|alone| keyspace.flush(alone, 0));
    assert_eq!(keyspace.database(&turn, 0).len(), 0);
    assert_eq!(keyspace.database(&turn, 1).len(), 1);
    turn.leave();
}

/// Runs a test with a database, and checks its shards afterwards.
fn with_database(shards: usize, test: impl FnOnce(&Database)) {
    let keyspace = keyspace(shards, 1);
    let mut turn = keyspace.turns().register();
    turn.enter();
    let database = keyspace.database(&turn, 0);
    test(database);
    for shard in database.shards() {
        database.lock_shard(shard, 0).verify();
    }
    turn.leave();
}

fn set(database: &Database, name: &[u8], now: i64, expiry: Expiry) {
    let key = database.key(name);
    database.lock(key.hash, now).set(key, b"", expiry);
}

#[test]
fn a_scan_of_a_few_keys_is_one_call() {
    for keys in [0, 1, 5] {
        with_database(1024, |database| {
            (0..keys).for_each(|n: u32| set(database, &n.to_le_bytes(), 0, Expiry::Clear));
            let mut met = 0;
            assert_eq!(database.scan(0, 10, 0, |_| met += 1), 0);
            assert_eq!(met, keys);
        });
    }
}

#[test]
fn values_of_changing_sizes_leave_few_holes() {
    with_database(4, |database| {
        let mut random = fastrand::Rng::with_seed(11);
        let names: Vec<Vec<u8>> = (0..40_000)
            .map(|number| format!("key:{number}").into_bytes())
            .collect();
        let mut model: Vec<Vec<u8>> = vec![Vec::new(); names.len()];
        for round in 0..6 {
            for (name, value) in names.iter().zip(&mut model) {
                *value = vec![random.u8(..); random.usize(1..100 + 100 * (round % 2))];
                let key = key(database, name);
                let expiry = if random.u8(..8) == 0 {
                    Expiry::At(1_000_000)
                } else {
                    Expiry::Clear
                };
                database.lock(key.hash, 0).set(key, value, expiry);
            }
            // However fast that was, holes were bounded.
            let holes = |database: &Database| {
                let overheads = database
                    .shards()
                    .map(|shard| database.lock_shard(shard, 0).overhead().slack_bytes);
                overheads.sum::<usize>() as f64 / (database.memory() as f64)
            };
            assert!(holes(database) < 0.3, "{}", holes(database));
            for shard in database.shards() {
                while database.lock_shard(shard, 0).pack(24) {}
                database.lock_shard(shard, 0).verify();
            }
            assert!(holes(database) < 0.2, "{}", holes(database));
        }
        for (name, value) in names.iter().zip(&model) {
            let key = key(database, name);
            let mut guard = database.lock(key.hash, 0);
            let entry = guard.find(key).expect("none was removed");
            assert_eq!(entry.value().bytes(), value);
        }
    });
}

#[test]
fn a_table_that_was_made_in_the_right_size_does_not_grow() {
    for (shards, keys) in [(1, 500), (4, 1_000), (8, 80_000), (2, 100_000)] {
        let keyspace = keyspace(shards, 1);
        let mut turn = keyspace.turns().register();
        turn.enter();
        let database = keyspace.database(&turn, 0);
        database.reserve(keys);
        let index = database.overhead(0).index_bytes;
        assert!(
            index < 16 * keys + 4096 * shards,
            "{index} bytes for {keys} keys"
        );
        for number in 0..keys {
            let name = format!("key:{number}").into_bytes();
            let key = key(database, &name);
            let mut guard = database.lock(key.hash, 1);
            guard.write(key, New::bytes(b"value").used(5_000), |_, _| None);
        }
        // A few that found no place are beside the tables.
        let grown = database.overhead(0).index_bytes - index;
        assert!(grown < 4096 * shards, "{grown} bytes more for {keys} keys");
        // Who has keys has a table already.
        database.reserve(100 * keys);
        assert_eq!(database.overhead(0).index_bytes, index + grown);
        database.shards().for_each(|shard| {
            database.lock_shard(shard, 1).verify();
        });
    }
}
