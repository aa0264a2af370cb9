//! HINCRBY and HINCRBYFLOAT: numbers in fields, as INCRBY and INCRBYFLOAT know them.

use keyspace::collection::cell::{Cell, DECIMAL_MAX};
use keyspace::collection::run::Item;
use resp::{Extended, extended};

use super::super::items::cells::cell;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::store::HashEdit;

const NOT_AN_INTEGER: Failure = Failure::of("ERR hash value is not an integer");
const NOT_A_FLOAT: Failure = Failure::of("ERR hash value is not a float");
const NOT_FINITE: Failure = Failure::of("ERR value is NaN or Infinity");
const SUM_NOT_FINITE: Failure = Failure::of("ERR increment would produce NaN or Infinity");

/// The value of a field, and when it expires, which stays.
fn value_of<'e>(edit: &'e HashEdit<'_, '_>, field: Cell<'_>) -> (Option<Cell<'e>>, Option<u64>) {
    match edit.get(field) {
        Some(item) => (item.value, item.expiry),
        None => (None, None),
    }
}

/// `HINCRBY key field increment`
pub(super) fn hincrby(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let amount = args.integer(3)?;
    let (key, field, packed) = (
        args.key(1),
        cell(args, 2)?,
        Packed::hash(&context.server.settings),
    );
    let mut shard = context.store.lock(key);
    let after = shard.edit_hash(key, Event::HINCRBY, packed, |edit| {
        let (value, expiry) = value_of(edit, field);
        let before = match value {
            Some(Cell::Int(before)) => before,
            Some(Cell::Bytes(_)) => return Err(NOT_AN_INTEGER),
            None => 0,
        };
        let after = before.checked_add(amount).ok_or(failure::OVERFLOW)?;
        edit.set(&Item::pair(field, Cell::Int(after)).with_expiry(expiry));
        Ok(after)
    })?;
    context.reply.integer(after);
    Ok(Next::Done)
}

/// `HINCRBYFLOAT key field increment`
pub(super) fn hincrbyfloat(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let amount = extended::parse(args.get(3)).ok_or(failure::NOT_A_FLOAT)?;
    if amount.is_nan() || amount.is_infinite() {
        return Err(NOT_FINITE);
    }
    let (key, field, packed) = (
        args.key(1),
        cell(args, 2)?,
        Packed::hash(&context.server.settings),
    );
    let mut text = Vec::with_capacity(32);
    let mut shard = context.store.lock(key);
    shard.edit_hash(key, Event::HINCRBYFLOAT, packed, |edit| {
        let (value, expiry) = value_of(edit, field);
        let before = match value {
            Some(value) => {
                let mut scratch = [0; DECIMAL_MAX];
                extended::parse(value.text(&mut scratch)).ok_or(NOT_A_FLOAT)?
            }
            None => Extended::from(0),
        };
        let after = before + amount;
        if after.is_nan() || after.is_infinite() {
            return Err(SUM_NOT_FINITE);
        }
        after.write_to(&mut text);
        edit.set(&Item::pair(field, Cell::of(&text)).with_expiry(expiry));
        Ok(())
    })?;
    context.reply.bulk(&text);
    Ok(Next::Done)
}
