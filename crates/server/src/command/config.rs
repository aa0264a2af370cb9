//! CONFIG: the settings of the running server.
//!
//! Which settings there are, what each takes and how the file is rewritten is in [`crate::config`]; here are the
//! requests and their replies.

use std::path::Path;

use super::failure;
use super::{Arg, ArgKind, Args, Context, Failure, Group, Spec, flag, help};
use crate::config::{self, Change, Row, Setting, TABLE};
use crate::glob::{self, Case};
use crate::logging;
use crate::notify;
use crate::persistence::{Persistence, check_room};
use crate::server::Server;
use crate::slow::{self, Pieces};
use crate::start;

/// What all subcommands that do something have in common.
const ADMIN: u32 = flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE;

pub(crate) const COMMANDS: &[Spec] = &[Spec {
    name: "config",
    arity: -2,
    group: Group::Server,
    since: "2.0.0",
    summary: "Reads and changes the settings of the server",
    complexity: "Depends on subcommand.",
    subcommands: SUBCOMMANDS,
    ..Spec::BASE
}];

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "get",
        arity: -3,
        flags: ADMIN,
        group: Group::Server,
        since: "2.0.0",
        summary: "Returns the settings whose names match patterns",
        complexity: "O(N) where N is the number of patterns",
        args: &[Arg {
            multiple: true,
            ..Arg::block("parameter", &[Arg::of("parameter", ArgKind::String)])
        }],
        history: &[("7.0.0", "Takes several patterns.")],
        handler: get,
        ..Spec::BASE
    },
    Spec {
        name: "set",
        arity: -4,
        flags: ADMIN,
        group: Group::Server,
        since: "2.0.0",
        summary: "Changes several settings together or none of them",
        complexity: "O(N) where N is the number of settings",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        args: &[Arg {
            multiple: true,
            ..Arg::block(
                "parameter_value",
                &[
                    Arg::of("parameter", ArgKind::String),
                    Arg::of("value", ArgKind::String),
                ],
            )
        }],
        history: &[("7.0.0", "Takes several settings.")],
        secret: is_secret_value,
        handler: set,
        ..Spec::BASE
    },
    Spec {
        name: "resetstat",
        arity: 2,
        flags: ADMIN,
        group: Group::Server,
        since: "2.0.0",
        summary: "Sets the statistics that INFO shows back to zero",
        handler: reset_stat,
        ..Spec::BASE
    },
    Spec {
        name: "rewrite",
        arity: 2,
        flags: ADMIN,
        group: Group::Server,
        since: "2.8.0",
        summary: "Writes the current settings to the configuration file",
        handler: rewrite,
        ..Spec::BASE
    },
    Spec {
        name: "help",
        arity: 2,
        flags: flag::LOADING | flag::STALE,
        group: Group::Server,
        since: "5.0.0",
        summary: "Lists the subcommands",
        handler: show_help,
        ..Spec::BASE
    },
];

/// `CONFIG GET pattern...`
fn get(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    let found = find(args.from(2));
    context.reply.map(found.len());
    for (name, row) in found {
        context.reply.bulk(name);
        let value = context.server.settings.get_text(row.setting);
        context.reply.bulk(value.as_bytes());
    }
    Ok(())
}

/// The settings that patterns name, each once, under the name that the reply gives it: a name without wildcards comes
/// back as it was spelled, for clients that look for what they asked.
fn find<'a>(patterns: impl Iterator<Item = &'a [u8]>) -> Vec<(&'a [u8], &'static Row)> {
    let mut found: Vec<(&[u8], &Row)> = Vec::new();
    let mut add = |name, row: &'static Row| {
        if found.iter().all(|(_, known)| known.setting != row.setting) {
            found.push((name, row));
        }
    };
    for pattern in patterns {
        if pattern.iter().any(|byte| b"*?[".contains(byte)) {
            TABLE
                .iter()
                .filter(|row| glob::matches(pattern, row.name.as_bytes(), Case::Insensitive))
                .for_each(|row| add(row.name.as_bytes(), row));
        } else if let Some(row) = Row::find(pattern) {
            add(pattern, row);
        }
    }
    found
}

