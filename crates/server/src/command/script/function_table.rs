//! The rows of FUNCTION.

use super::function;
use crate::command::{Arg, ArgKind, Group, Makes, Reach, Spec, category, flag::*};

/// Common part of the rows.
const ROW: Spec = Spec {
    arity: 2,
    flags: NOSCRIPT | NO_DATA,
    group: Group::Scripting,
    categories: category::SCRIPTING,
    since: "7.0.0",
    makes: Makes::Little,
    ..Spec::BASE
};

/// Common part of those that change libraries.
const CHANGES: Spec = Spec {
    flags: NOSCRIPT | WRITE | NO_DATA,
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    reach: |_| Some(Reach::Everything),
    ..ROW
};

pub(super) const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "delete",
        arity: 3,
        flags: NOSCRIPT | WRITE | REMOVES | NO_DATA,
        summary: "Removes a library",
        args: &[Arg::of("library-name", ArgKind::String)],
        handler: function::delete,
        ..CHANGES
    },
    Spec {
        name: "dump",
        summary: "Returns all libraries as one payload",
        complexity: "O(N), N being the bytes of the libraries",
        makes: Makes::Reply,
        handler: function::dump,
        ..ROW
    },
    Spec {
        name: "flush",
        arity: -2,
        flags: NOSCRIPT | WRITE | REMOVES | NO_DATA,
        summary: "Removes all libraries",
        complexity: "O(N), N being the number of functions",
        args: &[Arg::one_of(
            "async",
            &[Arg::word("async", "ASYNC"), Arg::word("sync", "SYNC")],
        )
        .optional()],
        handler: function::flush,
        ..CHANGES
    },
    Spec {
        name: "help",
        flags: LOADING | STALE | NO_DATA,
        summary: "Explains the subcommands",
        handler: function::help,
        ..ROW
    },
    Spec {
        name: "kill",
        flags: NOSCRIPT | ALLOW_BUSY | NO_DATA,
        summary: "Ends the function that runs",
        tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
        handler: function::kill,
        ..ROW
    },
    Spec {
        name: "list",
        arity: -2,
        summary: "Lists libraries and their functions",
        complexity: "O(N), N being the number of functions",
        tips: &["nondeterministic_output_order"],
        args: &[
            Arg::of("library-name-pattern", ArgKind::String)
                .token("LIBRARYNAME")
                .optional(),
            Arg::word("withcode", "WITHCODE").optional(),
        ],
        makes: Makes::Reply,
        handler: function::list,
        ..ROW
    },
    Spec {
        name: "load",
        arity: -3,
        flags: NOSCRIPT | WRITE | DENYOOM | NO_DATA,
        summary: "Adds a library",
        complexity: "O(N), N being the bytes of the code, and that of its run",
        args: &[
            Arg::word("replace", "REPLACE").optional(),
            Arg::of("function-code", ArgKind::String),
        ],
        handler: function::load,
        ..CHANGES
    },
    Spec {
        name: "restore",
        arity: -3,
        flags: NOSCRIPT | WRITE | DENYOOM | NO_DATA,
        summary: "Adds the libraries of a payload",
        complexity: "O(N), N being the bytes of the payload, and that of the run of each library",
        args: &[
            Arg::of("serialized-value", ArgKind::String),
            Arg::one_of(
                "policy",
                &[
                    Arg::word("flush", "FLUSH"),
                    Arg::word("append", "APPEND"),
                    Arg::word("replace", "REPLACE"),
                ],
            )
            .optional(),
        ],
        handler: function::restore,
        ..CHANGES
    },
    Spec {
        name: "stats",
        flags: NOSCRIPT | ALLOW_BUSY | NO_DATA,
        summary: "Returns the function that runs, and numbers of libraries and functions",
        tips: &[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ],
        handler: function::stats,
        ..ROW
    },
];
