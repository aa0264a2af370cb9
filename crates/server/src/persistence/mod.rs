//! The log of the server as a whole: opened and replayed at the start, compacted meanwhile, closed at the
//! end.
//!
//! The listeners are open before the log is replayed. Until it is, commands on data are answered with
//! `LOADING`. Then each worker gets a [`Journal`], and only a worker with one runs such commands. When the
//! log refuses records (the disk is full or has failed), writes are answered with `MISCONF` and reads
//! continue.
//!
//! Not here: how changes become records (`journal`), and the bytes of records (crate `ferrite_log`).

mod again;
mod amendments;
mod backup;
mod bring_back;
mod compaction;
mod durable;
mod ending;
mod instances;
pub(crate) mod journal;
mod large;
mod least_memory;
mod place;
mod reading;
mod redis_files;
mod relief;
mod replay;
mod sizes;
pub(crate) mod snapshot;
mod spill;
pub(crate) mod switch;
mod tile_store;
mod tree_replay;
mod warming;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};

use ferrite_log::{
    Address, Appender, DbId, Error, Log, Lsn, Options, Recovery, ReplayOptions, Slowest, Status,
    SyncPolicy,
};
use keyspace::{COLD_MIN_BYTES, ItemsExpired, LogAddress, Overwritten};
use parking_lot::{Mutex, RwLock};
use sys::file::ServerDisk;

use crate::config::{Setting, Settings};
use crate::limits::{
    LEAST_LOG_RING_BYTES, LEAST_LOG_SEGMENT_BYTES, LOADING_PATIENCE, LOG_GARBAGE_SEGMENTS,
    LOG_HINT_SHARE, LOG_RING_APPENDER_BYTES, LOG_RING_SHARE, LOG_SEGMENT_DISK_SHARE,
    REPLAY_EXTRA_THREADS, REPLAY_FILLS_BYTES, REPLAY_PARTS, REPLAY_REPORT_MS,
};
use crate::persistence::journal::{Journal, stored, tag_as};
use crate::request::Failure;
use crate::shared::ColdLeaves;
use crate::shared::gate::Closed;

pub(crate) use again::AgainError;
pub(crate) use backup::{backup_directory, check_place};
pub(crate) use durable::Durable;
pub(crate) use ending::{Ending, end, fail};
pub(crate) use redis_files::{Found, find};

pub(crate) use bring_back::check_room;
use compaction::Relocator;
use instances::Instances;
pub(crate) use instances::instance_key;
pub(crate) use place::tell;
use reading::Reading;
pub(crate) use reading::{NOT_THERE, Sought};
pub(crate) use relief::Relief;
use replay::{Loader, Unfinished};
pub(crate) use switch::{Phase, forget_incomplete};
pub(crate) use warming::Warming;

/// The log and its state.
pub(crate) struct Persistence {
    /// Disk of the log.
    pub(crate) disk: Arc<ServerDisk>,
    /// Directory of the log; constant while the server runs.
    directory: OnceLock<PathBuf>,
    log: RwLock<Option<Log>>,
    /// Phase of the log as a whole.
    phase: Mutex<Phase>,
    /// Number of logs opened since the start.
    opened: AtomicU64,
    /// Number of rewrites of all data into the log, and whether the last one succeeded.
    rewrites: AtomicU64,
    is_rewrite_ok: AtomicBool,
    /// Number of the log that is replayed and takes records, counted since the start; 0 if there is none.
    current: AtomicU64,
    /// Log ids of the databases, by number.
    pub(crate) ids: Box<[AtomicU16]>,
    /// Reports records that died without a command.
    lost: Arc<Mutex<Option<Appender>>>,
    /// Trees of the log.
    pub(crate) instances: Arc<Instances>,
    pub(crate) reading: Reading,
    pub(crate) warming: Warming,
    /// Reason of the log's refusal, while the gate is closed for it.
    refusal: Mutex<String>,
}

