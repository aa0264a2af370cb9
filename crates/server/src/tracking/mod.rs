//! CLIENT TRACKING: who keeps copies of which keys, and telling them when a copy is no longer right.
//!
//! ```text
//!  a tracking connection reads k    k's shard is observed, and "k: this connection" is put into the table of interests
//!  somebody changes k               under the same shard's lock the interests in k are taken out, and each of their
//!                                   connections' workers finds an invalidation in its inbox ([`crate::pubsub`])
//! ```
//!
//! Why no copy stays wrong: the interest is there before the value is read, so whoever changes the key from then on takes it
//! out and leaves an invalidation in the inbox of the reader's worker. That looks there only between two commands: the invalidation
//! comes behind the reply from which the copy is made, even if the key changed while it was being read. And it is in the
//! inbox before the change is acknowledged: a connection that sends something after that is told before it is answered.
//!
//! Connections in broadcasting mode name prefixes instead of reading keys: [`broadcast`]. While there are any, all shards are observed.
//!
//! Invariants:
//! 1. The table of a shard has an interest in a key of a database only if that database's shard is observed
//!    ([`keyspace::reason::TRACKED`]).
//! 2. `keys` and `items` count what is in the tables. Interests of connections that have ended, or track no more, stay until
//!    their key changes, the list of the key grows, or the table is over its limit.
//! 3. Locks: a table's is taken under the shard's lock or without any. Beneath it nothing is locked.
//!
//! What does not live here: the commands ([`crate::command::connection`]), sending ([`crate::delivery`]).

mod broadcast;
mod news;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use keyspace::{Change, Key, ShardId, Turn, reason};
use parking_lot::Mutex;

use crate::clients::{Client, status};
use crate::command::{Args, Command, Context, Reach, flag, server::key_finder};
use crate::config::Setting;
use crate::limits::TRACKING_EVICTIONS;
use crate::server::Server;
use crate::session::Session;

pub(crate) use broadcast::{Prefixes, overlap};
pub(crate) use news::{Addressee, News};

/// Those who have read the keys of a shard, by key; each list in order of client and database.
type ByKey = HashMap<Box<[u8]>, Vec<Interest>>;

/// A connection has read the key in a database.
struct Interest {
    db: usize,
    client: Arc<Client>,
}

impl Interest {
    fn order(&self) -> (u64, usize) {
        (self.client.id, self.db)
    }

    /// Whether the connection still wants to know.
    fn is_alive(&self) -> bool {
        let status = self.client.status.load(Relaxed);
        status & status::TRACKING != 0 && status & (status::BROADCAST | status::ENDED) == 0
    }
}

/// See the module.
pub(crate) struct Tracking {
    shards: Box<[Mutex<ByKey>]>,
    /// Different keys in the tables.
    keys: AtomicUsize,
    /// Interests in the tables.
    items: AtomicUsize,
    /// Connections that track.
    clients: AtomicUsize,
    prefixes: Prefixes,
    /// Where to look for keys to forget.
    evict_at: AtomicUsize,
}

