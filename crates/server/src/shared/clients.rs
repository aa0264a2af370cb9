//! The record of every connection: what CLIENT LIST shows and CLIENT KILL reaches, from any worker.
//!
//! A record is written by its connection's worker with plain atomic stores, once per batch of requests, and
//! read by anybody.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};

use parking_lot::{Mutex, RwLock};
use sys::socket::Socket;

use crate::shared::logins::Origin;

/// Stands for no command in [`Client::last_command`].
pub(crate) const NO_COMMAND: u16 = u16::MAX;

/// Names a client gave itself.
#[derive(Default, Clone)]
pub(crate) struct Names {
    /// CLIENT SETNAME.
    pub(crate) name: String,
    /// CLIENT SETINFO LIB-NAME and LIB-VER.
    pub(crate) library: String,
    pub(crate) library_version: String,
}

impl Names {
    /// Bytes they take.
    fn memory(&self) -> usize {
        self.name.capacity() + self.library.capacity() + self.library_version.capacity()
    }
}

/// See the module.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) peer: String,
    pub(crate) local: String,
    pub(crate) fd: i32,
    pub(crate) is_unix: bool,
    /// Where its attempts to log in come from.
    pub(crate) origin: Origin,
    /// The worker it lives on, and its token there.
    pub(crate) worker: usize,
    pub(crate) token: AtomicU64,
    pub(crate) created_ms: i64,
    pub(crate) names: Mutex<Names>,
    pub(crate) db: AtomicUsize,
    /// 2 or 3.
    pub(crate) protocol: AtomicU8,
    pub(crate) last_active_ms: AtomicI64,
    /// Counter id of the command that was named last; [`NO_COMMAND`] for none, or one that doesn't exist.
    pub(crate) last_command: AtomicU16,
    /// Bytes of an incomplete request, and room for more.
    pub(crate) input_bytes: AtomicUsize,
    pub(crate) input_free: AtomicUsize,
    /// Bytes waiting to be sent, and the number of buffers that hold them.
    pub(crate) output_bytes: AtomicUsize,
    pub(crate) output_pieces: AtomicUsize,
    /// Bytes that all of its buffers take, as its worker counted them last.
    pub(crate) memory: AtomicUsize,
    /// Bytes that the server keeps for it beside its buffers: subscriptions, watched and tracked keys,
    /// prefixes, names. Each of them is added by who adds it, and taken off by who removes it.
    pub(crate) kept: AtomicUsize,
    /// Of these, what one request and its replies take.
    pub(crate) single_memory: AtomicUsize,
    /// Channels, patterns and shard channels it listens to.
    pub(crate) subscriptions: [AtomicUsize; 3],
    /// Requests in its transaction, and the bytes they take.
    pub(crate) queued: AtomicUsize,
    pub(crate) queued_bytes: AtomicUsize,
    /// Keys it watches.
    pub(crate) watched: AtomicUsize,
    /// How often it has stopped watching: registrations of before mean nothing.
    pub(crate) watch_round: AtomicU64,
    /// One more than the last round in which a key that it watched has changed.
    dirty_round: AtomicU64,
    /// Keys of which the table of tracked keys says that it has read them.
    pub(crate) tracked: AtomicUsize,
    /// When (Unix, ms) it stopped tracking last.
    pub(crate) untracked_ms: AtomicI64,
    /// How often it has stopped tracking: prefixes of before mean nothing.
    pub(crate) tracking_round: AtomicU32,
    /// Who is told of changes to keys in its place, and that connection's id (0: nobody).
    pub(crate) redirect: Mutex<Option<Arc<Client>>>,
    pub(crate) redirect_id: AtomicU64,
    /// What CLIENT LIST shows as `flags=` and `events=`, as bits; see [`status`].
    pub(crate) status: AtomicU32,
    /// The number of what it waits for; 0: it doesn't wait, or somebody has claimed that.
    pub(crate) wait: AtomicU64,
    /// None of its requests runs any more and nothing is sent to it: its worker closes the connection as soon
    /// as it looks. Set by CLIENT KILL.
    pub(crate) killed: AtomicBool,
}

