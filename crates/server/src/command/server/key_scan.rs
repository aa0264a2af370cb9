//! BIGKEYS and PREFIXES: results of the key scan in the background, see [`crate::metrics::key_scan`].

use keyspace::Key;

use super::{
    ALWAYS, Arg, ArgKind, Args, Context, Failure, Group, Handled, Makes, Next, Spec, flag, help,
};
use crate::command::failure;
use crate::metrics::key_scan::{BigKey, KeyScan, MOST, Prefix, Prefixes, Rule};

/// Common part of the rows below. In a transaction they run alone: the key scan waits for shards, so a holder
/// of shards must not wait for it.
const ROW: Spec = Spec {
    flags: flag::ADMIN,
    group: Group::Server,
    since: "8.6.0",
    tips: &["request_policy:all_shards", "nondeterministic_output"],
    ..Spec::BASE
};

pub(super) const BIGKEYS: Spec = Spec {
    name: "bigkeys",
    makes: Makes::Little,
    arity: -1,
    summary: "Returns the largest keys, in memory or on the disk, as far as they were seen in the background; Ferrite's own",
    args: &[Arg::of("count", ArgKind::Integer).token("COUNT").optional()],
    handler: big_keys,
    ..ROW
};

pub(super) const PREFIXES: Spec = Spec {
    name: "prefixes",
    makes: Makes::Little,
    arity: -2,
    group: Group::Server,
    since: "8.6.0",
    summary: "Container of the commands that count keys by what they begin with; Ferrite's own",
    complexity: "Depends on subcommand.",
    subcommands: SUBCOMMANDS,
    ..Spec::BASE
};

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "start",
        makes: Makes::Little,
        arity: -2,
        flags: flag::ADMIN,
        summary: "Begins to count keys by prefix, in the background",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        args: &[
            Arg::of("separator", ArgKind::String)
                .token("SEPARATOR")
                .optional(),
            Arg::of("depth", ArgKind::Integer).token("DEPTH").optional(),
        ],
        handler: start,
        ..ROW
    },
    Spec {
        name: "get",
        makes: Makes::Item,
        arity: -2,
        flags: flag::ADMIN,
        summary: "Returns what was counted by prefix so far",
        args: &[Arg::of("count", ArgKind::Integer).token("COUNT").optional()],
        handler: get,
        ..ROW
    },
    Spec {
        name: "help",
        makes: Makes::Item,
        arity: 2,
        flags: ALWAYS | flag::NO_DATA,
        summary: "Prints the subcommands of PREFIXES",
        tips: &[],
        handler: print_help,
        ..ROW
    },
];

/// Prefixes that PREFIXES GET returns unless it is told how many.
const SHOWN: usize = 32;

/// The count behind the word COUNT, from an argument on; nothing else may follow.
fn parse_count(args: &Args<'_>, from: usize, otherwise: usize) -> Result<usize, Failure> {
    if args.len() == from {
        return Ok(otherwise);
    }
    if args.len() != from + 2 || !args.is(from, "count") {
        return Err(failure::SYNTAX);
    }
    match usize::try_from(args.integer(from + 1)?) {
        Ok(count @ 1..) => Ok(count),
        _ => Err(Failure::of("ERR COUNT must be > 0")),
    }
}

/// The big keys that the walk in the background has seen, with their present sizes: some keys may have gone,
/// or have become smaller.
fn known_now(context: &mut Context<'_>) -> Result<Vec<BigKey>, Failure> {
    let scan = &context.server.key_scan;
    let mut known = scan.biggest();
    known.retain_mut(|big| {
        let hash = context.store.keyspace.hash(&big.key);
        let key = Key {
            bytes: &big.key,
            hash,
        };
        let size = context.store.size_in(big.db, key);
        big.size = size.unwrap_or_default();
        size.is_some()
    });
    if known.is_empty() {
        scan.hurry();
        return Err(NOT_SEEN_YET);
    }
    known.sort_by(|one, other| other.cmp_size(one));
    Ok(known)
}

/// Why there is no answer, though there are keys.
const NOT_SEEN_YET: Failure =
    Failure::of("ERR the keys are new and were not looked at yet: ask again in a few seconds");