thread_local! {
    /// The connection whose requests run on this thread, if it tracks; 0 for none.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// Says whose requests run on this thread from here on: what a connection changes itself may be no news to it. 0 is nobody.
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

    /// How many prefixes somebody named.
    pub(crate) fn prefixes(&self) -> usize {
        self.prefixes.len()
    }

    /// Remembers that a connection reads a key, whose shard is locked and observed.
    fn add(&self, shard: ShardId, db: usize, key: &[u8], client: &Arc<Client>) {
        let interest = Interest {
            db,
            client: Arc::clone(client),
        };
        let mut keys = self.shards[shard.0].lock();
        let Some(interests) = keys.get_mut(key) else {
            keys.insert(key.into(), vec![interest]);
            self.keys.fetch_add(1, Relaxed);
            self.items.fetch_add(1, Relaxed);
            return;
        };
        let order = interest.order();
        if interests
            .binary_search_by_key(&order, Interest::order)
            .is_ok()
        {
            return;
        }
        if interests.len() == interests.capacity() {
            // Before the list takes more room, those who want to know no more make some.
            let before = interests.len();
            interests.retain(Interest::is_alive);
            self.items.fetch_sub(before - interests.len(), Relaxed);
        }
        let at = interests.partition_point(|other| other.order() < order);
        interests.insert(at, interest);
        self.items.fetch_add(1, Relaxed);
    }

    /// A key of a tracked shard, which is locked, has changed. Returns whether the shard is still to be observed.
    pub(crate) fn changed(&self, server: &Server, change: &Change<'_>) -> bool {
        let (current, key) = (CURRENT.get(), change.key.bytes);
        let broadcasts = self.prefixes.note(server, key, current);
        let (taken, has_more) = {
            let mut keys = self.shards[change.shard.0].lock();
            let taken = self.take(&mut keys, key, |interest| interest.db == change.database);
            (taken, !keys.is_empty())
        };
        if !taken.is_empty() {
            let is_meant =
                |client: &Client| client.id != current || !client.has_status(status::NO_LOOP);
            tell(server, &taken, key, is_meant);
        }
        has_more || broadcasts
    }

    /// Takes those interests in a key that are meant.
    fn take(
        &self,
        keys: &mut ByKey,
        key: &[u8],
        mut is_meant: impl FnMut(&Interest) -> bool,
    ) -> Vec<Interest> {
        let Some(interests) = keys.get_mut(key) else {
            return Vec::new();
        };
        let taken: Vec<Interest> = interests
            .extract_if(.., |interest| is_meant(interest))
            .collect();
        if interests.is_empty() {
            keys.remove(key);
            self.keys.fetch_sub(1, Relaxed);
        }
        self.items.fetch_sub(taken.len(), Relaxed);
        taken
    }

    /// Forgets keys while there are more than the setting allows, some of them in each call. Those who read them are told as
    /// if they had changed.
    fn evict(&self, server: &Server) {
        let most = server.settings.int(Setting::TrackingTableMaxKeys) as usize;
        let mut left = TRACKING_EVICTIONS;
        while most > 0 && self.keys() > most && left > 0 {
            // Tables are small, and which key comes first in one is as good as random.
            let at = self.evict_at.fetch_add(1, Relaxed) % self.shards.len();
            let mut keys = self.shards[at].lock();
            let Some(key) = keys.keys().next().cloned() else {
                continue;
            };
            let taken = self.take(&mut keys, &key, |_| true);
            drop(keys);
            tell(server, &taken, &key, |_| true);
            left -= 1;
        }
    }

    /// Databases were emptied or exchanged: nobody's copies are worth anything. No other worker is inside a turn.
    pub(crate) fn flushed(&self, server: &Server) {
        if self.items() > 0 {
            self.shards.iter().for_each(|keys| keys.lock().clear());
            self.keys.store(0, Relaxed);
            self.items.store(0, Relaxed);
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
    pub(crate) fn broadcast(&self, server: &Server) {
        if self.prefixes.any() {
            self.prefixes.tell(server);
        }
    }
}

/// Tells those who had read a key that it has changed, as far as they are meant and still want to know.
fn tell(server: &Server, interests: &[Interest], key: &[u8], is_meant: impl Fn(&Client) -> bool) {
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

/// What a connection can choose, as bits of its status.
const MODES: u32 = status::BROADCAST | status::OPT_IN | status::OPT_OUT | status::NO_LOOP;

impl Session {
    /// Lets the connection track, or track in another way. For broadcasting, the turn is alone.
    pub(crate) fn begin_tracking(
        &mut self,
        server: &Server,
        turn: &Turn<'_>,
        now: i64,
        wish: Wish,
    ) {
        let (client, tracking) = (&self.client, &server.observers.tracking);
        if !client.has_status(status::TRACKING) {
            tracking.clients.fetch_add(1, Relaxed);
        }
        client.set_status(MODES | status::BROKEN_REDIRECT, false);
        client.set_redirect(wish.redirect);
        client.set_status(wish.modes | status::TRACKING, true);
        if wish.modes & status::BROADCAST != 0 {
            server
                .keyspace
                .observe_everywhere(turn, reason::TRACKED, now);
            for prefix in wish.prefixes {
                // Only the empty one may be named again.
                if !self.prefixes.contains(&prefix) {
                    tracking.prefixes.add(&prefix, client);
                    self.prefixes.push(prefix);
                }
            }
            self.prefixes.sort_unstable();
        }
        set_current(client.id);
    }

    /// Ends tracking, if the connection tracks. What it has read is forgotten when it changes.
    pub(crate) fn end_tracking(&mut self, server: &Server) {
        let (client, tracking) = (&self.client, &server.observers.tracking);
        if !client.has_status(status::TRACKING) {
            return;
        }
        for prefix in self.prefixes.drain(..) {
            tracking.prefixes.remove(&prefix, client);
        }
        if !tracking.prefixes.any() {
            server.keyspace.observe_where_asked(reason::TRACKED);
        }
        client.set_status(
            MODES | status::BROKEN_REDIRECT | status::CACHING | status::TRACKING,
            false,
        );
        client.set_redirect(None);
        tracking.clients.fetch_sub(1, Relaxed);
    }
}

/// Remembers the keys that a command is about to read, if the connection tracks what it reads.
pub(crate) fn remember(context: &mut Context<'_>, command: &'static Command, args: &Args<'_>) {
    let status = context.session.client.status.load(Relaxed);
    let is_wanted = match status & (status::OPT_IN | status::OPT_OUT) {
        0 => true,
        status::OPT_IN => status & status::CACHING != 0,
        _ => status & status::CACHING == 0,
    };
    let reads = command.spec.has(flag::READONLY) && !command.spec.has(flag::PUBSUB);
    let tracks = status & (status::TRACKING | status::BROADCAST) == status::TRACKING;
    if !tracks || !is_wanted || !reads {
        return;
    }
    let mut args = *args;
    args.first_key = command.first_key as usize;
    args.key_shift = command.key_shift;
    match command.reach(&args) {
        Reach::Nothing => {}
        Reach::Range => command
            .key_positions(args.len())
            .for_each(|at| remember_key(context, args.key(at))),
        Reach::Found(_) | Reach::Everything => {
            let all: Vec<&[u8]> = args.from(0).collect();
            let found = key_finder::find(command.spec, &all).unwrap_or_default();
            for key in found {
                remember_key(context, args.key(key.at));
            }
        }
    }
    context.server.observers.tracking.evict(context.server);
}

/// What CLIENT CACHING said holds for the next command alone, or for the transaction that it begins; CLIENT says more about it.
pub(crate) fn end_command(session: &Session, command: Option<&Command>) {
    let is_client = command.is_some_and(|command| command.full_name.starts_with("client"));
    if session.transaction.is_none() && !is_client {
        session.client.set_status(status::CACHING, false);
    }
}

fn remember_key(context: &Context<'_>, key: Key<'_>) {
    let (server, store) = (context.server, &context.store);
    let mut shard = store.lock(key);
    shard.observe(key, reason::TRACKED);
    let tracking = &server.observers.tracking;
    let number = server.keyspace.shard_of(key.hash);
    tracking.add(number, store.db, key.bytes, &context.session.client);
}
