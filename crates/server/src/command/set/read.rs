//! Commands that tell what a set has: SMEMBERS SISMEMBER SMISMEMBER SCARD.

use keyspace::collection::kind::Members;

use super::super::items::cells::cell;
use super::super::items::list::list;
use super::super::{Args, Context, Handled, Next};
use crate::store::Set;

/// `SMEMBERS key`
pub(super) fn smembers(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    list::<Members, true, false>(context, args, |reply, len| reply.set(len))
}

/// `SISMEMBER key member`
///
/// Budget: one lookup of the key, one of the member, no allocation.
pub(super) fn sismember(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, member) = (args.key(1), cell(args, 2)?);
    let mut shard = context.store.lock(key);
    let set = shard.read_set(key)?;
    let is_there = set.is_some_and(|set| set.items().get(member).is_some());
    context.reply.integer(i64::from(is_there));
    Ok(Next::Done)
}

/// `SMISMEMBER key member [member ...]`
pub(super) fn smismember(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let set = shard.read_set(key)?;
    let members = set.as_ref().map(Set::items);
    context.reply.array(args.len() - 2);
    for at in 2..args.len() {
        // No set has a member that is longer than a cell can be.
        let name = cell(args, at).ok();
        let found = members.and_then(|members| members.get(name?));
        context.reply.integer(i64::from(found.is_some()));
    }
    Ok(Next::Done)
}

/// `SCARD key`
pub(super) fn scard(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let set = shard.read_set(key)?;
    let len = set.map_or(0, |set| set.items().len());
    context.reply.integer(len as i64);
    Ok(Next::Done)
}
