//! ZRANDMEMBER and ZSCAN.

use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::kind::Scores;
use keyspace::collection::sorted::score_of;
use keyspace::{ItemsRef, ScanStep};
use resp::number::{DOUBLE_TEXT_LEN, format_shortest};
use resp::reply::Writer;

use super::super::items::cells::write_cell;
use super::super::items::draw;
use super::super::items::moment::{Look, leave_or_retry, look_on};
use super::super::items::scan::{NO_SCORES, ScanOptions, matches, write_page_head};
use super::super::{Args, Context, Failure, Handled, Next, cursor, failure};

const OUT_OF_RANGE: Failure = Failure::of("ERR value is out of range");

/// `ZRANDMEMBER key [count [WITHSCORES]]`
pub(super) fn zrandmember(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.len() == 2 {
        return draw::one::<Scores>(context, args);
    }
    let count = draw::parse_count(args)?;
    let with_scores = args.len() > 3;
    if args.len() > 4 || with_scores && !args.is(3, "WITHSCORES") {
        return Err(failure::SYNTAX);
    }
    if with_scores && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(OUT_OF_RANGE);
    }
    draw::several::<Scores>(context, args, count, with_scores)
}

/// Leaves that come back into memory for a call of ZSCAN where there is little room; more are read by the
/// call as it comes to them.
const BACK_MOST: usize = 16;

/// The leaves at which a call of ZSCAN looks.
pub(super) fn leaves_of_zscan(args: &Args<'_>, tree: &Collection, walks: bool) -> Vec<Base> {
    let (Collection::SortedSet(set), Some((from, count))) = (tree, cursor::of_scan(args)) else {
        return Vec::new();
    };
    let records = set.cold_records_of_scan(from, count);
    match walks && records.len() > BACK_MOST {
        true => Vec::new(),
        false => records,
    }
}

/// A call of ZSCAN.
struct Scan {
    pattern: Option<Vec<u8>>,
    with_scores: bool,
    step: ScanStep,
    /// Members and scores in the reply.
    found: usize,
}

impl Scan {
    fn head(&self, writer: &mut Writer<'_>) {
        write_page_head(writer, self.step.next, self.found);
    }
}

impl Look<Scores> for Scan {
    const STREAMS: bool = false;

    fn step(&mut self, items: ItemsRef<'_, Scores>, writer: &mut Writer<'_>) -> bool {
        let Scan {
            pattern,
            with_scores,
            step,
            found,
        } = self;
        step.step(items, &mut |item| {
            if matches(pattern.as_deref(), item.name) {
                write_cell(writer, item.name);
                *found += 1;
                if *with_scores {
                    writer.bulk(format_shortest(score_of(&item), &mut [0; DOUBLE_TEXT_LEN]));
                    *found += 1;
                }
            }
        })
    }

    fn cold(&mut self, items: ItemsRef<'_, Scores>, ahead: Option<usize>) -> Vec<Base> {
        self.step.cold(items, ahead.unwrap_or(1))
    }

    fn head(&self, writer: &mut Writer<'_>) {
        Scan::head(self, writer);
    }
}

/// `ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]`
pub(super) fn zscan(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, from) = (args.key(1), cursor::parse(args.get(2))?);
    let slice = context.slice();
    let mut shard = context.store.lock(key);
    let Some(mut set) = shard.read_sorted_set(key)? else {
        // Of a key that is missing Redis doesn't look at the options either.
        write_page_head(&mut context.reply, 0, 0);
        return Ok(Next::Done);
    };
    let options = ScanOptions::parse(args, Some(NO_SCORES))?;
    let mut scan = Scan {
        pattern: options.pattern.map(<[u8]>::to_vec),
        with_scores: options.with_values,
        step: set.begin_scan(from, options.count),
        found: 0,
    };
    let reply = &mut context.reply;
    let (start, items) = (reply.position(), set.items());
    let has_cold = items.is_tree() && set.has_cold_leaves();
    if !look_on(&mut scan, items, has_cold, reply, &slice) {
        reply.put_before(start, |writer| scan.head(writer));
        return Ok(Next::Done);
    }
    // A call that runs again finds the place before it still kept.
    let moment = set.moment();
    drop(shard);
    Ok(leave_or_retry::<Scores>(context, args, start, moment, scan))
}
