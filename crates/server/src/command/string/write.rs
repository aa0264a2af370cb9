//! Commands that set values: SET and its older relatives, MSET, and APPEND and SETRANGE, which change a part.
//!
//! All keys of a command are locked before any is read or written. If a command overwrites values in any
//! case, large ones are copied into buffers of their own before the shards are locked.

use keyspace::{Expiry, Form, INLINE_VALUE_MAX, Key, LargeValue, New};

use super::super::{Args, Context, Failure, Handled, Next, Reply, failure};
use super::compare::Condition;
use super::length_with;
use super::options::{SetOptions, TimeUnit, moment_of};
use crate::limits::FORESEEN_BYTES;
use crate::observe::notify::Event;
use crate::store::{Shard, Shards, Store};

/// `SET key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] [GET]
/// [EX seconds | PX milliseconds | EXAT time | PXAT time | KEEPTTL]`
///
/// Budget without options: one lookup and one copy of the value; no allocation when it takes the place of a
/// value of about its size.
pub(super) fn set(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.len() > 3 {
        return set_with_options(context, args);
    }
    put(&context.store, args, 2, Expiry::Clear);
    context.reply.ok();
    Ok(Next::Done)
}

/// Whether a value gets a buffer of its own.
#[inline]
fn is_large(value: &[u8]) -> bool {
    value.len() > INLINE_VALUE_MAX
}

/// Sets the key that is the first argument to the argument at `at`.
#[inline(always)]
fn put(store: &Store<'_>, args: &Args<'_>, at: usize, expiry: Expiry) {
    let (key, value) = (args.key(1), args.get(at));
    if is_large(value) {
        return put_large(store, key, args.large(at), expiry);
    }
    let mut shard = store.lock(key);
    shard.set(key, value, expiry);
    tell_of_set(&shard, key, expiry);
}

/// Tells of a value that was set, and of its expiry.
#[inline]
pub(super) fn tell_of_set(shard: &Shard<'_>, key: Key<'_>, expiry: Expiry) {
    shard.tell(Event::SET, key);
    if matches!(expiry, Expiry::At(_)) {
        shard.tell(Event::EXPIRE, key);
    }
}

/// Large values were given buffers of their own before the shard is locked.
#[inline(never)]
fn put_large(store: &Store<'_>, key: Key<'_>, value: LargeValue, expiry: Expiry) {
    let mut shard = store.lock(key);
    shard.write(key, New::large(&value).expiry(expiry));
    tell_of_set(&shard, key, expiry);
}

#[inline(never)]
fn set_with_options(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let options = SetOptions::parse(args, 3)?;
    let expiry = options.expiry(context, args)?;
    let (key, value) = (args.key(1), args.get(2));
    if options.condition.is_none() && !options.get {
        put(&context.store, args, 2, expiry);
        context.reply.ok();
        return Ok(Next::Done);
    }
    let mut shard = context.store.lock(key);
    if decide(&options, &mut shard, key, &mut context.reply)? {
        shard.set(key, value, expiry);
        tell_of_set(&shard, key, expiry);
    }
    Ok(Next::Done)
}

/// Answers SET as its options say. Whether the key is to be set.
pub(super) fn decide(
    options: &SetOptions<'_>,
    shard: &mut Shard<'_>,
    key: Key<'_>,
    reply: &mut Reply<'_>,
) -> Result<bool, Failure> {
    let compares = options.condition.is_some_and(Condition::compares);
    if !options.get && !compares {
        // Kind and bytes of the value make no difference; it need not be in memory.
        let state = match shard.contains(key) {
            true => Condition::Present,
            false => Condition::Missing,
        };
        let is_admitted = options.condition.is_none_or(|wanted| wanted == state);
        match is_admitted {
            true => reply.ok(),
            false => reply.null(),
        }
        return Ok(is_admitted);
    }
    let current = match options.get {
        true => shard.read_string(key)?,
        false => shard.find_string(key)?,
    };
    let is_admitted = match options.condition {
        Some(condition) => condition.admits(current.as_ref())?,
        None => true,
    };
    match current {
        Some(entry) if options.get => entry.answer(reply)?,
        None if options.get => reply.null(),
        _ if is_admitted => reply.ok(),
        _ => reply.null(),
    }
    Ok(is_admitted)
}

