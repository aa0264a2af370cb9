//! Commands that read entries: XLEN XRANGE XREVRANGE.

use keyspace::collection::Base;
use keyspace::collection::cell::DECIMAL_MAX;
use keyspace::collection::run::Item;
use keyspace::collection::stream::{EntryFields, Id, Section, StreamEntry, StreamItems};
use keyspace::{ItemsRef, StreamRef};
use resp::reply::Writer;

use super::super::items::moment::{Look, leave_or_retry, look_on};
use super::super::prepare::leaves::AskedLeaves;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::id::{End, IdText};
use super::leaves::{self, lacks};

pub(super) const BAD_START: Failure = Failure::of("ERR invalid start ID for the interval");
pub(super) const BAD_END: Failure = Failure::of("ERR invalid end ID for the interval");

/// Leaves of a range that come back into memory for it; more are read by the walk that shows them.
const BACK_MOST: usize = 4;

/// `XLEN key`
pub(super) fn xlen(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let found = shard.read_items::<StreamItems>(key)?;
    let len = found.map_or(0, |found| found.stream().len());
    context.reply.integer(len as i64);
    Ok(Next::Done)
}

/// Answers with an entry: its ID, and its fields and values in one array.
pub(super) fn write_entry(writer: &mut Writer<'_>, entry: StreamEntry<'_>, shapes: &[&[u8]]) {
    writer.array(2);
    writer.bulk(IdText::of(entry.id).bytes());
    write_fields(writer, EntryFields::of(entry.content, shapes));
}

/// Answers with fields and values in one array.
pub(super) fn write_fields(writer: &mut Writer<'_>, fields: EntryFields<'_>) {
    writer.array(2 * fields.len());
    let mut bulks = writer.bulks();
    for (name, value) in fields {
        bulks.put(name.text(&mut [0; DECIMAL_MAX]));
        bulks.put(value.text(&mut [0; DECIMAL_MAX]));
    }
    bulks.finish();
}

/// A range of IDs, as a request writes it.
#[derive(Clone, Copy)]
struct Range {
    from: Id,
    last: Id,
    is_reverse: bool,
    /// So many entries at most; of 0 there is another reply.
    most: u64,
}

impl Range {
    fn parse(args: &Args<'_>, is_reverse: bool) -> Result<Range, Failure> {
        let (start, end) = if is_reverse { (3, 2) } else { (2, 3) };
        let start = End::parse(args.get(start), 0)?;
        let from = match start.is_excluded {
            true => start.id.next().ok_or(BAD_START)?,
            false => start.id,
        };
        let end = End::parse(args.get(end), u64::MAX)?;
        let last = match end.is_excluded {
            true => end.id.previous().ok_or(BAD_END)?,
            false => end.id,
        };
        let mut most = u64::MAX;
        let mut at = 4;
        while at < args.len() {
            if !args.is(at, "COUNT") || at + 1 == args.len() {
                return Err(failure::SYNTAX);
            }
            most = u64::try_from(args.integer(at + 1)?).unwrap_or(0);
            at += 2;
        }
        Ok(Range {
            from,
            last,
            is_reverse,
            most,
        })
    }

    /// The records of the leaves of its ends that are cold: without them its ranks are not known.
    fn cold_ends(&self, stream: StreamRef<'_>) -> Vec<Base> {
        leaves::of_ids(stream, &[self.from, self.last])
    }

    /// The ranks of its entries. Both ends are in memory.
    fn ranks(&self, stream: StreamRef<'_>) -> std::ops::Range<u64> {
        if self.from > self.last {
            return 0..0;
        }
        let first = stream.first_rank();
        let (from, to) = (
            stream.rank_of(Section::ENTRIES, self.from),
            stream.rank_behind(Section::ENTRIES, self.last),
        );
        let from = from.max(first);
        let count = to.saturating_sub(from).min(self.most);
        match self.is_reverse {
            true => to.max(from) - count..to.max(from),
            false => from..from + count,
        }
    }
}

fn leaves_of(stream: StreamRef<'_>, asked: &AskedLeaves<'_>, is_reverse: bool) -> Vec<Base> {
    let Ok(range) = Range::parse(asked.args, is_reverse) else {
        return Vec::new();
    };
    let ends = range.cold_ends(stream);
    if !ends.is_empty() {
        return ends;
    }
    let ranks = range.ranks(stream);
    let records = stream.items().cold_between(ranks.start, ranks.end);
    match asked.walks && records.len() > BACK_MOST {
        true => Vec::new(),
        false => records,
    }
}

/// The leaves that XRANGE needs: first those of its ends.
pub(super) fn leaves_of_xrange(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    leaves_of(stream, asked, false)
}

/// The same of XREVRANGE.
pub(super) fn leaves_of_xrevrange(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    leaves_of(stream, asked, true)
}

/// Entries of some ranks, a leaf at a time.
struct Walk {
    from: u64,
    to: u64,
    is_reverse: bool,
}

impl Look<StreamItems> for Walk {
    const STREAMS: bool = true;

    fn step(&mut self, items: ItemsRef<'_, StreamItems>, writer: &mut Writer<'_>) -> bool {
        let stream = StreamRef::of(items);
        let (base, shapes) = (stream.base(), stream.shapes());
        let show = |item: Item<'_>| match StreamEntry::of(base, &item) {
            Some(entry) => write_entry(writer, entry, &shapes),
            // The head counts more entries than there are: the log was damaged.
            None => writer.null(),
        };
        match self.is_reverse {
            true => self.to = items.items_before(self.from, self.to, show),
            false => self.from = items.items_behind(self.from, self.to, show),
        }
        self.from < self.to
    }

    fn cold(&mut self, items: ItemsRef<'_, StreamItems>, ahead: Option<usize>) -> Vec<Base> {
        let rank = match self.is_reverse {
            true => self.to.saturating_sub(1),
            false => self.from,
        };
        items.cold_from_rank(rank, ahead.unwrap_or(1), self.is_reverse)
    }
}

fn answer(context: &mut Context<'_>, args: &Args<'_>, is_reverse: bool) -> Handled {
    let range = Range::parse(args, is_reverse)?;
    let (key, slice) = (args.key(1), context.slice());
    let mut shard = context.store.lock(key);
    let Some(mut found) = shard.read_items::<StreamItems>(key)? else {
        context.reply.empty_array();
        return Ok(Next::Done);
    };
    let reply = &mut context.reply;
    if range.most == 0 {
        reply.null_array();
        return Ok(Next::Done);
    }
    let stream = found.stream();
    if lacks(stream, |stream| range.cold_ends(stream)) {
        return Ok(Next::Retry);
    }
    let ranks = range.ranks(stream);
    let mut walk = Walk {
        from: ranks.start,
        to: ranks.end,
        is_reverse,
    };
    let start = reply.position();
    reply.array((walk.to - walk.from) as usize);
    let items = stream.items();
    let has_cold = found.has_cold_leaves();
    let has_more = walk.from < walk.to
        && (has_cold || walk.step(items, reply))
        && look_on(&mut walk, items, has_cold, reply, &slice);
    if !has_more {
        return Ok(Next::Done);
    }
    let moment = found.moment();
    drop(shard);
    Ok(leave_or_retry::<StreamItems>(
        context, args, start, moment, walk,
    ))
}

/// `XRANGE key start end [COUNT count]`
pub(super) fn xrange(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, false)
}

/// `XREVRANGE key end start [COUNT count]`
pub(super) fn xrevrange(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, true)
}
