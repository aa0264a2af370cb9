//! Handing the log's records to whoever builds the state from them.
//!
//! The log is read in *chunks* of a few megabytes, a round of them at a time. In a round every chunk is verified, and
//! its records routed to *partitions* by the hash of their keys, by many threads; then every partition's records
//! are applied in the order of the log, by many threads again. Meanwhile one thread reads the next round. So
//! memory is bounded by two rounds, and all changes of a key are applied in the order they were made.
//!
//! Records of databases that were emptied later are left out: the bindings are known from the beginning.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::address::{DbId, Lsn};
use crate::core::lock;
use crate::error::{Error, Result};
use crate::hint::Hints;
use crate::liveness::Liveness;
use crate::record::{self, Change, Entry, HEADER, Record, Value};
use crate::recover::Recovery;
use crate::segments::Segment;

/// Bytes of a chunk, unless a single record is larger.
const CHUNK: u64 = 4 << 20;
/// Records given to `apply` at once, at most.
const SLICE: usize = 256;

/// One record, with the hash of its key.
#[derive(Clone, Copy, Debug)]
pub struct Replayed<'a> {
    /// The record.
    pub record: Record<'a>,
    /// What [`Replayer::hash`] said of its key.
    pub hash: u64,
}

/// Builds a state from the records of a log.
pub trait Replayer: Sync {
    /// The hash of a key. Its high bits choose the partition.
    fn hash(&self, db: DbId, key: &[u8]) -> u64;

    /// Applies records of one partition, in the order of the log. Two threads never do this for one partition at a
    /// time. Nothing expires while a log is replayed: a later record may take an expiry back that has passed.
    /// `liveness` is told of every base record that is dead from here on.
    fn apply(&self, partition: usize, records: &[Replayed<'_>], liveness: &mut Liveness);
}

/// How to replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    /// Threads that verify and apply.
    pub threads: usize,
    /// Parts that are applied independently, a power of two.
    pub partitions: usize,
    /// Whether values may stay on the disk ([`Value::Stored`]): then hints are read instead of segments, where there are
    /// some.
    pub leave_values: bool,
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

/// Whole records, as they are in a segment, or hints.
struct Chunk {
    segment: usize,
    /// Where the records begin; `None` if these are hints.
    first: Option<Lsn>,
    bytes: Vec<u8>,
    /// Bytes of the log that it stands for.
    log_bytes: u64,
    /// For each partition, where its records are and their hashes.
    routes: Vec<Vec<(u32, u64)>>,
}

/// What verifying a chunk found out about its segment.
#[derive(Default)]
struct Survey {
    bases: AtomicU64,
    tombstones: AtomicU64,
}

impl Recovery {
    /// Hands all records to `replayer`. `progress` is called now and then.
    ///
    /// # Errors
    /// A record is damaged, or cannot be read. What was applied until then is of no use.
    pub fn replay(
        &mut self,
        options: ReplayOptions,
        replayer: &dyn Replayer,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        assert!(options.threads > 0 && options.partitions.is_power_of_two());
        let map = self.segments.map();
        let replay = Replay {
            recovery: self,
            segments: &map.segments,
            options,
            replayer,
            surveys: map.segments.iter().map(|_| Survey::default()).collect(),
            records: AtomicU64::new(0),
        };
        let total = self.log_bytes();
        let mut reader = Reader::new(self, &map.segments, options.leave_values);
        let mut done = 0;
        let mut round = reader.round(options.threads)?;
        while !round.is_empty() {
            let bytes: u64 = round.iter().map(|chunk| chunk.log_bytes).sum();
            round = if options.threads == 1 {
                replay.process(&mut round)?;
                reader.round(1)?
            } else {
                std::thread::scope(|scope| {
                    let next = scope.spawn(|| reader.round(options.threads));
                    replay.process(&mut round)?;
                    next.join().expect("reading does not panic")
                })?
            };
            done += bytes;
            progress(Progress {
                done,
                total,
                records: replay.records.load(Ordering::Relaxed),
            });
        }
        for (segment, survey) in map.segments.iter().zip(&replay.surveys) {
            let (bases, tombstones) = (&survey.bases, &survey.tombstones);
            segment.set_survey(
                bases.load(Ordering::Relaxed),
                tombstones.load(Ordering::Relaxed),
            );
        }
        self.is_replayed = true;
        Ok(())
    }
}

/// Reads chunks one after the other.
struct Reader<'r> {
    recovery: &'r Recovery,
    segments: &'r [std::sync::Arc<Segment>],
    leave_values: bool,
    segment: usize,
    /// Bytes of the segment's records that were read.
    at: u64,
    /// The hints that are read instead.
    hints: Option<Hints>,
}

impl<'r> Reader<'r> {
    fn new(
        recovery: &'r Recovery,
        segments: &'r [std::sync::Arc<Segment>],
        leave_values: bool,
    ) -> Reader<'r> {
        let mut reader = Reader {
            recovery,
            segments,
            leave_values,
            segment: 0,
            at: 0,
            hints: None,
        };
        reader.begin();
        reader
    }