/// Whether the argument at `at` of CONFIG SET is the value of a setting that is not for everybody's eyes.
fn is_secret_value(args: &Args<'_>, at: usize) -> bool {
    at >= 3 && at % 2 == 1 && Row::find(args.get(at - 1)).is_some_and(Row::is_secret)
}

/// `CONFIG SET name value [name value ...]`
fn set(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    let pairs = pair_up(args.from(2))?;
    let settings = &context.server.settings;
    let change = settings
        .prepare(pairs)
        .map_err(|refusal| refused(refusal.setting.row().name, &refusal.reason))?;
    allow_clients(&change)?;
    switch_log(context, &change)?;
    let limit_before = settings.int(Setting::MaxMemory);
    change.commit();
    logging::set_level(settings);
    notify::apply_setting(context.server);
    context.server.persistence.apply_settings(settings);
    context.server.apply_eviction_settings();
    context.server.check_memory();
    if settings.int(Setting::MaxMemory) != limit_before {
        context.server.warn_of_small_limit();
    }
    context.server.snapshots.check_gate(context.server);
    context.reply.ok();
    Ok(())
}

/// The settings and values of a CONFIG SET, of which the first that cannot be set refuses all.
fn pair_up<'a>(
    mut words: impl ExactSizeIterator<Item = &'a [u8]>,
) -> Result<Vec<(Setting, &'a str)>, Failure> {
    if !words.len().is_multiple_of(2) {
        return Err(failure::SYNTAX);
    }
    let mut pairs: Vec<(Setting, &str)> = Vec::new();
    while let (Some(typed), Some(value)) = (words.next(), words.next()) {
        let name = String::from_utf8_lossy(typed);
        let Some(row) = Row::find(typed) else {
            return Err(Failure::new(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            )));
        };
        if !row.mutable {
            return Err(refused(&name, "can't set immutable config"));
        }
        if pairs.iter().any(|(setting, _)| *setting == row.setting) {
            return Err(refused(&name, "duplicate parameter"));
        }
        let value =
            str::from_utf8(value).map_err(|_| refused(&name, "argument must be valid UTF-8"))?;
        pairs.push((row.setting, value));
    }
    Ok(pairs)
}

fn refused(name: &str, reason: &str) -> Failure {
    Failure::new(format!(
        "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
    ))
}

/// Begins or ends the log as `appendonly` says.
fn switch_log(context: &Context<'_>, change: &Change<'_>) -> Result<(), Failure> {
    let server = context.server;
    let wanted = change.int(Setting::AppendOnly).map(|on| on != 0);
    let switched = match wanted {
        Some(on) if on == server.settings.flag(Setting::AppendOnly) => Ok(()),
        // What is loaded would be in no log.
        Some(_) if server.is_loading() => Err("data is being loaded".into()),
        Some(true) => Persistence::switch_on(server),
        Some(false) => {
            check_room(server, context.store.turn).and_then(|()| Persistence::switch_off(server))
        }
        None => Ok(()),
    };
    switched.map_err(|problem| {
        log::error!("appendonly: {problem}");
        refused(Setting::AppendOnly.row().name, &problem)
    })
}

/// Makes sure that the process may open as many connections as `maxclients` would allow.
fn allow_clients(change: &Change<'_>) -> Result<(), Failure> {
    let Some(wanted) = change.int(Setting::MaxClients) else {
        return Ok(());
    };
    let possible = start::raise_max_clients(wanted.unsigned_abs());
    if possible >= wanted.unsigned_abs() {
        return Ok(());
    }
    let reason = format!(
        "The operating system is not able to handle the specified number of clients, try with {possible}"
    );
    Err(refused(Setting::MaxClients.row().name, &reason))
}

/// `CONFIG RESETSTAT`
fn reset_stat(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
    context.server.reset_stats();
    context.reply.ok();
    Ok(())
}

