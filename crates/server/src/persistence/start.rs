//! The log at the start of the server: it is opened, replayed, and a new one gets its first data.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::sync_channel;

use ferrite_log::{Error, Log, Lsn, Recovery, ReplayOptions};
use keyspace::COLD_MIN_BYTES;

use super::durable::Durable;
use super::options::{directory, log_options};
use super::redis_files::{self, Found};
use super::replay::{Loader, Unfinished};
use super::state::Persistence;
use super::{ending, large, snapshot, switch, warming};
use crate::config::Setting;
use crate::limits::{
    LOADING_PATIENCE, REPLAY_EXTRA_THREADS, REPLAY_FILLS_BYTES, REPLAY_PARTS, REPLAY_REPORT_MS,
};
use crate::shared::gate::Closed;

/// Opens the log, if it is switched on.
///
/// # Errors
/// Another process has locked it, it is damaged, or the disk fails.
pub(crate) fn open(server: &Durable) -> Result<Option<Recovery>, String> {
    if !server.settings.flag(Setting::AppendOnly) {
        return Ok(None);
    }
    let (files, directory) = (server.persistence.disk.clone(), directory(server));
    switch::discard_incomplete(&directory)
        .map_err(|error| format!("cannot use {}: {error}", directory.display()))?;
    let opened = Log::open(files, &directory, log_options(server));
    opened.map(Some).map_err(|error| {
        let remedy = match error {
            Error::Io { .. } => "; 'dir' says where it is, and with 'appendonly no' there is none",
            _ => "",
        };
        format!("cannot open the log: {error}{remedy}")
    })
}

/// Starts the replay of the log on a thread of its own. The server takes commands on data when it is done. A
/// short replay is waited for, so that early clients don't get `LOADING`. A new log gets the data of an
/// append-only file of redis-server, or of the snapshot, if there is one.
///
/// # Errors
/// The thread can't be started.
pub(crate) fn begin_loading(
    server: &'static Durable,
    recovery: Recovery,
    take_over: TakeOver,
) -> Result<(), String> {
    let thread = std::thread::Builder::new().name("load".into());
    let (done, is_done) = sync_channel(1);
    let spawned = thread.spawn(move || {
        match load(server, recovery, Imports::Found(take_over)) {
            Ok(()) => {}
            // The server is stopping.
            Err(_) if server.is_shutting_down() => {}
            Err(problem) => ending::fail(server, problem),
        }
        // The receiver may have stopped waiting.
        let _ = done.send(());
    });
    spawned.map_err(|error| format!("cannot start the thread that loads data: {error}"))?;
    let _ = is_done.recv_timeout(LOADING_PATIENCE);
    Ok(())
}

/// Runs an append-only file of redis-server ([`crate::takeover`], which runs commands), so that its data is
/// logged.
pub(crate) type TakeOver = Box<dyn FnOnce(&Found) -> Result<(), String> + Send>;

/// Sources of the first data of a new log.
pub(super) enum Imports {
    /// An append-only file of redis-server, else the snapshot, if there is one.
    Found(TakeOver),
    Nothing,
}

impl Imports {
    /// The data for a log that ends at `end`: a log that has something takes no other data.
    fn find(self, server: &'static Durable, end: Lsn) -> Result<Option<Import>, String> {
        match self {
            Imports::Found(take_over) if end == Lsn::FIRST => Import::find(server, take_over),
            _ => Ok(None),
        }
    }
}

/// Source of the first data of a new log.
enum Import {
    Redis(Found, TakeOver),
    Snapshot,
}

impl Import {
    /// Finds the source. As in redis-server an append-only file has priority over a snapshot.
    fn find(server: &Durable, take_over: TakeOver) -> Result<Option<Import>, String> {
        if let Some(found) = redis_files::find(&server.settings)? {
            return Ok(Some(Import::Redis(found, take_over)));
        }
        Ok(snapshot::is_there(server)?.then_some(Import::Snapshot))
    }

    /// Loads the source into the log, which is marked as incomplete until then.
    fn take(self, server: &'static Durable, directory: &Path) -> Result<(), String> {
        match self {
            Import::Redis(found, take_over) => take_over(&found)?,
            Import::Snapshot => {
                log::info!("The log is new: it begins with the snapshot");
                snapshot::load_at_start(server)?;
            }
        }
        switch::log_everything(server)
            .and_then(|()| switch::mark_complete(directory).map_err(|error| error.to_string()))
            .map_err(|problem| format!("cannot begin the log: {problem}"))?;
        server.snapshots.note_loaded(server);
        Ok(())
    }
}

