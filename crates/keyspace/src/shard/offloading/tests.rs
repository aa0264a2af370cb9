//! Values go and come back, and nothing else changes: against a model.

use std::collections::HashMap;
use std::num::NonZeroU64;

use super::*;
use crate::collection::cell::Cell;
use crate::collection::run::Item;
use crate::entry::cold::ColdValue;
use crate::entry::overwritten::Overwritten;
use crate::evict::FRESH;
use crate::shard::New;
use crate::shard::fields::{EMPTY_HASH, HASH};
use crate::{
    Access, COLD_MIN_BYTES, Database, Encoding, Expiry, Form, Key, Keyspace, Options, RecordValue,
    Records,
};

fn keyspace() -> Keyspace {
    let keyspace = Keyspace::new(&Options {
        databases: 1,
        workers: 1,
        shards: 1,
        seed: 7,
        ticks: || 0,
        charge: |_| (),
    });
    keyspace.set_access(Access::Heat, 10, 1);
    keyspace.set_logged(true);
    keyspace
}

fn address(number: u64) -> LogAddress {
    LogAddress(NonZeroU64::new(number + 1000).expect("it is more than 0"))
}

/// A log: the value of each record ever written.
#[derive(Default)]
struct Model {
    log: Vec<Vec<u8>>,
    /// Whether some values are left there from the beginning, as a start does it.
    leaves: bool,
    keys: HashMap<String, (usize, Option<i64>)>,
}

/// Sets a key to a value that the log alone has.
fn set_cold(
    guard: &mut Guard<'_>,
    key: Key<'_>,
    len: u64,
    expiry: Expiry,
    log: impl FnOnce(Option<Overwritten>) -> LogAddress,
) {
    let new = New::cold(len).expiry(expiry);
    guard.write(key, new, |_, old| Some(log(old)));
}

fn set(database: &Database, model: &mut Model, name: &str, value: Vec<u8>, expiry: Option<i64>) {
    let key = database.key(name.as_bytes());
    let number = model.log.len();
    let at = expiry.map_or(Expiry::Clear, Expiry::At);
    let mut guard = database.lock(key.hash, 0);
    if model.leaves && value.len() >= COLD_MIN_BYTES && number.is_multiple_of(3) {
        let old = model
            .keys
            .get(name)
            .map(|&(number, _)| address(number as u64));
        let new = New::cold(value.len() as u64).expiry(expiry).used(0);
        guard.write(key, new, |_, replaced| {
            assert_eq!(replaced.map(|replaced| replaced.address), old);
            Some(address(number as u64))
        });
    } else if value.len() >= 3000 && number.is_multiple_of(5) {
        // Some long ones never were in memory.
        set_cold(&mut guard, key, value.len() as u64, at, |_| {
            address(number as u64)
        });
    } else {
        let new = New::bytes(&value).expiry(at);
        guard.write(key, new, |_, _| Some(address(number as u64)));
    }
    model.log.push(value);
    model.keys.insert(name.to_owned(), (number, expiry));
}

fn warm(guard: &mut Guard<'_>, model: &Model, key: Key<'_>) {
    let entry = guard.find(key).expect("it is there");
    let Some(cold) = entry.cold() else { return };
    let value = &model.log[(cold.address.0.get() - 1000) as usize];
    assert!(entry.warm(cold.address, LargeValue::new(value.clone().into())));
}

/// Brings back a cold value: what was read under another address is of no use, nor is half of it.
fn warm_with_nothing_else(guard: &mut Guard<'_>, model: &Model, key: Key<'_>, cold: ColdValue) {
    let entry = guard.find(key).expect("it is there");
    let value = LargeValue::new(vec![0; cold.len as usize].into());
    assert!(!entry.warm(address(1 << 40), value));
    let entry = guard.find(key).expect("it is there");
    assert!(!entry.warm(cold.address, LargeValue::new(vec![0; 3].into())));
    warm(guard, model, key);
    let entry = guard.find(key).expect("it is there");
    assert!(!entry.warm(cold.address, LargeValue::new(vec![0; 3].into())));
}

