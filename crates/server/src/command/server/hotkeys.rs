//! HOTKEYS: the keys that are used most. They are found by [`crate::metrics::hotkeys`].
//!
//! START, STOP, GET and RESET are those of Redis 8.6: a session between two moments. TOP is Ferrite's own:
//! the keys used most now, without a session.

use super::{
    ALWAYS, Arg, ArgKind, Args, Context, Failure, Group, Handled, Makes, Next, Spec, flag, help,
};
use crate::command::{failure, table};
use crate::metrics::hotkeys::{self, Active, Asked, MOST, Rank, Report};

/// Metrics that there are: CPU and NET.
const METRICS: i64 = 2;

/// Keys of each list unless COUNT says how many, and the most of them.
const LISTED: usize = 10;
const MOST_LISTED: i64 = 64;

/// The longest session, in seconds.
const LONGEST_S: i64 = 1_000_000;

/// The last hash slot: a session is about all of them.
const LAST_SLOT: i64 = 16383;

/// Common part of the rows below.
const ROW: Spec = Spec {
    flags: flag::ADMIN | flag::LOADING | flag::STALE | flag::NO_DATA,
    group: Group::Server,
    since: "8.6.0",
    tips: &["request_policy:special", "response_policy:special"],
    ..Spec::BASE
};

pub(super) const HOTKEYS: Spec = Spec {
    name: "hotkeys",
    makes: Makes::Little,
    arity: -2,
    group: Group::Server,
    since: "8.6.0",
    summary: "Container of the commands that tell which keys are used most",
    complexity: "Depends on subcommand.",
    subcommands: SUBCOMMANDS,
    ..Spec::BASE
};

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "start",
        makes: Makes::Little,
        arity: -2,
        summary: "Begins to track which keys take most time and most bytes",
        args: &[
            Arg::block(
                "metrics",
                &[
                    Arg::of("count", ArgKind::Integer).token("METRICS"),
                    Arg::word("cpu", "CPU").optional(),
                    Arg::word("net", "NET").optional(),
                ],
            ),
            Arg::of("k", ArgKind::Integer).token("COUNT").optional(),
            Arg::of("seconds", ArgKind::Integer)
                .token("DURATION")
                .optional(),
            Arg::of("ratio", ArgKind::Integer)
                .token("SAMPLE")
                .optional(),
            Arg::block(
                "slots",
                &[
                    Arg::of("count", ArgKind::Integer).token("SLOTS"),
                    Arg::of("slot", ArgKind::Integer).multiple(),
                ],
            )
            .optional(),
        ],
        handler: start,
        ..ROW
    },
    Spec {
        name: "stop",
        makes: Makes::Little,
        arity: 2,
        summary: "Ends the tracking of keys; what was found stays",
        handler: stop,
        ..ROW
    },
    Spec {
        name: "get",
        makes: Makes::Item,
        arity: 2,
        summary: "Returns the keys that were found since the tracking began, and what it was",
        complexity: "O(N) where N is the number of threads",
        handler: get,
        ..ROW
    },
    Spec {
        name: "reset",
        makes: Makes::Little,
        arity: 2,
        summary: "Forgets what a tracking that has ended found",
        handler: reset,
        ..ROW
    },
    Spec {
        name: "top",
        makes: Makes::Item,
        arity: -2,
        since: "0.1.0",
        summary: "Returns the keys that are used most now, by operations or by bytes; Ferrite's own",
        complexity: "O(N) where N is the number of threads",
        tips: &["request_policy:all_nodes", "nondeterministic_output"],
        args: &[
            Arg::one_of(
                "rank",
                &[Arg::word("ops", "OPS"), Arg::word("bytes", "BYTES")],
            )
            .token("BY")
            .optional(),
            Arg::of("count", ArgKind::Integer).token("COUNT").optional(),
        ],
        handler: top,
        ..ROW
    },
    Spec {
        name: "help",
        makes: Makes::Item,
        arity: 2,
        flags: ALWAYS | flag::NO_DATA,
        summary: "Prints the subcommands of HOTKEYS",
        tips: &[],
        handler: print_help,
        ..ROW
    },
];

