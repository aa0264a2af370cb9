//! Names that tools look for, compared with those of a real redis-server: fields of INFO and MEMORY STATS.
//! Those of settings are in `defaults`.
//!
//! Ferrite may have more of them. What it lacks on purpose is listed here with its reason. Values are not
//! compared.

use std::collections::BTreeSet;

use crate::support;

use support::{Client, Proto, Server, Target, Value};

/// Fields that Ferrite does not have: section, name, and why.
const WITHOUT: &[(&str, &str)] = &[
    // It tells builds of Redis from each other.
    ("Server", "redis_build_id"),
];

/// The fields of INFO as `section name`, and, where a value has parts, as `section name part`.
fn fields(client: &mut Client) -> BTreeSet<String> {
    let text = client.ask("INFO everything").text();
    let mut names = BTreeSet::new();
    let mut section = "";
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            section = title;
            names.insert(section.to_owned());
        }
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        names.insert(format!("{section} {name}"));
        for (part, _) in value.split(',').filter_map(|pair| pair.split_once('=')) {
            names.insert(format!("{section} {name} {part}"));
        }
    }
    names
}

/// Commands of which each section has something to tell.
fn use_it(client: &mut Client) {
    for request in [
        "SET k v EX 1000",
        "GET k",
        "GET none",
        "DEL k",
        "SET k v PX 900000",
    ] {
        client.ask(request);
    }
    assert!(matches!(client.ask("SET k"), Value::Error(_)));
    assert!(matches!(client.ask("INCR k"), Value::Error(_)));
}

#[test]
fn info_has_the_fields_that_redis_has() {
    for (logs, target) in [
        ("no", Target::Ferrite { threads: 1 }),
        ("yes", Target::Logged { threads: 2 }),
    ] {
        let redis = Server::start(Target::Redis, &["--appendonly", logs]);
        let ferrite = Server::start(target, &[]);
        let [theirs, ours] = [redis, ferrite].map(|server| {
            let mut client = server.client();
            use_it(&mut client);
            fields(&mut client)
        });
        assert!(theirs.len() > 150, "{theirs:?}");
        let missing: Vec<&str> = theirs.difference(&ours).map(String::as_str).collect();
        let known: Vec<String> = WITHOUT
            .iter()
            .map(|(section, name)| format!("{section} {name}"))
            .collect();
        assert_eq!(missing, known, "appendonly {logs}");
    }
}

/// Tools that read INFO into one map would lose the first of two fields of a name.
#[test]
fn no_field_of_info_stands_twice() {
    let server = Server::start(Target::Logged { threads: 2 }, &[]);
    let mut client = server.client();
    use_it(&mut client);
    let info = client.ask("INFO everything").text();
    let names = info
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0));
    let mut seen = BTreeSet::new();
    let twice: Vec<&str> = names.filter(|&name| !seen.insert(name)).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn memory_stats_has_the_fields_that_redis_has() {
    let names = |target| {
        let server = Server::start(target, &[]);
        let mut client = server.client_with(Proto::Resp3);
        use_it(&mut client);
        let mut names = BTreeSet::new();
        let Value::Map(fields) = client.ask("MEMORY STATS") else {
            panic!("MEMORY STATS is a map");
        };
        for (name, value) in fields {
            if let Value::Map(parts) = value {
                names.extend(parts.iter().map(|(part, _)| part.text()));
            }
            names.insert(name.text());
        }
        names
    };
    let (theirs, ours) = (names(Target::Redis), names(Target::Ferrite { threads: 2 }));
    assert!(theirs.len() > 20, "{theirs:?}");
    let missing: Vec<&String> = theirs.difference(&ours).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Commands that redis-server 7.0 does not have, and that are none of our own.
const OF_LATER_VERSIONS: &[&str] = &["waitaof", "msetex"];

/// Each command of our own that is about the server says how it is used, rather than doing something with the
/// word.
#[test]
fn each_command_of_our_own_has_help() {
    let names = |server: &Server| -> BTreeSet<String> {
        let Value::Array(names) = server.client().ask("COMMAND LIST") else {
            panic!("COMMAND LIST answers names");
        };
        let names = names.iter().map(Value::text);
        names.filter(|name| !name.contains('|')).collect()
    };
    let ferrite = Server::start(Target::Logged { threads: 1 }, &[]);
    let redis = Server::start(Target::Redis, &[]);
    let mut client = ferrite.client();
    let mut tried = 0;
    for name in names(&ferrite).difference(&names(&redis)) {
        let Value::Array(keys) = client.ask(&format!("COMMAND INFO {name}")) else {
            panic!("COMMAND INFO answers descriptions");
        };
        let Value::Array(fields) = &keys[0] else {
            panic!("{name} is described");
        };
        let has_keys = fields[3] != Value::Int(0);
        if has_keys || OF_LATER_VERSIONS.contains(&name.as_str()) {
            continue;
        }
        tried += 1;
        let Value::Array(lines) = client.ask(&format!("{name} help")) else {
            panic!("{name} HELP answers no lines");
        };
        let first = lines[0].text();
        let beginning = format!("{} <subcommand>", name.to_uppercase());
        assert!(first.starts_with(&beginning), "{name}: {first}");
    }
    assert!(tried >= 4, "{tried}");
}
