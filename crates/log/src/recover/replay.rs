//! Handing the log's records to whoever builds the state from them.
//!
//! The log is read in *pieces* ([`super::pieces`]), and a piece stays with the thread that took it: it checks
//! the records, sorts them by the hash of their keys and applies them, while all of that is in its
//! processor's cache. The hash also names a *partition*. A thread applies its piece's records of a partition
//! when the piece before has been applied there: so the pieces go through the partitions in single file, one
//! behind the other, no two threads are in one partition, and all changes of a key are applied in the order
//! they were made. Memory is bounded by a piece for each thread.
//!
//! ```text
//!   partitions  0   1   2   3   4   5   6   7  ...
//!   piece 5     x   x   x   x   x  now             thread 1
//!   piece 6     x   x   x  now                     thread 2
//!   piece 7         is being checked and sorted    thread 3
//! ```
//!
//! Records of databases that were emptied later are left out: the bindings are known from the beginning.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sys::file::Files;

use crate::bindings::Bindings;
use crate::blob::Blobs;
use crate::error::{Error, Result};
use crate::liveness::Liveness;
use crate::lock::lock;
use crate::paths::Paths;
use crate::piece::{Piece, Replayed};
use crate::record::{self, Change, Entry, HEADER, Record, Value};
use crate::recover::pieces::Pieces;
use crate::routes::Routes;
use crate::segment::Name;
use crate::segments::{Segment, Segments};

/// Records given to `apply` at once, at most.
const SLICE: usize = 256;
/// So many times a thread that waits for its turn looks again at once; up to so many it lets others run
/// first; then it naps.
const SPINS: u32 = 256;
const YIELDS: u32 = SPINS + 64;
const NAP: Duration = Duration::from_micros(100);

/// Builds a state from the records of a log.
pub trait Replayer: Sync {
    /// The hash of the key, or of the instance, that a record is about. Its high bits choose the partition.
    fn hash(&self, record: &Record<'_>) -> u64;

    /// Applies records of one partition, in the order of the log. Two threads never do this for one partition
    /// at a time. Nothing expires while a log is replayed: a later record may take an expiry back that has
    /// passed. `liveness` is told of every base record that is dead from here on.
    fn apply(&self, partition: usize, records: &[Replayed<'_>], liveness: &mut Liveness);

    /// Called by each thread behind a piece, when it has no partition: what takes long is done here, and
    /// keeps no other thread waiting.
    fn rest(&self) {}
}

/// How to replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    /// Threads that verify and apply.
    pub threads: usize,
    /// Parts that are applied independently, a power of two: many more than threads, so that these do not
    /// wait for each other.
    pub partitions: usize,
    /// How many bytes a value has at least that may stay on the disk ([`Value::Stored`]), if any may: then
    /// hints are read instead of segments, where there are some and all values are such.
    pub leave_min: Option<u64>,
}

/// How far a replay has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes applied.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
    /// Records applied.
    pub records: u64,
}

/// What checking a segment's pieces found out about it.
#[derive(Default)]
struct Counts {
    bases: AtomicU64,
    tombstones: AtomicU64,
    edits: AtomicU64,
}

/// The number of the piece that may be applied to a partition next. On a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Next(AtomicU64);

/// The log that is replayed.
pub(super) struct Source<'r> {
    pub(super) files: &'r dyn Files,
    pub(super) paths: &'r Paths,
    pub(super) name: Option<Name>,
    pub(super) bindings: &'r Bindings,
    pub(super) segments: &'r Arc<Segments>,
    pub(super) blobs: &'r Arc<Blobs>,
}

impl Source<'_> {
    /// See [`Recovery::replay`](crate::Recovery::replay).
    pub(super) fn replay(
        &self,
        options: ReplayOptions,
        replayer: &dyn Replayer,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        assert!(options.threads > 0 && options.partitions.is_power_of_two());
        let map = self.segments.map();
        let replay = Replay {
            source: self,
            segments: &map.segments,
            options,
            replayer,
            pieces: Mutex::new(Pieces::new(
                self.files,
                self.paths,
                self.name,
                &map.segments,
                options.leave_min,
            )),
            next: (0..options.partitions).map(|_| Next::default()).collect(),
            counts: map.segments.iter().map(|_| Counts::default()).collect(),
            done: AtomicU64::new(0),
            records: AtomicU64::new(0),
            failure: Mutex::new(None),
            has_failed: AtomicBool::new(false),
        };
        let total = map.segments.iter().map(|segment| segment.bytes()).sum();
        std::thread::scope(|scope| {
            for _ in 1..options.threads {
                scope.spawn(|| replay.run(&mut || ()));
            }
            replay.run(&mut || {
                progress(Progress {
                    done: replay.done.load(Ordering::Relaxed),
                    total,
                    records: replay.records.load(Ordering::Relaxed),
                });
            });
        });
        if let Some((_, error)) = lock(&replay.failure).take() {
            return Err(error);
        }
        let records = replay.records.load(Ordering::Relaxed);
        progress(Progress {
            done: total,
            total,
            records,
        });
        for (segment, counts) in map.segments.iter().zip(&replay.counts) {
            segment.set_counts(
                counts.bases.load(Ordering::Relaxed),
                counts.tombstones.load(Ordering::Relaxed),
                counts.edits.load(Ordering::Relaxed),
            );
        }
        Ok(())
    }
}

