//! HGETEX and HSETEX: fields are read or set, and told when to expire, in one command.

use keyspace::collection::cell::Cell;
use keyspace::collection::kind::Fields;
use keyspace::collection::run::Item;

use super::super::items::cells::{cell, write_value};
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::expiry::{NUMBER_NOT_POSITIVE, Scale, fields_from, set_expiry, time_of};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::store::HashEdit;

const NUMBER_INVALID: Failure = Failure::of("ERR invalid number of fields");
const TIME_MISSING: Failure = Failure::of("ERR missing expire time");
const CONDITION_TWICE: Failure =
    Failure::of("ERR Only one of FXX or FNX arguments can be specified");
const EXPIRY_TWICE: Failure =
    Failure::of("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified");

/// What happens to the expiry of fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expiry {
    /// Nothing is said of it.
    Unsaid,
    /// It stays.
    Keep,
    /// It goes.
    Clear,
    /// It is this (Unix, ms).
    At(i64),
}

/// What EX, PX, EXAT or PXAT at an index says of the time behind it: its unit, and where it is counted from.
fn time_word(context: &Context<'_>, args: &Args<'_>, at: usize) -> Option<(Scale, i64)> {
    let now = context.store.now;
    let words = [
        ("EX", (Scale::Seconds, now)),
        ("PX", (Scale::Milliseconds, now)),
        ("EXAT", (Scale::Seconds, 0)),
        ("PXAT", (Scale::Milliseconds, 0)),
    ];
    let found = words.into_iter().find(|(word, _)| args.is(at, word));
    found.map(|(_, from)| from)
}

/// Whether a field that is to expire at a time has expired by now.
fn is_over(context: &Context<'_>, expiry: Expiry) -> bool {
    let is_past = matches!(expiry, Expiry::At(time) if time <= context.store.now);
    is_past && !context.server.is_loading()
}

/// `HGETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds |
/// PERSIST] FIELDS numfields field [field ...]`
pub(super) fn hgetex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let parsed = parse_hgetex(context, args);
    let (key, packed) = (args.key(1), Packed::hash(&context.server.settings));
    let mut shard = context.store.lock(key);
    let hash = shard.find_hash_to_change(key)?;
    let (expiry, first) = parsed?;
    let is_over = is_over(context, expiry);
    let event = match expiry {
        Expiry::Clear => Event::HPERSIST,
        _ if is_over => Event::HDEL,
        _ => Event::HEXPIRE,
    };
    let reply = &mut context.reply;
    if is_over {
        // Fields go as they are shown, so the command cannot run again.
        reply.end_limit();
    }
    reply.array(args.len() - first);
    let Some(hash) = hash else {
        (first..args.len()).for_each(|_| reply.null());
        return Ok(Next::Done);
    };
    hash.edit(event, packed, |edit| {
        for at in first..args.len() {
            let name = cell(args, at).ok();
            let Some((name, item)) = name.and_then(|name| Some((name, edit.get(name)?))) else {
                reply.null();
                continue;
            };
            write_value::<Fields>(reply, &item);
            // A field that has gone is not there again.
            if is_over {
                edit.remove(name);
            }
        }
        // Without room for the reply nothing is changed.
        if is_over || reply.is_cut() || expiry == Expiry::Unsaid {
            return;
        }
        for name in (first..args.len()).filter_map(|at| cell(args, at).ok()) {
            match (expiry, edit.get(name).map(|item| item.expiry)) {
                (Expiry::At(time), Some(_)) => set_expiry(edit, name, time, false),
                (Expiry::Clear, Some(Some(_))) => edit.reschedule(name, None),
                _ => {}
            }
        }
    });
    Ok(Next::Done)
}

/// What happens to the expiry, and the index of the first field.
fn parse_hgetex(context: &Context<'_>, args: &Args<'_>) -> Result<(Expiry, usize), Failure> {
    let (expiry, at) = if let Some(from) = time_word(context, args, 2) {
        (Expiry::At(time_of(context, args, 3, from)?), 4)
    } else if args.is(2, "PERSIST") {
        (Expiry::Clear, 3)
    } else {
        (Expiry::Unsaid, 2)
    };
    Ok((expiry, fields_from(args, at, NUMBER_NOT_POSITIVE)?))
}

/// Which fields must be there for any to be set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    /// FNX: none.
    NoneIs,
    /// FXX: all.
    AllAre,
}

/// The options of HSETEX, and the index of the first field.
struct SetOptions {
    /// Whether the key must be there, or missing.
    is_there: Option<bool>,
    condition: Option<Condition>,
    expiry: Expiry,
    first: usize,
}