fn big_keys(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.len() == 2 && args.is(1, "help") {
        print_help_of_big_keys(context);
        return Ok(Next::Done);
    }
    let most = parse_count(args, 1, MOST)?;
    let (server, store) = (context.server, &context.store);
    let mut known = match KeyScan::biggest_at_once(&server.keyspace, store.turn, store.now) {
        Some(all) => all,
        None => known_now(context)?,
    };
    known.truncate(most);
    let reply = &mut context.reply;
    reply.array(known.len());
    for big in known {
        reply.map(4);
        reply.bulk(b"key");
        reply.bulk(&big.key);
        reply.named_integer("db", big.db as i64);
        reply.named_integer("bytes", big.size.bytes() as i64);
        reply.named_integer("on_disk", big.size.disk as i64);
    }
    Ok(Next::Done)
}

fn print_help_of_big_keys(context: &mut Context<'_>) {
    help(
        context,
        "BIGKEYS",
        &[
            "[COUNT <count>]",
            "    Return the largest keys (at most 32), the largest first. Of each: its name, its database,",
            "    its bytes in all, and how many of them are on the disk and not in memory. Among more than",
            "    1000 keys those are compared that a walk in the background has seen; it takes seconds.",
        ],
    );
}

fn start(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let mut rule = Rule {
        separator: b":".to_vec(),
        depth: 1,
    };
    let mut at = 2;
    while at < args.len() {
        if at + 1 == args.len() {
            return Err(failure::SYNTAX);
        }
        if args.is(at, "separator") {
            rule.separator = args.get(at + 1).to_vec();
            if rule.separator.is_empty() || rule.separator.len() > 16 {
                return Err(Failure::of("ERR SEPARATOR must have 1 to 16 bytes"));
            }
        } else if args.is(at, "depth") {
            rule.depth = match args.integer(at + 1)? {
                depth @ 1..=8 => depth as usize,
                _ => return Err(Failure::of("ERR DEPTH must be between 1 and 8")),
            };
        } else {
            return Err(failure::SYNTAX);
        }
        at += 2;
    }
    context.server.key_scan.count_prefixes(rule);
    context.reply.ok();
    Ok(Next::Done)
}

fn get(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let most = parse_count(args, 2, SHOWN)?;
    let server = context.server;
    server.key_scan.with_prefixes(|prefixes| match prefixes {
        None => Err(Failure::of(
            "ERR nothing was counted yet: begin with PREFIXES START",
        )),
        Some(prefixes) => {
            tell(context, prefixes, most);
            Ok(Next::Done)
        }
    })
}

fn tell(context: &mut Context<'_>, prefixes: &Prefixes, most: usize) {
    let until_ms = if prefixes.is_done {
        prefixes.ended_ms
    } else {
        context.store.now
    };
    let heaviest = prefixes.heaviest(most);
    let reply = &mut context.reply;
    reply.map(8);
    reply.bulk(b"state");
    reply.bulk(if prefixes.is_done {
        b"done"
    } else {
        b"running"
    });
    reply.named_integer("milliseconds", (until_ms - prefixes.began_ms).max(0));
    reply.bulk(b"separator");
    reply.bulk(&prefixes.rule.separator);
    reply.named_integer("depth", prefixes.rule.depth as i64);
    for (name, prefix) in [
        (&b"total"[..], prefixes.total),
        (b"without_separator", prefixes.without),
        (b"not_listed", prefixes.rest),
    ] {
        context.reply.bulk(name);
        tell_prefix(context, None, prefix);
    }
    context.reply.bulk(b"prefixes");
    context.reply.array(heaviest.len());
    for (name, prefix) in heaviest {
        tell_prefix(context, Some(name), prefix);
    }
}

fn tell_prefix(context: &mut Context<'_>, name: Option<&[u8]>, prefix: Prefix) {
    let reply = &mut context.reply;
    reply.map(3 + usize::from(name.is_some()));
    if let Some(name) = name {
        reply.bulk(b"prefix");
        reply.bulk(name);
    }
    for (field, count) in [
        (&b"keys"[..], prefix.keys),
        (b"bytes", prefix.bytes),
        (b"expiring", prefix.expiring),
    ] {
        reply.bulk(field);
        reply.integer(count as i64);
    }
}

fn print_help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    help(
        context,
        "PREFIXES",
        &[
            "START [SEPARATOR <separator>] [DEPTH <depth>]",
            "    Begin to count keys, bytes and expiry by what keys begin with: up to the first separator",
            "    (default: a colon), or the second with DEPTH 2, and so on. Nobody waits for it. Bytes are",
            "    those in memory and those of values that are on the disk alone.",
            "GET [COUNT <count>]",
            "    Return what was counted so far, and whether that is all; the heaviest prefixes first",
            "    (default: 32 of them).",
        ],
    );
    Ok(Next::Done)
}
