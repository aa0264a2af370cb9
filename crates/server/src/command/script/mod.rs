//! Scripts and functions: EVAL, FCALL and their relatives, SCRIPT, and FUNCTION.
//!
//! Here is the table; `function_table` has the rows of FUNCTION. `eval` finds the script or the function and
//! excludes others from the data for the time of its run, `host` runs the commands that it calls, `manage`
//! has the subcommands of SCRIPT, and `function` those of FUNCTION. Lua of one worker is
//! [`crate::command::engine`].
//!
//! A script holds the shards of its keys, if it is proven to use no others and has no loop; while any other
//! script runs, no other worker is inside a turn. Its changes are one batch of the log.

mod eval;
mod function;
mod function_table;
mod host;
mod manage;

use super::spec::{Begin, Find, NO_VALUES};
use super::{Arg, ArgKind, Group, KeySpec, Makes, Reach, Spec, access, category, flag::*};

/// The keys that follow their number.
const fn keys(access: u16, notes: &'static str) -> KeySpec {
    KeySpec {
        access,
        begin: Begin::Index(2),
        find: Find::Count {
            count: 0,
            first: 1,
            step: 1,
        },
        notes: Some(notes),
    }
}

const WRITES: &[KeySpec] = &[keys(
    access::RW | access::ACCESS | access::UPDATE,
    "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE",
)];
const READS: &[KeySpec] = &[keys(
    access::RO | access::ACCESS,
    "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS",
)];

const fn args(first: &'static str) -> [Arg; 4] {
    [
        Arg::of(first, ArgKind::String),
        Arg::of("numkeys", ArgKind::Integer),
        Arg::key("key").optional().multiple(),
        Arg::of("arg", ArgKind::String).optional().multiple(),
    ]
}

/// Flags of EVAL.
const RUNS: u32 = NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLE_KEYS;

/// Common part of the rows that run a script.
const ROW: Spec = Spec {
    arity: -3,
    flags: RUNS | MAY_REPLICATE,
    keys: WRITES,
    group: Group::Scripting,
    since: "2.6.0",
    complexity: "That of the commands of the script",
    // Each command of a script asks for its own.
    needs: NO_VALUES,
    makes: Makes::Reply,
    reach: |_| Some(Reach::Everything),
    ..Spec::BASE
};

/// Common part of the rows of SCRIPT.
const SUBCOMMAND: Spec = Spec {
    arity: 2,
    flags: NOSCRIPT | NO_DATA,
    group: Group::Scripting,
    categories: category::SCRIPTING,
    since: "2.6.0",
    makes: Makes::Little,
    ..Spec::BASE
};

pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "eval",
        summary: "Runs a script",
        args: &args("script"),
        handler: eval::eval,
        ..ROW
    },
    Spec {
        name: "evalsha",
        summary: "Runs a script that the server knows, by the SHA-1 of its text",
        args: &args("sha1"),
        handler: eval::evalsha,
        keys: &[KeySpec {
            notes: None,
            ..keys(access::RW | access::ACCESS | access::UPDATE, "")
        }],
        ..ROW
    },
    Spec {
        name: "eval_ro",
        flags: RUNS | READONLY,
        since: "7.0.0",
        summary: "Runs a script that may only read",
        args: &args("script"),
        keys: READS,
        handler: eval::eval_ro,
        ..ROW
    },
    Spec {
        name: "evalsha_ro",
        flags: RUNS | READONLY,
        since: "7.0.0",
        summary: "Runs a script that the server knows and that may only read",
        args: &args("sha1"),
        keys: &[KeySpec {
            notes: None,
            ..keys(access::RO | access::ACCESS, "")
        }],
        handler: eval::evalsha_ro,
        ..ROW
    },
    Spec {
        name: "fcall",
        since: "7.0.0",
        summary: "Calls a function of a library",
        args: &args("function"),
        handler: eval::fcall,
        ..ROW
    },
    Spec {
        name: "fcall_ro",
        flags: RUNS | READONLY,
        since: "7.0.0",
        summary: "Calls a function of a library that may only read",
        args: &args("function"),
        keys: READS,
        handler: eval::fcall_ro,
        ..ROW
    },
    Spec {
        name: "function",
        arity: -2,
        flags: 0,
        group: Group::Scripting,
        since: "7.0.0",
        summary: "Keeps, lists and removes libraries of functions",
        complexity: "That of the subcommand",
        makes: Makes::Little,
        subcommands: function_table::SUBCOMMANDS,
        ..Spec::BASE
    },
    Spec {
        name: "script",
        arity: -2,
        flags: 0,
        group: Group::Scripting,
        since: "2.6.0",
        summary: "Keeps, finds and forgets scripts",
        complexity: "That of the subcommand",
        makes: Makes::Little,
        subcommands: SUBCOMMANDS,
        ..Spec::BASE
    },
];

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "debug",
        arity: 3,
        since: "3.2.0",
        summary: "Refuses all but NO: there is no debugger of scripts",
        args: &[Arg::one_of(
            "mode",
            &[
                Arg::word("yes", "YES"),
                Arg::word("sync", "SYNC"),
                Arg::word("no", "NO"),
            ],
        )],
        handler: manage::debug,
        ..SUBCOMMAND
    },
    Spec {
        name: "exists",
        arity: -3,
        summary: "Says which scripts the server knows",
        complexity: "O(N), N being the number of scripts that are asked for",
        tips: &[
            "request_policy:all_shards",
            "response_policy:agg_logical_and",
        ],
        args: &[Arg::of("sha1", ArgKind::String).multiple()],
        makes: Makes::Reply,
        handler: manage::exists,
        ..SUBCOMMAND
    },
    Spec {
        name: "flush",
        arity: -2,
        summary: "Forgets all scripts",
        complexity: "O(N), N being the number of scripts",
        history: &[(
            "6.2.0",
            "Added the `ASYNC` and `SYNC` flushing mode modifiers.",
        )],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        args: &[Arg::one_of(
            "async",
            &[Arg::word("async", "ASYNC"), Arg::word("sync", "SYNC")],
        )
        .since("6.2.0")
        .optional()],
        handler: manage::flush,
        ..SUBCOMMAND
    },
    Spec {
        name: "help",
        flags: LOADING | STALE | NO_DATA,
        since: "5.0.0",
        summary: "Explains the subcommands",
        handler: manage::help,
        ..SUBCOMMAND
    },
    Spec {
        name: "kill",
        flags: NOSCRIPT | ALLOW_BUSY | NO_DATA,
        summary: "Ends the script that runs",
        tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
        handler: manage::kill,
        ..SUBCOMMAND
    },
    Spec {
        name: "load",
        arity: 3,
        flags: NOSCRIPT | STALE | NO_DATA,
        summary: "Keeps a script without running it",
        complexity: "O(N), N being the length of the script",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        args: &[Arg::of("script", ArgKind::String)],
        handler: manage::load,
        ..SUBCOMMAND
    },
    Spec {
        name: "show",
        arity: 3,
        flags: NOSCRIPT | STALE | NO_DATA,
        since: "8.0.0",
        summary: "Returns the text of a script that the server knows (Valkey)",
        args: &[Arg::of("sha1", ArgKind::String)],
        makes: Makes::Reply,
        handler: manage::show,
        ..SUBCOMMAND
    },
];
