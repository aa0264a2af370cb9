//! Commands that return values: GET MGET STRLEN GETRANGE SUBSTR, and GETEX GETDEL GETSET, which change the
//! key as well.
//!
//! A value of 16 KiB or more is sent from where it is stored; a smaller one is copied into the reply under
//! the shard's lock; one that has a file of its own is sent from there.

use keyspace::{Expiry, INLINE_VALUE_MAX, Key, Stored};

use super::super::{Args, Context, Failure, Handled, Next, Reply};
use super::options::{ExpiryOption, parse_getex};
use super::range;
use crate::command::multi_read::{Wanted, multi_read};
use crate::limits::PREFETCH_KEYS;
use crate::observe::notify::Event;
use crate::store::Shards;

/// `GET key`
///
/// Budget: one lookup and one copy of the value, no allocation; see `set` for how it is counted.
pub(super) fn get(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    match context.store.lock(key).read(key) {
        Some(entry) => entry.answer_string(&mut context.reply)?,
        None => context.reply.null(),
    }
    Ok(Next::Done)
}

/// `MGET key [key ...]`
pub(super) fn mget(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if let Some(later) = multi_read(context, args, Wanted::Values) {
        return Ok(later);
    }
    let Context { store, reply, .. } = context;
    reply.array(args.len() - 1);
    let shards = store.lock_keys(args.keys());
    if args.len() > PREFETCH_KEYS {
        write_values(reply, shards, store.ahead(args))?;
    } else {
        write_values(reply, shards, args.keys())?;
    }
    Ok(Next::Done)
}

/// Answers with the values of keys whose shards are locked.
#[inline(always)]
fn write_values<'k>(
    reply: &mut Reply<'_>,
    mut shards: Shards<'_>,
    keys: impl Iterator<Item = Key<'k>>,
) -> Result<(), Failure> {
    for key in keys {
        // A key of another kind is as good as missing.
        match shards.of(key).read(key) {
            Some(entry) if entry.is_string() => entry.answer_string_of_many(reply)?,
            Some(_) | None => reply.null(),
        }
    }
    Ok(())
}

/// `STRLEN key`
pub(super) fn strlen(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let len = context
        .store
        .lock(key)
        .read_string(key)?
        .map_or(0, |entry| entry.value_len());
    context.reply.integer(len as i64);
    Ok(Next::Done)
}

/// `GETRANGE key start end`, `SUBSTR key start end`
pub(super) fn getrange(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (start, end) = (args.integer(2)?, args.integer(3)?);
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let Some(entry) = shard.read_string(key)? else {
        context.reply.bulk(b"");
        return Ok(Next::Done);
    };
    let range = match range::resolve(start, end, entry.value_len()) {
        Some(range) if !range::is_backward(start, end) => range,
        _ => {
            context.reply.bulk(b"");
            return Ok(Next::Done);
        }
    };
    if let Some(cold) = entry.cold() {
        let part = *range.start() as u64..*range.end() as u64 + 1;
        entry.answer_part(&mut context.reply, cold, part)?;
        return Ok(Next::Done);
    }
    match entry.value() {
        value if range.clone().count() == value.bytes().len() => context.reply.value(value),
        // Much to copy: a reference keeps the value unchanged, so that no command waits for the shard.
        Stored::Large(value) if range.clone().count() > INLINE_VALUE_MAX => {
            let value = value.share();
            drop(shard);
            context.reply.bulk(&value[range]);
        }
        value => context.reply.bulk(&value.bytes()[range]),
    }
    Ok(Next::Done)
}

/// `GETEX key [EX seconds | PX milliseconds | EXAT time | PXAT time | PERSIST]`
pub(super) fn getex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let option = parse_getex(args)?;
    let key = args.key(1);
    let now = context.store.now;
    // The time is looked at only if the key is there, as Redis does.
    let mut shard = context.store.lock(key);
    let Some(mut entry) = shard.read_string(key)? else {
        context.reply.null();
        return Ok(Next::Done);
    };
    let moment = option.moment(context, args)?;
    entry.answer(&mut context.reply)?;
    let event = match (option, moment) {
        (_, Some(at)) if option.is_absolute() && at <= now && !context.server.is_loading() => {
            entry.remove();
            Event::DEL
        }
        (_, Some(at)) => {
            entry.set_expiry(Some(at));
            Event::EXPIRE
        }
        (ExpiryOption::Persist, None) if entry.expiry().is_some() => {
            entry.set_expiry(None);
            Event::PERSIST
        }
        (_, None) => return Ok(Next::Done),
    };
    shard.tell(event, key);
    Ok(Next::Done)
}

/// `GETDEL key`
pub(super) fn getdel(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    match shard.read_string(key)? {
        Some(entry) => {
            entry.answer(&mut context.reply)?;
            entry.remove();
            shard.tell(Event::DEL, key);
        }
        None => context.reply.null(),
    }
    Ok(Next::Done)
}

/// `GETSET key value`
pub(super) fn getset(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    match shard.read_string(key)? {
        Some(entry) => entry.answer(&mut context.reply)?,
        None => context.reply.null(),
    }
    shard.set(key, args.get(2), Expiry::Clear);
    shard.tell(Event::SET, key);
    Ok(Next::Done)
}
