//! Switching the log on and off on a server with data: CONFIG SET appendonly, the first start with a log,
//! DEBUG RELOAD.
//!
//! A log that is begun beside data is *incomplete* until all data is in it; a mark file exists until then.
//! Workers log their changes from the first moment. Meanwhile one thread walks through the shards and logs
//! the other entries, a few under each lock. So workers are not blocked, and each entry is logged once, with
//! its current value. A start that finds an incomplete log begins a new one with the data of the snapshot.
//!
//! The log is not switched off while it is in use: by a snapshot that reads from it, or by the upload of a
//! large value. After that a walk of the same kind clears the log addresses of all entries, before another
//! log can begin.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use ferrite_log::{Appender, DbId, Error, Log, Rebind};
use keyspace::{Exclusive, Guard, Key, ShardId};

use super::options::{directory, log_options};
use super::room_in_log::ensure;
use super::state::{Persistence, Phase};
use super::{bring_back, libraries, redis_files};
use crate::config::Setting;
use crate::limits::{
    ARRIVING_LOOK, ARRIVING_PATIENCE, BEGIN_BUCKETS, BEGIN_BYTES, BETWEEN_TURNS_LOOK,
    BRING_BACK_LOOKS,
};
use crate::persistence::durable::Durable;
use crate::persistence::journal::{stored, tag_of, with_value};
use crate::shared::gate::Closed;

/// File that exists while the log is incomplete.
pub(super) fn mark_of(directory: &Path) -> PathBuf {
    directory.join("INCOMPLETE")
}

/// Directory of the earlier log until the new one is complete.
fn earlier(directory: &Path) -> PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(".old");
    PathBuf::from(name)
}

