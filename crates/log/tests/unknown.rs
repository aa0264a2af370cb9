//! Records of another version: a right checksum, and something that this version does not know. A start
//! refuses them and changes nothing; a check names them; a repair leaves everything as it is. What is torn
//! remains torn.

use crate::support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferrite_log::{Damage, DbId, Error, Log, Recovery, check};
use support::simulator::Simulator;
use support::store::{Op, Store, load};
use support::trees::repair;
use support::{begin, directory, open, options};

const SEGMENT: &str = "/data/log/0000000000001000.log";
/// Where the first record of a log is in its file.
const FIRST: usize = 4096;
/// Where the second record of the dump is.
const SECOND: usize = FIRST + 24;

/// The bytes of the parts of the dump in docs/format.md, by their titles.
fn dump() -> BTreeMap<&'static str, Vec<u8>> {
    let document = include_str!("../../../docs/format.md");
    let begin = document.find("header of version 9.2.1").expect("the dump");
    let text = document[begin..].split("```").next().expect("its end");
    let mut parts = BTreeMap::new();
    let mut title = "";
    for line in text.lines() {
        let bytes: Option<Vec<u8>> = line
            .split(' ')
            .map(|digits| u8::from_str_radix(digits, 16).ok())
            .collect();
        match bytes {
            Some(bytes) => parts.entry(title).or_insert_with(Vec::new).extend(bytes),
            None => title = line,
        }
    }
    parts
}

/// A log of the dump's first record and of these.
fn log_of(records: &[&[u8]]) -> Simulator {
    let dump = dump();
    let disk = Simulator::new();
    drop(open(&disk, options()).expect("it makes the directories"));
    let mut bytes = dump["header of version 9.2.1"].clone();
    bytes.resize(FIRST, 0);
    bytes.extend_from_slice(&dump["Set at 0x1000"]);
    for record in records {
        bytes.extend_from_slice(record);
    }
    let file = sys::file::Files::create(&disk, Path::new(SEGMENT)).expect("there is room");
    file.write_at(&bytes, 0).expect("there is room");
    disk
}

fn contents(disk: &Simulator) -> BTreeMap<PathBuf, Vec<u8>> {
    let names = disk.names().into_iter();
    names
        .filter(|path| !path.ends_with("LOCK"))
        .map(|path| (path.clone(), disk.contents(&path)))
        .collect()
}

/// Why a start is refused, which has left everything as it was.
fn refused(disk: &Simulator, start: impl FnOnce(Recovery) -> ferrite_log::Result<()>) -> Damage {
    let before = contents(disk);
    let error = open(disk, options())
        .and_then(start)
        .expect_err("it has what nobody knows");
    let told = error.to_string();
    let Error::Version(damage) = error else {
        panic!("{error}");
    };
    let place = format!(
        "{} cannot be read at byte {}: ",
        damage.file.display(),
        damage.offset
    );
    assert!(
        told.starts_with(&place) && told.contains(&damage.reason),
        "{told}"
    );
    assert!(told.contains("start that version or a later one"), "{told}");
    let report = check(Arc::new(disk.clone()), directory()).expect("it can be read");
    assert!(
        !report.is_whole() && report.unknown.contains(&damage),
        "{report}"
    );
    assert!(report.to_string().contains(&place), "{report}");
    let repaired = repair(Arc::new(disk.clone()), directory()).expect("it can be read");
    assert_eq!(repaired, report);
    assert_eq!(contents(disk), before);
    damage
}

fn at_the_start(_: Recovery) -> ferrite_log::Result<()> {
    panic!("the end of the log was read, and nobody noticed")
}

fn in_the_replay(mut recovery: Recovery) -> ferrite_log::Result<()> {
    load(&mut recovery, 2).map(drop)
}

/// Gives a record the checksum that belongs to its bytes.
fn seal(record: &mut [u8], lsn: u64) {
    let length = u32::from_le_bytes(record[..4].try_into().expect("four"));
    let place = lsn >> 3;
    let seed = place as u32 ^ (place >> 32) as u32 ^ length.rotate_left(16);
    let covered = (length as usize).next_multiple_of(8);
    let checksum = crc32c::crc32c_append(seed, &record[8..covered]);
    record[4..8].copy_from_slice(&checksum.to_le_bytes());
}

