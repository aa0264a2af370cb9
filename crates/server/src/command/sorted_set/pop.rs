//! Commands that take members from an end: ZPOPMIN ZPOPMAX ZMPOP.

use keyspace::SortedRef;
use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::kind;
use keyspace::collection::sorted::score_of;
use keyspace::collection::tree::End;
use resp::reply::{Protocol, Writer};

use super::super::items::cells::{write_cell, write_value};
use super::super::{Args, Context, Failure, Handled, Next, failure};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::store::{SortedSet, SortedSetEdit, Taking};

const NOT_POSITIVE: Failure = Failure::of("ERR value is out of range, must be positive");
const NO_KEYS: Failure = Failure::of("ERR numkeys should be greater than 0");
const NO_COUNT: Failure = Failure::of("ERR count should be greater than 0");

/// Takes members from an end, and answers with them and their scores: as pairs, if `nests`.
pub(super) fn take(
    writer: &mut Writer<'_>,
    set: SortedSet<'_, '_>,
    (end, count): (End, u64),
    packed: Packed,
    nests: bool,
) {
    let event = match end {
        End::Front => Event::ZPOPMIN,
        End::Back => Event::ZPOPMAX,
    };
    let mut buffer = Vec::new();
    set.edit(event, packed, |edit: &mut SortedSetEdit<'_, '_>| {
        for _ in 0..count {
            let items = edit.items();
            let rank = match end {
                End::Front => 0,
                End::Back => items.len() - 1,
            };
            let item = items.at(rank).expect("the rank is below the length");
            let item = item.moved_to(&mut buffer);
            if nests {
                writer.array(2);
            }
            write_cell(writer, item.name);
            write_value::<kind::Scores>(writer, &item);
            edit.take(item.name, score_of(&item));
        }
    });
}

/// Answers with the name of a key, and with pairs that are taken from it.
pub(super) fn take_named(
    writer: &mut Writer<'_>,
    (key, set): (&[u8], SortedSet<'_, '_>),
    (end, most): (End, u64),
    packed: Packed,
) {
    let count = most.min(set.sorted().len());
    writer.array(2);
    writer.bulk(key);
    writer.array(count as usize);
    take(writer, set, (end, count), packed, true);
}

/// The records of the cold leaves that have so many members of an end.
pub(super) fn cold_at_end((end, count): (End, u64), members: SortedRef<'_>) -> Vec<Base> {
    let len = members.len();
    let count = count.min(len);
    match end {
        End::Front => members.items().cold_between(0, count),
        End::Back => members.items().cold_between(len - count, len),
    }
}

/// Whether a set lacks members in memory that are to be taken: others came or went since its leaves were
/// found.
pub(super) fn lacks(set: &SortedSet<'_, '_>, (end, count): (End, u64)) -> bool {
    set.has_cold_leaves() && !cold_at_end((end, count), set.sorted()).is_empty()
}

/// The leaves that ZPOPMIN needs.
pub(super) fn leaves_of_zpopmin(args: &Args<'_>, tree: &Collection, _: bool) -> Vec<Base> {
    leaves_of_pop(args, tree, End::Front)
}

/// The leaves that ZPOPMAX needs.
pub(super) fn leaves_of_zpopmax(args: &Args<'_>, tree: &Collection, _: bool) -> Vec<Base> {
    leaves_of_pop(args, tree, End::Back)
}

fn leaves_of_pop(args: &Args<'_>, tree: &Collection, end: End) -> Vec<Base> {
    match (count_of(args), SortedRef::of(tree)) {
        (Ok(count), Some(members)) => cold_at_end((end, count.unwrap_or(1)), members),
        _ => Vec::new(),
    }
}

/// The leaves that ZMPOP needs of each of its keys.
pub(super) fn leaves_of_zmpop(args: &Args<'_>, tree: &Collection, _: bool) -> Vec<Base> {
    leaves_of_choice(Choice::parse(args, 1), tree)
}

pub(super) fn leaves_of_choice(choice: Result<Choice, Failure>, tree: &Collection) -> Vec<Base> {
    match (choice, SortedRef::of(tree)) {
        (Ok(Choice { end, most, .. }), Some(members)) => cold_at_end((end, most), members),
        _ => Vec::new(),
    }
}

