//! State that all threads reach and that knows no command, no published message and no file.
//!
//! [`Shared`] is the lowest floor of the server. Each floor contains the one below it and reaches it by
//! [`Deref`](std::ops::Deref): `Server -> Values -> Durable -> Observed -> PubSub -> Shared`. A room takes
//! its own floor as an argument, so it can't name what stands above it.

pub(crate) mod clients;
pub(crate) mod gate;
pub(crate) mod logins;
mod mailbox;
pub(crate) mod memory;
mod offload;
mod pause;
mod running;
pub(crate) mod throttle;
mod totals;
mod waits;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use keyspace::Keyspace;
use parking_lot::Mutex;
use sys::poller::Waker;
use sys::socket::Socket;

use crate::config::{Setting, Settings};
use crate::metrics::errorstats::ErrorStats;
use crate::metrics::latency::LatencyMonitor;
use crate::metrics::{Counter, WorkerStats};

use clients::{Client, Clients};
use gate::{Closed, Gate};
use logins::Logins;
use memory::Budget;

pub(crate) use mailbox::{Mailboxes, Message, WorkerHandle};
pub(crate) use offload::{ColdLeaves, Offload};
pub(crate) use pause::{Pause, PauseKind};
pub(crate) use running::{RunningFunction, RunningScript, Unkilled};
pub(crate) use totals::Totals;
pub(crate) use waits::{Outcome, WaitNumbers};

/// The lowest floor of the server.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    /// The configuration file, if one was given.
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) keyspace: Keyspace,
    pub(crate) workers: Box<[WorkerHandle]>,
    pub(crate) clients: Clients,
    /// Failed logins by address.
    pub(crate) logins: Logins,
    pub(crate) pause: Pause,
    /// The script that keeps others from the data.
    pub(crate) running: RunningScript,
    /// Source of the numbers of waits.
    pub(crate) waits: WaitNumbers,
    /// Number of connections that wait with a deadline.
    pub(crate) deadlines: AtomicUsize,
    pub(crate) latency: Mutex<LatencyMonitor>,
    pub(crate) errors: ErrorStats,
    pub(crate) totals: Totals,
    /// The limit of memory.
    pub(crate) memory: Budget,
    /// Whether values may be in the log alone.
    pub(crate) offload: Offload,
    /// Reasons to refuse commands now.
    pub(crate) gate: Gate,
    /// Wakes the control thread.
    pub(crate) control: Waker,
    /// Wakes the thread that serves HTTP.
    pub(crate) http: Waker,
    pub(crate) shutdown: AtomicBool,
    /// Whether a stop of the server is being tried.
    pub(crate) ending: AtomicBool,
    /// Error that stops the server.
    pub(crate) failure: OnceLock<String>,
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub(crate) active_expire: AtomicBool,
    /// 40 random hexadecimal digits, new at each start.
    pub(crate) run_id: String,
    /// 40 more, the name of the history of this server's data.
    pub(crate) replication_id: String,
    /// Start of the process, Unix ms.
    pub(crate) started_ms: i64,
    /// The poller of the workers.
    pub(crate) backend: sys::Backend,
    pub(crate) poller_name: &'static str,
}

impl Shared {
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutdown.load(Relaxed)
    }

    /// Whether data is being loaded.
    pub(crate) fn is_loading(&self) -> bool {
        self.gate.has(Closed::Loading)
    }

    /// Sets whether a stop of the server is being tried. Returns the previous state.
    pub(crate) fn set_ending(&self, ending: bool) -> bool {
        self.ending.swap(ending, Relaxed)
    }

    /// Whether a stop of the server is being tried.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Relaxed)
    }

    pub(crate) fn wake_workers(&self) {
        self.workers
            .iter()
            .for_each(|worker| worker.send(Message::Wake));
    }

    /// Closes a connection on any worker. Returns whether it was not killed before.
    pub(crate) fn kill(&self, client: Arc<Client>) -> bool {
        let is_first = !client.killed.swap(true, Relaxed);
        if is_first {
            self.workers[client.worker].send(Message::Close(client));
        }
        is_first
    }

    /// Resumes a connection whose wait was claimed.
    pub(crate) fn go_on(&self, client: &Arc<Client>, number: u64, outcome: Outcome) {
        let message = Message::GoOn(Arc::clone(client), number, outcome);
        self.workers[client.worker].send(message);
    }

    /// Ends a connection's wait. Returns whether it waited.
    pub(crate) fn unblock(&self, client: &Arc<Client>, outcome: Outcome) -> bool {
        let number = client.wait.load(Relaxed);
        let is_ended = number != 0 && client.claim_wait(number);
        if is_ended {
            self.go_on(client, number, outcome);
        }
        is_ended
    }

    /// Sum of a counter over all workers.
    pub(crate) fn sum(&self, counter: impl Fn(&WorkerStats) -> &Counter) -> u64 {
        self.workers
            .iter()
            .map(|worker| counter(&worker.stats).get())
            .sum()
    }

    /// Counters of each worker.
    pub(crate) fn stats(&self) -> impl Iterator<Item = &WorkerStats> + Clone {
        self.workers.iter().map(|worker| &worker.stats)
    }

    /// Keys that have expired since the last reset of statistics.
    pub(crate) fn expired_keys(&self) -> u64 {
        self.keyspace
            .expired()
            .saturating_sub(self.totals.expired_at_reset.get())
    }

    /// Fields of hashes that have expired since the last reset of statistics.
    pub(crate) fn expired_fields(&self) -> u64 {
        self.keyspace
            .expired_items()
            .saturating_sub(self.totals.expired_fields_at_reset.get())
    }

    /// Objects freed in the background since the last reset of statistics.
    pub(crate) fn reclaimed(&self) -> u64 {
        self.keyspace
            .reclaimed()
            .saturating_sub(self.totals.reclaimed_at_reset.get())
    }

    /// Whether protected mode refuses this peer, on every port: no password is set and the peer is on another
    /// machine.
    pub(crate) fn is_protected_from(&self, socket: &Socket) -> bool {
        self.settings.flag(Setting::ProtectedMode)
            && !self.needs_password()
            && !socket.is_loopback_peer()
    }

    /// Whether a password is needed.
    pub(crate) fn needs_password(&self) -> bool {
        !self.settings.text(Setting::RequirePass).is_empty()
    }
}