impl Persistence {
    pub(crate) fn new(databases: usize, cold: &Arc<ColdLeaves>) -> Persistence {
        // Database numbers have two bytes in the log and for clients.
        let number = |db: usize| u16::try_from(db).unwrap_or(u16::MAX);
        let lost = Arc::<Mutex<_>>::default();
        Persistence {
            disk: Arc::default(),
            directory: OnceLock::new(),
            log: RwLock::default(),
            phase: Mutex::default(),
            opened: AtomicU64::new(0),
            rewrites: AtomicU64::new(0),
            is_rewrite_ok: AtomicBool::new(true),
            current: AtomicU64::new(0),
            ids: (0..databases)
                .map(|db| AtomicU16::new(number(db)))
                .collect(),
            instances: Arc::new(Instances::new(Arc::clone(&lost), cold)),
            lost,
            reading: Reading::default(),
            warming: Warming::default(),
            refusal: Mutex::default(),
        }
    }

    /// Number of the log to which workers write, counted since the start; 0 if there is none. Changes while
    /// no worker is inside a turn.
    #[inline]
    pub(crate) fn current(&self) -> u64 {
        self.current.load(Relaxed)
    }

    /// Whether workers write to a log.
    pub(crate) fn is_open(&self) -> bool {
        self.current() != 0
    }

    /// Error reply while the log refuses records.
    pub(crate) fn failure(&self) -> Failure {
        let reason = self.refusal.lock();
        Failure::new(format!("MISCONF Errors writing to the AOF file: {reason}"))
    }

    /// Journal for a worker; `None` without a log or before it is loaded.
    pub(crate) fn journal(server: &'static Durable, worker: usize) -> Option<Journal> {
        let own = &server.persistence;
        if !own.is_open() {
            return None;
        }
        let handle = &server.workers[worker];
        let wake = Arc::new(move || handle.wake());
        let log = own.log.read();
        let appender = log.as_ref()?.appender(Some(wake));
        let appender = appender.expect("the log was opened for that many workers");
        Some(Journal::new(appender, &own.ids, &own.instances))
    }

    /// Status of the log; `None` before it is open.
    pub(crate) fn status(&self) -> Option<Status> {
        self.log.read().as_ref().map(Log::status)
    }

    /// Lets the unwritten records end with the process.
    #[cfg(any(debug_assertions, feature = "faults"))]
    pub(crate) fn forget_ring(&self) {
        if let Some(log) = self.log.read().as_ref() {
            log.forget_ring();
        }
    }

    /// Peak of the log's ring since the log was opened, bytes.
    pub(crate) fn ring_bytes(&self) -> u64 {
        self.log.read().as_ref().map_or(0, Log::ring_bytes)
    }

    /// Capacity of the log's ring, bytes.
    pub(crate) fn ring_capacity(&self) -> u64 {
        self.log.read().as_ref().map_or(0, Log::ring_capacity)
    }

    /// Reports a lost entry: one of a dropped database, or an expired one of the database with this number,
    /// whose shard is locked.
    pub(crate) fn lost(&self, old: Overwritten, key: &[u8], alone_from: Option<usize>) {
        if let Some(appender) = self.lost.lock().as_mut()
            && let Some(address) = Address::from_bits(old.address.0.get())
        {
            if (address.is_blob() || old.is_tree)
                && let Some(database) = alone_from
            {
                // Its file is removed, or the records of its leaves are dropped, so the record that names
                // them must not be the last one of the key.
                appender.delete(DbId(self.ids[database].load(Relaxed)), key);
            }
            appender.liveness().dead(address, key.len(), old.value_len);
            appender.commit();
        }
    }

