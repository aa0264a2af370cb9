//! Making what was written durable.
//!
//! One sync at a time, by whoever needs it: the log thread after every write (`always`), the sync thread once
//! a second (`everysec`), compaction and backup when they have to know. A sync covers the records that were
//! whole in the files when it began, in however many segments, and before them the files of large values that
//! they may name.

use std::sync::atomic::Ordering;

use crate::address::Lsn;
use crate::core::Core;
use crate::error::{Error, Refusal};
use crate::limits::{LONGEST_SLEEP, SYNC_INTERVAL};
use crate::lock::lock;
use crate::options::SyncPolicy;

impl Core {
    /// Makes all records durable that are written now.
    pub(crate) fn sync(&self) -> Result<Lsn, Refusal> {
        let _one = lock(&self.sync_lock);
        if self.has_failed() {
            return Err(self.refusal().unwrap_or(Refusal::Closed));
        }
        // What a record below it names was complete before the record was written.
        let target = self.whole();
        if target <= self.durable() && !self.blobs.are_many_waiting() {
            // A segment can have been sealed since.
            self.forget_synced(target);
            return Ok(target);
        }
        let start = sys::clock::monotonic_ns();
        let synced = self
            .sync_blobs()
            .and_then(|had_blobs| self.sync_files().map(|()| had_blobs));
        let had_blobs = match synced {
            Ok(had_blobs) => had_blobs,
            Err(error) => {
                self.fail(error.to_string());
                return Err(self.refusal().unwrap_or(Refusal::Closed));
            }
        };
        self.count_sync(start);
        self.forget_synced(target);
        self.set_durable(target);
        if had_blobs {
            // Without a mark behind their records the next start would have to read all of them to know.
            self.mark_wanted.store(true, Ordering::Relaxed);
            self.wake_writer();
        }
        Ok(target)
    }

    /// Segments to which nothing is added, and of which all is durable, need no sync any more.
    fn forget_synced(&self, durable: Lsn) {
        lock(&self.unsynced).retain(|segment| !segment.is_sealed() || segment.end() > durable);
    }

    fn sync_files(&self) -> Result<(), Error> {
        // The list first: a segment that begins after this has nothing below the target.
        let segments = lock(&self.unsynced).clone();
        for segment in segments {
            segment
                .file
                .sync_data()
                .map_err(|error| Error::io("cannot sync", &segment.path, error))?;
        }
        if self.directory_changed.swap(false, Ordering::AcqRel) {
            self.files
                .sync_dir(&self.paths.log)
                .map_err(|error| Error::io("cannot sync", &self.paths.log, error))?;
        }
        Ok(())
    }

    fn count_sync(&self, start_ns: u64) {
        let ns = sys::clock::monotonic_ns() - start_ns;
        let us = ns / 1000;
        let usual = self.counters.sync_ns.load(Ordering::Relaxed);
        let usual = (usual * 15 + ns) / 16;
        self.counters.sync_ns.store(usual, Ordering::Relaxed);
        self.counters.syncs.fetch_add(1, Ordering::Relaxed);
        self.counters.sync_us.fetch_add(us, Ordering::Relaxed);
        self.counters.sync_us_max.fetch_max(us, Ordering::Relaxed);
        self.counters.slow_sync_us.fetch_max(us, Ordering::Relaxed);
    }

    /// Writes and makes durable everything below `lsn`, which has been committed.
    pub(crate) fn force(&self, lsn: Lsn) -> Result<(), Refusal> {
        while self.durable() < lsn {
            if self.whole() < lsn {
                self.wait_for_room(|| self.has_failed() || self.whole() >= lsn);
            }
            self.sync()?;
        }
        Ok(())
    }

    /// What the sync thread does until the log is closed.
    pub(crate) fn run_sync_thread(&self) {
        while !self.is_closing.load(Ordering::SeqCst) {
            let interval = match self.policy() {
                SyncPolicy::EverySecond => SYNC_INTERVAL,
                SyncPolicy::Always | SyncPolicy::Never => LONGEST_SLEEP,
            };
            let policy = self.policy();
            self.chores.wait_for(interval, || {
                self.is_closing.load(Ordering::SeqCst)
                    || self.policy() != policy
                    || self.sync_wanted.load(Ordering::SeqCst)
                    || self.has_sealed()
                    || self.blobs.are_many_waiting()
            });
            if self.sync_wanted.swap(false, Ordering::SeqCst) {
                let _ = self.force(self.tail());
            }
            let is_due = match self.policy() {
                SyncPolicy::EverySecond => true,
                // The log thread does it; here only what a change of policy left behind.
                SyncPolicy::Always => true,
                SyncPolicy::Never => {
                    self.has_sealed() || self.blobs.has_doomed() || self.blobs.are_many_waiting()
                }
            };
            if is_due {
                // A failure is latched where it happens.
                let _ = self.sync();
            }
            if self.has_failed() {
                self.chores.wait(|| self.is_closing.load(Ordering::SeqCst));
            }
        }
    }

    /// Whether a full segment waits for its sync.
    fn has_sealed(&self) -> bool {
        lock(&self.unsynced)
            .iter()
            .any(|segment| segment.is_sealed())
    }
}
