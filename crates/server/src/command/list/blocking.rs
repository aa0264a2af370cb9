//! Commands that wait for elements: BLPOP BRPOP BLMPOP BLMOVE BRPOPLPUSH. What they have in common with those
//! of sorted sets is in [`super::super::blocking`].

use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::tree::End;
use keyspace::{Key, Kind, ListRef};
use resp::reply::Writer;

use super::super::blocking::{Taker, take_or_wait};
use super::super::park::{self, Unit};
use super::super::{Args, Context, Failure, Handled};
use super::leaves;
use super::move_one::move_one;
use super::parse_end;
use super::pop::{self, Several, take, take_named};
use crate::config::{Packed, Settings};
use crate::observe::waits::Asks;
use crate::store::Shards;

pub(super) static TAKER: Taker = Taker {
    kind: Kind::List,
    lacks,
    has: |_, _, _| true,
    give,
    gone: |_| None,
    leaves: leaves_of_asks,
};

fn leaves_of_asks(tree: &Collection, asks: &Asks, settings: &Settings) -> Vec<Base> {
    ListRef::of(tree).map_or(Vec::new(), |elements| {
        of_asks(elements, asks, Packed::list(settings))
    })
}

/// The leaves that are needed for what a connection waits for: of the list that it waits for, and of that to
/// which an element goes.
fn of_asks(elements: ListRef<'_>, asks: &Asks, packed: Packed) -> Vec<Base> {
    match *asks {
        Asks::Element(end) => leaves::of_pop(elements, (end, 1), packed),
        Asks::Elements(end, most) => leaves::of_pop(elements, (end, most), packed),
        Asks::Move(ends, _) => leaves::of_move(elements, ends, packed),
        _ => Vec::new(),
    }
}

/// Whether leaves are cold of what is asked for: elements came or went since they were found.
fn lacks(shards: &mut Shards<'_>, key: Key<'_>, asks: &Asks, settings: &Settings) -> bool {
    let packed = Packed::list(settings);
    let to = match asks {
        Asks::Move(_, to) => &to[..],
        _ => key.bytes,
    };
    let to = Key {
        bytes: to,
        hash: shards.hash_of(to),
    };
    [key, to].into_iter().any(|key| {
        let mut shard = shards.of(key);
        let list = shard.find_list(key).ok().flatten();
        list.is_some_and(|list| leaves::lacks(&list, |elements| of_asks(elements, asks, packed)))
    })
}

/// Does what is asked for with a list that has elements.
fn give(
    shards: &mut Shards<'_>,
    key: Key<'_>,
    asks: &Asks,
    settings: &Settings,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    let packed = Packed::list(settings);
    if let Asks::Move(ends, to) = asks {
        let to = Key {
            bytes: to,
            hash: shards.hash_of(to),
        };
        return move_one(shards, [key, to], *ends, packed, writer).map(drop);
    }
    let mut shard = shards.of(key);
    let Some(list) = shard.find_list_to_change(key)? else {
        return Ok(());
    };
    match *asks {
        Asks::Elements(end, most) => take_named(list, (key.bytes, (end, most)), packed, writer),
        Asks::Element(end) => {
            writer.array(2);
            writer.bulk(key.bytes);
            take(list, (end, 1), packed, writer);
        }
        _ => {}
    }
    Ok(())
}

fn pop(context: &mut Context<'_>, args: &Args<'_>, end: End) -> Handled {
    let last = args.len() - 1;
    let until_ms = park::deadline(context.store.now, args, last, Unit::Seconds)?;
    let keys = (1..last).map(|at| args.key(at));
    let asks = Asks::Element(end);
    take_or_wait(context, keys.clone(), (until_ms, asks), keys)
}

/// `BLPOP key [key ...] timeout`
pub(super) fn blpop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    pop(context, args, End::Front)
}

/// `BRPOP key [key ...] timeout`
pub(super) fn brpop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    pop(context, args, End::Back)
}

/// `BLMPOP timeout numkeys key [key ...] LEFT|RIGHT [COUNT count]`
pub(super) fn blmpop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let Several { keys, end, most } = Several::parse(args, 2)?;
    let until_ms = park::deadline(context.store.now, args, 1, Unit::Seconds)?;
    let keys = keys.map(|at| args.key(at));
    let asks = Asks::Elements(end, most);
    take_or_wait(context, keys.clone(), (until_ms, asks), keys)
}

fn move_or_wait(
    context: &mut Context<'_>,
    args: &Args<'_>,
    ends: [End; 2],
    timeout_at: usize,
) -> Handled {
    let until_ms = park::deadline(context.store.now, args, timeout_at, Unit::Seconds)?;
    let (from, to) = (args.key(1), args.key(2));
    let asks = Asks::Move(ends, to.bytes.into());
    let (keys, locked) = (std::iter::once(from), [from, to].into_iter());
    take_or_wait(context, keys, (until_ms, asks), locked)
}

/// `BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout`
pub(super) fn blmove(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let ends = [parse_end(args, 3)?, parse_end(args, 4)?];
    move_or_wait(context, args, ends, 5)
}

/// `BRPOPLPUSH source destination timeout`
pub(super) fn brpoplpush(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    move_or_wait(context, args, [End::Back, End::Front], 3)
}

/// The leaves that BLPOP needs.
pub(super) fn leaves_of_blpop(
    _: &Args<'_>,
    elements: ListRef<'_>,
    _: bool,
    packed: Packed,
) -> Vec<Base> {
    leaves::of_pop(elements, (End::Front, 1), packed)
}

/// The leaves that BRPOP needs.
pub(super) fn leaves_of_brpop(
    _: &Args<'_>,
    elements: ListRef<'_>,
    _: bool,
    packed: Packed,
) -> Vec<Base> {
    leaves::of_pop(elements, (End::Back, 1), packed)
}

/// The leaves that BLMPOP needs.
pub(super) fn leaves_of_blmpop(
    args: &Args<'_>,
    elements: ListRef<'_>,
    _: bool,
    packed: Packed,
) -> Vec<Base> {
    pop::leaves_of_several(Several::parse(args, 2).ok(), elements, packed)
}
