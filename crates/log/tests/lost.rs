//! Damage in the middle of a log: after a repair each key has a value that it had once, or is gone and named.
//!
//! Nothing is compacted here, so it is known where the records of each change are, and which of them are
//! whole. `mutations` has logs that compaction has moved.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferrite_log::{DbId, Report, check};
use support::simulator::Simulator;
use support::store::{FullKey, Op, State, Store, load};
use support::trees::{Contents, LEAVES, repair};
use support::{begin, directory, open, options};

const DB: DbId = DbId(0);

/// What a change says of its key.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Says {
    /// All of it.
    Value,
    Gone,
    /// Less, with its name.
    Less,
    /// Less, of an instance, whose records have no name of a key.
    Leaf,
}

/// A change whose records are at these positions.
#[derive(Clone, Debug)]
struct Done {
    place: Range<u64>,
    key: FullKey,
    says: Says,
    contents: Option<Contents>,
}

struct Written {
    disk: Simulator,
    done: Vec<Done>,
    /// Values that each key had.
    values: BTreeMap<FullKey, BTreeSet<Contents>>,
}

fn random_op(random: &mut fastrand::Rng) -> Op {
    let key = (DB, format!("key {}", random.u8(..20)).into_bytes());
    let value = vec![random.u8(..); random.usize(..300)];
    match random.u8(..20) {
        0..5 => Op::Set(key, value, None),
        5 => Op::Delete(key),
        6 => Op::Expire(key, Some(1 << 44)),
        7..10 => Op::Patch(key, random.u64(..60), vec![random.u8(..); 20]),
        10..12 => Op::Hash(key, value),
        12 => Op::Grow(key, value),
        _ => Op::Edit(key, random.u8(..LEAVES), vec![random.u8(..); 30]),
    }
}

fn written(random: &mut fastrand::Rng) -> Written {
    let (disk, store) = (Simulator::new(), Store::default());
    let log = begin(&disk, options());
    let mut appender = log.appender(None).expect("the first");
    let (mut done, mut values) = (Vec::new(), BTreeMap::new());
    for _ in 0..random.usize(200..1500) {
        appender.ensure(8000).expect("all is well");
        let op = random_op(random);
        let start = log.tail().get();
        let end = store.run(&log, &mut appender, &op).get();
        let (key, says) = match &op {
            Op::Set(key, ..) | Op::Hash(key, _) | Op::Grow(key, _) => (key, Says::Value),
            Op::Delete(key) => (key, Says::Gone),
            Op::Edit(key, ..) if is_tree(&store.snapshot(), key) => (key, Says::Leaf),
            Op::Expire(key, _) | Op::Patch(key, ..) | Op::Edit(key, ..) => (key, Says::Less),
            op => unreachable!("{op:?}"),
        };
        let state = store.snapshot();
        let contents = state.entries.get(key).map(|entry| entry.contents());
        if let Some(contents) = &contents {
            let values: &mut BTreeSet<Contents> = values.entry(key.clone()).or_default();
            values.insert(contents.clone());
        }
        if start < end {
            done.push(Done {
                place: start..end,
                key: key.clone(),
                says,
                contents,
            });
        }
        log.turn();
    }
    drop(appender);
    log.close().expect("all is written");
    Written { disk, done, values }
}

fn is_tree(state: &State, key: &FullKey) -> bool {
    state
        .entries
        .get(key)
        .is_some_and(|entry| entry.tag.is_tree)
}

fn header_bytes(segment: &[u8]) -> usize {
    u32::from_le_bytes(segment[12..16].try_into().expect("four bytes")) as usize
}

/// Damages a segment: what was done, and where bytes are others than they were.
fn damage(disk: &Simulator, random: &mut fastrand::Rng) -> (String, PathBuf, Range<usize>) {
    let mut names = disk.names();
    names.retain(|path| path.extension().is_some_and(|its| its == "log"));
    let path = names.swap_remove(random.usize(..names.len()));
    let bytes = disk.contents(&path);
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap_or(0);
    let header = header_bytes(&bytes);
    let at = random.usize(header..used.max(header + 1));
    let count = match random.bool() {
        true => 512 * random.usize(1..9),
        false => random.usize(1..5000),
    };
    let end = (at + count).min(used);
    let block: Vec<u8> = match random.bool() {
        true => (0..count).map(|_| random.u8(..)).collect(),
        false => bytes[..count.min(bytes.len())].to_vec(),
    };
    let (what, place) = match random.u8(..5) {
        0 => {
            disk.damage(&path, |bytes| bytes[at] ^= 1 << (count % 8));
            ("a flipped bit", at..at + 1)
        }
        1 => {
            disk.damage(&path, |bytes| drop(bytes.splice(at..at, block)));
            ("bytes put in", at..at)
        }
        2 => {
            disk.damage(&path, |bytes| drop(bytes.drain(at..end)));
            ("bytes taken out", at..end)
        }
        3 => {
            disk.damage(&path, |bytes| bytes[at..end].fill(0));
            ("zeroes", at..end)
        }
        _ => {
            let count = block.len().min(end - at);
            disk.damage(&path, |bytes| {
                bytes[at..at + count].copy_from_slice(&block[..count])
            });
            ("other bytes", at..at + count)
        }
    };
    // Bytes that are what they were are not damaged.
    let after = disk.contents(&path);
    let is_other = |at: &usize| bytes[*at] != after[*at];
    let place = match what {
        "zeroes" | "other bytes" => {
            let first = place.clone().find(is_other).unwrap_or(place.start);
            first..place.rev().find(is_other).map_or(first, |last| last + 1)
        }
        _ => place,
    };
    (
        format!("{what} at {place:?} of {}", path.display()),
        path,
        place,
    )
}

