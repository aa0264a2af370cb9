//! Processes that die with records in the ring: whole ones are there afterwards, in order, and nothing else.

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicI64, Ordering};

use sys::file::{Disk, Lock};
use sys::ring::Producer;
use sys::ring::file::Places;

use super::*;
use crate::address::DbId;
use crate::appender::Appender;
use crate::log::Log;
use crate::record::{Draft, Entry, HEADER, Tag};

mod unknown;

const DB: DbId = DbId(0);
const RING: usize = 64 << 10;

/// A directory whose processes die without giving their locks back, gone at the end.
#[derive(Debug)]
struct Home {
    path: PathBuf,
    boot: u8,
    /// Writes until one fails; below 0 none does.
    writes: Arc<AtomicI64>,
    is_the_tests: bool,
}

#[derive(Debug)]
struct Nothing;

impl Lock for Nothing {}

#[derive(Debug)]
struct Counted(Box<dyn File>, Arc<AtomicI64>);

impl Counted {
    fn count(&self) -> std::io::Result<()> {
        match self.1.fetch_sub(1, Ordering::Relaxed) {
            0 => Err(std::io::Error::other("the process died")),
            _ => Ok(()),
        }
    }
}

impl File for Counted {
    fn write_at(&self, bytes: &[u8], offset: u64) -> std::io::Result<()> {
        let half = bytes.len() / 2;
        if let Err(error) = self.count() {
            self.0.write_at(&bytes[..half], offset)?;
            return Err(error);
        }
        self.0.write_at(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn size(&self) -> std::io::Result<u64> {
        self.0.size()
    }

    fn set_size(&self, bytes: u64) -> std::io::Result<()> {
        self.0.set_size(bytes)
    }

    fn allocate(&self, bytes: u64) -> std::io::Result<()> {
        self.0.allocate(bytes)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.count()
    }

    fn will_need(&self, _offset: u64, _bytes: u64) {}
}

impl Files for Home {
    fn create(&self, path: &Path) -> std::io::Result<Box<dyn File>> {
        Ok(Box::new(Counted(Disk.create(path)?, self.writes.clone())))
    }

    fn open(&self, path: &Path) -> std::io::Result<Box<dyn File>> {
        Ok(Box::new(Counted(Disk.open(path)?, self.writes.clone())))
    }

    fn list(&self, directory: &Path) -> std::io::Result<Vec<String>> {
        Disk.list(directory)
    }

    fn create_directory(&self, directory: &Path) -> std::io::Result<()> {
        Disk.create_directory(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        Disk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        Disk.link(from, to)
    }

    fn unlink(&self, path: &Path) -> std::io::Result<()> {
        Disk.unlink(path)
    }

    fn sync_dir(&self, _directory: &Path) -> std::io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self, _path: &Path) -> std::io::Result<u64> {
        Ok(u64::MAX)
    }

    fn lock(&self, _path: &Path) -> std::io::Result<Box<dyn Lock>> {
        Ok(Box::new(Nothing))
    }

    fn ring_places(&self, _directory: &Path) -> std::io::Result<Places> {
        Ok(Places {
            directory: "/data".into(),
            mounts: 1,
            boot: [self.boot; 16],
            owner: [2; 16],
            memory: Ok(self.path.clone()),
            beside: Err("it is not tried".into()),
        })
    }
}

impl Home {
    fn new(name: &str) -> Home {
        let name = format!("ferrite-takeover-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a directory");
        Home {
            path,
            boot: 1,
            writes: Arc::new(AtomicI64::new(-1)),
            is_the_tests: true,
        }
    }

    /// The same directory for the next process.
    fn files(&self) -> Arc<dyn Files> {
        Arc::new(Home {
            path: self.path.clone(),
            boot: self.boot,
            writes: self.writes.clone(),
            is_the_tests: false,
        })
    }

    fn log_directory(&self) -> PathBuf {
        self.path.join("log directory")
    }

    fn start(&self) -> Log {
        let options = Options {
            segment_bytes: 64 << 10,
            ring_bytes: RING,
            appenders: 3,
            blob_min: 4 << 10,
            reserve_bytes: 0,
            background: false,
            ..Options::default()
        };
        let recovery = Log::open(self.files(), &self.log_directory(), options);
        let mut recovery = recovery.expect("all is well");
        recovery.is_replayed = true;
        recovery.start().expect("all is well")
    }

    fn chain(&self) -> Result<Chain> {
        let (files, paths) = (self.files(), Paths::new(&self.log_directory()));
        take_over(&*files, &paths, chain::find(&*files, &paths)?)
    }

    /// What the log has after the death of its process: keys of sets, in order. Nothing that was no record is
    /// among it.
    fn keys(&self) -> Vec<String> {
        let chain = self.chain().expect("all is well");
        assert_eq!(self.ring(), None);
        assert!(chain.cut.is_none(), "{:?}", chain.cut);
        keys_of(&chain)
    }

    /// The file of the ring.
    fn ring(&self) -> Option<PathBuf> {
        let places = self.ring_places(&self.path).expect("there is one");
        places.left().first().cloned()
    }

    /// Writes a word of a producer to the ring's file: 0 `filling_from`, 1 `claim_bytes`, 2 `claim_end`.
    fn set_word(&self, producer: usize, word: u64, value: u64) {
        let offset = 4096 + (2 + producer as u64) * 128 + word * 8;
        self.damage(offset, &value.to_le_bytes());
    }

    fn damage(&self, offset: u64, bytes: &[u8]) {
        let file = fs::File::options()
            .write(true)
            .open(self.ring().expect("it is there"));
        let file = file.expect("it is there");
        file.write_all_at(bytes, offset).expect("it is ours");
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.is_the_tests {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn keys_of(chain: &Chain) -> Vec<String> {
    let mut keys = Vec::new();
    for (candidate, extent) in &chain.segments {
        let Candidate {
            path, header_bytes, ..
        } = candidate;
        let mut walk = Walk::new(
            &*candidate.file,
            path,
            extent.first,
            *header_bytes,
            extent.end(),
        );
        while let Some(step) = walk.next().expect("all of it is whole") {
            match step.found.entry {
                Entry::Key(record) => keys.push(String::from_utf8_lossy(record.key).into_owned()),
                Entry::Void => keys.push("-".into()),
                _ => {}
            }
        }
    }
    keys
}

/// A change of a key: a set, or an edit.
fn set(appender: &mut Appender, key: &str, value: usize) {
    // The length of a record is the same.
    let (key, value) = (key.as_bytes(), vec![7; value]);
    let hash = Tag {
        kind: Tag::HASH,
        ..Tag::default()
    };
    match value.len() % 2 {
        0 => drop(appender.set(DB, key, Tag::default(), None, &value)),
        _ => drop(appender.edit(DB, key, hash, &value)),
    }
    appender.commit();
}

/// Claims the place of a set and fills only part of it.
fn die_in_set(producer: &mut Producer, key: &str, value: usize, filled: usize) -> u64 {
    let value = vec![9; value];
    let draft = Draft::set(DB, key.as_bytes(), Tag::default(), None, &value);
    let at = producer.claim(draft.bytes());
    let mut bytes = vec![0; draft.bytes() as usize];
    record::write(&mut bytes, Lsn(at), &draft);
    let slot = producer.fill(at, bytes.len()).expect("there is room");
    slot[..filled].copy_from_slice(&bytes[..filled]);
    at
}

#[test]
fn whole_records_are_there_and_gaps_are_left_out() {
    let home = Home::new("gaps");
    let log = home.start();
    let mut appender = log.appender(None).expect("the first");
    set(&mut appender, "a", 100);
    log.turn();
    set(&mut appender, "b", 10);
    let ring = appender.claims.engine.ring.clone();
    // Nothing of the first is there, half of the second, and all but the last byte of the third.
    let mut dead = [(); 2].map(|()| ring.producer().expect("one of three"));
    die_in_set(&mut dead[0], "x", 50, 0);
    set(&mut appender, "c", 3000);
    die_in_set(&mut dead[1], "y", 50, 40);
    set(&mut appender, "d", 0);
    let batch_at = appender.tail();
    appender.begin_series(2, 2 * Appender::set_bytes(1, 1));
    appender.set_in_series(DB, b"e", Tag::default(), &[1]);
    appender.set_in_series(DB, b"f", Tag::default(), &[1]);
    appender.end_series();
    // A batch of which one record is missing, and another change behind it.
    appender.begin_series(2, 2 * Appender::set_bytes(1, 1));
    appender.set_in_series(DB, b"g", Tag::default(), &[1]);
    assert!(batch_at < appender.tail());
    std::mem::forget((appender, dead, log));
    let lines = look(
        &*home.files(),
        &Paths::new(&home.log_directory()),
        &chain::find(&home, &Paths::new(&home.log_directory())).expect("all is well"),
    );
    let lines = lines.expect("all is well");
    assert!(
        lines[0].contains("bytes more, which the next start takes over"),
        "{lines:?}"
    );
    assert!(!lines[0].contains("damaged"), "{lines:?}");
    assert_eq!(home.keys(), ["a", "b", "-", "c", "-", "d", "e", "f"]);
    // And the log goes on.
    let log = home.start();
    let mut appender = log.appender(None).expect("the first");
    set(&mut appender, "h", 1);
    std::mem::forget((appender, log));
    assert_eq!(home.keys(), ["a", "b", "-", "c", "-", "d", "e", "f", "h"]);
    let log = home.start();
    assert!(home.ring().is_some());
    log.close().expect("all is well");
    assert_eq!(home.ring(), None);
}

#[test]
fn a_gap_is_found_whose_writer_had_not_noted_its_place() {
    // Whether the writers had claimed anything when they died.
    for had_claimed in [true, false] {
        let home = Home::new(&format!("unnoted-{had_claimed}"));
        let log = home.start();
        let mut appender = log.appender(None).expect("the first");
        set(&mut appender, "a", 10);
        let ring = appender.claims.engine.ring.clone();
        let mut dead = [(); 2].map(|()| ring.producer().expect("one of three"));
        let ends = [50, 700]
            .map(|value| Draft::set(DB, b"x", Tag::default(), None, &[0; 700][..value]).bytes());
        if had_claimed {
            die_in_set(&mut dead[1], "x", 700, 100);
            die_in_set(&mut dead[0], "x", 50, 30);
            set(&mut appender, "b", 10);
        } else {
            set(&mut appender, "b", 10);
        }
        for (producer, bytes) in dead.iter().zip(ends) {
            home.set_word(producer.number(), 0, Lsn::FIRST.get());
            home.set_word(producer.number(), 1, bytes);
            home.set_word(producer.number(), 2, 0);
        }
        set(&mut appender, "c", 10);
        std::mem::forget((appender, dead, log));
        let gaps = ["-", "-"];
        let gaps = &gaps[..if had_claimed { 2 } else { 0 }];
        assert_eq!(home.keys(), [&["a"], gaps, &["b", "c"]].concat());
    }
}

#[test]
fn a_record_that_is_partly_in_the_segment_is_put_together() {
    let home = Home::new("straddling");
    let log = home.start();
    let mut appender = log.appender(None).expect("the first");
    // Longer than the ring: its beginning was written while it was filled.
    set(&mut appender, "long", 3 * RING);
    let survivor = || {
        let places = home.ring_places(&home.path).expect("there are some");
        Survivor::read(
            &home.ring().expect("it is there"),
            &places,
            appender.claims.engine.name,
        )
    };
    let found = survivor().expect("it is whole");
    assert!(found.passed() > Lsn::FIRST.get() && found.passed() < found.tail());
    set(&mut appender, "b", 10);
    std::mem::forget(appender);
    assert_eq!(home.keys(), ["long", "b"]);
}

#[test]
fn a_gap_that_is_partly_in_the_segment_is_left_out() {
    let home = Home::new("long-gap");
    let log = home.start();
    let mut appender = log.appender(None).expect("the first");
    set(&mut appender, "a", 10);
    let mut dead = appender.claims.engine.ring.producer().expect("the second");
    let value = vec![9; RING + 5000];
    let draft = Draft::set(DB, b"x", Tag::default(), None, &value);
    let at = dead.claim(draft.bytes());
    let mut bytes = vec![0; draft.bytes() as usize];
    record::write(&mut bytes, Lsn(at), &draft);
    let part = 60_000;
    dead.fill(at, part)
        .expect("there is room")
        .copy_from_slice(&bytes[..part]);
    dead.publish((at + part as u64) & !7);
    log.turn();
    set(&mut appender, "b", 10);
    std::mem::forget((appender, dead, log));
    assert_eq!(home.keys(), ["a", "-", "b"]);
}

#[test]
fn a_failed_write_loses_nothing_that_the_ring_still_has() {
    let home = Home::new("failed");
    let log = home.start();
    let mut appender = log.appender(None).expect("the first");
    set(&mut appender, "a", 10);
    log.turn();
    // The disk fails in the middle of a record.
    set(&mut appender, "b", 20_000);
    set(&mut appender, "c", 20_000);
    home.writes.store(2, Ordering::Relaxed);
    log.turn();
    assert!(log.refusal().is_some());
    drop(appender);
    log.close().expect_err("it has failed");
    assert_eq!(home.keys(), ["a", "b", "c"]);
}

/// Behind a failed write nothing is kept, and the ring goes round: that is no damage.
#[test]
fn a_ring_that_a_failed_log_has_overwritten_is_not_damaged() {
    for much in [false, true] {
        let home = Home::new(&format!("overwritten-{much}"));
        let log = home.start();
        let mut appender = log.appender(None).expect("the first");
        set(&mut appender, "a", 10);
        log.turn();
        home.writes.store(0, Ordering::Relaxed);
        set(&mut appender, "b", 10);
        log.turn();
        assert!(log.refusal().is_some());
        let count = if much { 40 } else { 2 };
        for _ in 0..count {
            set(&mut appender, "thrown away", 4000);
            log.turn();
        }
        std::mem::forget((appender, log));
        let paths = Paths::new(&home.log_directory());
        let chain = chain::find(&home, &paths).expect("all is well");
        let lines = look(&home, &paths, &chain).expect("all is well");
        let is_told = lines[0].contains("it is of a log that had failed: ");
        assert_eq!(is_told, much, "{lines:?}");
        assert!(!lines[0].contains("damaged"), "{lines:?}");
        // What was half written is cut off like any torn end.
        let chain = home.chain().expect("all is well");
        assert_eq!(keys_of(&chain)[0], "a");
    }
}

/// A takeover that dies at each of its writes is done again; random records, gaps and turns, around the end
/// of the ring's memory.
#[test]
fn random_deaths_lose_nothing_that_was_whole() {
    for seed in 0..60 {
        let home = Home::new(&format!("random-{seed}"));
        let mut random = fastrand::Rng::with_seed(seed);
        let mut expected = Vec::new();
        for life in 0..3 {
            let log = home.start();
            let mut appender = log.appender(None).expect("the first");
            let ring = appender.claims.engine.ring.clone();
            let mut dead = Vec::new();
            let mut gaps = 0;
            for number in 0..random.u32(..400) {
                let value = match random.u8(..20) {
                    0 => random.usize(..20_000),
                    _ => random.usize(..300),
                };
                // Nothing passes a gap, so what follows has to find room in the ring.
                let room = RING as u64 - (ring.tail() - ring.head());
                if room < 2 * value as u64 + 200 {
                    if gaps > 0 {
                        break;
                    }
                    log.turn();
                }
                match random.u8(..100) {
                    0..2 if gaps < 2 && room > 40_000 => {
                        let mut producer = ring.producer().expect("one of three");
                        let bytes =
                            Draft::set(DB, b"x", Tag::default(), None, &vec![0; value]).bytes();
                        // Without its last byte, which is none of the zeroes behind it.
                        let filled = random.usize(..=bytes as usize - 8);
                        let from = producer.number();
                        let before = ring.tail();
                        die_in_set(&mut producer, "x", value, filled);
                        if random.bool() {
                            home.set_word(from, 2, before.min(Lsn::FIRST.get()));
                        }
                        gaps += 1;
                        dead.push(producer);
                        expected.push("-".to_owned());
                    }
                    0..20 if gaps == 0 => drop(log.turn()),
                    _ => {
                        let key = format!("{life} {number}");
                        set(&mut appender, &key, value);
                        expected.push(key);
                    }
                }
            }
            std::mem::forget((appender, dead, log));
            while expected.last().is_some_and(|key| key == "-") {
                expected.pop();
            }
            for writes in 0.. {
                home.writes.store(writes, Ordering::Relaxed);
                if home.chain().is_ok() {
                    break;
                }
            }
            home.writes.store(-1, Ordering::Relaxed);
            assert_eq!(home.keys(), expected, "seed {seed}, life {life}");
        }
    }
}

#[test]
fn what_is_not_this_logs_is_left_out() {
    type Change = fn(&mut Home);
    let changes: [(&str, Change, usize); 7] = [
        ("as it is", |_| (), 2),
        ("another boot", |home| home.boot = 2, 1),
        ("another log", |home| home.damage(40, &[1]), 1),
        ("another version", |home| home.damage(16, &[2]), 1),
        ("a header of zeroes", |home| home.damage(0, &[0; 4096]), 1),
        (
            "another size",
            |home| {
                let path = home.ring().expect("it is there");
                let file = fs::File::options().write(true).open(path).expect("ours");
                file.set_len(1 << 16).expect("ours");
            },
            1,
        ),
        (
            "a position that cannot be",
            |home| home.damage(4096, &[0; 8]),
            1,
        ),
    ];
    for (number, (what, change, expected)) in changes.into_iter().enumerate() {
        let mut home = Home::new(&format!("strange-{number}"));
        let log = home.start();
        let mut appender = log.appender(None).expect("the first");
        set(&mut appender, "a", 10);
        log.turn();
        set(&mut appender, "b", 10);
        std::mem::forget((appender, log));
        change(&mut home);
        assert_eq!(home.keys(), ["a", "b"][..expected], "{what}");
    }
}

#[test]
fn nothing_behind_a_damaged_byte_is_taken() {
    let home = Home::new("damaged");
    let log = home.start();
    let mut appender = log.appender(None).expect("the first");
    set(&mut appender, "a", 10);
    log.turn();
    set(&mut appender, "b", 10);
    let at = appender.tail().get();
    set(&mut appender, "c", 100);
    set(&mut appender, "d", 10);
    std::mem::forget((appender, log));
    let control = fs::metadata(home.ring().expect("it is there"))
        .expect("ours")
        .len()
        - RING as u64;
    home.damage(control + at % RING as u64 + HEADER as u64 + 5, &[0xff]);
    let paths = Paths::new(&home.log_directory());
    let chain = chain::find(&home, &paths).expect("all is well");
    let lines = look(&home, &paths, &chain).expect("all is well");
    assert!(
        lines[0].contains("it is damaged: there is no record at"),
        "{lines:?}"
    );
    assert_eq!(home.keys(), ["a", "b"]);
}
