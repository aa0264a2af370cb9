//! Commands about the server itself: description, figures, persistence, shutdown.
//!
//! Here is the table of the family; the subcommands of a container are in the file of its handlers. Reading
//! order: `introspection` answers COMMAND, with `description` and `documentation` for one
//! command; `info` with `info_sections` is INFO, of an `overview`; `memory`, `slowlog`, `latency`, `hotkeys`
//! and `key_scan` are for operators, `debug` with `digest` for tests; `cluster` and `module` say that there
//! is none; `persistence` saves; `process` has the small ones, from TIME to SHUTDOWN.
//!
//! Not here: CONFIG, whose table and handlers are in `config`.

mod append_only;
mod cluster;
pub(super) mod debug;
mod debug_suites;
mod description;
mod digest;
mod documentation;
mod hotkeys;
pub(crate) mod info;
mod info_clients;
mod info_offload;
pub(crate) mod info_sections;
mod introspection;
mod key_scan;
mod latency;
mod lolwut;
mod memory;
pub(crate) mod memory_figures;
mod module;
pub(crate) mod overview;
mod persistence;
mod process;
mod slowlog;

use super::{
    Arg, ArgKind, Args, Context, Failure, Group, Handled, KeySpec, Makes, Next, Spec, access,
    category, flag, help,
};

/// Flags of most commands for operators.
const OPERATOR: u32 = flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE;

/// Flags of commands that need no data.
const ALWAYS: u32 = flag::LOADING | flag::STALE;

