//! Writing a snapshot while workers go on.
//!
//! The thread that does it works for 200 us at a time, encoding and writing included, and rests, the longer
//! the busier workers are: a processor is free again before anybody who wakes up there has waited long, and
//! whoever waits at another may come over. It is inside the keyspace for some 50 us of that, with one shard
//! locked. What writers had to copy comes first; once that was more than a little there is no rest.

use std::time::Duration;

use ferrite_log::Hold;
use keyspace::{Records, Snapshot, Turn};

use super::cold;
use super::file::Draft;
use super::save::{Save, SavedValue, Stop};
use super::state::Outcome;
use crate::limits::{SNAPSHOT_COPIES_SHARE, SNAPSHOT_REST_SHARE, SNAPSHOT_WORK_US, WARMING_LOOK};
use crate::persistence::Durable;
use crate::shared::throttle::Throttle;

/// Writes a snapshot to the file that the settings name, while workers go on.
pub(super) fn save_beside(
    server: &Durable,
    turn: &mut Turn<'_>,
    snapshot: &mut Snapshot,
    hold: Option<&Hold>,
) -> Outcome {
    write_beside(server, turn, snapshot, hold).into()
}

fn write_beside(
    server: &Durable,
    turn: &mut Turn<'_>,
    snapshot: &mut Snapshot,
    hold: Option<&Hold>,
) -> Result<(), Stop> {
    let used_memory = server.used_memory();
    let (mut draft, file) = Draft::create(&server.settings)?;
    let mut save = Save::begin(server, file, used_memory, snapshot.sizes().to_vec())?;
    put_all(&mut save, turn, snapshot, hold, used_memory as usize)?;
    save.finish()?;
    match server.snapshots.commit(|| draft.keep()) {
        None => return Err(Stop::Cancelled),
        Some(kept) => kept?,
    }
    Ok(draft.sync_directory()?)
}

/// Puts all of a snapshot into the file.
fn put_all(
    save: &mut Save<'_>,
    turn: &mut Turn<'_>,
    snapshot: &mut Snapshot,
    hold: Option<&Hold>,
    used_memory: usize,
) -> Result<(), Stop> {
    let (server, mut records) = (save.server(), Records::default());
    let mut pace = Pace::new(server);
    let mut may_walk = false;
    loop {
        // After a start values may be on their way back, by the quickest way there is.
        may_walk = may_walk || server.persistence.warming.progress().is_none();
        turn.enter();
        let stepped = if may_walk {
            snapshot.step(turn, &mut records)
        } else {
            snapshot.step_copied(&mut records)
        };
        turn.leave();
        match stepped {
            Some(database) => put(save, database, &records, hold)?,
            None if may_walk => return Ok(()),
            None => std::thread::sleep(WARMING_LOOK),
        }
        server
            .snapshots
            .note_progress(records.len(), snapshot.copied_bytes());
        save.check()?;
        // What writers have to copy takes memory, and more of their time than of ours.
        if snapshot.copied_bytes() < used_memory / SNAPSHOT_COPIES_SHARE {
            pace.rest(server);
        } else {
            pace.skip();
        }
    }
}

/// Puts keys and values into the file.
fn put(
    save: &mut Save<'_>,
    database: usize,
    records: &Records,
    hold: Option<&Hold>,
) -> Result<(), Stop> {
    if !cold::is_in(records) {
        return save.records(database, records);
    }
    cold::read(save.server(), records, hold, |found| match found {
        cold::Found::Values(values) => save.records(database, &values),
        cold::Found::File {
            key,
            expiry,
            len,
            stream,
        } => save.key(database, key, SavedValue::File(len, stream), expiry),
    })
}

/// When to rest.
struct Pace {
    throttle: Throttle,
    /// The processor time of this thread at the end of the last rest. What it waits for, the disk or a
    /// processor, is no work.
    before: Duration,
}

impl Pace {
    fn new(server: &Durable) -> Pace {
        Pace {
            throttle: Throttle::new(server, SNAPSHOT_REST_SHARE, SNAPSHOT_WORK_US),
            before: worked(),
        }
    }

    /// Sleeps as long as the work since the last time asks for.
    fn rest(&mut self, server: &Durable) {
        let now = worked();
        if self
            .throttle
            .take_after(server, now.saturating_sub(self.before))
        {
            self.before = now;
        }
    }

    /// What was done since the last time is followed by no rest.
    fn skip(&mut self) {
        self.before = worked();
    }
}

/// The processor time of the calling thread.
fn worked() -> Duration {
    let times = sys::process::thread_cpu_times();
    times.user + times.system
}
