//! XACK, and XPENDING: entries that were delivered and not acknowledged.

use std::collections::BTreeMap;

use keyspace::StreamRef;
use keyspace::collection::Base;
use keyspace::collection::stream::{Group, Id, IdRange, ItemBuffer, Pending, Section, StreamItems};

use super::super::prepare::leaves::AskedLeaves;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::group::no_key_or_group;
use super::id::{self, End, IdText};
use super::leaves::{self, lacks};
use super::read::{BAD_END, BAD_START};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::request::Reply;
use crate::store::StreamEdit;

/// Pending entries that are passed on the way to one before it is looked for.
const STEPS: usize = 16;

/// Pending entries of a group that were looked for.
pub(super) struct FoundPending {
    /// Each once, in the order of their IDs.
    pub(super) all: Vec<Pending>,
    /// The rank of the first, if it is known and there are no others between them.
    rank: Option<u64>,
}

/// So many IDs are looked for at once: their pending entries are gathered.
const PART: usize = 4096;

/// The pending entries of these IDs that a group has.
pub(super) fn pending_of(stream: StreamRef<'_>, group: u32, ids: &[Id]) -> FoundPending {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let mut all = Vec::with_capacity(ids.len());
    if ids.len() < 2 || stream.items().has_cold_leaves() {
        // Leaves between them need not be in memory.
        let mut buffer = ItemBuffer::default();
        let found = ids.iter();
        all.extend(found.filter_map(|&id| stream.pending(group, id, &mut buffer)));
        return FoundPending { all, rank: None };
    }
    // In the order of IDs most are next to each other.
    let rank = stream.rank_of(Section::of_pending(group), ids[0]);
    let mut walk = stream.pending_from_rank(group, rank).peekable();
    let mut passed = 0;
    for id in ids {
        let mut steps = 0;
        while steps < STEPS && walk.next_if(|pending| pending.id < id).is_some() {
            steps += 1;
        }
        if steps == STEPS {
            let rank = stream.rank_of(Section::of_pending(group), id);
            walk = stream.pending_from_rank(group, rank).peekable();
        }
        passed += steps;
        all.extend(walk.next_if(|pending| pending.id == id));
    }
    let rank = Some(rank).filter(|_| passed == 0);
    FoundPending { all, rank }
}

/// Removes pending entries of a group.
fn take_all(edit: &mut StreamEdit<'_, '_>, group: u32, found: &FoundPending) {
    if let (Some(rank), [first, .., last]) = (found.rank, &found.all[..]) {
        let range = IdRange {
            section: Section::of_pending(group),
            from: first.id,
            last: last.id,
        };
        return edit.cut_ranks(&range, rank, found.all.len() as u64);
    }
    let mut buffer = ItemBuffer::default();
    for pending in &found.all {
        edit.take_pending(group, pending, &mut buffer);
        edit.note_change();
    }
}

/// How many pending entries each consumer has of these.
pub(super) fn by_consumer(pending: &[Pending]) -> BTreeMap<u32, i64> {
    let mut counts = BTreeMap::new();
    for pending in pending {
        *counts.entry(pending.consumer).or_default() += 1;
    }
    counts
}

/// The leaves that XACK needs: those of the pending entries of its IDs.
pub(super) fn leaves_of_xack(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    let args = asked.args;
    let ids = id::all(args, 3).unwrap_or_default();
    let group = stream.group(args.get(2), &mut ItemBuffer::default());
    group.map_or(Vec::new(), |group| {
        leaves_to_ack(stream, group.number, &ids)
    })
}

pub(super) fn leaves_to_ack(stream: StreamRef<'_>, group: u32, ids: &[Id]) -> Vec<Base> {
    let section = Section::of_pending(group);
    let cold = ids.iter().filter_map(|&id| stream.cold_at(section, id));
    cold.collect()
}

/// `XACK key group id [id ...]`
pub(super) fn xack(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, name) = (args.key(1), args.get(2));
    let (mut shard, mut buffer) = (context.store.lock(key), ItemBuffer::default());
    let found = shard.read_items::<StreamItems>(key)?;
    let group = found
        .as_ref()
        .and_then(|found| found.stream().group(name, &mut buffer));
    let (Some(found), Some(mut group)) = (found, group) else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    let ids = id::all(args, 3)?;
    let stream = found.stream();
    if lacks(stream, |stream| leaves_to_ack(stream, group.number, &ids)) {
        return Ok(Next::Retry);
    }
    let mut parts = ids.chunks(PART);
    let mut next = || parts.next().unwrap_or_default();
    let mut acknowledged = pending_of(stream, group.number, next());
    if acknowledged.all.is_empty() && ids.len() <= PART {
        context.reply.integer(0);
        return Ok(Next::Done);
    }
    let count = found.edit(Event::NONE, Packed::NONE, |edit| {
        edit.is_of_groups(false);
        let mut total = 0;
        loop {
            take_all(edit, group.number, &acknowledged);
            for (consumer, count) in by_consumer(&acknowledged.all) {
                edit.count_pending(group.number, consumer, -count);
            }
            total += acknowledged.all.len() as u64;
            match next() {
                [] => break,
                part => acknowledged = pending_of(edit.stream(), group.number, part),
            }
        }
        if total > 0 {
            group.pending = group.pending.saturating_sub(total);
            edit.put_group(name, &group);
        }
        total
    });
    context.reply.integer(count as i64);
    Ok(Next::Done)
}

/// Which pending entries XPENDING shows.
struct Range<'a> {
    from: Id,
    last: Id,
    most: u64,
    /// They were delivered at least so long ago (ms).
    idle: u64,
    consumer: Option<&'a [u8]>,
}

