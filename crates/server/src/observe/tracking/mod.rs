//! CLIENT TRACKING: the connections that cache keys, and their invalidation.
//!
//! ```text
//!  a connection reads k    k's shard is observed, and "k: this connection" is added to the table of interests
//!  a command changes k     under the same shard's lock the interests in k are removed, and each of their
//!                          connections' workers gets an invalidation into its inbox ([`crate::pubsub`])
//! ```
//!
//! No cached copy stays wrong. The interest is registered before the value is read, so every later change
//! removes it and puts an invalidation into the inbox of the reader's worker. The worker takes its inbox only
//! between two commands, so the invalidation follows the reply with the value, even if the key changed during
//! the read. The invalidation is in the inbox before the change is acknowledged, so a connection that sends a
//! request afterwards gets it before the reply. A connection that changes a key itself is told behind the
//! reply, and behind what its command has published; a transaction counts as one command.
//!
//! Connections in broadcasting mode register prefixes instead of reads: [`broadcast`]. While there are any,
//! all shards are observed.
//!
//! Invariants:
//!
//! 1. The table of a shard has an interest in a key of a database only if that database's shard is observed
//!    ([`keyspace::reason::TRACKED`]).
//! 2. `keys`, `items` and `bytes` are the sums over all tables. Interests of connections that have ended, or
//!    track no more, stay until their key changes, the tables exceed their limits, or a sweep removes them
//!    because there are many ([`sweep`]).
//! 3. Locks: a table's lock is taken under the shard's lock or without any. No lock is taken under it.
//!
//! Not here: the commands ([`crate::command::connection`]) and sending ([`crate::net::delivery`]).

mod broadcast;
mod news;
mod sweep;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

use keyspace::{Change, Key, ShardId, reason};
use parking_lot::Mutex;

use crate::config::Setting;
use crate::limits::{LEAVE_SLICE, TRACKING_DEAD_SHARE, TRACKING_GRACE_MS, TRACKING_SHARE};
use crate::names::{ByHash, Disjoint, Member, Members, Who};
use crate::observe::Observed;
use crate::observe::removals::{self, Leftover};
use crate::pubsub::News;
use crate::shared::clients::{Client, status};

pub(crate) use broadcast::Prefixes;
pub(crate) use sweep::{Interests, Sweep};

/// Interests in the keys of a shard, by key.
type ByKey = ByHash<Box<[u8]>, Members<Interest>>;

/// Bytes of a key in a table beside its name, and bytes of an interest.
const KEY_BYTES: usize = 128;
const INTEREST_BYTES: usize = 32;

/// Interest of a connection in a key of a database.
struct Interest {
    db: u32,
    /// Bytes that it adds to the connection's account. The first interest in a key includes the key.
    bytes: u32,
    client: Arc<Client>,
}

impl Member for Interest {
    fn who(&self) -> Who {
        (self.db, self.client.id)
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.client.free(self.bytes as usize);
        self.client.tracked.fetch_sub(1, Relaxed);
    }
}

impl Interest {
    fn new(db: usize, client: &Arc<Client>, bytes: usize) -> Interest {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        client.keep(bytes as usize);
        client.tracked.fetch_add(1, Relaxed);
        Interest {
            db: db as u32,
            bytes,
            client: Arc::clone(client),
        }
    }

    /// Whether the connection still tracks the keys that it reads.
    fn is_alive(&self) -> bool {
        let status = self.client.status.load(Relaxed);
        status & status::TRACKING != 0 && status & (status::BROADCAST | status::ENDED) == 0
    }

    /// Whether the connection stopped tracking a moment ago and may start again.
    fn may_revive(&self, now: i64) -> bool {
        let since = now - self.client.untracked_ms.load(Relaxed);
        !self.client.has_status(status::ENDED) && (0..TRACKING_GRACE_MS).contains(&since)
    }
}

/// Table of tracked keys.
pub(crate) struct Tracking {
    shards: Box<[Mutex<ByKey>]>,
    /// Distinct keys in the tables.
    keys: AtomicUsize,
    /// Interests in the tables.
    items: AtomicUsize,
    /// Bytes of the tables.
    bytes: AtomicUsize,
    /// Interests of connections that have stopped tracking since the last sweep was asked for; number of
    /// sweeps.
    dead: AtomicUsize,
    sweeps: AtomicUsize,
    /// First and last planned sweep for connections that may track again, Unix ms; 0: none.
    sweep_due_ms: AtomicI64,
    last_due_ms: AtomicI64,
    /// Number of tracking connections.
    pub(crate) clients: AtomicUsize,
    pub(crate) prefixes: Prefixes,
    /// Shard from which to evict the next key.
    evict_at: AtomicUsize,
}

