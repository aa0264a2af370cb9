//! Power losses: after any of them, at any call of the disk, the store is what it was after some change, none
//! that was durable is missing, and the log goes on. And deaths of the process alone: none is missing at all.

use crate::support;

use ferrite_log::{DbId, Log, Lsn, Options, Recovery, SyncPolicy};
use support::options;
use support::simulator::{Fault, FaultKind, Simulator};
use support::store::{FullKey, Op, State, Store, load};
use support::trees::LEAVES;

/// A store, and what it was after every change.
struct History {
    /// Where the change's last record ends, and the state then.
    steps: Vec<(Lsn, State)>,
    durable: Lsn,
    /// The process died by itself, with a disk that did what it was told: nothing is lost.
    is_lossless: bool,
    /// The time: what has expired by now is gone.
    now: i64,
}

fn random_key(random: &mut fastrand::Rng) -> FullKey {
    let db = DbId(random.u16(..3));
    (db, format!("key {}", random.u8(..20)).into_bytes())
}

fn random_value(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = match random.u8(..10) {
        0..3 => random.usize(..8000),
        // Of several pieces, with checksums of their own.
        3 if random.u8(..8) == 0 => random.usize(60_000..200_000),
        _ => random.usize(..40),
    };
    vec![random.u8(..); len]
}

fn random_op(random: &mut fastrand::Rng, in_batch: bool) -> Op {
    let expiry = |random: &mut fastrand::Rng| (random.u8(..4) == 0).then(|| random.i64(1..2000));
    let few = |random: &mut fastrand::Rng| {
        let len = random.usize(..400);
        vec![random.u8(..); len]
    };
    match random.u8(..if in_batch { 80 } else { 100 }) {
        0..30 => Op::Set(random_key(random), random_value(random), expiry(random)),
        30..40 => Op::Delete(random_key(random)),
        40..48 => Op::Expire(random_key(random), expiry(random)),
        48..58 => Op::Patch(random_key(random), random.u64(..60), random_value(random)),
        58..60 => Op::Clear(DbId(random.u16(..3))),
        60..63 => Op::Hash(random_key(random), few(random)),
        63..67 => Op::Grow(random_key(random), few(random)),
        67..80 => Op::Edit(random_key(random), random.u8(..LEAVES), few(random)),
        80..86 => Op::Series(
            (0..random.u8(2..6))
                .map(|_| {
                    let mut value = random_value(random);
                    value.truncate(4000);
                    (random_key(random), value)
                })
                .collect(),
        ),
        86..97 => Op::Batch(
            (0..random.u8(..6))
                .map(|_| random_op(random, true))
                .collect(),
        ),
        97 => Op::ClearAll,
        _ => Op::Swap(random.u16(..3), random.u16(..3)),
    }
}

/// Makes changes until the disk fails or there were enough.
fn run(
    log: &Log,
    store: &Store,
    random: &mut fastrand::Rng,
    changes: usize,
    history: &mut History,
) {
    let mut appender = log.appender(None).expect("the first");
    for _ in 0..changes {
        if appender.ensure(20_000).is_err() {
            break;
        }
        let end = store.run(log, &mut appender, &random_op(random, false));
        history.steps.push((end, store.snapshot()));
        match random.u8(..20) {
            0..8 => drop(log.turn()),
            8 | 9 => drop(log.sync(end)),
            10 => log.keep(),
            11 => {
                log.keep();
                if let Some(mut compactor) = log.compactor() {
                    drop(compactor.step(store));
                }
            }
            _ => {}
        }
        if random.u8(..100) == 0 {
            history.now += random.i64(0..300);
            let end = store.expire(history.now, &mut appender);
            history.steps.push((end, store.snapshot()));
        }
        // What is durable on a disk that has lost its power is what was before.
        if log.refusal().is_none() {
            history.durable = log.durable();
        }
    }
}

/// Opens after a crash and compares: the number of changes that survived.
fn survive(
    disk: &Simulator,
    history: &mut History,
    options: &Options,
    seed: u64,
) -> (Store, Recovery) {
    let mut recovery = support::open(disk, options.clone()).unwrap_or_else(|error| {
        panic!("seed {seed}: {error}\n{}", disk.history().join("\n"));
    });
    let end = recovery.end();
    assert!(
        end >= history.durable,
        "seed {seed}: durable is {} and the log ends at {end}: {:?}\n{}",
        history.durable,
        recovery.cut(),
        disk.history().join("\n")
    );
    let store = load(&mut recovery, 2).unwrap_or_else(|error| {
        panic!("seed {seed}: {error}\n{}", disk.history().join("\n"));
    });
    let survived = history
        .steps
        .partition_point(|(step_end, _)| *step_end <= end);
    let expected = survived
        .checked_sub(1)
        .map_or_else(State::default, |step| history.steps[step].1.clone());
    let made = history.steps.len();
    assert!(
        !std::mem::take(&mut history.is_lossless) || survived == made,
        "seed {seed}: {survived} of {made} changes survived the process: the log ends at {end}\n{}",
        disk.history().join("\n")
    );
    let (found, expected) = (
        store.snapshot().living(history.now),
        expected.living(history.now),
    );
    for (key, entry) in &found.entries {
        let wanted = expected.entries.get(key);
        assert_eq!(
            Some(entry),
            wanted,
            "seed {seed}: {key:?} at {end}, time {}",
            history.now
        );
    }
    let lost = expected
        .entries
        .iter()
        .find(|(key, _)| !found.entries.contains_key(*key));
    assert_eq!(lost, None, "seed {seed}: at {end}, time {}", history.now);
    history.steps.truncate(survived);
    (store, recovery)
}

