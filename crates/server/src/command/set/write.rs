//! Commands that add and remove members: SADD SREM SMOVE.

use keyspace::collection::run::Item;
use keyspace::collection::tree::Put;

use super::super::items::cells::cell;
use super::super::{Args, Context, Handled, Next};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::store::SetEdit;

/// `SADD key member [member ...]`
///
/// Budget: one lookup of the key, one of each member, no allocation while the set keeps its size class.
pub(super) fn sadd(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, packed) = (args.key(1), Packed::set(&context.server.settings));
    for at in 2..args.len() {
        cell(args, at)?;
    }
    let mut shard = context.store.lock(key);
    let added = shard.edit_items(key, Event::SADD, packed, |edit: &mut SetEdit<'_, '_>| {
        let mut added = 0;
        for at in 2..args.len() {
            let put = edit.set(&Item::single(cell(args, at)?));
            added += u64::from(put == Put::Added);
        }
        Ok(added)
    })?;
    context.reply.integer(added as i64);
    Ok(Next::Done)
}

/// `SREM key member [member ...]`
pub(super) fn srem(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, packed) = (args.key(1), Packed::set(&context.server.settings));
    let mut shard = context.store.lock(key);
    let Some(set) = shard.find_set(key)? else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    let removed = set.edit(Event::SREM, packed, |edit| {
        // No set has a member that is longer than a cell can be.
        let names = (2..args.len()).filter_map(|at| cell(args, at).ok());
        names.filter(|&name| edit.remove(name)).count()
    });
    context.reply.integer(removed as i64);
    Ok(Next::Done)
}

/// `SMOVE source destination member`
pub(super) fn smove(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (from, to) = (args.key(1), args.key(2));
    let packed = Packed::set(&context.server.settings);
    let mut shards = context.store.lock_keys([from, to].into_iter());
    let mut source = shards.of(from);
    let Some(set) = source.find_set(from)? else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    let member = cell(args, 3)?;
    let is_there = set.items().get(member).is_some();
    drop(source);
    shards.of(to).find_set(to)?;
    if is_there && from.bytes != to.bytes {
        if let Some(set) = shards.of(from).find_set(from)? {
            set.edit(Event::SREM, packed, |edit| edit.remove(member));
        }
        let add = |edit: &mut SetEdit<'_, '_>| Ok(edit.set(&Item::single(member)));
        shards.of(to).edit_items(to, Event::SADD, packed, add)?;
    }
    context.reply.integer(i64::from(is_there));
    Ok(Next::Done)
}
