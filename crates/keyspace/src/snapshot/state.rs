//! What the shards know of the snapshot that runs: the mark that entries shall have, and where copies of
//! entries go that somebody is about to change.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::entry::Mark;
use crate::records::Records;

/// What all shards know of the snapshot that runs.
#[derive(Default)]
pub(crate) struct SnapshotState {
    pub(super) mark: AtomicU64,
    pub(super) collecting: Mutex<Collecting>,
}

/// Where copies of entries go that somebody was about to change.
#[derive(Default)]
pub(super) enum Collecting {
    /// No snapshot exists.
    #[default]
    Idle,
    /// A snapshot wants them.
    Wanted(Wanted),
    /// A snapshot that nobody wants any more is marking what is left.
    Unwanted,
}

pub(super) struct Wanted {
    pub(super) started_ms: i64,
    /// The addresses of each database's shards, by which a shard finds out whose it is.
    pub(super) databases: Vec<Range<usize>>,
    /// Full buffers, and the index of their database.
    pub(super) full: Vec<(usize, Records)>,
    /// Bytes that writers have handed over so far.
    pub(super) bytes: usize,
}

/// A shard's part in a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The index of its database among those of the snapshot.
    pub(crate) database: usize,
    /// When the snapshot began (Unix, ms).
    pub(crate) started_ms: i64,
}

impl SnapshotState {
    /// The mark that entries shall have.
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.mark.load(Relaxed))
    }

    /// The part that the shard at this address has in the snapshot that wants its entries; `None` if none
    /// does.
    pub(crate) fn part_of(&self, shard: usize) -> Option<Part> {
        let Collecting::Wanted(wanted) = &*self.collecting.lock() else {
            return None;
        };
        let of_database = |range: &Range<usize>| range.contains(&shard);
        Some(Part {
            database: wanted.databases.iter().position(of_database)?,
            started_ms: wanted.started_ms,
        })
    }

    /// Takes the buffer of a shard, if it is wanted.
    pub(crate) fn hand_over(&self, part: Part, records: Records) {
        if let Collecting::Wanted(wanted) = &mut *self.collecting.lock() {
            wanted.bytes += records.bytes();
            wanted.full.push((part.database, records));
        }
    }
}
