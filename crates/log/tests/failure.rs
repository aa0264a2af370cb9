//! Disks that fail and disks that are full, with all threads running.

use crate::support;

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use ferrite_log::{Address, Appender, DbId, Log, Options, Refusal, SyncPolicy};
use support::simulator::Simulator;
use support::store::{Op, Store, TAG, load};
use support::{begin, open, options};

const DB: DbId = DbId(0);

fn background() -> Options {
    Options {
        background: true,
        ..options()
    }
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{what} does not happen"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Appends until it is refused.
fn append_until_refused(appender: &mut Appender) -> Refusal {
    loop {
        if let Err(refusal) = appender.ensure(2000) {
            return refusal;
        }
        appender.set(DB, b"key", TAG, None, &[1; 1000]);
        appender.commit();
    }
}

fn running(disk: &Simulator, options: Options) -> (Log, Appender) {
    let log = begin(disk, options);
    let mut appender = log.appender(None).expect("the first");
    appender.ensure(100).expect("all is well");
    appender.set(DB, b"first", TAG, None, b"value");
    let end = appender.commit();
    log.sync(end).expect("all is well");
    (log, appender)
}

#[test]
fn a_write_that_fails_ends_all_writing() {
    let disk = Simulator::new();
    let (log, mut appender) = running(&disk, background());
    let durable = log.durable();
    // The next write is soon: nothing else happens but what this test does.
    disk.fail_next("write", ErrorKind::Other);
    let refusal = append_until_refused(&mut appender);
    let Refusal::Failed(reason) = &refusal else {
        panic!("{refusal:?}")
    };
    assert!(reason.contains("cannot write to /data/log/"), "{reason}");
    assert_eq!(log.refusal(), Some(refusal.clone()));
    assert_eq!(appender.ensure(1), Err(refusal.clone()));
    assert_eq!(log.sync(log.tail()), Err(refusal.clone()));
    // Whoever appends without asking does no harm and does not hang.
    for _ in 0..200 {
        appender.set(DB, b"key", TAG, None, &[1; 1000]);
    }
    let end = appender.commit();
    assert_eq!(appender.wake_when_durable(end), Err(refusal));
    assert_eq!(log.durable(), durable);
    drop(appender);
    assert!(log.close().is_err());
    let mut recovery = open(&disk.after_power_loss(3), options()).expect("it is whole");
    let state = load(&mut recovery, 1).expect("it is whole").snapshot();
    assert_eq!(state.entries[&(DB, b"first".to_vec())].value, b"value");
}

#[test]
fn a_sync_that_fails_ends_all_writing() {
    for policy in [SyncPolicy::Always, SyncPolicy::EverySecond] {
        let disk = Simulator::new();
        let (log, mut appender) = running(
            &disk,
            Options {
                sync: policy,
                ..background()
            },
        );
        let durable = log.durable();
        disk.fail_next("sync", ErrorKind::Other);
        appender.ensure(100).expect("all is well");
        appender.set(DB, b"key", TAG, None, b"1");
        let end = appender.commit();
        wait_until("the failure", || log.refusal().is_some());
        assert!(
            matches!(log.refusal(), Some(Refusal::Failed(reason)) if reason.contains("cannot sync"))
        );
        // A second sync would succeed, and mean nothing.
        assert!(log.sync(end).is_err());
        assert_eq!(log.durable(), durable);
        drop(appender);
        assert!(log.close().is_err());
    }
}

#[test]
fn who_waits_for_durability_learns_of_the_failure() {
    let disk = Simulator::new();
    let options = Options {
        sync: SyncPolicy::Always,
        ..background()
    };
    let log = begin(&disk, options);
    let (sender, receiver) = std::sync::mpsc::channel();
    let wake = move || {
        let _ = sender.send(());
    };
    let mut appender = log
        .appender(Some(std::sync::Arc::new(wake)))
        .expect("the first");
    disk.fail_next("sync", ErrorKind::Other);
    appender.ensure(100).expect("all is well");
    appender.set(DB, b"key", TAG, None, b"1");
    let end = appender.commit();
    if appender.wake_when_durable(end) == Ok(false) {
        receiver
            .recv_timeout(Duration::from_secs(60))
            .expect("somebody calls");
    }
    assert!(matches!(
        appender.wake_when_durable(end),
        Err(Refusal::Failed(_))
    ));
}

#[test]
fn a_full_disk_is_refused_before_it_is_hit_and_heals() {
    let disk = Simulator::new();
    disk.set_capacity(1 << 20);
    let options = Options {
        reserve_bytes: 128 << 10,
        ..background()
    };
    let (log, mut appender) = running(&disk, options);
    loop {
        let refusal = append_until_refused(&mut appender);
        let Refusal::Full(reason) = &refusal else {
            panic!("{refusal:?}")
        };
        assert!(!reason.is_empty());
        // Everything that was accepted is written.
        let end = appender.commit();
        log.sync(end).expect("there was room for it");
        assert!(log.durable() >= end);
        // Full segments give back what they did not use, and the log goes on for a while.
        if matches!(appender.ensure(1), Err(Refusal::Full(_))) {
            break;
        }
    }
    disk.set_capacity(4 << 20);
    wait_until("healing", || log.refusal().is_none());
    for _ in 0..500 {
        appender.ensure(2000).expect("there is space");
        appender.set(DB, b"key", TAG, None, &[2; 1000]);
        appender.commit();
    }
    drop(appender);
    log.close().expect("all is written");
}

#[test]
fn a_disk_that_is_nearly_full_is_noticed_where_a_segment_begins() {
    let disk = Simulator::new();
    disk.set_capacity(1 << 20);
    let options = Options {
        reserve_bytes: 128 << 10,
        ..options()
    };
    // Nobody looks at free space but the writer.
    let (log, mut appender) = running(&disk, options);
    let mut accepted = 0;
    while appender.ensure(2000).is_ok() {
        appender.set(DB, b"key", TAG, None, &[1; 1000]);
        appender.commit();
        log.turn();
        accepted += 1;
        assert!(accepted < 1024, "the disk has no room for it");
    }
    let end = appender.commit();
    log.sync(end).expect("there was room for it");
    assert!(log.durable() >= end);
}

#[test]
fn keys_can_be_removed_from_a_full_disk_until_the_reserve_is_used_up() {
    let disk = Simulator::new();
    disk.set_capacity(4 << 20);
    let options = Options {
        reserve_bytes: 1 << 20,
        ..background()
    };
    let mut log = begin(&disk, options);
    let store = std::sync::Arc::new(Store::default());
    let mut appender = log.appender(None).expect("the first");
    let mut keys = 0;
    let key = |number: usize| (DB, format!("key:{number}").into_bytes());
    while appender.ensure(2000).is_ok() {
        let set = Op::Set(key(keys), vec![1; 1000], None);
        store.run(&log, &mut appender, &set);
        keys += 1;
    }
    let mut removed = 0;
    // Without compaction nothing comes back: removals end before all of the disk is used.
    while appender.ensure_for_removal(2000).is_ok() {
        let record = Op::Set(key(keys), vec![1; 1000], None);
        store.run(&log, &mut appender, &record);
        keys += 1;
        removed += 1;
        if removed % 64 == 0 {
            log.sync(log.tail())
                .expect("there is room for what was accepted");
        }
        assert!(removed < 4000, "the reserve has an end");
    }
    assert!(
        removed > 400,
        "most of the reserve can be used: {removed} kilobytes"
    );
    let end = appender.commit();
    log.sync(end).expect("there was room for what was accepted");
    // Compaction has its part of the reserve: where all is garbage there is space again.
    store.run(&log, &mut appender, &Op::ClearAll);
    appender.commit();
    log.start_compaction(store.clone());
    wait_until("giving space back", || log.refusal().is_none());
    appender.ensure(2000).expect("there is space");
    drop(appender);
    log.close().expect("all is written");
}

/// Another program has filled the disk while no process had the log.
#[test]
fn a_log_starts_on_a_full_disk_and_keys_can_be_removed() {
    let options = Options {
        segment_bytes: 1 << 20,
        reserve_bytes: 1 << 20,
        ..background()
    };
    for (is_closed, free) in [
        (true, 0),
        (true, 9000),
        (true, 300 << 10),
        (false, 0),
        (false, 9000),
    ] {
        let mut disk = Simulator::new();
        let mut log = begin(&disk, options.clone());
        let mut keys = 0;
        for round in 0..4 {
            let what = format!("round {round}, closed {is_closed}, {free} bytes free");
            let store = Store::default();
            let mut appender = log.appender(None).expect("the first");
            for _ in 0..20 {
                appender.ensure(2000).expect("there is space");
                let key = (DB, format!("key:{keys}").into_bytes());
                store.run(&log, &mut appender, &Op::Set(key, vec![1; 1000], None));
                keys += 1;
            }
            log.sync(log.tail()).expect("there is space");
            drop(appender);
            match is_closed {
                true => log.close().expect("all is written"),
                false => {
                    std::mem::forget(log);
                    disk = disk.after_kill();
                }
            }
            disk.set_capacity(disk.used() + free);
            let mut recovery = open(&disk, options.clone()).expect("it is whole");
            let store = load(&mut recovery, 1).expect("it is whole");
            assert_eq!(store.snapshot().entries.len(), keys, "{what}");
            log = recovery
                .start()
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            let refusal = log.refusal().expect("the disk is full");
            assert!(
                refusal.to_string().contains("are kept in reserve"),
                "{what}: {refusal}"
            );
            let mut appender = log.appender(None).expect("the first");
            assert!(appender.ensure(2000).is_err(), "{what}");
            if is_closed {
                for number in 0..keys {
                    appender
                        .ensure_for_removal(2000)
                        .unwrap_or_else(|why| panic!("{what}: {why}"));
                    let key = (DB, format!("key:{number}").into_bytes());
                    store.run(&log, &mut appender, &Op::Delete(key));
                }
                keys = 0;
                log.sync(log.tail()).expect("there is space");
            }
            disk.set_capacity(1 << 30);
            wait_until("healing", || log.refusal().is_none());
            drop(appender);
        }
        log.close().expect("all is written");
    }
}

/// Another program has filled the disk, and there is no space that an earlier run has left.
#[test]
fn a_log_starts_without_any_space_and_takes_records_when_there_is_some() {
    let options = Options {
        segment_bytes: 1 << 20,
        reserve_bytes: 1 << 20,
        ..background()
    };
    for (is_closed, has_tail, free) in [
        (true, false, 0),
        (true, false, 4000),
        (false, false, 0),
        (true, true, 0),
        (false, true, 100),
    ] {
        let what = format!("closed {is_closed}, tail {has_tail}, {free} bytes free");
        let mut disk = Simulator::new();
        let log = begin(&disk, options.clone());
        let store = Store::default();
        let mut appender = log.appender(None).expect("the first");
        for number in 0..20 {
            appender.ensure(2000).expect("there is space");
            let key = (DB, format!("key:{number}").into_bytes());
            store.run(&log, &mut appender, &Op::Set(key, vec![1; 1000], None));
        }
        drop(appender);
        log.close().expect("all is written");
        let names = disk.names();
        let last = |end: &str| {
            names
                .iter()
                .rfind(|path| path.to_string_lossy().ends_with(end))
        };
        disk.remove(last("next.tmp").expect("it was left"));
        if has_tail {
            disk.remove(last("CLOSED").expect("the log was closed"));
            disk.damage(last(".log").expect("there is a segment"), |bytes| {
                bytes.extend([9; 50]);
            });
        }
        let mut end = None;
        for round in 0..3 {
            disk.set_capacity(disk.used() + free);
            let mut recovery = open(&disk, options.clone()).expect("it is whole");
            assert_eq!(*end.get_or_insert(recovery.end()), recovery.end(), "{what}");
            let store = load(&mut recovery, 1).expect("it is whole");
            assert_eq!(store.snapshot().entries.len(), 20, "{what}, round {round}");
            let log = recovery
                .start()
                .unwrap_or_else(|error| panic!("{what}, round {round}: {error}"));
            let refusal = log.refusal().expect("the disk is full").to_string();
            assert!(refusal.contains("cannot "), "{what}: {refusal}");
            let mut appender = log.appender(None).expect("the first");
            assert!(appender.ensure(2000).is_err(), "{what}");
            assert!(appender.ensure_for_removal(2000).is_err(), "{what}");
            if round < 2 {
                drop(appender);
                match is_closed {
                    true => log.close().expect("nothing was to be written"),
                    false => {
                        std::mem::forget(log);
                        disk = disk.after_kill();
                    }
                }
                continue;
            }
            disk.set_capacity(1 << 30);
            wait_until("healing", || log.refusal().is_none());
            appender.ensure(2000).expect("there is space");
            let key = (DB, b"another".to_vec());
            store.run(&log, &mut appender, &Op::Set(key, vec![1; 1000], None));
            drop(appender);
            log.close().expect("all is written");
        }
        let mut recovery = open(&disk, options.clone()).expect("it is whole");
        let store = load(&mut recovery, 1).expect("it is whole");
        assert_eq!(store.snapshot().entries.len(), 21, "{what}");
        let is_aside = |path: &std::path::PathBuf| path.to_string_lossy().ends_with(".tail");
        assert_eq!(disk.names().iter().any(is_aside), has_tail, "{what}");
    }
}

/// A disk that has no space for a whole segment, at the start and later.
#[test]
fn segments_are_short_where_space_is() {
    let disk = Simulator::new();
    let whole = Options {
        segment_bytes: 1 << 20,
        reserve_bytes: 64 << 10,
        ..background()
    };
    disk.set_capacity(1 << 20);
    let (log, mut appender) = running(&disk, whole.clone());
    let refusal = append_until_refused(&mut appender);
    assert!(matches!(refusal, Refusal::Full(_)), "{refusal:?}");
    let used = disk.used();
    assert!(used > 800 << 10, "most of the disk is used: {used} bytes");
    assert!(log.status().segments > 2);
    disk.set_capacity(16 << 20);
    wait_until("healing", || log.refusal().is_none());
    for _ in 0..3000 {
        appender.ensure(2000).expect("there is space");
        appender.set(DB, b"key", TAG, None, &[2; 1000]);
        appender.commit();
    }
    log.sync(appender.commit()).expect("there is space");
    drop(appender);
    log.close().expect("all is written");
    let mut recovery = open(&disk, options()).expect("it is whole");
    load(&mut recovery, 1).expect("it is whole");
}

#[test]
fn a_disk_that_is_full_all_the_same_is_tried_again() {
    let disk = Simulator::new();
    let (log, mut appender) = running(&disk, background());
    // Space that was promised is taken away.
    disk.set_capacity(0);
    let refusal = append_until_refused(&mut appender);
    assert!(matches!(refusal, Refusal::Full(_)), "{refusal:?}");
    let end = appender.commit();
    disk.set_capacity(1 << 30);
    wait_until("healing", || log.refusal().is_none());
    log.sync(end).expect("there is space");
    drop(appender);
    log.close().expect("all is written");
    let mut recovery = open(&disk, options()).expect("it is whole");
    let state = load(&mut recovery, 1).expect("it is whole").snapshot();
    assert_eq!(state.entries.len(), 2);
}

/// All that is appended can be read, wherever the disk stops.
#[test]
fn records_that_a_full_disk_does_not_take_are_read_from_the_ring() {
    let disk = Simulator::new();
    let (log, mut appender) = running(&disk, background());
    let reader = log.value_reader();
    disk.set_capacity(0);
    let mut appended = Vec::new();
    while appender.ensure(2000).is_ok() {
        let value = vec![appended.len() as u8; 1000];
        let address = appender.set(DB, b"key", TAG, None, &value);
        appender.commit();
        appended.push((address, value));
    }
    let read = |(address, value): &(Address, Vec<u8>)| {
        let found = reader.read(address.lsn(), b"key", 1000);
        assert_eq!(found.expect("nothing is damaged").as_ref(), Some(value));
    };
    appended.iter().for_each(read);
    let is_in_no_file =
        |(address, _): &&(Address, Vec<u8>)| !appender.is_written(*address, 3, 1000);
    assert!(appended.iter().filter(is_in_no_file).count() > 1);
    // Another key is not there, and nothing is at the end.
    let (last, _) = appended.last().expect("the first was taken");
    assert!(matches!(reader.read(last.lsn(), b"other", 1000), Ok(None)));
    assert!(matches!(reader.read(log.tail(), b"key", 1000), Ok(None)));
    disk.set_capacity(1 << 30);
    wait_until("healing", || log.refusal().is_none());
    appended.iter().for_each(read);
}

#[test]
fn compaction_makes_space_on_a_full_disk() {
    let disk = Simulator::new();
    disk.set_capacity(1 << 20);
    let options = Options {
        reserve_bytes: 256 << 10,
        ..background()
    };
    let mut log = begin(&disk, options);
    let store = std::sync::Arc::new(Store::default());
    let mut appender = log.appender(None).expect("the first");
    while appender.ensure(2000).is_ok() {
        // All of it is garbage but the last.
        store.run(
            &log,
            &mut appender,
            &Op::Set((DB, b"key".to_vec()), vec![1; 1000], None),
        );
    }
    log.start_compaction(store.clone());
    wait_until("healing", || log.refusal().is_none());
    appender.ensure(2000).expect("there is space");
}

#[test]
fn a_failed_log_lets_everybody_go() {
    let disk = Simulator::new();
    let log = begin(&disk, background());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let mut appender = log.appender(None).expect("one for each");
            scope.spawn(move || append_until_refused(&mut appender));
        }
        std::thread::sleep(Duration::from_millis(20));
        disk.cut_power_behind(5);
    });
    // The segment that is made ahead may be the first to fail, which alone is a disk that is full.
    wait_until("failing", || {
        matches!(log.refusal(), Some(Refusal::Failed(_)))
    });
}