/// What the threads share.
struct Replay<'r> {
    source: &'r Source<'r>,
    segments: &'r [Arc<Segment>],
    options: ReplayOptions,
    replayer: &'r dyn Replayer,
    pieces: Mutex<Pieces<'r>>,
    /// For each partition.
    next: Vec<Next>,
    counts: Vec<Counts>,
    done: AtomicU64,
    records: AtomicU64,
    /// What is wrong with the earliest piece with which something is.
    failure: Mutex<Option<(u64, Error)>>,
    has_failed: AtomicBool,
}

/// Lets all threads end if one of them panics, which would wait for it otherwise.
struct Alarm<'r>(&'r AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Release);
        }
    }
}

impl Replay<'_> {
    /// What every thread does: one piece after the other. `passed` is called behind each.
    fn run(&self, passed: &mut dyn FnMut()) {
        let _alarm = Alarm(&self.has_failed);
        let (segments, blobs) = (self.source.segments.clone(), self.source.blobs.clone());
        let mut liveness = Liveness::new(segments, blobs, None);
        let (mut piece, mut routes) = (Piece::default(), Routes::new(self.options.partitions));
        while !self.has_failed.load(Ordering::Acquire) {
            let result = lock(&self.pieces).read(&mut piece);
            let result = result.and_then(|is_there| {
                if is_there {
                    self.check(&piece, &mut routes)?;
                }
                Ok(is_there)
            });
            match result {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    self.fail(piece.number, error);
                    return;
                }
            }
            if !self.apply(&piece, &routes, &mut liveness) {
                return;
            }
            self.replayer.rest();
            self.done.fetch_add(piece.log_bytes, Ordering::Relaxed);
            passed();
        }
    }

    fn fail(&self, number: u64, error: Error) {
        let mut failure = lock(&self.failure);
        if failure.as_ref().is_none_or(|(first, _)| number < *first) {
            *failure = Some((number, error));
        }
        self.has_failed.store(true, Ordering::Release);
    }

    /// Checks what is in a piece, and finds out whose it is.
    fn check(&self, piece: &Piece, routes: &mut Routes) -> Result<()> {
        routes.clear();
        let (mut at, mut bases, mut tombstones, mut edits) = (0, 0, 0, 0);
        while at < piece.bytes().len() {
            let (record, bytes) = self.read(piece, at)?;
            if let Some(record) =
                record.filter(|record| self.source.bindings.is_alive(record.db, record.lsn))
            {
                routes.add(self.replayer.hash(&record), at);
                match record.change {
                    Change::Set { value, .. } => {
                        bases += record.bytes();
                        if let Value::Blob(blob) = value {
                            self.source.blobs.add(record.lsn, blob);
                        }
                    }
                    Change::Delete => tombstones += record.bytes(),
                    Change::Leaf { .. } => bases += record.bytes(),
                    Change::Edit { .. } => edits += record.bytes(),
                    Change::Expire(_) | Change::Patch { .. } => {}
                }
            }
            at += bytes;
        }
        let counts = &self.counts[piece.segment];
        counts.bases.fetch_add(bases, Ordering::Relaxed);
        counts.tombstones.fetch_add(tombstones, Ordering::Relaxed);
        counts.edits.fetch_add(edits, Ordering::Relaxed);
        routes.sort();
        Ok(())
    }

    /// What is in a piece at `at`, checked, and how many bytes it takes there.
    fn read<'p>(&self, piece: &'p Piece, at: usize) -> Result<(Option<Record<'p>>, usize)> {
        let segment = &self.segments[piece.segment];
        let bytes = &piece.bytes()[at..];
        let Some(first) = piece.first else {
            let hint = record::read_hint(bytes).ok_or_else(|| {
                let path = self.source.paths.hint(segment.first);
                Error::damage(&path, 0, "a hint that is none; remove the file")
            })?;
            return Ok((Some(hint.record), hint.bytes));
        };
        let lsn = first.offset(at as u64);
        let found = record::read(bytes, lsn).map_err(|flaw| segment.flawed(lsn, flaw))?;
        Ok(match found.entry {
            Entry::Key(record) => (Some(record), found.bytes),
            Entry::Batch(_) => (None, HEADER),
            _ => (None, found.bytes),
        })
    }

    /// Applies a piece, partition by partition; whether it was its turn everywhere.
    fn apply(&self, piece: &Piece, routes: &Routes, liveness: &mut Liveness) -> bool {
        let mut slice = Vec::with_capacity(SLICE);
        for (partition, next) in self.next.iter().enumerate() {
            if !self.wait_for(next, piece.number) {
                return false;
            }
            for routes in routes.of(partition, self.options.partitions).chunks(SLICE) {
                slice.clear();
                slice.extend(routes.iter().map(|route| Replayed {
                    record: piece.record_at(route.at as usize),
                    hash: route.hash,
                }));
                self.replayer.apply(partition, &slice, liveness);
            }
            next.0.store(piece.number + 1, Ordering::Release);
        }
        let count = routes.all().len() as u64;
        self.records.fetch_add(count, Ordering::Relaxed);
        true
    }

    /// Waits until a partition is ready for a piece; whether it will be.
    fn wait_for(&self, next: &Next, number: u64) -> bool {
        let mut looks = 0;
        // What the piece before did to the partition is seen by who sees its number.
        while next.0.load(Ordering::Acquire) != number {
            if self.has_failed.load(Ordering::Acquire) {
                return false;
            }
            looks += 1;
            match looks {
                ..SPINS => std::hint::spin_loop(),
                SPINS..YIELDS => std::thread::yield_now(),
                _ => std::thread::sleep(NAP),
            }
        }
        true
    }
}
