//! COMMAND: description of this server's commands for clients.
//!
//! Everything here derives from the table of commands; the words about one command are in `description` and
//! `documentation`, its keys are found by `command::key_finder`.

use super::{
    ALWAYS, Arg, ArgKind, Args, Context, Failure, Group, Handled, Makes, Next, Spec, description,
    documentation, help,
};
use crate::command::key_finder::{self, FoundKey};
use crate::command::{Command, Table, access, category, failure, flag, table};
use crate::names::glob::{self, Case};
use crate::request::Reply;

const NAMES: &[Arg] = &[Arg::of("command-name", ArgKind::String)
    .optional()
    .multiple()];

/// A whole command, as an argument.
const WHOLE_COMMAND: &[Arg] = &[
    Arg::of("command", ArgKind::String),
    Arg::of("arg", ArgKind::String).optional().multiple(),
];

/// Common part of the rows below.
const ROW: Spec = Spec {
    flags: ALWAYS,
    group: Group::Server,
    since: "2.8.13",
    categories: category::CONNECTION,
    ..Spec::BASE
};

pub(super) const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "count",
        makes: Makes::Little,
        arity: 2,
        summary: "Counts the commands of this server",
        handler: count,
        ..ROW
    },
    Spec {
        name: "info",
        makes: Makes::Item,
        arity: -2,
        summary: "Describes the commands that are named, or all",
        complexity: "O(N) where N is the number of commands to look up",
        tips: &["nondeterministic_output_order"],
        args: NAMES,
        history: &[("7.0.0", "Describes all commands when none is named.")],
        handler: info,
        ..ROW
    },
    Spec {
        name: "docs",
        makes: Makes::Item,
        arity: -2,
        since: "7.0.0",
        summary: "Documents the commands that are named, or all",
        complexity: "O(N) where N is the number of commands to look up",
        tips: &["nondeterministic_output_order"],
        args: NAMES,
        handler: docs,
        ..ROW
    },
    Spec {
        name: "list",
        makes: Makes::Item,
        arity: -2,
        since: "7.0.0",
        summary: "Lists the names of all commands, or of some",
        complexity: "O(N) where N is the number of commands",
        tips: &["nondeterministic_output_order"],
        args: &[Arg::one_of(
            "filterby",
            &[
                Arg::of("module-name", ArgKind::String).token("MODULE"),
                Arg::of("category", ArgKind::String).token("ACLCAT"),
                Arg::of("pattern", ArgKind::Pattern).token("PATTERN"),
            ],
        )
        .token("FILTERBY")
        .optional()],
        handler: list,
        ..ROW
    },
    Spec {
        name: "getkeys",
        makes: Makes::Item,
        arity: -3,
        summary: "Finds the keys of a whole command",
        complexity: "O(N) where N is the number of arguments",
        args: WHOLE_COMMAND,
        handler: get_keys,
        ..ROW
    },
    Spec {
        name: "getkeysandflags",
        makes: Makes::Item,
        arity: -3,
        since: "7.0.0",
        summary: "Finds the keys of a whole command, and what happens to each",
        complexity: "O(N) where N is the number of arguments",
        args: WHOLE_COMMAND,
        handler: get_keys_and_flags,
        ..ROW
    },
    Spec {
        name: "help",
        makes: Makes::Item,
        arity: 2,
        since: "5.0.0",
        summary: "Prints the subcommands of COMMAND",
        handler: print_help,
        ..ROW
    },
];

/// COMMAND without a subcommand.
pub(super) fn command(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    describe_all(&mut context.reply);
    Ok(Next::Done)
}

fn count(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    context.reply.integer(table().commands().len() as i64);
    Ok(Next::Done)
}

fn info(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.len() == 2 {
        describe_all(&mut context.reply);
        return Ok(Next::Done);
    }
    context.reply.array(args.len() - 2);
    for name in args.from(2) {
        match find(table(), name) {
            Some(command) => description::write(&mut context.reply, command),
            None => context.reply.null(),
        }
        context.check_reply(context.reply.position())?;
    }
    Ok(Next::Done)
}

fn describe_all(reply: &mut Reply<'_>) {
    let commands = table().commands();
    reply.array(commands.len());
    commands
        .iter()
        .for_each(|command| description::write(reply, command));
}

fn docs(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let table = table();
    let commands: Vec<&Command> = if args.len() == 2 {
        table.commands().iter().collect()
    } else {
        args.from(2).filter_map(|name| find(table, name)).collect()
    };
    context.reply.map(commands.len());
    for command in commands {
        documentation::write(&mut context.reply, command);
        context.check_reply(context.reply.position())?;
    }
    Ok(Next::Done)
}

