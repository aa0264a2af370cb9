//! Damage: every cut and every flipped bit of a small log gives a beginning of what was, or a clear refusal;
//! and repair makes it open again.

use crate::support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferrite_log::{BLOB_PIECE_BYTES, DbId, Error, Lsn, check};
use support::simulator::Simulator;
use support::store::{Op, State, Store, load};
use support::trees::repair;
use support::{begin, directory, open, options};

fn set(name: &str, value: &[u8]) -> Op {
    Op::Set((DbId(0), name.as_bytes().to_vec()), value.to_vec(), None)
}

/// A log of a few records in one segment, with the states it went through. `is_closed` leaves a mark at its
/// end.
fn small_log(is_closed: bool) -> (Simulator, Vec<(Lsn, State)>) {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    let ops = [
        set("a", b"1"),
        set("b", b"22222222222"),
        Op::Expire((DbId(0), b"b".to_vec()), Some(1 << 44)),
        Op::Batch(vec![
            set("c", b"3"),
            Op::Delete((DbId(0), b"a".to_vec())),
            set("d", b"4"),
        ]),
        Op::Patch((DbId(0), b"b".to_vec()), 4, b"xx".to_vec()),
        Op::Clear(DbId(1)),
        set("e", b"5"),
    ];
    let mut steps = vec![(Lsn::FIRST, State::default())];
    for op in &ops {
        let end = store.run(&log, &mut appender, op);
        steps.push((end, store.snapshot()));
    }
    log.turn();
    drop(appender);
    if is_closed {
        log.close().expect("all is written");
    } else {
        std::mem::forget(log);
    }
    (disk, steps)
}

fn segments(disk: &Simulator) -> Vec<PathBuf> {
    let names = disk.names().into_iter();
    names
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect()
}