/// The table of this family.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "command",
        makes: Makes::Item,
        arity: -1,
        flags: ALWAYS,
        group: Group::Server,
        since: "2.8.13",
        summary: "Describes all commands of this server",
        complexity: "O(N) where N is the number of commands",
        categories: category::CONNECTION,
        tips: &["nondeterministic_output_order"],
        subcommands: introspection::SUBCOMMANDS,
        handler: introspection::command,
        ..Spec::BASE
    },
    Spec {
        name: "info",
        makes: Makes::Item,
        arity: -1,
        flags: ALWAYS,
        group: Group::Server,
        summary: "Reports figures about the server, by section",
        complexity: "O(N) where N is the number of clients, commands and shards",
        categories: category::DANGEROUS,
        tips: &[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ],
        args: &[Arg::of("section", ArgKind::String).optional().multiple()],
        history: &[("7.0.0", "Takes several sections.")],
        handler: info::info,
        ..Spec::BASE
    },
    Spec {
        name: "memory",
        makes: Makes::Little,
        arity: -2,
        group: Group::Server,
        since: "4.0.0",
        summary: "Container of the commands that tell where memory goes",
        complexity: "Depends on subcommand.",
        subcommands: memory::SUBCOMMANDS,
        ..Spec::BASE
    },
    Spec {
        name: "slowlog",
        makes: Makes::Little,
        arity: -2,
        group: Group::Server,
        since: "2.2.12",
        summary: "Container of the commands for the log of slow commands",
        complexity: "Depends on subcommand.",
        subcommands: slowlog::SUBCOMMANDS,
        ..Spec::BASE
    },
    Spec {
        name: "latency",
        makes: Makes::Little,
        arity: -2,
        group: Group::Server,
        since: "2.8.13",
        summary: "Container of the commands that tell where time goes",
        complexity: "Depends on subcommand.",
        subcommands: latency::SUBCOMMANDS,
        ..Spec::BASE
    },
    module::MODULE,
    hotkeys::HOTKEYS,
    key_scan::BIGKEYS,
    key_scan::PREFIXES,
    Spec {
        name: "debug",
        makes: Makes::Item,
        arity: -2,
        flags: OPERATOR | flag::SYSTEM | flag::PROTECTED,
        group: Group::Server,
        summary: "Does what tests of clients and of this server need",
        complexity: "Depends on subcommand.",
        handler: debug::debug,
        ..Spec::BASE
    },
    Spec {
        name: "cluster",
        makes: Makes::Little,
        arity: -2,
        group: Group::Cluster,
        since: "3.0.0",
        summary: "Container of the commands of a cluster",
        complexity: "Depends on subcommand.",
        subcommands: cluster::SUBCOMMANDS,
        ..Spec::BASE
    },
    Spec {
        name: "readonly",
        makes: Makes::Little,
        arity: 1,
        flags: ALWAYS | flag::FAST,
        group: Group::Cluster,
        since: "3.0.0",
        summary: "Allows reads from a replica of a cluster",
        categories: category::CONNECTION,
        handler: crate::command::cluster::accept,
        ..Spec::BASE
    },
    Spec {
        name: "readwrite",
        makes: Makes::Little,
        arity: 1,
        flags: ALWAYS | flag::FAST,
        group: Group::Cluster,
        since: "3.0.0",
        summary: "Ends what READONLY began",
        categories: category::CONNECTION,
        handler: crate::command::cluster::accept,
        ..Spec::BASE
    },
    Spec {
        name: "asking",
        makes: Makes::Little,
        arity: 1,
        flags: flag::FAST,
        group: Group::Cluster,
        since: "3.0.0",
        summary: "Lets the next request reach a slot that is being moved here",
        categories: category::CONNECTION,
        handler: crate::command::cluster::accept,
        ..Spec::BASE
    },
    Spec {
        name: "time",
        makes: Makes::Little,
        arity: 1,
        flags: ALWAYS | flag::FAST,
        group: Group::Server,
        since: "2.6.0",
        summary: "Returns the time of the server, in seconds and microseconds",
        tips: &["nondeterministic_output"],
        handler: process::time,
        ..Spec::BASE
    },
    persistence::SAVE,
    append_only::BGREWRITEAOF,
    append_only::WAITAOF,
    persistence::BGSAVE,
    persistence::LASTSAVE,
    persistence::BACKUP,
    Spec {
        name: "role",
        makes: Makes::Little,
        arity: 1,
        flags: ALWAYS | flag::NOSCRIPT | flag::FAST,
        group: Group::Server,
        since: "2.8.12",
        summary: "Returns the server's part in replication",
        categories: category::ADMIN | category::DANGEROUS,
        handler: process::role,
        ..Spec::BASE
    },
    Spec {
        name: "wait",
        makes: Makes::Little,
        arity: 3,
        flags: flag::NOSCRIPT | flag::NO_DATA,
        group: Group::Generic,
        since: "3.0.0",
        summary: "Returns how many replicas have this connection's writes; there are none",
        categories: category::CONNECTION,
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        args: &[
            Arg::of("numreplicas", ArgKind::Integer),
            Arg::of("timeout", ArgKind::Integer),
        ],
        handler: process::wait,
        ..Spec::BASE
    },
    Spec {
        name: "monitor",
        makes: Makes::Little,
        arity: 1,
        flags: OPERATOR,
        group: Group::Server,
        summary: "Shows every command that the server runs, as it runs",
        handler: process::monitor,
        ..Spec::BASE
    },
    Spec {
        name: "shutdown",
        makes: Makes::Little,
        arity: -1,
        flags: OPERATOR | flag::NO_MULTI | flag::ALLOW_BUSY,
        group: Group::Server,
        summary: "Ends the server",
        args: &[
            Arg::one_of(
                "nosave_save",
                &[Arg::word("nosave", "NOSAVE"), Arg::word("save", "SAVE")],
            )
            .optional(),
            Arg::word("now", "NOW").optional().since("7.0.0"),
            Arg::word("force", "FORCE").optional().since("7.0.0"),
            Arg::word("safe", "SAFE").optional().since("9.0.0"),
            Arg::word("abort", "ABORT").optional().since("7.0.0"),
        ],
        history: &[
            ("7.0.0", "Takes `NOW`, `FORCE` and `ABORT`."),
            ("9.0.0", "Takes `SAFE`, as Valkey."),
        ],
        handler: process::shutdown,
        ..Spec::BASE
    },
    Spec {
        name: "lolwut",
        makes: Makes::Item,
        arity: -1,
        flags: flag::READONLY | flag::FAST,
        group: Group::Server,
        since: "5.0.0",
        summary: "Draws a plane of core memory, and names the version",
        args: &[Arg::of("version", ArgKind::Integer)
            .token("VERSION")
            .optional()],
        handler: lolwut::lolwut,
        ..Spec::BASE
    },
];
