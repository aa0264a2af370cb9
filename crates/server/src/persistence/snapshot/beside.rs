//! Writing a snapshot while workers run.
//!
//! The snapshot thread works for 200 us at a time, encoding and writing included, then sleeps, the longer the
//! busier workers are. So a processor is soon free for a thread that wakes up there, or for one that waits at
//! another. Some 50 us of that are inside the keyspace, with one shard locked. Copies made by writers are
//! written first; after more than a few there is no sleep.

use std::time::Duration;

use keyspace::{Records, Snapshot, Turn};

use super::file::Draft;
use super::save::{Save, Stop, check};
use super::state::{Job, Outcome};
use crate::limits::{SNAPSHOT_COPIES_SHARE, SNAPSHOT_REST_SHARE, SNAPSHOT_WORK_US, WARMING_LOOK};
use crate::persistence::durable::Durable;
use crate::shared::throttle::Throttle;

/// Writes a snapshot to the configured file while workers run.
pub(super) fn save_beside(server: &Durable, turn: &mut Turn<'_>, job: &mut Job) -> Outcome {
    write_beside(server, turn, job).into()
}

fn write_beside(server: &Durable, turn: &mut Turn<'_>, job: &mut Job) -> Result<(), Stop> {
    let used_memory = server.used_memory();
    let (snapshot, hold) = (&mut job.snapshot, job.hold.as_ref());
    let libraries = std::mem::take(&mut job.libraries);
    let (mut draft, file) = Draft::create(&server.settings)?;
    let sizes = snapshot.sizes().to_vec();
    let mut save = Save::begin((server, hold), file, used_memory, sizes, &libraries)?;
    drop(libraries);
    put_all(&mut save, turn, snapshot, used_memory as usize)?;
    save.finish()?;
    match server.snapshots.commit(|| draft.keep()) {
        None => return Err(Stop::Cancelled),
        Some(kept) => kept?,
    }
    Ok(draft.sync_directory()?)
}

/// Writes all data of a snapshot to the file.
fn put_all(
    save: &mut Save<'_>,
    turn: &mut Turn<'_>,
    snapshot: &mut Snapshot,
    used_memory: usize,
) -> Result<(), Stop> {
    let (server, mut records) = (save.server(), Records::default());
    let mut throttle = CpuThrottle::new(server);
    let mut may_walk = false;
    loop {
        // While a start still loads values, in the fastest order, the walk waits.
        may_walk = may_walk || server.persistence.warming.progress().is_none();
        turn.enter();
        let stepped = if may_walk {
            snapshot.step(turn, &mut records)
        } else {
            snapshot.step_copied(&mut records)
        };
        turn.leave();
        let copied_bytes = snapshot.copied_bytes();
        // Copies made by writers take memory, and more of the writers' time than writing them takes here.
        let mut pause = || {
            if snapshot.copied_bytes() < used_memory / SNAPSHOT_COPIES_SHARE {
                throttle.take(server);
            } else {
                throttle.skip();
            }
            check(server)
        };
        match stepped {
            Some(database) => save.records(database, &records, &mut pause)?,
            None if may_walk => return Ok(()),
            None => std::thread::sleep(WARMING_LOOK),
        }
        server.snapshots.note_progress(records.len(), copied_bytes);
        pause()?;
    }
}

/// Throttle by processor time.
struct CpuThrottle {
    throttle: Throttle,
    /// Processor time of this thread at the end of the last sleep. Waits for the disk or a processor are no
    /// work.
    before: Duration,
}

impl CpuThrottle {
    fn new(server: &Durable) -> CpuThrottle {
        CpuThrottle {
            throttle: Throttle::new(server, SNAPSHOT_REST_SHARE, SNAPSHOT_WORK_US),
            before: worked(),
        }
    }

    /// Sleeps in proportion to the work since the last sleep.
    fn take(&mut self, server: &Durable) {
        let now = worked();
        if self
            .throttle
            .take_after(server, now.saturating_sub(self.before))
        {
            self.before = now;
        }
    }

    /// Drops the work since the last sleep from the account.
    fn skip(&mut self) {
        self.before = worked();
    }
}

/// Processor time of the calling thread.
fn worked() -> Duration {
    let times = sys::process::thread_cpu_times();
    times.user + times.system
}