/// Opens what is there: the state, if it is one of those there were. `None` if it is refused.
fn opens(disk: &Simulator, steps: &[(Lsn, State)], what: &str) -> Option<usize> {
    let mut recovery = match open(disk, options()) {
        Ok(recovery) => recovery,
        Err(Error::Damage(damage)) => {
            assert!(!damage.reason.is_empty(), "{what}");
            return None;
        }
        Err(error) => panic!("{what}: {error}"),
    };
    let end = recovery.end();
    let store = match load(&mut recovery, 2) {
        Ok(store) => store,
        Err(Error::Damage(_)) => return None,
        Err(error) => panic!("{what}: {error}"),
    };
    let step = steps.partition_point(|(step_end, _)| *step_end <= end) - 1;
    assert_eq!(store.snapshot(), steps[step].1, "{what}");
    let log = recovery
        .start()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut appender = log.appender(None).expect("the first");
    store.run(&log, &mut appender, &set("new", b"value"));
    drop(appender);
    log.close()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut again = open(disk, options()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(again.cut(), None, "{what}");
    assert_eq!(
        load(&mut again, 1).expect("it is whole").snapshot(),
        store.snapshot(),
        "{what}"
    );
    Some(step)
}

/// Bytes of the file in which something is: header and records.
fn used(disk: &Simulator, path: &std::path::Path) -> usize {
    let bytes = disk.contents(path);
    bytes
        .iter()
        .rposition(|&byte| byte != 0)
        .expect("a header")
        .next_multiple_of(8)
}

#[test]
fn a_log_cut_at_every_byte_is_a_beginning_of_what_it_was() {
    for is_closed in [false, true] {
        let (disk, steps) = small_log(is_closed);
        let [path] = &segments(&disk)[..] else {
            panic!("it is small")
        };
        let used = used(&disk, path);
        let mut last = 0;
        for len in 0..=used {
            let cut = disk.after_kill();
            cut.damage(path, |bytes| bytes.truncate(len));
            let what = format!("cut at {len} of {used}");
            match opens(&cut, &steps, &what) {
                Some(step) => {
                    assert!(!is_closed || len == used, "{what}: nobody noticed");
                    assert!(step >= last, "{what}");
                    last = step;
                }
                // A clean stop proves that there was more; a crash leaves any end.
                None => assert!(is_closed || len < 4096, "{what}: a torn tail is no damage"),
            }
        }
        assert_eq!(last, steps.len() - 1);
    }
}

#[test]
fn no_flipped_bit_makes_a_wrong_state() {
    for is_closed in [false, true] {
        let (disk, steps) = small_log(is_closed);
        let [path] = &segments(&disk)[..] else {
            panic!("it is small")
        };
        let used = used(&disk, path);
        let (mut refused, mut opened) = (0, 0);
        // Most of a header's block is zeroes that are alike.
        for at in (0..200).chain((200..4096).step_by(97)).chain(4096..used) {
            let damaged = disk.after_kill();
            damaged.damage(path, |bytes| bytes[at] ^= 1 << (at % 8));
            match opens(&damaged, &steps, &format!("bit {} of byte {at}", at % 8)) {
                Some(step) => {
                    opened += 1;
                    // What was closed says that it was durable.
                    assert!(!is_closed || step == steps.len() - 1, "byte {at}");
                }
                None => refused += 1,
            }
        }
        assert!(refused > 200, "{refused} {opened}");
        assert_eq!(opened == 0, is_closed, "{refused} {opened}");
    }
}

/// A log of several segments, closed.
fn large_log() -> (Simulator, State) {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    for number in 0..300_u32 {
        appender.ensure(2000).expect("all is well");
        store.run(
            &log,
            &mut appender,
            &set(&format!("key {number}"), &[number as u8; 1000]),
        );
        log.turn();
    }
    drop(appender);
    log.close().expect("all is written");
    (disk, store.snapshot())
}

fn refusal(disk: &Simulator) -> ferrite_log::Damage {
    let result = open(disk, options()).and_then(|mut recovery| load(&mut recovery, 2).map(drop));
    match result {
        Err(Error::Damage(damage)) => damage,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_whole_log_is_found_whole() {
    let (disk, state) = large_log();
    let report = check(Arc::new(disk.clone()), directory()).expect("nobody has it");
    assert!(
        report.damage.is_empty() && report.tail.is_none(),
        "{report}"
    );
    assert_eq!(report.segments, segments(&disk).len());
    assert!(report.records >= 300);
    assert!(report.to_string().ends_with("the log is whole"));
    let report = repair(Arc::new(disk.clone()), directory()).expect("nobody has it");
    assert!(report.repairs.is_empty());
    let mut recovery = open(&disk, options()).expect("it is whole");
    assert_eq!(
        load(&mut recovery, 1).expect("it is whole").snapshot(),
        state
    );
    assert!(matches!(
        check(Arc::new(disk.clone()), directory()),
        Err(Error::Locked { .. })
    ));
}

#[test]
fn damage_in_the_middle_is_named_and_mended() {
    let (disk, state) = large_log();
    let path = &segments(&disk)[1];
    disk.damage(path, |bytes| bytes[20_000] ^= 4);
    let damage = refusal(&disk);
    assert_eq!(&damage.file, path);
    assert!(
        damage.offset <= 20_000 && damage.offset > 18_000,
        "{damage}"
    );
    let report = check(Arc::new(disk.clone()), directory()).expect("nobody has it");
    assert_eq!(report.damage, [damage]);
    let report = repair(Arc::new(disk.clone()), directory()).expect("nobody has it");
    assert!(report.damage.is_empty(), "{report}");
    assert_eq!(report.repairs.len(), 1, "{report}");
    let mut recovery = open(&disk, options()).expect("it is mended");
    let found = load(&mut recovery, 2).expect("it is mended").snapshot();
    assert_eq!(found.entries.len(), state.entries.len() - 1);
    assert!(
        found
            .entries
            .iter()
            .all(|(key, entry)| state.entries[key] == *entry)
    );
    assert!(
        disk.names()
            .iter()
            .any(|name| name.starts_with("/data/lost"))
    );
}

#[test]
fn a_segment_that_is_missing_is_named_and_struck_off() {
    let (disk, state) = large_log();
    let path = segments(&disk)[1].clone();
    disk.remove(&path);
    let damage = refusal(&disk);
    assert_eq!(
        (damage.file, &damage.reason[..]),
        (path, "the file is missing")
    );
    let report = repair(Arc::new(disk.clone()), directory()).expect("nobody has it");
    assert!(report.damage.is_empty(), "{report}");
    let mut recovery = open(&disk, options()).expect("it is mended");
    let found = load(&mut recovery, 2).expect("it is mended").snapshot();
    assert!(found.entries.len() < state.entries.len() && found.entries.len() > 100);
}

#[test]
fn a_header_that_is_damaged_is_made_again() {
    let (disk, state) = large_log();
    let count = segments(&disk).len();
    for number in 0..count {
        let disk = disk.after_kill();
        let path = segments(&disk)[number].clone();
        disk.damage(&path, |bytes| bytes[30] ^= 1);
        assert_eq!(refusal(&disk).file, path);
        let report = repair(Arc::new(disk.clone()), directory()).expect("nobody has it");
        assert!(report.damage.is_empty(), "segment {number}: {report}");
        let mut recovery = open(&disk, options()).expect("it is mended");
        let found = load(&mut recovery, 2).expect("it is mended").snapshot();
        assert_eq!(found, state, "segment {number}");
    }
}

#[test]
fn a_file_that_is_too_short_is_named_and_mended() {
    let (disk, state) = large_log();
    let path = segments(&disk)[0].clone();
    disk.damage(&path, |bytes| bytes.truncate(40_001));
    assert_eq!(refusal(&disk).reason, "the file ends too early");
    let report = repair(Arc::new(disk.clone()), directory()).expect("nobody has it");
    assert!(report.damage.is_empty(), "{report}");
    let mut recovery = open(&disk, options()).expect("it is mended");
    let found = load(&mut recovery, 2).expect("it is mended").snapshot();
    assert!(found.entries.len() < state.entries.len() && found.entries.len() > 200);
}

#[test]
fn a_segment_of_another_log_is_refused() {
    let (disk, _) = large_log();
    let (other, _) = large_log();
    let path = segments(&disk)[1].clone();
    let bytes = other.contents(&path);
    disk.damage(&path, |mine| *mine = bytes);
    assert_eq!(refusal(&disk).reason, "the segment belongs to another log");
}

#[test]
fn another_version_is_refused_and_left_alone() {
    let (disk, _) = small_log(true);
    let [path] = &segments(&disk)[..] else {
        panic!("it is small")
    };
    disk.damage(path, |bytes| {
        bytes[8] = 2;
        bytes[64..68].fill(0);
        let checksum = crc32c::crc32c(&bytes[..4096]);
        bytes[64..68].copy_from_slice(&checksum.to_le_bytes());
    });
    let before = disk.contents(path);
    let error = open(&disk, options()).expect_err("it is from the future");
    assert!(matches!(error, Error::Version(_)), "{error}");
    assert!(error.to_string().contains("format 2"), "{error}");
    assert!(repair(Arc::new(disk.clone()), directory()).is_err());
    assert_eq!(disk.contents(path), before);
}

/// What a person is told, word for word, is in `reports.txt`; `UPDATE_GOLDEN=1` writes it anew, then read it.
#[test]
fn reports_say_what_is_wrong_and_what_a_repair_would_do() {
    let mut told = String::new();
    let mut tell = |what: &str, disk: &Simulator| {
        let (files, again) = (Arc::new(disk.clone()), Arc::new(disk.clone()));
        told += &format!("# {what}\n$ check\n");
        match check(files, directory()) {
            Ok(report) => told += &format!("{report}\n$ repair\n"),
            Err(error) => told += &format!("{error}\n$ repair\n"),
        }
        match repair(again, directory()) {
            Ok(report) => told += &format!("{report}\n\n"),
            Err(error) => told += &format!("{error}\n\n"),
        }
    };
    let (disk, _) = small_log(true);
    let [path] = &segments(&disk)[..] else {
        panic!("it is small")
    };
    let used = used(&disk, path);
    tell("a log that was closed", &disk);
    let killed = small_log(false).0.after_kill();
    let ring = killed.ring().expect("it is there");
    tell("a process that was killed", &killed);
    tell("another boot", &killed.after_power_loss(1));
    let torn = small_log(false).0.after_kill();
    std::fs::remove_file(torn.ring().expect("it is there")).expect("it is ours");
    torn.damage(path, |bytes| bytes[used - 60..used].fill(7));
    tell("a torn end", &torn);
    let holed = disk.after_kill();
    holed.damage(path, |bytes| bytes[4096 + 30] ^= 1);
    tell("a flipped bit", &holed);
    let beheaded = disk.after_kill();
    beheaded.damage(path, |bytes| bytes[30] ^= 1);
    tell("a flipped bit in a header", &beheaded);
    let (large, _) = large_log();
    let names = segments(&large);
    let short = large.after_kill();
    short.damage(&names[2], |bytes| bytes.truncate(50_000));
    tell("a file that is too short", &short);
    large.remove(&names[1]);
    tell("a file that is missing", &large);
    let told = told.replace(&*ring.to_string_lossy(), "/memory/ferrite.ring");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &told).expect("the reports can be written");
    }
    let expected = std::fs::read_to_string(&path).expect("the reports are there");
    assert!(told == expected, "{told}");
}

#[test]
fn keys_whose_large_values_are_gone_are_named_and_deleted() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    let large = |byte| vec![byte; 2 * support::store::BLOB_MIN];
    for op in [
        set("small", b"1"),
        set("missing", b"an older value"),
        set("missing", &large(1)),
        set("changed", &large(2)),
        set("short", &large(3)),
        set("whole", &large(4)),
        // The file of a value that was replaced may be missing.
        set("replaced", &large(5)),
        set("replaced", b"2"),
        Op::Clear(DbId(1)),
    ] {
        appender.ensure(20_000).expect("all is well");
        store.run(&log, &mut appender, &op);
        log.turn();
    }
    drop(appender);
    log.close().expect("all is written");
    let is_whole = |disk: &Simulator| {
        let report = check(Arc::new(disk.clone()), directory()).expect("nobody has it");
        report.is_whole() && report.blobs == 4
    };
    assert!(is_whole(&disk));
    let blobs: Vec<PathBuf> = disk
        .names()
        .into_iter()
        .filter(|path| path.starts_with("/data/blobs"))
        .collect();
    let of = |byte: u8| {
        let is_it = |path: &&PathBuf| disk.contents(path).first() == Some(&byte);
        blobs.iter().find(is_it).expect("it was written").clone()
    };
    let [missing, changed, short] = [1, 2, 3].map(of);
    disk.remove(&missing);
    disk.damage(&changed, |bytes| bytes[77] ^= 1);
    disk.damage(&short, |bytes| bytes.truncate(100));
    let report = check(Arc::new(disk.clone()), directory()).expect("nobody has it");
    assert_eq!(report.damage.len(), 3, "{report}");
    assert!(
        report
            .remedies
            .contains(
                &"deletes the key \"missing\" in database 0, with its value of 8192 bytes, which is damaged"
                    .to_owned()
            ),
        "{report}"
    );
    let report = repair(Arc::new(disk.clone()), directory()).expect("nobody has it");
    assert!(report.is_whole() && report.blobs == 1, "{report}");
    assert_eq!(report.repairs.len(), 3, "{report}");
    let mut recovery = open(&disk, options()).expect("it is mended");
    let found = load(&mut recovery, 1).expect("it is mended").snapshot();
    let names: Vec<&[u8]> = found.entries.keys().map(|(_, key)| &key[..]).collect();
    assert_eq!(names, [&b"replaced"[..], b"small", b"whole"]);
    let lost = disk.names();
    let lost = lost.iter().filter(|path| path.starts_with("/data/lost"));
    assert_eq!(lost.count(), 2, "what there was is kept");
}

