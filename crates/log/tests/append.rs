//! Appending and opening again: what was appended is there, in its order, whatever it is.

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ferrite_log::{DbId, Error, Log, Lsn, Options, Rebind, SyncPolicy};
use support::simulator::Simulator;
use support::store::{Op, Store, TAG, load};
use support::{begin, directory, open, options};

const DB: DbId = DbId(0);

fn key(name: &str) -> (DbId, Vec<u8>) {
    (DB, name.as_bytes().to_vec())
}

fn set(name: &str, value: &[u8]) -> Op {
    Op::Set(key(name), value.to_vec(), None)
}

/// Runs `ops` on a fresh log, closes it, and opens it again.
fn round_trip(ops: &[Op]) -> (Store, Store, Simulator) {
    let disk = Simulator::new();
    let store = Store::default();
    let log = begin(&disk, options());
    let mut appender = log.appender(None).expect("the first");
    for op in ops {
        appender.ensure(1000).expect("all is well");
        store.run(&log, &mut appender, op);
    }
    drop(appender);
    log.close().expect("all is written");
    let mut recovery = open(&disk, options()).expect("it is whole");
    assert_eq!(recovery.cut(), None);
    let loaded = load(&mut recovery, 2).expect("it is whole");
    (store, loaded, disk)
}

#[test]
fn every_kind_of_change_is_there_again() {
    let ops = [
        set("a", b"1"),
        set("b", &[7; 3000]),
        Op::Set(key("c"), b"2".to_vec(), Some(-1)),
        Op::Set(key("d"), b"3".to_vec(), Some(1 << 45)),
        Op::Expire(key("d"), None),
        Op::Expire(key("a"), Some(5)),
        set("", b""),
        Op::Delete(key("b")),
        Op::Patch(key("a"), 3, b"xyz".to_vec()),
        Op::Patch(key("a"), 0, b"!".to_vec()),
        set("gone", b"1"),
        Op::Clear(DbId(7)),
        Op::Set((DbId(7), b"k".to_vec()), b"v".to_vec(), None),
        Op::Batch(vec![
            set("x", b"1"),
            Op::Delete(key("gone")),
            set("y", b"2"),
            Op::Patch(key("y"), 1, b"3".to_vec()),
        ]),
        Op::Swap(0, 7),
    ];
    let (store, loaded, disk) = round_trip(&ops);
    assert_eq!(store.snapshot(), loaded.snapshot());
    let state = loaded.snapshot();
    assert_eq!(state.entries[&key("a")].value, b"!\0\0xyz");
    assert!(
        state.entries[&key("a")]
            .address
            .expect("it is in the log")
            .is_patched()
    );
    assert_eq!(state.entries[&key("y")].value, b"23");
    let recovery = open(&disk, options()).expect("it is whole");
    assert_eq!(
        (recovery.bindings().id_of(0), recovery.bindings().id_of(7)),
        (DbId(7), DbId(0))
    );
}

#[test]
fn addresses_after_a_replay_are_those_of_before() {
    let (store, loaded, _) = round_trip(&[
        set("a", b"1"),
        set("b", b"1"),
        Op::Batch(vec![set("a", b"2"), set("c", b"3"), set("a", b"4")]),
        Op::Expire(key("b"), Some(9)),
        Op::Set(key("d"), b"5".to_vec(), Some(9)),
    ]);
    for (key, entry) in &store.snapshot().entries {
        assert_eq!(
            loaded.snapshot().entries[key].address,
            entry.address,
            "{key:?}"
        );
    }
}

#[test]
fn emptied_databases_stay_empty() {
    let in_db = |db, name: &str| Op::Set((DbId(db), name.as_bytes().to_vec()), b"v".to_vec(), None);
    let (store, loaded, _) = round_trip(&[
        in_db(0, "a"),
        in_db(1, "a"),
        in_db(2, "a"),
        Op::Clear(DbId(1)),
        in_db(1, "b"),
        Op::Batch(vec![in_db(2, "b"), Op::Clear(DbId(2)), in_db(2, "c")]),
    ]);
    assert_eq!(store.snapshot(), loaded.snapshot());
    assert_eq!(store.snapshot().entries.len(), 3);
    let (store, loaded, _) =
        round_trip(&[in_db(0, "a"), in_db(1, "a"), Op::ClearAll, in_db(1, "b")]);
    assert_eq!(store.snapshot(), loaded.snapshot());
    assert_eq!(store.snapshot().entries.len(), 1);
}

