//! When fields expire: HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT, HTTL HPTTL HEXPIRETIME HPEXPIRETIME, HPERSIST.
//!
//! Times are Unix milliseconds from where they are read to where they are told. A field that is given a time
//! that is over is removed at once. While data is loaded it stays: a later change may give it another.
//!
//! What a command answers of each field:
//!
//! | | no such field | condition not met | no expiry | done | removed |
//! |---|---|---|---|---|---|
//! | HEXPIRE and its kin | -2 | 0 | | 1 | 2 |
//! | HTTL and its kin | -2 | | -1 | the time | |
//! | HPERSIST | -2 | | -1 | 1 | |

use keyspace::collection::cell::Cell;
use keyspace::collection::run::Item;

use super::super::items::cells::cell;
use super::super::{Args, Context, Failure, Handled, Next};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::request::Reply;
use crate::store::HashEdit;

pub(super) const FIELDS_MISSING: Failure =
    Failure::of("ERR Mandatory argument FIELDS is missing or not at the right position");
pub(super) const NUMBER_NOT_POSITIVE: Failure =
    Failure::of("ERR Number of fields must be a positive integer");
const NUMBER_TOO_SMALL: Failure = Failure::of("ERR Parameter `numFields` should be greater than 0");
pub(super) const NUMBER_DIFFERS: Failure =
    Failure::of("ERR The `numfields` parameter must match the number of arguments");
const NEGATIVE_TIME: Failure = Failure::of("ERR invalid expire time, must be >= 0");

const NO_FIELD: i64 = -2;
const NO_EXPIRY: i64 = -1;
const NOT_MET: i64 = 0;
const DONE: i64 = 1;
const REMOVED: i64 = 2;

/// The latest time at which a field may expire, as in Redis: a quarter of what 48 bits hold.
const LATEST_MS: i64 = ((1 << 48) - 1) >> 2;

/// The unit of a time in a request, in ms.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    Seconds = 1000,
    Milliseconds = 1,
}

/// The time (Unix, ms) that an argument means, counted from `base_ms`.
pub(super) fn time_of(
    context: &Context<'_>,
    args: &Args<'_>,
    at: usize,
    (unit, base_ms): (Scale, i64),
) -> Result<i64, Failure> {
    let number = args.integer(at)?;
    if number < 0 {
        return Err(NEGATIVE_TIME);
    }
    let time = number
        .checked_mul(unit as i64)
        .and_then(|ms| ms.checked_add(base_ms));
    time.filter(|&time| time <= LATEST_MS)
        .ok_or_else(|| Failure::invalid_expire(&context.command.full_name))
}

/// Checks that `FIELDS numfields` is at an index and all other arguments are fields. Returns the index of the
/// first field.
pub(super) fn fields_from(
    args: &Args<'_>,
    at: usize,
    not_positive: Failure,
) -> Result<usize, Failure> {
    if !args.is(at, "FIELDS") {
        return Err(FIELDS_MISSING);
    }
    let count = args.integer(at + 1).ok().filter(|&count| count > 0);
    let (count, first) = (count.ok_or(not_positive)?, at + 2);
    if count != args.len() as i64 - first as i64 {
        return Err(NUMBER_DIFFERS);
    }
    Ok(first)
}

pub(super) fn hexpire(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let now = context.store.now;
    expire_at(context, args, (Scale::Seconds, now))
}

pub(super) fn hpexpire(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let now = context.store.now;
    expire_at(context, args, (Scale::Milliseconds, now))
}

pub(super) fn hexpireat(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    expire_at(context, args, (Scale::Seconds, 0))
}

pub(super) fn hpexpireat(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    expire_at(context, args, (Scale::Milliseconds, 0))
}

/// What the expiry that a field has must be for it to get another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    None,
    Nx,
    Xx,
    Gt,
    Lt,
}

impl Condition {
    /// The condition at an index, if there is one.
    fn at(args: &Args<'_>, at: usize) -> Condition {
        let words = [
            ("NX", Condition::Nx),
            ("XX", Condition::Xx),
            ("GT", Condition::Gt),
            ("LT", Condition::Lt),
        ];
        let found = words.into_iter().find(|(word, _)| args.is(at, word));
        found.map_or(Condition::None, |(_, condition)| condition)
    }

    /// Whether a field that expires at `old` may expire at `new`. No expiry is later than any time.
    fn holds(self, old: Option<u64>, new: u64) -> bool {
        match self {
            Condition::None => true,
            Condition::Nx => old.is_none(),
            Condition::Xx => old.is_some(),
            Condition::Gt => old.is_some_and(|old| new > old),
            Condition::Lt => old.is_none_or(|old| new < old),
        }
    }
}

