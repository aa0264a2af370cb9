//! BGREWRITEAOF and WAITAOF: the log as clients see it. The log itself is in [`crate::persistence`].

use super::{
    Arg, ArgKind, Args, Context, Failure, Group, Handled, Makes, Next, Spec, category, flag,
};
use crate::command::park::{Unit, Wait, deadline};
use crate::persistence::journal::Journal;

pub(super) const BGREWRITEAOF: Spec = Spec {
    name: "bgrewriteaof",
    makes: Makes::Little,
    arity: 1,
    flags: flag::ADMIN | flag::NOSCRIPT | flag::NO_ASYNC_LOADING,
    group: Group::Server,
    summary: "Rids the log of what is not needed any more, in the background",
    handler: rewrite,
    ..Spec::BASE
};

pub(super) const WAITAOF: Spec = Spec {
    name: "waitaof",
    makes: Makes::Little,
    arity: 4,
    flags: flag::BLOCKING | flag::NO_DATA,
    group: Group::Generic,
    since: "7.2.0",
    summary: "Waits until what this connection wrote is on the disk",
    categories: category::CONNECTION,
    tips: &["request_policy:all_shards", "response_policy:agg_min"],
    args: &[
        Arg::of("numlocal", ArgKind::Integer),
        Arg::of("numreplicas", ArgKind::Integer),
        Arg::of("timeout", ArgKind::Integer),
    ],
    handler: wait,
    ..Spec::BASE
};

fn rewrite(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    match context.server.persistence.compact() {
        Some(true) => {
            let started = "Background append only file rewriting started";
            context.reply.simple(started);
            Ok(Next::Done)
        }
        Some(false) => Err(Failure::of(
            "ERR Background append only file rewriting already in progress",
        )),
        None => Err(Failure::of(
            "ERR There is no log to rewrite: 'appendonly' is 'no'",
        )),
    }
}

const NO_LOG: Failure =
    Failure::of("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");

/// Arguments of WAITAOF. There are no replicas and none can appear, so waiting for them would not change the
/// answer.
struct Request {
    is_local: bool,
    until_ms: Option<i64>,
}

impl Request {
    fn of(now_ms: i64, args: &Args<'_>) -> Result<Request, Failure> {
        let local = args.integer(1)?;
        if !(0..=1).contains(&local) {
            return Err(Failure::of(
                "ERR value is out of range, value must between 0 and 1",
            ));
        }
        if args.integer(2)? < 0 {
            return Err(Failure::of("ERR value is out of range, must be positive"));
        }
        Ok(Request {
            is_local: local == 1,
            until_ms: deadline(now_ms, args, 3, Unit::Milliseconds)?,
        })
    }
}

fn wait(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let request = Request::of(context.store.now, args)?;
    let journal = context.store.journal;
    if request.is_local && journal.is_none() {
        return Err(NO_LOG);
    }
    let wait = Wait {
        until_ms: request.until_ms,
        durable: journal.map(Journal::tail),
        repeats: false,
        give_up: answer,
    };
    match journal {
        Some(journal) if request.is_local && context.may_wait() && !is_durable(context, &wait) => {
            journal.want_sync();
            Ok(context.park(wait))
        }
        _ => {
            tell(context, &wait);
            Ok(Next::Done)
        }
    }
}

/// Whether the log has on the disk what is waited for.
fn is_durable(context: &Context<'_>, wait: &Wait) -> bool {
    let (journal, lsn) = (context.store.journal, wait.durable);
    journal.is_some_and(|journal| lsn.is_some_and(|lsn| journal.durable() >= lsn))
}

fn tell(context: &mut Context<'_>, wait: &Wait) {
    let is_durable = is_durable(context, wait);
    context.reply.array(2);
    context.reply.integer(i64::from(is_durable));
    context.reply.integer(0);
}

/// The end of a wait, for any reason.
fn answer(context: &mut Context<'_>, wait: &Wait) {
    match context.store.journal {
        Some(_) => tell(context, wait),
        None => context.refuse(&NO_LOG),
    }
}
