//! Commands about connections: identity, database and protocol, listing and killing.
//!
//! Here is the table. `handshake` has begin and end of a connection, `client` the table and the smaller
//! subcommands of CLIENT, `listing` the lines of CLIENT LIST, `selection` the conditions of LIST and KILL,
//! `conditions` their table,
//! `tracking` CLIENT TRACKING and its relatives.
//!
//! The state of a session is in [`crate::command::session`], its part that is visible to other connections in
//! [`crate::shared::clients`]. Subscriptions, transactions and tracking add their own state there.

mod client;
mod conditions;
mod handshake;
mod listing;
mod selection;
mod tracking;

use super::{Arg, ArgKind, Group, Makes, Spec, flag};

/// Flags of commands that run before authentication.
const BEFORE_LOGIN: u32 = flag::NOSCRIPT
    | flag::LOADING
    | flag::STALE
    | flag::FAST
    | flag::NO_AUTH
    | flag::ALLOW_BUSY
    | flag::NO_DATA;

/// Common part of the rows of this family.
const ROW: Spec = Spec {
    group: Group::Connection,
    ..Spec::BASE
};

pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "auth",
        makes: Makes::Little,
        arity: -2,
        flags: BEFORE_LOGIN,
        summary: "Authenticates the connection with a password, or with a user and a password",
        complexity: "O(N) where N is the number of passwords of the user",
        args: &[
            Arg::of("username", ArgKind::String)
                .optional()
                .since("6.0.0"),
            Arg::of("password", ArgKind::String),
        ],
        history: &[("6.0.0", "The name of a user may come first.")],
        secret: |_, _| true,
        handler: handshake::auth,
        ..ROW
    },
    Spec {
        name: "client",
        makes: Makes::Little,
        arity: -2,
        since: "2.4.0",
        summary: "Shows, names, pauses and ends connections",
        complexity: "Depends on subcommand.",
        subcommands: client::SUBCOMMANDS,
        ..ROW
    },
    Spec {
        name: "echo",
        makes: Makes::Little,
        arity: 2,
        flags: flag::LOADING | flag::STALE | flag::FAST | flag::BOUNDED | flag::NO_DATA,
        summary: "Returns its argument",
        args: &[Arg::of("message", ArgKind::String)],
        handler: handshake::echo,
        ..ROW
    },
    Spec {
        name: "hello",
        makes: Makes::Little,
        arity: -1,
        flags: BEFORE_LOGIN | flag::KEEPS,
        since: "6.0.0",
        summary: "Chooses the version of the protocol, authenticates and names the connection, and describes the server",
        args: &[Arg::block(
            "arguments",
            &[
                Arg::of("protover", ArgKind::Integer),
                Arg::block(
                    "username_password",
                    &[
                        Arg::of("username", ArgKind::String),
                        Arg::of("password", ArgKind::String),
                    ],
                )
                .token("AUTH")
                .optional(),
                Arg::of("clientname", ArgKind::String)
                    .token("SETNAME")
                    .optional(),
            ],
        )
        .optional()],
        history: &[(
            "6.2.0",
            "Without a version it only describes server and connection.",
        )],
        secret: handshake::is_hello_secret,
        handler: handshake::hello,
        ..ROW
    },
    Spec {
        name: "ping",
        makes: Makes::Little,
        arity: -1,
        flags: flag::FAST | flag::BOUNDED | flag::OF_SUBSCRIBERS | flag::NO_DATA,
        summary: "Returns its argument, or PONG: a sign that the server answers",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        args: &[Arg::of("message", ArgKind::String).optional()],
        handler: handshake::ping,
        ..ROW
    },
    Spec {
        name: "quit",
        makes: Makes::Little,
        arity: -1,
        flags: BEFORE_LOGIN | flag::OF_SUBSCRIBERS,
        summary: "Ends the connection when everything before it is answered",
        handler: handshake::quit,
        ..ROW
    },
    Spec {
        name: "reset",
        makes: Makes::Little,
        arity: 1,
        flags: BEFORE_LOGIN | flag::OF_SUBSCRIBERS,
        since: "6.2.0",
        summary: "Makes the connection what it was when it was new",
        handler: handshake::reset,
        ..ROW
    },
    Spec {
        name: "select",
        makes: Makes::Little,
        arity: 2,
        flags: flag::LOADING | flag::STALE | flag::FAST | flag::NO_DATA,
        summary: "Chooses the database that the connection's commands work on",
        args: &[Arg::of("index", ArgKind::Integer)],
        handler: handshake::select,
        ..ROW
    },
];
