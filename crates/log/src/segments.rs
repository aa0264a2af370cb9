//! The segments of the log, oldest first, and how much of each is still needed.
//!
//! A [`Map`] is a list that never changes; a new one replaces it when a segment begins, ends or goes, which
//! is rare. So an appender that notes which segment a dead record is in reads a list of its own and touches
//! nothing shared.
//!
//! What a segment's figures mean: `bytes` of records in all; of those `bases` are whole values that counted
//! when they were written (everything else, from tombstones to marks, is garbage at birth); of the bases so
//! many bytes are `dead`. What lives is `bases - dead`. `edits` are the garbage that costs something all the
//! same: a leaf whose base is older is written again in place of an edit. Decisions about correctness never
//! rest on these.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use sys::file::File;

use crate::address::Lsn;
use crate::error::Error;
use crate::lock::lock;
use crate::record::Flaw;
use crate::scan::Tally;
use crate::segment::{self, Extent};

/// One segment.
pub(crate) struct Segment {
    pub(crate) first: Lsn,
    pub(crate) path: PathBuf,
    pub(crate) file: Box<dyn File>,
    /// Where the first record is in the file.
    pub(crate) header_bytes: u64,
    figures: Arc<Figures>,
    is_sealed: AtomicBool,
    is_trimmed: AtomicBool,
    is_damaged: AtomicBool,
    /// Where the record is that takes it out of the log; 0 for none.
    retired_at: AtomicU64,
    is_counted: AtomicBool,
    /// Its hints, until they are in their file.
    hints: Mutex<Option<Vec<u8>>>,
    bases: AtomicU64,
    tombstones: AtomicU64,
    edits: AtomicU64,
}

/// What appenders need of a segment: it outlives the file.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    bytes: AtomicU64,
    dead: AtomicU64,
}

impl Figures {
    /// So many bytes more are dead.
    pub(crate) fn note_dead(&self, bytes: u64) {
        self.dead.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Segment({}, {} bytes)", self.first, self.bytes())
    }
}

impl Segment {
    pub(crate) fn new(
        first: Lsn,
        path: PathBuf,
        file: Box<dyn File>,
        header_bytes: u64,
    ) -> Segment {
        Segment {
            first,
            path,
            file,
            header_bytes,
            figures: Arc::default(),
            is_sealed: AtomicBool::new(false),
            is_trimmed: AtomicBool::new(false),
            is_damaged: AtomicBool::new(false),
            retired_at: AtomicU64::new(0),
            is_counted: AtomicBool::new(false),
            hints: Mutex::default(),
            bases: AtomicU64::new(0),
            tombstones: AtomicU64::new(0),
            edits: AtomicU64::new(0),
        }
    }

    /// Bytes of records written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.figures.bytes.load(Ordering::Acquire)
    }

    pub(crate) fn set_bytes(&self, bytes: u64) {
        self.figures.bytes.store(bytes, Ordering::Release);
    }

    pub(crate) fn end(&self) -> Lsn {
        self.first.offset(self.bytes())
    }

    pub(crate) fn extent(&self) -> Extent {
        Extent {
            first: self.first,
            bytes: self.bytes(),
        }
    }

    /// Where in the file the record at `lsn` is.
    pub(crate) fn offset_of(&self, lsn: Lsn) -> u64 {
        self.header_bytes + (lsn.0 - self.first.0)
    }

    /// What is wrong with the record at `lsn`.
    pub(crate) fn flawed(&self, lsn: Lsn, flaw: Flaw) -> Error {
        segment::flawed(&*self.file, &self.path, self.offset_of(lsn), flaw)
    }

    /// Nothing is written to it any more.
    pub(crate) fn seal(&self) {
        self.is_sealed.store(true, Ordering::Release);
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.is_sealed.load(Ordering::Acquire)
    }

    /// The record at `lsn` takes it out of the log.
    pub(crate) fn retire(&self, lsn: Lsn) {
        self.retired_at.store(lsn.0, Ordering::Release);
    }

    pub(crate) fn retired_at(&self) -> Option<Lsn> {
        match self.retired_at.load(Ordering::Acquire) {
            0 => None,
            lsn => Some(Lsn(lsn)),
        }
    }

    /// Whether the header of a segment that begins at `first` names this one.
    pub(crate) fn is_named_at(&self, first: Lsn) -> bool {
        self.retired_at().is_none_or(|retired| retired >= first)
    }

    /// It cannot be read: compaction leaves it alone.
    pub(crate) fn set_damaged(&self) {
        self.is_damaged.store(true, Ordering::Release);
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Acquire)
    }

    /// Whether the file may be longer than what is in it.
    pub(crate) fn needs_trim(&self) -> bool {
        !self.is_trimmed.load(Ordering::Acquire)
    }

    /// Cuts the file behind its last record.
    pub(crate) fn trim(&self) -> std::io::Result<()> {
        self.is_trimmed.store(true, Ordering::Release);
        self.file.set_size(self.header_bytes + self.bytes())
    }

    /// Notes what is in it.
    pub(crate) fn set_counts(&self, bases: u64, tombstones: u64, edits: u64) {
        self.bases.store(bases, Ordering::Release);
        self.tombstones.store(tombstones, Ordering::Release);
        self.edits.store(edits, Ordering::Release);
        self.is_counted.store(true, Ordering::Release);
    }

    /// Notes what passed the log thread, all of which is written.
    pub(crate) fn set_tally(&self, tally: Tally) {
        *lock(&self.hints) = tally.hints;
        self.set_counts(tally.bases, tally.tombstones, tally.edits);
    }

    /// Hints that are to be written: tells them once.
    pub(crate) fn take_hints(&self) -> Option<Vec<u8>> {
        lock(&self.hints).take()
    }

    pub(crate) fn is_counted(&self) -> bool {
        self.is_counted.load(Ordering::Acquire)
    }

    pub(crate) fn tombstones(&self) -> u64 {
        self.tombstones.load(Ordering::Acquire)
    }

    /// Bytes of edits: in place of some of them leaves or whole values are written again.
    pub(crate) fn edits(&self) -> u64 {
        self.edits.load(Ordering::Acquire)
    }

    /// Bytes that are still needed; of a segment that nobody has read yet, all that are not known to be dead.
    pub(crate) fn live(&self) -> u64 {
        let all = if self.is_counted() {
            self.bases.load(Ordering::Acquire)
        } else {
            self.bytes()
        };
        all.saturating_sub(self.figures.dead.load(Ordering::Relaxed))
    }
}

