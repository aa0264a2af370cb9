//! Commands that wait: for something to be in a key, or just for their time.
//!
//! A handler that finds nothing to answer *parks* its connection ([`Context::park`]). The requests behind it
//! wait with it, nothing more is read, and the peer's end is heard of at once. The wait ends
//!
//! - when something is there. For a key, that is after the command that put it there, or after its whole
//!   transaction: the worker that ran it looks at the line of the key
//!   ([`Waiters`](crate::observe::waits::Waiters)), and takes what there is for the first who still waits,
//!   until nothing is left or nobody waits. What was taken travels to the connection's worker as a finished
//!   reply.
//! - when the log has on the disk what it waits for, of which the log tells the worker;
//! - when its time is up, by the worker's clock of deadlines, to the millisecond;
//! - by CLIENT UNBLOCK, or with the connection.
//!
//! Each of them first claims the wait ([`Client::claim_wait`](crate::shared::clients::Client::claim_wait)),
//! which succeeds once.
//!
//! What may not wait (a transaction) is told so by [`Context::may_wait`], and answers as if its time were up.
//!
//! What does not live here: who is held back by CLIENT PAUSE or for publishing too fast; that ends for all at
//! once ([`crate::net::worker`]).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ferrite_log::Lsn;
use keyspace::reason;
use resp::number;

use super::{Context, Next, blocking};
use crate::names::ByHash;
use crate::observe::waits::{Asks, Key, KeyWait, ready};
use crate::request::{Args, Failure};
use crate::server::Server;
use crate::shared::Outcome;
use crate::store::Shards;

/// Bytes that a place in the line of a key takes, beside the key.
const WAITED_BYTES: usize = 512;

/// What a parked connection waits for, and what becomes of it.
pub(crate) struct Wait {
    /// When its time is up (Unix, ms), if ever.
    pub(crate) until_ms: Option<i64>,
    /// Where in the log everything below has to be durable, if that is what it waits for. Then nobody serves
    /// it: it gives up when that is so.
    pub(crate) durable: Option<Lsn>,
    /// Its command runs again when the wait is over, instead of an answer.
    pub(crate) repeats: bool,
    /// Answers that the time is up.
    pub(crate) give_up: fn(&mut Context<'_>, &Wait),
}

/// What a parked connection's worker knows of it.
pub(crate) struct Parked {
    pub(crate) number: u64,
    pub(crate) wait: Wait,
    /// The lines it stands in: of these keys of a database.
    lines: ByHash<Key, ()>,
    db: usize,
    key_wait: Option<Arc<KeyWait>>,
    /// CLIENT REPLY said that it is not to be answered.
    is_silent: bool,
    /// What became of it.
    pub(crate) outcome: Option<Outcome>,
}

impl Parked {
    /// Whether it waits for what others do: not for the disk, nor for its own turn.
    pub(crate) fn is_for_others(&self) -> bool {
        self.wait.durable.is_none() && !self.wait.repeats
    }

    /// Leaves all lines.
    pub(crate) fn leave(&self, server: &Server) {
        if let Some(wait) = &self.key_wait {
            for (key, ()) in self.lines.iter() {
                let hash = server.keyspace.hash(key);
                let (shard, key) = (
                    server.keyspace.shard_of(hash),
                    keyspace::Key { bytes: key, hash },
                );
                server.observers.waiters.leave(shard, self.db, key, wait);
                wait.client.free(key.bytes.len() + WAITED_BYTES);
            }
        }
    }
}

impl Context<'_> {
    /// Whether a command may wait. Where not, it answers as if its time were up.
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

    /// Lets the connection wait until there is something in one of the keys of a command, unless `is_there`
    /// says that there is already. The shards of the keys are locked meanwhile, so that nothing comes unseen.
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
            key_wait.client.keep(key.bytes.len() + WAITED_BYTES);
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
        // Its command comes again, and finds out what has become of what it waited for.
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

/// What became of a look at a key for a connection that waits for it.
pub(crate) enum Taken {
    /// It was taken; this is the reply, in the protocol of the connection.
    Reply(Vec<u8>),
    /// It cannot be taken, and the connection waits no more.
    Failed(Failure),
    /// There is nothing that it asks for.
    Nothing,
    /// The connection does not wait any more.
    Late,
}

/// Takes what there is in a key of a database for a connection that waits for it: looks under the shard's
/// lock whether there is something, then claims the wait, then takes it.
fn take(context: &Context<'_>, (db, key): (usize, keyspace::Key<'_>), wait: &KeyWait) -> Taken {
    blocking::take_for(&context.store, context.server, (db, key), wait)
}

/// Looks at the lines of the keys that a command, or a transaction, has written. No shard is locked.
#[cold]
pub(crate) fn serve(context: &Context<'_>) {
    let server = context.server;
    while ready::any() {
        for (db, key) in ready::take() {
            let hash = server.keyspace.hash(&key);
            let shard = server.keyspace.shard_of(hash);
            let place = keyspace::Key { bytes: &key, hash };
            let mut last = 0;
            while let Some(wait) = server.observers.waiters.behind(shard, db, place, last) {
                match take(context, (db, place), &wait) {
                    Taken::Reply(bytes) => {
                        server.go_on(&wait.client, wait.number, Outcome::Reply(bytes));
                    }
                    Taken::Failed(failure) => {
                        server.go_on(&wait.client, wait.number, Outcome::Failed(failure));
                    }
                    Taken::Late => {}
                    // Somebody behind may ask for something else.
                    Taken::Nothing if context.store.contains_in(db, place) => last = wait.number,
                    Taken::Nothing => break,
                }
            }
        }
    }
}

/// In what a command counts its timeout.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
}

/// When the time is up that a command gives itself (Unix, ms); 0 means never.
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
            let seconds = number::parse_f64(args.get(at))
                .ok_or(Failure::of("ERR timeout is not a float or out of range"))?;
            let ms = (seconds * 1000.0).ceil();
            if ms >= i64::MAX as f64 {
                return Err(OUT_OF_RANGE);
            }
            ms as i64
        }
    };
    match timeout_ms {
        ..0 => Err(Failure::of("ERR timeout is negative")),
        0 => Ok(None),
        _ => now_ms.checked_add(timeout_ms).map(Some).ok_or(OUT_OF_RANGE),
    }
}