    /// Logs the removal of items whose time had come. The shard of the entry is locked. Returns where the
    /// entry is in the log from then on, if that is another place.
    ///
    /// A removal is logged, unlike the expiry of a key: a replay then never has more items than there were,
    /// and an item that was removed stays so if the clock is set back. Its record may come before the batch
    /// of a transaction that finds the items gone, never after.
    pub(crate) fn items_expired(&self, expired: &ItemsExpired<'_>) -> Option<LogAddress> {
        let mut lost = self.lost.lock();
        let appender = lost.as_mut()?;
        let address = Address::from_bits(expired.old.address.0.get())?;
        let (key, id) = (expired.key, self.ids[expired.database].load(Relaxed));
        let is_tree = expired.old.is_tree;
        let (db, tag) = (DbId(id), tag_as(expired.of, expired.is_expiring, is_tree));
        let mut moved = None;
        if expired.is_gone {
            appender.delete(db, key);
            let value = expired.old.value_len;
            appender.liveness().dead(address, key.len(), value);
        } else if is_tree {
            // A tree of another database is about to be written as a whole.
            if let Some((instance, _)) = expired.instance.filter(|&(_, place)| place == id) {
                appender.edit_instance(db, instance, tag, expired.edits);
            }
        } else {
            appender.edit(db, key, tag, expired.edits);
            moved = Some(stored(address.patched()));
        }
        appender.commit();
        moved
    }

    /// Exchanges the log ids of two databases. No worker is inside a turn.
    pub(crate) fn swap(&self, first: usize, second: usize) {
        let one = self.ids[first].load(Relaxed);
        let two = self.ids[second].swap(one, Relaxed);
        self.ids[first].store(two, Relaxed);
    }

    /// Starts compaction of all garbage. Returns false if it is under way already; `None` without a log.
    pub(crate) fn compact(&self) -> Option<bool> {
        if self.phase() != Phase::Settled {
            return Some(false);
        }
        let log = self.log.read();
        let begins = log.as_ref()?.compact_thoroughly();
        if begins {
            self.rewrites.fetch_add(1, Relaxed);
        }
        Some(begins)
    }

    fn note_rewrite(&self, is_ok: bool) {
        self.rewrites.fetch_add(1, Relaxed);
        self.is_rewrite_ok.store(is_ok, Relaxed);
    }

    /// Number of rewrites of all data, and whether the last one succeeded.
    pub(crate) fn rewrites(&self) -> (u64, bool) {
        (
            self.rewrites.load(Relaxed),
            self.is_rewrite_ok.load(Relaxed),
        )
    }

    /// Slowest operations of the log since the last call.
    pub(crate) fn take_slowest(&self) -> Slowest {
        let log = self.log.read();
        log.as_ref().map(Log::take_slowest).unwrap_or_default()
    }

    /// Lets workers write to a log from their next turns on. No worker is inside a turn.
    fn install(server: &'static Durable, mut log: Log) {
        let own = &server.persistence;
        log.start_compaction(Arc::new(Relocator::new(server)));
        *own.lost.lock() = log.appender(None);
        *own.reading.reader.write() = Some(log.value_reader());
        *own.reading.blobs.write() = Some(log.blob_store());
        *own.log.write() = Some(log);
        server.keyspace.set_logged(true);
        own.current
            .store(1 + own.opened.fetch_add(1, Relaxed), Relaxed);
    }

    /// Current number of a database of the log.
    fn number_of(&self, id: DbId) -> Option<usize> {
        self.ids.iter().position(|own| own.load(Relaxed) == id.0)
    }

    /// Applies a change of `appendfsync`.
    pub(crate) fn apply_settings(&self, settings: &Settings) {
        if let Some(log) = self.log.read().as_ref() {
            log.set_sync_policy(sync_policy(settings));
        }
    }

    /// Makes all committed records durable. Returns whether they are; an error is in the messages.
    pub(crate) fn sync(&self) -> bool {
        let log = self.log.read();
        let synced = log.as_ref().map_or(Ok(()), |log| log.sync(log.tail()));
        if let Err(refusal) = &synced {
            log::error!("the log could not be made durable: {refusal}");
        }
        synced.is_ok()
    }

