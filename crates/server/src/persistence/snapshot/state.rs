//! State of snapshots: the current one and the result of the last.
//!
//! A snapshot begins on the thread that asks for it, so that it is of that moment. The snapshot thread writes
//! it ([`super::run`]). There is at most one at a time.
//!
//! Invariant: a cancelled snapshot never replaces the file. Cancelling and committing take the same lock.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

use ferrite_log::Hold;
use keyspace::{Snapshot, Turn};
use parking_lot::{Condvar, Mutex};

use crate::config::{SavePoint, Setting};
use crate::limits::SNAPSHOT_RETRY_S;
use crate::persistence::durable::Durable;
use crate::script::Library;
use crate::shared::gate::Closed;

/// Current snapshot, history, and progress.
pub(crate) struct Snapshots {
    state: Mutex<State>,
    /// Signalled when a job is added or done, and when the server stops.
    changed: Condvar,
    /// Whether the snapshot that is being written is cancelled.
    cancelled: AtomicBool,
    progress: Progress,
    loading: Loading,
}

struct State {
    running: Option<Running>,
    job: Option<Job>,
    /// Whether a snapshot is to begin as soon as possible.
    scheduled: bool,
    history: History,
}

/// Snapshot in progress.
#[derive(Clone, Copy)]
struct Running {
    kind: Kind,
    started_s: i64,
}

/// Snapshot to be written by the snapshot thread.
pub(super) struct Job {
    pub(super) snapshot: Snapshot,
    /// Keeps the records in the log to which the snapshot refers.
    pub(super) hold: Option<Hold>,
    /// Those of the moment of the snapshot, until they are written.
    pub(super) libraries: Vec<Arc<Library>>,
    /// Changes before the snapshot.
    dirty: u64,
    kind: Kind,
    started_s: i64,
    done: Ticket,
}

/// Kind of request for a snapshot, which determines the meaning of its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The requester waits for it.
    Awaited,
    /// The requester does not wait; a failure is remembered.
    Background,
}

/// Result of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Saved,
    Failed(String),
    Cancelled,
}

/// Receives the result of a snapshot.
pub(crate) type Ticket = Arc<OnceLock<Outcome>>;

/// What [`Snapshots::cancel_background`] has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancelled {
    Running,
    Scheduled,
    None,
}

/// Another snapshot is under way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// Results of finished snapshots. Times are in Unix seconds.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// Time of the last save, or of the start.
    pub(crate) saved_at_s: i64,
    /// Whether the last background snapshot succeeded.
    pub(crate) is_ok: bool,
    /// Duration of the last background snapshot, seconds; -1 if there was none.
    pub(crate) took_s: i64,
    /// Start of the last background snapshot.
    tried_at_s: i64,
    /// Number of snapshots begun.
    pub(crate) count: u64,
    /// Changes up to the last snapshot.
    dirty: u64,
    /// Bytes copied by writers for the last snapshot.
    pub(crate) copied_bytes: usize,
}

/// Progress of the snapshot that is being written.
#[derive(Default)]
struct Progress {
    keys: AtomicU64,
    total: AtomicU64,
    copied_bytes: AtomicUsize,
    most_copied_bytes: AtomicUsize,
    noted_at_s: AtomicI64,
}

/// Progress of loading, and the last loaded file.
#[derive(Default)]
pub(crate) struct Loading {
    pub(crate) started_s: AtomicI64,
    pub(crate) total_bytes: AtomicU64,
    pub(crate) loaded_bytes: AtomicU64,
    /// Memory of the server that wrote the file, as stated there; bytes.
    pub(crate) used_memory: AtomicU64,
    pub(crate) keys: AtomicU64,
    pub(crate) expired: AtomicU64,
}

impl Loading {
    pub(super) fn begin(&self, started_s: i64, total_bytes: u64) {
        self.started_s.store(started_s, Relaxed);
        self.total_bytes.store(total_bytes, Relaxed);
        for figure in [
            &self.loaded_bytes,
            &self.used_memory,
            &self.keys,
            &self.expired,
        ] {
            figure.store(0, Relaxed);
        }
    }
}

/// Progress of the snapshot that is being written, for INFO.
pub(crate) struct Current {
    /// Seconds since the start of a background snapshot; -1 if there is none.
    pub(crate) background_s: i64,
    pub(crate) keys: u64,
    pub(crate) total: u64,
    pub(crate) copied_bytes: usize,
    pub(crate) most_copied_bytes: usize,
    /// Seconds since the byte counts were updated.
    pub(crate) age_s: i64,
}

fn now_s() -> i64 {
    sys::clock::realtime_ms() / 1000
}