const UNKNOWN: [(&str, &str); 2] = [
    ("Record of kind 13 at 0x1018", "a record of kind 13"),
    ("Set of kind 9 at 0x1018", "a value of kind 9"),
];

#[test]
fn what_another_version_wrote_stops_the_start() {
    let dump = dump();
    for (title, what) in UNKNOWN {
        let mut mark = [0; 24];
        mark[0] = 24;
        mark[8] = 8;
        mark[17] = 0x10;
        seal(&mut mark, 0x1030);
        // At the end; with space behind it; with a torn end behind it; with a mark; with more of its kind.
        for behind in [&[][..], &[0; 4096], &[7; 100], &mark] {
            let disk = log_of(&[&dump[title], behind]);
            let damage = refused(&disk, at_the_start);
            assert_eq!(damage.file, Path::new(SEGMENT));
            assert_eq!(damage.offset, SECOND as u64);
            let this = env!("CARGO_PKG_VERSION");
            assert_eq!(
                damage.reason,
                format!(
                    "{what}, which this version ({this}) does not know; version 9.2.1 wrote it"
                )
            );
        }
    }
}

#[test]
fn every_kind_flag_and_form_that_is_not_known_is_refused() {
    let dump = dump();
    let set = &dump["Set at 0x1000"];
    let with = |change: &dyn Fn(&mut [u8])| {
        let mut record = set.clone();
        change(&mut record);
        seal(&mut record, 0x1018);
        let disk = log_of(&[&record]);
        refused(&disk, at_the_start).reason
    };
    for kind in [0, 13, 14, 15] {
        let reason = with(&|record| record[8] = kind);
        assert!(
            reason.starts_with(&format!("a record of kind {kind},")),
            "{reason}"
        );
    }
    for kind in (1..16).filter(|kind| !matches!(kind, 1..=5)) {
        let reason = with(&|record| record[8] = 1 | kind << 4);
        assert!(
            reason.starts_with(&format!("a value of kind {kind},")),
            "{reason}"
        );
    }
    for bit in 5..8 {
        let reason = with(&|record| record[9] = 1 << bit);
        assert!(reason.starts_with("a record with the flags 0x"), "{reason}");
    }
    // Strings have no leaves, edits or instances, collections no patches, sets no form 3, lists no form 1.
    for (kinds, flags, wanted) in [
        (1, 3 << 2, "a value of kind 0 in form 3,"),
        (1, 16, "a value of kind 0 in a tree,"),
        (11, 16, "a value of kind 0 in a tree,"),
        (12, 0, "a value of kind 0,"),
        (0x31, 3 << 2, "a value of kind 3 in form 3,"),
        (0x31, 3 << 2 | 16, "a value of kind 3 in form 3 in a tree,"),
        (0x34, 0, "a value of kind 3,"),
        (0x11, 1 << 2, "a value of kind 1 in form 1,"),
        (0x14, 0, "a value of kind 1,"),
        (0x24, 0, "a value of kind 2,"),
        (0x51, 1 << 2, "a value of kind 5 in form 1,"),
        (0x54, 0, "a value of kind 5,"),
        (0x27, 16, "a record with the flags 0x10,"),
        (0x2b, 0, "a value of kind 2,"),
        (0x2b, 2 << 2 | 16, "a value of kind 2 in form 2 in a tree,"),
        // Without the number of an instance.
        (0x2b, 16, "content of a record of kind 11,"),
        (0x2c, 16, "content of a record of kind 12,"),
    ] {
        let reason = with(&|record| record[8..10].copy_from_slice(&[kinds, flags]));
        assert!(reason.starts_with(wanted), "{reason}");
    }
    // A Delete has no value, and a Bind only changes that there are.
    for kind in [2, 5] {
        let reason = with(&|record| record[8] = kind);
        let wanted = format!("content of a record of kind {kind},");
        assert!(reason.starts_with(&wanted), "{reason}");
    }
    let reason = with(&|record| {
        record[8] = 5;
        record[10] = 0;
        record[12] = 0;
        record[16..24].copy_from_slice(&[9, 0, 0, 0, 0, 0, 0, 0]);
    });
    assert!(
        reason.starts_with("content of a record of kind 5,"),
        "{reason}"
    );
}

