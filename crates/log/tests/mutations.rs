//! Directories of logs that were changed behind the log's back: bits flipped, files cut, emptied, deleted,
//! exchanged, doubled.
//!
//! For every such directory: a start finds the data as it was, or says which file is damaged. Whatever a
//! start refuses, a check finds damaged, and a repair makes it start. Nothing panics, and no value is one
//! that its key never had.
//!
//! `FERRITE_SEEDS` directories are tried, `FERRITE_SECONDS` go on for so long, `FERRITE_SEED` is the first or
//! only one. A seed repeats itself.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ferrite_log::{DbId, Error, Log, Lsn, check};
use support::simulator::Simulator;
use support::store::{BLOB_MIN, FullKey, Op, State, Store, load};
use support::trees::repair;
use support::trees::{Contents, LEAVES};
use support::{directory, open, options};
use sys::file::Files;

/// Logs that are changed in many ways each.
const PER_LOG: u64 = 25;

/// A log, and everything that it ever was.
struct Written {
    disk: Simulator,
    /// Where each change ends, and the state then.
    steps: Vec<(Lsn, State)>,
    /// Values that each key had.
    values: BTreeMap<FullKey, BTreeSet<Contents>>,
    is_closed: bool,
}

fn random_key(random: &mut fastrand::Rng) -> FullKey {
    let db = DbId(random.u16(..2));
    (db, format!("key {}", random.u8(..12)).into_bytes())
}

fn random_value(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = match random.u8(..10) {
        0 => BLOB_MIN + random.usize(..3000),
        1..5 => random.usize(1000..4000),
        _ => random.usize(..40),
    };
    vec![random.u8(..); len]
}

fn random_op(random: &mut fastrand::Rng) -> Op {
    let expiry = |random: &mut fastrand::Rng| (random.u8(..4) == 0).then(|| random.i64(1..2000));
    match random.u8(..55) {
        0..20 => Op::Set(random_key(random), random_value(random), expiry(random)),
        20..24 => Op::Delete(random_key(random)),
        24..27 => Op::Expire(random_key(random), expiry(random)),
        27..33 => Op::Patch(random_key(random), random.u64(..60), vec![7; 20]),
        33..38 => Op::Batch(
            (0..random.u8(1..5))
                .map(|_| Op::Set(random_key(random), random_value(random), None))
                .collect(),
        ),
        38..41 => Op::Hash(random_key(random), vec![random.u8(..); 30]),
        41..44 => Op::Grow(random_key(random), vec![random.u8(..); 300]),
        44..53 => Op::Edit(random_key(random), random.u8(..LEAVES), vec![7; 20]),
        53 => Op::Clear(DbId(random.u16(..2))),
        _ => Op::Swap(0, 1),
    }
}

impl Written {
    fn note(&mut self, end: Lsn, state: State) {
        for (key, entry) in &state.entries {
            let values = self.values.entry(key.clone()).or_default();
            values.insert(entry.contents());
        }
        self.steps.push((end, state));
    }

    /// Writes a log in some lives, with compaction.
    fn new(random: &mut fastrand::Rng) -> Written {
        let mut written = Written {
            disk: Simulator::new(),
            steps: vec![(Lsn::FIRST, State::default())],
            values: BTreeMap::new(),
            is_closed: false,
        };
        for _ in 0..random.u8(1..4) {
            let mut recovery = open(&written.disk, options()).expect("it is whole");
            let store = load(&mut recovery, 1).expect("it is whole");
            let log = recovery.start().expect("it is whole");
            written.live(&log, &store, random);
            written.is_closed = random.u8(..4) > 0;
            if written.is_closed {
                log.close().expect("all is well");
            } else {
                drop(log.sync(log.tail()));
                std::mem::forget(log);
                written.disk = written.disk.after_kill();
            }
        }
        written
    }

    fn live(&mut self, log: &Log, store: &Store, random: &mut fastrand::Rng) {
        let mut appender = log.appender(None).expect("the first");
        let mut compactor = log.compactor().expect("the second");
        for _ in 0..random.u8(20..200) {
            appender.ensure(8000).expect("all is well");
            let op = random_op(random);
            let end = store.run(log, &mut appender, &op);
            self.note(end, store.snapshot());
            log.turn();
            match random.u8(..12) {
                0 => drop(log.sync(end)),
                1 => {
                    log.keep();
                    log.compact_thoroughly();
                    compactor.step(store).expect("all is well");
                }
                _ => {}
            }
        }
    }