#[test]
fn a_large_value_that_cannot_be_written_is_refused_and_leaves_nothing() {
    use SyncPolicy::{Always, EverySecond};
    // Room for the next segment may be made at the same moment, so each call fails twice.
    for (call, kind, sync) in [
        ("allocate", ErrorKind::StorageFull, EverySecond),
        ("write", ErrorKind::Other, EverySecond),
        ("sync", ErrorKind::Other, Always),
        ("sync_dir", ErrorKind::Other, Always),
    ] {
        let disk = Simulator::new();
        let (log, mut appender) = running(&disk, Options { sync, ..options() });
        let blobs = appender.blob_store();
        let mut draft = blobs.begin(8000).expect("the disk takes it");
        draft.write(&[1; 8000]).expect("the disk takes it");
        let kept = draft.finish().expect("the disk takes it");
        disk.fail_next(call, kind);
        let refused = blobs.begin(8000).and_then(|mut draft| {
            draft.write(&[1; 8000])?;
            draft.finish()
        });
        assert!(refused.is_err(), "{call}");
        let end = appender.set_blob(DB, b"large", TAG, None, &kept).lsn();
        drop(kept);
        appender.commit();
        log.sync(log.tail()).expect("nothing of the log has failed");
        assert!(log.durable() > end && log.refusal().is_none(), "{call}");
        log.keep();
        let files = disk.names();
        let blobs = files.iter().filter(|path| path.starts_with("/data/blobs"));
        assert_eq!(blobs.count(), 1, "{call}");
    }
}

