//! INCR and its relatives: numbers kept as text.
//!
//! An integer is what [`resp::number`] reads and writes: the one spelling of a 64-bit integer. A decimal is
//! what [`resp::extended`] makes of it: the digits that Redis shows on x86-64, on every processor.

use keyspace::{Expiry, Form, Key, New};
use resp::number::{INTEGER_TEXT_LEN, format_i64, parse_i64};
use resp::{Extended, extended};

use super::super::{Args, Context, Failure, Handled, Next, failure};
use crate::observe::notify::Event;

const DECREMENT_OVERFLOW: Failure = Failure::of("ERR decrement would overflow");
const NOT_FINITE: Failure = Failure::of("ERR increment would produce NaN or Infinity");

/// `INCR key`
pub(super) fn incr(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    add(context, args.key(1), 1)
}

/// `DECR key`
pub(super) fn decr(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    add(context, args.key(1), -1)
}

/// `INCRBY key increment`
pub(super) fn incrby(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    add(context, args.key(1), args.integer(2)?)
}

/// `DECRBY key decrement`
pub(super) fn decrby(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let amount = args.integer(2)?.checked_neg().ok_or(DECREMENT_OVERFLOW)?;
    add(context, args.key(1), amount)
}

/// Adds to the integer of a key; a missing key counts as 0.
///
/// Budget: one lookup when the key is there, no allocation while the text stays about as long.
fn add(context: &mut Context<'_>, key: Key<'_>, amount: i64) -> Handled {
    let sum = |before: i64| before.checked_add(amount).ok_or(failure::OVERFLOW);
    let mut buffer = [0; INTEGER_TEXT_LEN];
    let mut shard = context.store.lock(key);
    let after = match shard.find_string(key)? {
        Some(mut entry) => {
            let before = parse_i64(entry.value().bytes()).ok_or(failure::NOT_AN_INTEGER)?;
            let after = sum(before)?;
            let text = format_i64(after, &mut buffer);
            entry.update(text.len(), 0..text.len(), Form::Whole, |value| {
                value.copy_from_slice(text)
            });
            after
        }
        None => {
            let after = sum(0)?;
            shard.set(key, format_i64(after, &mut buffer), Expiry::Clear);
            after
        }
    };
    shard.tell(Event::INCRBY, key);
    context.reply.integer(after);
    Ok(Next::Done)
}

/// `INCRBYFLOAT key increment`
pub(super) fn incrbyfloat(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let before = match shard.find_string(key)? {
        Some(entry) => extended::parse(entry.value().bytes()).ok_or(failure::NOT_A_FLOAT)?,
        None => Extended::from(0),
    };
    let amount = extended::parse(args.get(2)).ok_or(failure::NOT_A_FLOAT)?;
    let after = before + amount;
    if after.is_nan() || after.is_infinite() {
        return Err(NOT_FINITE);
    }
    let mut text = Vec::with_capacity(32);
    after.write_to(&mut text);
    context.reply.bulk(&text);
    let sum = New::bytes(&text).of(Form::Decimal);
    shard.write(key, sum.expiry(Expiry::Keep));
    shard.tell(Event::INCRBYFLOAT, key);
    Ok(Next::Done)
}
