//! CLIENT: the table of its subcommands, and those that are about the connection itself or hold others back.

use resp::number;

use super::{ROW, conditions, listing, selection, tracking};
use crate::command::{
    Arg, ArgKind, Args, Context, Failure, Handled, Makes, Next, Spec, failure, flag, help,
};
use crate::request::ReplyMode;
use crate::shared::Outcome;
use crate::shared::PauseKind;
use crate::shared::clients::status;

/// Flags of all subcommands.
const ANY: u32 = flag::NOSCRIPT | flag::LOADING | flag::STALE;
/// Subcommands that concern the own connection only.
const OWN: u32 = ANY | flag::NO_DATA;
/// Subcommands that concern others, some of which wait until no worker is inside a turn.
const ADMIN: u32 = ANY | flag::ADMIN;

const ON_OFF: &[Arg] = &[Arg::word("on", "ON"), Arg::word("off", "OFF")];

const fn switch(token: &'static str, name: &'static str) -> Arg {
    Arg::word(name, token).optional()
}

pub(super) const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "caching",
        makes: Makes::Little,
        arity: 3,
        flags: OWN,
        since: "6.0.0",
        summary: "Says whether the next command's keys are tracked",
        args: &[Arg::one_of(
            "mode",
            &[Arg::word("yes", "YES"), Arg::word("no", "NO")],
        )],
        handler: tracking::caching,
        ..ROW
    },
    Spec {
        name: "capa",
        makes: Makes::Little,
        arity: -3,
        flags: OWN,
        since: "8.0.0",
        summary: "Says what the client can do, as in Valkey",
        args: &[Arg::of("capability", ArgKind::String).multiple()],
        handler: set_capabilities,
        ..ROW
    },
    Spec {
        name: "getname",
        makes: Makes::Little,
        arity: 2,
        flags: OWN,
        since: "2.6.9",
        summary: "Returns the name of the connection",
        handler: get_name,
        ..ROW
    },
    Spec {
        name: "getredir",
        makes: Makes::Little,
        arity: 2,
        flags: OWN,
        since: "6.0.0",
        summary: "Returns the id of the connection that gets this one's invalidations",
        handler: tracking::redirection,
        ..ROW
    },
    Spec {
        name: "help",
        makes: Makes::Item,
        arity: 2,
        flags: flag::LOADING | flag::STALE,
        since: "5.0.0",
        summary: "Describes the subcommands",
        handler: describe,
        ..ROW
    },
    Spec {
        name: "id",
        makes: Makes::Little,
        arity: 2,
        flags: OWN,
        since: "5.0.0",
        summary: "Returns the id of the connection, which no other ever has",
        handler: id,
        ..ROW
    },
    Spec {
        name: "info",
        makes: Makes::Item,
        arity: 2,
        flags: OWN,
        since: "6.2.0",
        summary: "Describes the connection as CLIENT LIST does",
        tips: &["nondeterministic_output"],
        handler: listing::info,
        ..ROW
    },
    Spec {
        name: "kill",
        makes: Makes::Little,
        arity: -3,
        flags: ADMIN,
        since: "2.4.0",
        summary: "Ends the connections that meet all conditions",
        complexity: "O(N) where N is the number of connections",
        args: conditions::KILL,
        history: conditions::KILL_HISTORY,
        handler: selection::kill,
        ..ROW
    },
    Spec {
        name: "list",
        makes: Makes::Item,
        arity: -2,
        flags: ADMIN,
        since: "2.4.0",
        summary: "Describes connections, each with a line",
        complexity: "O(N) where N is the number of connections",
        tips: &["nondeterministic_output"],
        args: conditions::LIST,
        history: conditions::LIST_HISTORY,
        handler: listing::list,
        ..ROW
    },
    Spec {
        name: "no-evict",
        makes: Makes::Little,
        arity: 3,
        flags: ADMIN,
        since: "7.0.0",
        summary: "Spares the connection when memory for connections runs out",
        args: &[Arg::one_of("enabled", ON_OFF)],
        handler: no_evict,
        ..ROW
    },
    Spec {
        name: "no-touch",
        makes: Makes::Little,
        arity: 3,
        flags: OWN,
        since: "7.2.0",
        summary: "Says whether the connection's reads count as use of the keys",
        args: &[Arg::one_of("enabled", ON_OFF)],
        handler: no_touch,
        ..ROW
    },
    Spec {
        name: "pause",
        makes: Makes::Little,
        arity: -3,
        flags: ADMIN,
        since: "2.9.50",
        summary: "Lets commands, or only those that write, wait for some milliseconds",
        args: &[
            Arg::of("timeout", ArgKind::Integer),
            Arg::one_of(
                "mode",
                &[Arg::word("write", "WRITE"), Arg::word("all", "ALL")],
            )
            .optional()
            .since("6.2.0"),
        ],
        history: &[("6.2.0", "The mode, of which WRITE is new.")],
        handler: pause,
        ..ROW
    },
    Spec {
        name: "reply",
        makes: Makes::Little,
        arity: 3,
        flags: OWN,
        since: "3.2.0",
        summary: "Says whether commands are answered: all, none, or all but the next",
        args: &[Arg::one_of(
            "on_off_skip",
            &[
                Arg::word("on", "ON"),
                Arg::word("off", "OFF"),
                Arg::word("skip", "SKIP"),
            ],
        )],
        handler: reply,
        ..ROW
    },
    Spec {
        name: "setinfo",
        makes: Makes::Little,
        arity: 4,
        flags: OWN | flag::KEEPS,
        since: "7.2.0",
        summary: "Says which library the client uses",
        args: &[Arg::one_of(
            "attr",
            &[
                Arg::of("libname", ArgKind::String).token("LIB-NAME"),
                Arg::of("libver", ArgKind::String).token("LIB-VER"),
            ],
        )],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        handler: set_info,
        ..ROW
    },
    Spec {
        name: "setname",
        makes: Makes::Little,
        arity: 3,
        flags: OWN | flag::KEEPS,
        since: "2.6.9",
        summary: "Names the connection",
        args: &[Arg::of("connection-name", ArgKind::String)],
        handler: set_name,
        ..ROW
    },
    Spec {
        name: "tracking",
        makes: Makes::Little,
        arity: -3,
        flags: ANY | flag::KEEPS,
        since: "6.0.0",
        summary: "Says whether the connection is told when keys change of which it may keep copies, and of which",
        complexity: "O(1). Some options may introduce additional complexity.",
        args: &[
            Arg::one_of("status", ON_OFF),
            Arg::of("client-id", ArgKind::Integer)
                .token("REDIRECT")
                .optional(),
            Arg {
                multiple_token: true,
                ..Arg::of("prefix", ArgKind::String)
                    .token("PREFIX")
                    .optional()
                    .multiple()
            },
            switch("BCAST", "bcast"),
            switch("OPTIN", "optin"),
            switch("OPTOUT", "optout"),
            switch("NOLOOP", "noloop"),
        ],
        handler: tracking::tracking,
        ..ROW
    },
    Spec {
        name: "trackinginfo",
        makes: Makes::Little,
        arity: 2,
        flags: OWN,
        since: "6.2.0",
        summary: "Describes how the connection's keys are tracked",
        handler: tracking::info,
        ..ROW
    },
    Spec {
        name: "unblock",
        makes: Makes::Little,
        arity: -3,
        flags: ADMIN,
        since: "5.0.0",
        summary: "Ends another connection's wait in a blocking command",
        complexity: "O(log N) where N is the number of connections",
        args: &[
            Arg::of("client-id", ArgKind::Integer),
            Arg::one_of(
                "timeout_error",
                &[Arg::word("timeout", "TIMEOUT"), Arg::word("error", "ERROR")],
            )
            .optional(),
        ],
        handler: unblock,
        ..ROW
    },
    Spec {
        name: "unpause",
        makes: Makes::Little,
        arity: 2,
        flags: ADMIN,
        since: "6.2.0",
        summary: "Ends a CLIENT PAUSE before its time",
        complexity: "O(N) where N is the number of connections that wait",
        handler: unpause,
        ..ROW
    },
];

