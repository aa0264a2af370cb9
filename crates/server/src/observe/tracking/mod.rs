//! CLIENT TRACKING: who keeps copies of which keys, and telling them when a copy is no longer right.
//!
//! ```text
//!  a tracking connection reads k    k's shard is observed, and "k: this connection" is put into the table of interests
//!  somebody changes k               under the same shard's lock the interests in k are taken out, and each of their
//!                                   connections' workers finds an invalidation in its inbox ([`crate::pubsub`])
//! ```
//!
//! Why no copy stays wrong: the interest is there before the value is read, so whoever changes the key from
//! then on takes it out and leaves an invalidation in the inbox of the reader's worker. That looks there only
//! between two commands: the invalidation comes behind the reply from which the copy is made, even if the key
//! changed while it was being read. And it is in the inbox before the change is acknowledged: a connection
//! that sends something after that is told before it is answered.
//!
//! Connections in broadcasting mode name prefixes instead of reading keys: [`broadcast`]. While there are
//! any, all shards are observed.
//!
//! Invariants:
//! 1. The table of a shard has an interest in a key of a database only if that database's shard is observed
//!    ([`keyspace::reason::TRACKED`]).
//! 2. `keys`, `items` and `bytes` say what is in the tables. Interests of connections that have ended, or
//!    track no more, stay until their key changes, the table is over its limits, or so many of them are there
//!    that the table is swept ([`sweep`]).
//! 3. Locks: a table's is taken under the shard's lock or without any. Beneath it nothing is locked.
//!
//! What does not live here: the commands ([`crate::command::connection`]), sending
//! ([`crate::net::delivery`]).

mod broadcast;
mod news;
mod sweep;

use std::cell::Cell;
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

/// Those who have read the keys of a shard, by key.
type ByKey = ByHash<Box<[u8]>, Members<Interest>>;

/// Bytes that a key takes in a table beside its name, and that one who has read it takes.
const KEY_BYTES: usize = 128;
const INTEREST_BYTES: usize = 32;

/// A connection has read the key in a database.
struct Interest {
    db: u32,
    /// Bytes that it adds to the account of the connection. The first one that read a key pays for the key,
    /// too.
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

    /// Whether the connection still wants to know.
    fn is_alive(&self) -> bool {
        let status = self.client.status.load(Relaxed);
        status & status::TRACKING != 0 && status & (status::BROADCAST | status::ENDED) == 0
    }

    /// Whether the connection has stopped tracking a moment ago and may begin again.
    fn may_revive(&self, now: i64) -> bool {
        let since = now - self.client.untracked_ms.load(Relaxed);
        !self.client.has_status(status::ENDED) && (0..TRACKING_GRACE_MS).contains(&since)
    }
}

/// See the module.
pub(crate) struct Tracking {
    shards: Box<[Mutex<ByKey>]>,
    /// Different keys in the tables.
    keys: AtomicUsize,
    /// Interests in the tables.
    items: AtomicUsize,
    /// Bytes that the tables take.
    bytes: AtomicUsize,
    /// Interests of connections that track no more, since the last sweep began; and how often tables were to
    /// be swept.
    dead: AtomicUsize,
    sweeps: AtomicUsize,
    /// When (Unix, ms) tables are to be swept because of connections that may track again, for the first time
    /// and for the last; 0 for never.
    sweep_due_ms: AtomicI64,
    last_due_ms: AtomicI64,
    /// Connections that track.
    pub(crate) clients: AtomicUsize,
    pub(crate) prefixes: Prefixes,
    /// Where to look for keys to forget.
    evict_at: AtomicUsize,
}

thread_local! {
    /// The connection whose requests run on this thread, if it tracks; 0 for none.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// Says whose requests run on this thread from here on: what a connection changes itself may be no news to
/// it. 0 is nobody.
#[inline]
pub(crate) fn set_current(client: u64) {
    CURRENT.set(client);
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

    /// Whether anybody tracks, so that a command may have news for somebody.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.clients() > 0
    }

    /// How many connections track.
    pub(crate) fn clients(&self) -> usize {
        self.clients.load(Relaxed)
    }

    /// How many keys are remembered.
    pub(crate) fn keys(&self) -> usize {
        self.keys.load(Relaxed)
    }

    /// How many connections are remembered, counted for each key.
    pub(crate) fn items(&self) -> usize {
        self.items.load(Relaxed)
    }

    /// Bytes that what is remembered takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// How many prefixes somebody named.
    pub(crate) fn prefixes(&self) -> usize {
        self.prefixes.len()
    }

    /// Removes so many prefixes that a connection has named in a round. Returns whether none is left.
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

    /// Remembers that a connection reads a key, whose shard is locked and observed.
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

    /// A key of a tracked shard, which is locked, has changed. Returns whether the shard is still to be
    /// observed.
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
            let is_meant =
                |client: &Client| client.id != current || !client.has_status(status::NO_LOOP);
            tell(server, &taken, key, is_meant);
        }
        has_more || broadcasts
    }

    /// Takes interests in a key out.
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

    /// Whether there is more than settings allow: than `tracking-table-max-keys`, and than a part of
    /// `maxmemory`.
    fn is_full(&self, server: &Observed) -> bool {
        let most = server.settings.int(Setting::TrackingTableMaxKeys) as usize;
        let limit = server.settings.int(Setting::MaxMemory);
        (most > 0 && self.keys() > most)
            || (limit > 0 && self.bytes() > (limit / TRACKING_SHARE) as usize)
    }

    /// Forgets keys while there are too many, so many of them at most. Those who read them are told as if
    /// they had changed.
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
            // Who has read it in two databases is told once.
            taken.sort_unstable_by_key(|interest| interest.client.id);
            tell(server, &taken, &name, |_| true);
            most -= 1;
        }
    }

    /// Databases were emptied or exchanged: nobody's copies are worth anything. No other worker is inside a
    /// turn.
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

    /// Tells of what broadcasting connections want to know, as far as this worker has changed it.
    #[inline]
    pub(crate) fn broadcast(&self, server: &Observed) {
        if self.prefixes.any() {
            self.prefixes.tell(server);
        }
    }
}

/// Tells those who had read a key that it has changed, as far as they are meant and still want to know.
fn tell(server: &Observed, interests: &[Interest], key: &[u8], is_meant: impl Fn(&Client) -> bool) {
    let mut letters = news::Letters::default();
    // Who has read it in two databases is told once.
    for same in interests.chunk_by(|one, other| one.client.id == other.client.id) {
        if same[0].is_alive() && is_meant(&same[0].client) {
            letters.add(server, &same[0].client);
        }
    }
    letters.send(server, News::Keys(&mut std::iter::once(key)));
}

/// How a connection wants to be told.
pub(crate) struct Wish {
    /// Bits of [`status`]: which mode, and what is no news.
    pub(crate) modes: u32,
    /// Who is told in its place.
    pub(crate) redirect: Option<Arc<Client>>,
    /// In broadcasting mode, where keys begin that it wants to know of, beside those it said before.
    pub(crate) prefixes: Vec<Arc<[u8]>>,
}

/// Bytes that a prefix takes beside its own.
pub(crate) const PREFIX_BYTES: usize = 160;