/// A flipped byte of a large value is named by file and piece wherever the value is read; one of the
/// checksums costs no value.
#[test]
fn a_flipped_byte_is_named_by_its_piece() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    let large = |byte| vec![byte; 2 * BLOB_PIECE_BYTES + 5000];
    for (name, byte) in [("broken", 1), ("unsummed", 2), ("whole", 3)] {
        appender.ensure(20_000).expect("all is well");
        store.run(&log, &mut appender, &set(name, &large(byte)));
        log.turn();
    }
    let of = |byte: u8| {
        let names = disk.names().into_iter();
        let mut blobs = names.filter(|path| path.starts_with("/data/blobs"));
        let found = blobs.find(|path| disk.contents(path).first() == Some(&byte));
        found.expect("it was written")
    };
    let (broken, unsummed) = (of(1), of(2));
    disk.damage(&broken, |bytes| bytes[BLOB_PIECE_BYTES + 77] ^= 1);
    let size = disk.contents(&unsummed).len();
    disk.damage(&unsummed, |bytes| bytes[size - 4000] ^= 1);
    let named = format!(
        "{} is damaged at byte 65536: the checksum of piece 1 of 3",
        broken.display()
    );
    let problem = log
        .backup(Path::new("/backup"))
        .expect_err("a value is damaged");
    assert!(problem.to_string().starts_with(&named), "{problem}");
    drop(appender);
    log.close().expect("all is written");
    let report = check(Arc::new(disk.clone()), directory()).expect("nobody has it");
    assert!(report.damage[0].to_string().starts_with(&named), "{report}");
    assert!(
        report.damage[1]
            .reason
            .contains("the checksums of its pieces"),
        "{report}"
    );
    let remedies = [
        "deletes the key \"broken\" in database 0, with its value of 136072 bytes, which is damaged",
        "writes the checksums of the value of \"unsummed\" anew",
    ];
    assert_eq!(report.remedies, remedies);
    // What is read as a whole or as a stream says the same.
    let mut recovery = open(&disk, options()).expect("its record is whole");
    let problem = load(&mut recovery, 1).expect_err("its value is damaged");
    assert!(problem.to_string().starts_with(&named), "{problem}");
    drop(recovery);
    let report = repair(Arc::new(disk.clone()), directory()).expect("nobody has it");
    assert!(report.is_whole() && report.blobs == 2, "{report}");
    let mut recovery = open(&disk, options()).expect("it is mended");
    let found = load(&mut recovery, 1).expect("it is mended").snapshot();
    let key = |name: &str| (DbId(0), name.as_bytes().to_vec());
    assert!(found.entries[&key("unsummed")].value == large(2));
    assert!(found.entries[&key("whole")].value == large(3));
    assert_eq!(found.entries.len(), 2);
}