/// The positions of the log that bytes of a segment are.
fn positions(disk: &Simulator, path: &Path, place: Range<usize>) -> Range<u64> {
    let bytes = disk.contents(path);
    let header = header_bytes(&bytes) as u64;
    let first = u64::from_le_bytes(bytes[16 + 8..32].try_into().expect("eight bytes"));
    let at = |place: usize| first + (place as u64).saturating_sub(header);
    at(place.start)..at(place.end)
}

/// Whether the repair says something of a key.
fn is_named(report: &Report, (_, key): &FullKey) -> bool {
    let name = format!("the key \"{}\" in database 0 ", key.escape_ascii());
    report.repairs.iter().any(|line| line.starts_with(&name))
}

fn assert_mended(written: &Written, lost: &Range<u64>, state: &State, report: &Report, what: &str) {
    for (key, entry) in &state.entries {
        assert!(
            written.values[key].contains(&entry.contents()),
            "{what}: {key:?} is {entry:?}\n{report}"
        );
    }
    let is_whole = |done: &&Done| done.place.end <= lost.start || lost.end <= done.place.start;
    for key in written.values.keys() {
        let whole = || {
            written
                .done
                .iter()
                .filter(|done| done.key == *key)
                .filter(is_whole)
        };
        let entry = state.entries.get(key);
        let Some(last) = whole().next_back() else {
            assert!(entry.is_none(), "{what}: {key:?}\n{report}");
            continue;
        };
        // It has what the last record says that says all, if all behind it depends on nothing.
        let is_known = match last.says {
            Says::Value => true,
            Says::Gone => true,
            Says::Less | Says::Leaf => last.place.start < lost.start,
        };
        // That an instance is gone is a record of its own, behind the one that says what comes then.
        let was_tree = last
            .contents
            .as_ref()
            .is_some_and(|leaves| leaves.len() > 1);
        let is_over = was_tree && entry.is_none() && is_named(report, key);
        if is_known && !is_over {
            let contents = entry.map(|entry| entry.contents());
            assert!(
                contents == last.contents,
                "{what}: {key:?}: {entry:?} not {last:?}\n{report}"
            );
        }
        let named = whole().rfind(|done| done.says != Says::Leaf);
        let must_be_named = entry.is_none() && named.is_some_and(|named| named.says != Says::Gone);
        assert!(
            !must_be_named || is_named(report, key),
            "{what}: {key:?}\n{report}"
        );
    }
}

#[test]
fn each_key_has_a_value_that_it_had_or_is_gone_and_named() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = number("FERRITE_SEED").unwrap_or(1);
    let (mut named, mut mended) = (0, 0);
    for seed in first..first + number("FERRITE_SEEDS").unwrap_or(400) / 20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let written = written(&mut random);
        for round in 0..20 {
            let disk = written.disk.after_kill();
            let (what, path, place) = damage(&disk, &mut random);
            let lost = positions(&written.disk, &path, place);
            let what = format!("seed {seed}, {round}: {what}, {lost:?}");
            let report = repair(Arc::new(disk.clone()), directory()).expect("nobody has it");
            assert!(report.is_whole(), "{what}: {report}");
            let mut recovery = open(&disk, options()).expect("it is mended");
            let state = load(&mut recovery, 1).expect("it is mended").snapshot();
            assert_mended(&written, &lost, &state, &report, &what);
            mended += usize::from(!report.repairs.is_empty());
            named += report
                .repairs
                .iter()
                .filter(|line| line.starts_with("the key"))
                .count();
        }
    }
    println!("{mended} mended, {named} keys named");
    assert!(mended > 0 && named > 0);
}

#[test]
fn a_record_of_no_database_is_that_of_a_library() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    for (db, name) in [(DB, b"a"), (DbId::APART, b"m"), (DB, b"b")] {
        let value = [&b"the value of "[..], name].concat();
        store.run(
            &log,
            &mut appender,
            &Op::Set((db, name.to_vec()), value, None),
        );
    }
    drop(appender);
    log.close().expect("all is written");
    let names = disk.names();
    let path = names
        .iter()
        .find(|path| path.extension().is_some_and(|end| end == "log"));
    disk.damage(path.expect("there is one"), |bytes| {
        let value = bytes.windows(14).position(|part| part == b"the value of m");
        bytes[value.expect("it was written")] ^= 1;
    });
    let report = check(Arc::new(disk.clone()), directory()).expect("nobody has it");
    let text = report.to_string();
    assert!(text.contains("the library \"m\""), "{text}");
    assert!(!text.contains("in database 65535"), "{text}");
    let report = repair(Arc::new(disk.clone()), directory()).expect("nobody has it");
    assert!(report.is_whole(), "{report}");
    let mut recovery = open(&disk, options()).expect("it was repaired");
    let state = load(&mut recovery, 1).expect("it is whole").snapshot();
    let keys: Vec<_> = state
        .entries
        .keys()
        .map(|(_, key)| key.as_slice())
        .collect();
    assert_eq!(keys, [b"a", b"b"]);
}
