//! A log that takes writes: its threads, and what one asks of it as a whole.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use sys::file::Files;

use crate::address::Lsn;
use crate::appender::Appender;
use crate::backup::Backup;
use crate::bindings::Bindings;
use crate::blob::BlobStore;
use crate::closed::Closed;
use crate::compact::{Compactor, Relocate};
use crate::core::{Core, Wake};
use crate::error::{Error, Refusal, Result};
use crate::fetch::{Hold, ValueReader};
use crate::limits::{FULL_RETRY, LONGEST_SLEEP, NAP, NAPS};
use crate::lock::lock;
use crate::options::{Options, SyncPolicy};
use crate::recover::Recovery;
use crate::status::{Slowest, Status};
use crate::sweep::Sweep;
use crate::writer::Writer;

/// The name of the thread that writes.
const LOG_THREAD: &str = "log";

/// See the crate. Dropping it closes it.
pub struct Log {
    core: Arc<Core>,
    threads: Vec<JoinHandle<()>>,
}

impl Log {
    /// Opens the log in `directory`, which is made if it is missing, and finds out what it consists of.
    ///
    /// # Errors
    /// Another process has it, it is damaged, or the disk refuses.
    pub fn open(files: Arc<dyn Files>, directory: &Path, options: Options) -> Result<Recovery> {
        Recovery::open(files, directory, options)
    }

    /// Starts the threads.
    pub(crate) fn start(core: Arc<Core>, writer: Writer) -> Log {
        *lock(&core.writer) = Some(writer);
        let mut log = Log {
            core,
            threads: Vec::new(),
        };
        if log.core.options.background {
            log.spawn(LOG_THREAD, run_writer);
            log.spawn("log-sync", |core| core.run_sync_thread());
            log.spawn("log-keeper", |core| core.run_keeper_thread());
        }
        log
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce(&Core) + Send + 'static) {
        let core = self.core.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&core))
            .expect("the system has threads at the start");
        self.threads.push(thread);
    }

    /// A way into the log for one more thread; `None` when there are as many as the options allow. `wake` is
    /// called from a thread of the log when what [`Appender::wake_when_durable`] asked for has happened: it
    /// should do no more than ring a bell.
    pub fn appender(&self, wake: Option<Wake>) -> Option<Appender> {
        Appender::new(self.core.clone(), wake)
    }

    /// Starts the thread that empties segments of which little is needed. It takes one of the appenders.
    ///
    /// # Panics
    /// If there is no appender left for it.
    pub fn start_compaction(&mut self, relocate: Arc<dyn Relocate>) {
        let compactor = self
            .compactor()
            .expect("an appender is left for compaction");
        self.spawn("log-compact", move |_| {
            sys::process::work_in_background();
            compactor.run(&*relocate);
        });
    }

    /// Compaction for a log without threads. It takes one of the appenders; `None` if there is none left.
    pub fn compactor(&self) -> Option<Compactor> {
        Compactor::new(self.core.clone())
    }

    /// The position of the next record.
    pub fn tail(&self) -> Lsn {
        self.core.tail()
    }

    /// Everything below is on the disk.
    pub fn durable(&self) -> Lsn {
        self.core.durable()
    }

    /// Waits until everything below `lsn`, which has been committed, is durable, whatever the policy.
    ///
    /// # Errors
    /// The log has failed, or the disk is full.
    pub fn sync(&self, lsn: Lsn) -> std::result::Result<(), Refusal> {
        self.core.force(lsn)
    }

    /// Copies the log as it is now to `destination`, which must not have one: sealed segments and large
    /// values are linked, or copied where that cannot be. A server that starts there finds the state of the
    /// backup's position.
    ///
    /// # Errors
    /// There is a log already, or a disk refuses.
    pub fn backup(&self, destination: &Path) -> Result<Backup> {
        self.core.backup(destination)
    }

    /// Reads values back.
    pub fn value_reader(&self) -> ValueReader {
        let core = &self.core;
        ValueReader::new(
            core.files.clone(),
            core.paths.clone(),
            core.segments.clone(),
            core.blobs.clone(),
        )
    }

    /// Reads all values that are in full segments now.
    pub fn sweep(&self) -> Sweep {
        Sweep::new(self.core.segments.map())
    }

    /// Makes files for large values.
    pub fn blob_store(&self) -> BlobStore {
        BlobStore::new(&self.core)
    }

    /// Keeps records where they are for a while. Garbage stays, too.
    pub fn hold(&self) -> Hold {
        Hold::new(&self.core)
    }

    /// Lets compaction go on until full segments hold little garbage. Whether it was not on its way to that
    /// already.
    pub fn compact_thoroughly(&self) -> bool {
        let begins = !self.core.is_thorough.swap(true, Ordering::SeqCst);
        self.core.chores.ring();
        begins
    }

    /// What took longest since the last call.
    pub fn take_slowest(&self) -> Slowest {
        let counters = &self.core.counters;
        let take = |counter: &std::sync::atomic::AtomicU64| counter.swap(0, Ordering::Relaxed);
        Slowest {
            write_us: take(&counters.slow_write_us),
            sync_us: take(&counters.slow_sync_us),
            compaction_us: take(&counters.slow_compaction_us),
        }
    }

    /// Changes when what is written is made durable.
    pub fn set_sync_policy(&self, policy: SyncPolicy) {
        self.core.set_policy(policy);
    }

    /// What the database numbers mean now.
    pub fn bindings(&self) -> Bindings {
        lock(&self.core.bindings).now()
    }

    /// Why nothing is accepted; `None` if all is well.
    pub fn refusal(&self) -> Option<Refusal> {
        self.core.refusal()
    }

    /// Bytes of memory that the ring takes, of those that it may take.
    pub fn ring_bytes(&self) -> u64 {
        self.core.filled.bytes()
    }

    /// Bytes that the ring takes once it was filled to its end.
    pub fn ring_capacity(&self) -> u64 {
        self.core.ring.capacity() as u64
    }

    /// Takes the name of the ring's file away: what is in the ring is lost with the process from here on, as
    /// with the power. For tests of power losses.
    pub fn forget_ring(&self) {
        if let Err(error) = self.core.ring.forget() {
            log::warn!("cannot remove the log's ring: {error}");
        }
    }

    /// The state of the log, for people.
    pub fn status(&self) -> Status {
        let map = self.core.segments.map();
        let counters = &self.core.counters;
        let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (blobs, blob_bytes) = self.core.blobs.totals();
        Status {
            tail: self.core.tail(),
            written: self.core.written(),
            durable: self.core.durable(),
            refusal: self.core.refusal(),
            segments: map.segments.len(),
            disk_bytes: map
                .segments
                .iter()
                .map(|segment| segment.header_bytes + segment.bytes())
                .sum(),
            live_bytes: map.segments.iter().map(|segment| segment.live()).sum(),
            tombstone_bytes: map
                .segments
                .iter()
                .map(|segment| segment.tombstones())
                .sum(),
            blobs,
            blob_bytes,
            waits: get(&counters.waits),
            writes: get(&counters.writes),
            syncs: get(&counters.syncs),
            sync_us: get(&counters.sync_us),
            sync_us_max: get(&counters.sync_us_max),
            is_thorough: self.core.is_thorough.load(Ordering::Relaxed),
            compacted_segments: get(&counters.compacted_segments),
            compacted_bytes: get(&counters.compacted_bytes),
            moved_bytes: get(&counters.moved_bytes),
            compaction_rate: get(&counters.compaction_rate),
        }
    }

    /// One turn of the log thread, for a log without threads: writes what is committed. Whether something
    /// was.
    pub fn turn(&self) -> bool {
        self.core.turn().written > 0
    }

    /// One round of the keeper, for a log without threads: takes space, removes what is not needed.
    pub fn keep(&self) {
        self.core.keep();
    }

    /// Writes and syncs everything that was committed, says so in the log, and ends. Appenders must be gone
    /// or do nothing any more.
    ///
    /// # Errors
    /// Something could not be written or synced.
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let core = self.core.clone();
        if core.is_closing.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        core.wake_writer();
        core.chores.ring();
        // The log thread, which is the first, ends last: the others may still wait for what it writes.
        let others = self.threads.split_off(self.threads.len().min(1));
        for thread in others.into_iter().chain(self.threads.drain(..)) {
            if thread.thread().name() == Some(LOG_THREAD) {
                core.writer_may_end.store(true, Ordering::SeqCst);
                core.wake_writer();
            }
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        let result = core.finish();
        if result.is_ok() {
            // Everything is in the segments. If not, the next start takes what it finds.
            self.forget_ring();
        }
        core.set_closed();
        lock(&core.writer).take();
        result.map_err(Error::Refused)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Err(error) = self.end()
        {
            log::error!("the log could not be closed: {error}");
        }
    }
}

