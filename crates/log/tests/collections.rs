//! Collections in the log: what edits and leaves leave after a replay, what compaction does with segments of
//! them, and what a repair does about an instance that has lost a record.

use crate::support;

use std::path::PathBuf;
use std::sync::Arc;

use ferrite_log::{Address, Appender, Change, DbId, Log, Options, Value, check};
use support::simulator::Simulator;
use support::store::{FullKey, Op, State, Store, load, load_from};
use support::trees::repair;
use support::trees::{HASH, LEAVES, TREE};
use support::{begin, directory, open, options};

const DB: DbId = DbId(0);

fn key(name: &str) -> FullKey {
    (DB, name.as_bytes().to_vec())
}

fn edit(name: &str, leaf: u8, byte: u8) -> Op {
    Op::Edit(key(name), leaf, vec![byte; 40])
}

fn run(log: &Log, store: &Store, ops: impl IntoIterator<Item = Op>) {
    let mut appender = log.appender(None).expect("one is left");
    for op in ops {
        appender.ensure(20_000).expect("all is well");
        store.run(log, &mut appender, &op);
        log.turn();
    }
}

/// What another start would find now.
fn found(disk: &Simulator) -> State {
    let mut recovery = open(&disk.after_kill(), options()).expect("it is whole");
    load(&mut recovery, 2).expect("it is whole").snapshot()
}

fn segments(disk: &Simulator) -> Vec<PathBuf> {
    let names = disk.names().into_iter();
    names
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect()
}

#[test]
fn collections_are_there_again() {
    let (disk, store) = (Simulator::new(), Store::default());
    let log = begin(&disk, options());
    let ops = [
        Op::Hash(key("small"), b"ab".to_vec()),
        edit("small", 0, b'c'),
        Op::Grow(key("large"), b"leaf".to_vec()),
        edit("large", 2, b'!'),
        Op::Expire(key("large"), Some(1 << 44)),
        Op::Grow(key("replaced"), b"1".to_vec()),
        Op::Grow(key("replaced"), b"2".to_vec()),
        Op::Grow(key("gone"), b"3".to_vec()),
        Op::Delete(key("gone")),
        Op::Grow(key("string"), b"4".to_vec()),
        Op::Set(key("string"), b"5".to_vec(), None),
        Op::Batch(vec![
            Op::Grow(key("together"), b"6".to_vec()),
            edit("together", 1, b'7'),
            edit("small", 0, b'd'),
            edit("large", 3, b'?'),
            // Made and replaced at once.
            Op::Grow(key("string"), b"8".to_vec()),
            Op::Set(key("string"), b"9".to_vec(), None),
        ]),
    ];
    run(&log, &store, ops);
    log.close().expect("all is written");
    let mut recovery = open(&disk, options()).expect("it is whole");
    let loaded = load(&mut recovery, 2).expect("it is whole").snapshot();
    assert_eq!(loaded, store.snapshot());
    let small = &loaded.entries[&key("small")];
    assert_eq!((small.value.len(), small.tag), (82, HASH));
    assert!(small.address.is_some_and(Address::is_patched));
    let large = &loaded.entries[&key("large")];
    assert_eq!((large.tag, large.expiry), (TREE, Some(1 << 44)));
    assert_eq!(large.leaves[&1].value, b"leaf");
    assert_eq!(large.leaves[&2].value.len(), 44);
    // What is dead is known: instances that no key names do not count.
    let log = recovery.start().expect("it takes writes");
    let live = log.status().live_bytes;
    let sum: u64 = loaded
        .entries
        .iter()
        .map(|(key, entry)| {
            let leaves: u64 = entry.leaves.values().map(|leaf| leaf.bytes).sum();
            leaves + base_bytes(&key.1, &entry.value)
        })
        .sum();
    let small_at_first = base_bytes(b"small", b"ab");
    assert_eq!(
        live,
        sum - base_bytes(b"small", &small.value) + small_at_first
    );
}

fn base_bytes(key: &[u8], value: &[u8]) -> u64 {
    Appender::set_bytes(key.len(), value.len())
}

#[test]
fn a_leaf_and_an_edit_are_read_back_by_their_number() {
    let (disk, store) = (Simulator::new(), Store::default());
    let log = begin(&disk, options());
    run(&log, &store, [Op::Grow(key("k"), vec![7; 300])]);
    let mut appender = log.appender(None).expect("one is left");
    let entry = store.snapshot().entries[&key("k")].clone();
    let number = entry.instance().expect("it is one");
    let at = appender.edit_instance(DB, number, TREE, b"edit");
    appender.commit();
    log.turn();
    let reader = log.value_reader();
    let name = number.to_le_bytes();
    let leaf = &entry.leaves[&3];
    let read = reader.read(leaf.base, &name, 301).expect("it is whole");
    assert_eq!(read, Some([&[3][..], &[7; 300]].concat()));
    let read = reader.read(at, &name, 4).expect("it is whole");
    assert_eq!(read.as_deref(), Some(&b"edit"[..]));
    assert!(reader.read(leaf.base, b"another.", 301).is_err());
}

