//! HRANDFIELD: fields by chance.

use std::collections::HashSet;

use keyspace::collection::run::Item;
use keyspace::{HashRef, LeafPlace};
use resp::reply::{Protocol, Writer};

use super::super::deferred::Slice;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::cells::{write_cell, write_value};
use super::moment::{Look, leave, look_on};

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
    let slice = context.slice();
    let mut shard = context.store.lock(key);
    let Some(mut hash) = shard.read_hash(key)? else {
        context.reply.empty_array();
        return Ok(Next::Done);
    };
    let (fields, bytes) = (hash.fields(), hash.value_len() as u64);
    let wanted = count.unsigned_abs();
    let mut draw = match u64::try_from(count) {
        Ok(count) => Draw::different(fields, count.min(fields.len()), with_values),
        Err(_) => {
            let each = bytes / fields.len() + FRAME_BYTES;
            let total = wanted.saturating_mul(each).min(i64::MAX as u64);
            context.check_reply(total as usize)?;
            Draw {
                way: Way::Any { left: wanted },
                with_values,
            }
        }
    };
    let reply = &mut context.reply;
    let start = reply.position();
    let answered = match count >= 0 {
        true => wanted.min(fields.len()),
        false => wanted,
    };
    draw.head(reply, answered);
    if !look_on(&mut draw, fields, reply, &slice) {
        return Ok(Next::Done);
    }
    match hash.moment() {
        Some(moment) => {
            drop(shard);
            Ok(leave(context, args, start, moment, draw))
        }
        // A small one has no moments.
        None => {
            look_on(&mut draw, hash.fields(), reply, &Slice::ENDLESS);
            Ok(Next::Done)
        }
    }
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

/// Fields that are answered before the clock is looked at.
const STEP_FIELDS: u64 = 64;

/// Fields by chance, some at a time.
struct Draw {
    way: Way,
    with_values: bool,
}

enum Way {
    /// Each as likely as any other, any number of times; so many are missing.
    Any { left: u64 },
    /// Different ones, by one walk: each is taken as often as those that are missing are among those that are
    /// left.
    Walk {
        from: LeafPlace,
        left: u64,
        missing: u64,
    },
    /// Different ones, by ranks: where one is taken already, it is the last that has become possible.
    Ranks {
        last: u64,
        end: u64,
        taken: HashSet<u64>,
    },
}

impl Draw {
    /// So many different fields of a hash, which has them, each set of them as likely as any other.
    fn different(fields: HashRef<'_>, wanted: u64, with_values: bool) -> Draw {
        let len = fields.len();
        let way = match wanted > len / 4 {
            true => Way::Walk {
                from: LeafPlace::default(),
                left: len,
                missing: wanted,
            },
            false => Way::Ranks {
                last: len - wanted,
                end: len,
                taken: HashSet::new(),
            },
        };
        Draw { way, with_values }
    }

    /// Answers with the head of an array of so many fields.
    fn head(&self, writer: &mut Writer<'_>, fields: u64) {
        let is_flat = self.with_values && writer.protocol == Protocol::Resp2;
        writer.array(fields as usize * if is_flat { 2 } else { 1 });
    }
}

impl Look for Draw {
    const STREAMS: bool = true;

    fn step(&mut self, fields: HashRef<'_>, writer: &mut Writer<'_>) -> bool {
        let with_values = self.with_values;
        match &mut self.way {
            Way::Any { left } => {
                let count = STEP_FIELDS.min(*left);
                for _ in 0..count {
                    write(writer, any_of(fields), with_values);
                }
                *left -= count;
                *left > 0
            }
            Way::Walk {
                from,
                left,
                missing,
            } => {
                let visit = |item| {
                    if fastrand::u64(..*left) < *missing {
                        write(writer, item, with_values);
                        *missing -= 1;
                    }
                    *left -= 1;
                };
                let next = fields.items_from(from, visit);
                let has_more = next.is_some() && *missing > 0;
                *from = next.unwrap_or_default();
                has_more
            }
            Way::Ranks { last, end, taken } => {
                let until = (*last + STEP_FIELDS).min(*end);
                for last in *last..until {
                    let rank = fastrand::u64(..=last);
                    let rank = if taken.insert(rank) { rank } else { last };
                    taken.insert(rank);
                    let item = fields.at(rank).expect("the rank is below the length");
                    write(writer, item, with_values);
                }
                *last = until;
                *last < *end
            }
        }
    }
}

/// Answers with a field, and its value if that is wanted: as a pair in RESP3.
fn write(writer: &mut Writer<'_>, item: Item<'_>, with_values: bool) {
    if with_values && writer.protocol == Protocol::Resp3 {
        writer.array(2);
    }
    write_cell(writer, item.name);
    if with_values {
        write_value(writer, item.value);
    }
}