/// `SETNX key value`
pub(super) fn setnx(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let missing = !shard.contains(key);
    if missing {
        shard.set(key, args.get(2), Expiry::Clear);
        shard.tell(Event::SET, key);
    }
    context.reply.integer(i64::from(missing));
    Ok(Next::Done)
}

/// `SETEX key seconds value`
pub(super) fn setex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    set_for(context, args, TimeUnit::Seconds)
}

/// `PSETEX key milliseconds value`
pub(super) fn psetex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    set_for(context, args, TimeUnit::Milliseconds)
}

fn set_for(context: &mut Context<'_>, args: &Args<'_>, unit: TimeUnit) -> Handled {
    let at = moment_of(context, args, unit, 2)?;
    put(&context.store, args, 3, Expiry::At(at));
    context.reply.ok();
    Ok(Next::Done)
}

/// The keys, which are every other argument, with their values.
fn pairs<'a, K: Iterator<Item = Key<'a>>>(
    keys: K,
    args: &Args<'a>,
) -> impl Iterator<Item = (Key<'a>, &'a [u8])> + use<'a, K> {
    keys.zip(args.from(2).step_by(2))
}

/// Refuses a key without a value.
fn check_pairs(context: &Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    if args.len().is_multiple_of(2) {
        return Err(Failure::wrong_arity(context.command.spec.name));
    }
    Ok(())
}

/// `MSET key value [key value ...]`
///
/// Budget per key: one lock, one lookup and one copy of the value, as for SET; with a log one more copy, into
/// its ring.
pub(super) fn mset(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    check_pairs(context, args)?;
    let (first, last) = (args.spans[0], args.spans[args.len() - 1]);
    if last.start + last.len - first.start > INLINE_VALUE_MAX {
        // Only a request as long as that can hold a large value.
        set_pairs_with_large(context, args);
    } else {
        let mut shards = context
            .store
            .lock_pairs(args.keys().zip(args.from(2).step_by(2)));
        for (key, value) in pairs(args.keys(), args) {
            set_one(&mut shards, key, value);
        }
    }
    context.reply.ok();
    Ok(Next::Done)
}

/// Sets one of several keys.
#[inline(always)]
fn set_one(shards: &mut Shards<'_>, key: Key<'_>, value: &[u8]) {
    let mut shard = shards.of(key);
    shard.set(key, value, Expiry::Clear);
    shard.tell(Event::SET, key);
}

#[inline(never)]
fn set_pairs_with_large(context: &mut Context<'_>, args: &Args<'_>) {
    let large: Vec<LargeValue> = (2..args.len())
        .step_by(2)
        .filter(|&at| is_large(args.get(at)))
        .map(|at| args.large(at))
        .collect();
    let mut large = large.into_iter();
    let mut shards = context.store.lock_keys(args.keys());
    for (key, value) in pairs(context.store.ahead(args), args) {
        if is_large(value) {
            let value = large.next().expect("made above for every large value");
            let mut shard = shards.of(key);
            shard.write(key, New::large(&value));
            shard.tell(Event::SET, key);
        } else {
            set_one(&mut shards, key, value);
        }
    }
}

/// `MSETNX key value [key value ...]`
pub(super) fn msetnx(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    check_pairs(context, args)?;
    let mut shards = context.store.lock_keys(args.keys());
    let missing = !args.keys().any(|key| shards.of(key).contains(key));
    if missing {
        for (key, value) in pairs(context.store.ahead(args), args) {
            set_one(&mut shards, key, value);
        }
    }
    context.reply.integer(i64::from(missing));
    Ok(Next::Done)
}

