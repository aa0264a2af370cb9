//! Items by chance: HRANDFIELD, SRANDMEMBER, SPOP.

use std::collections::HashSet;

use keyspace::collection::Base;
use keyspace::collection::any::Held;
use keyspace::collection::run::Item;
use keyspace::{ItemsRef, LeafPlace};
use resp::reply::{Protocol, Writer};

use super::super::deferred::Slice;
use super::super::{Args, Context, Failure, Handled, Next};
use super::cells::{write_cell, write_value};
use super::moment::{Look, leave_or_retry, look_on};
use crate::store::Kept;

const COUNT_OUT_OF_RANGE: Failure = Failure::of(
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
);

/// Some item of a collection, which has at least one.
pub(in crate::command) fn any_of<K: Held>(items: ItemsRef<'_, K>) -> Item<'_> {
    let rank = fastrand::u64(..items.len());
    items.at(rank).expect("the rank is below the length")
}

/// Bytes of a reply for each item beside its text: a length, line ends, and the head of a pair.
const FRAME_BYTES: u64 = 16;

/// Answers with the name of some item; with null if there is no such key.
pub(in crate::command) fn one<K: Kept + Send>(
    context: &mut Context<'_>,
    args: &Args<'_>,
) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let Some(mut found) = shard.read_items::<K>(key)? else {
        context.reply.null();
        return Ok(Next::Done);
    };
    let (items, start) = (found.items(), context.reply.position());
    let has_cold = items.is_tree() && found.has_cold_leaves();
    if !has_cold {
        write_cell(&mut context.reply, any_of(items).name);
        return Ok(Next::Done);
    }
    let mut draw = Draw::any(1, false);
    if !look_on(
        &mut draw,
        items,
        has_cold,
        &mut context.reply,
        &Slice::ENDLESS,
    ) {
        return Ok(Next::Done);
    }
    let moment = found.moment();
    drop(shard);
    Ok(leave_or_retry::<K>(context, args, start, moment, draw))
}

/// Answers with `count` different items; or, if it is negative, with so many of which some may be the same.
pub(in crate::command) fn several<K: Kept + Send>(
    context: &mut Context<'_>,
    args: &Args<'_>,
    count: i64,
    with_values: bool,
) -> Handled {
    let (key, slice) = (args.key(1), context.slice());
    let mut shard = context.store.lock(key);
    let Some(mut found) = shard.read_items::<K>(key)? else {
        context.reply.empty_array();
        return Ok(Next::Done);
    };
    let (items, bytes) = (found.items(), found.value_len() as u64);
    let wanted = match count >= 0 {
        true => count.unsigned_abs().min(items.len()),
        false => count.unsigned_abs(),
    };
    let mut draw = match count >= 0 {
        true => Draw::different(items.len(), wanted, with_values),
        false => {
            let each = bytes / items.len() + FRAME_BYTES;
            let total = wanted.saturating_mul(each).min(i64::MAX as u64);
            context.check_reply(total as usize)?;
            Draw::any(wanted, with_values)
        }
    };
    let reply = &mut context.reply;
    let start = reply.position();
    draw.head(reply, wanted);
    let has_cold = items.is_tree() && found.has_cold_leaves();
    if !look_on(&mut draw, items, has_cold, reply, &slice) {
        return Ok(Next::Done);
    }
    match found.moment() {
        Some(moment) => {
            drop(shard);
            Ok(leave_or_retry::<K>(
                context,
                args,
                start,
                Some(moment),
                draw,
            ))
        }
        // A small one has no moments.
        None => {
            look_on(&mut draw, found.items(), false, reply, &Slice::ENDLESS);
            Ok(Next::Done)
        }
    }
}

/// The count of a request.
///
/// # Errors
/// It is no number, or the one that has no counterpart.
pub(in crate::command) fn parse_count(args: &Args<'_>) -> Result<i64, Failure> {
    match args.integer(2)? {
        i64::MIN => Err(COUNT_OUT_OF_RANGE),
        count => Ok(count),
    }
}