#[test]
fn what_is_struck_off_leaves_the_rest_as_it_was() {
    let disk = Simulator::new();
    let mut number = 0;
    let mut fill = |store: &Store, log: &ferrite_log::Log, count: u32| {
        let mut appender = log.appender(None).expect("the first");
        for _ in 0..count {
            number += 1;
            appender.ensure(2000).expect("all is well");
            let op = set(&format!("key {number}"), &[1; 1000]);
            store.run(log, &mut appender, &op);
            log.turn();
        }
    };
    let recovery = open(&disk, options()).expect("it is new");
    let log = recovery.start().expect("it is empty");
    let store = Store::default();
    fill(&store, &log, 200);
    log.close().expect("all is written");
    let mut recovery = open(&disk, options()).expect("it is whole");
    let store = load(&mut recovery, 1).expect("it is whole");
    let log = recovery.start().expect("it is whole");
    let mut appender = log.appender(None).expect("the first");
    // What the newest segment says about databases counts, too.
    store.run(&log, &mut appender, &Op::Clear(DbId(0)));
    store.run(&log, &mut appender, &set("later", b"1"));
    drop(appender);
    log.close().expect("all is written");
    disk.remove(&segments(&disk)[1]);
    let report = repair(Arc::new(disk.clone()), directory()).expect("nobody has it");
    assert!(report.is_whole(), "{report}");
    let mut recovery = open(&disk, options()).expect("it is mended");
    let found = load(&mut recovery, 1).expect("it is mended").snapshot();
    assert_eq!(found.entries.len(), 1, "what was flushed stays flushed");
}