    /// The state where a log ends.
    fn state_at(&self, end: Lsn) -> &State {
        let step = self.steps.partition_point(|(step, _)| *step <= end);
        &self.steps[step - 1].1
    }
}

fn pick<'f>(random: &mut fastrand::Rng, files: &'f [PathBuf]) -> &'f Path {
    &files[random.usize(..files.len())]
}

/// Puts bytes into a file, or takes some out; what was done.
fn shift(disk: &Simulator, path: &Path, at: usize, random: &mut fastrand::Rng) -> String {
    let (name, len) = (path.display(), disk.contents(path).len());
    let at = at.min(len);
    let count = random.usize(1..9000);
    if random.bool() {
        let block = vec![random.u8(..3); count];
        disk.damage(path, |bytes| drop(bytes.splice(at..at, block)));
        return format!("{count} bytes put in at {at} of {len} of {name}");
    }
    let end = (at + count).min(len);
    disk.damage(path, |bytes| drop(bytes.drain(at..end)));
    format!("bytes from {at} to {end} of {len} of {name} taken out")
}

/// Changes the directory; what was done.
fn mutate(disk: &Simulator, random: &mut fastrand::Rng) -> String {
    let files: Vec<PathBuf> = disk.names();
    if files.is_empty() {
        return "nothing is left".to_owned();
    }
    let path = pick(random, &files);
    let len = disk.contents(path).len();
    let name = path.display();
    let at = random.usize(..len.max(1));
    match random.u8(..13) {
        0..3 => {
            let bit = random.u8(..8);
            disk.damage(path, |bytes| {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            });
            format!("flip bit {bit} of byte {at} of {len} in {name}")
        }
        3 => {
            // Where something is, and not in the space behind it.
            let used = disk.contents(path).iter().rposition(|&byte| byte != 0);
            let at = at.min(random.usize(..used.unwrap_or(0) + 2));
            disk.damage(path, |bytes| bytes.truncate(at));
            format!("cut {name} at {at} of {len}")
        }
        4 => {
            disk.remove(path);
            format!("delete {name}")
        }
        5 | 6 => {
            let kind = path.extension();
            let alike: Vec<PathBuf> = files
                .iter()
                .filter(|path| path.extension() == kind)
                .cloned()
                .collect();
            let other = pick(random, &alike);
            let (mine, its) = (disk.contents(path), disk.contents(other));
            disk.damage(path, |bytes| *bytes = its);
            if random.bool() {
                disk.damage(other, |bytes| *bytes = mine);
                return format!("exchange {name} and {}", other.display());
            }
            format!("copy {} to {name}", other.display())
        }
        7 => {
            let end = (at + random.usize(..5000)).min(len);
            disk.damage(path, |bytes| bytes[at.min(end)..end].fill(0));
            format!("zeroes from {at} to {end} of {len} in {name}")
        }
        8 => {
            let (from, count) = (random.usize(..len.max(1)), random.usize(..3000));
            disk.damage(path, |bytes| {
                let part = bytes[from.min(len)..(from + count).min(len)].to_vec();
                let end = (at + part.len()).min(bytes.len());
                bytes[at.min(end)..end].copy_from_slice(&part[..end - at.min(end)]);
            });
            format!("copy {count} bytes at {from} of {name} to {at}")
        }
        10 | 11 => shift(disk, path, at, random),
        9 => {
            disk.damage(path, |bytes| bytes.extend([random.u8(..2); 700]));
            format!("700 bytes behind {name}")
        }
        _ => {
            let first = 0x1000 + 8 * random.u64(..20_000);
            let double = directory().join(format!("log/{first:016x}.log"));
            if let Ok(file) = disk.create(&double) {
                let bytes = disk.contents(path);
                file.write_at(&bytes, 0).expect("there is room");
            }
            format!("copy {name} to {}", double.display())
        }
    }
}

/// How a start ends: the log and what is in it, or what is said to be damaged.
fn start(disk: &Simulator, what: &str) -> Result<(Lsn, Log, Store), Error> {
    let mut recovery = open(disk, options())?;
    let end = recovery.end();
    let loaded = load(&mut recovery, 1);
    match loaded {
        Ok(store) => Ok((end, recovery.start()?, store)),
        // A server that does not read large values at the start learns it where all of them are looked at.
        Err(Error::Io { path, error, .. }) if path.starts_with("/data/blobs") => {
            let refused = recovery.start().map(drop);
            Err(refused.expect_err(&format!("{what}: {error}")))
        }
        Err(error) => Err(error),
    }
}

