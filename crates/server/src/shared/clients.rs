//! Records of all connections, for CLIENT LIST and CLIENT KILL.
//!
//! A connection's worker writes the record with plain atomic stores, once per batch of requests. Every thread
//! reads it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};

use parking_lot::{Mutex, RwLock};
use sys::socket::Socket;

use crate::shared::logins::Origin;

/// No command, in [`Client::last_command`].
pub(crate) const NO_COMMAND: u16 = u16::MAX;

/// Names that a client gave itself.
#[derive(Default, Clone)]
pub(crate) struct Names {
    /// CLIENT SETNAME.
    pub(crate) name: String,
    /// CLIENT SETINFO LIB-NAME and LIB-VER.
    pub(crate) library: String,
    pub(crate) library_version: String,
}

impl Names {
    /// Bytes of the names.
    fn memory(&self) -> usize {
        self.name.capacity() + self.library.capacity() + self.library_version.capacity()
    }
}

/// Record of one connection.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) peer: String,
    pub(crate) local: String,
    pub(crate) fd: i32,
    pub(crate) is_unix: bool,
    /// Origin of its logins, for the throttle of failed ones.
    pub(crate) origin: Origin,
    /// Its worker, and its token there.
    pub(crate) worker: usize,
    pub(crate) token: AtomicU64,
    pub(crate) created_ms: i64,
    pub(crate) names: Mutex<Names>,
    pub(crate) db: AtomicUsize,
    /// Protocol version: 2 or 3.
    pub(crate) protocol: AtomicU8,
    pub(crate) last_active_ms: AtomicI64,
    /// Counter id of the last command; [`NO_COMMAND`] before the first and after an unknown one.
    pub(crate) last_command: AtomicU16,
    /// Bytes of an incomplete request, and the free bytes behind them.
    pub(crate) input_bytes: AtomicUsize,
    pub(crate) input_free: AtomicUsize,
    /// Unsent bytes, and the number of buffers that hold them.
    pub(crate) output_bytes: AtomicUsize,
    pub(crate) output_pieces: AtomicUsize,
    /// Bytes of all its buffers, as last counted by its worker.
    pub(crate) memory: AtomicUsize,
    /// Bytes that the server keeps for it beside its buffers: subscriptions, watched and tracked keys,
    /// prefixes, names. The code that adds or removes one of these adjusts the count.
    pub(crate) kept: AtomicUsize,
    /// Part of `memory` that belongs to one request and its replies.
    pub(crate) single_memory: AtomicUsize,
    /// Numbers of its channels, patterns and shard channels.
    pub(crate) subscriptions: [AtomicUsize; 3],
    /// Bytes received from it and sent to it, and its commands. Written by its worker alone ([`count`]).
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) commands: AtomicU64,
    /// Requests in its transaction, and their bytes.
    pub(crate) queued: AtomicUsize,
    pub(crate) queued_bytes: AtomicUsize,
    /// Number of watched keys.
    pub(crate) watched: AtomicUsize,
    /// Number of ends of WATCH. Registrations of earlier rounds are void.
    pub(crate) watch_round: AtomicU64,
    /// 1 + the last round in which a watched key has changed.
    dirty_round: AtomicU64,
    /// Number of its keys in the table of tracked keys.
    pub(crate) tracked: AtomicUsize,
    /// End of its last tracking, Unix ms.
    pub(crate) untracked_ms: AtomicI64,
    /// Number of ends of tracking. Prefixes of earlier rounds are void.
    pub(crate) tracking_round: AtomicU32,
    /// Connection that gets its invalidation messages (CLIENT TRACKING REDIRECT), and the id of that; 0:
    /// none.
    pub(crate) redirect: Mutex<Option<Arc<Client>>>,
    pub(crate) redirect_id: AtomicU64,
    /// Bits of `flags=` and `events=` in CLIENT LIST; see [`status`].
    pub(crate) status: AtomicU32,
    /// Number of its wait; 0: none, or claimed.
    pub(crate) wait: AtomicU64,
    /// Set by CLIENT KILL. No further request runs and nothing more is sent; the worker closes the connection
    /// at its next look.
    pub(crate) killed: AtomicBool,
}

/// Types of connections, for CLIENT LIST and CLIENT KILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientKind {
    /// Sends requests and gets replies; includes MONITOR.
    Normal,
    PubSub,
    Replica,
    Master,
}

