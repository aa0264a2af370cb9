//! Commands that wait for elements: BLPOP BRPOP BLMPOP BLMOVE BRPOPLPUSH. How a wait goes is in
//! [`super::super::park`].

use keyspace::collection::tree::End;
use keyspace::{Key, Kind};
use resp::reply::{Protocol, Writer};

use super::super::park::{self, Taken, Unit, Wait};
use super::super::{Args, Context, Failure, Handled, Next};
use super::move_one::move_one;
use super::parse_end;
use super::pop::{Several, take, take_named};
use crate::config::{Packed, Settings};
use crate::observe::waits::{Asks, KeyWait};
use crate::server::Server;
use crate::store::{Shards, Store};

/// How often a value is read back that others let leave memory again.
const WARM_TRIES: usize = 3;

/// The first of some keys that has elements, if no other connection waits for them.
///
/// # Errors
/// A key before it is of another kind.
fn ready<'k>(
    server: &'static Server,
    db: usize,
    shards: &mut Shards<'_>,
    mut keys: impl Iterator<Item = Key<'k>>,
) -> Result<Option<Key<'k>>, Failure> {
    keys.find_map(|key| match shards.of(key).find_list(key) {
        Ok(None) => None,
        // Who came before is served before.
        Ok(Some(_)) => server.is_line_empty(db, key, Kind::List).then_some(Ok(key)),
        Err(failure) => Some(Err(failure)),
    })
    .transpose()
}

/// Does what is asked for with the first of some keys that has elements, or waits for one.
fn take_or_wait<'k>(
    context: &mut Context<'_>,
    keys: impl Iterator<Item = Key<'k>> + Clone,
    (until_ms, asks): (Option<i64>, Asks),
    locked: impl Iterator<Item = Key<'k>> + Clone,
) -> Handled {
    let (server, db) = (context.server, context.store.db);
    let packed = Packed::list(&server.settings);
    loop {
        let mut shards = context.store.lock_keys(locked.clone());
        if let Some(key) = ready(server, db, &mut shards, keys.clone())? {
            give(&mut shards, key, &asks, packed, &mut context.reply)?;
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
        let wait = Wait {
            until_ms,
            durable: None,
            repeats: false,
            give_up: |context, _| context.reply.null_array(),
        };
        let is_there = |shards: &mut Shards<'_>| {
            let ready = ready(server, db, shards, keys.clone());
            !matches!(ready, Ok(None))
        };
        if let Some(waits) = context.park_at_keys(keys.clone(), wait, asks.clone(), is_there) {
            return Ok(waits);
        }
    }
}

/// Does what is asked for with a list that has elements.
fn give(
    shards: &mut Shards<'_>,
    key: Key<'_>,
    asks: &Asks,
    packed: Packed,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    if let Asks::Move(ends, to) = asks {
        let to = Key {
            bytes: to,
            hash: shards.hash_of(to),
        };
        return move_one(shards, [key, to], *ends, packed, writer).map(drop);
    }
    let mut shard = shards.of(key);
    let Some(list) = shard.find_list_to_change(key)? else {
        return Ok(());
    };
    match *asks {
        Asks::Elements(end, most) => take_named(list, (key.bytes, (end, most)), packed, writer),
        Asks::Element(end) => {
            writer.array(2);
            writer.bulk(key.bytes);
            take(list, (end, 1), packed, writer);
        }
        Asks::Move(..) | Asks::Value => {}
    }
    Ok(())
}

/// Takes elements of a key of a database for a connection that waits for them.
pub(in crate::command) fn take_for(
    store: &Store<'_>,
    settings: &Settings,
    (db, key): (usize, Key<'_>),
    wait: &KeyWait,
) -> Taken {
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
        if !matches!(shards.of(key).find_list(key), Ok(Some(_))) {
            return Taken::Nothing;
        }
        let is_cold = |key| {
            let mut shard = shards.of(key);
            shard.find(key).is_some_and(|entry| entry.cold().is_some())
        };
        if ![key, to].into_iter().any(is_cold) {
            break shards;
        }
        drop(shards);
        tries += 1;
        let read = [key, to]
            .into_iter()
            .try_for_each(|key| store.bring_back(db, key));
        if let Err(failure) = read {
            return match wait.claim() {
                true => Taken::Failed(failure),
                false => Taken::Late,
            };
        }
        if tries > WARM_TRIES {
            return Taken::Nothing;
        }
    };
    if !wait.claim() {
        return Taken::Late;
    }
    let mut reply = Vec::new();
    // It looks the same in all protocols.
    let writer = &mut Writer::new(&mut reply, Protocol::Resp2);
    match give(&mut shards, key, &wait.asks, Packed::list(settings), writer) {
        Ok(()) => Taken::Reply(reply),
        Err(failure) => Taken::Failed(failure),
    }
}

fn pop(context: &mut Context<'_>, args: &Args<'_>, end: End) -> Handled {
    let last = args.len() - 1;
    let until_ms = park::deadline(context.store.now, args, last, Unit::Seconds)?;
    let keys = (1..last).map(|at| args.key(at));
    let asks = Asks::Element(end);
    take_or_wait(context, keys.clone(), (until_ms, asks), keys)
}

/// `BLPOP key [key ...] timeout`
pub(super) fn blpop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    pop(context, args, End::Front)
}

/// `BRPOP key [key ...] timeout`
pub(super) fn brpop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    pop(context, args, End::Back)
}

/// `BLMPOP timeout numkeys key [key ...] LEFT|RIGHT [COUNT count]`
pub(super) fn blmpop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let Several { keys, end, most } = Several::parse(args, 2)?;
    let until_ms = park::deadline(context.store.now, args, 1, Unit::Seconds)?;
    let keys = keys.map(|at| args.key(at));
    let asks = Asks::Elements(end, most);
    take_or_wait(context, keys.clone(), (until_ms, asks), keys)
}

fn move_or_wait(
    context: &mut Context<'_>,
    args: &Args<'_>,
    ends: [End; 2],
    timeout_at: usize,
) -> Handled {
    let until_ms = park::deadline(context.store.now, args, timeout_at, Unit::Seconds)?;
    let (from, to) = (args.key(1), args.key(2));
    let asks = Asks::Move(ends, to.bytes.into());
    let (keys, locked) = (std::iter::once(from), [from, to].into_iter());
    take_or_wait(context, keys, (until_ms, asks), locked)
}

/// `BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout`
pub(super) fn blmove(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let ends = [parse_end(args, 3)?, parse_end(args, 4)?];
    move_or_wait(context, args, ends, 5)
}

/// `BRPOPLPUSH source destination timeout`
pub(super) fn brpoplpush(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    move_or_wait(context, args, [End::Back, End::Front], 3)
}