fn set_capabilities(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if (2..args.len()).any(|at| args.is(at, "redirect")) {
        let client = &context.session.client;
        client.set_status(status::CAN_REDIRECT, true);
    }
    context.reply.ok();
    Ok(Next::Done)
}

fn get_name(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let names = context.session.client.names.lock();
    if names.name.is_empty() {
        context.reply.null();
    } else {
        context.reply.bulk(names.name.as_bytes());
    }
    Ok(Next::Done)
}

fn describe(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    help(context, "CLIENT", HELP);
    Ok(Next::Done)
}

const HELP: &[&str] = &[
    "CACHING (YES|NO)",
    "    Say whether the next command's keys are tracked.",
    "CAPA <capability> [<capability> ...]",
    "    Say what the client can do: REDIRECT. Others are ignored.",
    "GETNAME",
    "    The name of this connection.",
    "GETREDIR",
    "    The connection that gets this one's invalidations; -1 without tracking.",
    "ID",
    "    The number of this connection.",
    "INFO",
    "    This connection's line of CLIENT LIST.",
    "KILL <ip:port>",
    "    End the connection that comes from an address.",
    "KILL <condition> <value> [<condition> <value> ...]",
    "    End the connections that meet all conditions, and say how many:",
    "    * ID <id> [<id> ...]",
    "    * TYPE (NORMAL|PRIMARY|REPLICA|PUBSUB)",
    "    * USER <username>, NAME <name>, LIB-NAME <name>, LIB-VER <version>",
    "    * ADDR (<ip:port>|<unixsocket>:0), IP <ip>: where they come from",
    "    * LADDR (<ip:port>|<unixsocket>:0): where they are connected to",
    "    * DB <number>, FLAGS <letters>, CAPA <letters>: as CLIENT LIST shows them",
    "    * MAXAGE <seconds>, IDLE <seconds>: of at least this age or idle time",
    "    * SKIPME (YES|NO): spare this connection (the default) or not",
    "    All but the last three may have NOT- in front.",
    "LIST [<condition> <value> ...]",
    "    A line for each connection, or for those that meet conditions of KILL.",
    "    SKIPME NO is the default.",
    "NO-EVICT (ON|OFF)",
    "    Spare this connection when memory for connections runs out.",
    "NO-TOUCH (ON|OFF)",
    "    Don't let this connection's reads count as use of the keys.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Let all commands wait for some milliseconds, or those that write.",
    "REPLY (ON|OFF|SKIP)",
    "    Answer all commands, none, or all but the next.",
    "SETINFO (LIB-NAME|LIB-VER) <value>",
    "    Say which library the client uses.",
    "SETNAME <name>",
    "    Name this connection; an empty name is none.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
    "         [OPTIN] [OPTOUT] [NOLOOP]",
    "    Tell this connection, or another, when keys change that it has read:",
    "    * BCAST: all keys, or those that begin with a PREFIX, read or not",
    "    * OPTIN, OPTOUT: only after CACHING YES, or but after CACHING NO",
    "    * NOLOOP: not when it has changed them itself",
    "TRACKINGINFO",
    "    How this connection's keys are tracked.",
    "UNBLOCK <id> [TIMEOUT|ERROR]",
    "    End a connection's wait in a blocking command.",
    "UNPAUSE",
    "    End a PAUSE before its time.",
];

