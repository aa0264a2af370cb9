//! Members by chance: SPOP SRANDMEMBER.

use keyspace::collection::kind::Members;

use super::super::items::cells::write_cell;
use super::super::items::draw::{self, any_of};
use super::super::{Args, Context, Failure, Handled, Next, failure};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::store::SetEdit;

const NOT_POSITIVE: Failure = Failure::of("ERR value is out of range, must be positive");

/// `SPOP key [count]`
pub(super) fn spop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.len() > 3 {
        return Err(failure::SYNTAX);
    }
    let count = match args.len() {
        2 => None,
        _ => {
            let count = args
                .integer(2)
                .ok()
                .and_then(|count| u64::try_from(count).ok());
            Some(count.ok_or(NOT_POSITIVE)?)
        }
    };
    let (key, packed) = (args.key(1), Packed::set(&context.server.settings));
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
            let item = any_of(edit.items()).moved_to(&mut buffer);
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