thread_local! {
    /// Id of the connection whose requests run on this thread, if it tracks; else 0.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
    /// Keys of which this connection is to be told behind its reply, because it has changed them itself.
    static OWN_CHANGES: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// Sets the connection whose requests run on this thread. 0: none.
#[inline]
pub(crate) fn set_current(client: u64) {
    CURRENT.set(client);
}

/// Takes the keys of which the connection whose requests run is to be told, in the order of their changes.
#[inline]
pub(crate) fn take_own_changes() -> Vec<Box<[u8]>> {
    OWN_CHANGES.take()
}

impl Tracking {
    pub(crate) fn new(shards: usize) -> Tracking {
        Tracking {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            keys: AtomicUsize::new(0),
            items: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            dead: AtomicUsize::new(0),
            sweeps: AtomicUsize::new(0),
            sweep_due_ms: AtomicI64::new(0),
            last_due_ms: AtomicI64::new(0),
            clients: AtomicUsize::new(0),
            prefixes: Prefixes::default(),
            evict_at: AtomicUsize::new(0),
        }
    }

    /// Whether any connection tracks.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.clients() > 0
    }

    /// Number of tracking connections.
    pub(crate) fn clients(&self) -> usize {
        self.clients.load(Relaxed)
    }

    /// Number of distinct keys.
    pub(crate) fn keys(&self) -> usize {
        self.keys.load(Relaxed)
    }

    /// Number of interests.
    pub(crate) fn items(&self) -> usize {
        self.items.load(Relaxed)
    }

    /// Bytes of the tables.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Number of prefixes.
    pub(crate) fn prefixes(&self) -> usize {
        self.prefixes.len()
    }

    /// Removes at most `most` prefixes of a connection's round. Returns whether none is left.
    pub(crate) fn remove_prefixes(
        &self,
        server: &Observed,
        client: &Client,
        round: u32,
        prefixes: &mut Disjoint,
        most: usize,
    ) -> bool {
        for _ in 0..most {
            let Some(prefix) = prefixes.pop() else {
                break;
            };
            self.prefixes.remove(&prefix, client, round);
        }
        if prefixes.is_empty() && !self.prefixes.any() {
            server.keyspace.observe_where_asked(reason::TRACKED);
        }
        prefixes.is_empty()
    }

    /// Adds the interest of a connection in a key, whose shard is locked and observed.
    pub(crate) fn add(&self, shard: ShardId, db: usize, key: Key<'_>, client: &Arc<Client>) {
        let mut keys = self.shards[shard.0].lock();
        match keys.get_mut(key.hash, key.bytes) {
            None => {
                let bytes = key.bytes.len() + KEY_BYTES + INTEREST_BYTES;
                let interest = Interest::new(db, client, bytes);
                keys.insert(key.hash, key.bytes.into(), Members::of(interest));
                self.keys.fetch_add(1, Relaxed);
                self.bytes.fetch_add(bytes, Relaxed);
            }
            Some(interests) if interests.contains((db as u32, client.id)) => return,
            Some(interests) => {
                interests.insert(Interest::new(db, client, INTEREST_BYTES));
                self.bytes.fetch_add(INTEREST_BYTES, Relaxed);
            }
        }
        self.items.fetch_add(1, Relaxed);
    }

    /// Invalidates a changed key. Its shard is locked. Returns whether the shard is to stay observed.
    pub(crate) fn changed(&self, server: &Observed, change: &Change<'_>) -> bool {
        let (current, key) = (CURRENT.get(), change.key.bytes);
        let broadcasts = self.prefixes.note(server, key, current);
        let (taken, has_more) = {
            let mut keys = self.shards[change.shard.0].lock();
            let db = change.database as u32;
            let taken = self.take(&mut keys, change.key, |interests| interests.take(db));
            (taken, !keys.is_empty())
        };
        if !taken.is_empty() {
            tell(server, &taken, key, |client| {
                if client.id != current || client.redirect_id.load(Relaxed) != 0 {
                    return client.id != current || !client.has_status(status::NO_LOOP);
                }
                if !client.has_status(status::NO_LOOP) {
                    OWN_CHANGES.with_borrow_mut(|changes| changes.push(key.into()));
                }
                false
            });
        }
        has_more || broadcasts
    }

    /// Removes and returns interests in a key.
    fn take(
        &self,
        keys: &mut ByKey,
        key: Key<'_>,
        take: impl FnOnce(&mut Members<Interest>) -> Vec<Interest>,
    ) -> Vec<Interest> {
        let Some(interests) = keys.get_mut(key.hash, key.bytes) else {
            return Vec::new();
        };
        let taken = take(interests);
        let mut bytes = taken.len() * INTEREST_BYTES;
        if interests.is_empty() {
            keys.remove(key.hash, key.bytes);
            self.keys.fetch_sub(1, Relaxed);
            bytes += key.bytes.len() + KEY_BYTES;
        }
        self.items.fetch_sub(taken.len(), Relaxed);
        self.bytes.fetch_sub(bytes, Relaxed);
        taken
    }

    /// Whether the tables exceed `tracking-table-max-keys` or their part of `maxmemory`.
    fn is_full(&self, server: &Observed) -> bool {
        let most = server.settings.int(Setting::TrackingTableMaxKeys) as usize;
        let limit = server.settings.int(Setting::MaxMemory);
        (most > 0 && self.keys() > most)
            || (limit > 0 && self.bytes() > (limit / TRACKING_SHARE) as usize)
    }

    /// Evicts keys while the tables exceed their limits, at most `most`. Their readers get an invalidation.
    pub(crate) fn evict(&self, server: &Observed, mut most: usize) {
        while most > 0 && self.is_full(server) {
            let at = self.evict_at.fetch_add(1, Relaxed) % self.shards.len();
            let mut keys = self.shards[at].lock();
            let Some((hash, name)) = keys.any(fastrand::u64(..)) else {
                continue;
            };
            let name = name.clone();
            let key = Key { bytes: &name, hash };
            let mut taken = self.take(&mut keys, key, |interests| interests.extract(|_| true));
            drop(keys);
            // A connection that has read the key in two databases gets one message.
            taken.sort_unstable_by_key(|interest| interest.client.id);
            tell(server, &taken, &name, |_| true);
            most -= 1;
        }
    }

    /// Invalidates all keys after databases were emptied or exchanged. No other worker is inside a turn.
    pub(crate) fn flushed(&self, server: &Observed) {
        if self.items() > 0 {
            let tables = self
                .shards
                .iter()
                .map(|keys| std::mem::take(&mut *keys.lock()));
            let tables = Interests::of(tables.collect());
            self.keys.store(0, Relaxed);
            self.items.store(0, Relaxed);
            self.bytes.store(0, Relaxed);
            removals::leave(server, Leftover::Interests(tables));
        }
        if self.any() {
            let mut letters = news::Letters::default();
            server.clients.for_each(|client| {
                if client.has_status(status::TRACKING) {
                    letters.add(server, client);
                }
            });
            letters.send(server, News::All);
        }
    }

    /// Sends this worker's changes to the broadcasting connections.
    #[inline]
    pub(crate) fn broadcast(&self, server: &Observed) {
        if self.prefixes.any() {
            self.prefixes.tell(server);
        }
    }
}

/// Sends an invalidation of a key to the connections that still track and for which `is_meant` is true.
fn tell(server: &Observed, interests: &[Interest], key: &[u8], is_meant: impl Fn(&Client) -> bool) {
    let mut letters = news::Letters::default();
    // A connection that has read the key in two databases gets one message.
    for same in interests.chunk_by(|one, other| one.client.id == other.client.id) {
        if same[0].is_alive() && is_meant(&same[0].client) {
            letters.add(server, &same[0].client);
        }
    }
    letters.send(server, News::Keys(&mut std::iter::once(key)));
}

/// Options of CLIENT TRACKING.
pub(crate) struct Wish {
    /// Bits of [`status`]: the mode, and NOLOOP.
    pub(crate) modes: u32,
    /// Target of REDIRECT.
    pub(crate) redirect: Option<Arc<Client>>,
    /// Prefixes of the broadcasting mode, in addition to earlier ones.
    pub(crate) prefixes: Vec<Arc<[u8]>>,
}

/// Bytes of a prefix beside its name.
pub(crate) const PREFIX_BYTES: usize = 160;