#[test]
fn a_keyspace_whose_values_come_and_go_is_like_any_other() {
    let keyspace = keyspace();
    let mut turn = keyspace.turns().register();
    turn.enter();
    let database = keyspace.database(&turn, 0);
    let mut random = fastrand::Rng::with_seed(11);
    let mut model = Model {
        leaves: true,
        ..Model::default()
    };
    for round in 0..20_000 {
        let name = format!("key:{}", random.usize(..300));
        let key = database.key(name.as_bytes());
        match random.u8(..10) {
            0..3 => {
                let len = [0, 30, 63, 64, 100, 3000, 16_383, 16_384, 50_000][random.usize(..9)];
                let expiry = random.bool().then_some(1_000_000 + round);
                set(
                    database,
                    &mut model,
                    &name,
                    vec![random.u8(..); len],
                    expiry,
                );
            }
            3 => {
                let mut guard = database.lock(key.hash, 0);
                let was_there = guard.remove(key);
                assert_eq!(was_there, model.keys.remove(&name).is_some());
            }
            4..6 => {
                let mut guard = database.lock(key.hash, 0);
                let before = guard.cell.cold().0;
                let (gone, _) = guard.offload(random.usize(..8), |_, _| Offloading::Goes);
                assert_eq!(guard.cell.cold().0, before + gone);
            }
            6 => {
                let mut guard = database.lock(key.hash, 0);
                if let Some(mut entry) = guard.find(key) {
                    let (_, expiry) = model.keys.get_mut(&name).expect("it is there");
                    *expiry = random.bool().then_some(2_000_000 + round);
                    entry.set_expiry(*expiry);
                }
            }
            7 => {
                let mut guard = database.lock(key.hash, 0);
                let cold = guard.find(key).and_then(|entry| entry.cold());
                if let Some(cold) = cold {
                    warm_with_nothing_else(&mut guard, &model, key, cold);
                }
            }
            _ => {
                let mut guard = database.lock(key.hash, 0);
                let entry = guard.find(key);
                assert_eq!(entry.is_some(), model.keys.contains_key(&name));
                let Some(mut entry) = entry else { continue };
                let (number, expiry) = model.keys[&name];
                let value = &model.log[number];
                assert_eq!((entry.value_len(), entry.expiry()), (value.len(), expiry));
                entry.touch();
                if entry.cold().is_none() {
                    assert_eq!(entry.value().bytes(), value);
                } else {
                    assert!(value.len() >= crate::COLD_MIN_BYTES);
                    assert_eq!(entry.encoding(), Encoding::Raw);
                    assert_eq!(entry.as_ref().form(), Form::Whole);
                }
            }
        }
        if round % 200 == 0 {
            database.lock(key.hash, 0).verify();
        }
    }
    assert!(database.cold().0 > 0 && database.cold().1 > 0);
    assert_eq!(database.len(), model.keys.len());
}

#[test]
fn everything_that_may_go_goes_and_nothing_of_a_pinned_shard() {
    let keyspace = keyspace();
    let mut turn = keyspace.turns().register();
    turn.enter();
    let database = keyspace.database(&turn, 0);
    let mut model = Model::default();
    for number in 0..2_000 {
        let len = if number % 10 == 0 { 200 } else { 20 };
        set(
            database,
            &mut model,
            &format!("key:{number}"),
            vec![b'v'; len],
            None,
        );
    }
    let before = database.memory();
    let mut guard = database.lock(0, 0);
    guard.pin();
    assert_eq!(guard.offload(10, |_, _| Offloading::Goes), (0, true));
    let key = database.key(b"key:0");
    assert!(!guard.find(key).expect("it is there").offload());
    drop(guard);
    database.unpin(0);
    let mut guard = database.lock(0, 0);
    assert_eq!(guard.offload(10, |_, _| Offloading::Waits), (0, true));
    // A hand that passes all of the entries a few times meets each of those that may go.
    let mut rounds = 0;
    while guard.cell.cold().0 < 200 {
        assert!(rounds < 100, "{:?} have gone", guard.cell.cold());
        guard.offload(10, |_, _| Offloading::Goes);
        guard.verify();
        rounds += 1;
    }
    assert_eq!(guard.cell.cold(), (200, 200 * 200));
    while guard.pack(20) {}
    assert!(guard.cell.memory() < before - 200 * 100);
    drop(guard);
    // They come back as the newest, or warmer.
    let mut guard = database.lock(0, 0);
    for number in (0..2_000).step_by(10) {
        let name = format!("key:{number}");
        warm(&mut guard, &model, database.key(name.as_bytes()));
    }
    guard.verify();
    assert!(!guard.has_cold());
}

