//! What all threads of a log share: the ring, how far the disk is, and whether all is well.
//! Who does the log thread's work is not known here (`engine`).
//!
//! Positions, each at most the one before: *tail* (claimed), *written* (in the file), *whole* (the last end
//! of a record or batch in the file), *durable* (synced). Only the log thread moves `written` and `whole`,
//! only the holder of the sync lock moves `durable`.
//!
//! Invariants:
//! 1. Once the log has failed, `written` and `durable` never move again, and nothing is accepted.
//! 2. A file is in `unsynced` before `written` passes its first position, and until it is sealed and all of
//!    it is durable.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use sys::file::{Files, Lock};
use sys::ring::Ring;
use sys::ring::watermarks::Line;

use crate::address::Lsn;
use crate::bell::Bell;
use crate::bindings::{Bindings, Rebind};
use crate::blob::Blobs;
use crate::credit::Credit;
use crate::error::Refusal;
use crate::filled::Filled;
use crate::limits::{COMPACTION_RESERVE_SHARE, NAP, WAKE_SHARE};
use crate::lock::lock;
use crate::options::{Options, SyncPolicy};
use crate::paths::Paths;
use crate::segment::Name;
use crate::segments::{Segment, Segments};
use crate::status::Counters;

/// All is well.
const HEALTHY: u8 = 0;
/// The disk is nearly full: removals and compaction may use the reserve; passes.
const LOW: u8 = 1;
/// The reserve of removals is used up, too, or a write found no space; passes.
const FULL: u8 = 2;
/// A write or a sync failed; stays.
const FAILED: u8 = 3;
const CLOSED: u8 = 4;

/// The log thread works, or is about to look whether there is work.
const AWAKE: u8 = 0;
/// It looks again by itself in a moment.
const NAPPING: u8 = 1;
/// It waits to be woken.
const ASLEEP: u8 = 2;

/// Nobody waits for anything to be durable.
pub(crate) const NOBODY: u64 = u64::MAX;

/// What an appender leaves for the others to see.
#[derive(Default)]
pub(crate) struct Member {
    /// Its waker is called when everything below is durable.
    pub(crate) waits_for: AtomicU64,
    pub(crate) waker: Mutex<Option<Wake>>,
}

/// What wakes a thread that waits for its writes to be durable.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// Bindings over time: the log thread needs them as they were where a segment begins.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// As of the first pending change.
    table: Bindings,
    pending: std::collections::BTreeMap<Lsn, Vec<Rebind>>,
}

impl History {
    pub(crate) fn new(table: Bindings) -> History {
        History {
            table,
            pending: Default::default(),
        }
    }

    pub(crate) fn push(&mut self, lsn: Lsn, changes: &[Rebind]) {
        self.pending.insert(lsn, changes.to_vec());
    }

    /// The table as everything below `lsn` left it. Positions asked for must not go back.
    pub(crate) fn as_of(&mut self, lsn: Lsn) -> Bindings {
        let later = self.pending.split_off(&lsn);
        for (lsn, changes) in std::mem::replace(&mut self.pending, later) {
            self.table.apply(&changes, lsn);
        }
        self.table.clone()
    }

    /// The table with all changes.
    pub(crate) fn now(&self) -> Bindings {
        let mut table = self.table.clone();
        for (&lsn, changes) in &self.pending {
            table.apply(changes, lsn);
        }
        table
    }
}

