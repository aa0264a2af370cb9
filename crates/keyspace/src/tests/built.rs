//! Collections that are made as a whole, beside maps: what a key is given is what was pushed.

use std::collections::{BTreeMap, BTreeSet};

use crate::collection::build::DuplicateItem;
use crate::collection::cell::{Cell, DECIMAL_MAX};
use crate::collection::run::Item;
use crate::{Detached, EntryMut, Form, HashRef, Keyspace, Kind, New, Options};

type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

fn keyspace(small_bytes: usize) -> Keyspace {
    let keyspace = Keyspace::new(&Options {
        databases: 1,
        workers: 1,
        shards: 1,
        seed: 3,
        ticks: || 0,
        charge: |_| (),
    });
    keyspace.set_small_bytes(small_bytes);
    keyspace
}

fn fields(hash: HashRef<'_>) -> Fields {
    let text = |cell: Cell<'_>| cell.text(&mut [0; DECIMAL_MAX]).to_vec();
    let fields = hash.iter();
    fields
        .map(|item| (text(item.name), text(item.value.expect("a pair"))))
        .collect()
}

/// Fields and values of all lengths, some of them integers.
fn some_fields(random: &mut fastrand::Rng, count: usize) -> Fields {
    let text = |random: &mut fastrand::Rng| match random.u8(..4) {
        0 => random.i64(-50..5000).to_string().into_bytes(),
        1 => random.i64(..).to_string().into_bytes(),
        2 => vec![random.u8(..); random.usize(..300)],
        _ => format!("text {}", random.u32(..)).into_bytes(),
    };
    (0..count).map(|_| (text(random), text(random))).collect()
}

/// Gives `look` the entry of a key that gets what was pushed.
fn with_entry(keyspace: &Keyspace, pushed: &Fields, look: impl FnOnce(EntryMut<'_, '_>)) {
    let mut builder = keyspace.builder(Kind::Hash, b"key");
    for (field, value) in pushed {
        let item = Item::pair(Cell::of(field), Cell::of(value));
        assert_eq!(builder.push(&item), Ok(()));
    }
    assert_eq!(builder.len(), pushed.len() as u64);
    assert_eq!(builder.is_empty(), pushed.is_empty());
    let longest = pushed.iter().flat_map(|(field, value)| [field, value]);
    let longest = longest.map(Vec::len).max().unwrap_or(0);
    assert_eq!(builder.longest(), longest);
    let mut hash = Detached::built(builder, Form::Part, Some(7));
    let mut turn = keyspace.turns().register();
    turn.enter();
    let database = keyspace.database(&turn, 0);
    let key = database.key(b"key");
    let mut guard = database.lock(key.hash, 0);
    guard.write(key, New::detached(&mut hash), |_, _| None);
    look(guard.find(key).expect("it was written"));
    guard.remove(key);
    drop(guard);
    turn.leave();
}

#[test]
fn a_key_has_what_was_pushed() {
    let mut random = fastrand::Rng::with_seed(1);
    for (small_bytes, most) in [(64, 40), (64, 2000), (1000, 300), (4096, 1000)] {
        let keyspace = keyspace(small_bytes);
        for _ in 0..30 {
            let count = random.usize(..most);
            let pushed = some_fields(&mut random, count);
            with_entry(&keyspace, &pushed, |mut entry| {
                assert_eq!((entry.kind(), entry.expiry()), (Kind::Hash, Some(7)));
                assert_eq!(entry.value_type().form, Form::Part);
                assert_eq!(fields(entry.hash_fields()), pushed);
                let is_small = entry.tree().is_none();
                assert!(!is_small || entry.value_len() <= small_bytes);
                assert!(is_small || pushed.len() * 600 > small_bytes);
                // It goes on as any other.
                let mut changed = pushed.clone();
                for (field, value) in some_fields(&mut random, 20) {
                    entry.set_item(&Item::pair(Cell::of(&field), Cell::of(&value)));
                    changed.insert(field, value);
                }
                assert_eq!(fields(entry.hash_fields()), changed);
            });
        }
    }
}

#[test]
fn no_field_comes_twice() {
    for count in [1, 5, 500] {
        let mut builder = keyspace(512).builder(Kind::Hash, b"key");
        let names: Vec<String> = (0..count).map(|number| format!("{number}")).collect();
        for name in &names {
            let name = Cell::of(name.as_bytes());
            assert_eq!(builder.push(&Item::pair(name, Cell::Int(1))), Ok(()));
        }
        let last = Item::pair(Cell::Int(count - 1), Cell::Int(2));
        assert_eq!(builder.push(&last), Err(DuplicateItem));
    }
}

