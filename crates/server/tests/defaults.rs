//! The default of every setting of redis-server, compared with the one here: no difference is without a
//! reason.
//!
//! Both servers are asked without a configuration. docs/compatibility.md holds the result between two marks.
//! The test fails when it is not what the servers say; with `UPDATE_DOCS=1` it writes it instead.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use crate::support;

use support::{Server, Target, Value};

/// Defaults that differ: the name, what it is here if that depends on the machine, and why.
const DIFFERENT: &[(&str, Option<&str>, &str)] = &[
    (
        "appendonly",
        None,
        "a server that is started without options keeps what it is told (docs/durability.md)",
    ),
    (
        "bind",
        None,
        "a server without a password is only there for its own machine; redis-server listens everywhere and \
         then refuses others by `protected-mode`, which is the same here",
    ),
    (
        "enable-debug-command",
        None,
        "test suites of clients rely on DEBUG from loopback",
    ),
    (
        "maxmemory",
        Some("80 % of the machine or the container"),
        "without a limit the kernel ends a process that takes all memory (docs/eviction.md)",
    ),
    (
        "maxmemory-policy",
        None,
        "with the log no data has to go at the limit: values are left on the disk (docs/offload.md). With \
         `appendonly no` it is `noeviction`",
    ),
    (
        "save",
        None,
        "the log keeps everything already. With `appendonly no` it is as in redis-server",
    ),
];

/// What the test itself says to both servers: where they listen and work. The default is the one of the table
/// here.
const SAID: &[(&str, &str)] = &[("dir", "./"), ("port", "6379")];

/// The same default, of which the server makes something else: the name, what redis-server does, what is done
/// here.
const OTHERWISE: &[(&str, &str, &str)] = &[
    (
        "active-expire-effort",
        "looks for expired keys ten times a second, at some of the keys",
        "every key goes on time",
    ),
    (
        "aof-load-truncated",
        "cuts a torn command off an append-only file",
        "leaves a torn command out when an append-only file is taken over, and the file as it is",
    ),
    (
        "appenddirname",
        "the directory of the append-only file",
        "the directory of the log, which has a format of its own",
    ),
    (
        "auto-aof-rewrite-min-size",
        "the append-only file is rewritten when it is that large",
        "the log is kept small all the time",
    ),
    (
        "auto-aof-rewrite-percentage",
        "the append-only file is rewritten when it has grown by that much",
        "the log is kept small all the time",
    ),
    (
        "crash-log-enabled",
        "a crash writes registers and a trace of the stack into the log",
        "a bug that is noticed is logged with its place; a crash is the system's to record (core dump)",
    ),
    (
        "crash-memcheck-enabled",
        "a crash tests the memory",
        "memory is not tested",
    ),
    (
        "disable-thp",
        "the process uses no huge pages",
        "tables use them where they help: there is no fork that would copy them",
    ),
    (
        "dynamic-hz",
        "`hz` rises with the number of clients",
        "`hz` is what it says",
    ),
    (
        "io-threads",
        "one thread does everything",
        "as many threads as processors (`threads`)",
    ),
    (
        "lazyfree-lazy-eviction",
        "evicted values are freed at once",
        "large values are freed in the background",
    ),
    (
        "lazyfree-lazy-expire",
        "expired values are freed at once",
        "large values are freed in the background",
    ),
    (
        "lazyfree-lazy-server-del",
        "replaced values are freed at once",
        "large values are freed in the background",
    ),
    (
        "lazyfree-lazy-user-del",
        "DEL frees values before it answers",
        "large values are freed in the background",
    ),
    (
        "lazyfree-lazy-user-flush",
        "FLUSHALL frees everything before it answers",
        "everything is freed in the background",
    ),
    (
        "maxmemory-clients",
        "no limit for the buffers of all clients",
        "an eighth of `maxmemory`",
    ),
    (
        "maxmemory-samples",
        "every policy compares five keys",
        "`volatile-ttl` does; the others need no samples",
    ),
    (
        "sanitize-dump-payload",
        "a snapshot is not looked through when it is loaded",
        "it always is",
    ),
    (
        "set-proc-title",
        "`ps` shows where the server listens",
        "`ps` shows the command line",
    ),
    (
        "supervised",
        "systemd is not told that the server is ready",
        "it is told where it has set NOTIFY_SOCKET",
    ),
];