/// See the module.
pub(crate) struct Core {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) paths: Paths,
    pub(crate) options: Options,
    pub(crate) name: Name,
    pub(crate) ring: Arc<Ring>,
    pub(crate) credit: Credit,
    /// Memory that the ring takes.
    pub(crate) filled: Filled,
    pub(crate) segments: Arc<Segments>,
    pub(crate) blobs: Arc<Blobs>,
    pub(crate) bindings: Mutex<History>,
    pub(crate) counters: Counters,
    pub(crate) members: Box<[Line<Member>]>,
    /// Rings when room in the ring was made, or health changes.
    pub(crate) room: Bell,
    /// Rings when more is durable, or health changes.
    pub(crate) progress: Bell,
    /// Rings when the sync thread or the keeper has something to do.
    pub(crate) chores: Bell,
    pub(crate) writer_thread: OnceLock<Thread>,
    pub(crate) is_closing: AtomicBool,
    /// The log thread waits for space.
    pub(crate) is_stuck: AtomicBool,
    /// Free bytes of the file system, when they were looked at last.
    pub(crate) free_bytes: AtomicU64,
    /// The running segment has taken space for everything below.
    pub(crate) room_until: AtomicU64,
    /// Bytes that the space for the next segment takes, where that is made already.
    pub(crate) spare_bytes: AtomicU64,
    /// Nanoseconds for each MiB that whoever appends waits, because there is more garbage than there may be;
    /// see the module `pace`.
    pub(crate) brake: AtomicU64,
    /// Compaction is to leave as little garbage as it can, once.
    pub(crate) is_thorough: AtomicBool,
    /// How many rely on records staying where they are; see [`crate::Hold`].
    pub(crate) holds: AtomicUsize,
    /// Somebody wants what is written to be durable soon, whatever the policy.
    pub(crate) sync_wanted: AtomicBool,
    /// Large values have become durable, and no mark says so yet.
    pub(crate) mark_wanted: AtomicBool,
    /// The other threads have ended, so nobody waits for the log thread any more.
    pub(crate) writer_may_end: AtomicBool,
    pub(crate) unsynced: Mutex<Vec<Arc<Segment>>>,
    pub(crate) directory_changed: AtomicBool,
    pub(crate) sync_lock: Mutex<()>,
    /// The running segment is half full: space for the next one is taken.
    pub(crate) spare_wanted: AtomicBool,
    /// Held by whoever makes or uses the space for the next segment.
    pub(crate) spare_lock: Mutex<()>,
    /// Held by whoever takes files of the log away, or needs them to stay.
    pub(crate) deletion: Mutex<()>,
    written: Line<AtomicU64>,
    whole: Line<AtomicU64>,
    durable: Line<AtomicU64>,
    health: Line<AtomicU8>,
    reason: Mutex<Option<Refusal>>,
    policy: AtomicU8,
    sleep: Line<AtomicU8>,
    _lock: Box<dyn Lock>,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Core({})", self.paths.root.display())
    }
}

/// What a core begins with.
pub(crate) struct Beginning {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) paths: Paths,
    pub(crate) options: Options,
    pub(crate) name: Name,
    pub(crate) ring: Arc<Ring>,
    pub(crate) bindings: Bindings,
    pub(crate) start: Lsn,
    pub(crate) segments: Arc<Segments>,
    pub(crate) blobs: Arc<Blobs>,
    pub(crate) lock: Box<dyn Lock>,
}

impl Core {
    pub(crate) fn new(beginning: Beginning) -> Core {
        let Beginning {
            files,
            paths,
            options,
            name,
            ring,
            bindings,
            start,
            segments,
            blobs,
            lock,
        } = beginning;
        let members = (0..options.appenders + 1).map(|_| {
            let member = Member::default();
            member.waits_for.store(NOBODY, Ordering::Relaxed);
            Line(member)
        });
        Core {
            files,
            paths,
            name,
            credit: Credit::new(options.ring_bytes, options.appenders),
            filled: Filled::new(&ring, start.0, options.charge),
            segments,
            blobs,
            bindings: Mutex::new(History::new(bindings)),
            counters: Counters::default(),
            members: members.collect(),
            room: Bell::default(),
            progress: Bell::default(),
            chores: Bell::default(),
            writer_thread: OnceLock::new(),
            is_closing: AtomicBool::new(false),
            is_stuck: AtomicBool::new(false),
            free_bytes: AtomicU64::new(u64::MAX),
            room_until: AtomicU64::new(start.0),
            spare_bytes: AtomicU64::new(0),
            brake: AtomicU64::new(0),
            is_thorough: AtomicBool::new(false),
            holds: AtomicUsize::new(0),
            sync_wanted: AtomicBool::new(false),
            mark_wanted: AtomicBool::new(false),
            writer_may_end: AtomicBool::new(false),
            unsynced: Mutex::default(),
            directory_changed: AtomicBool::new(false),
            sync_lock: Mutex::new(()),
            spare_wanted: AtomicBool::new(false),
            spare_lock: Mutex::new(()),
            deletion: Mutex::new(()),
            written: Line(AtomicU64::new(start.0)),
            whole: Line(AtomicU64::new(start.0)),
            durable: Line(AtomicU64::new(start.0)),
            health: Line(AtomicU8::new(HEALTHY)),
            reason: Mutex::new(None),
            policy: AtomicU8::new(options.sync as u8),
            sleep: Line(AtomicU8::new(AWAKE)),
            ring,
            options,
            _lock: lock,
        }
    }

