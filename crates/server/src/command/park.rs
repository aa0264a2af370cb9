//! Blocking commands: they wait for a value in a key, for the log, or for their timeout.
//!
//! A handler that finds nothing to answer *parks* its connection ([`Context::park`]). Later requests of the
//! connection wait too, its input is not read, and the end of the peer is noticed at once. The wait ends
//!
//! - when the key has a value. After the command that wrote it, or after its whole transaction, the worker of
//!   that command serves the queue of the key ([`Waiters`](crate::observe::waits::Waiters)): it takes
//!   elements for the first waiting connection, until none are left or no connection waits. The connection's
//!   worker gets the finished reply.
//! - when the log is durable up to the wanted place, which the log reports to the worker;
//! - when its timeout has passed, by the worker's list of deadlines, to the millisecond;
//! - by CLIENT UNBLOCK, or with the connection.
//!
//! Each of them first claims the wait ([`Client::claim_wait`](crate::shared::clients::Client::claim_wait)),
//! which succeeds once.
//!
//! In a transaction nothing waits ([`Context::may_wait`]): the command answers as after its timeout.
//!
//! Not here: connections held back by CLIENT PAUSE or for publishing too fast. These end for all at once
//! ([`crate::net::worker`]).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ferrite_log::Lsn;
use keyspace::reason;
use resp::{extended, number};

use super::{Context, Next, blocking};
use crate::names::ByHash;
use crate::observe::waits::{Asks, Key, KeyWait, ready};
use crate::request::{Args, Failure};
use crate::server::Server;
use crate::shared::Outcome;
use crate::store::{Shards, Store};

/// Bytes of a wait in the queue of a key, without the key.
const WAITED_BYTES: usize = 512;

/// Bytes that are kept for a connection while it waits for a key.
pub(crate) fn bytes_of_wait(key: &[u8]) -> usize {
    key.len() + WAITED_BYTES
}

/// Wait of a parked connection.
pub(crate) struct Wait {
    /// Deadline (Unix, ms), if any.
    pub(crate) until_ms: Option<i64>,
    /// Place in the log up to which all has to be durable, if it waits for that. Such a wait is not served;
    /// it gives up when the log is durable.
    pub(crate) durable: Option<Lsn>,
    /// Its command runs again when the wait is over, instead of an answer.
    pub(crate) repeats: bool,
    /// Answers after the deadline.
    pub(crate) give_up: fn(&mut Context<'_>, &Wait),
}

/// State of a parked connection at its worker.
pub(crate) struct Parked {
    pub(crate) number: u64,
    pub(crate) wait: Wait,
    /// Keys of the database in whose queues it waits.
    lines: ByHash<Key, ()>,
    db: usize,
    key_wait: Option<Arc<KeyWait>>,
    /// CLIENT REPLY has switched its answer off.
    is_silent: bool,
    /// End of the wait.
    pub(crate) outcome: Option<Outcome>,
}

impl Parked {
    /// Whether it waits for other clients: not for the disk, nor for its own turn.
    pub(crate) fn is_for_others(&self) -> bool {
        self.wait.durable.is_none() && !self.wait.repeats
    }

    /// Leaves all queues.
    pub(crate) fn leave(&self, server: &Server) {
        if let Some(wait) = &self.key_wait {
            for (key, ()) in self.lines.iter() {
                let hash = server.keyspace.hash(key);
                let (shard, key) = (
                    server.keyspace.shard_of(hash),
                    keyspace::Key { bytes: key, hash },
                );
                server.observers.waiters.leave(shard, self.db, key, wait);
                wait.client.free(bytes_of_wait(key.bytes));
            }
        }
    }
}

impl Context<'_> {
    /// Whether a command may wait. If not, it answers as after its timeout.
    pub(crate) fn may_wait(&self) -> bool {
        !self.in_transaction
    }

    /// Lets the connection wait. The handler returns without an answer; nothing else may have been answered.
    pub(crate) fn park(&mut self, wait: Wait) -> Next {
        let number = self.server.waits.next();
        self.session.client.wait.store(number, Relaxed);
        self.park_as(number, wait, None, ByHash::default());
        Next::Wait
    }

    fn park_as(
        &mut self,
        number: u64,
        wait: Wait,
        key_wait: Option<Arc<KeyWait>>,
        lines: ByHash<Key, ()>,
    ) {
        self.extras.parked = Some(Box::new(Parked {
            number,
            wait,
            lines,
            db: self.store.db,
            key_wait,
            is_silent: self.session.reply_mode.is_silent(),
            outcome: None,
        }));
    }

