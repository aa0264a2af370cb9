//! Whether keys are there, what they are, and their removal.
//!
//! A command on several keys locks all of their shards before it looks at the first, so that it sees, and
//! leaves, one state of all of them.

use keyspace::{Key, Kind};

use crate::command::multi_read::{Wanted, multi_read};
use crate::command::{Args, Context, Handled, Next};
use crate::observe::notify::Event;
use crate::store::Shard;

/// The name of a type, as TYPE tells it and SCAN takes it.
pub(crate) fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::String => "string",
        Kind::List => "list",
        Kind::Hash => "hash",
        Kind::Set => "set",
        Kind::SortedSet => "zset",
        Kind::Stream => "stream",
    }
}

/// Counts the keys for which `holds` is true, which are all arguments; they are locked together. A single
/// key, which is nearly every call, costs one lock and no set of shards.
#[inline]
fn count(
    context: &mut Context<'_>,
    args: &Args<'_>,
    mut holds: impl FnMut(&mut Shard<'_>, Key<'_>) -> bool,
) {
    let count = if args.len() == 2 {
        let key = args.key(1);
        i64::from(holds(&mut context.store.lock(key), key))
    } else {
        let mut shards = context.store.lock_keys(args.keys());
        context
            .store
            .ahead(args)
            .map(|key| i64::from(holds(&mut shards.of(key), key)))
            .sum()
    };
    context.reply.integer(count);
}

pub(super) fn del(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    count(context, args, |shard, key| {
        let removed = shard.remove(key);
        if removed {
            shard.tell(Event::DEL, key);
        }
        removed
    });
    Ok(Next::Done)
}

pub(super) fn exists(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if let Some(later) = multi_read(context, args, Wanted::Count { touches: false }) {
        return Ok(later);
    }
    count(context, args, |shard, key| shard.peek(key).is_some());
    Ok(Next::Done)
}

pub(super) fn type_of(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let name = shard
        .peek(key)
        .map_or("none", |entry| type_name(entry.kind()));
    context.reply.simple(name);
    Ok(Next::Done)
}

pub(super) fn touch(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if let Some(later) = multi_read(context, args, Wanted::Count { touches: true }) {
        return Ok(later);
    }
    count(context, args, |shard, key| match shard.peek(key) {
        Some(mut entry) => {
            // This is asked for, so it counts even if CLIENT NO-TOUCH is on.
            entry.touch();
            true
        }
        None => false,
    });
    Ok(Next::Done)
}