/// All segments at one time.
#[derive(Debug, Default)]
pub(crate) struct Map {
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) index: Arc<Index>,
}

impl Map {
    pub(crate) fn last(&self) -> Option<&Arc<Segment>> {
        self.segments.last()
    }

    /// The segment that the record at `lsn` is in, if it is in one.
    pub(crate) fn segment_of(&self, lsn: Lsn) -> Option<&Arc<Segment>> {
        self.segments.get(self.index.find(lsn)?)
    }
}

/// Where segments begin, in their order. It holds no file, so whoever keeps an old one keeps no space.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) version: u64,
    firsts: Vec<u64>,
    pub(crate) figures: Vec<Arc<Figures>>,
    /// The last segment ends with the record that reaches this position.
    limit: u64,
}

impl Index {
    /// The number of the segment that the record at `lsn` is in: past the end if that segment has not begun
    /// yet, `None` if it is gone.
    #[inline]
    pub(crate) fn find(&self, lsn: Lsn) -> Option<usize> {
        if lsn.0 >= self.limit {
            return Some(self.firsts.len());
        }
        let number = self
            .firsts
            .partition_point(|&first| first <= lsn.0)
            .checked_sub(1)?;
        let is_last = number + 1 == self.firsts.len();
        let end = || self.firsts[number] + self.figures[number].bytes.load(Ordering::Relaxed);
        (is_last || lsn.0 < end()).then_some(number)
    }
}

/// The map of now.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    map: RwLock<Arc<Map>>,
    version: AtomicU64,
}

impl Segments {
    pub(crate) fn map(&self) -> Arc<Map> {
        self.map
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Changes whenever the map does.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn replace(&self, change: impl FnOnce(&mut Vec<Arc<Segment>>, &mut u64)) {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        let mut segments = map.segments.clone();
        let mut limit = map.index.limit;
        change(&mut segments, &mut limit);
        let version = map.index.version + 1;
        let index = Index {
            version,
            firsts: segments.iter().map(|segment| segment.first.0).collect(),
            figures: segments
                .iter()
                .map(|segment| segment.figures.clone())
                .collect(),
            limit,
        };
        *map = Arc::new(Map {
            segments,
            index: Arc::new(index),
        });
        self.version.store(version, Ordering::Release);
    }

    /// Adds the newest segment, which will end at `limit` or soon after.
    pub(crate) fn push(&self, segment: Arc<Segment>, limit: u64) {
        self.replace(|segments, its_limit| {
            segments.push(segment);
            *its_limit = limit;
        });
    }

    /// Takes a segment away.
    pub(crate) fn remove(&self, first: Lsn) {
        self.replace(|segments, _| segments.retain(|segment| segment.first != first));
    }
}