impl<'a> Range<'a> {
    /// `None`: a summary is wanted.
    fn parse(args: &Args<'a>) -> Result<Option<Range<'a>>, Failure> {
        match args.len() {
            3 => return Ok(None),
            6..=9 => {}
            _ => return Err(failure::SYNTAX),
        }
        let (mut at, mut idle) = (3, 0);
        if args.is(3, "IDLE") {
            idle = args.integer(4)?;
            if args.len() < 8 {
                return Err(failure::SYNTAX);
            }
            at += 2;
        }
        let most = u64::try_from(args.integer(at + 2)?).unwrap_or(0);
        let start = End::parse(args.get(at), 0)?;
        let from = match start.is_excluded {
            true => start.id.next().ok_or(BAD_START)?,
            false => start.id,
        };
        let end = End::parse(args.get(at + 1), u64::MAX)?;
        let last = match end.is_excluded {
            true => end.id.previous().ok_or(BAD_END)?,
            false => end.id,
        };
        Ok(Some(Range {
            from,
            last,
            most,
            idle: u64::try_from(idle).unwrap_or(0),
            consumer: args.optional(at + 3),
        }))
    }
}

/// The leaves that XPENDING needs: of a summary those of the first and the last pending entry, else all of
/// its range.
pub(super) fn leaves_of_xpending(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    let args = asked.args;
    let group = stream.group(args.get(2), &mut ItemBuffer::default());
    match (group, Range::parse(args)) {
        (Some(group), Ok(range)) => leaves_to_show(stream, group.number, range.as_ref()),
        _ => Vec::new(),
    }
}

fn leaves_to_show(stream: StreamRef<'_>, group: u32, range: Option<&Range<'_>>) -> Vec<Base> {
    let section = Section::of_pending(group);
    match range {
        Some(range) if range.from > range.last => Vec::new(),
        Some(range) => {
            // A consumer or an idle time leaves some out: then it is not known how many are looked at.
            let looks = match range.consumer.is_none() && range.idle == 0 {
                true => range.most,
                false => u64::MAX,
            };
            leaves::of_first(stream, section, range.from, range.last, looks)
        }
        None => [Id::MIN, Id::MAX]
            .into_iter()
            .flat_map(|id| leaves::of_range(stream, section, id, id))
            .collect(),
    }
}

/// `XPENDING key group [[IDLE min-idle-time] start end count [consumer]]`
pub(super) fn xpending(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let range = Range::parse(args)?;
    let (key, name, now) = (args.key(1), args.get(2), context.store.now.max(0) as u64);
    let (mut shard, mut buffer) = (context.store.lock(key), ItemBuffer::default());
    let found = shard.read_items::<StreamItems>(key)?;
    let stream = found.as_ref().map(|found| found.stream());
    let group = stream.and_then(|stream| stream.group(name, &mut buffer));
    let (Some(stream), Some(group)) = (stream, group) else {
        return Err(no_key_or_group(key.bytes, name, ""));
    };
    if lacks(stream, |stream| {
        leaves_to_show(stream, group.number, range.as_ref())
    }) {
        return Ok(Next::Retry);
    }
    let Some(range) = range else {
        summarize(&mut context.reply, stream, &group);
        return Ok(Next::Done);
    };
    let reply = &mut context.reply;
    if range.from > range.last {
        reply.empty_array();
        return Ok(Next::Done);
    }
    let number = match range.consumer {
        None => None,
        Some(consumer) => match stream.consumer_number(group.number, consumer, &mut buffer) {
            Some(number) => Some(number),
            None => {
                reply.empty_array();
                return Ok(Next::Done);
            }
        },
    };
    let is_wanted = |pending: &Pending| {
        number.is_none_or(|number| pending.consumer == number)
            && (range.idle == 0 || idle(pending, now) >= range.idle as i64)
    };
    let pending = stream.pending_from(group.number, range.from);
    let pending = pending.take_while(|pending| pending.id <= range.last);
    let most = usize::try_from(range.most).unwrap_or(usize::MAX);
    let (start, mut count) = (reply.position(), 0);
    for pending in pending.filter(is_wanted).take(most) {
        count += 1;
        reply.array(4);
        reply.bulk(IdText::of(pending.id).bytes());
        let consumer = stream.consumer(group.number, pending.consumer, &mut buffer);
        reply.bulk(consumer.map_or(b"", |consumer| consumer.name));
        reply.integer(idle(&pending, now).max(0));
        reply.integer(pending.deliveries as i64);
    }
    reply.put_before(start, |writer| writer.array(count));
    Ok(Next::Done)
}

/// How long ago a pending entry was delivered (ms).
pub(super) fn idle(pending: &Pending, now: u64) -> i64 {
    now.wrapping_sub(pending.delivered) as i64
}

/// Answers with how many pending entries there are, the first and the last of them, and the consumers that
/// have some.
fn summarize(reply: &mut Reply<'_>, stream: StreamRef<'_>, group: &Group) {
    let mut buffer = ItemBuffer::default();
    let first = stream.pending_from(group.number, Id::MIN).next();
    let last = stream.last_pending(group.number);
    reply.array(4);
    reply.integer(group.pending as i64);
    let (Some(first), Some(last)) = (first, last) else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    reply.bulk(IdText::of(first.id).bytes());
    reply.bulk(IdText::of(last.id).bytes());
    let consumers = stream.consumer_names(group.number);
    let consumers = consumers.filter_map(|(name, number)| {
        let consumer = stream.consumer(group.number, number, &mut buffer)?;
        (consumer.pending > 0).then_some((name, consumer.pending))
    });
    let consumers: Vec<_> = consumers.collect();
    reply.array(consumers.len());
    for (name, pending) in consumers {
        reply.array(2);
        reply.bulk(name);
        reply.bulk(pending.to_string().as_bytes());
    }
}