/// Items that are answered before the clock is looked at.
const STEP_ITEMS: u64 = 64;

/// Items by chance, some at a time.
struct Draw {
    way: Way,
    with_values: bool,
    /// The ranks of those that the next step answers with, unless it walks.
    drawn: Vec<u64>,
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
    /// So many items, each as likely as any other, any number of times.
    fn any(wanted: u64, with_values: bool) -> Draw {
        Draw::of(Way::Any { left: wanted }, with_values)
    }

    fn of(way: Way, with_values: bool) -> Draw {
        Draw {
            way,
            with_values,
            drawn: Vec::new(),
        }
    }

    /// So many different items of `len`, each choice of them as likely as any other.
    fn different(len: u64, wanted: u64, with_values: bool) -> Draw {
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
        Draw::of(way, with_values)
    }

    /// Draws the ranks of the next step, of `len` items, unless that has been done.
    fn draw(&mut self, len: u64) {
        if !self.drawn.is_empty() {
            return;
        }
        match &mut self.way {
            Way::Any { left } => {
                let count = STEP_ITEMS.min(*left);
                self.drawn.extend((0..count).map(|_| fastrand::u64(..len)));
                *left -= count;
            }
            Way::Walk { .. } => {}
            Way::Ranks { last, end, taken } => {
                let until = (*last + STEP_ITEMS).min(*end);
                self.drawn.extend((*last..until).map(|last| {
                    let rank = fastrand::u64(..=last);
                    let rank = if taken.insert(rank) { rank } else { last };
                    taken.insert(rank);
                    rank
                }));
                *last = until;
            }
        }
    }

    /// Answers with the head of an array of so many items.
    fn head(&self, writer: &mut Writer<'_>, items: u64) {
        let is_flat = self.with_values && writer.protocol == Protocol::Resp2;
        writer.array(items as usize * if is_flat { 2 } else { 1 });
    }
}

impl<K: Held> Look<K> for Draw {
    const STREAMS: bool = true;

    fn step(&mut self, items: ItemsRef<'_, K>, writer: &mut Writer<'_>) -> bool {
        let with_values = self.with_values;
        self.draw(items.len());
        for rank in self.drawn.drain(..) {
            let item = items.at(rank).expect("the rank is below the length");
            write::<K>(writer, item, with_values);
        }
        match &mut self.way {
            Way::Any { left } => *left > 0,
            Way::Ranks { last, end, .. } => *last < *end,
            Way::Walk {
                from,
                left,
                missing,
            } => {
                let visit = |item| {
                    if fastrand::u64(..*left) < *missing {
                        write::<K>(writer, item, with_values);
                        *missing -= 1;
                    }
                    *left -= 1;
                };
                let next = items.items_from(from, visit);
                let has_more = next.is_some() && *missing > 0;
                *from = next.unwrap_or_default();
                has_more
            }
        }
    }

    fn cold(&mut self, items: ItemsRef<'_, K>, ahead: Option<usize>) -> Vec<Base> {
        if let Way::Walk { from, .. } = &self.way {
            return items.cold_from(from, ahead.unwrap_or(1));
        }
        self.draw(items.len());
        let record = |&rank: &u64| items.cold_from_rank(rank, 1, false);
        let mut records: Vec<Base> = self.drawn.iter().flat_map(record).collect();
        records.sort_unstable_by_key(|base| base.at);
        records.dedup();
        records
    }
}

/// Answers with an item, and its value if that is wanted: as a pair in RESP3.
fn write<K: Held>(writer: &mut Writer<'_>, item: Item<'_>, with_values: bool) {
    if with_values && writer.protocol == Protocol::Resp3 {
        writer.array(2);
    }
    write_cell(writer, item.name);
    if with_values {
        write_value::<K>(writer, &item);
    }
}