#[test]
fn a_moment_stays_while_the_tree_changes() {
    let keyspace = keyspace(64);
    let pushed = some_fields(&mut fastrand::Rng::with_seed(2), 500);
    with_entry(&keyspace, &pushed, |mut entry| {
        let moment = entry.moment().expect("it is a tree");
        for field in pushed.keys().step_by(2) {
            assert!(entry.remove_item(Cell::of(field)));
        }
        assert_eq!(fields(moment.items()), pushed);
        assert_eq!(entry.hash_fields().len(), pushed.len() as u64 / 2);
    });
    let small = some_fields(&mut fastrand::Rng::with_seed(2), 0);
    with_entry(&keyspace, &small, |mut entry| {
        assert!(entry.moment().is_none());
    });
}

#[test]
fn a_set_has_the_members_that_were_pushed() {
    let mut random = fastrand::Rng::with_seed(2);
    for (small_bytes, most) in [(64, 40), (512, 2000), (4096, 1500)] {
        let keyspace = keyspace(small_bytes);
        let pushed = some_fields(&mut random, most);
        let is_numeric = |name: &Vec<u8>| matches!(Cell::of(name), Cell::Int(_));
        let mut builder = keyspace.builder(Kind::Set, b"key");
        assert!(builder.is_numeric() && builder.is_empty());
        for _ in 0..2 {
            for name in pushed.keys() {
                let is_there = builder.len() >= pushed.len() as u64;
                let added = builder.push(&Item::single(Cell::of(name)));
                assert_eq!(added.is_err(), is_there);
            }
        }
        assert_eq!(builder.is_numeric(), pushed.keys().all(is_numeric));
        let mut set = Detached::built(builder, Form::Decimal, None);
        let mut turn = keyspace.turns().register();
        turn.enter();
        let database = keyspace.database(&turn, 0);
        let key = database.key(b"key");
        let mut guard = database.lock(key.hash, 0);
        guard.write(key, New::detached(&mut set), |_, _| None);
        let entry = guard.find(key).expect("it was written");
        assert_eq!(
            (entry.kind(), entry.value_type().form),
            (Kind::Set, Form::Decimal)
        );
        let members = entry.set_members();
        assert_eq!(members.len(), pushed.len() as u64);
        assert!(
            pushed
                .keys()
                .all(|name| members.get(Cell::of(name)).is_some())
        );
        drop(guard);
        turn.leave();
    }
}

#[test]
fn integers_of_a_set_come_in_order() {
    let mut random = fastrand::Rng::with_seed(3);
    for (small_bytes, most) in [(64, 400), (512, 3000), (4096, 50)] {
        let keyspace = keyspace(small_bytes);
        for spread in [2, 1000, i64::MAX] {
            let mut builder = keyspace.builder(Kind::Set, b"key");
            let (mut integers, mut texts) = (BTreeSet::new(), BTreeSet::new());
            for _ in 0..random.usize(..most) {
                let number = random.i64(-spread..=spread);
                let text = format!("text {number}");
                let is_integer = random.bool();
                let name = match is_integer {
                    true => Cell::Int(number),
                    false => Cell::Bytes(text.as_bytes()),
                };
                let is_new = match is_integer {
                    true => integers.insert(number),
                    false => texts.insert(text.clone()),
                };
                assert_eq!(builder.push(&Item::single(name)).is_ok(), is_new);
            }
            if builder.is_empty() {
                continue;
            }
            let mut set = Detached::built(builder, Form::Part, None);
            let mut turn = keyspace.turns().register();
            turn.enter();
            let database = keyspace.database(&turn, 0);
            let key = database.key(b"key");
            let mut guard = database.lock(key.hash, 0);
            guard.write(key, New::detached(&mut set), |_, _| None);
            let entry = guard.find(key).expect("it was written");
            let members = entry.set_members();
            assert_eq!(members.len(), (integers.len() + texts.len()) as u64);
            for steps in [1, 10, 1000] {
                let (mut all, mut target) = (members.integers(), i64::MIN);
                while target < i64::MAX {
                    let mut wanted = Vec::new();
                    for _ in 0..random.usize(1..100) {
                        // What is there, near it, and far from it.
                        let next = integers.range(target..).next().copied();
                        let some = next.unwrap_or(target).saturating_add(random.i64(-1..=1));
                        wanted.push(some.max(target));
                        target = wanted[wanted.len() - 1].saturating_add(random.i64(1..=steps));
                    }
                    wanted.dedup();
                    let kept: Vec<i64> = wanted
                        .iter()
                        .copied()
                        .filter(|wanted| integers.contains(wanted))
                        .collect();
                    all.retain_in(&mut wanted);
                    assert_eq!(wanted, kept);
                    if integers.range(target..).next().is_none() {
                        break;
                    }
                }
            }
            drop(guard);
            turn.leave();
        }
    }
}
