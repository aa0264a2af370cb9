//! Commands that put elements at an end: LPUSH RPUSH LPUSHX RPUSHX.

use keyspace::ListRef;
use keyspace::collection::Base;
use keyspace::collection::tree::End;

use super::super::items::cells::cell;
use super::super::{Args, Context, Handled, Next};
use super::{leaves, pushed};
use crate::config::Packed;
use crate::store::ListEdit;

/// Puts the elements of a request at an end.
///
/// Budget: one lookup of the key, a look at the leaf at the end, no allocation while it keeps its size class.
#[inline]
fn push(context: &mut Context<'_>, args: &Args<'_>, end: End, is_made: bool) -> Handled {
    let (key, packed) = (args.key(1), Packed::list(&context.server.settings));
    for at in 2..args.len() {
        cell(args, at)?;
    }
    let elements = (2..args.len()).filter_map(|at| cell(args, at).ok());
    let mut shard = context.store.lock(key);
    let put = |edit: &mut ListEdit<'_, '_>| {
        edit.push(end, elements);
        edit.items().len()
    };
    if let Some(list) = shard.find_list(key)? {
        if leaves::lacks(&list, |elements| leaves::of_push(elements, end, packed)) {
            return Ok(Next::Retry);
        }
        let len = list.edit(pushed(end), packed, put);
        context.reply.integer(len as i64);
        return Ok(Next::Done);
    }
    let len = match is_made {
        true => shard.edit_items(key, pushed(end), packed, |edit| Ok(put(edit)))?,
        false => 0,
    };
    context.reply.integer(len as i64);
    Ok(Next::Done)
}

/// `LPUSH key element [element ...]`
pub(super) fn lpush(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    push(context, args, End::Front, true)
}

/// `RPUSH key element [element ...]`
pub(super) fn rpush(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    push(context, args, End::Back, true)
}

/// `LPUSHX key element [element ...]`
pub(super) fn lpushx(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    push(context, args, End::Front, false)
}

/// `RPUSHX key element [element ...]`
pub(super) fn rpushx(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    push(context, args, End::Back, false)
}

/// The leaves that LPUSH and LPUSHX need.
pub(super) fn leaves_of_lpush(
    _: &Args<'_>,
    elements: ListRef<'_>,
    _: bool,
    packed: Packed,
) -> Vec<Base> {
    leaves::of_push(elements, End::Front, packed)
}

/// The leaves that RPUSH and RPUSHX need.
pub(super) fn leaves_of_rpush(
    _: &Args<'_>,
    elements: ListRef<'_>,
    _: bool,
    packed: Packed,
) -> Vec<Base> {
    leaves::of_push(elements, End::Back, packed)
}