/// The proof of a clean stop.
fn proof() -> PathBuf {
    directory().join("CLOSED")
}

#[test]
fn a_clean_stop_proves_where_the_log_ends() {
    let (disk, state) = large_log();
    let newest = segments(&disk).pop().expect("several");
    let is_noticed = |damage: &dyn Fn(&Simulator)| {
        let disk = disk.after_kill();
        damage(&disk);
        let found = refusal(&disk);
        let report = check(Arc::new(disk.clone()), directory()).expect("nobody has it");
        assert_eq!(report.damage[0], found, "{report}");
        assert!(!report.remedies[0].is_empty(), "{report}");
        let report = repair(Arc::new(disk.clone()), directory()).expect("nobody has it");
        assert!(report.is_whole() && !report.repairs.is_empty(), "{report}");
        let mut recovery = open(&disk, options()).expect("it is mended");
        let found = load(&mut recovery, 2).expect("it is mended").snapshot();
        for (key, entry) in &found.entries {
            assert_eq!(state.entries[key], *entry);
        }
        drop(recovery.start().expect("it is mended"));
        (
            refusal_text(&report.repairs),
            state.entries.len() - found.entries.len(),
        )
    };
    // Between two records, in the middle of one, and all of the file.
    for missing in [24, 1048, 100, 5000] {
        let (told, lost) = is_noticed(&|disk| {
            disk.damage(&newest, |bytes| bytes.truncate(bytes.len() - missing));
        });
        assert!(
            told.contains("before the end that it had when it was closed"),
            "{told}"
        );
        // The last record is a mark, and not every byte of a file is used.
        assert_eq!(
            lost,
            missing / 1024 + usize::from(missing > 24 && missing % 1024 > 24)
        );
    }
    let (_, lost) = is_noticed(&|disk| disk.remove(&newest));
    assert!(lost > 0);
    let (_, lost) = is_noticed(&|disk| disk.damage(&proof(), |bytes| bytes[20] ^= 1));
    assert_eq!(lost, 0);
    let (_, lost) = is_noticed(&|disk| disk.damage(&proof(), |bytes| bytes.truncate(20)));
    assert_eq!(lost, 0);
    let (other, _) = small_log(true);
    let (_, lost) = is_noticed(&|disk| {
        disk.damage(&proof(), |bytes| *bytes = other.contents(&proof()));
    });
    assert_eq!(lost, 0);
}