#[test]
fn a_version_that_headers_do_not_name_is_a_later_one() {
    let dump = dump();
    let disk = log_of(&[&dump[UNKNOWN[0].0]]);
    let path = Path::new(SEGMENT);
    for (version, words) in [
        (0, "a later version wrote it".to_owned()),
        (
            1 << 16,
            format!(
                "another build of version {} wrote it",
                env!("CARGO_PKG_VERSION")
            ),
        ),
    ] {
        disk.damage(path, |bytes| {
            bytes[68..72].copy_from_slice(&u32::to_le_bytes(version));
            bytes[64..68].fill(0);
            let checksum = crc32c::crc32c(&bytes[..FIRST]);
            bytes[64..68].copy_from_slice(&checksum.to_le_bytes());
        });
        assert!(refused(&disk, at_the_start).reason.ends_with(&words));
    }
}

/// What a crash can leave of such a record is the torn end of a log, as of any other.
#[test]
fn a_torn_record_of_another_version_is_torn() {
    let dump = dump();
    for (title, _) in UNKNOWN {
        let record = &dump[title];
        let torn = |bytes: &[u8]| {
            let disk = log_of(&[bytes]);
            let report = check(Arc::new(disk.clone()), directory()).expect("it can be read");
            assert!(
                report.is_whole() && report.tail.is_some() != bytes.is_empty(),
                "{report}"
            );
            let mut recovery = open(&disk, options()).expect("the end is torn");
            assert_eq!(recovery.end().get(), 0x1018);
            let store = load(&mut recovery, 1).expect("the rest is whole");
            assert_eq!(store.snapshot().entries.len(), 1);
            recovery
                .start()
                .expect("it takes writes")
                .close()
                .expect("all is well");
            let mut again = open(&disk, options()).expect("it is whole");
            load(&mut again, 1).expect("it is whole");
            assert_eq!(again.cut(), None);
        };
        for length in 0..record.len() {
            torn(&record[..length]);
        }
        for at in 0..record.len() * 8 {
            let mut flipped = record.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            torn(&flipped);
        }
        // Behind a record that is torn nothing counts.
        let mut behind = record.clone();
        seal(&mut behind, 0x1030);
        torn(&[&[9; 24][..], &behind].concat());
    }
}

fn key(number: u32) -> (DbId, Vec<u8>) {
    (DbId(0), format!("key {number}").into_bytes())
}

/// A log of some segments, and the log if it still runs.
fn segments(is_closed: bool) -> (Simulator, Option<(Log, Store)>) {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    for number in 0..1500 {
        appender.ensure(1000).expect("all is well");
        let set = |number: u32| Op::Set(key(number % 300), vec![1; 100], None);
        let op = match number % 10 {
            0 => Op::Batch(vec![set(number), set(number + 1)]),
            _ => set(number),
        };
        store.run(&log, &mut appender, &op);
        log.turn();
    }
    drop(appender);
    if is_closed {
        log.close().expect("all is written");
        return (disk, None);
    }
    log.keep();
    (disk, Some((log, store)))
}

fn oldest(disk: &Simulator) -> PathBuf {
    let mut names = disk.names().into_iter();
    names
        .find(|path| path.extension().is_some_and(|extension| extension == "log"))
        .expect("there is one")
}

/// Makes the record at an offset of the oldest segment one of kind 11.
fn change(disk: &Simulator, offset: usize) {
    disk.damage(&oldest(disk), |bytes| {
        let lsn = 0x1000 + (offset - FIRST) as u64;
        bytes[offset + 8] = 11;
        seal(&mut bytes[offset..], lsn);
    });
}

