//! Commands that return fields: HGET HMGET HGETALL HKEYS HVALS, and HLEN HSTRLEN HEXISTS, which tell of them.

use keyspace::collection::cell::DECIMAL_MAX;
use keyspace::{HashRef, LeafPlace};
use resp::reply::Writer;

use super::super::deferred::Slice;
use super::super::{Args, Context, Handled, Next};
use super::cells::{cell, write_value};
use super::moment::{Look, leave, look_on};
use crate::store::Hash;

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

/// Names of fields, values, or both.
struct List<const NAMES: bool, const VALUES: bool> {
    /// The leaf that comes next.
    from: LeafPlace,
}

impl<const NAMES: bool, const VALUES: bool> Look for List<NAMES, VALUES> {
    const STREAMS: bool = true;

    #[inline]
    fn step(&mut self, fields: HashRef<'_>, writer: &mut Writer<'_>) -> bool {
        let mut bulks = writer.bulks();
        let next = fields.cells_from(&self.from, |cell, is_name| {
            if if is_name { NAMES } else { VALUES } {
                bulks.put(cell.text(&mut [0; DECIMAL_MAX]));
            }
        });
        bulks.finish();
        let has_more = next.is_some();
        self.from = next.unwrap_or_default();
        has_more
    }
}

/// Answers with a head for the number of fields, and then with their names, their values, or both.
#[inline]
fn list<const NAMES: bool, const VALUES: bool>(
    context: &mut Context<'_>,
    args: &Args<'_>,
) -> Handled {
    let (key, may_defer) = (args.key(1), context.may_defer());
    let mut shard = context.store.lock(key);
    let mut hash = shard.read_hash(key)?;
    let (reply, fields) = (&mut context.reply, hash.as_ref().map(|hash| hash.fields()));
    let (start, len) = (
        reply.position(),
        fields.map_or(0, |fields| fields.len() as usize),
    );
    match NAMES && VALUES {
        true => reply.map(len),
        false => reply.array(len),
    }
    let Some(fields) = fields else {
        return Ok(Next::Done);
    };
    let from = LeafPlace::default();
    let mut look = List::<NAMES, VALUES> { from };
    // A small hash needs no clock.
    let has_more =
        look.step(fields, reply) && look_on(&mut look, fields, reply, &Slice::if_any(may_defer));
    if !has_more {
        return Ok(Next::Done);
    }
    let moment = hash.as_mut().and_then(Hash::moment);
    drop(shard);
    let moment = moment.expect("it is a tree");
    Ok(leave(context, args, start, moment, look))
}

/// `HGETALL key`
///
/// Budget: one lookup of the key; for each field of a small hash and its value 180 instructions.
pub(super) fn hgetall(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    list::<true, true>(context, args)
}

/// `HKEYS key`
pub(super) fn hkeys(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    list::<true, false>(context, args)
}

/// `HVALS key`
pub(super) fn hvals(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    list::<false, true>(context, args)
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