/// The types by which CLIENT LIST and CLIENT KILL select connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientKind {
    /// Sends requests and gets replies; one that monitors is of this type too.
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
    /// Will be closed once its replies are sent.
    pub(crate) const CLOSING: u32 = 1 << 3;
    /// Waits for the end of CLIENT PAUSE or for data.
    pub(crate) const BLOCKED: u32 = 1 << 4;
    /// Its worker waits until it sends something.
    pub(crate) const READS: u32 = 1 << 5;
    /// Its worker waits until there is room to send it something.
    pub(crate) const WRITES: u32 = 1 << 6;
    /// Listens to a channel or a pattern.
    pub(crate) const PUBSUB: u32 = 1 << 7;
    /// Is between MULTI and EXEC.
    pub(crate) const MULTI: u32 = 1 << 16;
    /// A key it watches has changed. Set by whoever changes the key.
    pub(crate) const DIRTY: u32 = 1 << 17;
    /// Tracks keys (CLIENT TRACKING), and how.
    pub(crate) const TRACKING: u32 = 1 << 18;
    pub(crate) const BROADCAST: u32 = 1 << 19;
    pub(crate) const OPT_IN: u32 = 1 << 20;
    pub(crate) const OPT_OUT: u32 = 1 << 21;
    pub(crate) const NO_LOOP: u32 = 1 << 22;
    /// CLIENT CACHING was said before the command, or transaction, that comes next.
    pub(crate) const CACHING: u32 = 1 << 23;
    /// The connection that is told of changes in its place has ended.
    pub(crate) const BROKEN_REDIRECT: u32 = 1 << 24;
    /// The connection has ended.
    pub(crate) const ENDED: u32 = 1 << 25;
}

impl Client {
    /// The record of a connection that was just accepted.
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

    /// A record without a socket.
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

    /// Adds to what the server keeps for it.
    pub(crate) fn keep(&self, bytes: usize) {
        self.kept.fetch_add(bytes, Relaxed);
    }

    /// Takes off what the server keeps for it no longer.
    pub(crate) fn free(&self, bytes: usize) {
        self.kept.fetch_sub(bytes, Relaxed);
    }

    /// Changes its names, within its account.
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

    /// Notes how many names of each kind it listens to.
    pub(crate) fn set_subscriptions(&self, counts: [usize; 3]) {
        for (subscriptions, count) in self.subscriptions.iter().zip(counts) {
            subscriptions.store(count, Relaxed);
        }
        self.set_status(status::PUBSUB, counts != [0; 3]);
    }

    /// Notes that a key has changed that it watched in a round. Of a round that is over this may come late,
    /// and means nothing.
    pub(crate) fn set_dirty(&self, round: u64) {
        self.dirty_round.fetch_max(round + 1, Relaxed);
        self.set_status(status::DIRTY, true);
    }

    /// Whether a key that it watches has changed.
    pub(crate) fn is_dirty(&self) -> bool {
        self.has_status(status::DIRTY)
            && self.dirty_round.load(Relaxed) == self.watch_round.load(Relaxed) + 1
    }

    /// The number of keys that it watches. Who has learned that one has changed watches none any more.
    pub(crate) fn watched_keys(&self) -> usize {
        if self.has_status(status::DIRTY) {
            0
        } else {
            self.watched.load(Relaxed)
        }
    }

    /// Ends its wait of a number, unless somebody else has.
    pub(crate) fn claim_wait(&self, number: u64) -> bool {
        self.wait
            .compare_exchange(number, 0, AcqRel, Relaxed)
            .is_ok()
    }

    /// Says who is told of changes to keys in its place.
    pub(crate) fn set_redirect(&self, target: Option<Arc<Client>>) {
        let id = target.as_ref().map_or(0, |target| target.id);
        *self.redirect.lock() = target;
        self.redirect_id.store(id, Relaxed);
    }

    /// Who is told of changes to keys in its place: 0 if nobody is, -1 if it doesn't track.
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

    /// Notes which command was named last, by the id of its counters or [`NO_COMMAND`].
    #[inline]
    pub(crate) fn note_command(&self, id: u16) {
        self.last_command.store(id, Relaxed);
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
    /// The id of the next connection; they ascend from 1 and are never used twice.
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

    /// All of them now, in order of id.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.by_id.read().values().cloned().collect()
    }

    /// Calls `visit` with each of them now, in order of id. Nobody can connect or leave meanwhile.
    pub(crate) fn for_each(&self, visit: impl FnMut(&Arc<Client>)) {
        self.by_id.read().values().for_each(visit);
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Client>> {
        self.by_id.read().get(&id).cloned()
    }
}
