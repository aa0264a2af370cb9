//! A sweep reads what segments hold: every value that a start could have left there.

use crate::support;

use std::collections::BTreeMap;

use ferrite_log::{Change, DbId, Log, Replayed, Sweep, Value};
use support::simulator::Simulator;
use support::store::{Op, Store, load};
use support::{open, options};

/// Keys and values by their places.
type Values = BTreeMap<u64, (Vec<u8>, Vec<u8>)>;

/// What a sweep hands over, and how many problems there were.
fn swept(sweep: &mut Sweep) -> (Values, usize) {
    let (mut values, mut problems) = (BTreeMap::new(), 0);
    let mut last = None;
    loop {
        let hash = |_: DbId, key: &[u8]| (key.len() as u64) << 56;
        let mut hashes = Vec::new();
        let read = sweep.next(hash, |records: &[Replayed<'_>]| {
            for replayed in records {
                hashes.push(replayed.hash);
                let record = replayed.record;
                let Change::Set {
                    value: Value::Bytes(value),
                    ..
                } = record.change
                else {
                    panic!("only values are handed over");
                };
                let before = values.insert(record.lsn.get(), (record.key.to_vec(), value.to_vec()));
                assert!(before.is_none(), "each record once");
            }
        });
        assert!(hashes.is_sorted());
        match read {
            Ok(Some(bytes)) => assert!(bytes > 0),
            Ok(None) => return (values, problems),
            Err(_) => problems += 1,
        }
        let (done, total) = sweep.progress();
        assert!(last < Some(done) && done <= total);
        last = Some(done);
    }
}

/// A log of several segments, begun again, and what is in it.
fn log() -> (Simulator, Log, Store) {
    let disk = Simulator::new();
    let log = open(&disk, options()).expect("it is new").start();
    let log = log.expect("it is empty");
    let store = Store::default();
    let mut appender = log.appender(None).expect("the first");
    let mut random = fastrand::Rng::with_seed(11);
    for number in 0..1200_u32 {
        let key = |name: u32| (DbId(0), format!("{name:->9}").into_bytes());
        let name = random.u32(..300);
        let op = match random.u8(..20) {
            0 => Op::Delete(key(name)),
            1 => Op::Expire(key(name), Some(1 << 44)),
            2 => Op::Batch(vec![
                Op::Set(key(name), vec![2; 10], None),
                Op::Set(key(1000 + name), vec![3; 6000], None),
            ]),
            _ => Op::Set(key(name), vec![number as u8; random.usize(..400)], None),
        };
        appender.ensure(20_000).expect("all is well");
        store.run(&log, &mut appender, &op);
        log.turn();
        if number % 50 == 0 {
            log.keep();
        }
    }
    drop(appender);
    log.close().expect("all is written");
    let mut recovery = open(&disk, options()).expect("it is whole");
    let store = load(&mut recovery, 1).expect("it is whole");
    let log = recovery.start().expect("it takes writes");
    (disk, log, store)
}

#[test]
fn every_value_comes_once() {
    let (_disk, log, store) = log();
    let (values, problems) = swept(&mut log.sweep());
    assert_eq!(problems, 0);
    let state = store.snapshot();
    assert!(state.entries.len() > 300 && values.len() > state.entries.len());
    for ((_, key), entry) in &state.entries {
        let address = entry.address.expect("it is in the log");
        if address.is_blob() {
            continue;
        }
        let (its_key, value) = &values[&address.lsn().get()];
        assert_eq!((its_key, value), (key, &entry.value));
    }
}

#[test]
fn damage_costs_the_rest_of_its_segment_alone() {
    let (disk, log, _) = log();
    let (all, _) = swept(&mut log.sweep());
    let mut segments: Vec<_> = disk
        .names()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    segments.sort();
    assert!(segments.len() >= 4);
    disk.damage(&segments[1], |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    });
    let (values, problems) = swept(&mut log.sweep());
    assert_eq!(problems, 1);
    assert!(values.len() < all.len() && values.len() > all.len() / 2);
    assert!(values.iter().all(|(lsn, value)| all[lsn] == *value));
}