#[test]
fn many_segments_and_restarts() {
    let disk = Simulator::new();
    let mut random = fastrand::Rng::with_seed(7);
    let mut expected = Store::default().snapshot();
    for round in 0..6 {
        let mut recovery = open(&disk, options()).expect("it is whole");
        let store = load(&mut recovery, 3).expect("it is whole");
        assert_eq!(store.snapshot(), expected, "round {round}");
        let log = recovery.start().expect("it takes writes");
        let mut appender = log.appender(None).expect("the first");
        for _ in 0..400 {
            let name = format!("key {}", random.u32(..100));
            let value = vec![random.u8(..); random.usize(..2000)];
            appender.ensure(4000).expect("all is well");
            store.run(&log, &mut appender, &set(&name, &value));
            if random.u8(..10) == 0 {
                log.turn();
                log.keep();
            }
        }
        drop(appender);
        assert!(log.status().segments > 5);
        expected = store.snapshot();
        log.close().expect("all is written");
    }
}

#[test]
fn records_larger_than_the_ring_pass_it() {
    let big = vec![3; 300 << 10];
    let many: Vec<Op> = (0..500)
        .map(|number| set(&format!("k{number}"), &[number as u8; 777]))
        .collect();
    let long_key = Op::Set((DB, vec![9; 200 << 10]), b"v".to_vec(), None);
    let (store, loaded, _) = round_trip(&[
        set("before", b"1"),
        set("big", &big),
        Op::Batch(many.clone()),
        long_key.clone(),
        Op::Batch(vec![set("in a batch", &big), long_key]),
        Op::Delete((DB, vec![9; 200 << 10])),
        set("after", b"1"),
    ]);
    assert_eq!(store.snapshot(), loaded.snapshot());
}

#[test]
fn a_series_is_a_batch_however_large_it_is() {
    let sets = |count: u32, value: usize| {
        let sets = (0..count).map(|number| {
            let name = format!("key {}", number % 40);
            (key(&name), vec![number as u8; value])
        });
        Op::Series(sets.collect())
    };
    // Two, a few with one key twice, more than a segment, and more than the ring.
    let ops = [
        sets(2, 1),
        sets(60, 13),
        set("between", b"1"),
        sets(50, 3000),
        sets(3000, 200),
        set("behind", b"2"),
    ];
    let (store, loaded, _) = round_trip(&ops);
    assert_eq!(store.snapshot(), loaded.snapshot());
    for (key, entry) in &store.snapshot().entries {
        assert_eq!(
            loaded.snapshot().entries[key].address,
            entry.address,
            "{key:?}"
        );
    }
}

#[test]
fn large_records_of_many_threads_pass_the_ring_together() {
    let disk = Simulator::new();
    let options = Options {
        background: true,
        ..options()
    };
    let log = begin(&disk, options.clone());
    std::thread::scope(|scope| {
        for thread in 0..3_u8 {
            let mut appender = log.appender(None).expect("one for each");
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(u64::from(thread));
                for round in 0..60_u32 {
                    appender.ensure(500).expect("all is well");
                    let key = [thread, (round % 7) as u8];
                    if random.u8(..4) == 0 {
                        let value = vec![thread; 100_000 + random.usize(..50_000)];
                        let mut batch = appender.batch();
                        batch.set(DB, &key, TAG, None, &round.to_le_bytes());
                        batch.set(DB, &[thread, 100], TAG, None, &value);
                        batch.finish(|_, _, address| assert!(address.is_some()));
                    } else {
                        appender.set(DB, &key, TAG, None, &round.to_le_bytes());
                    }
                    if random.bool() {
                        appender.commit();
                    }
                }
            });
        }
    });
    log.close().expect("all is written");
    let mut recovery = open(&disk, options).expect("it is whole");
    let state = load(&mut recovery, 2).expect("it is whole").snapshot();
    for thread in 0..3_u8 {
        for slot in 0..7_u32 {
            let last = (0..60_u32)
                .rfind(|round| round % 7 == slot)
                .expect("one at least");
            let entry = &state.entries[&(DB, vec![thread, slot as u8])];
            assert_eq!(entry.value, last.to_le_bytes(), "{thread} {slot}");
        }
    }
}

#[test]
fn an_empty_batch_and_one_that_is_dropped_leave_nothing() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let mut appender = log.appender(None).expect("the first");
    let tail = log.tail();
    appender
        .batch()
        .finish(|_, _, _| unreachable!("it is empty"));
    let mut batch = appender.batch();
    batch.set(DB, b"k", TAG, None, b"v");
    assert_eq!((batch.len(), batch.is_empty()), (1, false));
    drop(batch);
    assert_eq!(log.tail(), tail);
    // A single record needs no container.
    let mut batch = appender.batch();
    batch.set(DB, b"k", TAG, None, b"v");
    batch.finish(|_, record, address| {
        assert_eq!(
            (record.key, address.expect("it is a set").lsn()),
            (&b"k"[..], tail)
        );
    });
    assert_eq!(log.tail(), Lsn::new(tail.get() + 24));
}