    pub(crate) fn written(&self) -> Lsn {
        Lsn(self.written.0.load(Ordering::Acquire))
    }

    pub(crate) fn set_written(&self, lsn: u64) {
        self.written.0.store(lsn, Ordering::Release);
    }

    /// The end of the last record, or batch, that is in the file with all in front of it: as far as a sync
    /// makes anything durable. A position inside of a record would be evidence that the whole record had been
    /// synced.
    pub(crate) fn whole(&self) -> Lsn {
        Lsn(self.whole.0.load(Ordering::Acquire))
    }

    pub(crate) fn set_whole(&self, lsn: u64) {
        self.whole.0.store(lsn, Ordering::Release);
    }

    #[inline]
    pub(crate) fn durable(&self) -> Lsn {
        Lsn(self.durable.0.load(Ordering::SeqCst))
    }

    pub(crate) fn tail(&self) -> Lsn {
        Lsn(self.ring.tail())
    }

    pub(crate) fn policy(&self) -> SyncPolicy {
        SyncPolicy::from_bits(self.policy.load(Ordering::Relaxed))
    }

    pub(crate) fn set_policy(&self, policy: SyncPolicy) {
        self.policy.store(policy as u8, Ordering::Relaxed);
        self.wake_writer();
        self.chores.ring();
    }

    /// Everything below `lsn` is durable: tells those who wait for it. Called with the sync lock held.
    pub(crate) fn set_durable(&self, lsn: Lsn) {
        self.durable.0.store(lsn.0, Ordering::SeqCst);
        self.progress.ring();
        for member in &self.members {
            let waits_for = member.0.waits_for.load(Ordering::SeqCst);
            if waits_for <= lsn.0 {
                self.call(&member.0, waits_for);
            }
        }
    }

    /// Wakes a member, if it still waits for what it did.
    fn call(&self, member: &Member, waits_for: u64) {
        let swap = member.waits_for.compare_exchange(
            waits_for,
            NOBODY,
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        if swap.is_ok()
            && let Some(wake) = &*lock(&member.waker)
        {
            wake();
        }
    }

    /// Whether anything is accepted.
    #[inline]
    pub(crate) fn is_healthy(&self) -> bool {
        self.health.0.load(Ordering::SeqCst) == HEALTHY
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.health.0.load(Ordering::SeqCst) >= FAILED
    }

    /// Whether the disk is full, or nearly.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self.health.0.load(Ordering::SeqCst), LOW | FULL)
    }

    /// Whether records are accepted that remove keys.
    pub(crate) fn takes_removals(&self) -> bool {
        match self.health.0.load(Ordering::SeqCst) {
            HEALTHY => true,
            LOW => self.has_reserve_for_removals(),
            _ => false,
        }
    }

    /// Whether more is left than compaction's part of the reserve, free or as space that the log has taken
    /// already.
    pub(crate) fn has_reserve_for_removals(&self) -> bool {
        self.free_or_taken() >= self.options.reserve_bytes / COMPACTION_RESERVE_SHARE
    }

    /// Whether so many bytes can be written, as far as is known.
    #[cold]
    pub(crate) fn has_space(&self, bytes: u64) -> bool {
        let is_stuck = self.is_stuck.load(Ordering::Relaxed);
        match self.health.0.load(Ordering::SeqCst) {
            HEALTHY | LOW => !is_stuck && self.free_or_taken() >= bytes,
            FULL => false,
            // Nothing is written any more, and nobody waits.
            _ => true,
        }
    }

    /// Bytes that can be appended: free ones, as of the last look, and those that segments have taken and not
    /// used.
    pub(crate) fn free_or_taken(&self) -> u64 {
        let running = self.room_until.load(Ordering::Relaxed);
        let taken = running.saturating_sub(self.ring.tail());
        let spare = self.spare_bytes.load(Ordering::Relaxed);
        let free = self.free_bytes.load(Ordering::Relaxed);
        free.saturating_add(taken).saturating_add(spare)
    }