fn start(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let server = context.server;
    let now_ms = context.store.now;
    server.hot_key_session.stop_if_due(server.stats(), now_ms);
    if server.hot_key_session.is_active() {
        return Err(ALREADY);
    }
    let asked = parse_start(args, context.server.cluster.is_some())?;
    let started = server.hot_key_session.start(server.stats(), asked, now_ms);
    started.map_err(|Active| ALREADY)?;
    context.reply.ok();
    Ok(Next::Done)
}

const ALREADY: Failure = Failure::of("ERR hotkey tracking session already in progress");
const IN_PROGRESS: Failure =
    Failure::of("ERR hotkey tracking session in progress, stop tracking first");

/// A number within bounds; what is none, or beyond them, is refused with one text.
fn bounded(args: &Args<'_>, at: usize, most: i64, refusal: &'static str) -> Result<i64, Failure> {
    match args.integer(at) {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(Failure::of(refusal)),
    }
}

/// Options of HOTKEYS START. The order of the checks is that of Redis.
fn parse_start(args: &Args<'_>, is_node: bool) -> Result<Asked, Failure> {
    if args.len() < 4 || !args.is(2, "metrics") {
        return Err(Failure::of("ERR METRICS parameter is required"));
    }
    let metrics = bounded(args, 3, METRICS, "ERR METRICS count must be > 0 and <= 2")?;
    let mut asked = Asked {
        cpu: false,
        net: false,
        count: LISTED,
        duration_ms: None,
        sample_ratio: 1,
    };
    // Further metrics, of later versions, are passed over.
    let mut at = 4;
    let until = (at + metrics as usize).min(args.len());
    while at < until {
        let (metric, twice) = if args.is(at, "cpu") {
            (&mut asked.cpu, "ERR METRICS CPU defined more than once!")
        } else if args.is(at, "net") {
            (&mut asked.net, "ERR METRICS NET defined more than once!")
        } else {
            at += 1;
            continue;
        };
        if std::mem::replace(metric, true) {
            return Err(Failure::of(twice));
        }
        at += 1;
    }
    if at != 4 + metrics as usize {
        return Err(Failure::of(
            "ERR METRICS count does not match number of metric types provided",
        ));
    }
    if !asked.cpu && !asked.net {
        return Err(Failure::of(
            "ERR METRICS no valid metrics passed. Supported: CPU|NET",
        ));
    }
    while at < args.len() {
        if at + 1 == args.len() {
            return Err(failure::SYNTAX);
        }
        if args.is(at, "count") {
            let refusal = "ERR COUNT must be between 1 and 64";
            asked.count = bounded(args, at + 1, MOST_LISTED, refusal)? as usize;
        } else if args.is(at, "duration") {
            let refusal = "ERR DURATION must be between 1 and 1000000";
            asked.duration_ms = Some(1000 * bounded(args, at + 1, LONGEST_S, refusal)?);
        } else if args.is(at, "sample") {
            let refusal = "ERR SAMPLE ratio must be positive";
            asked.sample_ratio = bounded(args, at + 1, i64::from(i32::MAX), refusal)?;
        } else if args.is(at, "slots") {
            return Err(Failure::of(if is_node {
                "ERR SLOTS is not supported: a session is about all slots of the node"
            } else {
                "ERR SLOTS parameter cannot be used in non-cluster mode"
            }));
        } else {
            return Err(failure::SYNTAX);
        }
        at += 2;
    }
    Ok(asked)
}

fn stop(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let server = context.server;
    let now_ms = context.store.now;
    server.hot_key_session.stop_if_due(server.stats(), now_ms);
    if server.hot_key_session.stop(server.stats(), now_ms) {
        context.reply.ok();
    } else {
        context.reply.null();
    }
    Ok(Next::Done)
}

