//! What all threads of a server share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use keyspace::Keyspace;
use parking_lot::Mutex;
use sys::poller::Waker;
use sys::socket::Socket;

use crate::blobs;
use crate::blocked::{Outcome, WaitNumbers};
use crate::clients::{Client, Clients};
use crate::cluster::Cluster;
use crate::cold::{Cold, Fetch};
use crate::config::{Setting, Settings};
use crate::errorstats::ErrorStats;
use crate::gate::{Closed, Gate};
use crate::hotkeys;
use crate::latency::LatencyMonitor;
use crate::limits::INBOX_BYTES;
use crate::logins::Logins;
use crate::memory::{Budget, Evictor};
use crate::metrics::{Counter, WorkerStats};
use crate::monitor::Monitors;
use crate::observe::Observers;
use crate::persistence::Persistence;
use crate::pubsub::{Crowd, Inbox, Registry};
use crate::slowlog::SlowLog;
use crate::snapshot::Snapshots;
use crate::survey::Survey;

/// See the module.
pub(crate) struct Server {
    pub(crate) settings: Settings,
    /// The configuration file, if one was given.
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) keyspace: Keyspace,
    pub(crate) persistence: Persistence,
    pub(crate) workers: Box<[WorkerHandle]>,
    pub(crate) clients: Clients,
    /// The cluster that this server is a node of.
    pub(crate) cluster: Option<Cluster>,
    /// Those who want to hear of changes to keys.
    pub(crate) observers: Observers,
    pub(crate) pause: Pause,
    pub(crate) monitors: Monitors,
    /// Who listens to which channels.
    pub(crate) registry: Registry,
    /// The workers that are behind with what was published.
    pub(crate) crowd: Crowd,
    /// Numbers for those who wait.
    pub(crate) waits: WaitNumbers,
    /// How many wait for a limited time.
    pub(crate) deadlines: AtomicUsize,
    pub(crate) slowlog: Mutex<SlowLog>,
    pub(crate) latency: Mutex<LatencyMonitor>,
    /// Who guesses at the password.
    pub(crate) logins: Logins,
    pub(crate) errors: ErrorStats,
    /// What a walk through all keys has found.
    pub(crate) survey: Survey,
    /// Which keys were used most between two moments.
    pub(crate) hot_key_session: hotkeys::Session,
    pub(crate) totals: Totals,
    /// Wakes the control thread.
    pub(crate) control: Waker,
    /// Wakes the thread that serves HTTP.
    pub(crate) http: Waker,
    pub(crate) shutdown: AtomicBool,
    /// Values that are in the log alone.
    pub(crate) cold: Cold,
    /// Threads for values that have files of their own.
    pub(crate) blobs: blobs::Threads,
    /// The limit of memory.
    pub(crate) memory: Budget,
    /// Why commands are refused now.
    pub(crate) gate: Gate,
    pub(crate) snapshots: Snapshots,
    /// Set while somebody tries to end the server.
    pub(crate) ending: AtomicBool,
    /// Why the server cannot go on.
    pub(crate) failure: OnceLock<String>,
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub(crate) active_expire: AtomicBool,
    /// Forty random hexadecimal digits, new with each start.
    pub(crate) run_id: String,
    /// Forty more, which name the history of this server's data.
    pub(crate) replication_id: String,
    pub(crate) started_ms: i64,
    /// What workers wait with.
    pub(crate) backend: sys::Backend,
    pub(crate) poller_name: &'static str,
}

/// Counters that are not on any hot path.
#[derive(Default)]
pub(crate) struct Totals {
    /// Connections accepted; written by the control thread.
    pub(crate) connections: Counter,
    /// Connections refused for `maxclients` or protected mode.
    pub(crate) rejected: Counter,
    /// Figures of the last second, kept by the control thread.
    pub(crate) commands_per_second: Counter,
    pub(crate) input_per_second: Counter,
    pub(crate) output_per_second: Counter,
    /// The most memory in use that was ever seen.
    pub(crate) peak_memory: Counter,
    /// Microseconds of the slowest step of resizing an index.
    pub(crate) slowest_resize_us: Counter,
    /// Keys that had expired when statistics were last set to zero.
    pub(crate) expired_at_reset: Counter,
    /// Things that had been freed in the background by then.
    pub(crate) reclaimed_at_reset: Counter,
    /// Clients dropped because they did not read their replies.
    pub(crate) output_limit_disconnects: AtomicU64,
    /// Clients dropped because all together took too much memory.
    pub(crate) evicted_clients: AtomicU64,
    /// Clients dropped because a request grew beyond client-query-buffer-limit.
    pub(crate) query_limit_disconnects: AtomicU64,
}