#[test]
fn a_large_value_that_the_log_cannot_sync_ends_all_writes() {
    for call in ["sync", "sync_dir"] {
        let disk = Simulator::new();
        let (log, mut appender) = running(&disk, options());
        let mut draft = appender.blob_store().begin(8000).expect("there is space");
        draft.write(&[1; 8000]).expect("the disk takes it");
        let blob = draft.finish().expect("nothing is synced yet");
        appender.set_blob(DB, b"large", TAG, None, &blob);
        appender.commit();
        let before = log.durable();
        disk.fail_next(call, ErrorKind::Other);
        log.sync(log.tail()).expect_err("the file is not durable");
        assert!(matches!(log.refusal(), Some(Refusal::Failed(_))), "{call}");
        assert_eq!(log.durable(), before, "{call}");
    }
}

#[test]
fn large_values_that_wait_are_few() {
    let disk = Simulator::new();
    let (log, mut appender) = running(&disk, options());
    let syncs = || {
        let history = disk.history();
        let of_values = |line: &&String| line.contains(": sync /data/blobs");
        history.iter().filter(of_values).count()
    };
    let mut kept = Vec::new();
    for number in 0..300 {
        let mut draft = appender.blob_store().begin(5000).expect("there is space");
        draft.write(&[1; 5000]).expect("the disk takes it");
        kept.push(draft.finish().expect("the disk takes it"));
        assert_eq!(syncs(), (number + 1_usize).saturating_sub(256));
    }
    // What nobody has named any more is not worth a sync.
    kept.truncate(100);
    for _ in 0..2 {
        appender.ensure(100).expect("all is well");
        appender.set(DB, b"second", TAG, None, b"value");
        let end = appender.commit();
        log.sync(end).expect("the disk takes it");
        assert_eq!(syncs(), 44 + 100);
    }
}
