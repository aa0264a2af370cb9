//! One run as all of its threads know it, and what they say of it.

use super::clock::{self, Ticks};
use super::cluster::Cluster;
use super::counts::Slice;
use super::plan::{Plan, Until};
use crate::limits::ERROR_PAUSE;
use crate::load::data::Data;
use crate::load::numbers::Share;
use crate::load::workload::Workload;
use crate::wire::link::LinkError;
use crate::wire::target::Target;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What all threads of a run share.
pub(crate) struct Job<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) workload: &'a Workload,
    pub(crate) target: &'a Target,
    pub(crate) data: &'a Data,
    /// What each connection says first, and how many replies that has.
    pub(crate) greeting: (Vec<u8>, u32),
    /// The nodes, if it is a cluster that is loaded.
    pub(crate) cluster: Option<Cluster>,
    /// How many requests have been given out.
    claimed: AtomicU64,
    /// How many keys have been appended.
    appended: Arc<AtomicU64>,
    /// How far each of the workload's sequences has come.
    cursors: Arc<[AtomicU64]>,
    /// 0 until all connections are open.
    start: AtomicU64,
    /// Guards the wait for the start.
    gate: Mutex<()>,
    opened: Condvar,
    is_given_up: AtomicBool,
    /// From when on the next error reply is shown.
    next_shown: AtomicU64,
    warmup: Ticks,
    duration: Ticks,
}

impl<'a> Job<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        workload: &'a Workload,
        target: &'a Target,
        data: &'a Data,
    ) -> Self {
        let duration = match plan.until {
            // Years, and far from an overflow.
            Until::Requests(_) => clock::ticks(Duration::from_secs(10 * 365 * 86_400)),
            Until::Time(duration) => clock::ticks(duration),
        };
        // In a cluster each node's part of a sequence is walked through by its own connections.
        let lanes = target.nodes.as_ref().map_or(1, |map| map.nodes.len());
        let sequences = workload.numbers.len() * lanes;
        Job {
            plan,
            workload,
            target,
            data,
            greeting: target.greeting.encode(),
            cluster: target.nodes.clone().map(Cluster::new),
            claimed: AtomicU64::new(0),
            appended: Arc::default(),
            cursors: (0..sequences).map(|_| AtomicU64::new(0)).collect(),
            start: AtomicU64::new(0),
            gate: Mutex::new(()),
            opened: Condvar::new(),
            is_given_up: AtomicBool::new(false),
            next_shown: AtomicU64::new(0),
            warmup: clock::ticks(plan.warmup),
            duration,
        }
    }

    /// Which part of the load a thread is. The first threads have a connection more if there is no
    /// even split.
    pub(crate) fn share(&self, thread: usize) -> Share {
        let (clients, threads) = (self.plan.clients, self.plan.threads);
        let before = |thread: usize| thread * (clients / threads) + thread.min(clients % threads);
        Share {
            first_client: before(thread),
            own_clients: before(thread + 1) - before(thread),
            clients,
            appended: Arc::clone(&self.appended),
            cursors: Arc::clone(&self.cursors),
        }
    }

    /// Waits for all threads to be ready. `None`: the run was given up.
    pub(crate) fn wait_for_start(&self) -> Option<Ticks> {
        let mut guard = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.has_started() && !self.is_given_up() {
            guard = self
                .opened
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let start = self.start.load(Ordering::Relaxed);
        (!self.is_given_up()).then_some(start)
    }

    /// Lets all threads begin.
    pub(super) fn begin(&self) {
        let _guard = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.start.store(clock::now(), Ordering::Relaxed);
        self.opened.notify_all();
    }

    /// Lets all threads end.
    pub(super) fn give_up(&self) {
        let _guard = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_given_up.store(true, Ordering::Relaxed);
        self.opened.notify_all();
    }

    /// Requests are being sent.
    pub(crate) fn has_started(&self) -> bool {
        self.start.load(Ordering::Relaxed) != 0
    }

    /// From when on requests count.
    #[inline]
    pub(crate) fn measure_from(&self) -> Ticks {
        self.start.load(Ordering::Relaxed) + self.warmup
    }

    /// From when on no request is sent.
    #[inline]
    pub(crate) fn until(&self) -> Ticks {
        self.measure_from() + self.duration
    }

    /// Takes up to `wanted` of the requests that are to be sent in all.
    #[inline]
    pub(crate) fn claim(&self, wanted: u32) -> u32 {
        let Until::Requests(total) = self.plan.until else {
            return wanted;
        };
        let before = self.claimed.fetch_add(u64::from(wanted), Ordering::Relaxed);
        // At most what was wanted.
        total.saturating_sub(before).min(u64::from(wanted)) as u32
    }

    /// All requests have been given out.
    pub(crate) fn is_claimed(&self) -> bool {
        match self.plan.until {
            Until::Requests(total) => self.claimed.load(Ordering::Relaxed) >= total,
            Until::Time(_) => false,
        }
    }

    /// The run is to end now.
    #[inline]
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// Whether an error reply that came now is to be shown: one per pause, whichever thread it came to.
    pub(crate) fn takes_error(&self, now: Ticks) -> bool {
        let next = self.next_shown.load(Ordering::Relaxed);
        let after = now + clock::ticks(ERROR_PAUSE);
        now >= next
            && self
                .next_shown
                .compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// The addresses of a cluster's nodes.
    pub(super) fn node_names(&self) -> Vec<String> {
        let map = self.cluster.as_ref().map(|cluster| cluster.map().0);
        let nodes = map.iter().flat_map(|map| &map.nodes);
        nodes.map(|node| node.name.clone()).collect()
    }

    /// A slice with a row for each of the workload's.
    pub(crate) fn new_slice(&self, index: u64) -> Slice {
        Slice::new(index, self.workload.rows.len(), self.plan.rate().is_some())
    }
}

/// What threads say.
pub(crate) enum Message {
    /// All connections of a thread are open.
    Ready,
    /// What a thread has counted in a slice of time.
    Slice(Box<Slice>),
    /// The map of the cluster is not true any more.
    Moved,
    /// The text of an error reply that is to be shown.
    ErrorReply(String),
    /// A thread has ended.
    Done(Result<Finish, LinkError>),
}

/// The end of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Finish {
    /// When the last reply came.
    pub(crate) last_reply: Ticks,
    /// Requests that were never answered.
    pub(crate) unanswered: u64,
    /// The processor time that the thread has used since all connections were open.
    pub(crate) cpu: Duration,
    /// How long that was.
    pub(crate) time: Duration,
}