#[test]
fn a_snapshot_gets_what_is_cold_as_where_it_is() {
    let keyspace = keyspace();
    let mut turn = keyspace.turns().register();
    let mut model = Model::default();
    turn.enter();
    for number in 0..100 {
        let database = keyspace.database(&turn, 0);
        set(
            database,
            &mut model,
            &format!("key:{number}"),
            vec![number; 200],
            None,
        );
    }
    let database = keyspace.database(&turn, 0);
    database.lock(0, 0).offload(30, |_, _| Offloading::Goes);
    let mut snapshot = turn
        .exclusive(|alone| keyspace.begin_snapshot(alone, 0))
        .expect("there is no other");
    let database = keyspace.database(&turn, 0);
    // Some go meanwhile, some come back, some get another value: the snapshot has them as they were.
    let mut guard = database.lock(0, 0);
    guard.offload(30, |_, _| Offloading::Goes);
    for number in 0..20 {
        let name = format!("key:{number}");
        warm(&mut guard, &model, database.key(name.as_bytes()));
    }
    drop(guard);
    let log = model.log.len();
    for number in 10..30 {
        set(
            database,
            &mut model,
            &format!("key:{number}"),
            b"new".to_vec(),
            None,
        );
    }
    let mut records = Records::default();
    let mut seen = 0;
    while snapshot.step(&turn, &mut records).is_some() {
        for record in records.iter() {
            let name = std::str::from_utf8(record.key).expect("it is text");
            let number: u8 = name[4..].parse().expect("it ends with a number");
            match record.value {
                RecordValue::Cold(cold) => {
                    assert_eq!(cold.address, address(u64::from(number)));
                    assert!(u64::from(number) < log as u64 && cold.len == 200);
                }
                value => assert_eq!(value.bytes(), Ok(&[number; 200][..])),
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 100);
}

#[test]
fn what_never_was_in_memory_is_moved_copied_and_expires_as_it_is() {
    let keyspace = keyspace();
    let mut turn = keyspace.turns().register();
    turn.enter();
    let database = keyspace.database(&turn, 0);
    let (one, two) = (database.key(b"one"), database.key(b"two"));
    let mut guard = database.lock(one.hash, 0);
    for at in [Expiry::Clear, Expiry::At(50)] {
        // Over nothing, over a value in memory, over one like it.
        set_cold(&mut guard, one, 1 << 40, at, |old| {
            assert!(old.is_none());
            address(1)
        });
        let short = New::bytes(b"short").expiry(at);
        guard.write(one, short, |_, _| Some(address(2)));
        set_cold(&mut guard, one, 1 << 40, at, |old| {
            assert_eq!(old.map(|old| old.address), Some(address(2)));
            address(3)
        });
        set_cold(&mut guard, one, 1 << 41, at, |_| address(4));
        guard.verify();
        assert_eq!(guard.cell.cold(), (1, 1 << 41));
        let mut copy = guard.find(one).expect("it is there").copy();
        let cold = ColdValue {
            address: address(4),
            len: 1 << 41,
        };
        assert_eq!(copy.cold(), Some(cold));
        guard.write(two, New::detached(&mut copy), |_, _| Some(address(5)));
        assert_eq!(guard.cell.cold(), (2, 1 << 42));
        guard.verify();
        let mut moved = guard.detach(one).expect("it is there");
        guard.remove(two);
        assert_eq!(guard.cell.cold(), (0, 0));
        guard.write(two, New::detached(&mut moved), |_, _| Some(address(6)));
        let entry = guard.find(two).expect("it is there");
        assert_eq!(entry.cold().map(|cold| cold.address), Some(address(6)));
        assert_eq!(entry.expiry(), (at != Expiry::Clear).then_some(50));
        guard.verify();
        guard.remove(two);
    }
    set_cold(&mut guard, one, 100, Expiry::At(50), |_| address(7));
    drop(guard);
    let mut guard = database.lock(one.hash, 51);
    assert!(guard.find(one).is_none());
    assert_eq!(guard.cell.cold(), (0, 0));
    guard.verify();
}

#[test]
fn what_is_asked_for_twice_is_known_and_not_fresh_when_it_comes_back() {
    let keyspace = keyspace();
    let mut turn = keyspace.turns().register();
    turn.enter();
    let database = keyspace.database(&turn, 0);
    let mut model = Model::default();
    let names: Vec<String> = (0..100).map(|number| format!("key:{number}")).collect();
    for name in &names {
        set(database, &mut model, name, vec![b'v'; 100], None);
    }
    let mut guard = database.lock(0, 0);
    assert_eq!(guard.offload(1000, |_, _| Offloading::Goes).0, names.len());
    for name in &names {
        let key = database.key(name.as_bytes());
        let mut is_asked_again = || guard.find(key).expect("it is there").is_asked_again();
        assert!(!is_asked_again());
        assert!(is_asked_again());
        for heat in [COOL, FRESH] {
            // That it was asked for is forgotten when it comes back.
            warm(&mut guard, &model, key);
            let slot = guard.find(key).expect("it is there").slot;
            assert_eq!(guard.index().heat(slot), heat);
            assert!(guard.find(key).expect("it is there").offload());
        }
    }
    guard.verify();
}

/// Sets fields of a hash, which expire or do not.
fn set_fields(entry: &mut EntryMut<'_, '_>, fields: usize, expiry: Option<u64>) {
    for number in 0..fields {
        let (name, value) = (format!("field:{number}"), format!("value:{number}"));
        let item = Item::pair(Cell::of(name.as_bytes()), Cell::of(value.as_bytes()));
        entry.set_item(&item.with_expiry(expiry));
    }
}

/// Where none of more leaves than one search looks at may leave, a few searches are enough to say so. When
/// they may leave, they are found.
#[test]
fn a_tree_whose_leaves_all_expire_is_not_waited_for() {
    const FIELDS: usize = 100_000;
    const SEARCHES: usize = 20;
    let keyspace = keyspace();
    let mut turn = keyspace.turns().register();
    turn.enter();
    let database = keyspace.database(&turn, 0);
    let key = database.key(b"hash");
    let mut guard = database.lock(key.hash, 0);
    guard.write(key, New::bytes(&EMPTY_HASH).of(HASH), |_, _| {
        Some(address(1))
    });
    let mut entry = guard.find(key).expect("it was set");
    set_fields(&mut entry, FIELDS, Some(1_000_000));
    let tree = entry.tree().expect("it is large");
    tree.logged().expect(7, 0);
    assert!(tree.all_leaving().is_empty());
    let nothing = |guard: &mut Guard<'_>| guard.offload(8, |_, _| Offloading::Waits) == (0, false);
    let found = (0..SEARCHES).position(|_| nothing(&mut guard));
    assert!(found.is_some_and(|searches| searches > 0), "{found:?}");
    assert!((0..SEARCHES).all(|_| nothing(&mut guard)));
    let mut entry = guard.find(key).expect("it is there");
    set_fields(&mut entry, FIELDS, None);
    assert!((0..SEARCHES).any(|_| !nothing(&mut guard)));
}

/// Among many trees of leaves that all expire there is one of others. No search says that there is nothing
/// before it has found them.
#[test]
fn the_one_tree_whose_leaves_may_leave_is_found() {
    const TREES: usize = 100;
    const FIELDS: usize = 4_000;
    let keyspace = keyspace();
    let mut turn = keyspace.turns().register();
    turn.enter();
    let database = keyspace.database(&turn, 0);
    let name = |number: usize| format!("hash:{number}");
    let mut guard = database.lock(database.key(b"hash").hash, 0);
    for number in 0..TREES {
        let name = name(number);
        let key = database.key(name.as_bytes());
        guard.write(key, New::bytes(&EMPTY_HASH).of(HASH), |_, _| {
            Some(address(number as u64))
        });
        let mut entry = guard.find(key).expect("it was set");
        set_fields(&mut entry, FIELDS, Some(1_000_000));
        let tree = entry.tree().expect("it is large");
        tree.logged().expect(number as u64 + 1, 0);
    }
    let nothing = |guard: &mut Guard<'_>| guard.offload(1, |_, _| Offloading::Waits) == (0, false);
    for number in (0..TREES).step_by(7) {
        while !nothing(&mut guard) {}
        let name = name(number);
        let key = database.key(name.as_bytes());
        set_fields(&mut guard.find(key).expect("it is there"), FIELDS, None);
        let mut found = false;
        while !found {
            let (gone, waits) = guard.offload(1, |entry, _| {
                found |= entry.key().bytes == name.as_bytes();
                Offloading::Waits
            });
            assert!(gone > 0 || waits, "{name} was not looked at");
        }
        guard.remove(key);
    }
}