/// The log thread.
fn run_writer(core: &Core) {
    let _ = core.writer_thread.set(std::thread::current());
    let mut naps = 0;
    while !core.writer_may_end.load(Ordering::SeqCst) {
        let turn = core.turn();
        naps = if turn.written > 0 { 0 } else { naps + 1 };
        if turn.is_stuck {
            core.sleep(FULL_RETRY, false);
        } else if core.policy() == SyncPolicy::Always && turn.written > 0 {
            // While this turn synced, others may have committed.
        } else if naps > NAPS {
            core.sleep(LONGEST_SLEEP, true);
        } else {
            core.sleep(NAP, false);
        }
    }
}

impl Core {
    /// Syncs the first segment of this run: from here on the log has it.
    pub(crate) fn sync_new(&self, writer: &Writer) -> Result<()> {
        let segment = writer.segment();
        segment
            .file
            .sync_data()
            .map_err(|error| Error::io("cannot sync", &segment.path, error))?;
        self.files
            .sync_dir(&self.paths.log)
            .map_err(|error| Error::io("cannot sync", &self.paths.log, error))
    }

    /// Writes and syncs the rest, and leaves a mark that says so.
    fn finish(&self) -> std::result::Result<(), Refusal> {
        self.turn();
        let durable = self.sync()?;
        if let Some(writer) = lock(&self.writer).as_mut() {
            writer.mark(self, durable);
        }
        self.turn();
        self.sync()?;
        if let Some(writer) = lock(&self.writer).as_ref() {
            writer.trim();
        }
        match self.refusal() {
            // A full disk that has taken everything all the same.
            Some(Refusal::Full(_)) if self.durable() == self.tail() => {}
            Some(refusal) => return Err(refusal),
            None => {}
        }
        self.prove_end();
        Ok(())
    }

    /// Leaves a proof of where the log ends, which is durable.
    fn prove_end(&self) {
        let end = self.durable();
        let map = self.segments.map();
        let Some(newest) = map.last().filter(|_| self.tail() == end) else {
            return;
        };
        let closed = Closed {
            name: self.name,
            end,
            newest: newest.first,
            file_bytes: newest.header_bytes + newest.bytes(),
        };
        if let Err(error) = closed.write(&*self.files, &self.paths) {
            // All data is there. The next start takes the end of the log for what it is.
            log::warn!("{error}");
        }
    }
}
