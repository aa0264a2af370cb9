//! Scans of hashes and sets show every item that stays, beside edits of others.

use std::collections::HashSet;

use super::hashes::{empty, item, keyspace, text};
use crate::collection::cell::Cell;
use crate::collection::run::Item;
use crate::{Database, EntryMut, Kind};

/// Shows the next items of a scan.
fn scan(entry: &EntryMut<'_, '_>, cursor: u64, count: usize, visit: impl FnMut(Item<'_>)) -> u64 {
    match entry.kind() {
        Kind::Set => entry.set_members().scan(cursor, count, visit),
        _ => entry.hash_fields().scan(cursor, count, visit),
    }
}

/// Scans a collection to its end, with edits of other items between the calls.
fn scan_beside_edits(
    random: &mut fastrand::Rng,
    database: &Database,
    kept: u32,
    name: impl Fn(u32) -> Vec<u8>,
) {
    let (key, mut cursor, mut found) = (database.key(b"h"), 0, HashSet::new());
    loop {
        let mut guard = database.lock(key.hash, 0);
        let mut entry = guard.find(key).expect("it is there");
        let count = random.usize(..60);
        let mut shown = 0;
        let at = cursor;
        cursor = scan(&entry, cursor, count, |item| {
            found.insert(text(item.name));
            shown += 1;
        });
        assert!(cursor == 0 || shown >= count, "a call shows too little");
        assert!(cursor == 0 || cursor > at, "a scan goes on");
        assert!(cursor < 1 << 48, "a client may keep it as a double");
        if cursor == 0 {
            break;
        }
        // Many fields come or go at a time, so that leaves are split and merged.
        let (grows, kind) = (random.bool(), entry.kind());
        for _ in 0..random.usize(..300) {
            let name = name(kept + random.u32(..2 * kept));
            match grows {
                true => drop(entry.set_item(&item(kind, &name, b"v"))),
                false => drop(entry.remove_item(Cell::of(&name))),
            }
        }
    }
    for number in 0..kept {
        assert!(found.contains(&name(number)), "kept:{number} was not shown");
    }
}

#[test]
fn a_scan_shows_every_item_that_stays() {
    let text = |number: u32| format!("name:{number}").into_bytes();
    let number = |number: u32| number.to_string().into_bytes();
    a_scan_shows(Kind::Hash, false, text);
    a_scan_shows(Kind::Set, false, text);
    a_scan_shows(Kind::Set, false, number);
    // Some of them share a cursor.
    let long = |number: u32| format!("{}", (1_i64 << 52) + i64::from(number) * 100).into_bytes();
    a_scan_shows(Kind::Set, true, long);
    let negative = |number: u32| format!("{}", -(1_i64 << 50) - i64::from(number)).into_bytes();
    a_scan_shows(Kind::Set, true, negative);
}

fn a_scan_shows(kind: Kind, shares_cursors: bool, name: impl Fn(u32) -> Vec<u8> + Copy) {
    for (seed, (small_bytes, kept)) in [(64, 50), (64, 2_000), (4096, 5_000)]
        .into_iter()
        .enumerate()
    {
        let keyspace = keyspace(small_bytes);
        let mut turn = keyspace.turns().register();
        turn.enter();
        let mut random = fastrand::Rng::with_seed(seed as u64);
        let database = keyspace.database(&turn, 0);
        let key = database.key(b"h");
        let mut guard = database.lock(key.hash, 0);
        guard.write(key, empty(kind), |_, _| None);
        let mut entry = guard.find(key).expect("it was written");
        for number in 0..kept {
            entry.set_item(&item(kind, &name(number), b"v"));
        }
        let (mut shown, mut cursor) = (0, 0);
        loop {
            cursor = scan(&entry, cursor, 10, |_| shown += 1);
            if cursor == 0 {
                break;
            }
        }
        // Items that share a cursor may be shown again.
        assert!((kept..2 * kept).contains(&shown), "{shown} of {kept}");
        assert!(
            shares_cursors || shown == kept,
            "without changes every item is shown once"
        );
        drop(guard);
        for _ in 0..20 {
            scan_beside_edits(&mut random, database, kept, name);
        }
        turn.leave();
    }
}