/// How others reach a worker.
pub(crate) struct WorkerHandle {
    pub(crate) stats: WorkerStats,
    pub(crate) connections: AtomicUsize,
    /// How far it has got with making room.
    pub(crate) evictor: Evictor,
    /// Messages for connections that listen.
    pub(crate) published: Inbox,
    inbox: Mutex<Vec<Message>>,
    /// Bytes of lines for connections that monitor, in the inbox; and whether they are so many that others
    /// hold back. Changed under its lock.
    line_bytes: AtomicUsize,
    is_crowded: AtomicBool,
    waker: Waker,
}

/// What others ask a worker to do.
pub(crate) enum Message {
    /// Take over a connection.
    Accept(Socket, Arc<Client>),
    /// Send a line to a connection, if it still monitors.
    Deliver(u64, Arc<[u8]>),
    /// Close a connection that was killed.
    Close(Arc<Client>),
    /// Let a connection go on whose wait, of this number, was claimed.
    GoOn(Arc<Client>, u64, Outcome),
    /// More of a large value that a connection sends can be taken, or all of it is in its file.
    Uploaded(Arc<blobs::Shared>),
    /// There is more of a large value to send to a connection.
    Ready(blobs::Ready),
    /// Values are there that a connection waits for, or it is known why not.
    Fetched(Arc<Fetch>),
    /// Look again at what waits: a pause was ended, or the server ends.
    Wake,
}

impl WorkerHandle {
    pub(crate) fn new(commands: usize) -> std::io::Result<WorkerHandle> {
        Ok(WorkerHandle {
            stats: WorkerStats::new(commands),
            connections: AtomicUsize::new(0),
            evictor: Evictor::default(),
            published: Inbox::default(),
            inbox: Mutex::new(Vec::new()),
            line_bytes: AtomicUsize::new(0),
            is_crowded: AtomicBool::new(false),
            waker: Waker::new()?,
        })
    }

    /// Leaves a message and wakes the worker.
    pub(crate) fn send(&self, message: Message) {
        self.inbox.lock().push(message);
        self.waker.wake();
    }

    /// Leaves a line for a connection that monitors. Where the worker does not keep up, all who make such
    /// lines hold back.
    pub(crate) fn send_line(&self, crowd: &Crowd, token: u64, line: &Arc<[u8]>) {
        let mut inbox = self.inbox.lock();
        inbox.push(Message::Deliver(token, Arc::clone(line)));
        let bytes = self.line_bytes.fetch_add(line.len(), Relaxed) + line.len();
        if bytes > INBOX_BYTES && !self.is_crowded.swap(true, Relaxed) {
            crowd.enter();
        }
        drop(inbox);
        self.waker.wake();
    }

    /// Ends the worker's wait, or its next.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// All messages that were left; called by the worker. The second value says whether others held back for
    /// these alone.
    pub(crate) fn take_messages(&self, crowd: &Crowd) -> (Vec<Message>, bool) {
        self.waker.drain();
        let mut inbox = self.inbox.lock();
        self.line_bytes.store(0, Relaxed);
        let is_free = self.is_crowded.swap(false, Relaxed) && crowd.leave();
        (std::mem::take(&mut *inbox), is_free)
    }

    /// The clients among them that are to be closed.
    pub(crate) fn take_closes(&self) -> Vec<Arc<Client>> {
        let mut inbox = self.inbox.lock();
        let closes = inbox.extract_if(.., |message| matches!(message, Message::Close(_)));
        let client = |message| match message {
            Message::Close(client) => Some(client),
            _ => None,
        };
        closes.filter_map(client).collect()
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }
}

/// CLIENT PAUSE: until when (Unix, ms) and what, in one word, so that both change together. The lowest bit
/// says what.
#[derive(Default)]
pub(crate) struct Pause(AtomicI64);

/// What CLIENT PAUSE holds back, the more last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PauseKind {
    /// Commands that may write.
    Write = 0,
    /// Every command.
    All = 1,
}

impl Pause {
    /// When the pause ends, if one holds at `now`.
    #[inline]
    pub(crate) fn until(&self, now: i64) -> Option<(i64, PauseKind)> {
        Pause::unpack(self.0.load(Relaxed), now)
    }

    #[inline]
    fn unpack(word: i64, now: i64) -> Option<(i64, PauseKind)> {
        let (until, kind) = (
            word >> 1,
            if word & 1 == 0 {
                PauseKind::Write
            } else {
                PauseKind::All
            },
        );
        (until > now).then_some((until, kind))
    }

    /// Begins a pause. Where one holds already, the later end and the more that is held back count.
    pub(crate) fn extend(&self, now: i64, until_ms: i64, kind: PauseKind) {
        let extended = |word| {
            let asked = (until_ms, kind);
            let (until, kind) = Pause::unpack(word, now)
                .map_or(asked, |held| (held.0.max(until_ms), held.1.max(kind)));
            // An end beyond what the word holds is as good as never.
            Some(until.min(i64::MAX >> 1) << 1 | kind as i64)
        };
        let _ = self.0.fetch_update(Relaxed, Relaxed, extended);
    }