/// A batch tells of records of instances as of others.
#[test]
fn a_batch_tells_where_its_records_are() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let mut appender = log.appender(None).expect("the first");
    let mut batch = appender.batch();
    // The form of the value is none of a leaf.
    batch.leaf(DB, 9, HASH, b"run");
    batch.edit_instance(DB, 9, HASH, b"");
    batch.edit(DB, b"key", TREE, b"edit");
    let mut told = Vec::new();
    batch.finish(|_, record, address| {
        assert_eq!(address, None);
        let (Change::Leaf { tag, bytes } | Change::Edit { tag, bytes }) = record.change else {
            panic!("{record:?}");
        };
        let Value::Bytes(bytes) = bytes else {
            panic!("they are here");
        };
        let at = record.lsn.get();
        told.push((at, record.instance(), tag.form, tag.is_tree, bytes.to_vec()));
    });
    let first = 4096 + 16;
    let second = first + Appender::leaf_bytes(3);
    let third = second + Appender::leaf_bytes(0);
    assert_eq!(
        told,
        [
            (first, Some(9), 0, true, b"run".to_vec()),
            (second, Some(9), 2, true, Vec::new()),
            (third, None, 2, false, b"edit".to_vec()),
        ]
    );
}

#[test]
fn a_start_that_leaves_values_reads_what_collections_need() {
    let (disk, store) = (Simulator::new(), Store::default());
    let log = begin(&disk, options());
    let mut random = fastrand::Rng::with_seed(1);
    for number in 0..300 {
        let name = key(&format!("key {}", random.u8(..60)));
        let op = match random.u8(..10) {
            0 => Op::Grow(name, vec![number as u8; 800]),
            1 => Op::Edit(name, random.u8(..LEAVES), vec![1; 700]),
            2 => Op::Hash(name, vec![2; 900]),
            _ => Op::Set(name, vec![number as u8; 1000], None),
        };
        run(&log, &store, [op]);
        log.keep();
    }
    log.close().expect("all is written");
    let is_hint = |path: &PathBuf| path.extension().is_some_and(|its| its == "hint");
    assert!(disk.names().iter().any(is_hint), "{:?}", disk.names());
    let mut recovery = open(&disk, options()).expect("it is whole");
    let loaded = load_from(&mut recovery, 2, Some(0)).expect("it is whole");
    assert_eq!(loaded.snapshot(), store.snapshot());
}

#[test]
fn instances_are_what_they_were_whatever_was_emptied() {
    let (disk, store) = (Simulator::new(), Store::default());
    let log = begin(&disk, options());
    let mut random = fastrand::Rng::with_seed(2);
    for round in 0..40 {
        let ops = (0..300).map(|_| {
            let name = key(&format!("key {}", random.u8(..40)));
            match random.u16(..800) {
                0 => Op::Delete(name),
                1 => Op::Hash(name, vec![round; 100]),
                2 => Op::Set(name, vec![round; 200], None),
                // An instance outlives many segments of edits.
                3..6 => Op::Grow(name, vec![round; random.usize(..300)]),
                6..200 if round == 0 => Op::Grow(name, vec![round; 100]),
                6..60 => Op::Set(key("of more weight"), vec![round; 900], None),
                // So few that a leaf has most of them at the end.
                _ => Op::Edit(name, random.u8(..LEAVES), vec![random.u8(..); 40]),
            }
        });
        run(&log, &store, ops.collect::<Vec<_>>());
        let mut compactor = log.compactor().expect("one is left");
        log.keep();
        if round % 4 == 0 {
            log.compact_thoroughly();
        }
        while compactor.step(&store).expect("all is well") {
            log.turn();
            log.keep();
            // After any of the steps.
            assert_eq!(found(&disk), store.snapshot(), "round {round}");
        }
    }
    let status = log.status();
    // 20 % are tolerated, half a segment, and the one being written.
    let live: u64 = status.live_bytes;
    assert!(
        status.disk_bytes < live * 12 / 10 + 3 * (64 << 10),
        "{status:?}"
    );
    assert!(status.compacted_segments > 20, "{status:?}");
}