/// How many members ZPOPMIN takes, if the request says it.
fn count_of(args: &Args<'_>) -> Result<Option<u64>, Failure> {
    if args.len() == 2 {
        return Ok(None);
    }
    let count = args.integer(2).ok();
    let count = count.and_then(|count| u64::try_from(count).ok());
    count.map(Some).ok_or(NOT_POSITIVE)
}

/// `ZPOPMIN key [count]`
pub(super) fn zpopmin(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    pop_of_one(context, args, End::Front)
}

/// `ZPOPMAX key [count]`
pub(super) fn zpopmax(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    pop_of_one(context, args, End::Back)
}

fn pop_of_one(context: &mut Context<'_>, args: &Args<'_>, end: End) -> Handled {
    if args.len() > 3 {
        return Err(failure::SYNTAX);
    }
    let count = count_of(args)?;
    let (key, packed) = (args.key(1), Packed::sorted_set(&context.server.settings));
    if let Some(next) = context.foresee_taken([key], Taking::Scored(end, count.unwrap_or(1)))? {
        return Ok(next);
    }
    let mut shard = context.store.lock(key);
    let reply = &mut context.reply;
    let wanted = count.unwrap_or(1);
    let Some(set) = shard.find_sorted_set(key)?.filter(|_| wanted > 0) else {
        reply.empty_array();
        return Ok(Next::Done);
    };
    let wanted = wanted.min(set.sorted().len());
    if lacks(&set, (end, wanted)) {
        return Ok(Next::Retry);
    }
    let nests = count.is_some() && reply.protocol == Protocol::Resp3;
    reply.array(wanted as usize * if nests { 1 } else { 2 });
    take(reply, set, (end, wanted), packed, nests);
    Ok(Next::Done)
}

/// `numkeys key [key ...] MIN|MAX [COUNT count]` from an argument on.
pub(super) struct Choice {
    /// The arguments that are keys.
    pub(super) keys: std::ops::Range<usize>,
    pub(super) end: End,
    pub(super) most: u64,
}

impl Choice {
    pub(super) fn parse(args: &Args<'_>, at: usize) -> Result<Choice, Failure> {
        let positive = |at: usize, failure: Failure| {
            let number = args.integer(at).ok();
            let number = number.and_then(|number| u64::try_from(number).ok());
            number.filter(|&number| number > 0).ok_or(failure)
        };
        let count = usize::try_from(positive(at, NO_KEYS)?).unwrap_or(usize::MAX);
        let end_at = count.saturating_add(at + 1);
        if end_at >= args.len() {
            return Err(failure::SYNTAX);
        }
        let end = match () {
            () if args.is(end_at, "MIN") => End::Front,
            () if args.is(end_at, "MAX") => End::Back,
            () => return Err(failure::SYNTAX),
        };
        let most = match args.len() - end_at {
            1 => 1,
            // As in Redis, what stands behind a wrong count is not looked at.
            3.. if args.is(end_at + 1, "COUNT") => {
                match (positive(end_at + 2, NO_COUNT)?, args.len()) {
                    (most, len) if len == end_at + 3 => most,
                    _ => return Err(failure::SYNTAX),
                }
            }
            _ => return Err(failure::SYNTAX),
        };
        let keys = at + 1..end_at;
        Ok(Choice { keys, end, most })
    }
}

/// `ZMPOP numkeys key [key ...] MIN|MAX [COUNT count]`
pub(super) fn zmpop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let Choice { keys, end, most } = Choice::parse(args, 1)?;
    let packed = Packed::sorted_set(&context.server.settings);
    let keys = keys.map(|at| args.key(at));
    if let Some(next) = context.foresee_taken(keys.clone(), Taking::Scored(end, most))? {
        return Ok(next);
    }
    let mut shards = context.store.lock_keys(keys.clone());
    for key in keys {
        if let Some(set) = shards.of(key).find_sorted_set(key)? {
            if lacks(&set, (end, most)) {
                return Ok(Next::Retry);
            }
            take_named(&mut context.reply, (key.bytes, set), (end, most), packed);
            return Ok(Next::Done);
        }
    }
    context.reply.null_array();
    Ok(Next::Done)
}
