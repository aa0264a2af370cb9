//! SLOWLOG: the commands that took long. They are kept by [`crate::metrics::slowlog`].

use super::{
    ALWAYS, Arg, ArgKind, Args, Context, Failure, Group, Handled, Makes, Next, Spec, flag, help,
};

/// Common part of the rows below.
const ROW: Spec = Spec {
    flags: flag::ADMIN | flag::LOADING | flag::STALE,
    group: Group::Server,
    since: "2.2.12",
    ..Spec::BASE
};

pub(super) const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "get",
        makes: Makes::Item,
        arity: -2,
        summary: "Returns the latest slow commands",
        complexity: "O(N) where N is the number of commands returned",
        tips: &["request_policy:all_nodes", "nondeterministic_output"],
        args: &[Arg::of("count", ArgKind::Integer).optional()],
        history: &[("4.0.0", "Tells the client's address and name.")],
        handler: get,
        ..ROW
    },
    Spec {
        name: "len",
        makes: Makes::Little,
        arity: 2,
        summary: "Counts the slow commands that are kept",
        tips: &[
            "request_policy:all_nodes",
            "response_policy:agg_sum",
            "nondeterministic_output",
        ],
        handler: len,
        ..ROW
    },
    Spec {
        name: "reset",
        makes: Makes::Little,
        arity: 2,
        summary: "Forgets all slow commands",
        complexity: "O(N) where N is the number of commands kept",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        handler: reset,
        ..ROW
    },
    Spec {
        name: "help",
        makes: Makes::Item,
        arity: 2,
        flags: ALWAYS,
        since: "6.2.0",
        summary: "Prints the subcommands of SLOWLOG",
        handler: print_help,
        ..ROW
    },
];

/// Commands that SLOWLOG GET returns unless it is told how many.
const SHOWN: usize = 10;

fn get(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let most = match args.len() {
        2 => SHOWN,
        3 => parse_count(args)?,
        _ => return Err(Failure::wrong_subcommand("SLOWLOG", args.get(1))),
    };
    let log = context.server.slowlog.lock();
    context.reply.array(log.iter().len().min(most));
    for slow in log.iter().take(most) {
        context.reply.array(6);
        context.reply.integer(slow.id as i64);
        context.reply.integer(slow.at_s);
        context.reply.integer(slow.duration_us as i64);
        context.reply.array(slow.args.len());
        slow.args.iter().for_each(|arg| context.reply.bulk(arg));
        context.reply.bulk(slow.peer.as_bytes());
        context.reply.bulk(slow.name.as_bytes());
    }
    Ok(Next::Done)
}

/// How many commands SLOWLOG GET is to return at most; -1 stands for all.
fn parse_count(args: &Args<'_>) -> Result<usize, Failure> {
    match args.integer(2) {
        Ok(-1) => Ok(usize::MAX),
        Ok(count @ 0..) => Ok(count as usize),
        _ => Err(Failure::of(
            "ERR count should be greater than or equal to -1",
        )),
    }
}

fn len(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let len = context.server.slowlog.lock().iter().len();
    context.reply.integer(len as i64);
    Ok(Next::Done)
}

fn reset(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    context.server.slowlog.lock().clear();
    context.reply.ok();
    Ok(Next::Done)
}

fn print_help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    help(
        context,
        "SLOWLOG",
        &[
            "GET [<count>]",
            "    Return the latest slow commands (default: 10, -1 for all). Of each:",
            "    id, time, microseconds it took, arguments, client's address, client's name.",
            "LEN",
            "    Return how many slow commands are kept.",
            "RESET",
            "    Forget all slow commands.",
        ],
    );
    Ok(Next::Done)
}
