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
use crate::lock::lock;

/// Makes all records durable that are written now.
pub(crate) fn make_durable(core: &Core) -> Result<Lsn, Refusal> {
    let _one = lock(&core.sync_lock);
    if core.has_failed() {
        return Err(core.refusal().unwrap_or(Refusal::Closed));
    }
    // What a record below it names was complete before the record was written.
    let target = core.whole();
    if target <= core.durable() && !core.blobs.are_many_waiting() {
        // A segment can have been sealed since.
        forget_synced(core, target);
        return Ok(target);
    }
    let start = sys::clock::monotonic_ns();
    let synced = core
        .blobs
        .sync(&*core.files, &core.paths)
        .and_then(|had_blobs| sync_files(core).map(|()| had_blobs));
    let had_blobs = match synced {
        Ok(had_blobs) => had_blobs,
        Err(error) => {
            core.fail(error.to_string());
            return Err(core.refusal().unwrap_or(Refusal::Closed));
        }
    };
    count_sync(core, start);
    forget_synced(core, target);
    core.set_durable(target);
    if had_blobs {
        // Without a mark behind their records the next start would have to read all of them to know.
        core.mark_wanted.store(true, Ordering::Relaxed);
        core.wake_writer();
    }
    Ok(target)
}

/// Segments to which nothing is added, and of which all is durable, need no sync any more.
fn forget_synced(core: &Core, durable: Lsn) {
    lock(&core.unsynced).retain(|segment| !segment.is_sealed() || segment.end() > durable);
}

fn sync_files(core: &Core) -> Result<(), Error> {
    // The list first: a segment that begins after this has nothing below the target.
    let segments = lock(&core.unsynced).clone();
    for segment in segments {
        segment
            .file
            .sync_data()
            .map_err(|error| Error::io("cannot sync", &segment.path, error))?;
    }
    if core.directory_changed.swap(false, Ordering::AcqRel) {
        core.files
            .sync_dir(&core.paths.log)
            .map_err(|error| Error::io("cannot sync", &core.paths.log, error))?;
    }
    Ok(())
}

fn count_sync(core: &Core, start_ns: u64) {
    let ns = sys::clock::monotonic_ns() - start_ns;
    let us = ns / 1000;
    let usual = core.counters.sync_ns.load(Ordering::Relaxed);
    let usual = (usual * 15 + ns) / 16;
    core.counters.sync_ns.store(usual, Ordering::Relaxed);
    core.counters.syncs.fetch_add(1, Ordering::Relaxed);
    core.counters.sync_us.fetch_add(us, Ordering::Relaxed);
    core.counters.sync_us_max.fetch_max(us, Ordering::Relaxed);
    core.counters.slow_sync_us.fetch_max(us, Ordering::Relaxed);
}

/// Whether a full segment waits for its sync.
pub(crate) fn has_sealed(core: &Core) -> bool {
    lock(&core.unsynced)
        .iter()
        .any(|segment| segment.is_sealed())
}
