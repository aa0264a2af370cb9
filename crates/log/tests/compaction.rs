//! Compaction: space stays in proportion, and a replay at any moment gives what memory has.

use crate::support;

use ferrite_log::{DbId, Log, Options};
use support::simulator::Simulator;
use support::store::{Op, Store, load};
use support::{begin, open, options};

const DB: DbId = DbId(0);

fn key(number: u32) -> (DbId, Vec<u8>) {
    (DB, format!("key {number}").into_bytes())
}

/// Compacts until nothing is left to do.
fn compact(log: &Log, store: &Store) -> u32 {
    let mut compactor = log.compactor().expect("an appender is left");
    log.turn();
    log.keep();
    let mut steps = 0;
    while compactor.step(store).expect("all is well") {
        log.turn();
        log.keep();
        steps += 1;
        assert!(steps < 10_000, "it comes to an end");
    }
    steps
}

/// What another start would find now.
fn found(disk: &Simulator) -> Store {
    let mut recovery = open(&disk.after_kill(), options()).expect("it is whole");
    assert_eq!(recovery.cut(), None);
    load(&mut recovery, 2).expect("it is whole")
}

#[test]
fn overwrites_leave_no_more_than_the_tolerated_garbage() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..20 {
        for _ in 0..400 {
            let op = Op::Set(key(random.u32(..500)), vec![round; 300], None);
            appender.ensure(1000).expect("all is well");
            store.run(&log, &mut appender, &op);
        }
        compact(&log, &store);
        let status = log.status();
        let live = store.snapshot().entries.len() as u64 * 328;
        // 20 % is tolerated, half a segment, and the one being written.
        assert!(
            status.disk_bytes < live * 12 / 10 + 3 * (64 << 10),
            "{status:?}"
        );
        assert!(
            status.live_bytes.abs_diff(live) < 64 << 10,
            "{live} {status:?}"
        );
        assert_eq!(found(&disk).snapshot(), store.snapshot());
    }
    assert!(log.status().compacted_segments > 20);
}

#[test]
fn tombstones_go_when_nothing_is_left_that_they_hide() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    let mut run = |op: Op| {
        appender.ensure(1000).expect("all is well");
        store.run(&log, &mut appender, &op);
        log.turn();
    };
    // Cold keys in the oldest segment keep it from being dropped for free.
    (0..100).for_each(|number| run(Op::Set(key(number), vec![1; 500], None)));
    for round in 0..30 {
        (1000..1300)
            .for_each(|number| run(Op::Set(key(number + round * 1000), vec![2; 100], None)));
        (1000..1300).for_each(|number| run(Op::Delete(key(number + round * 1000))));
        compact(&log, &store);
        assert_eq!(found(&disk).snapshot(), store.snapshot());
    }
    let status = log.status();
    assert!(status.disk_bytes < 5 * (64 << 10), "{status:?}");
    assert_eq!(store.snapshot().entries.len(), 100);
}

#[test]
fn what_expired_does_not_come_back() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    let mut random = fastrand::Rng::with_seed(3);
    for now in 1..60_i64 {
        for _ in 0..100 {
            let key = key(random.u32(..150));
            let expiry = (random.u8(..3) > 0).then(|| now + random.i64(1..10));
            let op = match random.u8(..10) {
                0..6 => Op::Set(key, vec![now as u8; 200], expiry),
                6 | 7 => Op::Expire(key, expiry),
                8 => Op::Patch(key, 190, vec![0xff; 30]),
                _ => Op::Delete(key),
            };
            appender.ensure(1000).expect("all is well");
            store.run(&log, &mut appender, &op);
        }
        store.expire(now, &mut appender);
        compact(&log, &store);
        let found = found(&disk).snapshot().living(now);
        for (key, entry) in &found.entries {
            let memory = store.snapshot();
            assert_eq!(memory.entries.get(key), Some(entry), "time {now}");
        }
        assert_eq!(found.entries.len(), store.snapshot().entries.len());
    }
    assert!(log.status().compacted_segments > 5);
}

#[test]
fn emptied_databases_cost_nothing_to_compact() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    for number in 0..2000 {
        appender.ensure(1000).expect("all is well");
        store.run(
            &log,
            &mut appender,
            &Op::Set(key(number), vec![1; 200], None),
        );
    }
    store.run(&log, &mut appender, &Op::ClearAll);
    compact(&log, &store);
    let status = log.status();
    assert_eq!(status.moved_bytes, 0);
    assert!(status.segments <= 2, "{status:?}");
}

#[test]
fn short_segments_are_put_together() {
    let disk = Simulator::new();
    let mut most = 0;
    for round in 0..40 {
        let mut recovery = open(&disk, options()).expect("it is whole");
        let store = load(&mut recovery, 1).expect("it is whole");
        let log = recovery.start().expect("it takes writes");
        let mut appender = log.appender(None).expect("the first");
        store.run(
            &log,
            &mut appender,
            &Op::Set(key(round), vec![1; 100], None),
        );
        compact(&log, &store);
        most = most.max(log.status().segments);
        assert_eq!(store.snapshot().entries.len(), round as usize + 1);
        drop(appender);
        log.close().expect("all is written");
    }
    assert!(most <= 10, "{most}");
}

#[test]
fn a_damaged_segment_is_left_alone() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    for number in 0..1500 {
        appender.ensure(1000).expect("all is well");
        store.run(
            &log,
            &mut appender,
            &Op::Set(key(number % 300), vec![1; 200], None),
        );
        log.turn();
    }
    log.keep();
    let oldest = disk
        .names()
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "log"))
        .expect("one");
    disk.damage(&oldest, |bytes| bytes[20_000] ^= 1);
    // All of it is dead: with its hints nobody would read it.
    disk.damage(&oldest.with_extension("hint"), |bytes| bytes[100] ^= 1);
    compact(&log, &store);
    assert!(disk.names().contains(&oldest));
    assert!(log.status().compacted_segments > 0);
}

#[test]
fn a_thread_does_it_by_itself() {
    let disk = Simulator::new();
    let options = Options {
        background: true,
        ..options()
    };
    let mut log = begin(&disk, options.clone());
    let store = std::sync::Arc::new(Store::default());
    log.start_compaction(store.clone());
    let mut appender = log.appender(None).expect("the second");
    let mut number = 0;
    let start = std::time::Instant::now();
    while log.status().compacted_segments < 10 {
        number += 1;
        appender.ensure(1000).expect("all is well");
        store.run(
            &log,
            &mut appender,
            &Op::Set(key(number % 200), number.to_le_bytes().repeat(50), None),
        );
        assert!(start.elapsed().as_secs() < 120, "{:?}", log.status());
    }
    drop(appender);
    log.close().expect("all is written");
    let mut recovery = open(&disk, options).expect("it is whole");
    assert_eq!(
        load(&mut recovery, 2).expect("it is whole").snapshot(),
        store.snapshot()
    );
}