/// Bits of [`Client::status`].
pub(crate) mod status {
    pub(crate) const MONITOR: u32 = 1;
    pub(crate) const NO_EVICT: u32 = 1 << 1;
    pub(crate) const NO_TOUCH: u32 = 1 << 2;
    /// Closes once its replies are sent.
    pub(crate) const CLOSING: u32 = 1 << 3;
    /// Waits for the end of CLIENT PAUSE or for data.
    pub(crate) const BLOCKED: u32 = 1 << 4;
    /// Its worker polls the socket for input.
    pub(crate) const READS: u32 = 1 << 5;
    /// Its worker polls the socket for room to send.
    pub(crate) const WRITES: u32 = 1 << 6;
    /// Subscribed to a channel or a pattern.
    pub(crate) const PUBSUB: u32 = 1 << 7;
    /// Between MULTI and EXEC.
    pub(crate) const MULTI: u32 = 1 << 16;
    /// A watched key has changed. Set by the thread that changes the key.
    pub(crate) const DIRTY: u32 = 1 << 17;
    /// CLIENT TRACKING and its modes.
    pub(crate) const TRACKING: u32 = 1 << 18;
    pub(crate) const BROADCAST: u32 = 1 << 19;
    pub(crate) const OPT_IN: u32 = 1 << 20;
    pub(crate) const OPT_OUT: u32 = 1 << 21;
    pub(crate) const NO_LOOP: u32 = 1 << 22;
    /// CLIENT CACHING applies to the next command or transaction.
    pub(crate) const CACHING: u32 = 1 << 23;
    /// The connection of [`super::Client::redirect`] has ended.
    pub(crate) const BROKEN_REDIRECT: u32 = 1 << 24;
    /// The connection has ended.
    pub(crate) const ENDED: u32 = 1 << 25;
    /// CLIENT CAPA redirect.
    pub(crate) const CAN_REDIRECT: u32 = 1 << 26;
}

/// Adds to a counter that this thread alone writes.
#[inline]
pub(crate) fn count(counter: &AtomicU64, more: usize) {
    counter.store(counter.load(Relaxed).wrapping_add(more as u64), Relaxed);
}

/// The field `flags` of CLIENT LIST: a letter for each thing that is special about a connection, `N` if
/// nothing is.
pub(crate) fn letters(client: &Client) -> String {
    let special = [
        (status::MONITOR, 'O'),
        (status::PUBSUB, 'P'),
        (status::MULTI, 'x'),
        (status::BLOCKED, 'b'),
        (status::TRACKING, 't'),
        (status::BROKEN_REDIRECT, 'R'),
        (status::BROADCAST, 'B'),
        (status::DIRTY, 'd'),
        (status::CLOSING, 'c'),
        (status::NO_EVICT, 'e'),
        (status::NO_TOUCH, 'T'),
    ];
    let (before, behind) = special.split_at(special.len() - 2);
    let of = |bits: &[(u32, char)]| -> String {
        let set = bits.iter().filter(|&&(bit, _)| client.has_status(bit));
        set.map(|&(_, letter)| letter).collect()
    };
    let unix = if client.is_unix { "U" } else { "" };
    let letters = format!("{}{unix}{}", of(before), of(behind));
    if letters.is_empty() {
        "N".into()
    } else {
        letters
    }
}

impl Client {
    /// Record of a connection that was just accepted.
    pub(crate) fn new(id: u64, socket: &Socket, worker: usize) -> Client {
        Client {
            peer: socket.peer_text(),
            local: socket.local_text(),
            fd: socket.fd_number(),
            is_unix: socket.is_unix(),
            origin: Origin::of(socket.peer_address().map(|address| address.ip())),
            ..Client::unconnected(id, worker)
        }
    }

    /// Record without a socket.
    pub(crate) fn unconnected(id: u64, worker: usize) -> Client {
        let now = sys::clock::realtime_ms();
        Client {
            id,
            peer: String::new(),
            local: String::new(),
            fd: -1,
            is_unix: false,
            origin: Origin::of(None),
            worker,
            token: AtomicU64::new(u64::MAX),
            created_ms: now,
            names: Mutex::new(Names::default()),
            db: AtomicUsize::new(0),
            protocol: AtomicU8::new(2),
            last_active_ms: AtomicI64::new(now),
            last_command: AtomicU16::new(NO_COMMAND),
            input_bytes: AtomicUsize::new(0),
            input_free: AtomicUsize::new(0),
            output_bytes: AtomicUsize::new(0),
            output_pieces: AtomicUsize::new(0),
            memory: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            single_memory: AtomicUsize::new(0),
            subscriptions: Default::default(),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            queued: AtomicUsize::new(0),
            queued_bytes: AtomicUsize::new(0),
            watched: AtomicUsize::new(0),
            watch_round: AtomicU64::new(0),
            dirty_round: AtomicU64::new(0),
            tracked: AtomicUsize::new(0),
            untracked_ms: AtomicI64::new(0),
            tracking_round: AtomicU32::new(0),
            redirect: Mutex::new(None),
            redirect_id: AtomicU64::new(0),
            status: AtomicU32::new(status::READS),
            wait: AtomicU64::new(0),
            killed: AtomicBool::new(false),
        }
    }

