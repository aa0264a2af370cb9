//! Common part of commands that wait for elements of lists or members of sorted sets. Waits are in
//! [`super::park`].

use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::{Key, Kind};
use resp::reply::Writer;

use super::park::{Taken, Wait, bytes_of_wait};
use super::prepare::leaves::each_once;
use super::{Context, Failure, Handled, Next, failure, table};
use crate::config::Settings;
use crate::observe::waits::{Asks, KeyWait};
use crate::server::Server;
use crate::store::{Shards, Store, Taking};

/// How often a value is read back that others let leave memory again.
const WARM_TRIES: usize = 3;

/// The operations of blocking commands on values of one kind. The row of a blocking command names its
/// `Taker`.
pub(crate) struct Taker {
    pub(crate) kind: Kind,
    /// Whether leaves are cold of what is asked for.
    pub(crate) lacks: fn(&mut Shards<'_>, Key<'_>, &Asks, &Settings) -> bool,
    /// Whether a value of this kind has the items that are asked for, or something that ends the wait.
    pub(crate) has: fn(&mut Shards<'_>, Key<'_>, &Asks) -> bool,
    /// Does what is asked for.
    pub(crate) give: Give,
    /// The end of a wait when the key has no value of this kind any more; without one it goes on.
    pub(crate) gone: fn(&Asks) -> Option<Failure>,
    /// The records of the leaves that are needed of a large value for what is asked for, and that are in the
    /// log alone.
    pub(crate) leaves: fn(&Collection, &Asks, &Settings) -> Vec<Base>,
}

/// Does what is asked for with a key that has a value of the right kind.
type Give = fn(&mut Shards<'_>, Key<'_>, &Asks, &Settings, &mut Writer<'_>) -> Result<(), Failure>;

/// The first of some keys that has a value of a kind, if no other connection waits for that.
///
/// # Errors
/// A key before it is of another kind.
fn ready<'k>(
    server: &'static Server,
    db: usize,
    shards: &mut Shards<'_>,
    (mut keys, kind): (impl Iterator<Item = Key<'k>>, Kind),
) -> Result<Option<Key<'k>>, Failure> {
    keys.find_map(|key| match kind_of(shards, key)? {
        // The oldest wait is served first.
        own if own == kind => server.is_line_empty(db, key, kind).then_some(Ok(key)),
        _ => Some(Err(failure::WRONG_TYPE)),
    })
    .transpose()
}

fn kind_of(shards: &mut Shards<'_>, key: Key<'_>) -> Option<Kind> {
    shards.of(key).find(key).map(|entry| entry.kind())
}

/// Does what is asked for with the first of some keys that has a value, or waits for one.
pub(super) fn take_or_wait<'k>(
    context: &mut Context<'_>,
    keys: impl Iterator<Item = Key<'k>> + Clone,
    (until_ms, asks): (Option<i64>, Asks),
    locked: impl Iterator<Item = Key<'k>> + Clone,
) -> Handled {
    let (server, db, kind) = (context.server, context.store.db, asks.kind());
    let taking = match asks {
        Asks::Elements(end, most) => Some(Taking::Elements(end, most)),
        Asks::Members(end, most) => Some(Taking::Scored(end, most)),
        _ => None,
    };
    if let Some(taking) = taking
        && let Some(next) = context.foresee_taken(keys.clone(), taking)?
    {
        return Ok(next);
    }
    loop {
        let mut shards = context.store.lock_keys(locked.clone());
        if let Some(key) = ready(server, db, &mut shards, (keys.clone(), kind))? {
            let settings = &server.settings;
            let taker = table().taker(kind);
            if (taker.lacks)(&mut shards, key, &asks, settings) {
                return Ok(Next::Retry);
            }
            (taker.give)(&mut shards, key, &asks, settings, &mut context.reply)?;
            return Ok(Next::Done);
        }
        drop(shards);
        if !context.may_wait() {
            match asks {
                Asks::Move(..) => context.reply.null(),
                _ => context.reply.null_array(),
            }
            return Ok(Next::Done);
        }
        context.check_kept(keys.clone().map(|key| bytes_of_wait(key.bytes)).sum())?;
        let wait = Wait {
            until_ms,
            durable: None,
            repeats: false,
            give_up: |context, _| context.reply.null_array(),
        };
        let is_there = |shards: &mut Shards<'_>| {
            let ready = ready(server, db, shards, (keys.clone(), kind));
            !matches!(ready, Ok(None))
        };
        if let Some(waits) = context.park_at_keys(keys.clone(), wait, asks.clone(), is_there) {
            return Ok(waits);
        }
    }
}