/// Why a replay has come to nothing. The trees that a repair has to end are noted for it.
fn noted(recovery: &Recovery, why: Unfinished) -> String {
    let Unfinished { problem, lacking } = why;
    if lacking.is_empty() {
        return problem;
    }
    match recovery.note_lacking(&lacking) {
        Ok(()) => problem,
        Err(error) => format!("{problem}; {error}"),
    }
}

/// Replays a log and reports the progress. Returns the number of its records.
fn replay(
    server: &'static Durable,
    recovery: &mut Recovery,
    loader: &Loader,
    began: i64,
) -> Result<u64, String> {
    let (mut reported, mut records) = (began, 0);
    let options = ReplayOptions {
        threads: server.workers.len() + REPLAY_EXTRA_THREADS,
        partitions: server.keyspace.shards().min(REPLAY_PARTS),
        leave_min: loader.leaves_all().then_some(COLD_MIN_BYTES as u64),
    };
    let loading = server.snapshots.loading();
    loading.started_s.store(began / 1000, Relaxed);
    let bytes = recovery.log_bytes();
    loading.total_bytes.store(bytes, Relaxed);
    // Entries have room for their log address from the beginning, and tables for the last number of keys.
    server.keyspace.set_logged(true);
    loader.reserve(bytes);
    // Huge pages are allocated whole, so they are not used if memory may be too small for the log's data with
    // its overhead. Keys alone take little, and free it in small pieces when their values come.
    let is_large = bytes / server.workers.len() as u64 >= REPLAY_FILLS_BYTES;
    let fills = is_large && !loader.leaves_all() && server.memory.has_room(bytes.saturating_mul(2));
    server.keyspace.set_filling(fills);
    let replayed = recovery.replay(options, loader, &mut |progress| {
        records = progress.records;
        loading.loaded_bytes.store(progress.done, Relaxed);
        let now = sys::clock::realtime_ms();
        if now - reported >= REPLAY_REPORT_MS {
            reported = now;
            let percent = 100 * progress.done / progress.total.max(1);
            log::info!("Loading the log: {percent} %, {records} records");
        }
    });
    server.keyspace.set_filling(false);
    replayed.map_err(|error| format!("cannot load the log: {error}"))?;
    Ok(records)
}

/// Loads a log and the first data of a new one, and lets the workers write to it.
///
/// # Errors
/// The log or its sources are damaged, the disk fails, or there is no room.
pub(super) fn load(
    server: &'static Durable,
    mut recovery: Recovery,
    imports: Imports,
) -> Result<(), String> {
    let own = &server.persistence;
    let loader = Loader::new(server, &recovery);
    let began = sys::clock::realtime_ms();
    let records = replay(server, &mut recovery, &loader, began)?;
    let leaves_all = loader.leaves_all();
    let left = loader.finish().map_err(|why| noted(&recovery, why))?;
    for (db, id) in own.ids.iter().enumerate() {
        let number = u16::try_from(db).unwrap_or(u16::MAX);
        id.store(recovery.bindings().id_of(number).0, Relaxed);
    }
    let import = imports.find(server, recovery.end())?;
    let directory = directory(server);
    if import.is_some() {
        switch::mark_incomplete(&directory)
            .map_err(|error| format!("cannot begin the log: {error}"))?;
    }
    let log = recovery.start();
    let log = log.map_err(|error| format!("cannot begin to write the log: {error}"))?;
    // Compaction would take the records of trees that no key has yet for garbage.
    let hold = left.large.is_some().then(|| log.hold());
    // A worker that begins a turn after this has a journal before it runs the commands that were refused
    // until now.
    let alone = server.keyspace.turns().exclusive();
    Persistence::install(server, log);
    own.settle_trees(left.bases, &left.gone);
    if left.values {
        server.begin_offloading(&alone);
    }
    if left.blobs {
        server.offload.expect_large(&alone);
    }
    drop(alone);
    large::fill(server, left.large)?;
    drop(hold);
    if left.values && leaves_all {
        warming::begin(server);
    }
    if let Some(import) = import {
        import.take(server, &directory)?;
    }
    let alone = server.keyspace.turns().exclusive();
    server.gate.set(Closed::Loading, false);
    drop(alone);
    server.wake_workers();
    let seconds = (sys::clock::realtime_ms() - began) as f64 / 1000.0;
    log::info!("The log is loaded: {records} records in {seconds:.3} seconds");
    log::info!("Ready to accept connections");
    Ok(())
}
