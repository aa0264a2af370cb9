//! Backups, and large values in files of their own.

use crate::support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferrite_log::{DbId, Error, Log, Options, check};
use support::simulator::Simulator;
use support::store::{BLOB_MIN, Op, Store, load};
use support::trees::repair;
use support::{begin, open, options};

fn set(name: &str, value: &[u8]) -> Op {
    Op::Set((DbId(0), name.as_bytes().to_vec()), value.to_vec(), None)
}

fn blobs(disk: &Simulator, root: &str) -> usize {
    disk.names()
        .iter()
        .filter(|path| path.starts_with(format!("{root}/blobs")))
        .count()
}

#[test]
fn a_backup_is_the_state_of_one_moment() {
    for background in [false, true] {
        let disk = Simulator::new();
        let options = Options {
            background,
            ..options()
        };
        let log = begin(&disk, options.clone());
        let store = Store::default();
        let mut appender = log.appender(None).expect("the first");
        let mut backups = Vec::new();
        for number in 0..600_u32 {
            appender.ensure(20_000).expect("all is well");
            let value = vec![number as u8; if number % 10 == 0 { 2 * BLOB_MIN } else { 300 }];
            store.run(
                &log,
                &mut appender,
                &set(&format!("key {}", number % 90), &value),
            );
            if number % 150 == 77 {
                let name = format!("/backup {number}");
                let made = log.backup(Path::new(&name)).expect("there is none yet");
                assert!(made.segments > 0 && made.blobs > 0 && made.end <= log.durable());
                backups.push((name, made.end, store.snapshot()));
            }
        }
        assert!(log.backup(Path::new(&backups[0].0)).is_err());
        drop(appender);
        log.close().expect("all is written");
        for (name, end, state) in backups {
            let copy = disk.after_kill();
            let mut recovery = Log::open(Arc::new(copy.clone()), Path::new(&name), options.clone())
                .expect("it is whole");
            assert_eq!((recovery.cut(), recovery.end()), (None, end));
            assert_eq!(
                load(&mut recovery, 2).expect("it is whole").snapshot(),
                state,
                "{name}"
            );
            recovery
                .start()
                .expect("it takes writes")
                .close()
                .expect("it ends");
            // From now on it may end anywhere behind.
            assert!(!copy.names().contains(&Path::new(&name).join("MANIFEST")));
        }
    }
}

/// Whoever dies while it makes one leaves no half of what says that all is there.
#[test]
fn a_backup_that_was_not_finished_is_not_damaged() {
    let mut unfinished = 0;
    for calls in 0.. {
        let disk = Simulator::new();
        let log = begin(&disk, options());
        let store = Store::default();
        let mut appender = log.appender(None).expect("the first");
        store.run(&log, &mut appender, &set("small", b"value"));
        store.run(&log, &mut appender, &set("large", &[1; BLOB_MIN]));
        disk.cut_power_behind(calls);
        let made = log.backup(Path::new("/backup"));
        let copy = disk.after_kill();
        match Log::open(Arc::new(copy), Path::new("/backup"), options()).map(drop) {
            Ok(()) => {}
            Err(Error::Damage(damage)) => panic!("behind {calls} calls: {damage}"),
            // It is not there yet.
            Err(_) => assert!(made.is_err()),
        }
        drop(appender);
        if made.is_ok() {
            break;
        }
        unfinished += 1;
    }
    assert!(unfinished > 5);
}

#[test]
fn a_backup_survives_what_happens_to_the_original() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    for number in 0..300_u32 {
        appender.ensure(20_000).expect("all is well");
        store.run(
            &log,
            &mut appender,
            &set(
                &format!("key {number}"),
                &vec![1; if number % 20 == 0 { BLOB_MIN } else { 500 }],
            ),
        );
    }
    log.backup(Path::new("/copy")).expect("there is none yet");
    let state = store.snapshot();
    let mut compactor = log.compactor().expect("an appender is left");
    for number in 0..300_u32 {
        appender.ensure(20_000).expect("all is well");
        store.run(&log, &mut appender, &set(&format!("key {number}"), b"new"));
    }
    log.sync(log.tail()).expect("all is well");
    log.keep();
    while compactor.step(&store).expect("all is well") {
        log.keep();
    }
    assert_eq!(blobs(&disk, "/data"), 0);
    let mut recovery = Log::open(
        Arc::new(disk.after_power_loss(1)),
        Path::new("/copy"),
        options(),
    )
    .expect("it is whole");
    assert_eq!(
        load(&mut recovery, 2).expect("it is whole").snapshot(),
        state
    );
}

