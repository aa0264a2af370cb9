//! Commands that remove members by their place: ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREMRANGEBYLEX, ZPOPMIN
//! ZPOPMAX ZMPOP.

use keyspace::SortedRef;
use keyspace::collection::sorted::score_of;
use resp::reply::Protocol;

use super::super::items::cells::{write_cell, write_value};
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::bounds::{Lex, Ranks, Scores};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::request::Reply;
use crate::store::{SortedSet, SortedSetEdit};

const NOT_POSITIVE: Failure = Failure::of("ERR value is out of range, must be positive");
const NO_KEYS: Failure = Failure::of("ERR numkeys should be greater than 0");
const NO_COUNT: Failure = Failure::of("ERR count should be greater than 0");

/// Removes the members of some ranks.
fn take_ranks(edit: &mut SortedSetEdit<'_, '_>, from: u64, to: u64) {
    let mut buffer = Vec::new();
    for _ in from..to {
        let item = edit.items().at(from).expect("the rank is below the length");
        let (item, score) = (item.moved_to(&mut buffer), score_of(&item));
        edit.take(item.name, score);
    }
}

fn remove(
    context: &mut Context<'_>,
    args: &Args<'_>,
    event: Event,
    ranks: impl Fn(SortedRef<'_>) -> (u64, u64),
) -> Handled {
    let (key, packed) = (args.key(1), Packed::sorted_set(&context.server.settings));
    let mut shard = context.store.lock(key);
    let Some(set) = shard.find_sorted_set(key)? else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    let (from, to) = ranks(set.sorted());
    match to - from == set.sorted().len() {
        true => set.take_all(event),
        false => set.edit(event, packed, |edit| take_ranks(edit, from, to)),
    }
    context.reply.integer((to - from) as i64);
    Ok(Next::Done)
}

/// `ZREMRANGEBYRANK key start stop`
pub(super) fn zremrangebyrank(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let range = Ranks::parse(args, 2, 3)?;
    let ranks = |members: SortedRef<'_>| range.ranks(members.len());
    remove(context, args, Event::ZREMRANGEBYRANK, ranks)
}

/// `ZREMRANGEBYSCORE key min max`
pub(super) fn zremrangebyscore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let range = Scores::parse(args, 2, 3)?;
    let ranks = |members: SortedRef<'_>| range.ranks(members);
    remove(context, args, Event::ZREMRANGEBYSCORE, ranks)
}

/// `ZREMRANGEBYLEX key min max`
pub(super) fn zremrangebylex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let range = Lex::parse(args, 2, 3)?;
    let ranks = |members: SortedRef<'_>| range.ranks(members);
    remove(context, args, Event::ZREMRANGEBYLEX, ranks)
}

/// From which end members are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pop {
    Min,
    Max,
}

/// Takes members from an end, and answers with them and their scores: as pairs, if `nests`.
fn pop(
    reply: &mut Reply<'_>,
    set: SortedSet<'_, '_>,
    pop: Pop,
    count: u64,
    packed: Packed,
    nests: bool,
) {
    let event = match pop {
        Pop::Min => Event::ZPOPMIN,
        Pop::Max => Event::ZPOPMAX,
    };
    let mut buffer = Vec::new();
    set.edit(event, packed, |edit: &mut SortedSetEdit<'_, '_>| {
        for _ in 0..count {
            let items = edit.items();
            let rank = match pop {
                Pop::Min => 0,
                Pop::Max => items.len() - 1,
            };
            let item = items.at(rank).expect("the rank is below the length");
            let item = item.moved_to(&mut buffer);
            if nests {
                reply.array(2);
            }
            write_cell(reply, item.name);
            write_value::<keyspace::collection::kind::Scores>(reply, &item);
            edit.take(item.name, score_of(&item));
        }
    });
}

/// `ZPOPMIN key [count]`
pub(super) fn zpopmin(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    pop_of_one(context, args, Pop::Min)
}

/// `ZPOPMAX key [count]`
pub(super) fn zpopmax(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    pop_of_one(context, args, Pop::Max)
}

fn pop_of_one(context: &mut Context<'_>, args: &Args<'_>, from: Pop) -> Handled {
    if args.len() > 3 {
        return Err(failure::SYNTAX);
    }
    let count = match args.len() {
        2 => None,
        _ => {
            let count = args.integer(2).ok();
            let count = count.and_then(|count| u64::try_from(count).ok());
            Some(count.ok_or(NOT_POSITIVE)?)
        }
    };
    let (key, packed) = (args.key(1), Packed::sorted_set(&context.server.settings));
    let mut shard = context.store.lock(key);
    let reply = &mut context.reply;
    let wanted = count.unwrap_or(1);
    let Some(set) = shard.find_sorted_set(key)?.filter(|_| wanted > 0) else {
        reply.empty_array();
        return Ok(Next::Done);
    };
    let wanted = wanted.min(set.sorted().len());
    let nests = count.is_some() && reply.protocol == Protocol::Resp3;
    reply.array(wanted as usize * if nests { 1 } else { 2 });
    pop(reply, set, from, wanted, packed, nests);
    Ok(Next::Done)
}

/// `ZMPOP numkeys key [key ...] MIN | MAX [COUNT count]`
pub(super) fn zmpop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let positive = |at: usize, failure: Failure| {
        let number = args.integer(at).ok();
        let number = number.and_then(|number| u64::try_from(number).ok());
        number.filter(|&number| number > 0).ok_or(failure)
    };
    let keys = positive(1, NO_KEYS)?;
    let where_at = usize::try_from(keys)
        .unwrap_or(usize::MAX)
        .saturating_add(2);
    if where_at >= args.len() {
        return Err(failure::SYNTAX);
    }
    let from = match () {
        () if args.is(where_at, "MIN") => Pop::Min,
        () if args.is(where_at, "MAX") => Pop::Max,
        () => return Err(failure::SYNTAX),
    };
    let count = match args.len() - where_at {
        1 => 1,
        3 if args.is(where_at + 1, "COUNT") => positive(where_at + 2, NO_COUNT)?,
        _ => return Err(failure::SYNTAX),
    };
    let packed = Packed::sorted_set(&context.server.settings);
    let keys = (2..where_at).map(|at| args.key(at));
    let mut shards = context.store.lock_keys(keys.clone());
    let reply = &mut context.reply;
    for key in keys {
        let mut shard = shards.of(key);
        if let Some(set) = shard.find_sorted_set(key)? {
            let count = count.min(set.sorted().len());
            reply.array(2);
            reply.bulk(key.bytes);
            reply.array(count as usize);
            pop(reply, set, from, count, packed, true);
            return Ok(Next::Done);
        }
    }
    reply.null_array();
    Ok(Next::Done)
}