fn remove_all(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes the entries of a directory durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

/// Marks the log in a directory as incomplete.
pub(super) fn mark_incomplete(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    fs::write(mark_of(directory), b"")?;
    sync_directory(directory)
}

/// Marks the log in a directory as complete.
pub(super) fn mark_complete(directory: &Path) -> io::Result<()> {
    fs::remove_file(mark_of(directory))?;
    sync_directory(directory)
}

/// Removes an incomplete log.
pub(super) fn discard_incomplete(directory: &Path) -> io::Result<()> {
    if !mark_of(directory).exists() {
        return Ok(());
    }
    log::warn!(
        "the log in {} was never completed: it begins anew",
        directory.display()
    );
    // The mark is removed last.
    for part in ["log", "blobs", "lost"] {
        remove_all(&directory.join(part))?;
    }
    // Without its log the proof of a clean stop would look like damage.
    match fs::remove_file(directory.join("CLOSED")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    mark_complete(directory)
}

/// Removes the rest of a log that this start began and could not complete, so that the directory is as
/// before.
pub(crate) fn forget_incomplete(server: &Durable) {
    let directory = directory(server);
    if !mark_of(&directory).exists() {
        return;
    }
    // Keeps other servers out of the directory meanwhile.
    let held = Log::open(
        server.persistence.disk.clone(),
        &directory,
        log_options(server),
    );
    let Ok(held) = held else { return };
    let parts = ["log", "blobs", "lost"].map(|part| directory.join(part));
    let removed = parts.iter().try_for_each(|part| remove_all(part));
    // The next start removes the rest while the mark exists.
    if removed.is_ok() {
        for file in ["CLOSED", "INCOMPLETE", "LOCK"] {
            let _ = fs::remove_file(directory.join(file));
        }
        // A directory with other files stays.
        let _ = fs::remove_dir(&directory);
    }
    drop(held);
}

/// Opens a new log. An existing one is moved away.
fn begin_fresh(server: &Durable, directory: &Path) -> Result<Log, String> {
    let failed =
        |error: io::Error| format!("cannot begin a log in {}: {error}", directory.display());
    let disk = || server.persistence.disk.clone();
    let options = log_options(server);
    // Errors of an old log don't prevent a new one, except that another process uses it.
    if let Err(error @ Error::Locked { .. }) = Log::open(disk(), directory, options.clone()) {
        return Err(error.to_string());
    }
    // Files of redis-server would be moved away with the log, and be removed with it later.
    if redis_files::has_redis_files(directory) {
        return Err(format!(
            "{} has files of redis-server, too: move them elsewhere first",
            directory.display()
        ));
    }
    let old = earlier(directory);
    remove_all(&old).map_err(failed)?;
    fs::rename(directory, &old).map_err(failed)?;
    mark_incomplete(directory).map_err(failed)?;
    let recovery = Log::open(disk(), directory, options).map_err(|error| error.to_string())?;
    recovery.start().map_err(|error| error.to_string())
}

impl Persistence {
    /// Switches the log on, on a running server. Existing data is written to it in the background.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) fn switch_on(server: &'static Durable) -> Result<(), String> {
        let own = &server.persistence;
        own.enter_phase(Phase::Beginning)?;
        let directory = directory(server);
        let log = begin_fresh(server, &directory).inspect_err(|_| own.settle())?;
        log::info!("Writing all data to the log");
        // On a thread of its own and between turns: a worker inside a turn would finish it without a journal,
        // and its changes would be missing from the log.
        spawn("log-begin", move || {
            let Some(alone) = alone_between_turns(server) else {
                return server.persistence.settle();
            };
            for (number, id) in (0..=u16::MAX).zip(&own.ids) {
                id.store(number, Relaxed);
            }
            Persistence::install(server, log);
            drop(alone);
            server.wake_workers();
            let done = log_everything(server)
                .and_then(|()| mark_complete(&directory).map_err(|error| error.to_string()));
            match &done {
                Ok(()) => {
                    let _ = remove_all(&earlier(&directory));
                    log::info!("All data is in the log");
                }
                Err(problem) => log::error!("the log is incomplete: {problem}"),
            }
            server.persistence.note_rewrite(done.is_ok());
            server.persistence.settle();
        })
    }

    /// Switches the log off, on a running server. Values that are only in the log are loaded first. The log
    /// stays on disk.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) fn switch_off(server: &'static Durable) -> Result<(), String> {
        let own = &server.persistence;
        own.enter_phase(Phase::Ending)?;
        spawn("log-end", move || {
            match have_all_back(server) {
                Ok(alone) => end(server, alone),
                Err(problem) => {
                    log::error!("the log does not end: {problem}");
                    if let Err(problem) = server.settings.set(Setting::AppendOnly, "yes") {
                        log::error!("appendonly: {problem}");
                    }
                }
            }
            own.settle();
        })
        .inspect_err(|_| own.settle())
    }

    /// Begins to log all data again, before or after data is loaded that is not logged. No other thread
    /// changes data meanwhile. `clears`: records from before are void.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) fn begin_anew(server: &Durable, clears: bool) -> Result<(), String> {
        let own = &server.persistence;
        if !own.is_open() {
            return Ok(());
        }
        mark_incomplete(&directory(server)).map_err(|error| error.to_string())?;
        if clears {
            walk(server, |guard, position| guard.forget_log(position))?;
            own.instances.clear();
            own.appender()?.bind(&[Rebind::ClearAll]);
        }
        Ok(())
    }

    /// Logs the missing data after [`Persistence::begin_anew`].
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) fn complete_anew(server: &Durable) -> Result<(), String> {
        if !server.persistence.is_open() {
            return Ok(());
        }
        log_everything(server)?;
        mark_complete(&directory(server)).map_err(|error| error.to_string())
    }

    pub(crate) fn appender(&self) -> Result<Appender, String> {
        let log = self.log.read();
        let appender = log.as_ref().and_then(|log| log.appender(None));
        appender.ok_or_else(|| "the log has been closed".to_owned())
    }
}

/// Loads all values. No worker is inside a turn on return.
fn have_all_back(server: &'static Durable) -> Result<Exclusive<'static>, String> {
    for _ in 0..BRING_BACK_LOOKS {
        let alone = alone_with_log(server, || alone_between_turns(server))?;
        if !server.has_cold(&alone) {
            return Ok(alone);
        }
        drop(alone);
        bring_back::bring_back(server)?;
    }
    Err("values come to the log alone all the time, try again later".into())
}

/// Excludes all workers when the log is not in use: no snapshot reads from it, and no large value is being
/// uploaded. New large values are not uploaded while the log ends. An upload to which nothing arrives any
/// more is not waited for. `keep_out` excludes all workers.
pub(super) fn alone_with_log(
    server: &'static Durable,
    keep_out: impl Fn() -> Option<Exclusive<'static>>,
) -> Result<Exclusive<'static>, String> {
    let (mut arrived, mut since) = (None, Instant::now());
    loop {
        let pieces = server.offload.arrived_pieces.load(Relaxed);
        if arrived.replace(pieces) != Some(pieces) {
            since = Instant::now();
        }
        let is_used = || {
            let is_arriving = server.offload.arriving.load(Relaxed) > 0;
            server.snapshots.is_running() || is_arriving && since.elapsed() < ARRIVING_PATIENCE
        };
        if !is_used() {
            let alone = keep_out().ok_or("the server ends")?;
            if !is_used() {
                return Ok(alone);
            }
        }
        if server.is_shutting_down() {
            return Err("the server ends".into());
        }
        std::thread::sleep(ARRIVING_LOOK);
    }
}

