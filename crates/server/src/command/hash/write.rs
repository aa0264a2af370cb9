//! Commands that set and remove fields: HSET HSETNX HMSET, HDEL HGETDEL.

use keyspace::collection::kind::Fields;
use keyspace::collection::run::Item;
use keyspace::collection::tree::Put;

use super::super::items::cells::{cell, write_value};
use super::super::{Args, Context, Failure, Handled, Next};
use super::expiry::{NUMBER_NOT_POSITIVE, fields_from};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::request::Reply;
use crate::store::HashEdit;

/// Sets the fields of a request; how many of them are new.
fn set_pairs(context: &mut Context<'_>, args: &Args<'_>) -> Result<u64, Failure> {
    if args.len() % 2 == 1 {
        return Err(Failure::wrong_arity(&context.command.full_name));
    }
    let (key, packed) = (args.key(1), Packed::hash(&context.server.settings));
    for at in 2..args.len() {
        cell(args, at)?;
    }
    let mut shard = context.store.lock(key);
    shard.edit_hash(key, Event::HSET, packed, |edit| {
        let mut added = 0;
        for at in (2..args.len()).step_by(2) {
            let put = edit.set(&Item::pair(cell(args, at)?, cell(args, at + 1)?));
            added += u64::from(put == Put::Added);
        }
        Ok(added)
    })
}

/// `HSET key field value [field value ...]`
///
/// Budget: one lookup of the key, one of each field, no allocation while the hash keeps its size class.
pub(super) fn hset(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let added = set_pairs(context, args)?;
    context.reply.integer(added as i64);
    Ok(Next::Done)
}

/// `HSETNX key field value`
pub(super) fn hsetnx(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, packed) = (args.key(1), Packed::hash(&context.server.settings));
    let item = Item::pair(cell(args, 2)?, cell(args, 3)?);
    let mut shard = context.store.lock(key);
    let is_set = shard.edit_hash(key, Event::HSET, packed, |edit| {
        let is_new = edit.get(item.name).is_none();
        if is_new {
            edit.set(&item);
        }
        Ok(is_new)
    })?;
    context.reply.integer(i64::from(is_set));
    Ok(Next::Done)
}

/// `HMSET key field value [field value ...]`
pub(super) fn hmset(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    set_pairs(context, args)?;
    context.reply.ok();
    Ok(Next::Done)
}

/// `HDEL key field [field ...]`
pub(super) fn hdel(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, packed) = (args.key(1), Packed::hash(&context.server.settings));
    let mut shard = context.store.lock(key);
    let Some(hash) = shard.find_hash(key)? else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    let removed = hash.edit(Event::HDEL, packed, |edit| {
        // No hash has a field that is longer than a cell can be.
        let names = (2..args.len()).filter_map(|at| cell(args, at).ok());
        names.filter(|&name| edit.remove(name)).count()
    });
    context.reply.integer(removed as i64);
    Ok(Next::Done)
}

/// `HGETDEL key FIELDS numfields field [field ...]`
pub(super) fn hgetdel(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    fields_from(args, 2, NUMBER_NOT_POSITIVE)?;
    let (key, packed) = (args.key(1), Packed::hash(&context.server.settings));
    let mut shard = context.store.lock(key);
    let hash = shard.find_hash_to_change(key)?;
    let reply = &mut context.reply;
    reply.array(args.len() - 4);
    match hash {
        Some(hash) => hash.edit(Event::HDEL, packed, |edit| take_fields(edit, args, reply)),
        None => (4..args.len()).for_each(|_| reply.null()),
    }
    Ok(Next::Done)
}

/// Answers with the values of the fields from the fourth argument on, and removes each.
fn take_fields(edit: &mut HashEdit<'_, '_>, args: &Args<'_>, reply: &mut Reply<'_>) {
    for at in 4..args.len() {
        let name = cell(args, at).ok();
        let Some((name, item)) = name.and_then(|name| Some((name, edit.get(name)?))) else {
            reply.null();
            continue;
        };
        write_value::<Fields>(reply, &item);
        edit.remove(name);
    }
}
