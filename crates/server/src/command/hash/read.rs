//! Commands that return fields: HGET HMGET HGETALL HKEYS HVALS, and HLEN HSTRLEN HEXISTS, which tell of them.

use keyspace::HashRef;
use keyspace::collection::kind::Fields;

use super::super::items::cells::{cell, write_value};
use super::super::items::list::list;
use super::super::{Args, Context, Handled, Next};

/// `HGET key field`
///
/// Budget: one lookup of the key, one of the field, one copy of the value, no allocation.
pub(super) fn hget(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, field) = (args.key(1), cell(args, 2)?);
    let mut shard = context.store.lock(key);
    let hash = shard.read_hash(key)?;
    match hash.as_ref().and_then(|hash| hash.items().get(field)) {
        Some(item) => write_value::<Fields>(&mut context.reply, &item),
        None => context.reply.null(),
    }
    Ok(Next::Done)
}

/// `HMGET key field [field ...]`
pub(super) fn hmget(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let hash = shard.read_hash(key)?;
    let fields = hash.as_ref().map(|hash| hash.items());
    context.reply.array(args.len() - 2);
    for at in 2..args.len() {
        // No hash has a field that is longer than a cell can be.
        let name = cell(args, at).ok();
        let item = fields.and_then(|fields| fields.get(name?));
        match item {
            Some(item) => write_value::<Fields>(&mut context.reply, &item),
            None => context.reply.null(),
        }
    }
    Ok(Next::Done)
}

/// `HGETALL key`
///
/// Budget: one lookup of the key; for each field of a small hash and its value 180 instructions.
pub(super) fn hgetall(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    list::<Fields, true, true>(context, args, |reply, len| reply.map(len))
}

/// `HKEYS key`
pub(super) fn hkeys(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    list::<Fields, true, false>(context, args, |reply, len| reply.array(len))
}

/// `HVALS key`
pub(super) fn hvals(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    list::<Fields, false, true>(context, args, |reply, len| reply.array(len))
}

/// Answers with a number that `tell` makes of the fields of a hash; 0 if there is none.
#[inline]
fn report(
    context: &mut Context<'_>,
    args: &Args<'_>,
    tell: impl FnOnce(HashRef<'_>) -> usize,
) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let hash = shard.read_hash(key)?;
    let number = hash.map_or(0, |hash| tell(hash.items()));
    context.reply.integer(number as i64);
    Ok(Next::Done)
}

/// `HLEN key`
pub(super) fn hlen(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    report(context, args, |fields| fields.len() as usize)
}

/// `HSTRLEN key field`
pub(super) fn hstrlen(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let field = cell(args, 2)?;
    report(context, args, |fields| {
        let value = fields.get(field).and_then(|item| item.value);
        value.map_or(0, |value| value.text_len())
    })
}

/// `HEXISTS key field`
pub(super) fn hexists(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let field = cell(args, 2)?;
    report(context, args, |fields| {
        usize::from(fields.get(field).is_some())
    })
}