#[test]
fn edits_wait_until_the_garbage_is_due() {
    let options = Options {
        garbage_bytes: 8 << 20,
        ..options()
    };
    let (disk, store) = (Simulator::new(), Store::default());
    let log = begin(&disk, options.clone());
    let mut compactor = log.compactor().expect("the first");
    run(&log, &store, [Op::Grow(key("k"), vec![0; 50])]);
    let edits = || (0..3000).map(|number| edit("k", number as u8 % LEAVES, number as u8));
    run(&log, &store, edits());
    // Nothing lives in these, and nothing has to be done but to remove them.
    run(
        &log,
        &store,
        (0..300).map(|byte| Op::Set(key("s"), vec![byte as u8; 700], None)),
    );
    run(&log, &store, edits());
    log.keep();
    let before = segments(&disk);
    while compactor.step(&store).expect("all is well") {
        log.keep();
    }
    let after = segments(&disk);
    let gone: Vec<&PathBuf> = before.iter().filter(|path| !after.contains(path)).collect();
    assert!(gone.len() > 1, "{before:?} {after:?}");
    assert_eq!(log.status().moved_bytes, 0);
    assert!(
        gone.iter().all(|path| **path > before[1]),
        "{before:?} {after:?}"
    );
    assert!(after.len() > 6 && after[0] == before[0], "{after:?}");
    // The first has the leaves, so it is not the emptiest; of the others the oldest comes first.
    log.compact_thoroughly();
    assert!(compactor.step(&store).expect("all is well"));
    let oldest = segments(&disk);
    assert_eq!((&oldest[0], &oldest[1]), (&after[0], &after[2]));
    // Each leaf once.
    let moved = log.status().moved_bytes;
    assert!(
        (1..=4 * Appender::leaf_bytes(1501)).contains(&moved),
        "{moved}"
    );
    // They rest on later records than all edits now: of the rest, the set that names the instance counts.
    for _ in 0..4 {
        assert!(compactor.step(&store).expect("all is well"));
    }
    assert_eq!(log.status().moved_bytes, moved + base_bytes(b"k", &[0; 8]));
    assert_eq!(found(&disk), store.snapshot());
}

/// A log of some segments with two instances, the first of which is `broken`.
fn log_of_two() -> (Simulator, State) {
    let (disk, store) = (Simulator::new(), Store::default());
    let log = begin(&disk, options());
    run(
        &log,
        &store,
        [
            Op::Grow(key("broken"), vec![7; 100]),
            Op::Grow(key("whole"), vec![8; 100]),
        ],
    );
    let filler =
        (0..200).map(|byte| Op::Set(key(&format!("filler {byte}")), vec![byte; 900], None));
    run(&log, &store, filler);
    run(&log, &store, [edit("broken", 1, 9), edit("whole", 1, 9)]);
    log.close().expect("all is written");
    (disk, store.snapshot())
}

/// An instance whose first leaves are damaged is gone, with its key. If a later record is, it is what it was
/// before, and so are others that have changed since: the record could have been theirs.
#[test]
fn an_instance_that_has_lost_a_record_is_gone_or_what_it_was() {
    let (disk, state) = log_of_two();
    let entry = &state.entries[&key("broken")];
    let number = entry.instance().expect("it is one");
    // A leaf of it in the first segment, and the edit in the last one, in front of the mark of the end.
    let name = number.to_le_bytes();
    let records: Vec<(PathBuf, usize)> = segments(&disk)
        .into_iter()
        .flat_map(|path| {
            let bytes = disk.contents(&path);
            let found: Vec<usize> = (4096..bytes.len() - 32)
                .step_by(8)
                .filter(|&at| {
                    bytes[at + 16..at + 24] == name && matches!(bytes[at + 8], 0x2b | 0x2c)
                })
                .collect();
            found.into_iter().map(move |at| (path.clone(), at))
        })
        .collect();
    assert_eq!(records.len(), 5, "{records:?}");
    let name = |key: &str| format!("the key \"{key}\" in database 0");
    for (record, told) in [
        (
            2,
            format!(
                "{} is gone: nothing is left that was its value",
                name("broken")
            ),
        ),
        (4, format!("{} has an older value", name("whole"))),
    ] {
        let (path, at) = &records[record];
        let disk = disk.after_kill();
        disk.damage(path, |bytes| bytes[at + 26] ^= 4);
        let of = format!("which seem to be of the collection {number} in database 0,");
        let report = check(Arc::new(disk.clone()), directory()).expect("nobody has it");
        assert!(
            !report.is_whole() && report.to_string().contains(&of),
            "{report}"
        );
        let report = repair(Arc::new(disk.clone()), directory()).expect("nobody has it");
        assert!(report.is_whole(), "{report}");
        assert!(report.repairs.contains(&told), "{report}");
        let again = repair(Arc::new(disk.clone()), directory()).expect("nobody has it");
        assert!(again.is_whole() && again.repairs.is_empty(), "{again}");
        let mut expected = state.clone();
        if record == 2 {
            expected.entries.remove(&key("broken"));
        } else {
            for (name, byte) in [("broken", 7), ("whole", 8)] {
                let entry = expected.entries.get_mut(&key(name)).expect("it is there");
                entry.leaves.get_mut(&1).expect("it has it").value = vec![byte; 100];
            }
        }
        assert_eq!(found(&disk), expected);
    }
}
