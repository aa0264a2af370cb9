//! Commands that tell what a sorted set has: ZCARD ZSCORE ZMSCORE ZRANK ZREVRANK ZCOUNT ZLEXCOUNT.

use keyspace::SortedRef;
use keyspace::collection::Base;
use keyspace::collection::any::Collection;

use super::super::items::cells::cell;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::bounds::{Lex, Scores};
use crate::store::SortedSet;

/// `ZCARD key`
pub(super) fn zcard(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let set = shard.read_sorted_set(key)?;
    let len = set.map_or(0, |set| set.sorted().len());
    context.reply.integer(len as i64);
    Ok(Next::Done)
}

/// `ZSCORE key member`
///
/// Budget: one lookup of the key, one of the member, no allocation.
pub(super) fn zscore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let set = shard.read_sorted_set(key)?;
    // No set has a member that is longer than a cell can be.
    let score = set.and_then(|set| set.sorted().score(cell(args, 2).ok()?));
    match score {
        Some(score) => context.reply.score(score),
        None => context.reply.null(),
    }
    Ok(Next::Done)
}

/// `ZMSCORE key member [member ...]`
pub(super) fn zmscore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let set = shard.read_sorted_set(key)?;
    let members = set.as_ref().map(SortedSet::sorted);
    context.reply.array(args.len() - 2);
    for at in 2..args.len() {
        let score = members.and_then(|members| members.score(cell(args, at).ok()?));
        match score {
            Some(score) => context.reply.score(score),
            None => context.reply.null(),
        }
    }
    Ok(Next::Done)
}

/// `ZRANK key member [WITHSCORE]`
pub(super) fn zrank(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    rank(context, args, false)
}

/// `ZREVRANK key member [WITHSCORE]`
pub(super) fn zrevrank(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    rank(context, args, true)
}

fn rank(context: &mut Context<'_>, args: &Args<'_>, is_reverse: bool) -> Handled {
    if args.len() > 4 {
        let name = if is_reverse { "zrevrank" } else { "zrank" };
        return Err(Failure::wrong_arity(name));
    }
    let with_score = args.len() == 4;
    if with_score && !args.is(3, "WITHSCORE") {
        return Err(failure::SYNTAX);
    }
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let set = shard.read_sorted_set(key)?;
    let found = set.as_ref().and_then(|set| {
        let (members, member) = (set.sorted(), cell(args, 2).ok()?);
        let rank = members.rank(member)?;
        let rank = if is_reverse {
            members.len() - 1 - rank
        } else {
            rank
        };
        let score = if with_score {
            members.score(member)?
        } else {
            0.0
        };
        Some((rank as i64, score))
    });
    let reply = &mut context.reply;
    match found {
        Some((rank, score)) if with_score => {
            reply.array(2);
            reply.integer(rank);
            reply.score(score);
        }
        Some((rank, _)) => reply.integer(rank),
        None if with_score => reply.null_array(),
        None => reply.null(),
    }
    Ok(Next::Done)
}

/// Answers with how many members are in a range.
fn count(
    context: &mut Context<'_>,
    args: &Args<'_>,
    ranks: impl Fn(SortedRef<'_>) -> Option<(u64, u64)>,
) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let set = shard.read_sorted_set(key)?;
    let Some((from, to)) = set.map_or(Some((0, 0)), |set| ranks(set.sorted())) else {
        // Members came or went since the leaves were found.
        return Ok(Next::Retry);
    };
    context.reply.integer((to - from) as i64);
    Ok(Next::Done)
}

/// `ZCOUNT key min max`
pub(super) fn zcount(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let range = Scores::parse(args, 2, 3)?;
    count(context, args, |members| range.ranks(members))
}

/// The leaves that ZCOUNT needs.
pub(super) fn leaves_of_zcount(args: &Args<'_>, tree: &Collection, _: bool) -> Vec<Base> {
    match (Scores::parse(args, 2, 3), SortedRef::of(tree)) {
        (Ok(range), Some(members)) => range.cold(members),
        _ => Vec::new(),
    }
}

/// The leaves that ZLEXCOUNT needs.
pub(super) fn leaves_of_zlexcount(args: &Args<'_>, tree: &Collection, _: bool) -> Vec<Base> {
    match (Lex::parse(args, 2, 3), SortedRef::of(tree)) {
        (Ok(range), Some(members)) => range.cold(members),
        _ => Vec::new(),
    }
}

/// `ZLEXCOUNT key min max`
pub(super) fn zlexcount(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let range = Lex::parse(args, 2, 3)?;
    count(context, args, |members| range.ranks(members))
}