    /// Why nothing is accepted; `None` if all is well.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        if self.is_healthy() {
            return None;
        }
        lock(&self.reason).clone()
    }

    /// A write or a sync failed: nothing is accepted from here on, and nothing later is trusted.
    pub(crate) fn fail(&self, reason: String) {
        self.refuse(FAILED, || {
            log::error!(
                "{reason}: the data can be read, but not changed, until the server starts again"
            );
            Refusal::Failed(reason.into())
        });
    }

    /// The disk is nearly full: nothing but removals is accepted until [`Core::set_roomy`].
    pub(crate) fn set_low(&self, reason: String) {
        if !self.is_stuck.load(Ordering::Relaxed) {
            let mut kept = lock(&self.reason);
            if self.health.0.load(Ordering::SeqCst) == FULL {
                // There is some space again, for removals.
                *kept = Some(Refusal::Full(reason.as_str().into()));
                self.health.0.store(LOW, Ordering::SeqCst);
            }
        }
        self.refuse(LOW, || {
            log::warn!(
                "{reason}: writes are refused until there is space again, keys can be deleted"
            );
            Refusal::Full(reason.into())
        });
    }

    /// The disk is full: nothing is accepted until there is some space again.
    pub(crate) fn set_full(&self, reason: String) {
        self.refuse(FULL, || {
            log::warn!("{reason}: writes and deletions are refused until there is space again");
            Refusal::Full(reason.into())
        });
    }

    pub(crate) fn set_closed(&self) {
        self.refuse(CLOSED, || Refusal::Closed);
    }

    fn refuse(&self, health: u8, reason: impl FnOnce() -> Refusal) {
        {
            let mut kept = lock(&self.reason);
            if self.health.0.load(Ordering::SeqCst) >= health {
                return;
            }
            *kept = Some(reason());
            self.health.0.store(health, Ordering::SeqCst);
        }
        self.room.ring();
        self.progress.ring();
        if health >= FAILED {
            self.wake_writer();
            for member in &self.members {
                let waits_for = member.0.waits_for.load(Ordering::SeqCst);
                if waits_for != NOBODY {
                    self.call(&member.0, waits_for);
                }
            }
        }
    }

    /// There is space again.
    pub(crate) fn set_roomy(&self) {
        let mut kept = lock(&self.reason);
        if self.is_full() {
            *kept = None;
            self.health.0.store(HEALTHY, Ordering::SeqCst);
            log::warn!("there is space again: writes are accepted");
        }
    }

    /// Called after a commit whose records end at `end`: wakes the log thread if it must not sleep on.
    #[inline]
    pub(crate) fn nudge(&self, end: u64) {
        let sleep = self.sleep.0.load(Ordering::SeqCst);
        if sleep != AWAKE {
            self.nudge_sleeper(sleep, end);
        }
    }

    fn nudge_sleeper(&self, sleep: u8, end: u64) {
        let enough = self.ring.capacity() as u64 / WAKE_SHARE;
        if sleep == ASLEEP
            || self.policy() == SyncPolicy::Always
            || end.saturating_sub(self.ring.head()) > enough
        {
            self.wake_writer();
        }
    }

    /// Ends the log thread's sleep.
    pub(crate) fn wake_writer(&self) {
        if self.sleep.0.swap(AWAKE, Ordering::SeqCst) != AWAKE
            && let Some(thread) = self.writer_thread.get()
        {
            thread.unpark();
        }
    }

    /// The log thread sleeps: for `nap`, or until it is woken if everything is written.
    pub(crate) fn sleep(&self, nap: Duration, until_woken: bool) {
        self.sleep
            .0
            .store(if until_woken { ASLEEP } else { NAPPING }, Ordering::SeqCst);
        // Whoever appends looks at `sleep` after it has moved the tail; this looks at the tail after it has
        // set `sleep`: one of the two sees the other.
        let is_idle = self.ring.tail() == self.ring.head();
        let nap = if until_woken && !is_idle { NAP } else { nap };
        if !self.writer_may_end.load(Ordering::SeqCst) {
            std::thread::park_timeout(nap);
        }
        self.sleep.0.store(AWAKE, Ordering::SeqCst);
    }

    /// Whether the log thread may leave less than a block in the ring: it looks again soon, and nobody waits
    /// for it.
    pub(crate) fn may_leave_tail(&self) -> bool {
        self.options.background
            && self.policy() != SyncPolicy::Always
            && !self.is_closing.load(Ordering::Relaxed)
    }
}