/// Large values are made durable by themselves under `always`, and with the log otherwise.
fn policy_of(seed: u64) -> SyncPolicy {
    match seed % 4 {
        0 => SyncPolicy::Always,
        1 => SyncPolicy::Never,
        _ => SyncPolicy::EverySecond,
    }
}

/// One life after the other on one disk, each ended by a crash.
fn lives(seed: u64, count: usize, changes: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut disk = Simulator::new();
    let mut history = History {
        steps: Vec::new(),
        durable: Lsn::FIRST,
        is_lossless: false,
        now: 0,
    };
    let options = Options {
        sync: policy_of(seed),
        ..options()
    };
    for life in 0..count {
        let (store, recovery) = survive(&disk, &mut history, &options, seed);
        // The state as it was found counts from here on, whichever change left it.
        let end = recovery.end();
        history.steps.push((end, store.snapshot()));
        let calls = disk.calls();
        if random.bool() {
            let call = calls + random.u64(..200);
            disk.set_fault(Some(Fault {
                call,
                kind: FaultKind::PowerLoss,
            }));
        }
        let mut is_well = false;
        if let Ok(log) = recovery.start() {
            // What was found is durable when the log takes writes, not before.
            history.durable = history.durable.max(end);
            run(&log, &store, &mut random, changes, &mut history);
            is_well = log.refusal().is_none();
            if random.u8(..4) == 0 {
                drop(log.close());
            } else {
                std::mem::forget(log);
            }
        }
        disk = match random.u8(..5) {
            0 | 1 => {
                history.is_lossless = is_well;
                disk.after_kill()
            }
            _ => disk.after_power_loss(random.u64(..)),
        };
        let _ = life;
    }
    survive(&disk, &mut history, &options, seed);
}

/// FERRITE_SEEDS makes the random tests longer.
fn seeds(few: u64) -> u64 {
    std::env::var("FERRITE_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(few)
}

#[test]
fn random_lives() {
    for seed in 0..seeds(150) {
        lives(seed, 5, 120);
    }
}

/// Every call of a short run is the last one.
#[test]
fn power_is_lost_at_every_call() {
    let mut call = 0;
    loop {
        let disk = Simulator::new();
        disk.set_fault(Some(Fault {
            call,
            kind: FaultKind::PowerLoss,
        }));
        let mut history = History {
            steps: Vec::new(),
            durable: Lsn::FIRST,
            is_lossless: false,
            now: 0,
        };
        let mut random = fastrand::Rng::with_seed(3);
        if let Ok(recovery) = support::open(&disk, options())
            && let Ok(log) = recovery.start()
        {
            run(&log, &Store::default(), &mut random, 120, &mut history);
            drop(log.close());
        }
        for seed in 0..4 {
            let mut history = History {
                steps: history.steps.clone(),
                durable: history.durable,
                is_lossless: false,
                now: history.now,
            };
            survive(&disk.after_power_loss(seed), &mut history, &options(), call);
        }
        if disk.calls() <= call {
            assert!(call > 50, "there were calls to fail");
            return;
        }
        call += 1;
    }
}

/// Every call of a short run fails, once. Then nothing more is accepted, or all goes on; after a power loss
/// all that was called durable is there.
#[test]
fn every_call_fails() {
    for kind in [std::io::ErrorKind::Other, std::io::ErrorKind::StorageFull] {
        let mut call = 0;
        loop {
            let disk = Simulator::new();
            disk.set_fault(Some(Fault {
                call,
                kind: FaultKind::Error(kind),
            }));
            let mut history = History {
                steps: Vec::new(),
                durable: Lsn::FIRST,
                is_lossless: false,
                now: 0,
            };
            let mut random = fastrand::Rng::with_seed(4);
            if let Ok(recovery) = support::open(&disk, options())
                && let Ok(log) = recovery.start()
            {
                run(&log, &Store::default(), &mut random, 120, &mut history);
                drop(log.close());
            }
            for seed in 0..3 {
                let mut history = History {
                    steps: history.steps.clone(),
                    durable: history.durable,
                    is_lossless: false,
                    now: history.now,
                };
                survive(&disk.after_power_loss(seed), &mut history, &options(), call);
            }
            survive(&disk.after_kill(), &mut history, &options(), call);
            if disk.calls() <= call {
                break;
            }
            call += 1;
        }
    }
}
