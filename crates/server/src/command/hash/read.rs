//! Commands that return fields: HGET HMGET HGETALL HKEYS HVALS, and HLEN HSTRLEN HEXISTS, which tell of them.

use keyspace::HashRef;
use keyspace::collection::run::Item;

use super::super::{Args, Context, Handled, Next};
use super::cells::{cell, write_cell, write_value};
use crate::request::Reply;

/// `HGET key field`
///
/// Budget: one lookup of the key, one of the field, one copy of the value, no allocation.
pub(super) fn hget(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, field) = (args.key(1), cell(args, 2)?);
    let mut shard = context.store.lock(key);
    let hash = shard.read_hash(key)?;
    match hash.as_ref().and_then(|hash| hash.fields().get(field)) {
        Some(item) => write_value(&mut context.reply, item.value),
        None => context.reply.null(),
    }
    Ok(Next::Done)
}

/// `HMGET key field [field ...]`
pub(super) fn hmget(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let hash = shard.read_hash(key)?;
    let fields = hash.as_ref().map(|hash| hash.fields());
    context.reply.array(args.len() - 2);
    for at in 2..args.len() {
        // No hash has a field that is longer than a cell can be.
        let name = cell(args, at).ok();
        let item = fields.and_then(|fields| fields.get(name?));
        match item {
            Some(item) => write_value(&mut context.reply, item.value),
            None => context.reply.null(),
        }
    }
    Ok(Next::Done)
}

/// Answers with a head for the number of fields, and then with what `write` makes of each field.
fn list(
    context: &mut Context<'_>,
    args: &Args<'_>,
    head: impl FnOnce(&mut Reply<'_>, usize),
    write: impl Fn(&mut Reply<'_>, Item<'_>),
) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let hash = shard.read_hash(key)?;
    let reply = &mut context.reply;
    match hash.as_ref().map(|hash| hash.fields()) {
        Some(fields) => {
            head(reply, fields.len() as usize);
            fields.iter().for_each(|item| write(reply, item));
        }
        None => head(reply, 0),
    }
    Ok(Next::Done)
}

/// `HGETALL key`
pub(super) fn hgetall(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let head = |reply: &mut Reply<'_>, len| reply.map(len);
    list(context, args, head, |reply, item| {
        write_cell(reply, item.name);
        write_value(reply, item.value);
    })
}

/// `HKEYS key`
pub(super) fn hkeys(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let head = |reply: &mut Reply<'_>, len| reply.array(len);
    list(context, args, head, |reply, item| {
        write_cell(reply, item.name)
    })
}

/// `HVALS key`
pub(super) fn hvals(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let head = |reply: &mut Reply<'_>, len| reply.array(len);
    list(context, args, head, |reply, item| {
        write_value(reply, item.value)
    })
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
    let number = hash.map_or(0, |hash| tell(hash.fields()));
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
