//! Logs whose last large values did not reach the disk: they end where what they need is there.

use crate::support;

use std::path::PathBuf;

use ferrite_log::{DbId, Log, Lsn};
use support::simulator::Simulator;
use support::store::{BLOB_MIN, FullKey, Op, State, Store, load};
use support::{begin, directory, open, options};

fn key(name: &str) -> FullKey {
    (DbId(0), name.as_bytes().to_vec())
}

fn small(name: &str) -> Op {
    Op::Set(key(name), b"value".to_vec(), None)
}

fn large(name: &str, byte: u8) -> Op {
    Op::Set(key(name), vec![byte; 3 * BLOB_MIN + 1], None)
}

fn delete(name: &str) -> Op {
    Op::Delete(key(name))
}

/// A log without threads, whose changes are written and not synced but where a test says so.
struct Life {
    disk: Simulator,
    log: Log,
    store: Store,
    appender: ferrite_log::Appender,
    /// Where each change begins, and what there was before it.
    before: Vec<(Lsn, State)>,
}

impl Life {
    fn new() -> Life {
        let disk = Simulator::new();
        let log = begin(&disk, options());
        Life {
            appender: log.appender(None).expect("the first"),
            store: Store::default(),
            before: Vec::new(),
            disk,
            log,
        }
    }

    /// Makes a change, which gets to the file of the log.
    fn run(&mut self, op: Op) {
        self.before.push((self.log.tail(), self.store.snapshot()));
        self.appender.ensure(8000).expect("all is well");
        self.store.run(&self.log, &mut self.appender, &op);
        self.log.turn();
    }

    fn files(&self) -> Vec<PathBuf> {
        let blobs = directory().join("blobs");
        let mut files = self.disk.names();
        files.retain(|path| path.starts_with(&blobs));
        files
    }

    /// The process ends, and the disk has lost some of the files.
    fn after(self, lose: impl FnOnce(&Simulator, &[PathBuf])) -> (Simulator, Vec<(Lsn, State)>) {
        let disk = self.disk.after_kill();
        lose(&disk, &self.files());
        std::mem::forget((self.log, self.appender));
        (disk, self.before)
    }
}

/// Opens the log, which ends in front of the change with this number.
fn expect_end(disk: &Simulator, before: &[(Lsn, State)], number: usize) {
    let report = ferrite_log::check(std::sync::Arc::new(disk.clone()), directory());
    let report = report.expect("the disk answers");
    assert!(report.is_whole(), "{report}");
    let mut recovery = open(disk, options()).expect("it is no damage");
    let (end, state) = &before[number];
    assert_eq!(recovery.end(), *end, "{:?}", recovery.cut());
    assert_eq!(recovery.cut().is_some(), report.tail.is_some());
    let store = load(&mut recovery, 2).expect("all of it is there");
    assert_eq!(store.snapshot(), *state);
    // Once more, from what the first start has made of it.
    let log = recovery.start().expect("the disk takes it");
    let mut appender = log.appender(None).expect("the first");
    appender.ensure(8000).expect("all is well");
    store.run(&log, &mut appender, &large("after", 9));
    drop(appender);
    log.close().expect("the disk takes it");
    let mut recovery = open(disk, options()).expect("it is no damage");
    assert_eq!(recovery.cut(), None);
    let again = load(&mut recovery, 1).expect("all of it is there");
    assert_eq!(again.snapshot(), store.snapshot());
}

#[test]
fn a_value_that_is_missing_or_torn_ends_the_log() {
    let missing = |disk: &Simulator, path: &PathBuf| disk.remove(path);
    let short = |disk: &Simulator, path: &PathBuf| disk.damage(path, |bytes| bytes.truncate(100));
    let changed = |disk: &Simulator, path: &PathBuf| disk.damage(path, |bytes| bytes[9000] ^= 1);
    for lose in [missing, short, changed] {
        let mut life = Life::new();
        life.run(small("a"));
        life.run(large("b", 1));
        life.run(small("c"));
        life.run(large("d", 2));
        life.run(small("e"));
        let (disk, before) = life.after(|disk, files| lose(disk, &files[1]));
        expect_end(&disk, &before, 3);
    }
}

#[test]
fn the_first_value_that_is_missing_counts_and_a_batch_is_one_record() {
    let mut life = Life::new();
    life.run(small("a"));
    life.run(Op::Batch(vec![small("b"), large("c", 1), small("d")]));
    life.run(large("e", 2));
    let (disk, before) = life.after(|disk, files| files.iter().for_each(|file| disk.remove(file)));
    expect_end(&disk, &before, 1);
}

#[test]
fn a_value_that_was_replaced_is_not_missed() {
    for replace in [
        delete("b"),
        small("b"),
        large("b", 2),
        Op::Batch(vec![small("x"), delete("b")]),
        Op::Clear(DbId(0)),
        Op::ClearAll,
    ] {
        let mut life = Life::new();
        life.run(large("b", 1));
        life.run(small("c"));
        life.run(replace);
        life.run(small("d"));
        life.before.push((life.log.tail(), life.store.snapshot()));
        let (disk, before) = life.after(|disk, files| disk.remove(&files[0]));
        expect_end(&disk, &before, 4);
    }
}

