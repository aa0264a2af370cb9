//! Hints: a start that reads them finds what a start that reads everything finds, and values one by one.

use crate::support;

use std::path::PathBuf;

use ferrite_log::{DbId, Lsn};
use support::simulator::Simulator;
use support::store::{Op, State, Store, load, load_from};
use support::{begin, open, options};

fn key(number: u32) -> (DbId, Vec<u8>) {
    (
        DbId((number % 3) as u16),
        format!("key {number}").into_bytes(),
    )
}

/// A log of several segments with hints, and its state.
fn log_with_hints() -> (Simulator, State) {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    let mut random = fastrand::Rng::with_seed(5);
    for number in 0..1500_u32 {
        let key = key(random.u32(..200));
        let op = match random.u8(..20) {
            0 => Op::Delete(key),
            1 => Op::Expire(key, Some(1 << 44)),
            2 => Op::Patch(key, random.u64(..50), vec![1; random.usize(..50)]),
            3 => Op::Batch(vec![
                Op::Set(key, vec![2; 10], None),
                Op::Set((DbId(0), vec![7]), vec![3; 6000], None),
            ]),
            4 if number % 100 == 0 => Op::Clear(DbId(1)),
            _ => Op::Set(key, vec![number as u8; random.usize(..400)], None),
        };
        appender.ensure(20_000).expect("all is well");
        store.run(&log, &mut appender, &op);
        log.turn();
        if number % 50 == 0 {
            log.keep();
        }
    }
    log.keep();
    drop(appender);
    log.close().expect("all is written");
    (disk, store.snapshot())
}

fn hints(disk: &Simulator) -> Vec<PathBuf> {
    let names = disk.names().into_iter();
    names
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "hint")
        })
        .collect()
}

fn loaded(disk: &Simulator, leaves: bool) -> (State, u64) {
    let disk = disk.after_kill();
    let mut recovery = open(&disk, options()).expect("it is whole");
    let state = load_from(&mut recovery, 2, leaves.then_some(0))
        .expect("it is whole")
        .snapshot();
    let log = recovery.start().expect("it takes writes");
    (state, log.status().live_bytes)
}

#[test]
fn hints_say_what_the_segments_say() {
    let (disk, state) = log_with_hints();
    assert!(hints(&disk).len() >= 4, "{:?}", hints(&disk));
    let (from_segments, live) = loaded(&disk, false);
    assert_eq!(from_segments, state);
    let (from_hints, live_by_hints) = loaded(&disk, true);
    assert_eq!(from_hints, state);
    assert_eq!(live, live_by_hints);
    for (key, entry) in &from_segments.entries {
        assert_eq!(entry.address, from_hints.entries[key].address);
    }
}

#[test]
fn hints_are_used_when_they_are_there() {
    let (disk, state) = log_with_hints();
    // Values damaged in a segment with a hint are found when they are read, not at the start.
    let hint = hints(&disk)[0].clone();
    let segment = hint.with_extension("log");
    disk.damage(&segment, |bytes| bytes.truncate(4096));
    disk.damage(&segment, |bytes| bytes.resize(1 << 18, 0));
    let mut recovery = open(&disk, options()).expect("sizes are right");
    assert!(load(&mut recovery, 1).is_err());
    let _ = state;
}

#[test]
fn a_hint_that_is_damaged_is_not_used() {
    let (disk, state) = log_with_hints();
    let path = hints(&disk)[1].clone();
    let len = disk.contents(&path).len();
    for at in (0..len).step_by(131).chain(0..60) {
        let disk = disk.after_kill();
        disk.damage(&path, |bytes| bytes[at] ^= 0x10);
        let mut recovery = open(&disk, options()).expect("it is whole");
        assert_eq!(
            load_from(&mut recovery, 1, Some(0))
                .expect("the segment is there")
                .snapshot(),
            state,
            "byte {at}"
        );
    }
    for cut in (0..len).step_by(997) {
        let disk = disk.after_kill();
        disk.damage(&path, |bytes| bytes.truncate(cut));
        let mut recovery = open(&disk, options()).expect("it is whole");
        assert_eq!(
            load_from(&mut recovery, 1, Some(0))
                .expect("the segment is there")
                .snapshot(),
            state,
            "cut {cut}"
        );
    }
}

#[test]
fn single_values_are_read_and_checked() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    let full = key(0);
    for len in [0, 1, 300, 3000, 9000] {
        appender.ensure(20_000).expect("all is well");
        store.run(
            &log,
            &mut appender,
            &Op::Set(full.clone(), vec![7; len], None),
        );
        let address = store.snapshot().entries[&full]
            .address
            .expect("it is in the log");
        let reader = log.value_reader();
        let read = |guess| reader.read(address.lsn(), &full.1, guess);
        // It is in no file yet.
        assert_eq!(read(0).expect("it can be asked"), Some(vec![7; len]));
        log.turn();
        // A wrong guess of the length costs a second read.
        for guess in [len as u64, 0, 20_000] {
            assert_eq!(read(guess).expect("it is whole"), Some(vec![7; len]));
        }
        assert!(reader.read(address.lsn(), b"another key", 10).is_err());
        assert_eq!(
            reader
                .read(Lsn::new(1 << 40), b"k", 10)
                .expect("it can be asked"),
            None
        );
    }
    let address = store.snapshot().entries[&full]
        .address
        .expect("it is in the log");
    let segment = disk
        .names()
        .into_iter()
        .rfind(|path| path.extension().is_some_and(|e| e == "log"))
        .expect("one");
    disk.damage(&segment, |bytes| {
        bytes[address.lsn().get() as usize + 10] ^= 1
    });
    assert!(log.value_reader().read(address.lsn(), &full.1, 10).is_err());
}
