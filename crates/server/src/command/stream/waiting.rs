//! XREAD and XREADGROUP that wait for entries.
//!
//! XREAD takes nothing: all that wait for entries after an ID below the new one are served. Those of one
//! group are served in the order in which they came, as long as there are entries.

use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::stream::{Id, ItemBuffer, StreamItems};
use keyspace::{Key, Kind, StreamRef};
use resp::reply::Writer;

use super::super::blocking::Taker;
use super::super::park::{Wait, bytes_of_wait};
use super::super::{Context, Failure, Next};
use super::deliver::{
    From, Reader, begin_stream, begin_streams, deliver, has_behind, leaves_of, write_behind,
};
use super::leaves::lacks;
use crate::config::Settings;
use crate::observe::Observed;
use crate::observe::waits::{Asks, GroupAsks};
use crate::store::Shards;

const KEY_IS_GONE: Failure = Failure::of("UNBLOCKED the stream key no longer exists");
const GROUP_IS_GONE: Failure =
    Failure::of("NOGROUP the consumer group this client was blocked on no longer exists");

pub(super) static TAKER: Taker = Taker {
    kind: Kind::Stream,
    lacks: |_, _, _, _| false,
    has,
    give,
    gone,
    leaves,
};

/// The wait of a connection that reads these streams.
pub(super) fn asks(asked: &[(Key<'_>, From)], most: u64, reader: Option<&Reader<'_>>) -> Asks {
    let after = |&(key, from): &(Key<'_>, From)| match from {
        From::After(id) => (key.bytes.into(), id),
        From::New | From::History(_) => (key.bytes.into(), Id::MAX),
    };
    match reader {
        None => Asks::Entries(asked.iter().map(after).collect(), most),
        Some(reader) => Asks::Group(Box::new(GroupAsks {
            group: reader.group.into(),
            consumer: reader.consumer.into(),
            most,
            no_ack: reader.no_ack,
        })),
    }
}

/// Whether a connection waits for entries of a key for a group. The shard is locked.
pub(super) fn has_line(server: &Observed, db: usize, key: Key<'_>, group: &[u8]) -> bool {
    server.has_wait(db, key, |wait| match &wait.asks {
        Asks::Group(asks) => *asks.group == *group,
        _ => false,
    })
}

/// The ID after which a connection waits for entries of a key.
fn after(asked: &[(Box<[u8]>, Id)], key: Key<'_>) -> Option<Id> {
    let its = asked.iter().filter(|(name, _)| **name == *key.bytes);
    its.map(|&(_, id)| id).min()
}

/// Lets the connection wait for entries, unless there are some by now.
pub(super) fn wait<'k>(
    context: &mut Context<'_>,
    keys: impl Iterator<Item = Key<'k>> + Clone,
    until_ms: Option<i64>,
    asks: Asks,
) -> Result<Option<Next>, Failure> {
    context.check_kept(keys.clone().map(|key| bytes_of_wait(key.bytes)).sum())?;
    let wait = Wait {
        until_ms,
        durable: None,
        repeats: false,
        give_up: |context, _| context.reply.null_array(),
    };
    let (server, db) = (context.server, context.store.db);
    let is_there = |shards: &mut Shards<'_>| {
        keys.clone().any(|key| {
            let is_first = match &asks {
                Asks::Group(asks) => !has_line(server, db, key, &asks.group),
                _ => true,
            };
            is_first && has(shards, key, &asks)
        })
    };
    Ok(context.park_at_keys(keys.clone(), wait, asks.clone(), is_there))
}

/// Whether a stream has entries that are asked for, or something that ends the wait.
fn has(shards: &mut Shards<'_>, key: Key<'_>, asks: &Asks) -> bool {
    let mut shard = shards.of(key);
    let found = match shard.find_items::<StreamItems>(key) {
        Ok(Some(found)) => found,
        Ok(None) => return matches!(asks, Asks::Group(_)),
        Err(_) => return true,
    };
    let stream = found.stream();
    let after = match asks {
        Asks::Entries(asked, _) => match after(asked, key) {
            Some(id) => id,
            None => return false,
        },
        Asks::Group(asks) => match stream.group(&asks.group, &mut ItemBuffer::default()) {
            Some(group) => group.last,
            None => return true,
        },
        _ => return false,
    };
    // The command that is asked again finds the leaf.
    lacks(stream, last_leaf) || has_behind(stream, after)
}

fn last_leaf(stream: StreamRef<'_>) -> Vec<Base> {
    let len = stream.items().len();
    stream.items().cold_between(len.saturating_sub(1), len)
}

fn gone(asks: &Asks) -> Option<Failure> {
    matches!(asks, Asks::Group(_)).then_some(KEY_IS_GONE)
}

fn reader(asks: &GroupAsks) -> Reader<'_> {
    Reader {
        group: &asks.group,
        consumer: &asks.consumer,
        no_ack: asks.no_ack,
        now: sys::clock::realtime_ms().max(0) as u64,
    }
}

fn leaves(tree: &Collection, asks: &Asks, _: &Settings) -> Vec<Base> {
    let Some(stream) = StreamRef::in_tree(tree) else {
        return Vec::new();
    };
    match asks {
        Asks::Entries(asked, most) => {
            let ids = asked.iter().map(|&(_, id)| id);
            let from = From::After(ids.min().unwrap_or(Id::MAX));
            leaves_of(stream, from, *most, None)
        }
        Asks::Group(asks) => leaves_of(stream, From::New, asks.most, Some(&reader(asks))),
        _ => Vec::new(),
    }
}

/// Answers with the entries that are asked for, which are there.
fn give(
    shards: &mut Shards<'_>,
    key: Key<'_>,
    asks: &Asks,
    _: &Settings,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    let mut shard = shards.of(key);
    let Some(found) = shard.find_items::<StreamItems>(key)? else {
        return Ok(());
    };
    match asks {
        Asks::Entries(asked, most) => {
            begin_streams(writer, 1);
            begin_stream(writer, key.bytes);
            let after = after(asked, key).unwrap_or(Id::MAX);
            write_behind(found.stream(), after, *most, writer);
        }
        Asks::Group(asks) => {
            let group = found
                .stream()
                .group(&asks.group, &mut ItemBuffer::default());
            let group = group.ok_or(GROUP_IS_GONE)?;
            begin_streams(writer, 1);
            begin_stream(writer, key.bytes);
            deliver(found, &reader(asks), group, asks.most, writer)?;
        }
        _ => {}
    }
    Ok(())
}
