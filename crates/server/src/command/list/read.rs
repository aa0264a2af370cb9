//! Commands that read: LLEN LINDEX LRANGE LPOS.

use keyspace::collection::Base;
use keyspace::collection::cell::{Cell, DECIMAL_MAX};
use keyspace::collection::kind::Elements;
use keyspace::{ItemsRef, ListRef};
use resp::reply::Writer;

use super::super::deferred::Slice;
use super::super::items::cells::{cell, write_cell};
use super::super::items::moment::{Look, leave_or_retry, look_on};
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::{rank_of, ranks_of};
use crate::config::Packed;
use crate::store::Items;

/// Elements of a reply between two looks at the clock.
const RANGE_STEP: u64 = 512;

/// Leaves of a range that come back into memory for it; more are read by the walk that shows them.
const BACK_MOST: usize = 4;

const ZERO_RANK: Failure = Failure::of(
    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to \
     start from the end of the list",
);
const NEGATIVE_COUNT: Failure = Failure::of("ERR COUNT can't be negative");
const NEGATIVE_MAXLEN: Failure = Failure::of("ERR MAXLEN can't be negative");

/// `LLEN key`
pub(super) fn llen(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let list = shard.read_list(key)?;
    let len = list.map_or(0, |list| list.items().len());
    context.reply.integer(len as i64);
    Ok(Next::Done)
}

/// `LINDEX key index`
pub(super) fn lindex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let Some(list) = shard.read_list(key)? else {
        context.reply.null();
        return Ok(Next::Done);
    };
    let elements = list.items();
    let rank = rank_of(args.integer(2)?, elements.len());
    if rank.is_some_and(|rank| !elements.cold_between(rank, rank + 1).is_empty()) {
        return Ok(Next::Retry);
    }
    match rank.and_then(|rank| elements.at(rank)) {
        Some(item) => write_cell(&mut context.reply, item.name),
        None => context.reply.null(),
    }
    Ok(Next::Done)
}

/// The elements of some ranks.
struct Range {
    from: u64,
    to: u64,
    /// A step is one leaf: others may be cold.
    by_leaf: bool,
}

impl Look<Elements> for Range {
    const STREAMS: bool = true;

    #[inline]
    fn step(&mut self, items: ItemsRef<'_, Elements>, writer: &mut Writer<'_>) -> bool {
        let mut bulks = writer.bulks();
        if self.by_leaf {
            self.from = items.visit_leaf(self.from, self.to, |element| {
                bulks.put(element.text(&mut [0; DECIMAL_MAX]));
            });
            bulks.finish();
            return self.from < self.to;
        }
        let to = self.to.min(self.from + RANGE_STEP);
        items.visit(self.from, to, |element| {
            bulks.put(element.text(&mut [0; DECIMAL_MAX]));
            true
        });
        bulks.finish();
        self.from = to;
        to < self.to
    }

    fn cold(&mut self, items: ItemsRef<'_, Elements>, ahead: Option<usize>) -> Vec<Base> {
        items.cold_from_rank(self.from, ahead.unwrap_or(1), false)
    }
}

/// `LRANGE key start stop`
pub(super) fn lrange(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (start, stop) = (args.integer(2)?, args.integer(3)?);
    let (key, may_defer) = (args.key(1), context.may_defer());
    let mut shard = context.store.lock(key);
    let mut found = shard.read_list(key)?;
    let (reply, items) = (&mut context.reply, found.as_ref().map(Items::items));
    let ranks = items.map_or(0..0, |items| ranks_of(start, stop, items.len()));
    let at = reply.position();
    reply.array((ranks.end - ranks.start) as usize);
    let Some(items) = items.filter(|_| !ranks.is_empty()) else {
        return Ok(Next::Done);
    };
    let has_cold = items.is_tree() && found.as_ref().is_some_and(|items| items.has_cold_leaves());
    let mut look = Range {
        from: ranks.start,
        to: ranks.end,
        by_leaf: has_cold,
    };
    // A small list has no moments, so all of it is shown at once, even if the thread is preempted meanwhile.
    let slice = Slice::if_any(may_defer && items.is_tree());
    // A few elements need no clock.
    let has_more =
        (has_cold || look.step(items, reply)) && look_on(&mut look, items, has_cold, reply, &slice);
    if !has_more {
        return Ok(Next::Done);
    }
    let moment = found.as_mut().and_then(Items::moment);
    drop(shard);
    Ok(leave_or_retry::<Elements>(context, args, at, moment, look))
}

/// What LPOS is asked for, and how far it has come.
struct Search {
    /// How many more matches are left out, from which end.
    skipped: u64,
    is_backward: bool,
    /// How many matches are wanted, if any number is; else one.
    count: Option<u64>,
    /// How many elements are looked at.
    most: u64,
    /// Elements that were looked at.
    looked: u64,
    /// Matches that were found, and the ranks of those that are not in the reply yet.
    found: u64,
    ranks: Vec<u64>,
}

impl Search {
    fn parse(args: &Args<'_>) -> Result<Search, Failure> {
        let (mut rank, mut count, mut most) = (1, None, 0);
        let mut at = 3;
        let number = |at, failure: Failure| {
            let number = args.integer(at).ok();
            number
                .and_then(|number| u64::try_from(number).ok())
                .ok_or(failure)
        };
        while at < args.len() {
            if at + 1 == args.len() {
                return Err(failure::SYNTAX);
            }
            if args.is(at, "RANK") {
                rank = args.integer(at + 1)?;
                match rank {
                    0 => return Err(ZERO_RANK),
                    i64::MIN => return Err(RANK_RANGE),
                    _ => {}
                }
            } else if args.is(at, "COUNT") {
                count = Some(number(at + 1, NEGATIVE_COUNT)?);
            } else if args.is(at, "MAXLEN") {
                most = number(at + 1, NEGATIVE_MAXLEN)?;
            } else {
                return Err(failure::SYNTAX);
            }
            at += 2;
        }
        Ok(Search {
            skipped: rank.unsigned_abs() - 1,
            is_backward: rank < 0,
            count,
            most: if most == 0 { u64::MAX } else { most },
            looked: 0,
            found: 0,
            ranks: Vec::new(),
        })
    }

