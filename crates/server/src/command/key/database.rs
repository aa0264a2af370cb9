//! Databases as a whole: DBSIZE, FLUSHDB, FLUSHALL, SWAPDB.
//!
//! Emptying and exchanging happen between two turns of all workers, so that no command sees half of it.
//! Dropped data is freed in the background with SYNC and ASYNC alike.

use crate::command::{Args, Context, Failure, Handled, Next, failure};
use crate::persistence::snapshot;

pub(super) fn dbsize(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let keys = context.store.database().len();
    context.reply.integer(keys as i64);
    Ok(Next::Done)
}

pub(super) fn flushdb(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    check_flush_mode(args)?;
    let db = context.store.db;
    context.store.flush(db..db + 1);
    context.reply.ok();
    Ok(Next::Done)
}

pub(super) fn flushall(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    check_flush_mode(args)?;
    context.store.flush(0..context.server.keyspace.databases());
    snapshot::after_flush_all(context.server, context.store.turn);
    context.reply.ok();
    Ok(Next::Done)
}

/// Refuses anything but nothing, SYNC or ASYNC.
fn check_flush_mode(args: &Args<'_>) -> Result<(), Failure> {
    match args.len() {
        1 => Ok(()),
        2 if args.is(1, "SYNC") || args.is(1, "ASYNC") => Ok(()),
        _ => Err(failure::SYNTAX),
    }
}

pub(super) fn swapdb(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if context.server.cluster.is_some() {
        return Err(Failure::of("ERR SWAPDB is not allowed in cluster mode"));
    }
    let index = |at, error| args.integer_i32(at).map_err(|_| Failure::of(error));
    let first = index(1, "ERR invalid first DB index")?;
    let second = index(2, "ERR invalid second DB index")?;
    let databases = context.server.keyspace.databases();
    let existing = |index| {
        usize::try_from(index)
            .ok()
            .filter(|&index| index < databases)
            .ok_or(failure::DB_INDEX)
    };
    let (first, second) = (existing(first)?, existing(second)?);
    if first != second {
        context.store.swap(first, second);
    }
    context.reply.ok();
    Ok(Next::Done)
}