#[test]
fn one_process_has_it() {
    let disk = Simulator::new();
    let held = open(&disk, options()).expect("it is new");
    match open(&disk, options()) {
        Err(Error::Locked {
            directory: which, ..
        }) => assert_eq!(which, directory()),
        other => panic!("{other:?}"),
    }
    drop(held);
    drop(open(&disk, options()).expect("it is free again"));
}

#[test]
fn a_later_epoch_is_not_overwritten_by_an_earlier_one() {
    let disk = Simulator::new();
    let later = Options {
        epoch: 5,
        ..options()
    };
    let log = begin(&disk, later.clone());
    log.close().expect("all is well");
    assert!(matches!(open(&disk, options()), Err(Error::Options(_))));
    drop(open(&disk, later).expect("the same epoch may"));
}

#[test]
fn appenders_are_as_many_as_the_options_say() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let three: Vec<_> = (0..3)
        .map(|_| log.appender(None).expect("there are three"))
        .collect();
    assert!(log.appender(None).is_none());
    drop(three);
    assert!(log.appender(None).is_some());
}

#[test]
fn what_is_synchronous_is_durable_when_the_waker_is_called() {
    let disk = Simulator::new();
    let options = Options {
        background: true,
        sync: SyncPolicy::Always,
        ..options()
    };
    let log = begin(&disk, options);
    std::thread::scope(|scope| {
        for thread in 0..3_u8 {
            let bell = Arc::new((AtomicBool::new(false), std::thread::current()));
            let log = &log;
            scope.spawn(move || {
                let me = Arc::new((AtomicBool::new(false), std::thread::current()));
                let ring = me.clone();
                let wake = move || {
                    ring.0.store(true, Ordering::SeqCst);
                    ring.1.unpark();
                };
                let mut appender = log.appender(Some(Arc::new(wake))).expect("one for each");
                assert!(appender.is_synchronous());
                for round in 0..100_u32 {
                    appender.ensure(100).expect("all is well");
                    appender.set(DB, &[thread], TAG, None, &round.to_le_bytes());
                    // Some leave it to the log thread, others may do its work.
                    let end = match round % 2 {
                        0 => appender.commit(),
                        _ => appender.commit_and_wait(),
                    };
                    if round % 4 == 1 {
                        appender.sync_here();
                    }
                    me.0.store(false, Ordering::SeqCst);
                    if !appender.wake_when_durable(end).expect("all is well") {
                        while !me.0.load(Ordering::SeqCst) {
                            std::thread::park();
                        }
                    }
                    assert!(appender.durable() >= end);
                }
                drop(bell);
            });
        }
    });
    // Nobody waits for the last one.
    let mut appender = log.appender(None).expect("one is left");
    appender.ensure(100).expect("all is well");
    appender.set(DB, b"key", TAG, None, b"value");
    let end = appender.commit_and_wait();
    appender.nudge();
    while appender.durable() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    let status = log.status();
    assert_eq!(status.durable, status.written);
    assert!(status.syncs > 0 && status.refusal.is_none());
}

