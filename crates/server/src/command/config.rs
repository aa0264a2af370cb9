//! CONFIG: the settings of the running server.
//!
//! Which settings there are, what each takes and how the file is rewritten is in [`crate::config`]; here are
//! the requests and their replies.

use std::path::Path;

use super::failure;
use super::{Arg, ArgKind, Args, Context, Failure, Group, Handled, Makes, Next, Spec, flag, help};
use crate::command::deferred;
use crate::config::logging;
use crate::config::{self, Change, Foreign, Row, Setting, Settings, TABLE};
use crate::names::glob::{self, Case};
use crate::observe::notify;
use crate::persistence::{Persistence, check_room};
use crate::request::Pieces;
use crate::server::Server;

/// Descriptors the server needs beside its clients.
const OWN_DESCRIPTORS: u64 = 64;

/// Flags of all subcommands but HELP.
const ADMIN: u32 = flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE;

pub(crate) const COMMANDS: &[Spec] = &[Spec {
    name: "config",
    makes: Makes::Little,
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
        makes: Makes::Item,
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
        makes: Makes::Little,
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
        makes: Makes::Little,
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
        makes: Makes::Little,
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
        makes: Makes::Item,
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
fn get(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let settings = &context.server.settings;
    let found = find(args.from(2)).into_iter();
    let values = found.filter_map(|(name, entry)| Some((name, entry.value(settings)?)));
    let values: Vec<(&[u8], String)> = values.collect();
    context.reply.map(values.len());
    for (name, value) in values {
        context.reply.bulk(name);
        context.reply.bulk(value.as_bytes());
    }
    Ok(Next::Done)
}

/// Meaning of a name in CONFIG GET or SET.
#[derive(Clone, Copy)]
enum Entry {
    /// A setting, with the name that was meant.
    Setting(&'static Row, &'static str),
    /// A directive of redis-server that changes nothing here, with the name that was meant.
    Foreign(&'static Foreign, &'static str),
}

impl Entry {
    /// The entry of a name in any case.
    fn find(name: &[u8]) -> Option<Entry> {
        let setting = Row::find(name).and_then(|row| Some((row, row.name_like(name)?)));
        let setting = setting.map(|(row, own)| Entry::Setting(row, own));
        setting.or_else(|| {
            let row = Foreign::find(name)?;
            let own = row
                .names()
                .find(|own| own.as_bytes().eq_ignore_ascii_case(name))?;
            Some(Entry::Foreign(row, own))
        })
    }

    /// Every entry, one for each name.
    fn all() -> impl Iterator<Item = Entry> {
        let foreign =
            Foreign::all().flat_map(|row| row.names().map(move |name| Entry::Foreign(row, name)));
        let settings = TABLE
            .iter()
            .flat_map(|row| row.names().map(move |name| Entry::Setting(row, name)));
        settings.chain(foreign)
    }

    fn name(self) -> &'static str {
        match self {
            Entry::Setting(_, name) | Entry::Foreign(_, name) => name,
        }
    }

    /// As CONFIG GET shows it, if it does.
    fn value(self, settings: &Settings) -> Option<String> {
        match self {
            Entry::Setting(row, _) => Some(settings.get_text(row.setting)),
            Entry::Foreign(row, _) => settings.foreign_text(row).map(|text| text.to_string()),
        }
    }

    fn is_mutable(self) -> bool {
        match self {
            Entry::Setting(row, _) => row.mutable,
            Entry::Foreign(row, _) => row.mutable,
        }
    }

    fn is_secret(self) -> bool {
        match self {
            Entry::Setting(row, _) => row.is_secret(),
            Entry::Foreign(row, _) => row.is_secret(),
        }
    }
}

/// The settings that patterns name, each once, under the name that the reply gives it: a name without
/// wildcards comes back as it was spelled, for clients that look for what they asked.
fn find<'a>(patterns: impl Iterator<Item = &'a [u8]>) -> Vec<(&'a [u8], Entry)> {
    let mut found: Vec<(&[u8], Entry)> = Vec::new();
    // A request may have very many patterns: each looks at the entries that none before it has found.
    let mut left: Vec<Entry> = Entry::all().collect();
    for pattern in patterns {
        if pattern.iter().any(|byte| b"*?[".contains(byte)) {
            left.retain(|entry| {
                let name = entry.name().as_bytes();
                let is_named = glob::matches(pattern, name, Case::Insensitive);
                if is_named {
                    found.push((name, *entry));
                }
                !is_named
            });
        } else if let Some(entry) = Entry::find(pattern)
            && let Some(at) = left.iter().position(|other| other.name() == entry.name())
        {
            left.remove(at);
            found.push((pattern, entry));
        }
        if left.is_empty() {
            break;
        }
    }
    found
}

/// Whether the argument at `at` of CONFIG SET is the value of a secret setting.
fn is_secret_value(args: &Args<'_>, at: usize) -> bool {
    at >= 3 && at % 2 == 1 && Entry::find(args.get(at - 1)).is_some_and(Entry::is_secret)
}