/// Takes what a connection waits for in a key of a database.
pub(super) fn take_for(
    store: &Store<'_>,
    server: &'static Server,
    (db, key): (usize, Key<'_>),
    wait: &KeyWait,
) -> Taken {
    let taker = table().taker(wait.asks.kind());
    let to = match &wait.asks {
        Asks::Move(_, to) => &to[..],
        _ => key.bytes,
    };
    let to = Key {
        bytes: to,
        hash: store.keyspace.hash(to),
    };
    let mut tries = 0;
    let mut shards = loop {
        let mut shards = store.lock_keys_in(db, [key, to].into_iter());
        if kind_of(&mut shards, key) != Some(taker.kind) {
            return match (taker.gone)(&wait.asks) {
                None => Taken::Nothing,
                Some(_) if !wait.claim() => Taken::Late,
                Some(failure) => Taken::Failed(failure),
            };
        }
        let needed = |tree: &Collection| (taker.leaves)(tree, &wait.asks, &server.settings);
        if ![key, to]
            .iter()
            .any(|&key| is_cold(&mut shards, key, needed))
        {
            break shards;
        }
        drop(shards);
        tries += 1;
        let mut keys = [key, to].into_iter();
        if let Err(failure) = keys.try_for_each(|key| bring_back(store, server, (db, key), needed))
        {
            return match wait.claim() {
                true => Taken::Failed(failure),
                false => Taken::Late,
            };
        }
        if tries > WARM_TRIES {
            return Taken::Nothing;
        }
    };
    if !(taker.has)(&mut shards, key, &wait.asks) {
        return Taken::Nothing;
    }
    if !wait.claim() {
        return Taken::Late;
    }
    let mut reply = Vec::new();
    let writer = &mut Writer::new(&mut reply, wait.protocol);
    match (taker.give)(&mut shards, key, &wait.asks, &server.settings, writer) {
        Ok(()) => Taken::Reply(reply),
        Err(failure) => Taken::Failed(failure),
    }
}

/// Whether a needed part of the value of a key is in the log alone.
fn is_cold(
    shards: &mut Shards<'_>,
    key: Key<'_>,
    needed: impl Fn(&Collection) -> Vec<Base>,
) -> bool {
    let mut shard = shards.of(key);
    let lacks = |tree: &Collection| tree.cold_leaves() > 0 && !needed(tree).is_empty();
    shard
        .find(key)
        .is_some_and(|entry| entry.cold().is_some() || entry.tree().is_some_and(lacks))
}

/// Brings the needed part of the value of a key back into memory.
///
/// # Errors
/// It cannot be read, or there can be no room for it.
fn bring_back(
    store: &Store<'_>,
    server: &'static Server,
    (db, key): (usize, Key<'_>),
    needed: impl Fn(&Collection) -> Vec<Base>,
) -> Result<(), Failure> {
    store.bring_back(db, key)?;
    let bytes_of = |tree: &Collection| -> usize {
        let records = each_once(needed(tree)).into_iter();
        records.map(|base| base.share as usize).sum()
    };
    match store.with_cold_tree(db, key, bytes_of) {
        None => Ok(()),
        Some(bytes) if bytes > server.most_held() => Err(failure::OUT_OF_MEMORY),
        Some(_) => store.bring_leaves_back(db, key, |tree| each_once(needed(tree))),
    }
}