fn get(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let server = context.server;
    let now_ms = context.store.now;
    server.hot_key_session.stop_if_due(server.stats(), now_ms);
    match server.hot_key_session.report(server.stats(), now_ms) {
        Some(report) => tell(context, &report),
        None => context.reply.null(),
    }
    Ok(Next::Done)
}

/// Writes a report as Redis does: one map in an array.
fn tell(context: &mut Context<'_>, report: &Report) {
    let (asked, totals) = (&report.asked, &report.totals);
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let reply = &mut context.reply;
    reply.array(1);
    reply.map(7 + 3 * usize::from(asked.cpu) + 2 * usize::from(asked.net));
    reply.named_integer("tracking-active", i64::from(report.is_active));
    reply.named_integer("sample-ratio", asked.sample_ratio);
    reply.bulk(b"selected-slots");
    reply.array(1);
    reply.array(2);
    reply.integer(0);
    reply.integer(LAST_SLOT);
    reply.named_integer("all-commands-all-slots-us", number(totals.commands_us));
    reply.named_integer("net-bytes-all-commands-all-slots", number(totals.net_bytes));
    reply.named_integer("collection-start-time-unix-ms", report.began_ms);
    reply.named_integer("collection-duration-ms", report.duration_ms);
    if asked.cpu {
        reply.named_integer("total-cpu-time-user-ms", number(totals.user_ms));
        reply.named_integer("total-cpu-time-sys-ms", number(totals.system_ms));
    }
    if asked.net {
        reply.named_integer("total-net-bytes", number(report.key_bytes));
    }
    for (name, is_asked, keys) in [
        (&b"by-cpu-time-us"[..], asked.cpu, &report.by_cpu),
        (b"by-net-bytes", asked.net, &report.by_net),
    ] {
        if !is_asked {
            continue;
        }
        reply.bulk(name);
        reply.array(2 * keys.len());
        for (key, weight) in keys {
            reply.bulk(key);
            reply.integer(number(*weight));
        }
    }
}

fn reset(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let server = context.server;
    server
        .hot_key_session
        .stop_if_due(server.stats(), context.store.now);
    let reset = server.hot_key_session.reset(server.stats());
    reset.map_err(|Active| IN_PROGRESS)?;
    context.reply.ok();
    Ok(Next::Done)
}

fn top(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
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
    let keys = hotkeys::heaviest(context.server.stats(), rank, most);
    let reply = &mut context.reply;
    reply.array(keys.len());
    for hot in keys {
        reply.map(5);
        reply.bulk(b"key");
        reply.bulk(&hot.key);
        reply.named_integer("db", hot.db as i64);
        reply.bulk(b"command");
        let command = table().by_id(hot.command);
        reply.bulk(command.map_or("", |command| &command.full_name).as_bytes());
        reply.named_integer("ops_per_sec", hot.rates.operations_per_s.round() as i64);
        reply.named_integer("bytes_per_sec", hot.rates.bytes_per_s.round() as i64);
    }
    Ok(Next::Done)
}

fn print_help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    help(
        context,
        "HOTKEYS",
        &[
            "START METRICS <count> [CPU] [NET] [COUNT <k>] [DURATION <seconds>] [SAMPLE <ratio>]",
            "    Begin to track which keys take most time of commands (CPU) and most bytes of requests and",
            "    replies (NET): k of each (default: 10), for so many seconds or until STOP. The server takes",
            "    up to a thousand samples a second on each thread, whatever the ratio is.",
            "STOP",
            "    End that. What was found stays.",
            "GET",
            "    Return what was found, and since when; nil if nothing was begun.",
            "RESET",
            "    Forget what was found.",
            "TOP [BY <OPS|BYTES>] [COUNT <count>]",
            "    Return the keys that are used most now (default: by operations, 32 of them), without START.",
            "    Of each: its name, its database, the command that used it last, operations and bytes",
            "    per second. What is a minute ago counts a quarter.",
        ],
    );
    Ok(Next::Done)
}