/// Directives that are no settings here, as docs/config.md lists them: the reason, and the names with the
/// values that are accepted.
type Foreign = Vec<(String, Vec<(String, String)>)>;

/// What CONFIG GET says of everything.
fn settings(target: Target) -> BTreeMap<String, String> {
    let server = Server::start(target, &[]);
    let Value::Array(pairs) = server.client().ask("CONFIG GET *") else {
        panic!("CONFIG GET answers pairs");
    };
    let texts: Vec<String> = pairs.iter().map(Value::text).collect();
    let pairs = texts.chunks(2);
    pairs
        .map(|pair| (pair[0].clone(), pair[1].clone()))
        .collect()
}

fn documentation(name: &str) -> String {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(path).expect("the documentation is there")
}

/// Reads docs/config.md, which is made from the table that the server uses.
fn foreign() -> Foreign {
    let text = documentation("config.md");
    let (_, section) = text
        .split_once("\n## Directives of redis-server\n")
        .expect("it has the section");
    let mut groups: Foreign = Vec::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let [names, accepted, reason] = cells[..] else {
            panic!("three columns: {row}");
        };
        let names = names.split('`').skip(1).step_by(2);
        let rows = names.map(|name| (name.to_owned(), accepted.to_owned()));
        match groups.last_mut() {
            Some((last, group)) if last == reason => group.extend(rows),
            _ => groups.push((reason.to_owned(), rows.collect())),
        }
    }
    groups
}

/// The default of a setting as docs/config.md has it.
fn documented_default(name: &str) -> String {
    let text = documentation("config.md");
    let beginning = format!("| `{name}`");
    let row = text.lines().find(|line| line.starts_with(&beginning));
    let row = row.unwrap_or_else(|| panic!("docs/config.md has no {name}"));
    row.split(" | ")
        .nth(1)
        .expect("it has columns")
        .trim_matches('`')
        .to_owned()
}