/// Lets fields expire at the time in the second argument. `from`: its unit, and where it is counted from.
fn expire_at(context: &mut Context<'_>, args: &Args<'_>, from: (Scale, i64)) -> Handled {
    let parsed = parse_expire(context, args, from);
    let (key, packed) = (args.key(1), Packed::hash(&context.server.settings));
    let mut shard = context.store.lock(key);
    let hash = shard.find_hash_to_change(key)?;
    let (time, condition, first) = parsed?;
    let is_over = time <= context.store.now && !context.server.is_loading();
    let event = if is_over { Event::HDEL } else { Event::HEXPIRE };
    let reply = &mut context.reply;
    reply.array(args.len() - first);
    let Some(hash) = hash else {
        (first..args.len()).for_each(|_| reply.integer(NO_FIELD));
        return Ok(Next::Done);
    };
    hash.edit(event, packed, |edit| match is_over {
        false => reschedule(edit, args, first, reply, |old| {
            match condition.holds(old, time as u64) {
                true => (DONE, Some(Some(time as u64))),
                false => (NOT_MET, None),
            }
        }),
        true => {
            for at in first..args.len() {
                let done = match cell(args, at) {
                    Ok(name) => remove_field(edit, name, condition, time),
                    Err(_) => NO_FIELD,
                };
                reply.integer(done);
            }
        }
    });
    Ok(Next::Done)
}

/// Gives the fields that are the arguments from `first` on another expiry, or none. `decide` says for the
/// expiry of a field that is there what is answered of it, and which it gets, if another.
fn reschedule(
    edit: &mut HashEdit<'_, '_>,
    args: &Args<'_>,
    first: usize,
    reply: &mut Reply<'_>,
    decide: impl Fn(Option<u64>) -> (i64, Option<Option<u64>>),
) {
    let names: Vec<Cell<'_>> = (first..args.len())
        .map(|at| Cell::of(args.get(at)))
        .collect();
    let mut told = vec![NO_FIELD; names.len()];
    edit.reschedule_each(&names, |at, old| {
        let (done, expiry) = decide(old);
        told[at] = done;
        expiry
    });
    told.into_iter().for_each(|done| reply.integer(done));
}

/// The time, the condition and the index of the first field.
fn parse_expire(
    context: &Context<'_>,
    args: &Args<'_>,
    from: (Scale, i64),
) -> Result<(i64, Condition, usize), Failure> {
    let time = time_of(context, args, 2, from)?;
    let condition = Condition::at(args, 3);
    let at = if condition == Condition::None { 3 } else { 4 };
    let first = fields_from(args, at, NUMBER_TOO_SMALL)?;
    Ok((time, condition, first))
}

/// Removes a field because its time is over; what is answered of it.
fn remove_field(
    edit: &mut HashEdit<'_, '_>,
    name: Cell<'_>,
    condition: Condition,
    time: i64,
) -> i64 {
    let Some(old) = edit.get(name).map(|item| item.expiry) else {
        return NO_FIELD;
    };
    if !condition.holds(old, time as u64) {
        return NOT_MET;
    }
    edit.remove(name);
    REMOVED
}

/// Lets a field that is there expire, or removes it because its time is over.
pub(super) fn set_expiry(edit: &mut HashEdit<'_, '_>, name: Cell<'_>, time: i64, is_over: bool) {
    match is_over {
        true => drop(edit.remove(name)),
        false => edit.reschedule(name, Some(time as u64)),
    }
}

pub(super) fn httl(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let now = context.store.now;
    tell(context, args, |at| (at - now + 999) / 1000)
}

pub(super) fn hpttl(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let now = context.store.now;
    tell(context, args, |at| at - now)
}

pub(super) fn hexpiretime(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    tell(context, args, |at| (at + 999) / 1000)
}

pub(super) fn hpexpiretime(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    tell(context, args, |at| at)
}

/// Answers with what `tell` makes of the time at which each field expires.
fn tell(context: &mut Context<'_>, args: &Args<'_>, tell: impl Fn(i64) -> i64) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let hash = shard.read_hash(key)?;
    let first = fields_from(args, 2, NUMBER_NOT_POSITIVE)?;
    let fields = hash.as_ref().map(|hash| hash.items());
    context.reply.array(args.len() - first);
    for at in first..args.len() {
        let name = cell(args, at).ok();
        let item: Option<Item<'_>> = fields.and_then(|fields| fields.get(name?));
        let told = match item.map(|item| item.expiry) {
            None => NO_FIELD,
            Some(None) => NO_EXPIRY,
            Some(Some(at)) => tell(at as i64),
        };
        context.reply.integer(told);
    }
    Ok(Next::Done)
}

/// `HPERSIST key FIELDS numfields field [field ...]`
pub(super) fn hpersist(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, packed) = (args.key(1), Packed::hash(&context.server.settings));
    let mut shard = context.store.lock(key);
    let hash = shard.find_hash_to_change(key)?;
    let first = fields_from(args, 2, NUMBER_NOT_POSITIVE)?;
    let reply = &mut context.reply;
    reply.array(args.len() - first);
    let Some(hash) = hash else {
        (first..args.len()).for_each(|_| reply.integer(NO_FIELD));
        return Ok(Next::Done);
    };
    hash.edit(Event::HPERSIST, packed, |edit| {
        reschedule(edit, args, first, reply, |old| match old {
            None => (NO_EXPIRY, None),
            Some(_) => (DONE, Some(None)),
        });
    });
    Ok(Next::Done)
}
