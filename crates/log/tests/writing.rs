//! How records get to the disk: past the page cache or through it, in how much space, and what is known of
//! them then.

use crate::support;

use std::sync::Arc;

use ferrite_log::{Appender, DbId, Log, Options};
use support::simulator::Simulator;
use support::store::{Op, Store, load};
use support::{begin, open, options};
use sys::file::Disk;

fn set(number: u32, value: usize) -> Op {
    let key = format!("key:{number:012}").into_bytes();
    Op::Set((DbId(0), key), vec![number as u8; value], None)
}

fn append(store: &Store, log: &Log, appender: &mut Appender, op: &Op) {
    appender.ensure(16_000).expect("all is well");
    store.run(log, appender, op);
}

#[test]
fn much_goes_past_the_cache_and_little_through_it() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    append(&store, &log, &mut appender, &set(0, 16));
    log.turn();
    assert_eq!(disk.direct_bytes(), 0);
    // The block that has a beginning already, whole blocks, and the beginning of one more.
    for number in 0..4 {
        append(&store, &log, &mut appender, &set(number, 3000));
    }
    log.turn();
    assert_eq!(disk.direct_bytes(), 4096);
    // Everything is written, however much it is.
    for number in 0..11 {
        append(&store, &log, &mut appender, &set(number, 3000));
    }
    log.turn();
    assert!(disk.direct_bytes() > 4096);
    assert_eq!(log.status().written, log.tail());
    drop(appender);
    log.close().expect("all is written");
    let mut recovery = open(&disk, options()).expect("it is whole");
    let loaded = load(&mut recovery, 1).expect("it is whole");
    assert_eq!(loaded.snapshot(), store.snapshot());
}

#[test]
fn bursts_of_any_size_are_on_a_real_disk_as_they_were_written() {
    let root = std::env::temp_dir().join(format!("ferrite-writing-{}", std::process::id()));
    let options = Options {
        segment_bytes: 3 << 18,
        ring_bytes: 1 << 18,
        appenders: 3,
        blob_min: 8 << 10,
        reserve_bytes: 0,
        ..Options::default()
    };
    let mut random = fastrand::Rng::with_seed(11);
    let store = Store::default();
    for life in 0..2 {
        let mut recovery =
            Log::open(Arc::new(Disk), &root, options.clone()).expect("it can be opened");
        assert_eq!(recovery.cut(), None);
        let loaded = load(&mut recovery, 2).expect("it is whole");
        assert_eq!(loaded.snapshot(), store.snapshot(), "life {life}");
        let log = recovery.start().expect("there is space");
        let mut appender = log.appender(None).expect("the first");
        for _ in 0..60 {
            for _ in 0..1 << random.u32(0..7) {
                let value = random.usize(..3000);
                append(&store, &log, &mut appender, &set(random.u32(..300), value));
            }
            let end = appender.commit();
            if random.u8(..4) == 0 {
                log.sync(end).expect("all is well");
            }
        }
        drop(appender);
        log.close().expect("all is written");
    }
    let _ = std::fs::remove_dir_all(&root);
}

#[test]
fn a_small_log_takes_space_for_one_segment() {
    let options = Options {
        segment_bytes: 1 << 20,
        ..options()
    };
    let disk = Simulator::new();
    let log = begin(&disk, options.clone());
    log.keep();
    let alone = disk.used();
    assert!(alone < 5 << 18, "{alone}");
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    let mut number = 0;
    while log.tail().get() < options.segment_bytes / 2 {
        append(&store, &log, &mut appender, &set(number, 1000));
        log.turn();
        log.keep();
        number += 1;
    }
    assert_eq!(disk.used(), alone);
    for number in 0..10 {
        append(&store, &log, &mut appender, &set(number, 1000));
    }
    log.turn();
    log.keep();
    assert!(disk.used() >= alone + options.segment_bytes);
    drop(appender);
    log.close().expect("all is written");
}

#[test]
fn what_a_segment_holds_is_known_without_reading_it() {
    let disk = Simulator::new();
    let log = begin(&disk, options());
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    let mut random = fastrand::Rng::with_seed(3);
    for number in 0..2000 {
        let op = match random.u8(..10) {
            0 => Op::Delete((DbId(0), format!("key:{:012}", number / 2).into_bytes())),
            1 => Op::Batch((0..4).map(|_| set(random.u32(..2000), 40)).collect()),
            2 => set(number, 9000),
            _ => set(number, 100),
        };
        append(&store, &log, &mut appender, &op);
        if random.bool() {
            log.turn();
        }
    }
    drop(appender);
    // Ends the segment that runs.
    log.backup("/backup".as_ref()).expect("there is none");
    let known = log.status();
    log.close().expect("all is written");
    // A start counts what it reads.
    let mut recovery = open(&disk, options()).expect("it is whole");
    load(&mut recovery, 1).expect("it is whole");
    let counted = recovery.start().expect("there is space").status();
    assert!(known.tombstone_bytes > 0 && known.live_bytes > 0);
    assert_eq!(known.tombstone_bytes, counted.tombstone_bytes);
    assert_eq!(known.live_bytes, counted.live_bytes);
}

#[test]
fn hints_are_where_they_save_something() {
    for (value, has_hints) in [(16, false), (200, true)] {
        let disk = Simulator::new();
        let log = begin(&disk, options());
        let store = Store::default();
        let mut appender = log.appender(None).expect("the first");
        for number in 0..4000 {
            append(&store, &log, &mut appender, &set(number, value));
            log.turn();
        }
        log.keep();
        let is_hint = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "hint");
        assert!(log.status().segments > 2);
        assert_eq!(disk.names().iter().any(is_hint), has_hints, "{value}");
        drop(appender);
        log.close().expect("all is written");
    }
}

/// What a record takes beside key and value: the budget.
#[test]
fn a_record_costs_32_bytes_at_most() {
    for value in [16, 100] {
        let disk = Simulator::new();
        let log = begin(
            &disk,
            Options {
                segment_bytes: 1 << 20,
                ..options()
            },
        );
        let store = Store::default();
        let mut appender = log.appender(None).expect("the first");
        let count = 100_000 / (value as u32 + 16);
        for number in 0..count {
            append(&store, &log, &mut appender, &set(number, value));
            log.turn();
        }
        drop(appender);
        log.close().expect("all is written");
        // Header of the segment and marks included.
        let bytes = disk.used() / u64::from(count);
        assert!(bytes - 16 - value as u64 <= 32, "{bytes}");
    }
}