#[test]
fn large_values_live_as_long_as_they_are_needed() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    let key = |name: &str| (DbId(0), name.as_bytes().to_vec());
    let ops = [
        set("a", &[1; BLOB_MIN]),
        set("b", &[2; 10 * BLOB_MIN]),
        set("c", &[3; BLOB_MIN]),
        Op::Batch(vec![
            set("d", &[4; BLOB_MIN]),
            set("small", b"5"),
            set("e", &[6; 3 * BLOB_MIN]),
        ]),
        Op::Patch(key("b"), 5, vec![9; 100]),
        Op::Expire(key("c"), Some(1 << 44)),
        Op::Delete(key("a")),
        set("d", b"small now"),
    ];
    for op in &ops {
        appender.ensure(20_000).expect("all is well");
        store.run(&log, &mut appender, op);
    }
    log.turn();
    assert_eq!(blobs(&disk, "/data"), 5);
    log.keep();
    assert_eq!(
        blobs(&disk, "/data"),
        5,
        "what replaced them is not durable yet"
    );
    log.sync(log.tail()).expect("all is well");
    log.keep();
    assert_eq!(blobs(&disk, "/data"), 3);
    let status = log.status();
    assert_eq!((status.blobs, status.blob_bytes), (3, 14 * BLOB_MIN as u64));
    drop(appender);
    log.close().expect("all is written");
    // An orphan, as a crash between the file and its record leaves it.
    sys::file::Files::create(&disk, Path::new("/data/blobs/00/0000000000f00000"))
        .expect("it is new");
    let mut recovery = open(&disk, options()).expect("it is whole");
    assert_eq!(
        load(&mut recovery, 2).expect("it is whole").snapshot(),
        store.snapshot()
    );
    let log = recovery.start().expect("it takes writes");
    assert_eq!((blobs(&disk, "/data"), log.status().blobs), (3, 3));
}

/// A backup ends the segment with what was appended last, also if another segment ends on the way there.
#[test]
fn a_backup_does_not_wait_for_another_segment_to_fill() {
    for written in 0..40 {
        let disk = Simulator::new();
        let log = begin(&disk, options());
        let store = Store::default();
        let mut appender = log.appender(None).expect("the first");
        let value = [1; 2000];
        for number in 0..40 {
            appender.ensure(4000).expect("all is well");
            store.run(&log, &mut appender, &set(&number.to_string(), &value));
            if number < written {
                log.turn();
            }
            if number == 15 + written {
                break;
            }
        }
        // With nothing appended behind it, a backup that waits for more waits for ever.
        let made = log.backup(Path::new("/backup")).expect("there is none yet");
        assert_eq!(made.end, log.tail());
        drop(appender);
        log.close().expect("all is written");
    }
}

#[test]
fn a_large_value_that_is_missing_or_damaged_is_named() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    store.run(&log, &mut appender, &set("a", &[1; BLOB_MIN]));
    drop(appender);
    log.close().expect("all is written");
    let path = disk
        .names()
        .into_iter()
        .find(|path| path.starts_with("/data/blobs"))
        .expect("one");
    let refusal = |damage: &dyn Fn(&Simulator)| {
        let disk = disk.after_kill();
        damage(&disk);
        let result = open(&disk, options()).and_then(|mut recovery| {
            load(&mut recovery, 1)
                .map(drop)
                .or_else(|error| match error {
                    // A store that doesn't read them at the start learns it from `start`.
                    Error::Io { .. } => Ok(()),
                    error => Err(error),
                })?;
            recovery.start().map(drop)
        });
        match result {
            Err(Error::Damage(damage)) => damage,
            other => panic!("{:?}", other.map(drop)),
        }
    };
    let damage = refusal(&|disk| disk.remove(&path));
    assert_eq!(
        (&damage.file, &damage.reason[..]),
        (
            &path,
            "the file of a large value is missing; it is the value of the key \"a\" in database 0"
        )
    );
    let damage = refusal(&|disk| disk.damage(&path, |bytes| bytes.truncate(100)));
    assert!(
        damage.reason.starts_with("the file ends too early"),
        "{damage}"
    );
    assert_eq!(
        refusal(&|disk| disk.damage(&path, |bytes| bytes[77] ^= 1)).reason,
        "the checksum does not match"
    );
}

#[test]
fn large_values_of_many_threads_keep_the_order() {
    let disk = Simulator::new();
    let options = Options {
        background: true,
        ..options()
    };
    let log = begin(&disk, options.clone());
    let store = Store::default();
    std::thread::scope(|scope| {
        for thread in 0..3_u8 {
            let (log, store) = (&log, &store);
            scope.spawn(move || {
                let mut appender = log.appender(None).expect("one for each");
                let mut random = fastrand::Rng::with_seed(u64::from(thread));
                for _ in 0..100 {
                    appender.ensure(20_000).expect("all is well");
                    let len = if random.u8(..3) == 0 {
                        BLOB_MIN + random.usize(..9000)
                    } else {
                        random.usize(..100)
                    };
                    store.run(
                        log,
                        &mut appender,
                        &set(
                            &format!("key {}", random.u8(..10)),
                            &vec![random.u8(..); len],
                        ),
                    );
                }
            });
        }
    });
    log.close().expect("all is written");
    let mut recovery = open(&disk, options).expect("it is whole");
    assert_eq!(
        load(&mut recovery, 2).expect("it is whole").snapshot(),
        store.snapshot()
    );
}

