//! Commands that remove the members of a range: ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREMRANGEBYLEX.

use keyspace::SortedRef;
use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::sorted::score_of;

use super::super::{Args, Context, Handled, Next};
use super::bounds::{Lex, Ranks, Scores};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::store::SortedSetEdit;

/// Removes the members of some ranks.
fn take_ranks(edit: &mut SortedSetEdit<'_, '_>, from: u64, to: u64) {
    let mut buffer = Vec::new();
    for _ in from..to {
        let item = edit.items().at(from).expect("the rank is below the length");
        let (item, score) = (item.moved_to(&mut buffer), score_of(&item));
        edit.take(item.name, score);
    }
}

fn remove(
    context: &mut Context<'_>,
    args: &Args<'_>,
    event: Event,
    ranks: impl Fn(SortedRef<'_>) -> Option<(u64, u64)>,
) -> Handled {
    let (key, packed) = (args.key(1), Packed::sorted_set(&context.server.settings));
    let mut shard = context.store.lock(key);
    let Some(set) = shard.find_sorted_set(key)? else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    let is_there = |&(from, to): &(u64, u64)| {
        !set.has_cold_leaves() || cold_between(set.sorted(), from, to).is_empty()
    };
    let Some((from, to)) = ranks(set.sorted()).filter(is_there) else {
        // Members came or went since the leaves were found.
        return Ok(Next::Retry);
    };
    match to - from == set.sorted().len() {
        true => set.take_all(event),
        false => set.edit(event, packed, |edit| take_ranks(edit, from, to)),
    }
    context.reply.integer((to - from) as i64);
    Ok(Next::Done)
}

/// The records of the cold leaves of the members of some ranks. Where these are all, none is needed.
fn cold_between(members: SortedRef<'_>, from: u64, to: u64) -> Vec<Base> {
    match to - from == members.len() {
        true => Vec::new(),
        false => members.items().cold_between(from, to),
    }
}

/// The records of the cold leaves of a range: those of its `ends` first, without which its ranks are not
/// known.
fn cold_within(
    members: SortedRef<'_>,
    ends: Vec<Base>,
    ranks: impl FnOnce() -> Option<(u64, u64)>,
) -> Vec<Base> {
    if !ends.is_empty() {
        return ends;
    }
    ranks().map_or(Vec::new(), |(from, to)| cold_between(members, from, to))
}

/// The leaves that ZREMRANGEBYRANK needs.
pub(super) fn leaves_by_rank(args: &Args<'_>, tree: &Collection, _: bool) -> Vec<Base> {
    let (Ok(range), Some(members)) = (Ranks::parse(args, 2, 3), SortedRef::of(tree)) else {
        return Vec::new();
    };
    let (from, to) = range.ranks(members.len());
    cold_between(members, from, to)
}

/// The leaves that ZREMRANGEBYSCORE needs: first those of the ends.
pub(super) fn leaves_by_score(args: &Args<'_>, tree: &Collection, _: bool) -> Vec<Base> {
    match (Scores::parse(args, 2, 3), SortedRef::of(tree)) {
        (Ok(range), Some(members)) => {
            let ends = range.cold(members);
            cold_within(members, ends, || range.ranks(members))
        }
        _ => Vec::new(),
    }
}

/// The leaves that ZREMRANGEBYLEX needs: first those of the ends.
pub(super) fn leaves_by_lex(args: &Args<'_>, tree: &Collection, _: bool) -> Vec<Base> {
    match (Lex::parse(args, 2, 3), SortedRef::of(tree)) {
        (Ok(range), Some(members)) => {
            let ends = range.cold(members);
            cold_within(members, ends, || range.ranks(members))
        }
        _ => Vec::new(),
    }
}

/// `ZREMRANGEBYRANK key start stop`
pub(super) fn zremrangebyrank(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let range = Ranks::parse(args, 2, 3)?;
    let ranks = |members: SortedRef<'_>| Some(range.ranks(members.len()));
    remove(context, args, Event::ZREMRANGEBYRANK, ranks)
}

/// `ZREMRANGEBYSCORE key min max`
pub(super) fn zremrangebyscore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let range = Scores::parse(args, 2, 3)?;
    let ranks = |members: SortedRef<'_>| range.ranks(members);
    remove(context, args, Event::ZREMRANGEBYSCORE, ranks)
}

/// `ZREMRANGEBYLEX key min max`
pub(super) fn zremrangebylex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let range = Lex::parse(args, 2, 3)?;
    let ranks = |members: SortedRef<'_>| range.ranks(members);
    remove(context, args, Event::ZREMRANGEBYLEX, ranks)
}
