//! Members by chance: SPOP SRANDMEMBER.

use fastrand::Rng;
use keyspace::SetRef;
use keyspace::collection::kind::Members;

use super::super::items::cells::write_cell;
use super::super::items::{chance, draw};
use super::super::{Args, Context, Failure, Handled, Next, failure};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::store::{SetEdit, Taking};

const NOT_POSITIVE: Failure = Failure::of("ERR value is out of range, must be positive");

/// How many members SPOP takes, if the request says it.
fn count_of(args: &Args<'_>) -> Result<Option<u64>, Failure> {
    if args.len() == 2 {
        return Ok(None);
    }
    let count = args.integer(2).ok();
    let count = count.and_then(|count| u64::try_from(count).ok());
    count.map(Some).ok_or(NOT_POSITIVE)
}

/// The same, for [`ItemsNeeded::Drawn`](super::super::spec::ItemsNeeded); none if the request is wrong.
pub(super) fn drawn_by_spop(args: &Args<'_>) -> u64 {
    count_of(args).map_or(0, |count| count.unwrap_or(1))
}

/// Whether leaves are cold of the members that are drawn.
fn has_cold_of(rng: &Rng, wanted: u64, members: SetRef<'_>) -> bool {
    let is_cold = |rank| !members.cold_from_rank(rank, 1, false).is_empty();
    match chance::ranks_of(rng.clone(), wanted, members.len()) {
        Some(ranks) => ranks.into_iter().any(is_cold),
        None => members.has_cold_leaves(),
    }
}

/// `SPOP key [count]`
pub(super) fn spop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.len() > 3 {
        return Err(failure::SYNTAX);
    }
    let count = count_of(args)?;
    let (key, packed) = (args.key(1), Packed::set(&context.server.settings));
    if let Some(next) = context.foresee_taken([key], Taking::Drawn(count.unwrap_or(1)))? {
        return Ok(next);
    }
    let mut rng = context.chance();
    let mut shard = context.store.lock(key);
    let reply = &mut context.reply;
    let Some(set) = shard.find_set_to_change(key)? else {
        match count {
            None => reply.null(),
            Some(_) => reply.set(0),
        }
        return Ok(Next::Done);
    };
    let wanted = count.unwrap_or(1).min(set.items().len());
    if set.has_cold_leaves() && has_cold_of(&rng, wanted, set.items()) {
        // Members came or went since the leaves were found.
        return Ok(Next::Retry);
    }
    if count.is_some() {
        reply.set(wanted as usize);
    }
    if wanted == set.items().len() {
        for item in set.items().iter() {
            write_cell(reply, item.name);
        }
        set.take_all(Event::SPOP);
        return Ok(Next::Done);
    }
    let mut buffer = Vec::new();
    set.edit(Event::SPOP, packed, |edit: &mut SetEdit<'_, '_>| {
        // Each time any of those that are left: each choice of `wanted` members is as likely as any other.
        for _ in 0..wanted {
            let items = edit.items();
            let item = items.at(chance::draw(&mut rng, items.len()));
            let item = item.expect("the rank is below the length");
            let item = item.moved_to(&mut buffer);
            write_cell(reply, item.name);
            edit.remove(item.name);
        }
    });
    Ok(Next::Done)
}

/// `SRANDMEMBER key [count]`
pub(super) fn srandmember(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    match args.len() {
        2 => draw::one::<Members>(context, args),
        3 => draw::several::<Members>(context, args, draw::parse_count(args)?, false),
        _ => Err(failure::SYNTAX),
    }
}