#[test]
fn every_second_syncs_without_being_asked() {
    let disk = Simulator::new();
    let options = Options {
        background: true,
        sync: SyncPolicy::EverySecond,
        ..options()
    };
    let log = begin(&disk, options);
    let mut appender = log.appender(None).expect("the first");
    appender.ensure(100).expect("all is well");
    appender.set(DB, b"k", TAG, None, b"v");
    let end = appender.commit();
    assert!(!appender.is_synchronous());
    let start = std::time::Instant::now();
    while log.durable() < end {
        assert!(start.elapsed().as_secs() < 60, "nobody syncs");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    log.set_sync_policy(SyncPolicy::Never);
    appender.set(DB, b"k", TAG, None, b"w");
    let end = appender.commit();
    log.sync(end).expect("it is asked for");
    assert!(log.durable() >= end);
}

#[test]
fn bindings_are_those_of_where_a_segment_begins() {
    // A flush that is behind the beginning of the last segment must not count if it was lost.
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let mut appender = log.appender(None).expect("the first");
    for number in 0..60_u8 {
        appender.ensure(4000).expect("all is well");
        appender.set(DB, &[number], TAG, None, &[0; 2000]);
        appender.commit();
    }
    appender.bind(&[Rebind::Clear(DB)]);
    appender.commit();
    log.turn();
    log.sync(log.tail()).expect("all is well");
    drop(appender);
    log.close().expect("all is well");
    let mut recovery = open(&disk, options()).expect("it is whole");
    assert!(
        load(&mut recovery, 1)
            .expect("it is whole")
            .snapshot()
            .entries
            .is_empty()
    );
    drop(recovery);
    // The same without the end of the last segment, in which the flush is.
    let last = disk
        .names()
        .into_iter()
        .rev()
        .find(|path| path.extension().is_some_and(|e| e == "log"))
        .expect("one");
    disk.damage(&last, |bytes| bytes.truncate(bytes.len() - 64));
    // As a crash leaves it, and not a clean stop.
    disk.remove(&directory().join("CLOSED"));
    let mut recovery = open(&disk, options()).expect("a tail may be torn");
    assert!(
        !load(&mut recovery, 1)
            .expect("it is whole")
            .snapshot()
            .entries
            .is_empty()
    );
}

#[test]
fn a_real_disk_does_the_same() {
    let path = std::env::temp_dir().join(format!("ferrite-log-{}", std::process::id()));
    let options = Options {
        background: true,
        ..options()
    };
    let files = Arc::new(sys::file::Disk);
    let store = Store::default();
    let log = Log::open(files.clone(), &path, options.clone())
        .expect("it is new")
        .start()
        .expect("it is empty");
    let mut appender = log.appender(None).expect("the first");
    for number in 0..2000_u32 {
        appender.ensure(1000).expect("all is well");
        store.run(
            &log,
            &mut appender,
            &set(&format!("{}", number % 300), &[number as u8; 300]),
        );
    }
    drop(appender);
    log.close().expect("all is written");
    let mut recovery = Log::open(files, &path, options).expect("it is whole");
    assert_eq!(
        load(&mut recovery, 2).expect("it is whole").snapshot(),
        store.snapshot()
    );
    drop(recovery);
    std::fs::remove_dir_all(&path).expect("it is there");
}

/// A batch that the ring has no room for waits inside of locks for room. Somebody who has appended, has not
/// committed yet, and wants one of these locks does not keep it waiting.
#[test]
fn who_waits_for_a_lock_keeps_nobody_waiting_for_room() {
    let disk = Simulator::new();
    let mut options = options();
    options.ring_bytes = 64 << 10;
    options.background = true;
    let log = begin(&disk, options);
    let log = Arc::new(log);
    let shard = Arc::new(std::sync::Mutex::new(()));
    for round in 0..10 {
        let (locked, is_locked) = std::sync::mpsc::channel();
        let (appended, has_appended) = std::sync::mpsc::channel();
        let other = std::thread::spawn({
            let (log, shard) = (Arc::clone(&log), Arc::clone(&shard));
            move || {
                let mut appender = log.appender(None).expect("there may be two");
                is_locked.recv().expect("the other one goes on");
                appender.ensure(1000).expect("all is well");
                appender.set(DB, b"small", TAG, None, b"1");
                appended.send(()).expect("the other one goes on");
                drop(shard.lock().expect("nobody panics"));
                appender.set(DB, b"behind", TAG, None, b"2");
                appender.commit();
            }
        });
        let mut appender = log.appender(None).expect("there may be two");
        let held = shard.lock().expect("nobody panics");
        locked.send(()).expect("the other one goes on");
        has_appended.recv().expect("the other one goes on");
        let value = vec![round; 100_000];
        if round % 2 == 0 {
            let mut batch = appender.batch();
            batch.set(DB, b"a", TAG, None, &value);
            batch.set(DB, b"b", TAG, None, &value);
            batch.finish(|_, _, _| {});
        } else {
            appender.set(DB, b"a", TAG, None, &value);
        }
        drop(held);
        appender.commit();
        other.join().expect("it ends");
    }
    let log = Arc::into_inner(log).expect("nobody else has it");
    log.close().expect("all is written");
    let mut recovery = open(&disk, support::options()).expect("it is whole");
    let loaded = load(&mut recovery, 2).expect("it is whole");
    assert_eq!(recovery.cut(), None);
    drop(loaded);
}

/// Appenders that have asked for room and appended nothing do not keep what another waits for.
#[test]
fn room_that_was_not_used_is_given_back() {
    let options = Options {
        background: true,
        appenders: 4,
        ring_bytes: 256 << 10,
        segment_bytes: 1 << 20,
        ..options()
    };
    let log = begin(&Simulator::new(), options);
    let mut appenders: Vec<_> = (0..3)
        .map(|_| log.appender(None).expect("one of four"))
        .collect();
    let mut asked = log.appender(None).expect("the last");
    // Together they have nearly the whole ring.
    for appender in &mut appenders {
        appender.ensure(appender.window()).expect("all is well");
        appender.commit();
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    // It would wait for ever, and so would whoever joins it.
    std::thread::spawn(move || {
        let ensured = asked.ensure(asked.window()).is_ok();
        let _ = sender.send(ensured);
    });
    let given = receiver.recv_timeout(std::time::Duration::from_secs(60));
    assert_eq!(given, Ok(true), "nobody gives room back");
    drop(appenders);
    log.close().expect("all is well");
}