    /// Ends the pause.
    pub(crate) fn end(&self) {
        self.0.store(0, Relaxed);
    }
}

impl Server {
    /// Asks all threads to end.
    pub(crate) fn begin_shutdown(&self) {
        self.gate.set(Closed::Ending, true);
        self.shutdown.store(true, Relaxed);
        self.snapshots.wake();
        self.control.wake();
        self.http.wake();
        self.wake_workers();
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutdown.load(Relaxed)
    }

    /// Whether data is being loaded.
    pub(crate) fn is_loading(&self) -> bool {
        self.gate.has(Closed::Loading)
    }

    /// Notes that somebody tries to end the server, or does not any more. Returns what was noted before.
    pub(crate) fn set_ending(&self, ending: bool) -> bool {
        self.ending.swap(ending, Relaxed)
    }

    /// Whether somebody tries to end the server.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Relaxed)
    }

    /// Whether there are other nodes, as HELLO and INFO say it.
    pub(crate) fn mode(&self) -> &'static str {
        match self.cluster {
            Some(_) => "cluster",
            None => "standalone",
        }
    }

    /// How many databases SELECT knows.
    pub(crate) fn selectable_databases(&self) -> usize {
        match self.cluster {
            Some(_) => 1,
            None => self.keyspace.databases(),
        }
    }

    pub(crate) fn wake_workers(&self) {
        self.workers
            .iter()
            .for_each(|worker| worker.send(Message::Wake));
    }

    /// Closes a connection, wherever it lives. Returns whether it was not being closed for this reason
    /// already.
    pub(crate) fn kill(&self, client: Arc<Client>) -> bool {
        let is_first = !client.killed.swap(true, Relaxed);
        if is_first {
            self.workers[client.worker].send(Message::Close(client));
        }
        is_first
    }

    /// A sum over workers.
    pub(crate) fn sum(&self, counter: impl Fn(&WorkerStats) -> &Counter) -> u64 {
        self.workers
            .iter()
            .map(|worker| counter(&worker.stats).get())
            .sum()
    }

    /// The figures of all workers.
    pub(crate) fn stats(&self) -> impl Iterator<Item = &WorkerStats> + Clone {
        self.workers.iter().map(|worker| &worker.stats)
    }

    /// Keys removed because their time had come, since statistics were last set to zero.
    pub(crate) fn expired_keys(&self) -> u64 {
        self.keyspace
            .expired()
            .saturating_sub(self.totals.expired_at_reset.get())
    }

    /// Things freed in the background since then.
    pub(crate) fn reclaimed(&self) -> u64 {
        self.keyspace
            .reclaimed()
            .saturating_sub(self.totals.reclaimed_at_reset.get())
    }

    /// Sets statistics to zero, as CONFIG RESETSTAT does.
    pub(crate) fn reset_stats(&self) {
        self.hot_key_session.note_reset_of_stats(self.stats());
        hotkeys::reset(self.stats());
        self.workers.iter().for_each(|worker| worker.stats.reset());
        self.totals.connections.set(0);
        self.totals.rejected.set(0);
        self.totals.peak_memory.set(0);
        self.totals.expired_at_reset.set(self.keyspace.expired());
        self.totals
            .reclaimed_at_reset
            .set(self.keyspace.reclaimed());
        self.totals.slowest_resize_us.set(0);
        self.totals.output_limit_disconnects.store(0, Relaxed);
        self.totals.query_limit_disconnects.store(0, Relaxed);
        self.totals.evicted_clients.store(0, Relaxed);
        self.memory.reset();
        self.errors.reset();
        self.logins.reset_counters();
    }

    /// Whether protected mode refuses this peer, on every port: it is on another machine, and no password is
    /// set.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_extended_while_it_holds_and_replaced_when_it_is_over() {
        use PauseKind::{All, Write};
        let pause = Pause::default();
        assert_eq!(pause.until(0), None);
        pause.extend(1000, 2000, Write);
        assert_eq!(
            (pause.until(1999), pause.until(2000)),
            (Some((2000, Write)), None)
        );
        pause.extend(1500, 1600, All);
        assert_eq!(pause.until(1500), Some((2000, All)));
        pause.extend(1500, 3000, Write);
        assert_eq!(pause.until(1500), Some((3000, All)));
        pause.extend(3000, 4000, Write);
        assert_eq!(pause.until(3000), Some((4000, Write)));
        pause.end();
        assert_eq!(pause.until(3000), None);
        pause.extend(5000, 5000, All);
        assert_eq!(pause.until(5000), None);
        pause.extend(5000, i64::MAX, All);
        assert_eq!(pause.until(5000), Some((i64::MAX >> 1, All)));
    }
}