/// A value in a cell.
fn quoted(value: &str) -> String {
    match value {
        "" => "`\"\"`".to_owned(),
        value => format!("`{value}`"),
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Fails for each difference that has no reason, and for each reason that is out of date.
fn check(theirs: &BTreeMap<String, String>, ours: &BTreeMap<String, String>) {
    let mut wrong = Vec::new();
    for (name, value) in theirs {
        let said = SAID.iter().any(|(said, _)| said == name);
        let explained = DIFFERENT.iter().any(|(different, ..)| different == name);
        match ours.get(name) {
            None => wrong.push(format!("{name} is missing")),
            Some(_) if said => {}
            Some(own) if own != value && !explained => {
                wrong.push(format!(
                    "{name} is {own:?}, not {value:?}, without a reason"
                ));
            }
            Some(own) if own == value && explained => {
                wrong.push(format!("{name} differs no longer"));
            }
            Some(_) => {}
        }
    }
    let explained = DIFFERENT.iter().map(|(name, ..)| name);
    for name in explained.chain(OTHERWISE.iter().map(|(name, ..)| name)) {
        if !theirs.contains_key(*name) {
            wrong.push(format!("redis-server has no {name}"));
        }
    }
    for (name, default) in SAID {
        if documented_default(name) != *default {
            wrong.push(format!("the default of {name} is not {default}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The part of docs/compatibility.md.
fn markdown(theirs: &BTreeMap<String, String>, ours: &BTreeMap<String, String>) -> String {
    let groups = foreign();
    let foreign_names: BTreeSet<&String> = groups
        .iter()
        .flat_map(|(_, rows)| rows.iter().map(|(name, _)| name))
        .collect();
    let is_otherwise = |name: &str| OTHERWISE.iter().any(|(other, ..)| *other == name);
    let is_different = |name: &str| DIFFERENT.iter().any(|(different, ..)| *different == name);

    let mut text = String::from(
        "Defaults that differ:\n\n| setting | redis-server 7.0.15 | Ferrite | why |\n|---|---|---|---|\n",
    );
    for (name, shown, why) in DIFFERENT {
        let own = shown.map_or_else(|| quoted(&ours[*name]), str::to_owned);
        let _ = writeln!(
            text,
            "| `{name}` | {} | {own} | {why} |",
            quoted(&theirs[*name])
        );
    }
    text.push_str(
        "\nThe same default, which means something else:\n\n\
         | setting | default | redis-server | Ferrite |\n|---|---|---|---|\n",
    );
    for (name, their_way, own_way) in OTHERWISE {
        let _ = writeln!(
            text,
            "| `{name}` | {} | {their_way} | {own_way} |",
            quoted(&theirs[*name])
        );
    }
    text.push_str("\nThe same default with the same meaning: ");
    let same = theirs
        .keys()
        .filter(|name| !is_otherwise(name) && !is_different(name) && !foreign_names.contains(name));
    let _ = writeln!(text, "{}.", listed(same));
    text.push_str(
        "\nDirectives of redis-server that are no settings here. CONFIG GET shows the defaults of \
         redis-server. A line that sets one of these is accepted and changes nothing:\n\n| directives | why |\n|---|---|\n",
    );
    for (reason, rows) in &groups {
        let names = rows.iter().filter(|(_, accepted)| accepted == "any");
        let names = listed(names.map(|(name, _)| name));
        if !names.is_empty() {
            let _ = writeln!(text, "| {names} | {reason} |");
        }
    }
    text.push_str(
        "\nA line that sets one of these to anything but what is accepted stops the start, with the \
         reason:\n\n\
         | directive | accepted | why |\n|---|---|---|\n",
    );
    for (reason, rows) in &groups {
        for (name, accepted) in rows.iter().filter(|(_, accepted)| accepted != "any") {
            let _ = writeln!(text, "| `{name}` | {accepted} | {reason} |");
        }
    }
    text
}

#[test]
fn no_default_differs_without_a_reason() {
    let (theirs, ours) = (settings(Target::RedisAsIs), settings(Target::AsIs));
    assert!(theirs.len() > 150, "{theirs:?}");
    check(&theirs, &ours);
    let (begin, end) = ("<!-- defaults: begin -->\n", "<!-- defaults: end -->\n");
    let text = documentation("compatibility.md");
    let (before, rest) = text.split_once(begin).expect("the mark is there");
    let (found, after) = rest.split_once(end).expect("the mark is there");
    let made = markdown(&theirs, &ours);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let path = format!("{}/../../docs/compatibility.md", env!("CARGO_MANIFEST_DIR"));
        fs::write(path, format!("{before}{begin}{made}{end}{after}"))
            .expect("the documentation can be written");
        return;
    }
    assert!(
        found == made,
        "docs/compatibility.md is not what the servers say; run this test with UPDATE_DOCS=1"
    );
}

/// Debian's file says nothing about some settings. What is there in their place is what redis-server has, but
/// for the limit of memory and DEBUG.
#[test]
fn without_the_log_only_the_limit_and_debug_differ() {
    let off = ["appendonly no".to_owned(), "bind 127.0.0.1".to_owned()];
    let [theirs, ours] = [Target::RedisAsIs, Target::AsIs].map(|target| {
        let server = Server::try_start(target, &off, &[]);
        let server = server.unwrap_or_else(|failure| panic!("{target}: {failure}"));
        let names = DIFFERENT.iter().map(|(name, ..)| *name);
        let request: Vec<&str> = ["CONFIG", "GET"].into_iter().chain(names).collect();
        let Ok(Value::Array(pairs)) = server.client().call(&request) else {
            panic!("CONFIG GET answers pairs");
        };
        let texts: Vec<String> = pairs.iter().map(Value::text).collect();
        let pairs = texts.chunks(2);
        pairs
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect::<BTreeMap<_, _>>()
    });
    let differ = theirs
        .iter()
        .filter(|(name, value)| ours.get(*name) != Some(value));
    let differ: Vec<&str> = differ.map(|(name, _)| name.as_str()).collect();
    assert_eq!(differ, ["enable-debug-command", "maxmemory"]);
}