/// Which commands COMMAND LIST names.
enum Filter<'a> {
    None,
    /// Those of a module; there are no modules.
    Module,
    Category(&'a [u8]),
    Pattern(&'a [u8]),
}

impl<'a> Filter<'a> {
    fn parse(args: &Args<'a>) -> Result<Filter<'a>, Failure> {
        match args.len() {
            2 => Ok(Filter::None),
            5 if !args.is(2, "filterby") => Err(failure::SYNTAX),
            5 if args.is(3, "module") => Ok(Filter::Module),
            5 if args.is(3, "aclcat") => Ok(Filter::Category(args.get(4))),
            5 if args.is(3, "pattern") => Ok(Filter::Pattern(args.get(4))),
            _ => Err(failure::SYNTAX),
        }
    }

    fn takes(&self, command: &Command) -> bool {
        match self {
            Filter::None => true,
            Filter::Module => false,
            // The category comes without its sign.
            Filter::Category(name) => {
                description::names(category::NAMES, category::of(command.spec))
                    .any(|category| category.as_bytes()[1..].eq_ignore_ascii_case(name))
            }
            Filter::Pattern(pattern) => {
                let name = command.full_name.as_bytes();
                *pattern == b"*" || glob::matches(pattern, name, Case::Insensitive)
            }
        }
    }
}

fn list(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let filter = Filter::parse(args)?;
    let names = table().all().filter(|command| filter.takes(command));
    let names: Vec<&str> = names.map(|command| command.full_name.as_str()).collect();
    context.reply.array(names.len());
    names
        .iter()
        .for_each(|name| context.reply.bulk(name.as_bytes()));
    Ok(Next::Done)
}

fn get_keys(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let asked: Vec<&[u8]> = args.from(2).collect();
    let keys = keys_of(&asked)?;
    context.reply.array(keys.len());
    keys.iter()
        .for_each(|key| context.reply.bulk(asked[key.at]));
    Ok(Next::Done)
}

fn get_keys_and_flags(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let asked: Vec<&[u8]> = args.from(2).collect();
    let keys = keys_of(&asked)?;
    context.reply.array(keys.len());
    for key in keys {
        context.reply.array(2);
        context.reply.bulk(asked[key.at]);
        description::write_words(
            &mut context.reply,
            description::names(access::NAMES, key.access),
        );
    }
    Ok(Next::Done)
}

/// The keys of a whole command; the ways in which it can be none are told apart.
fn keys_of(asked: &[&[u8]]) -> Result<Vec<FoundKey>, Failure> {
    let command = match asked {
        [name, rest @ ..] => table().find_with(name, rest.first().copied()),
        [] => None,
    };
    let command = command.ok_or(Failure::of("ERR Invalid command specified"))?;
    if command.spec.keys.is_empty() {
        return Err(Failure::of("ERR The command has no key arguments"));
    }
    if !command.takes(asked.len()) {
        return Err(Failure::of(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    match key_finder::find(command.spec, asked) {
        Some(keys) => Ok(keys),
        // A number of keys that is none, as of a script, means none.
        None if command.spec.has(flag::NO_MANDATORY_KEYS) => Ok(Vec::new()),
        None => Err(Failure::of("ERR Invalid arguments specified for command")),
    }
}

/// Finds a command, or a subcommand named as `container|subcommand`.
pub(super) fn find<'t>(table: &'t Table, name: &[u8]) -> Option<&'t Command> {
    match name.iter().position(|&byte| byte == b'|') {
        None => table.find(name),
        Some(bar) => table.find(&name[..bar])?.subcommand(&name[bar + 1..]),
    }
}

fn print_help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    help(
        context,
        "COMMAND",
        &[
            "(no subcommand)",
            "    Describe all commands.",
            "COUNT",
            "    Return how many commands there are.",
            "LIST [FILTERBY <MODULE <name>|ACLCAT <category>|PATTERN <pattern>>]",
            "    Return the names of all commands, or of those that the filter takes.",
            "INFO [<command-name> ...]",
            "    Describe some commands, or all of them.",
            "DOCS [<command-name> ...]",
            "    Document some commands, or all of them.",
            "GETKEYS <full-command>",
            "    Return the keys of a whole command.",
            "GETKEYSANDFLAGS <full-command>",
            "    Return the keys of a whole command and what happens to each of them.",
        ],
    );
    Ok(Next::Done)
}