fn refusal_text(repairs: &[String]) -> String {
    repairs.join("\n")
}

/// The proof counts until the next start takes writes, and does no harm if its end is lost.
#[test]
fn a_proof_does_not_outlive_the_next_start() {
    let (disk, state) = large_log();
    let old = disk.contents(&proof());
    let mut recovery = open(&disk, options()).expect("it is whole");
    load(&mut recovery, 1).expect("it is whole");
    assert!(disk.names().contains(&proof()), "nothing was written yet");
    let log = recovery.start().expect("it is whole");
    assert!(!disk.names().contains(&proof()));
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    store.run(&log, &mut appender, &set("later", b"1"));
    log.turn();
    drop(appender);
    std::mem::forget(log);
    for has_proof in [false, true] {
        let disk = disk.after_kill();
        if has_proof {
            // Its removal was lost with the power.
            use sys::file::Files;
            let file = disk.create(&proof()).expect("it is gone");
            file.write_at(&old, 0).expect("there is room");
        }
        let newest = segments(&disk).pop().expect("several");
        for torn in [false, true] {
            let disk = disk.after_kill();
            if torn {
                disk.damage(&newest, |bytes| bytes.truncate(4096 + 0x18));
            }
            let mut recovery = open(&disk, options()).expect("a crash may leave that");
            let found = load(&mut recovery, 1).expect("it is whole").snapshot();
            assert_eq!(
                found.entries.len(),
                state.entries.len() + usize::from(!torn)
            );
        }
    }
}