/// Lets compaction read everything, and writes something.
fn go_on(log: Log, store: &Store) {
    let mut appender = log.appender(None).expect("the first");
    let mut compactor = log.compactor().expect("the second");
    let key = (DbId(9), b"later".to_vec());
    for number in 0..8 {
        appender.ensure(8000).expect("all is well");
        store.run(
            &log,
            &mut appender,
            &Op::Set(key.clone(), vec![number; 3000], None),
        );
        log.turn();
        log.keep();
        log.compact_thoroughly();
        compactor.step(store).expect("all is well");
    }
    drop((appender, compactor));
    log.close().expect("all is well");
}

fn try_one(written: &Written, random: &mut fastrand::Rng, what: &str, tally: &mut [u64; 3]) {
    let disk = written.disk.after_kill();
    let count = 1 + random.u8(..4) / 2;
    let done: Vec<String> = (0..count).map(|_| mutate(&disk, random)).collect();
    let what = &format!("{what}: {}", done.join(", then "));
    let before = disk.after_kill();
    let opened = start(&disk.after_kill(), what);
    let report = check(Arc::new(disk.clone()), directory());
    let is_refused = opened.is_err();
    match opened {
        Ok((end, log, store)) => {
            tally[0] += 1;
            // Without the proof of a clean stop, the log may have ended earlier.
            let is_proven = before.names().contains(&directory().join("CLOSED"));
            let expected = match written.is_closed && is_proven {
                true => &written.steps[written.steps.len() - 1].1,
                false => written.state_at(end),
            };
            assert!(store.snapshot() == *expected, "{what}");
            go_on(log, &store);
        }
        Err(Error::Damage(damage)) => {
            tally[1] += 1;
            assert!(!damage.reason.is_empty(), "{what}");
            let report = report
                .as_ref()
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(
                !report.is_whole(),
                "{what}: a start says {damage}\n{report}"
            );
        }
        Err(error) => panic!("{what}: {error}"),
    }
    if let Err(error) = &report
        && !matches!(error, Error::Missing(_))
    {
        panic!("{what}: {error}");
    }
    let names = |disk: &Simulator| -> Vec<(PathBuf, Vec<u8>)> {
        let names = disk.names().into_iter();
        names
            .map(|name| (name.clone(), disk.contents(&name)))
            .collect()
    };
    assert!(
        names(&disk) == names(&before),
        "{what}: a check changes nothing"
    );
    mend(written, &disk, is_refused, what, tally);
}

/// Repairs a directory, and starts with what is left.
fn mend(written: &Written, disk: &Simulator, is_refused: bool, what: &str, tally: &mut [u64; 3]) {
    let repaired = repair(Arc::new(disk.clone()), directory());
    let report = repaired.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(report.is_whole(), "{what}: {report}");
    assert!(
        !is_refused || !report.repairs.is_empty(),
        "{what}: {report}"
    );
    tally[2] += u64::from(!report.repairs.is_empty());
    let (_, log, store) = start(&disk.after_kill(), what)
        .unwrap_or_else(|error| panic!("{what}: repaired, and yet {error}\n{report}"));
    for (key, entry) in &store.snapshot().entries {
        let values = written.values.get(key);
        assert!(
            values.is_some_and(|values| values.contains(&entry.contents())),
            "{what}: {key:?} is {entry:?}\n{report}"
        );
    }
    go_on(log, &store);
    let again = repair(Arc::new(disk.clone()), directory()).expect("it went well before");
    assert!(
        again.repairs.is_empty() && again.is_whole(),
        "{what}: {again}"
    );
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

#[test]
fn a_changed_directory_is_right_or_refused_and_mended() {
    let first = number("FERRITE_SEED").unwrap_or(1);
    let logs = number("FERRITE_SEEDS").unwrap_or(500) / PER_LOG;
    let until =
        number("FERRITE_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut tally = [0; 3];
    for seed in first.. {
        let is_over = match until {
            Some(until) => Instant::now() >= until,
            None => seed >= first + logs.max(1),
        };
        if is_over {
            break;
        }
        let mut random = fastrand::Rng::with_seed(seed);
        let written = Written::new(&mut random);
        for number in 0..PER_LOG {
            let mut random = fastrand::Rng::with_seed(seed << 32 | number);
            try_one(
                &written,
                &mut random,
                &format!("seed {seed}, {number}"),
                &mut tally,
            );
        }
    }
    let [right, refused, mended] = tally;
    println!("{right} right, {refused} refused, {mended} mended");
    assert!(right > 0 && refused > 0 && mended > 0);
}
