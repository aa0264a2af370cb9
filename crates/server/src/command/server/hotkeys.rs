//! HOTKEYS: the keys that are used most. They are found by [`crate::hotkeys`].

use super::{ALWAYS, Arg, ArgKind, Args, Context, Failure, Group, Spec, flag, help};
use crate::command::{failure, table};
use crate::hotkeys::{self, MOST, Rank};

/// What the rows below have in common.
const ROW: Spec = Spec {
    flags: flag::ADMIN | flag::LOADING | flag::STALE | flag::NO_DATA,
    group: Group::Server,
    since: "8.6.0",
    tips: &["request_policy:all_nodes", "nondeterministic_output"],
    ..Spec::BASE
};

pub(super) const HOTKEYS: Spec = Spec {
    name: "hotkeys",
    arity: -2,
    group: Group::Server,
    since: "8.6.0",
    summary: "Container of the commands that tell which keys are used most; Ferrite's own",
    complexity: "Depends on subcommand.",
    subcommands: SUBCOMMANDS,
    ..Spec::BASE
};

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "get",
        arity: -2,
        summary: "Returns the keys that are used most now, by operations or by bytes",
        complexity: "O(N) where N is the number of threads",
        args: &[
            Arg::one_of(
                "rank",
                &[Arg::word("ops", "OPS"), Arg::word("bytes", "BYTES")],
            )
            .token("BY")
            .optional(),
            Arg::of("count", ArgKind::Integer).token("COUNT").optional(),
        ],
        handler: get,
        ..ROW
    },
    Spec {
        name: "reset",
        arity: 2,
        summary: "Forgets which keys were used",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        handler: reset,
        ..ROW
    },
    Spec {
        name: "help",
        arity: 2,
        flags: ALWAYS | flag::NO_DATA,
        summary: "Prints the subcommands of HOTKEYS",
        tips: &[],
        handler: print_help,
        ..ROW
    },
];

fn get(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    let (mut rank, mut most) = (Rank::Operations, MOST);
    let mut at = 2;
    while at < args.len() {
        if at + 1 == args.len() {
            return Err(failure::SYNTAX);
        }
        if args.is(at, "by") && args.is(at + 1, "ops") {
            rank = Rank::Operations;
        } else if args.is(at, "by") && args.is(at + 1, "bytes") {
            rank = Rank::Bytes;
        } else if args.is(at, "count") {
            let count = args.integer(at + 1)?;
            most = match usize::try_from(count) {
                Ok(count @ 1..) => count.min(MOST),
                _ => return Err(Failure::of("ERR COUNT must be > 0")),
            };
        } else {
            return Err(failure::SYNTAX);
        }
        at += 2;
    }
    let keys = hotkeys::heaviest(context.server, rank, most);
    let reply = &mut context.reply;
    reply.array(keys.len());
    for hot in keys {
        reply.map(5);
        reply.bulk(b"key");
        reply.bulk(&hot.key);
        reply.bulk(b"db");
        reply.integer(hot.db as i64);
        reply.bulk(b"command");
        let command = table().by_id(hot.command);
        reply.bulk(command.map_or("", |command| &command.full_name).as_bytes());
        reply.bulk(b"ops_per_sec");
        reply.integer(hot.rates.operations_per_s.round() as i64);
        reply.bulk(b"bytes_per_sec");
        reply.integer(hot.rates.bytes_per_s.round() as i64);
    }
    Ok(())
}

fn reset(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
    hotkeys::reset(context.server);
    context.reply.ok();
    Ok(())
}

fn print_help(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
    help(
        context,
        "HOTKEYS",
        &[
            "GET [BY <OPS|BYTES>] [COUNT <count>]",
            "    Return the keys that are used most now (default: by operations, 32 of them).",
            "    Of each: its name, its database, the command that used it last, operations and bytes",
            "    per second. What is a minute ago counts a quarter.",
            "RESET",
            "    Forget which keys were used.",
        ],
    );
    Ok(())
}
