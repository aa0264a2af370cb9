//! The log of the server and its state, as the floors above use it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use ferrite_log::{Address, Appender, DbId, Log, Slowest, Status, SyncPolicy};
use keyspace::{ItemsExpired, LogAddress, Overwritten};
use parking_lot::{Mutex, RwLock};
use sys::file::ServerDisk;

use super::instances::Instances;
use super::journal::{stored, tag_as};
use super::reading::Reading;
use super::warming::Warming;
use crate::config::{Setting, Settings};
use crate::request::Failure;
use crate::script::Libraries;
use crate::shared::ColdLeaves;

/// Phase of the log as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The log is on or off.
    #[default]
    Settled,
    /// Existing data is written to it.
    Beginning,
    /// It is being closed, and its addresses are cleared.
    Ending,
}

/// Error of a switch while another one is in progress.
const UNDER_WAY: &str = "the log is still being begun or ended, try again later";

/// The log and its state.
pub(crate) struct Persistence {
    /// Disk of the log.
    pub(crate) disk: Arc<ServerDisk>,
    /// Directory of the log; constant while the server runs.
    pub(super) directory: OnceLock<PathBuf>,
    pub(super) log: RwLock<Option<Log>>,
    /// Phase of the log as a whole.
    pub(super) phase: Mutex<Phase>,
    /// Number of logs opened since the start.
    pub(super) opened: AtomicU64,
    /// Number of rewrites of all data into the log, and whether the last one succeeded.
    pub(super) rewrites: AtomicU64,
    pub(super) is_rewrite_ok: AtomicBool,
    /// Number of the log that is replayed and takes records, counted since the start; 0 if there is none.
    pub(super) current: AtomicU64,
    /// Log ids of the databases, by number.
    pub(crate) ids: Box<[AtomicU16]>,
    /// Reports records that died without a command.
    pub(super) lost: Arc<Mutex<Option<Appender>>>,
    /// Trees of the log.
    pub(crate) instances: Arc<Instances>,
    /// Libraries of functions, which are in the log beside the databases.
    pub(crate) libraries: Libraries,
    pub(crate) reading: Reading,
    pub(crate) warming: Warming,
    /// Reason of the log's refusal, while the gate is closed for it.
    pub(super) refusal: Mutex<String>,
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
            libraries: Libraries::default(),
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

    pub(super) fn note_rewrite(&self, is_ok: bool) {
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

    /// Current number of a database of the log.
    pub(super) fn number_of(&self, id: DbId) -> Option<usize> {
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

    /// Phase of the log.
    pub(crate) fn phase(&self) -> Phase {
        *self.phase.lock()
    }

    pub(super) fn enter_phase(&self, next: Phase) -> Result<(), String> {
        let mut phase = self.phase.lock();
        if *phase != Phase::Settled {
            return Err(UNDER_WAY.into());
        }
        *phase = next;
        Ok(())
    }

    pub(super) fn settle(&self) {
        *self.phase.lock() = Phase::Settled;
    }
}

/// How often the log is synced.
pub(super) fn sync_policy(settings: &Settings) -> SyncPolicy {
    match settings.choice(Setting::AppendFsync) {
        "always" => SyncPolicy::Always,
        "no" => SyncPolicy::Never,
        _ => SyncPolicy::EverySecond,
    }
}