    /// The rank of the element that is looked at next; `None` behind the last.
    #[inline]
    fn next(&self, elements: ListRef<'_>) -> Option<u64> {
        let len = elements.len();
        let has_more = self.looked < len.min(self.most);
        has_more.then(|| match self.is_backward {
            true => len - 1 - self.looked,
            false => self.looked,
        })
    }

    /// Looks at the elements of one leaf. Returns whether there are more to look at.
    #[inline]
    fn step(&mut self, elements: ListRef<'_>, wanted: Cell<'_>) -> bool {
        let Some(rank) = self.next(elements) else {
            return false;
        };
        let matches = match self.count {
            None => 1,
            Some(0) => u64::MAX,
            Some(count) => count,
        };
        let (len, is_backward, most) = (elements.len(), self.is_backward, self.most);
        let (ranks, skipped, found) = (&mut self.ranks, &mut self.skipped, &mut self.found);
        let mut looked = self.looked;
        let visit = |element: Cell<'_>| {
            looked += 1;
            if element == wanted {
                if *skipped > 0 {
                    *skipped -= 1;
                } else {
                    *found += 1;
                    ranks.push(if is_backward {
                        len - looked
                    } else {
                        looked - 1
                    });
                }
            }
            looked < most && *found < matches
        };
        match is_backward {
            true => elements.search_leaf_back(rank, visit),
            false => elements.search_leaf(rank, visit),
        }
        self.looked = looked;
        self.found < matches && self.next(elements).is_some()
    }

    fn cold(&self, elements: ListRef<'_>, leaves: usize) -> Vec<Base> {
        let next = self.next(elements);
        next.map_or(Vec::new(), |rank| {
            elements.cold_from_rank(rank, leaves, self.is_backward)
        })
    }

    /// Answers with the ranks that are not in the reply yet.
    fn write(&mut self, writer: &mut Writer<'_>) {
        self.ranks
            .drain(..)
            .for_each(|rank| writer.integer(rank as i64));
    }

    /// Answers with what comes before all ranks.
    fn write_head(&self, writer: &mut Writer<'_>) {
        match self.count {
            None if self.found == 0 => writer.null(),
            None => {}
            Some(_) => writer.array(self.found as usize),
        }
    }
}

/// A search that goes on at a moment.
struct Seeker {
    search: Search,
    wanted: Vec<u8>,
}

impl Look<Elements> for Seeker {
    const STREAMS: bool = false;

    fn step(&mut self, items: ItemsRef<'_, Elements>, writer: &mut Writer<'_>) -> bool {
        let has_more = self.search.step(items, Cell::of(&self.wanted));
        self.search.write(writer);
        has_more
    }

    fn cold(&mut self, items: ItemsRef<'_, Elements>, ahead: Option<usize>) -> Vec<Base> {
        self.search.cold(items, ahead.unwrap_or(1))
    }

    fn head(&self, writer: &mut Writer<'_>) {
        self.search.write_head(writer);
    }
}

const RANK_RANGE: Failure = Failure::of(
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
);

/// `LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]`
pub(super) fn lpos(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let mut search = Search::parse(args)?;
    let (key, wanted, may_defer) = (args.key(1), cell(args, 2)?, context.may_defer());
    let mut shard = context.store.lock(key);
    let mut found = shard.read_list(key)?;
    let has_cold = found.as_ref().is_some_and(|items| items.has_cold_leaves());
    let mut has_more = false;
    if let Some(items) = found.as_ref().map(Items::items) {
        let slice = Slice::if_any(may_defer);
        loop {
            if has_cold && !search.cold(items, 1).is_empty() {
                has_more = true;
                break;
            }
            has_more = search.step(items, wanted);
            if !has_more || !slice.goes_on() {
                break;
            }
        }
    }
    if !has_more {
        search.write_head(&mut context.reply);
        search.write(&mut context.reply);
        return Ok(Next::Done);
    }
    let moment = found.as_mut().and_then(Items::moment);
    drop(shard);
    let at = context.reply.position();
    let wanted = args.get(2).to_vec();
    let seeker = Seeker { search, wanted };
    Ok(leave_or_retry::<Elements>(
        context, args, at, moment, seeker,
    ))
}

/// The leaves that LINDEX needs.
pub(super) fn leaves_of_lindex(
    args: &Args<'_>,
    elements: ListRef<'_>,
    _: bool,
    _: Packed,
) -> Vec<Base> {
    let index = args.integer(2).ok();
    let rank = index.and_then(|index| rank_of(index, elements.len()));
    rank.map_or(Vec::new(), |rank| elements.cold_between(rank, rank + 1))
}

/// The leaves that LRANGE needs.
pub(super) fn leaves_of_lrange(
    args: &Args<'_>,
    elements: ListRef<'_>,
    walks: bool,
    _: Packed,
) -> Vec<Base> {
    let (Ok(start), Ok(stop)) = (args.integer(2), args.integer(3)) else {
        return Vec::new();
    };
    let ranks = ranks_of(start, stop, elements.len());
    let records = elements.cold_between(ranks.start, ranks.end);
    match walks && records.len() > BACK_MOST {
        true => Vec::new(),
        false => records,
    }
}
