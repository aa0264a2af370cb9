//! Keys go at their time, whatever has become of the wheel that knows it.

use std::collections::HashMap;

use super::{expire_all, key, keyspace, set, turn_over, with_database};
use crate::hash::Place;
use crate::{Expiry, ShardId};

#[test]
fn keys_expire_where_a_bucket_begins_amid_the_places_of_their_item() {
    // The wheel knows the upper half of a key's place. The bucket that half falls into may be the one before
    // the key's.
    let sizes = (10..14).flat_map(|shift| (4..8).map(move |quarter| quarter << shift));
    let sizes: Vec<usize> = sizes.collect();
    let is_split = |hash: u64| {
        let (place, half) = (Place(hash), Place(hash >> 32 << 32));
        sizes
            .iter()
            .any(|&size| place.home(size) != half.home(size))
    };
    with_database(1, |database| {
        for n in 0..200_000u32 {
            set(database, &n.to_le_bytes(), 0, Expiry::Clear);
        }
        // One of 100,000 keys is split in a table of this size: try until there are some for every size.
        for n in 1_000_000..5_000_000u32 {
            let name = n.to_le_bytes();
            if is_split(database.key(&name).hash) {
                set(database, &name, 0, Expiry::At(1000));
            }
        }
        assert!(database.volatile() > 20, "too few to tell");
        for now in (1010..1050).step_by(10) {
            expire_all(database, now);
        }
        assert_eq!((database.len(), database.volatile()), (200_000, 0));
    });
}

#[test]
fn keys_that_share_an_item_expire_each_at_its_time() {
    with_database(1, |database| {
        // Keys whose places agree in their upper half.
        let mut names: HashMap<u64, u32> = HashMap::new();
        let mut pairs = Vec::new();
        for n in 0..700_000u32 {
            let hash = database.key(&n.to_le_bytes()).hash;
            if let Some(other) = names.insert(hash >> 32, n) {
                pairs.push((other, n));
            }
        }
        assert!(pairs.len() > 20, "{} pairs", pairs.len());
        let mut start = 0;
        for (one, other) in pairs.into_iter().take(20) {
            for (first, last) in [(one, other), (other, one)] {
                // Far enough for the wheel to look at both before either is due.
                let (early, late) = (start + 1_000_000, start + 2_000_000);
                set(database, &first.to_le_bytes(), start, Expiry::At(early));
                set(database, &last.to_le_bytes(), start, Expiry::At(late));
                for now in (start..early + 100).step_by(5000).chain([early + 100]) {
                    expire_all(database, now);
                }
                assert_eq!(database.len(), 1, "{first} and {last}");
                start = late + 100;
                expire_all(database, start);
                assert_eq!(database.len(), 0, "{first} and {last}");
            }
        }
    });
}

#[test]
fn the_wheel_forgets_keys_that_came_and_went() {
    with_database(1, |database| {
        set(database, b"stays", 0, Expiry::At(3_600_000));
        let before = database.memory();
        let key = database.key(b"comes and goes");
        for _ in 0..300_000 {
            let mut guard = database.lock(key.hash, 0);
            guard.set(key, b"", Expiry::At(3_600_000));
            guard.remove(key);
            drop(guard);
            if database.next_due_ms(ShardId(0)) <= 0 {
                expire_all(database, 0);
            }
        }
        let grown = database.memory() - before;
        assert!(grown < 100_000, "{grown} bytes for a key that is gone");
        expire_all(database, 3_600_010);
        assert_eq!(database.len(), 0);
    });
}

/// Keys come, go and change their times while the wheel is made anew again and again, a slice at a time.
#[test]
fn keys_expire_on_time_while_the_wheel_is_made_anew() {
    const STEP_MS: i64 = 10;
    const LATE_MS: i64 = STEP_MS + 2 * crate::expire::TICK_MS;
    with_database(1, |database| {
        let mut random = fastrand::Rng::with_seed(8);
        // What is there and when it expires, by key and by time.
        let mut times: HashMap<u32, i64> = HashMap::new();
        let mut order: std::collections::BTreeSet<(i64, u32)> = Default::default();
        let (mut now, mut items) = (1_000_000, Vec::new());
        let (mut begun, mut was_under_way) = (0, false);
        for _ in 0..3_000 {
            now += STEP_MS;
            for _ in 0..200 {
                let n = random.u32(..4_000);
                let name = n.to_le_bytes();
                let key = database.key(&name);
                let mut guard = database.lock(key.hash, now);
                if let Some(before) = times.remove(&n) {
                    order.remove(&(before, n));
                }
                if random.u8(..3) == 0 {
                    guard.remove(key);
                    continue;
                }
                let away = [5, 50, 700, 9_000, 200_000, 5_000_000][random.usize(..6)];
                let at = now + random.i64(1..=away);
                match guard.find(key) {
                    Some(mut entry) if random.bool() => entry.set_expiry(Some(at)),
                    _ => guard.set(key, b"", Expiry::At(at)),
                }
                times.insert(n, at);
                order.insert((at, n));
            }
            let mut spare = 5;
            loop {
                let mut guard = database.lock_shard(ShardId(0), now);
                let (_, presses) = guard.expire_due(20, spare, &mut items);
                spare = 0;
                let under_way = guard.is_renewing();
                begun += usize::from(under_way && !was_under_way);
                was_under_way = under_way;
                if !presses {
                    break;
                }
            }
            while let Some(&(at, n)) = order.first()
                && at < now - LATE_MS
            {
                order.pop_first();
                times.remove(&n);
            }
            let sure = order.range((now, 0)..).count();
            assert!(
                (sure..=order.len()).contains(&database.len()),
                "{} keys at {now}, {sure} have time and {} may be there",
                database.len(),
                order.len()
            );
            database.lock_shard(ShardId(0), now).verify();
        }
        assert!(begun > 5, "made anew {begun} times");
    });
}

#[test]
fn memory_of_expired_keys_is_counted_out_again() {
    let keyspace = keyspace(1, 1);
    let mut turn = keyspace.turns().register();
    let mut after = Vec::new();
    for round in 0..5 {
        turn.enter();
        let (database, now) = (keyspace.database(&turn, 0), round * 100_000);
        for n in 0..20_000u32 {
            set(database, &n.to_le_bytes(), now, Expiry::At(now + 500));
        }
        for now in (now + 600..now + 800).step_by(10) {
            expire_all(database, now);
        }
        assert_eq!(database.len(), 0);
        // Replaced tables are kept until the turn is over.
        turn.leave();
        turn.enter();
        let database = keyspace.database(&turn, 0);
        turn_over(database);
        after.push(database.memory());
        turn.leave();
    }
    assert!(after.windows(2).all(|pair| pair[0] == pair[1]), "{after:?}");
}

#[test]
fn keys_whose_time_has_come_stay_while_they_are_to_be_kept() {
    let keyspace = keyspace(1, 1);
    let mut turn = keyspace.turns().register();
    turn.enter();
    let database = keyspace.database(&turn, 0);
    let is_there = || {
        let key = key(database, b"early");
        database.lock(key.hash, 1000).contains(key)
    };
    keyspace.set_keeps_expired(true);
    set(database, b"early", 0, Expiry::At(500));
    assert!(is_there() && is_there());
    keyspace.set_keeps_expired(false);
    assert!(!is_there());
    turn.leave();
}