    /// Looks for hints of the segment that comes now.
    fn begin(&mut self) {
        self.at = 0;
        self.hints = None;
        let recovery = self.recovery;
        if let (true, Some(segment), Some(name)) = (
            self.leave_values,
            self.segments.get(self.segment),
            &recovery.name,
        ) {
            self.hints = Hints::open(&*recovery.files, &recovery.paths, name, segment);
        }
    }

    fn round(&mut self, threads: usize) -> Result<Vec<Chunk>> {
        let mut chunks = Vec::new();
        while chunks.len() < 2 * threads
            && let Some(chunk) = self.chunk()?
        {
            chunks.push(chunk);
        }
        Ok(chunks)
    }

    fn chunk(&mut self) -> Result<Option<Chunk>> {
        while let Some(segment) = self.segments.get(self.segment) {
            if let Some(hints) = &mut self.hints {
                let bytes = hints.next().ok_or_else(|| {
                    let path = self.recovery.paths.hint(segment.first);
                    Error::io(
                        "cannot read",
                        &path,
                        std::io::ErrorKind::UnexpectedEof.into(),
                    )
                })?;
                if !bytes.is_empty() {
                    return Ok(Some(Chunk {
                        segment: self.segment,
                        first: None,
                        bytes,
                        log_bytes: 0,
                        routes: Vec::new(),
                    }));
                }
                // All of it at once: nobody knows how much of the segment a block stands for.
                let log_bytes = segment.bytes();
                let number = self.segment;
                self.segment += 1;
                self.begin();
                return Ok(Some(Chunk {
                    segment: number,
                    first: None,
                    bytes,
                    log_bytes,
                    routes: Vec::new(),
                }));
            }
            if self.at < segment.bytes() {
                return self.records(segment).map(Some);
            }
            self.segment += 1;
            self.begin();
        }
        Ok(None)
    }

    /// The next chunk of a segment itself.
    fn records(&mut self, segment: &Segment) -> Result<Chunk> {
        let left = segment.bytes() - self.at;
        let first = segment.first.offset(self.at);
        let mut bytes = Vec::new();
        let mut wanted = CHUNK.min(left);
        loop {
            let have = bytes.len();
            bytes.resize(wanted as usize, 0);
            segment
                .file
                .read_exact_at(&mut bytes[have..], segment.offset_of(first) + have as u64)
                .map_err(|error| Error::io("cannot read", &segment.path, error))?;
            let whole = whole_records(&bytes);
            // Damage looks like a record that is too long; it is named when the chunk is verified.
            if whole.end > 0 || wanted == left || whole.next > left {
                let keep = if whole.end > 0 && wanted < left {
                    whole.end
                } else {
                    bytes.len()
                };
                bytes.truncate(keep);
                break;
            }
            wanted = whole.next;
        }
        self.at += bytes.len() as u64;
        let ahead = segment.offset_of(first) + bytes.len() as u64;
        segment.file.will_need(ahead, CHUNK);
        let log_bytes = bytes.len() as u64;
        Ok(Chunk {
            segment: self.segment,
            first: Some(first),
            bytes,
            log_bytes,
            routes: Vec::new(),
        })
    }
}

/// How far whole records go, and how far the one behind them would.
struct Whole {
    end: usize,
    next: u64,
}

/// Looks at lengths alone. A batch is taken for its header, and what is inside for records.
fn whole_records(bytes: &[u8]) -> Whole {
    let mut at = 0;
    loop {
        let Some(header) = bytes[at..].first_chunk::<HEADER>() else {
            return Whole {
                end: at,
                next: (at + HEADER) as u64,
            };
        };
        let next = at as u64 + record::stride(header);
        if next > bytes.len() as u64 {
            return Whole { end: at, next };
        }
        at = next as usize;
    }
}

/// What the threads of a round share.
struct Replay<'r> {
    recovery: &'r Recovery,
    segments: &'r [std::sync::Arc<Segment>],
    options: ReplayOptions,
    replayer: &'r dyn Replayer,
    surveys: Vec<Survey>,
    records: AtomicU64,
}