/// `HSETEX key [NX | XX] [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds |
/// PXAT unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]`
pub(super) fn hsetex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let SetOptions {
        is_there,
        condition,
        expiry,
        first,
    } = SetOptions::parse(context, args)?;
    let (key, packed) = (args.key(1), Packed::hash(&context.server.settings));
    for at in first..args.len() {
        cell(args, at)?;
    }
    let is_over = is_over(context, expiry);
    let mut shard = context.store.lock(key);
    let is_missing = shard.find_hash(key)?.is_none();
    let is_other = is_there.is_some_and(|is_there| is_there == is_missing);
    if is_other || (is_missing && condition == Some(Condition::AllAre)) {
        context.reply.integer(0);
        return Ok(Next::Done);
    }
    let is_set = shard.edit_hash(key, Event::HSET, packed, |edit| {
        let pairs = || (first..args.len()).step_by(2);
        if let Some(condition) = condition {
            let wanted = condition == Condition::AllAre;
            for at in pairs() {
                if edit.get(cell(args, at)?).is_some() != wanted {
                    return Ok(false);
                }
            }
        }
        match expiry {
            Expiry::At(_) if is_over => edit.tell_also(Event::HDEL),
            Expiry::At(_) => edit.tell_also(Event::HEXPIRE),
            _ => {}
        }
        for at in pairs() {
            set(edit, (cell(args, at)?, cell(args, at + 1)?), expiry);
            if is_over {
                edit.remove(cell(args, at)?);
            }
        }
        Ok(true)
    })?;
    context.reply.integer(i64::from(is_set));
    Ok(Next::Done)
}

/// Sets a field.
fn set(edit: &mut HashEdit<'_, '_>, (name, value): (Cell<'_>, Cell<'_>), expiry: Expiry) {
    let expiry = match expiry {
        Expiry::Unsaid | Expiry::Clear => None,
        Expiry::Keep => edit.get(name).and_then(|item| item.expiry),
        Expiry::At(time) => Some(time as u64),
    };
    edit.set(&Item {
        expiry,
        ..Item::pair(name, value)
    });
}

impl SetOptions {
    /// Reads the options up to the fields.
    fn parse(context: &Context<'_>, args: &Args<'_>) -> Result<SetOptions, Failure> {
        let (mut condition, mut expiry, mut at) = (None, Expiry::Unsaid, 2);
        let mut is_there = None;
        while at < args.len() {
            if args.is(at, "FIELDS") {
                let first = pairs_from(context, args, at)?;
                return Ok(SetOptions {
                    is_there,
                    condition,
                    expiry,
                    first,
                });
            }
            if let Some(from) = time_word(context, args, at) {
                if expiry != Expiry::Unsaid {
                    return Err(EXPIRY_TWICE);
                }
                at += 1;
                if at == args.len() {
                    return Err(TIME_MISSING);
                }
                expiry = Expiry::At(time_of(context, args, at, from)?);
            } else if args.is(at, "KEEPTTL") {
                if expiry != Expiry::Unsaid {
                    return Err(EXPIRY_TWICE);
                }
                expiry = Expiry::Keep;
            } else if args.is(at, "NX") || args.is(at, "XX") {
                let wanted = args.is(at, "XX");
                if is_there
                    .replace(wanted)
                    .is_some_and(|other| other != wanted)
                {
                    return Err(failure::SYNTAX);
                }
            } else if args.is(at, "FNX") || args.is(at, "FXX") {
                let all = args.is(at, "FXX");
                let word = if all {
                    Condition::AllAre
                } else {
                    Condition::NoneIs
                };
                if condition.replace(word).is_some() {
                    return Err(CONDITION_TWICE);
                }
            } else {
                return Err(Failure::about("ERR unknown argument: ", args.get(at), ""));
            }
            at += 1;
        }
        Err(super::expiry::FIELDS_MISSING)
    }
}

/// The index of the first field behind `FIELDS numfields`, which all other arguments follow in pairs.
fn pairs_from(context: &Context<'_>, args: &Args<'_>, at: usize) -> Result<usize, Failure> {
    let arity = || Failure::wrong_arity(&context.command.full_name);
    if at + 3 >= args.len() {
        return Err(arity());
    }
    let count = args.integer(at + 1).ok();
    let count = count.filter(|count| (1..=i64::from(i32::MAX)).contains(count));
    let (count, first) = (count.ok_or(NUMBER_INVALID)?, at + 2);
    let left = args.len() - first;
    if !left.is_multiple_of(2) || count != left as i64 / 2 {
        return Err(arity());
    }
    Ok(first)
}