/// A backup whose last records name large values, of which nothing else in the log says that they were
/// durable.
fn backup_with_values() -> (Simulator, Store) {
    let disk = Simulator::new();
    let options = Options {
        background: true,
        ..options()
    };
    let log = begin(&disk, options);
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    for (name, bytes) in [("a", 100), ("b", 2 * BLOB_MIN), ("c", 300), ("d", BLOB_MIN)] {
        appender.ensure(20_000).expect("all is well");
        store.run(&log, &mut appender, &set(name, &vec![7; bytes]));
    }
    log.backup(Path::new("/copy")).expect("there is none yet");
    drop(appender);
    log.close().expect("all is written");
    (disk, store)
}

/// Opens the backup, loads it and starts; what is there, or why not.
fn start_copy(disk: &Simulator) -> ferrite_log::Result<support::store::State> {
    let mut recovery = Log::open(Arc::new(disk.clone()), Path::new("/copy"), options())?;
    // That a value is missing is found out when it is read, too.
    let loaded = load(&mut recovery, 1);
    let cut = recovery.cut();
    recovery.start()?.close().expect("it ends");
    assert_eq!(cut, None);
    loaded.map(|store| store.snapshot())
}

#[test]
fn a_backup_that_lacks_something_is_refused_and_not_cut() {
    let (whole, store) = backup_with_values();
    let of = |directory: &str| -> Vec<PathBuf> {
        let names = whole.names().into_iter();
        names.filter(|path| path.starts_with(directory)).collect()
    };
    let (values, segments) = (of("/copy/blobs"), of("/copy/log"));
    assert_eq!((values.len(), segments.len()), (2, 1));
    let manifest = PathBuf::from("/copy/MANIFEST");
    // The file of a segment may have space behind its records.
    let shorten = |disk: &Simulator, path: &Path| {
        disk.damage(path, |bytes| {
            let used = bytes.iter().rposition(|&byte| byte != 0);
            bytes.truncate(used.expect("it has something") - 8);
        });
    };
    let remove = |disk: &Simulator, path: &Path| disk.remove(path);
    type Loss<'l> = (&'l Path, &'l dyn Fn(&Simulator, &Path));
    let losses: [Loss<'_>; 6] = [
        (&values[0], &remove),
        (&values[1], &remove),
        (&values[1], &shorten),
        (&segments[0], &remove),
        (&segments[0], &shorten),
        (&manifest, &shorten),
    ];
    for (path, lose) in losses {
        let disk = whole.after_kill();
        lose(&disk, path);
        let before = disk.names();
        // Once more: what is refused is left as it is.
        for _ in 0..2 {
            let damage = match start_copy(&disk) {
                Err(Error::Damage(damage)) => damage,
                Err(error) => panic!("without {}: {error}", path.display()),
                Ok(_) => panic!("it starts without {}", path.display()),
            };
            assert!(path.starts_with(&damage.file), "{damage} {path:?}");
            let says_why = damage.reason.contains("backup") || path == manifest;
            assert!(says_why, "{damage}");
            assert!(before.iter().all(|path| disk.names().contains(path)));
        }
        let report = check(Arc::new(disk.clone()), Path::new("/copy")).expect("the disk answers");
        assert!(
            !report.is_whole() && !report.remedies[0].is_empty(),
            "{report}"
        );
        // Who says so gets what is left.
        let report = repair(Arc::new(disk.clone()), Path::new("/copy")).expect("the disk answers");
        assert!(report.is_whole(), "{report}");
        let state = start_copy_cut(&disk);
        let expected = store.snapshot();
        assert!(
            state
                .entries
                .iter()
                .all(|(key, value)| expected.entries.get(key) == Some(value)),
            "{report}"
        );
        if path.starts_with("/copy/blobs") {
            assert_eq!(state.entries.len(), 3, "{report}");
        }
    }
    // What is whole starts, and again.
    for _ in 0..2 {
        assert_eq!(start_copy(&whole).expect("it is whole"), store.snapshot());
    }
}

/// As [`start_copy`], of what was mended: its end may be torn.
fn start_copy_cut(disk: &Simulator) -> support::store::State {
    let mut recovery =
        Log::open(Arc::new(disk.clone()), Path::new("/copy"), options()).expect("it was mended");
    let state = load(&mut recovery, 1).expect("it was mended").snapshot();
    recovery
        .start()
        .expect("it was mended")
        .close()
        .expect("it ends");
    state
}