impl Replay<'_> {
    fn process(&self, round: &mut [Chunk]) -> Result<()> {
        let failure = Mutex::new(None);
        {
            let chunks: Vec<Mutex<&mut Chunk>> = round.iter_mut().map(Mutex::new).collect();
            self.for_each(chunks.len(), |number, _| {
                if let Err(error) = self.verify(&mut lock(&chunks[number])) {
                    lock(&failure).get_or_insert(error);
                }
            });
        }
        if let Some(error) = lock(&failure).take() {
            return Err(error);
        }
        self.for_each(self.options.partitions, |partition, liveness| {
            let mut slice = Vec::with_capacity(SLICE);
            for chunk in &*round {
                self.apply(partition, chunk, &mut slice, liveness);
            }
        });
        Ok(())
    }

    /// Does `work` for each of `count` numbers, by all threads.
    fn for_each(&self, count: usize, work: impl Fn(usize, &mut Liveness) + Sync) {
        let next = AtomicUsize::new(0);
        let run = || {
            let (segments, blobs) = (self.recovery.segments.clone(), self.recovery.blobs.clone());
            let mut liveness = Liveness::new(segments, blobs, None);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return;
                }
                work(number, &mut liveness);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.options.threads.min(count) {
                scope.spawn(run);
            }
            run();
        });
    }

    /// Checks what is in a chunk, and finds out whose it is.
    fn verify(&self, chunk: &mut Chunk) -> Result<()> {
        let mut routes = vec![Vec::new(); self.options.partitions];
        let (mut at, mut bases, mut tombstones) = (0, 0, 0);
        while at < chunk.bytes.len() {
            let (record, bytes) = self.read(chunk, at)?;
            if let Some(record) =
                record.filter(|record| self.recovery.bindings.is_alive(record.db, record.lsn))
            {
                let hash = self.replayer.hash(record.db, record.key);
                routes[self.partition_of(hash)].push((at as u32, hash));
                match record.change {
                    Change::Set { value, .. } => {
                        bases += record.bytes();
                        if let Value::Blob(blob) = value {
                            self.recovery.blobs.add(record.lsn, blob);
                        }
                    }
                    Change::Delete => tombstones += record.bytes(),
                    Change::Expire(_) | Change::Patch { .. } => {}
                }
            }
            at += bytes;
        }
        let survey = &self.surveys[chunk.segment];
        survey.bases.fetch_add(bases, Ordering::Relaxed);
        survey.tombstones.fetch_add(tombstones, Ordering::Relaxed);
        chunk.routes = routes;
        Ok(())
    }

    /// What is in a chunk at `at`, checked, and how many bytes it takes there.
    fn read<'c>(&self, chunk: &'c Chunk, at: usize) -> Result<(Option<Record<'c>>, usize)> {
        let segment = &self.segments[chunk.segment];
        let Some(first) = chunk.first else {
            let hint = record::read_hint(&chunk.bytes[at..]).ok_or_else(|| {
                let path = self.recovery.paths.hint(segment.first);
                Error::damage(&path, 0, "a hint that is none; remove the file")
            })?;
            return Ok((Some(hint.record), hint.bytes));
        };
        let lsn = first.offset(at as u64);
        let found = record::read(&chunk.bytes[at..], lsn)
            .map_err(|flaw| Error::damage(&segment.path, segment.offset_of(lsn), flaw))?;
        Ok(match found.entry {
            Entry::Key(record) => (Some(record), found.bytes),
            Entry::Batch(_) => (None, HEADER),
            _ => (None, found.bytes),
        })
    }

    fn partition_of(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.options.partitions as u128) >> 64) as usize
    }

    fn apply<'c>(
        &self,
        partition: usize,
        chunk: &'c Chunk,
        slice: &mut Vec<Replayed<'c>>,
        liveness: &mut Liveness,
    ) {
        let routes = &chunk.routes[partition];
        self.records
            .fetch_add(routes.len() as u64, Ordering::Relaxed);
        for routes in routes.chunks(SLICE) {
            slice.clear();
            slice.extend(routes.iter().map(|&(at, hash)| {
                let bytes = &chunk.bytes[at as usize..];
                let record = match chunk.first {
                    None => record::read_hint(bytes).map(|hint| hint.record),
                    Some(first) => match record::parse(bytes, first.offset(u64::from(at)))
                        .map(|found| found.entry)
                    {
                        Ok(Entry::Key(record)) => Some(record),
                        _ => None,
                    },
                };
                let record = record.expect("it was a record of a key when it was verified");
                Replayed { record, hash }
            }));
            self.replayer.apply(partition, slice, liveness);
        }
    }
}