fn id(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    context.reply.integer(context.session.client.id as i64);
    Ok(Next::Done)
}

/// Spares the connection when clients are dropped because all together take too much memory.
fn no_evict(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let on = on_or_off(args)?;
    context.session.client.set_status(status::NO_EVICT, on);
    context.reply.ok();
    Ok(Next::Done)
}

fn no_touch(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    context.session.set_no_touch(on_or_off(args)?);
    context.reply.ok();
    Ok(Next::Done)
}

fn on_or_off(args: &Args<'_>) -> Result<bool, Failure> {
    match () {
        () if args.is(2, "on") => Ok(true),
        () if args.is(2, "off") => Ok(false),
        () => Err(failure::SYNTAX),
    }
}

fn pause(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let kind = match args.len() {
        3 => PauseKind::All,
        4 if args.is(3, "all") => PauseKind::All,
        4 if args.is(3, "write") => PauseKind::Write,
        4 => return Err(Failure::of("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(Failure::wrong_subcommand("CLIENT", args.get(1))),
    };
    let timeout_ms = number::parse_i64(args.get(2));
    let timeout_ms =
        timeout_ms.ok_or(Failure::of("ERR timeout is not an integer or out of range"))?;
    if timeout_ms < 0 {
        return Err(Failure::of("ERR timeout is negative"));
    }
    let now = context.store.now;
    let until_ms = now
        .checked_add(timeout_ms)
        .ok_or(Failure::of("ERR timeout is out of range"))?;
    context.server.pause.extend(now, until_ms, kind);
    // A worker in the middle of its turn does not know it yet: from the reply on it holds for all workers.
    context.store.turn.exclusive(|_| ());
    context.reply.ok();
    Ok(Next::Done)
}

fn reply(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let mode = &mut context.session.reply_mode;
    match () {
        // In a transaction the reply behind EXEC may be one that is skipped, as in Redis.
        () if args.is(2, "on") && matches!(*mode, ReplyMode::SkipNext | ReplyMode::OffSkipNext) => {
            *mode = ReplyMode::SkipNext;
            context.reply.ok();
            return Ok(Next::Done);
        }
        () if args.is(2, "on") => *mode = ReplyMode::On,
        () if args.is(2, "off")
            && matches!(*mode, ReplyMode::SkipNext | ReplyMode::OffSkipNext) =>
        {
            *mode = ReplyMode::OffSkipNext;
        }
        () if args.is(2, "off") => *mode = ReplyMode::Off,
        () if !args.is(2, "skip") => return Err(failure::SYNTAX),
        () if !matches!(*mode, ReplyMode::Off | ReplyMode::OffSkipNext) => {
            *mode = ReplyMode::SkipNext;
        }
        () => {}
    }
    if context.session.reply_mode == ReplyMode::On {
        context.reply.ok();
    }
    Ok(Next::Done)
}

fn set_info(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let is_name = args.is(2, "lib-name");
    if !is_name && !args.is(2, "lib-ver") {
        return Err(Failure::about(
            "ERR Unrecognized option '",
            args.get(2),
            "'",
        ));
    }
    let Some(value) = printable(args.get(3)) else {
        let behind = " cannot contain spaces, newlines or special characters.";
        return Err(Failure::about("ERR ", args.get(2), behind));
    };
    context.session.client.rename(|names| {
        let target = if is_name {
            &mut names.library
        } else {
            &mut names.library_version
        };
        *target = value.to_owned();
    });
    context.reply.ok();
    Ok(Next::Done)
}

fn set_name(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    context.session.set_name(check_name(args.get(2))?);
    context.reply.ok();
    Ok(Next::Done)
}

/// The name, if it may be one: CLIENT LIST separates its fields by spaces.
pub(super) fn check_name(name: &[u8]) -> Result<&str, Failure> {
    printable(name).ok_or(Failure::of(
        "ERR Client names cannot contain spaces, newlines or special characters.",
    ))
}

/// The text, if all of it can be seen.
fn printable(text: &[u8]) -> Option<&str> {
    let visible = text.iter().all(u8::is_ascii_graphic);
    std::str::from_utf8(text).ok().filter(|_| visible)
}

/// Only ends waits for data: clients held back by CLIENT PAUSE are not released one by one.
fn unblock(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let outcome = match args.len() {
        3 => Outcome::TimeIsUp,
        4 if args.is(3, "timeout") => Outcome::TimeIsUp,
        4 if args.is(3, "error") => Outcome::Error,
        4 => {
            return Err(Failure::of(
                "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
            ));
        }
        _ => return Err(Failure::wrong_subcommand("CLIENT", args.get(1))),
    };
    let (id, server) = (args.integer(2)?, context.server);
    let client = u64::try_from(id).ok().and_then(|id| server.clients.get(id));
    let is_ended = client.is_some_and(|client| server.unblock(&client, outcome));
    context.reply.integer(is_ended.into());
    Ok(Next::Done)
}

fn unpause(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    context.server.pause.end();
    context.server.wake_workers();
    context.reply.ok();
    Ok(Next::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_seen_is_the_bytes_from_33_to_126() {
        for byte in 0..=u8::MAX {
            assert_eq!(
                printable(&[b'x', byte]).is_some(),
                (33..127).contains(&byte),
                "{byte}"
            );
        }
        assert_eq!(printable(b""), Some(""));
    }
}