/// Excludes all workers when none has an interrupted turn. `None` if the server is stopping.
fn alone_between_turns(server: &'static Durable) -> Option<Exclusive<'static>> {
    while !server.is_shutting_down() {
        if let Some(alone) = server.keyspace.turns().exclusive_between_turns() {
            return Some(alone);
        }
        std::thread::sleep(BETWEEN_TURNS_LOOK);
    }
    None
}

/// Switches the log off.
fn end(server: &'static Durable, alone: Exclusive<'static>) {
    server.persistence.current.store(0, Relaxed);
    server.keyspace.set_logged(false);
    server.gate.set(Closed::LogRefuses, false);
    drop(alone);
    server.wake_workers();
    if let Err(problem) = server.persistence.close() {
        log::error!("{problem}");
    }
    let forgotten = walk(server, |guard, position| guard.forget_log(position));
    server.persistence.instances.clear();
    server.persistence.libraries.forget_places();
    if let Err(problem) = forgotten {
        log::error!("{problem}");
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = std::thread::Builder::new().name(name.into());
    let spawned = thread.spawn(run);
    spawned
        .map(drop)
        .map_err(|error| format!("cannot start a thread: {error}"))
}

/// Logs all entries that are not in the log, and makes them durable.
///
/// # Errors
/// The reason, for people.
pub(crate) fn log_everything(server: &Durable) -> Result<(), String> {
    let own = &server.persistence;
    let mut appender = own.appender()?;
    libraries::log_missing(server, &mut appender)?;
    let ids: Vec<DbId> = own.ids.iter().map(|id| DbId(id.load(Relaxed))).collect();
    let mut turn = server.keyspace.turns().register();
    // By log ids, which stay when databases are exchanged.
    for id in ids {
        for shard in 0..server.keyspace.shards() {
            let mut position = Some(0);
            while let Some(at) = position {
                ensure(server, &mut appender)?;
                turn.enter();
                let number = own.number_of(id);
                let database = number.and_then(|db| server.keyspace.existing(&turn, db));
                position = database.and_then(|database| {
                    let now = sys::clock::realtime_ms();
                    let mut guard = database.lock_shard(ShardId(shard), now);
                    log_some(server, &mut guard, at, id, &mut appender)
                });
                turn.leave();
                appender.commit();
            }
        }
    }
    let end = appender.commit();
    drop(appender);
    let log = own.log.read();
    let log = log.as_ref().ok_or("the log has been closed")?;
    log.sync(end).map_err(|refusal| refusal.to_string())
}

/// Logs the missing entries of a few buckets.
pub(super) fn log_some(
    server: &Durable,
    guard: &mut Guard<'_>,
    mut at: u64,
    id: DbId,
    appender: &mut Appender,
) -> Option<u64> {
    let mut bytes = 0;
    for _ in 0..BEGIN_BUCKETS {
        at = guard.log_missing(at, &mut |entry| {
            let (key, tag) = (entry.key(), tag_of(entry));
            if let Some(tree) = entry.tree() {
                let hash = server.keyspace.hash(key);
                let key = Key { bytes: key, hash };
                let instances = &server.persistence.instances;
                instances.log_tree(appender, id, key, tag, tree);
                bytes += tree.bytes() as u64;
            }
            with_value(entry, |value| {
                bytes += Appender::bytes_of(key.len(), value.len());
                stored(appender.set(id, key, tag, entry.expiry(), value))
            })
        })?;
        if bytes >= BEGIN_BYTES {
            break;
        }
    }
    Some(at)
}

/// Visits all buckets of all databases, a few under each lock.
fn walk(
    server: &Durable,
    visit: impl Fn(&mut Guard<'_>, u64) -> Option<u64>,
) -> Result<(), String> {
    let keyspace = &server.keyspace;
    let mut turn = keyspace.turns().register();
    // Databases may be exchanged meanwhile, so each is found by its log id.
    for id in 0..keyspace.databases() {
        let id = DbId(u16::try_from(id).map_err(|_| "too many databases")?);
        for shard in 0..keyspace.shards() {
            let mut position = Some(0);
            while let Some(at) = position {
                if server.is_shutting_down() {
                    return Err("the server ends".into());
                }
                turn.enter();
                let number = server.persistence.number_of(id);
                let database = number.and_then(|db| keyspace.existing(&turn, db));
                position = database.and_then(|database| {
                    let mut guard = database.lock_shard(ShardId(shard), 0);
                    (0..BEGIN_BUCKETS).try_fold(at, |at, _| visit(&mut guard, at))
                });
                turn.leave();
            }
        }
    }
    Ok(())
}
