//! Large values in files of their own.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::address::Lsn;
use crate::core::lock;
use crate::record::BlobRef;

/// Which blobs are needed, and by which record.
#[derive(Debug, Default)]
pub(crate) struct Blobs {
    live: Mutex<HashMap<Lsn, BlobRef>>,
    /// Blobs that go as soon as everything below a position is durable: the record that replaced them.
    doomed: Mutex<Vec<(Lsn, BlobRef)>>,
}

impl Blobs {
    /// How many blobs are needed, and their bytes.
    pub(crate) fn totals(&self) -> (usize, u64) {
        let live = lock(&self.live);
        (live.len(), live.values().map(|blob| blob.len).sum())
    }

    /// The record at `lsn` needs this blob.
    pub(crate) fn add(&self, lsn: Lsn, blob: BlobRef) {
        lock(&self.live).insert(lsn, blob);
    }

    /// The records at these positions need their blobs no more. The files stay until everything below `after` is
    /// durable.
    pub(crate) fn died(&self, lsns: &[Lsn], after: Option<Lsn>) {
        let mut live = lock(&self.live);
        let died = lsns.iter().filter_map(|lsn| live.remove(lsn));
        match after {
            Some(after) => lock(&self.doomed).extend(died.map(|blob| (after, blob))),
            None => died.for_each(drop),
        }
    }
}
