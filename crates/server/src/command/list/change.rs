//! Commands that change elements that are there: LSET LINSERT LREM LTRIM.

use keyspace::ListRef;
use keyspace::collection::Base;
use keyspace::collection::cell::Cell;

use super::super::items::cells::cell;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::{leaves, rank_of, ranks_of};
use crate::config::Packed;
use crate::observe::notify::Event;

const NO_INDEX: Failure = Failure::of("ERR index out of range");

/// `LSET key index element`
pub(super) fn lset(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, packed) = (args.key(1), Packed::list(&context.server.settings));
    let mut shard = context.store.lock(key);
    let list = shard.find_list(key)?.ok_or(failure::NO_SUCH_KEY)?;
    let (index, element) = (args.integer(2)?, cell(args, 3)?);
    let rank = rank_of(index, list.items().len()).ok_or(NO_INDEX)?;
    if leaves::lacks(&list, |elements| leaves::of_put(elements, rank, packed)) {
        return Ok(Next::Retry);
    }
    list.edit(Event::LSET, packed, |edit| edit.put(rank, element));
    context.reply.ok();
    Ok(Next::Done)
}

/// The rank of the first element that is equal to one.
fn find(elements: ListRef<'_>, wanted: Cell<'_>) -> Option<u64> {
    let (mut rank, mut is_found) = (0, false);
    elements.visit(0, elements.len(), |element| {
        is_found = element == wanted;
        rank += u64::from(!is_found);
        !is_found
    });
    is_found.then_some(rank)
}

/// `LINSERT key BEFORE|AFTER pivot element`
pub(super) fn linsert(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let is_behind = args.is(2, "AFTER");
    if !is_behind && !args.is(2, "BEFORE") {
        return Err(failure::SYNTAX);
    }
    let (key, packed) = (args.key(1), Packed::list(&context.server.settings));
    let (pivot, element) = (cell(args, 3)?, cell(args, 4)?);
    let mut shard = context.store.lock(key);
    let Some(list) = shard.find_list(key)? else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    if list.has_cold_leaves() {
        return Ok(Next::Retry);
    }
    let Some(rank) = find(list.items(), pivot) else {
        context.reply.integer(-1);
        return Ok(Next::Done);
    };
    let len = list.edit(Event::LINSERT, packed, |edit| {
        edit.insert(rank + u64::from(is_behind), element);
        edit.items().len()
    });
    context.reply.integer(len as i64);
    Ok(Next::Done)
}

/// `LREM key count element`
pub(super) fn lrem(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (count, wanted) = (args.integer(2)?, cell(args, 3)?);
    let (key, packed) = (args.key(1), Packed::list(&context.server.settings));
    let mut shard = context.store.lock(key);
    let Some(list) = shard.find_list(key)? else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    if list.has_cold_leaves() {
        return Ok(Next::Retry);
    }
    let (elements, len) = (list.items(), list.items().len());
    let most = match count.unsigned_abs() {
        0 => u64::MAX,
        most => most,
    };
    let (mut ranks, mut looked) = (Vec::new(), 0);
    let mut visit = |element: Cell<'_>| {
        looked += 1;
        if element == wanted {
            ranks.push(if count < 0 { len - looked } else { looked - 1 });
        }
        (ranks.len() as u64) < most
    };
    match count < 0 {
        true => elements.visit_back(&mut visit),
        false => elements.visit(0, len, &mut visit),
    }
    if count < 0 {
        ranks.reverse();
    }
    let removed = ranks.len() as u64;
    if removed == len {
        list.take_all(Event::LREM);
    } else if removed > 0 {
        list.edit(Event::LREM, packed, |edit| edit.remove_ranks(&ranks));
    }
    context.reply.integer(removed as i64);
    Ok(Next::Done)
}

/// `LTRIM key start stop`
pub(super) fn ltrim(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (start, stop) = (args.integer(2)?, args.integer(3)?);
    let (key, packed) = (args.key(1), Packed::list(&context.server.settings));
    let mut shard = context.store.lock(key);
    if let Some(list) = shard.find_list(key)? {
        let len = list.items().len();
        let kept = ranks_of(start, stop, len);
        let needed = |elements: ListRef<'_>| leaves::of_trim(elements, kept.clone(), packed);
        if leaves::lacks(&list, needed) {
            return Ok(Next::Retry);
        }
        if kept.is_empty() {
            list.take_all(Event::LTRIM);
        } else if kept == (0..len) {
            list.keep(Event::LTRIM);
        } else {
            list.edit(Event::LTRIM, packed, |edit| {
                edit.cut(kept.end, len);
                edit.cut(0, kept.start);
            });
        }
    }
    context.reply.ok();
    Ok(Next::Done)
}

/// The leaves that LSET needs.
pub(super) fn leaves_of_lset(
    args: &Args<'_>,
    elements: ListRef<'_>,
    _: bool,
    packed: Packed,
) -> Vec<Base> {
    let index = args.integer(2).ok();
    let rank = index.and_then(|index| rank_of(index, elements.len()));
    rank.map_or(Vec::new(), |rank| leaves::of_put(elements, rank, packed))
}

/// The leaves that LTRIM needs.
pub(super) fn leaves_of_ltrim(
    args: &Args<'_>,
    elements: ListRef<'_>,
    _: bool,
    packed: Packed,
) -> Vec<Base> {
    match (args.integer(2), args.integer(3)) {
        (Ok(start), Ok(stop)) => {
            let kept = ranks_of(start, stop, elements.len());
            leaves::of_trim(elements, kept, packed)
        }
        _ => Vec::new(),
    }
}
