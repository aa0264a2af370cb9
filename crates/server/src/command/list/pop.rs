//! Commands that take elements from an end: LPOP RPOP LMPOP.

use keyspace::ListRef;
use keyspace::collection::Base;
use keyspace::collection::tree::End;
use resp::reply::Writer;

use super::super::items::cells::write_cell;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::{leaves, parse_end, popped};
use crate::config::Packed;
use crate::store::{List, Taking};

const NOT_POSITIVE: Failure = Failure::of("ERR value is out of range, must be positive");
const NO_KEYS: Failure = Failure::of("ERR numkeys should be greater than 0");
const NO_COUNT: Failure = Failure::of("ERR count should be greater than 0");

/// Takes at most `most` elements from an end, and answers with each; with the key, when it is the last.
pub(super) fn take(
    list: List<'_, '_>,
    (end, most): (End, u64),
    packed: Packed,
    writer: &mut Writer<'_>,
) {
    let (elements, len) = (list.items(), list.items().len());
    let count = most.min(len);
    match (end, count) {
        (End::Front, _) => elements.visit(0, count, |element| {
            write_cell(writer, element);
            true
        }),
        (End::Back, 1) => elements.visit(len - 1, len, |element| {
            write_cell(writer, element);
            false
        }),
        (End::Back, _) => {
            let mut left = count;
            elements.visit_back(|element| {
                let is_wanted = left > 0;
                if is_wanted {
                    write_cell(writer, element);
                    left -= 1;
                }
                is_wanted
            });
        }
    }
    if count == len {
        return list.take_all(popped(end));
    }
    list.edit(popped(end), packed, |edit| match end {
        End::Front => edit.cut(0, count),
        End::Back => edit.cut(len - count, len),
    });
}

fn pop(context: &mut Context<'_>, args: &Args<'_>, end: End) -> Handled {
    if args.len() > 3 {
        return Err(Failure::wrong_arity(&context.command.full_name));
    }
    let count = match args.len() {
        2 => None,
        _ => Some(count_of(args, 2)?),
    };
    let (key, packed) = (args.key(1), Packed::list(&context.server.settings));
    if let Some(next) = context.foresee_taken([key], Taking::Elements(end, count.unwrap_or(1)))? {
        return Ok(next);
    }
    let mut shard = context.store.lock(key);
    let reply = &mut context.reply;
    let Some(list) = shard.find_list_to_change(key)? else {
        match count {
            None => reply.null(),
            Some(_) => reply.null_array(),
        }
        return Ok(Next::Done);
    };
    let taken = (end, count.unwrap_or(1));
    if leaves::lacks(&list, |elements| leaves::of_pop(elements, taken, packed)) {
        return Ok(Next::Retry);
    }
    if let Some(count) = count {
        reply.array(count.min(list.items().len()) as usize);
        if count == 0 {
            return Ok(Next::Done);
        }
    }
    take(list, taken, packed, reply);
    Ok(Next::Done)
}

fn count_of(args: &Args<'_>, at: usize) -> Result<u64, Failure> {
    let count = args.integer(at).ok();
    count
        .and_then(|count| u64::try_from(count).ok())
        .ok_or(NOT_POSITIVE)
}

/// `LPOP key [count]`
pub(super) fn lpop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    pop(context, args, End::Front)
}

/// `RPOP key [count]`
pub(super) fn rpop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    pop(context, args, End::Back)
}

/// `numkeys key [key ...] LEFT|RIGHT [COUNT count]` from an argument on.
pub(super) struct Several {
    /// The arguments that are keys.
    pub(super) keys: std::ops::Range<usize>,
    pub(super) end: End,
    pub(super) most: u64,
}

impl Several {
    pub(super) fn parse(args: &Args<'_>, at: usize) -> Result<Several, Failure> {
        let positive = |at: usize| {
            let count = args.integer(at).ok();
            count
                .and_then(|count| u64::try_from(count).ok())
                .filter(|&count| count > 0)
        };
        let count = positive(at).ok_or(NO_KEYS)?;
        let first = at + 1;
        let behind = usize::try_from(count).ok();
        let behind = behind.and_then(|count| first.checked_add(count));
        let behind = behind.filter(|&behind| behind < args.len());
        let behind = behind.ok_or(failure::SYNTAX)?;
        let end = parse_end(args, behind)?;
        let mut most = None;
        let mut at = behind + 1;
        while at < args.len() {
            if most.is_some() || !args.is(at, "COUNT") || at + 1 == args.len() {
                return Err(failure::SYNTAX);
            }
            most = Some(positive(at + 1).ok_or(NO_COUNT)?);
            at += 2;
        }
        Ok(Several {
            keys: first..behind,
            end,
            most: most.unwrap_or(1),
        })
    }
}

/// Answers with the name of a key and the elements that are taken from it.
pub(super) fn take_named(
    list: List<'_, '_>,
    (key, what): (&[u8], (End, u64)),
    packed: Packed,
    writer: &mut Writer<'_>,
) {
    writer.array(2);
    writer.bulk(key);
    writer.array(what.1.min(list.items().len()) as usize);
    take(list, what, packed, writer);
}

/// `LMPOP numkeys key [key ...] LEFT|RIGHT [COUNT count]`
pub(super) fn lmpop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let Several { keys, end, most } = Several::parse(args, 1)?;
    let packed = Packed::list(&context.server.settings);
    let keys = keys.map(|at| args.key(at));
    if let Some(next) = context.foresee_taken(keys.clone(), Taking::Elements(end, most))? {
        return Ok(next);
    }
    let mut shards = context.store.lock_keys(keys.clone());
    for key in keys {
        if let Some(list) = shards.of(key).find_list_to_change(key)? {
            if leaves::lacks(&list, |elements| {
                leaves::of_pop(elements, (end, most), packed)
            }) {
                return Ok(Next::Retry);
            }
            take_named(list, (key.bytes, (end, most)), packed, &mut context.reply);
            return Ok(Next::Done);
        }
    }
    context.reply.null_array();
    Ok(Next::Done)
}

/// The leaves that are needed.
fn leaves_of_one(args: &Args<'_>, elements: ListRef<'_>, end: End, packed: Packed) -> Vec<Base> {
    let count = match args.len() {
        2 => 1,
        _ => count_of(args, 2).unwrap_or(0),
    };
    leaves::of_pop(elements, (end, count), packed)
}

/// The leaves that LPOP needs.
pub(super) fn leaves_of_lpop(
    args: &Args<'_>,
    elements: ListRef<'_>,
    _: bool,
    packed: Packed,
) -> Vec<Base> {
    leaves_of_one(args, elements, End::Front, packed)
}

/// The leaves that RPOP needs.
pub(super) fn leaves_of_rpop(
    args: &Args<'_>,
    elements: ListRef<'_>,
    _: bool,
    packed: Packed,
) -> Vec<Base> {
    leaves_of_one(args, elements, End::Back, packed)
}

/// The leaves that LMPOP needs.
pub(super) fn leaves_of_lmpop(
    args: &Args<'_>,
    elements: ListRef<'_>,
    _: bool,
    packed: Packed,
) -> Vec<Base> {
    leaves_of_several(Several::parse(args, 1).ok(), elements, packed)
}

/// The leaves that are needed.
pub(super) fn leaves_of_several(
    several: Option<Several>,
    elements: ListRef<'_>,
    packed: Packed,
) -> Vec<Base> {
    several.map_or(Vec::new(), |Several { end, most, .. }| {
        leaves::of_pop(elements, (end, most), packed)
    })
}
