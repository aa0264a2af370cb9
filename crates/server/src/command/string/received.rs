//! SET and its relatives when their value was received into a file of its own. They do not read the value.
//!
//! Each is the twin of the handler of the same name, for a request in which a few words stand for the value
//! ([`crate::values::blobs`]).

use keyspace::{Expiry, Key};

use super::super::{Args, Context, Failure, Handled, Next, Reply};
use super::options::{SetOptions, TimeUnit, moment_of};
use super::write::{decide, tell_of_set};
use crate::store::Shard;

/// Sets the key to the value if `decide`, which also answers, accepts the present value.
fn put(
    context: &mut Context<'_>,
    key: Key<'_>,
    expiry: Expiry,
    decide: impl FnOnce(&mut Shard<'_>, &mut Reply<'_>) -> Result<bool, Failure>,
) -> Handled {
    let blob = context.take_received()?;
    let own_pins = context.own_pins(context.store.db, key);
    let mut shard = context.store.lock(key);
    if shard.is_relied_on(own_pins) {
        drop(shard);
        return Ok(context.come_again(blob));
    }
    if decide(&mut shard, &mut context.reply)? {
        shard.write_blob(key, &blob, expiry);
        tell_of_set(&shard, key, expiry);
    }
    Ok(Next::Done)
}

/// `SET` with all of its options.
pub(super) fn set(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let options = SetOptions::parse(args, 3)?;
    let expiry = options.expiry(context, args)?;
    let key = args.key(1);
    put(context, key, expiry, |shard, reply| {
        decide(&options, shard, key, reply)
    })
}

/// `SETNX`
pub(super) fn setnx(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    put(context, key, Expiry::Clear, |shard, reply| {
        let missing = !shard.contains(key);
        reply.integer(i64::from(missing));
        Ok(missing)
    })
}

/// `SETEX`
pub(super) fn setex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    set_for(context, args, TimeUnit::Seconds)
}

/// `PSETEX`
pub(super) fn psetex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    set_for(context, args, TimeUnit::Milliseconds)
}

fn set_for(context: &mut Context<'_>, args: &Args<'_>, unit: TimeUnit) -> Handled {
    let at = moment_of(context, args, unit, 2)?;
    put(context, args.key(1), Expiry::At(at), |_, reply| {
        reply.ok();
        Ok(true)
    })
}

/// `GETSET`
pub(super) fn getset(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    put(context, key, Expiry::Clear, |shard, reply| {
        match shard.read_string(key)? {
            Some(entry) => entry.answer(reply)?,
            None => reply.null(),
        }
        Ok(true)
    })
}