impl Snapshots {
    /// No snapshot yet. The data of the start counts as saved.
    pub(crate) fn new() -> Snapshots {
        Snapshots {
            state: Mutex::new(State {
                running: None,
                job: None,
                scheduled: false,
                history: History {
                    saved_at_s: now_s(),
                    is_ok: true,
                    took_s: -1,
                    tried_at_s: 0,
                    count: 0,
                    dirty: 0,
                    copied_bytes: 0,
                },
            }),
            changed: Condvar::new(),
            cancelled: AtomicBool::new(false),
            progress: Progress::default(),
            loading: Loading::default(),
        }
    }

    /// Begins a snapshot of this moment, which the snapshot thread writes. Called inside a turn and without a
    /// lock.
    ///
    /// # Errors
    /// Another snapshot is in progress.
    pub(crate) fn start(
        &self,
        server: &Durable,
        turn: &mut Turn<'_>,
        kind: Kind,
    ) -> Result<Ticket, Busy> {
        let started_s = now_s();
        {
            let mut state = self.state.lock();
            if state.running.is_some() {
                return Err(Busy);
            }
            state.running = Some(Running { kind, started_s });
            self.cancelled.store(false, Relaxed);
            state.history.count += 1;
            if kind == Kind::Background {
                state.history.tried_at_s = started_s;
                state.scheduled = false;
            }
        }
        // Records with values that are only in the log stay in place.
        let hold = server.persistence.hold();
        let (snapshot, libraries, dirty) = turn.exclusive(|alone| {
            let snapshot = (server.keyspace).begin_snapshot(alone, sys::clock::realtime_ms());
            let libraries = server.persistence.libraries.all();
            (snapshot, libraries, server.changes())
        });
        let snapshot = snapshot.expect("the last one was dropped before it stopped running");
        let total = snapshot.sizes().iter().map(|(_, sizes)| sizes.keys as u64);
        self.progress.begin(total.sum());
        let done = Ticket::default();
        self.state.lock().job = Some(Job {
            snapshot,
            hold,
            libraries,
            dirty,
            kind,
            started_s,
            done: Arc::clone(&done),
        });
        self.changed.notify_all();
        if kind == Kind::Background {
            log::info!("Background saving started");
        }
        Ok(done)
    }

    /// Waits for the result of a snapshot. Called outside a turn.
    pub(crate) fn wait(&self, ticket: &Ticket) -> Outcome {
        let mut state = self.state.lock();
        loop {
            if let Some(outcome) = ticket.get() {
                return outcome.clone();
            }
            self.changed.wait(&mut state);
        }
    }

    /// Requests a snapshot that begins as soon as possible: BGSAVE in a transaction, of which a snapshot must
    /// not contain a part.
    ///
    /// # Errors
    /// A snapshot is in progress.
    pub(crate) fn schedule(&self) -> Result<(), Busy> {
        let mut state = self.state.lock();
        if state.running.is_some() {
            return Err(Busy);
        }
        state.scheduled = true;
        Ok(())
    }

    /// Whether a snapshot is in progress.
    pub(crate) fn is_running(&self) -> bool {
        self.state.lock().running.is_some()
    }

    /// Cancels the snapshot in progress, if there is one: it does not replace the file.
    pub(crate) fn cancel(&self) {
        let state = self.state.lock();
        if state.running.is_some() {
            self.cancelled.store(true, Relaxed);
        }
    }