/// `CONFIG REWRITE`. The connection waits for the disk: the reply says that the file is there.
fn rewrite(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    let server = context.server;
    let Some(file) = &server.config_file else {
        return Err(Failure::of(
            "ERR The server is running without a config file",
        ));
    };
    slow::do_apart(context, args, || rewrite_file(server, file))
}

/// Waits for the disk.
fn rewrite_file(server: &Server, file: &Path) -> Result<Pieces, Failure> {
    if let Err(error) = config::rewrite(&server.settings, file) {
        log::warn!("CONFIG REWRITE of {} failed: {error}", file.display());
        let text = error.to_string();
        // The system's words alone, without the number that the standard library adds.
        let reason = text.split(" (os error").next().unwrap_or_default();
        return Err(Failure::new(format!("ERR Rewriting config file: {reason}")));
    }
    log::info!("CONFIG REWRITE of {} done", file.display());
    Ok(Pieces::beginning(b"+OK\r\n".into()))
}

/// `CONFIG HELP`
fn show_help(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
    let lines = [
        "GET <pattern> [<pattern> ...]",
        "    Show the settings whose names match a glob-style pattern.",
        "SET <name> <value> [<name> <value> ...]",
        "    Change settings, all of them or none.",
        "RESETSTAT",
        "    Set the statistics that INFO shows back to zero.",
        "REWRITE",
        "    Write the current settings to the configuration file.",
    ];
    help(context, "CONFIG", &lines);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(patterns: &[&'static str]) -> Vec<&'static str> {
        let patterns = patterns.iter().map(|pattern| pattern.as_bytes());
        find(patterns)
            .into_iter()
            .map(|(name, _)| str::from_utf8(name).expect("the test is UTF-8"))
            .collect()
    }

    #[test]
    fn settings_are_found_once_under_the_name_that_was_asked_for() {
        assert_eq!(names(&["port"]), ["port"]);
        assert_eq!(names(&["PorT"]), ["PorT"]);
        assert_eq!(names(&["PO?T", "PORT"]), ["port"]);
        assert_eq!(names(&["PORT", "port", "po*"]), ["PORT"]);
        assert_eq!(
            names(&["maxmemory", "maxmemory-p*"]),
            ["maxmemory", "maxmemory-policy"]
        );
        assert_eq!(names(&["timeout", "nosuch", "hz"]), ["timeout", "hz"]);
        assert_eq!(names(&["", "nosuch", "x*", "\\port"]), [""; 0]);
        assert_eq!(names(&["*", "port"]).len(), TABLE.len());
    }

    fn refusal(words: &[&str]) -> String {
        let words = words.iter().map(|word| word.as_bytes());
        let failure = pair_up(words).expect_err("it cannot be set");
        String::from_utf8(failure.0.into_owned()).expect("the words are text")
    }

    #[test]
    fn pairs_are_checked_from_left_to_right() {
        let unknown = "ERR Unknown option or number of arguments for CONFIG SET - ";
        let failed = "ERR CONFIG SET failed (possibly related to argument ";
        for (words, text) in [
            (&["timeout", "1", "hz"][..], "ERR syntax error".to_owned()),
            (&["A", "1", "b", "2"], format!("{unknown}'A'")),
            (&["timeout", "x", "b", "2"], format!("{unknown}'b'")),
            (&["", "1"], format!("{unknown}''")),
            (
                &["timeout", "x", "Port", "x", "b", "2"],
                format!("{failed}'Port') - can't set immutable config"),
            ),
            (
                &["timeout", "1", "TIMEOUT", "2", "b", "2"],
                format!("{failed}'TIMEOUT') - duplicate parameter"),
            ),
        ] {
            assert_eq!(refusal(words), text);
        }
        let bytes = [&b"requirepass"[..], b"\xff"].into_iter();
        assert!(pair_up(bytes).is_err());
        let words = ["TimeOut", "1", "hz", "x"].map(str::as_bytes).into_iter();
        assert_eq!(
            pair_up(words),
            Ok(vec![(Setting::Timeout, "1"), (Setting::Hz, "x")])
        );
    }
}