/// `MSETEX numkeys key value [key value ...] [NX | XX]
/// [EX seconds | PX milliseconds | EXAT time | PXAT time | KEEPTTL]`
pub(super) fn msetex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let count = args.integer(1).ok();
    let count = count.filter(|count| (1..=i64::from(i32::MAX)).contains(count));
    let end = 2 + 2 * count.ok_or(NUMBER_OF_KEYS)? as usize;
    if end > args.len() {
        return Err(NUMBER_OF_PAIRS);
    }
    let options = SetOptions::parse(args, end)?;
    if options.get || options.condition.is_some_and(Condition::compares) {
        return Err(failure::SYNTAX);
    }
    let expiry = options.expiry(context, args)?;
    let places = (2..end).step_by(2);
    let large = places.clone().map(|at| at + 1);
    let large = large.filter(|&at| is_large(args.get(at)));
    let large: Vec<LargeValue> = large.map(|at| args.large(at)).collect();
    let mut large = large.into_iter();
    let mut keys = places.clone().map(|at| args.key(at));
    let mut shards = context.store.lock_keys(keys.clone());
    let is_wanted = match options.condition {
        Some(Condition::Missing) => !keys.any(|key| shards.of(key).contains(key)),
        Some(_) => keys.all(|key| shards.of(key).contains(key)),
        None => true,
    };
    for at in places.take_while(|_| is_wanted) {
        let (key, value) = (args.key(at), args.get(at + 1));
        let mut shard = shards.of(key);
        if is_large(value) {
            let value = large.next().expect("made above for every large value");
            shard.write(key, New::large(&value).expiry(expiry));
        } else {
            shard.set(key, value, expiry);
        }
        tell_of_set(&shard, key, expiry);
    }
    context.reply.integer(is_wanted.into());
    Ok(Next::Done)
}

/// `APPEND key value`
pub(super) fn append(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, tail) = (args.key(1), args.get(2));
    let (mut shard, mut is_foreseen) = (context.store.lock(key), false);
    let len = loop {
        let Some(mut entry) = shard.find_string(key)? else {
            shard.set(key, tail, Expiry::Clear);
            break tail.len();
        };
        let before = entry.value_len();
        let len = length_with(context.server, before, tail.len())?;
        if before < FORESEEN_BYTES || is_foreseen {
            context.store.check_log(key, len)?;
            entry.update(len, before..len, Form::Part, |value| {
                value[before..].copy_from_slice(tail)
            });
            break len;
        }
        // A value that moves is there twice for a moment.
        drop(shard);
        context.foresee(key, len)?;
        (shard, is_foreseen) = (context.store.lock(key), true);
    };
    shard.tell(Event::APPEND, key);
    context.reply.integer(len as i64);
    Ok(Next::Done)
}

/// `SETRANGE key offset value`
pub(super) fn setrange(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let offset = usize::try_from(args.integer(2)?).map_err(|_| OFFSET)?;
    let (key, part) = (args.key(1), args.get(3));
    if part.is_empty() {
        // Nothing to write creates nothing, and no offset is too far for it.
        let len = context
            .store
            .lock(key)
            .find_string(key)?
            .map_or(0, |entry| entry.value_len());
        context.reply.integer(len as i64);
        return Ok(Next::Done);
    }
    let end = match length_with(context.server, offset, part.len()) {
        Ok(end) => end,
        Err(too_long) => {
            // A key of another kind is the first thing that is wrong.
            context.store.lock(key).find_string(key)?;
            return Err(too_long);
        }
    };
    context.foresee(key, end)?;
    let mut shard = context.store.lock(key);
    let (len, _) = shard.grow(key, offset..end, |value| {
        value[offset..end].copy_from_slice(part);
        (value.len(), true)
    })?;
    shard.tell(Event::SETRANGE, key);
    context.reply.integer(len as i64);
    Ok(Next::Done)
}

const NUMBER_OF_KEYS: Failure = Failure::of("ERR invalid numkeys value");
const NUMBER_OF_PAIRS: Failure = Failure::of("ERR wrong number of key-value pairs");
const OFFSET: Failure = Failure::of("ERR offset is out of range");
