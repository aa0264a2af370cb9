//! A log that takes writes: its threads, and what one asks of it as a whole.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crate::address::Lsn;
use crate::appender::Appender;
use crate::backup::{Backup, backup};
use crate::bindings::Bindings;
use crate::closed::Closed;
use crate::compact::{Compactor, Relocate};
use crate::core::{Core, Wake};
use crate::engine::Engine;
use crate::error::{Error, Refusal, Result};
use crate::fetch::{Hold, ValueReader};
use crate::keeper::keep;
use crate::lock::lock;
use crate::options::SyncPolicy;
use crate::space;
use crate::status::{Slowest, Status};
use crate::store::BlobStore;
use crate::sweep::Sweep;
use crate::sync::make_durable;
use crate::threads::{run_keeper, run_sync, run_writer};

/// The name of the thread that writes.
const LOG_THREAD: &str = "log";

/// See the crate. Dropping it closes it.
pub struct Log {
    engine: Arc<Engine>,
    threads: Vec<JoinHandle<()>>,
}

impl Log {
    /// Starts the threads.
    pub(crate) fn start(engine: Arc<Engine>) -> Log {
        let mut log = Log {
            engine,
            threads: Vec::new(),
        };
        if log.engine.options.background {
            log.spawn(LOG_THREAD, run_writer);
            log.spawn("log-sync", run_sync);
            log.spawn("log-keeper", run_keeper);
        }
        log
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce(&Engine) + Send + 'static) {
        let engine = self.engine.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&engine))
            .expect("the system has threads at the start");
        self.threads.push(thread);
    }

    /// A way into the log for one more thread; `None` when there are as many as the options allow. `wake` is
    /// called from a thread of the log when what [`Appender::wake_when_durable`] asked for has happened: it
    /// should do no more than ring a bell.
    pub fn appender(&self, wake: Option<Wake>) -> Option<Appender> {
        Appender::new(self.engine.clone(), wake)
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
        Compactor::new(self.engine.clone())
    }

    /// The position of the next record.
    pub fn tail(&self) -> Lsn {
        self.engine.tail()
    }

    /// Everything below is on the disk.
    pub fn durable(&self) -> Lsn {
        self.engine.durable()
    }

    /// Waits until everything below `lsn`, which has been committed, is durable, whatever the policy.
    ///
    /// # Errors
    /// The log has failed, or the disk is full.
    pub fn sync(&self, lsn: Lsn) -> std::result::Result<(), Refusal> {
        self.engine.force(lsn)
    }

    /// Copies the log as it is now to `destination`, which must not have one: sealed segments and large
    /// values are linked, or copied where that cannot be. A server that starts there finds the state of the
    /// backup's position.
    ///
    /// # Errors
    /// There is a log already, or a disk refuses.
    pub fn backup(&self, destination: &Path) -> Result<Backup> {
        backup(&self.engine, destination)
    }

    /// Reads values back.
    pub fn value_reader(&self) -> ValueReader {
        let core = &self.engine;
        ValueReader::new(
            core.files.clone(),
            core.paths.clone(),
            core.segments.clone(),
            core.blobs.clone(),
            Some(core.ring.clone()),
        )
    }

    /// Reads all values that are in full segments now.
    pub fn sweep(&self) -> Sweep {
        Sweep::new(self.engine.segments.map())
    }

    /// Makes files for large values.
    pub fn blob_store(&self) -> BlobStore {
        BlobStore::new(&self.engine)
    }

    /// Keeps records where they are for a while. Garbage stays, too.
    pub fn hold(&self) -> Hold {
        Hold::new(&self.engine)
    }

    /// Lets compaction go on until full segments hold little garbage. Whether it was not on its way to that
    /// already.
    pub fn compact_thoroughly(&self) -> bool {
        let begins = !self.engine.is_thorough.swap(true, Ordering::SeqCst);
        self.engine.chores.ring();
        begins
    }

    /// What took longest since the last call.
    pub fn take_slowest(&self) -> Slowest {
        let counters = &self.engine.counters;
        let take = |counter: &std::sync::atomic::AtomicU64| counter.swap(0, Ordering::Relaxed);
        Slowest {
            write_us: take(&counters.slow_write_us),
            sync_us: take(&counters.slow_sync_us),
            compaction_us: take(&counters.slow_compaction_us),
        }
    }

    /// Changes when what is written is made durable.
    pub fn set_sync_policy(&self, policy: SyncPolicy) {
        self.engine.set_policy(policy);
    }

    /// What the database numbers mean now.
    pub fn bindings(&self) -> Bindings {
        lock(&self.engine.bindings).now()
    }

    /// Why nothing is accepted; `None` if all is well.
    pub fn refusal(&self) -> Option<Refusal> {
        self.engine.refusal()
    }

    /// Bytes of memory that the ring takes, of those that it may take.
    pub fn ring_bytes(&self) -> u64 {
        self.engine.filled.bytes()
    }

    /// Bytes that the ring takes once it was filled to its end.
    pub fn ring_capacity(&self) -> u64 {
        self.engine.ring.capacity() as u64
    }

    /// Takes the name of the ring's file away: what is in the ring is lost with the process from here on, as
    /// with the power. For tests of power losses.
    pub fn forget_ring(&self) {
        if let Err(error) = self.engine.ring.forget() {
            log::warn!("cannot remove the log's ring: {error}");
        }
    }

    /// The state of the log, for people.
    pub fn status(&self) -> Status {
        let map = self.engine.segments.map();
        let counters = &self.engine.counters;
        let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (blobs, blob_bytes) = self.engine.blobs.totals();
        // In this order, because all of them grow meanwhile: none is beyond the next.
        let (durable, written) = (self.engine.durable(), self.engine.written());
        let tail = self.engine.tail().max(written);
        Status {
            tail,
            written,
            durable,
            refusal: self.engine.refusal(),
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
            is_thorough: self.engine.is_thorough.load(Ordering::Relaxed),
            compacted_segments: get(&counters.compacted_segments),
            compacted_bytes: get(&counters.compacted_bytes),
            moved_bytes: get(&counters.moved_bytes),
            compaction_rate: get(&counters.compaction_rate),
        }
    }

    /// One turn of the log thread, for a log without threads: writes what is committed. Whether something
    /// was.
    pub fn turn(&self) -> bool {
        self.engine.turn().written > 0
    }

    /// One round of the keeper, for a log without threads: takes space, removes what is not needed.
    pub fn keep(&self) {
        keep(&self.engine);
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
        let engine = self.engine.clone();
        if engine.is_closing.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        engine.wake_writer();
        engine.chores.ring();
        // The log thread, which is the first, ends last: the others may still wait for what it writes.
        let others = self.threads.split_off(self.threads.len().min(1));
        for thread in others.into_iter().chain(self.threads.drain(..)) {
            if thread.thread().name() == Some(LOG_THREAD) {
                engine.writer_may_end.store(true, Ordering::SeqCst);
                engine.wake_writer();
            }
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        let result = finish(&engine);
        if result.is_ok() {
            // Everything is in the segments. If not, the next start takes what it finds.
            self.forget_ring();
        }
        engine.set_closed();
        lock(&engine.writer).take();
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

/// Writes and syncs the rest, and leaves a mark that says so.
fn finish(engine: &Engine) -> std::result::Result<(), Refusal> {
    engine.turn();
    let durable = make_durable(engine)?;
    if let Some(writer) = lock(&engine.writer).as_mut() {
        writer.mark(engine, durable);
    }
    engine.turn();
    make_durable(engine)?;
    if let Some(writer) = lock(&engine.writer).as_ref() {
        writer.trim();
    }
    space::leave(engine);
    match engine.refusal() {
        // A full disk that has taken everything all the same.
        Some(Refusal::Full(_)) if engine.durable() == engine.tail() => {}
        Some(refusal) => return Err(refusal),
        None => {}
    }
    // Without a segment of this run the end is where it was.
    if engine.has_begun() {
        prove_end(engine);
    }
    Ok(())
}

/// Leaves a proof of where the log ends, which is durable.
fn prove_end(core: &Core) {
    let end = core.durable();
    let map = core.segments.map();
    let Some(newest) = map.last().filter(|_| core.tail() == end) else {
        return;
    };
    let closed = Closed {
        name: core.name,
        end,
        newest: newest.first,
        file_bytes: newest.header_bytes + newest.bytes(),
    };
    if let Err(error) = closed.write(&*core.files, &core.paths) {
        // All data is there. The next start takes the end of the log for what it is.
        log::warn!("{error}");
    }
}