#[test]
fn what_another_version_wrote_is_found_in_the_middle_of_a_log() {
    for is_inner in [false, true] {
        let (disk, _) = segments(true);
        let bytes = disk.contents(&oldest(&disk));
        // The first record is a batch of two.
        assert_eq!(bytes[FIRST + 8], 6);
        let length = u32::from_le_bytes(bytes[FIRST..FIRST + 4].try_into().expect("four"));
        let offset = match is_inner {
            true => FIRST + 16,
            false => FIRST + length as usize,
        };
        change(&disk, offset);
        let damage = refused(&disk, in_the_replay);
        assert_eq!((damage.file, damage.offset), (oldest(&disk), offset as u64));
        // Damage elsewhere does not let a repair take it out.
        disk.damage(&oldest(&disk), |bytes| bytes[FIRST + 4000] ^= 1);
        let before = contents(&disk);
        let report = repair(Arc::new(disk.clone()), directory()).expect("it can be read");
        assert!(
            report.repairs.is_empty() && report.unknown.len() == 1,
            "{report}"
        );
        assert!(
            !report.damage.is_empty() && contents(&disk) == before,
            "{report}"
        );
    }
}

#[test]
fn damage_in_front_of_it_does_not_hide_it() {
    let (disk, _) = segments(true);
    let bytes = disk.contents(&oldest(&disk));
    let length = u32::from_le_bytes(bytes[FIRST..FIRST + 4].try_into().expect("four"));
    let offset = FIRST + length as usize;
    change(&disk, offset);
    disk.damage(&oldest(&disk), |bytes| bytes[FIRST + 20] ^= 1);
    let report = check(Arc::new(disk.clone()), directory()).expect("it can be read");
    assert_eq!(report.unknown.len(), 1, "{report}");
    assert_eq!(report.unknown[0].offset, offset as u64, "{report}");
    assert_eq!(report.damage.len(), 1, "{report}");
    let before = contents(&disk);
    let repaired = repair(Arc::new(disk.clone()), directory()).expect("it can be read");
    assert!(
        repaired.repairs.is_empty() && contents(&disk) == before,
        "{repaired}"
    );
}

#[test]
fn compaction_leaves_it_alone() {
    let (disk, running) = segments(false);
    let (log, store) = running.expect("it runs");
    change(&disk, FIRST + 16);
    let path = oldest(&disk);
    // With its hints nobody would read it.
    disk.remove(&path.with_extension("hint"));
    let before = disk.contents(&path);
    let mut compactor = log.compactor().expect("the second");
    log.compact_thoroughly();
    while compactor.step(&store).expect("all is well") {
        log.turn();
    }
    assert!(log.status().compacted_segments > 0);
    assert_eq!(disk.contents(&path), before);
}

/// Segments of earlier builds name no version: they start as ever.
#[test]
fn logs_of_earlier_builds_start() {
    let (disk, _) = segments(true);
    for path in disk.names() {
        if path.extension().is_none_or(|extension| extension != "log") {
            continue;
        }
        disk.damage(&path, |bytes| {
            let header = u32::from_le_bytes(bytes[12..16].try_into().expect("four")) as usize;
            bytes[64..72].fill(0);
            let checksum = crc32c::crc32c(&bytes[..header]);
            bytes[64..68].copy_from_slice(&checksum.to_le_bytes());
        });
    }
    assert!(
        check(Arc::new(disk.clone()), directory())
            .expect("it can be read")
            .is_whole()
    );
    let mut recovery = open(&disk, options()).expect("it is whole");
    let store = load(&mut recovery, 2).expect("it is whole");
    assert_eq!(store.snapshot().entries.len(), 300);
    recovery.start().expect("it takes writes");
}

/// What stands beside the segments, written by a later version: a proof of a clean stop, or a backup's
/// manifest.
#[test]
fn files_of_another_format_are_refused() {
    for (name, kind) in [("CLOSED", "closed"), ("MANIFEST", "backup")] {
        let (disk, _) = segments(true);
        let lines = format!("ferrite {kind} 2\nwhat nobody knows\n");
        let text = format!("{lines}checksum {:08x}\n", crc32c::crc32c(lines.as_bytes()));
        let path = directory().join(name);
        if !disk.names().contains(&path) {
            sys::file::Files::create(&disk, &path).expect("there is room");
        }
        disk.damage(&path, |bytes| *bytes = text.into_bytes());
        let damage = refused(&disk, at_the_start);
        assert_eq!(damage.file, path);
        assert!(
            damage.reason.starts_with("it has format 2,"),
            "{}",
            damage.reason
        );
    }
}