#[test]
fn what_replaced_a_value_may_be_missing_too() {
    let mut life = Life::new();
    life.run(small("a"));
    life.run(large("b", 1));
    life.run(small("c"));
    life.run(large("b", 2));
    life.run(small("d"));
    let (disk, before) = life.after(|disk, files| files.iter().for_each(|file| disk.remove(file)));
    // Without its end the log needs the first of them, which is not there either.
    expect_end(&disk, &before, 1);
}

#[test]
fn a_log_of_nothing_but_a_torn_value_is_empty() {
    let mut life = Life::new();
    life.run(large("b", 1));
    let (disk, before) = life.after(|disk, files| disk.remove(&files[0]));
    expect_end(&disk, &before, 0);
}

#[test]
fn a_value_that_was_durable_is_damage_when_it_is_missing() {
    let mut life = Life::new();
    life.run(large("b", 1));
    life.run(small("c"));
    life.log.sync(life.log.tail()).expect("the disk takes it");
    // The mark that says so.
    life.log.turn();
    let (disk, _) = life.after(|disk, files| disk.remove(&files[0]));
    let recovery = open(&disk, options()).expect("its records are whole");
    assert_eq!(recovery.cut(), None);
    drop(recovery);
    let report = ferrite_log::check(std::sync::Arc::new(disk.clone()), directory());
    let report = report.expect("the disk answers");
    assert!(
        report.tail.is_none() && report.damage.len() == 1,
        "{report}"
    );
    assert!(report.damage[0].file.starts_with(directory().join("blobs")));
}

#[test]
fn files_are_synced_before_the_segment_that_names_them() {
    let mut life = Life::new();
    life.run(large("b", 1));
    life.run(large("c", 2));
    let syncs = |disk: &Simulator| -> Vec<String> {
        let is_sync = |line: &&String| line.contains(": sync");
        let history = disk.history();
        let lines = history.iter().filter(is_sync);
        lines
            .map(|line| line.split_once(": ").expect("a number").1.to_owned())
            .collect()
    };
    let before = syncs(&life.disk).len();
    life.log.sync(life.log.tail()).expect("the disk takes it");
    let syncs = &syncs(&life.disk)[before..];
    let files = life.files();
    let named = |path: &std::path::Path| {
        syncs
            .iter()
            .position(|line| line.ends_with(path.to_str().expect("plain")))
    };
    let segment = syncs
        .iter()
        .position(|line| line.starts_with("sync /data/log/"))
        .expect("it is synced");
    for file in &files {
        let parent = file.parent().expect("it is in a directory");
        assert!(named(file).is_some_and(|at| at < segment), "{syncs:?}");
        assert!(named(parent).is_some_and(|at| at < segment), "{syncs:?}");
    }
}

#[test]
fn what_a_start_has_found_is_durable() {
    for seed in 0..50 {
        let mut life = Life::new();
        life.run(small("a"));
        life.run(large("b", 1));
        let state = life.store.snapshot();
        let (disk, _) = life.after(|_, _| ());
        let mut recovery = open(&disk, options()).expect("nothing is lost");
        load(&mut recovery, 1).expect("all of it is there");
        let log = recovery.start().expect("the disk takes it");
        std::mem::forget(log);
        let disk = disk.after_power_loss(seed);
        let mut recovery = open(&disk, options()).expect("all of it was durable");
        let store = load(&mut recovery, 1).expect("all of it is there");
        assert_eq!(store.snapshot(), state, "seed {seed}");
        recovery.start().expect("all of it is there");
    }
}

/// A sync may fall into the time in which a record larger than the ring is written. What it makes durable
/// ends in front of that record: a position inside of it would say later that the whole record had been
/// synced.
#[test]
fn what_is_durable_never_ends_inside_of_a_record() {
    use ferrite_log::{Options, SyncPolicy, Tag};

    let disk = Simulator::new();
    let options = Options {
        sync: SyncPolicy::Always,
        ..options()
    };
    let log = begin(&disk, options);
    let mut appender = log.appender(None).expect("the first");
    let value = vec![7; 4 * log.ring_capacity() as usize];
    for number in 0..4_u8 {
        let (before, mut seen) = (log.tail(), Vec::new());
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                appender.ensure(8000).expect("all is well");
                appender.set(DbId(0), &[number], Tag::default(), None, &value);
                appender.commit()
            });
            while !writer.is_finished() || log.turn() {
                log.turn();
                seen.push(log.durable());
            }
            let end = writer.join().expect("it ends");
            assert!(end > before);
            let inside = seen.iter().find(|&&at| at > before && at < end);
            assert_eq!(inside, None, "{before:?} {end:?}");
        });
        assert_eq!(log.durable(), log.tail());
    }
}