    /// Closes the log and makes everything in it durable. The workers have ended.
    ///
    /// # Errors
    /// The log could not be opened, replayed or closed.
    pub(crate) fn close(&self) -> Result<(), String> {
        self.lost.lock().take();
        self.reading.reader.write().take();
        if let Some(blobs) = self.reading.blobs.write().take() {
            blobs.keep_open();
        }
        // A concurrent sync waits until everything is durable.
        let mut log = self.log.write();
        if let Some(log) = log.take() {
            log.close()
                .map_err(|error| format!("the log could not be closed: {error}"))?;
        }
        Ok(())
    }
}

/// Directory of the log.
fn directory(server: &Durable) -> PathBuf {
    let settings = &server.settings;
    let found = server.persistence.directory.get_or_init(|| {
        // Two logs were an error at the start.
        let named = |_| Path::new(".").join(&*settings.text(Setting::AppendDirName));
        redis_files::own_directory(settings).unwrap_or_else(named)
    });
    found.clone()
}

fn sync_policy(settings: &Settings) -> SyncPolicy {
    match settings.choice(Setting::AppendFsync) {
        "always" => SyncPolicy::Always,
        "no" => SyncPolicy::Never,
        _ => SyncPolicy::EverySecond,
    }
}

/// Options of the log.
fn log_options(server: &Durable) -> Options {
    let usual = Options::default();
    // Beside the workers: compaction, lost entries, and the rewrite of all data.
    let appenders = server.workers.len() + 3;
    let limit = server.settings.int(Setting::MaxMemory).unsigned_abs();
    let segment_bytes = segment_bytes(server);
    // A segment is at least as large as the ring.
    let ring_bytes = ring_bytes(limit, appenders, usual.ring_bytes).min(1 << segment_bytes.ilog2());
    Options {
        segment_bytes,
        ring_bytes,
        charge: sys::memory::charge,
        sync: sync_policy(&server.settings),
        appenders,
        blob_min: usual.blob_min.min(ring_bytes as u64 / 8),
        hint_bytes: match limit {
            0 => usual.hint_bytes,
            limit => limit / LOG_HINT_SHARE,
        },
        garbage_bytes: LOG_GARBAGE_SEGMENTS * segment_bytes,
        // The content of the ring always fits: a segment is at least as large as the ring.
        reserve_bytes: usual.reserve_bytes.min(segment_bytes),
        ..usual
    }
}

/// Size of a segment, bytes: the setting, but at most a part of a small file system.
fn segment_bytes(server: &Durable) -> u64 {
    let wanted = server.settings.int(Setting::LogSegmentSize);
    let wanted = wanted.unsigned_abs();
    let disk = [&*directory(server), Path::new(".")]
        .into_iter()
        .find_map(|path| sys::file::file_system_bytes(path).ok());
    // Some file systems don't report their size.
    let most = match disk {
        None | Some(0) => u64::MAX,
        Some(bytes) => (bytes / LOG_SEGMENT_DISK_SHARE).max(LEAST_LOG_SEGMENT_BYTES),
    };
    if wanted > most {
        log::info!("the file system is small: segments of the log have {most} bytes, not {wanted}");
    }
    wanted.min(most).next_multiple_of(4096)
}

/// Size of the log's ring, bytes: a part of a small `maxmemory`, and at least what the appenders need.
fn ring_bytes(limit: u64, appenders: usize, usual: usize) -> usize {
    let part = match limit {
        0 => usual,
        limit => usize::try_from(limit / LOG_RING_SHARE).unwrap_or(usual),
    };
    let least = LEAST_LOG_RING_BYTES.max((appenders * LOG_RING_APPENDER_BYTES).next_power_of_two());
    1 << part.clamp(least, usual.max(least)).ilog2()
}

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
enum Imports {
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

fn load(server: &'static Durable, mut recovery: Recovery, imports: Imports) -> Result<(), String> {
    let own = &server.persistence;
    let loader = Loader::new(server, &recovery);
    let began = sys::clock::realtime_ms();
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
    let replayed = recovery.replay(options, &loader, &mut |progress| {
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
