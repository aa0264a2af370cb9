//! Commands that move an element from one list to another: LMOVE RPOPLPUSH.

use keyspace::Key;
use keyspace::ListRef;
use keyspace::collection::Base;
use keyspace::collection::cell::Cell;
use keyspace::collection::run::Item;
use keyspace::collection::tree::End;
use resp::reply::Writer;

use super::super::items::cells::write_cell;
use super::super::{Args, Context, Failure, Handled, Next};
use super::{leaves, parse_end, popped, pushed};
use crate::config::Packed;
use crate::store::{List, ListEdit, Shards};

/// Moves an element from an end of the list of the first key to an end of that of the second, and answers
/// with it; whether there was one.
///
/// # Errors
/// A key is of another kind. Nothing has changed.
pub(super) fn move_one(
    shards: &mut Shards<'_>,
    [from, to]: [Key<'_>; 2],
    [taken, put]: [End; 2],
    packed: Packed,
    writer: &mut Writer<'_>,
) -> Result<bool, Failure> {
    let mut buffer = Vec::new();
    let mut source = shards.of(from);
    let Some(list) = source.find_list_to_change(from)? else {
        return Ok(false);
    };
    let len = list.items().len();
    let rank = if taken == End::Front { 0 } else { len - 1 };
    let item = list.items().at(rank).expect("a list has elements");
    let element = Item::moved_to(item, &mut buffer).name;
    if from.bytes == to.bytes {
        list.edit(pushed(put), packed, |edit| {
            edit.tell_also(popped(taken));
            edit.cut(rank, rank + 1);
            edit.push(put, std::iter::once(element));
        });
        write_cell(writer, element);
        return Ok(true);
    }
    drop(source);
    push_one(shards, to, put, packed, element)?;
    let mut source = shards.of(from);
    let list = source.find_list(from)?.expect("its shard was locked");
    match len {
        1 => list.take_all(popped(taken)),
        _ => list.edit(popped(taken), packed, |edit| edit.cut(rank, rank + 1)),
    }
    write_cell(writer, element);
    Ok(true)
}

fn push_one(
    shards: &mut Shards<'_>,
    key: Key<'_>,
    end: End,
    packed: Packed,
    element: Cell<'_>,
) -> Result<(), Failure> {
    let put = |edit: &mut ListEdit<'_, '_>| {
        edit.push(end, std::iter::once(element));
        Ok(())
    };
    shards.of(key).edit_items(key, pushed(end), packed, put)
}

fn answer(context: &mut Context<'_>, args: &Args<'_>, ends: [End; 2]) -> Handled {
    let (keys, packed) = (
        [args.key(1), args.key(2)],
        Packed::list(&context.server.settings),
    );
    let mut shards = context.store.lock_keys(keys.into_iter());
    let lacks = |list: &List<'_, '_>| {
        leaves::lacks(list, |elements| leaves::of_move(elements, ends, packed))
    };
    for key in keys {
        let mut shard = shards.of(key);
        let list = shard.find_list(key).ok().flatten();
        if list.is_some_and(|list| lacks(&list)) {
            return Ok(Next::Retry);
        }
    }
    if !move_one(&mut shards, keys, ends, packed, &mut context.reply)? {
        context.reply.null();
    }
    Ok(Next::Done)
}

/// `LMOVE source destination LEFT|RIGHT LEFT|RIGHT`
pub(super) fn lmove(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let ends = [parse_end(args, 3)?, parse_end(args, 4)?];
    answer(context, args, ends)
}

/// `RPOPLPUSH source destination`
pub(super) fn rpoplpush(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, [End::Back, End::Front])
}

/// The leaves that LMOVE and BLMOVE need of each of their lists.
pub(super) fn leaves_of_lmove(
    args: &Args<'_>,
    elements: ListRef<'_>,
    _: bool,
    packed: Packed,
) -> Vec<Base> {
    match (parse_end(args, 3), parse_end(args, 4)) {
        (Ok(taken), Ok(put)) => leaves::of_move(elements, [taken, put], packed),
        _ => Vec::new(),
    }
}

/// The leaves that RPOPLPUSH and BRPOPLPUSH need of each of their lists.
pub(super) fn leaves_of_rpoplpush(
    _: &Args<'_>,
    elements: ListRef<'_>,
    _: bool,
    packed: Packed,
) -> Vec<Base> {
    leaves::of_move(elements, [End::Back, End::Front], packed)
}
