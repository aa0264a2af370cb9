//! Any bytes as a segment, and a whole log with any bytes changed: opening, replaying, checking and repairing never panic;
//! what was repaired opens, and a second repair finds nothing to do.
//!
//! The first byte of an input chooses: even, the rest is a segment's records (behind a header that is right) or a whole
//! file; odd, the rest is a list of changes (position, value) to a log that was written. Under the fuzzer the checksums of
//! records are not compared, or it would never come past them.

#![no_main]

#[path = "../../crates/log/tests/support/simulator.rs"]
mod simulator;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use ferrite_log::{
    DbId, Liveness, Log, Options, Rebind, Record, ReplayOptions, Replayed, Replayer, Tag, check, repair,
};
use libfuzzer_sys::fuzz_target;
use simulator::Simulator;

struct Nothing;

impl Replayer for Nothing {
    fn hash(&self, record: &Record<'_>) -> u64 {
        record.key.len() as u64
    }

    fn apply(&self, _partition: usize, records: &[Replayed<'_>], _liveness: &mut Liveness) {
        for replayed in records {
            assert!(replayed.record.bytes() >= 16 && replayed.hash == replayed.record.key.len() as u64);
        }
    }
}

fn options() -> Options {
    Options {
        segment_bytes: 64 << 10,
        ring_bytes: 64 << 10,
        appenders: 2,
        blob_min: 4 << 10,
        reserve_bytes: 0,
        background: false,
        ..Options::default()
    }
}

fn directory() -> &'static Path {
    Path::new("/data")
}

/// A log of two segments with some of everything, written once.
fn written() -> &'static Simulator {
    static WRITTEN: OnceLock<Simulator> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        let disk = Simulator::new();
        for round in 0..2_u8 {
            let mut recovery = Log::open(Arc::new(disk.clone()), directory(), options()).expect("it is whole");
            replay(&mut recovery).expect("it is whole");
            let log = recovery.start().expect("it takes writes");
            let mut appender = log.appender(None).expect("the first");
            let tag = Tag { kind: 0, form: 1, is_tree: false };
            appender.set(DbId(0), b"key", tag, Some(5), &[round; 20]);
            appender.patch(DbId(0), b"key", tag, 3, 30, b"patch");
            appender.expire(DbId(0), b"key", None);
            appender.bind(&[Rebind::Clear(DbId(1))]);
            let hash = Tag { kind: Tag::HASH, form: 0, is_tree: false };
            let instance = Tag { is_tree: true, ..hash };
            appender.leaf(DbId(0), 7, hash, b"leaf");
            appender.edit_instance(DbId(0), 7, hash, b"edit");
            appender.edit_instance(DbId(0), 7, hash, b"");
            appender.set(DbId(0), b"tree", instance, None, &7_u64.to_le_bytes());
            let mut batch = appender.batch();
            batch.set(DbId(0), b"a", tag, None, b"1");
            batch.delete(DbId(0), b"key");
            batch.edit(DbId(0), b"hash", hash, b"edit");
            batch.leaf(DbId(0), 8, hash, b"leaf");
            batch.finish(|_, _, _| {});
            drop(appender);
            log.close().expect("all is written");
        }
        disk
    })
}

fn replay(recovery: &mut ferrite_log::Recovery) -> ferrite_log::Result<()> {
    let options = ReplayOptions { threads: 1, partitions: 2, leave_min: None };
    recovery.replay(options, &Nothing, &mut |_| {})
}

fn segments(disk: &Simulator) -> Vec<std::path::PathBuf> {
    let names = disk.names().into_iter();
    names.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect()
}

fn opens(disk: &Simulator) -> bool {
    let Ok(mut recovery) = Log::open(Arc::new(disk.clone()), directory(), options()) else {
        return false;
    };
    replay(&mut recovery).is_ok()
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else {
        return;
    };
    let disk = written().after_kill();
    let paths = segments(&disk);
    let path = &paths[usize::from(choice >> 2) % paths.len()];
    match choice & 3 {
        0 => disk.damage(path, |bytes| {
            bytes.truncate(4096);
            bytes.extend_from_slice(rest);
        }),
        2 => disk.damage(path, |bytes| *bytes = rest.to_vec()),
        _ => disk.damage(path, |bytes| {
            for change in rest.chunks_exact(3) {
                // Mostly among the records, sometimes in the header.
                let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
                let at = if at & 0x8000 != 0 { at & 0xff } else { 4096 + (at & 0x3ff) };
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= change[2];
                }
            }
        }),
    }
    // A check may find more than a start: that the records of a batch belong to it, which a start leaves to the checksums.
    let opened = opens(&disk);
    let report = check(Arc::new(disk.clone()), directory());
    if let Ok(report) = &report {
        assert!(opened || !report.is_whole(), "it does not open, and the check says {report}");
    }
    let Ok(repaired) = repair(Arc::new(disk.clone()), directory(), |_| None) else {
        return;
    };
    if repaired.is_whole() {
        assert!(opens(&disk), "what was repaired opens");
        let again = repair(Arc::new(disk.clone()), directory(), |_| None).expect("it went well before");
        assert!(again.repairs.is_empty(), "{again}");
    }
});
