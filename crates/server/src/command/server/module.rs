//! MODULE on a server without modules: the list is empty, and what would load or unload one is refused. Tools
//! ask for the list to know what a server can do.

use super::{ALWAYS, Arg, ArgKind, Args, Context, Group, Handled, Makes, Next, Spec, flag, help};
use crate::command::failure;

/// Common part of the rows below.
const ROW: Spec = Spec {
    flags: flag::ADMIN | flag::NOSCRIPT,
    group: Group::Server,
    since: "4.0.0",
    ..Spec::BASE
};

/// Flags of what would change which modules there are: a connection is refused before the command runs.
const CHANGE: u32 = flag::ADMIN | flag::NOSCRIPT | flag::NO_ASYNC_LOADING | flag::PROTECTED;

const PATH: Arg = Arg::of("path", ArgKind::String);

pub(super) const MODULE: Spec = Spec {
    name: "module",
    makes: Makes::Little,
    arity: -2,
    group: Group::Server,
    since: "4.0.0",
    summary: "Container of the commands for modules, of which there are none",
    complexity: "Depends on subcommand.",
    subcommands: &[
        Spec {
            name: "list",
            makes: Makes::Item,
            arity: 2,
            summary: "Lists the modules: none",
            complexity: "O(1)",
            tips: &["nondeterministic_output_order"],
            handler: list,
            ..ROW
        },
        Spec {
            name: "load",
            makes: Makes::Little,
            arity: -3,
            flags: CHANGE,
            summary: "Loads a module; always refused",
            args: &[PATH, Arg::of("arg", ArgKind::String).optional().multiple()],
            handler: refuse,
            ..ROW
        },
        Spec {
            name: "loadex",
            makes: Makes::Little,
            arity: -3,
            flags: CHANGE,
            since: "7.0.0",
            summary: "Loads a module with settings of its own; always refused",
            args: &[
                PATH,
                Arg {
                    multiple: true,
                    multiple_token: true,
                    ..Arg::block(
                        "configs",
                        &[
                            Arg::of("name", ArgKind::String),
                            Arg::of("value", ArgKind::String),
                        ],
                    )
                    .token("CONFIG")
                    .optional()
                },
                Arg::block("args", &[Arg::of("arg", ArgKind::String)])
                    .token("ARGS")
                    .optional()
                    .multiple(),
            ],
            handler: refuse,
            ..ROW
        },
        Spec {
            name: "unload",
            makes: Makes::Little,
            arity: 3,
            flags: CHANGE,
            summary: "Unloads a module; always refused",
            args: &[Arg::of("name", ArgKind::String)],
            handler: refuse,
            ..ROW
        },
        Spec {
            name: "help",
            makes: Makes::Item,
            arity: 2,
            flags: ALWAYS,
            since: "5.0.0",
            summary: "Prints the subcommands of MODULE",
            handler: print_help,
            ..ROW
        },
    ],
    ..Spec::BASE
};

fn list(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    context.reply.array(0);
    Ok(Next::Done)
}

fn refuse(_: &mut Context<'_>, _: &Args<'_>) -> Handled {
    Err(failure::NO_MODULES)
}

fn print_help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    help(
        context,
        "MODULE",
        &[
            "LIST",
            "    Return the list of modules, which is empty.",
            "LOAD <path> [<arg> ...]",
            "    Refused: this server has no modules.",
            "LOADEX <path> [CONFIG <name> <value> ...] [ARGS <arg> ...]",
            "    Refused: this server has no modules.",
            "UNLOAD <name>",
            "    Refused: this server has no modules.",
        ],
    );
    Ok(Next::Done)
}