    /// The same for BGSAVE: a snapshot that SAVE waits for goes on, and one that is scheduled is dropped.
    pub(crate) fn cancel_background(&self) -> Cancelled {
        let mut state = self.state.lock();
        let is_running = state
            .running
            .is_some_and(|running| running.kind == Kind::Background);
        if is_running && !self.cancelled.swap(true, Relaxed) {
            return Cancelled::Running;
        }
        match std::mem::take(&mut state.scheduled) {
            true => Cancelled::Scheduled,
            false => Cancelled::None,
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }

    /// Runs `commit`, which replaces the file, unless the snapshot was cancelled (`None`).
    pub(super) fn commit<R>(&self, commit: impl FnOnce() -> R) -> Option<R> {
        let _state = self.state.lock();
        if self.is_cancelled() {
            return None;
        }
        Some(commit())
    }

    /// Next snapshot to write; `None` when the server stops.
    pub(super) fn next_job(&self, server: &Durable) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.job.take() {
                return Some(job);
            }
            if server.is_shutting_down() {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// Wakes all waiting threads, because the server stops.
    pub(crate) fn wake(&self) {
        drop(self.state.lock());
        self.changed.notify_all();
    }

    pub(super) fn finish(&self, server: &Durable, job: Job, outcome: Outcome) {
        let Job {
            snapshot,
            hold,
            libraries: _,
            dirty,
            kind,
            started_s,
            done,
        } = job;
        // A snapshot that was not read to its end marks the rest when it is dropped. The next one can begin
        // after that.
        drop((snapshot, hold));
        self.note_outcome(kind, started_s, dirty, &outcome);
        self.check_gate(server);
        self.progress.end();
        let mut state = self.state.lock();
        state.running = None;
        // Only the snapshot thread sets it.
        let _ = done.set(outcome);
        drop(state);
        self.changed.notify_all();
    }

    fn note_outcome(&self, kind: Kind, started_s: i64, dirty: u64, outcome: &Outcome) {
        let history = &mut self.state.lock().history;
        history.copied_bytes = self.progress.most_copied_bytes.load(Relaxed);
        if kind == Kind::Background {
            history.took_s = now_s() - started_s;
        }
        match outcome {
            Outcome::Saved => history.note_saved(dirty),
            Outcome::Failed(_) if kind == Kind::Background => history.is_ok = false,
            Outcome::Failed(_) | Outcome::Cancelled => {}
        }
    }

    /// Records a save that was made while all workers were excluded.
    pub(crate) fn note_saved_alone(&self, server: &Durable) {
        self.state.lock().history.note_saved(server.changes());
        self.check_gate(server);
    }

    /// Records that all data was loaded: it is the data on disk.
    pub(crate) fn note_loaded(&self, server: &Durable) {
        let mut state = self.state.lock();
        state.history.saved_at_s = now_s();
        state.history.dirty = server.changes();
    }

    /// Begins a snapshot if one is due: requested, or by a save point. After a failure it waits for a while.
    pub(crate) fn start_if_due(&self, server: &Durable, turn: &mut Turn<'_>) {
        let (history, scheduled) = {
            let state = self.state.lock();
            if state.running.is_some() {
                return;
            }
            (state.history.clone(), state.scheduled)
        };
        let now_s = now_s();
        if !history.is_ok && now_s - history.tried_at_s <= SNAPSHOT_RETRY_S {
            return;
        }
        let changes = server.changes().saturating_sub(history.dirty);
        let elapsed_s = now_s - history.saved_at_s;
        let met = server
            .save_points()
            .into_iter()
            .find(|point| point.is_met(elapsed_s, changes));
        if let Some(SavePoint { seconds, changes }) = met {
            log::info!("{changes} changes in {seconds} seconds. Saving...");
        }
        if met.is_some() || scheduled {
            // A snapshot that another thread has just begun is as good.
            let _ = self.start(server, turn, Kind::Background);
        }
    }

    /// Decides whether writes are refused because the last snapshot failed.
    pub(crate) fn check_gate(&self, server: &Durable) {
        let closed = !self.state.lock().history.is_ok
            && server.settings.flag(Setting::StopWritesOnBgsaveError)
            && !server.save_points().is_empty();
        server.gate.set(Closed::SnapshotFailed, closed);
    }

    /// Results of finished snapshots.
    pub(crate) fn history(&self) -> History {
        self.state.lock().history.clone()
    }

    /// Progress of the snapshot that is being written.
    pub(crate) fn current(&self) -> Current {
        let now_s = now_s();
        let running = self.state.lock().running;
        let background = running.filter(|running| running.kind == Kind::Background);
        let progress = &self.progress;
        let noted_at_s = progress.noted_at_s.load(Relaxed);
        Current {
            background_s: background.map_or(-1, |running| (now_s - running.started_s).max(0)),
            keys: progress.keys.load(Relaxed),
            total: progress.total.load(Relaxed),
            copied_bytes: progress.copied_bytes.load(Relaxed),
            most_copied_bytes: progress.most_copied_bytes.load(Relaxed),
            age_s: if noted_at_s > 0 {
                now_s - noted_at_s
            } else {
                0
            },
        }
    }

    /// Changes since data was last saved.
    pub(crate) fn changes(&self, server: &Durable) -> u64 {
        let saved = self.state.lock().history.dirty;
        server.changes().saturating_sub(saved)
    }

    /// Progress of loading.
    pub(crate) fn loading(&self) -> &Loading {
        &self.loading
    }

    pub(super) fn note_progress(&self, keys: usize, copied_bytes: usize) {
        let progress = &self.progress;
        progress.keys.fetch_add(keys as u64, Relaxed);
        progress.copied_bytes.store(copied_bytes, Relaxed);
        progress.most_copied_bytes.fetch_max(copied_bytes, Relaxed);
        progress.noted_at_s.store(now_s(), Relaxed);
    }
}

impl History {
    fn note_saved(&mut self, dirty: u64) {
        self.saved_at_s = now_s();
        self.dirty = dirty;
        self.is_ok = true;
    }
}

impl Progress {
    fn begin(&self, total: u64) {
        self.end();
        self.total.store(total, Relaxed);
    }

    fn end(&self) {
        self.keys.store(0, Relaxed);
        self.total.store(0, Relaxed);
        self.copied_bytes.store(0, Relaxed);
        self.most_copied_bytes.store(0, Relaxed);
        self.noted_at_s.store(0, Relaxed);
    }
}