/// `CONFIG SET name value [name value ...]`
fn set(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let pairs = pair_up(args.from(2))?;
    let settings = &context.server.settings;
    let mut foreign: Vec<(&'static Foreign, String)> = Vec::new();
    let mut own: Vec<(Setting, &str)> = Vec::new();
    let mut names: Vec<(Setting, &str)> = Vec::new();
    for (entry, value) in pairs {
        match entry {
            Entry::Setting(row, name) => {
                own.push((row.setting, value));
                names.push((row.setting, name));
            }
            Entry::Foreign(row, name) => {
                let words: Vec<&str> = value.split(' ').collect();
                let value = row
                    .accept(&words)
                    .map_err(|reason| refused(name, &reason))?;
                foreign.push((row, value));
            }
        }
    }
    let change = settings.prepare(own).map_err(|refusal| {
        let name = names
            .iter()
            .find(|(setting, _)| *setting == refusal.setting);
        refused(name.map_or("", |(_, name)| name), &refusal.reason)
    })?;
    allow_clients(&change)?;
    switch_log(context, &change)?;
    let limit_before = settings.int(Setting::MaxMemory);
    change.commit();
    for (row, value) in foreign {
        settings.set_foreign(row, &value);
    }
    logging::set_level(settings);
    notify::apply_setting(context.server);
    if let Some(cluster) = &context.server.cluster {
        cluster.refresh(settings);
    }
    context.server.persistence.apply_settings(settings);
    context.server.apply_eviction_settings();
    context
        .server
        .check_memory(context.server.persistence.ring_capacity());
    if settings.int(Setting::MaxMemory) != limit_before {
        context.server.warn_of_small_limit();
    }
    context.server.snapshots.check_gate(context.server);
    context.reply.ok();
    Ok(Next::Done)
}

/// The settings and values of a CONFIG SET, of which the first that cannot be set refuses all.
fn pair_up<'a>(
    mut words: impl ExactSizeIterator<Item = &'a [u8]>,
) -> Result<Vec<(Entry, &'a str)>, Failure> {
    if !words.len().is_multiple_of(2) {
        return Err(failure::SYNTAX);
    }
    let mut pairs: Vec<(Entry, &str)> = Vec::new();
    while let (Some(typed), Some(value)) = (words.next(), words.next()) {
        let name = String::from_utf8_lossy(typed);
        let Some(entry) = Entry::find(typed) else {
            return Err(Failure::new(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            )));
        };
        if !entry.is_mutable() {
            return Err(refused(&name, "can't set immutable config"));
        }
        if pairs.iter().any(|(known, _)| known.name() == entry.name()) {
            return Err(refused(&name, "duplicate parameter"));
        }
        let value =
            str::from_utf8(value).map_err(|_| refused(&name, "argument must be valid UTF-8"))?;
        pairs.push((entry, value));
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
        // The loaded data would be in no log.
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

/// Raises the limit of open files as near to `wanted` clients as possible, and returns how many are possible.
pub(crate) fn raise_max_clients(wanted: u64) -> u64 {
    let possible = sys::process::raise_open_files(wanted + OWN_DESCRIPTORS).unwrap_or(1024);
    possible.saturating_sub(OWN_DESCRIPTORS).max(1)
}

/// Makes sure that the process may open as many connections as `maxclients` would allow.
fn allow_clients(change: &Change<'_>) -> Result<(), Failure> {
    let Some(wanted) = change.int(Setting::MaxClients) else {
        return Ok(());
    };
    let possible = raise_max_clients(wanted.unsigned_abs());
    if possible >= wanted.unsigned_abs() {
        return Ok(());
    }
    let reason = format!(
        "The operating system is not able to handle the specified number of clients, try with {possible}"
    );
    Err(refused(Setting::MaxClients.row().name, &reason))
}

/// `CONFIG RESETSTAT`
fn reset_stat(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    context.server.reset_stats();
    context.reply.ok();
    Ok(Next::Done)
}

/// `CONFIG REWRITE`. The connection waits for the disk: the reply says that the file is there.
fn rewrite(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let server = context.server;
    let Some(file) = &server.config_file else {
        return Err(Failure::of(
            "ERR The server is running without a config file",
        ));
    };
    deferred::do_apart(context, args, || rewrite_file(server, file))
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
fn show_help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
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
    Ok(Next::Done)
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
        assert_eq!(names(&["*", "port"]).len(), Entry::all().count());
        assert_eq!(
            names(&["slave-priority", "*-priority"]),
            ["slave-priority", "replica-priority"]
        );
    }

    fn refusal(words: &[&str]) -> String {
        let words = words.iter().map(|word| word.as_bytes());
        let failure = pair_up(words).err().expect("it cannot be set");
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
                &["io-threads", "2"],
                format!("{failed}'io-threads') - can't set immutable config"),
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
        let pairs = pair_up(words).expect("both can be set");
        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .map(|(entry, value)| (entry.name(), *value))
            .collect();
        assert_eq!(pairs, [("timeout", "1"), ("hz", "x")]);
    }
}
