//! HRANDFIELD: fields by chance.

use std::collections::HashSet;

use keyspace::HashRef;
use keyspace::collection::run::Item;
use resp::reply::Protocol;

use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::cells::{write_cell, write_value};
use crate::request::Reply;

const OUT_OF_RANGE: Failure = Failure::of("ERR value is out of range");
const COUNT_OUT_OF_RANGE: Failure = Failure::of(
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
);

/// Bytes of a reply for each field beside its text: a length, line ends, and the head of a pair.
const FRAME_BYTES: u64 = 16;

/// `HRANDFIELD key [count [WITHVALUES]]`
pub(super) fn hrandfield(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    if args.len() == 2 {
        let mut shard = context.store.lock(key);
        match shard.read_hash(key)? {
            Some(hash) => write_cell(&mut context.reply, any_of(hash.fields()).name),
            None => context.reply.null(),
        }
        return Ok(Next::Done);
    }
    let (count, with_values) = parse(args)?;
    let mut shard = context.store.lock(key);
    let Some(hash) = shard.read_hash(key)? else {
        context.reply.empty_array();
        return Ok(Next::Done);
    };
    let (fields, bytes) = (hash.fields(), hash.value_len() as u64);
    let wanted = count.unsigned_abs();
    if count >= 0 {
        let wanted = wanted.min(fields.len());
        write_head(&mut context.reply, wanted, with_values);
        for_each_of(fields, wanted, |item| {
            write(&mut context.reply, item, with_values);
        });
        return Ok(Next::Done);
    }
    let each = bytes / fields.len() + FRAME_BYTES;
    let total = wanted.saturating_mul(each).min(i64::MAX as u64);
    context.check_reply(total as usize)?;
    write_head(&mut context.reply, wanted, with_values);
    for _ in 0..wanted {
        write(&mut context.reply, any_of(fields), with_values);
    }
    Ok(Next::Done)
}

/// The count of a request, and whether values are wanted.
fn parse(args: &Args<'_>) -> Result<(i64, bool), Failure> {
    let count = args.integer(2)?;
    if count == i64::MIN {
        return Err(COUNT_OUT_OF_RANGE);
    }
    let with_values = args.len() > 3;
    if args.len() > 4 || with_values && !args.is(3, "WITHVALUES") {
        return Err(failure::SYNTAX);
    }
    if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(OUT_OF_RANGE);
    }
    Ok((count, with_values))
}

/// Some field of a hash, which has at least one.
fn any_of(fields: HashRef<'_>) -> Item<'_> {
    let rank = fastrand::u64(..fields.len());
    fields.at(rank).expect("it has so many fields")
}

/// Calls `visit` with so many different fields of a hash, which has them, each set of them as likely as any
/// other.
fn for_each_of<'e>(fields: HashRef<'e>, wanted: u64, mut visit: impl FnMut(Item<'e>)) {
    let len = fields.len();
    if wanted > len / 4 {
        // By one walk: each is taken as often as those that are wanted are among those that are left.
        let mut missing = wanted;
        for (rank, item) in fields.iter().enumerate() {
            if fastrand::u64(..len - rank as u64) < missing {
                visit(item);
                missing -= 1;
            }
        }
        return;
    }
    // By ranks: where one is taken already, it is the last that has become possible.
    let mut taken = HashSet::new();
    for last in len - wanted..len {
        let rank = fastrand::u64(..=last);
        let rank = if taken.insert(rank) { rank } else { last };
        taken.insert(rank);
        visit(fields.at(rank).expect("the rank is below the length"));
    }
}

/// Answers with the head of an array of so many fields.
fn write_head(reply: &mut Reply<'_>, fields: u64, with_values: bool) {
    let is_flat = with_values && reply.protocol() == Protocol::Resp2;
    reply.array(fields as usize * if is_flat { 2 } else { 1 });
}

/// Answers with a field, and its value if that is wanted: as a pair in RESP3.
fn write(reply: &mut Reply<'_>, item: Item<'_>, with_values: bool) {
    if with_values && reply.protocol() == Protocol::Resp3 {
        reply.array(2);
    }
    write_cell(reply, item.name);
    if with_values {
        write_value(reply, item.value);
    }
}