    /// Adds to the bytes that the server keeps for it.
    pub(crate) fn keep(&self, bytes: usize) {
        self.kept.fetch_add(bytes, Relaxed);
    }

    /// Subtracts from the bytes that the server keeps for it.
    pub(crate) fn free(&self, bytes: usize) {
        self.kept.fetch_sub(bytes, Relaxed);
    }

    /// Changes its names and adjusts the kept bytes.
    pub(crate) fn rename(&self, change: impl FnOnce(&mut Names)) {
        let mut names = self.names.lock();
        let before = names.memory();
        change(&mut names);
        self.keep(names.memory());
        self.free(before);
    }

    /// Its type. There are no replicas yet.
    pub(crate) fn kind(&self) -> ClientKind {
        if self.has_status(status::PUBSUB) {
            ClientKind::PubSub
        } else {
            ClientKind::Normal
        }
    }

    /// Stores the numbers of channels, patterns and shard channels.
    pub(crate) fn set_subscriptions(&self, counts: [usize; 3]) {
        for (subscriptions, count) in self.subscriptions.iter().zip(counts) {
            subscriptions.store(count, Relaxed);
        }
        self.set_status(status::PUBSUB, counts != [0; 3]);
    }

    /// A key that was watched in `round` has changed. A late call for an earlier round has no effect.
    pub(crate) fn set_dirty(&self, round: u64) {
        self.dirty_round.fetch_max(round + 1, Relaxed);
        self.set_status(status::DIRTY, true);
    }

    /// Whether a watched key has changed.
    pub(crate) fn is_dirty(&self) -> bool {
        self.has_status(status::DIRTY)
            && self.dirty_round.load(Relaxed) == self.watch_round.load(Relaxed) + 1
    }

    /// Number of watched keys; 0 once one of them has changed.
    pub(crate) fn watched_keys(&self) -> usize {
        if self.has_status(status::DIRTY) {
            0
        } else {
            self.watched.load(Relaxed)
        }
    }

    /// Ends the wait `number`. Returns false if it was claimed before.
    pub(crate) fn claim_wait(&self, number: u64) -> bool {
        self.wait
            .compare_exchange(number, 0, AcqRel, Relaxed)
            .is_ok()
    }

    /// Sets the connection that gets its invalidation messages.
    pub(crate) fn set_redirect(&self, target: Option<Arc<Client>>) {
        let id = target.as_ref().map_or(0, |target| target.id);
        *self.redirect.lock() = target;
        self.redirect_id.store(id, Relaxed);
    }

    /// Id of the connection that gets its invalidation messages: 0 if there is none, -1 without tracking.
    pub(crate) fn redirection(&self) -> i64 {
        if self.has_status(status::TRACKING) {
            self.redirect_id.load(Relaxed) as i64
        } else {
            -1
        }
    }

    /// Sets or clears all bits of `bits`.
    pub(crate) fn set_status(&self, bits: u32, on: bool) {
        if on {
            self.status.fetch_or(bits, Relaxed);
        } else {
            self.status.fetch_and(!bits, Relaxed);
        }
    }

    /// Stores the last command: the id of its counters, or [`NO_COMMAND`].
    #[inline]
    pub(crate) fn note_command(&self, id: u16) {
        self.last_command.store(id, Relaxed);
    }

    /// The field `capa` of CLIENT LIST: what the client said that it can.
    pub(crate) fn capabilities(&self) -> &'static str {
        if self.has_status(status::CAN_REDIRECT) {
            "r"
        } else {
            ""
        }
    }

    pub(crate) fn has_status(&self, bit: u32) -> bool {
        self.status.load(Relaxed) & bit != 0
    }
}

/// All connections, by id.
#[derive(Default)]
pub(crate) struct Clients {
    next_id: AtomicU64,
    by_id: RwLock<BTreeMap<u64, Arc<Client>>>,
}

impl Clients {
    /// Id of the next connection: ascending from 1, never reused.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed) + 1
    }

    pub(crate) fn add(&self, client: Arc<Client>) {
        self.by_id.write().insert(client.id, client);
    }

    pub(crate) fn remove(&self, id: u64) {
        self.by_id.write().remove(&id);
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.read().len()
    }

    /// All current connections, by ascending id.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.by_id.read().values().cloned().collect()
    }

    /// Calls `visit` for each connection, by ascending id. Holds the lock: nothing is added or removed
    /// meanwhile.
    pub(crate) fn for_each(&self, visit: impl FnMut(&Arc<Client>)) {
        self.by_id.read().values().for_each(visit);
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Client>> {
        self.by_id.read().get(&id).cloned()
    }
}
