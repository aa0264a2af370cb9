//! ZRANDMEMBER and ZSCAN.

use keyspace::collection::kind::Scores;
use keyspace::collection::sorted::score_of;
use resp::number::{DOUBLE_TEXT_LEN, INTEGER_TEXT_LEN, format_shortest, format_u64};

use super::super::items::cells::write_cell;
use super::super::items::draw;
use super::super::items::scan::ScanOptions;
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

/// `ZSCAN key cursor [MATCH pattern] [COUNT count]`
///
/// In the order of hashes, which is in no moment of the set: all of a call is looked up under the lock.
pub(super) fn zscan(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, from) = (args.key(1), cursor::parse(args.get(2))?);
    let mut shard = context.store.lock(key);
    let reply = &mut context.reply;
    let Some(set) = shard.read_sorted_set(key)? else {
        // Of a key that is missing Redis doesn't look at the options either.
        reply.array(2);
        reply.bulk(b"0");
        reply.array(0);
        return Ok(Next::Done);
    };
    let options = ScanOptions::parse(args, false)?;
    let (start, mut found) = (reply.position(), 0);
    let next = set.sorted().scan(from, options.count, |item| {
        if options.matches(item.name) {
            write_cell(reply, item.name);
            reply.bulk(format_shortest(score_of(&item), &mut [0; DOUBLE_TEXT_LEN]));
            found += 2;
        }
    });
    reply.put_before(start, |writer| {
        writer.array(2);
        writer.bulk(format_u64(next, &mut [0; INTEGER_TEXT_LEN]));
        writer.array(found);
    });
    Ok(Next::Done)
}