    /// Lets the connection wait until one of the keys of a command has a value, unless `is_there` finds one.
    /// The shards of the keys are locked meanwhile, so that no write is missed.
    pub(crate) fn park_at_keys<'k>(
        &mut self,
        keys: impl Iterator<Item = keyspace::Key<'k>> + Clone,
        wait: Wait,
        asks: Asks,
        is_there: impl Fn(&mut Shards<'_>) -> bool,
    ) -> Option<Next> {
        let number = self.server.waits.next();
        let key_wait = Arc::new(KeyWait {
            number,
            client: Arc::clone(&self.session.client),
            protocol: self.reply.protocol(),
            asks,
        });
        let (server, db) = (self.server, self.store.db);
        let mut shards = self.store.lock_keys(keys.clone());
        if is_there(&mut shards) {
            return None;
        }
        self.session.client.wait.store(number, Relaxed);
        let mut lines: ByHash<Key, ()> = ByHash::default();
        for key in keys {
            if lines.contains(key.hash, key.bytes) {
                continue;
            }
            shards.of(key).observe(key, reason::AWAITED);
            let shard = server.keyspace.shard_of(key.hash);
            server.observers.waiters.join(shard, db, key, &key_wait);
            lines.insert(key.hash, key.bytes.into(), ());
            key_wait.client.keep(bytes_of_wait(key.bytes));
        }
        drop(shards);
        self.park_as(number, wait, Some(key_wait), lines);
        Some(Next::Wait)
    }
}

/// Answers for a wait that has ended.
pub(crate) fn go_on(context: &mut Context<'_>, parked: Parked) {
    let before = context.reply.mark();
    parked.leave(context.server);
    match parked.outcome {
        // Its command runs again and finds the result.
        _ if parked.wait.repeats => {}
        Some(Outcome::Reply(bytes)) => context.reply.encoded(&bytes),
        Some(Outcome::Failed(failure)) => context.refuse(&failure),
        Some(Outcome::Error) => {
            context.refuse(&Failure::of(
                "UNBLOCKED client unblocked via CLIENT UNBLOCK",
            ));
        }
        Some(Outcome::TimeIsUp) | None => (parked.wait.give_up)(context, &parked.wait),
    }
    if parked.is_silent {
        context.reply.take_back(before);
    }
}

/// Result of a take for a waiting connection.
pub(crate) enum Taken {
    /// It was taken; this is the reply, in the protocol of the connection.
    Reply(Vec<u8>),
    /// It cannot be taken, and the connection waits no more.
    Failed(Failure),
    /// The key has nothing of the wanted kind.
    Nothing,
    /// The wait was claimed before.
    Late,
}

/// Serves the queues of the keys that a command, or a transaction, has written, or that have expired. No
/// shard is locked.
#[cold]
pub(crate) fn serve(store: &Store<'_>, server: &'static Server) {
    while ready::any() {
        for (db, key) in ready::take() {
            let hash = server.keyspace.hash(&key);
            let shard = server.keyspace.shard_of(hash);
            let place = keyspace::Key { bytes: &key, hash };
            let mut last = 0;
            while let Some(wait) = server.observers.waiters.behind(shard, db, place, last) {
                match blocking::take_for(store, server, (db, place), &wait) {
                    Taken::Reply(bytes) => {
                        server.go_on(&wait.client, wait.number, Outcome::Reply(bytes));
                    }
                    Taken::Failed(failure) => {
                        server.go_on(&wait.client, wait.number, Outcome::Failed(failure));
                    }
                    Taken::Late => {}
                    // A later wait may want another kind.
                    Taken::Nothing
                        if store.contains_in(db, place)
                            || server.observers.waiters.hear_removal(shard, place) =>
                    {
                        last = wait.number;
                    }
                    Taken::Nothing => break,
                }
            }
        }
    }
}

/// Unit of a timeout.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
}

/// Deadline from a command's timeout (Unix, ms); a timeout of 0 means none.
pub(crate) fn deadline(
    now_ms: i64,
    args: &Args<'_>,
    at: usize,
    unit: Unit,
) -> Result<Option<i64>, Failure> {
    const OUT_OF_RANGE: Failure = Failure::of("ERR timeout is out of range");
    let timeout_ms = match unit {
        Unit::Milliseconds => number::parse_i64(args.get(at))
            .ok_or(Failure::of("ERR timeout is not an integer or out of range"))?,
        Unit::Seconds => {
            let text = args.get(at);
            let ms = number::parse_f64(text).map(|seconds| (seconds * 1000.0).ceil() as i64);
            // What is no double is beyond any time, or nearly 0: in seconds as in milliseconds.
            let ms = ms.or_else(|| extended::parse(text).map(|seconds| seconds.ceil()));
            ms.ok_or(Failure::of("ERR timeout is not a float or out of range"))?
        }
    };
    match timeout_ms {
        ..0 => Err(Failure::of("ERR timeout is negative")),
        0 => Ok(None),
        i64::MAX => Err(OUT_OF_RANGE),
        _ => now_ms.checked_add(timeout_ms).map(Some).ok_or(OUT_OF_RANGE),
    }
}
