//! Names that tools look for, compared with those of a real redis-server: fields of INFO and MEMORY STATS, settings.
//!
//! Ferrite may have more of them. What it lacks on purpose is listed here with its reason. Values are not compared.

use std::collections::BTreeSet;

#[path = "support/mod.rs"]
mod support;

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

/// Mistakes of a configuration that a start shows at once.
const SHOWN: usize = 10;

/// An operator who starts with a redis.conf hears of each directive that is not there, and why.
#[test]
fn each_setting_of_redis_is_one_here_or_has_a_reason_not_to_be() {
    let names = |target| -> BTreeSet<String> {
        let server = Server::start(target, &[]);
        let Value::Array(pairs) = server.client().ask("CONFIG GET *") else {
            panic!("CONFIG GET answers pairs");
        };
        pairs.iter().step_by(2).map(Value::text).collect()
    };
    let ferrite = Target::Ferrite { threads: 1 };
    let (theirs, ours) = (names(Target::Redis), names(ferrite));
    assert!(theirs.len() > 150, "{theirs:?}");
    let missing: Vec<&String> = theirs.difference(&ours).collect();
    for some in missing.chunks(SHOWN) {
        let lines: Vec<String> = some.iter().map(|name| format!("{name} x")).collect();
        let failure = Server::try_start(ferrite, &lines, &[]);
        let said = failure.err().expect("it does not start").output;
        for name in some {
            let mut lines = said
                .lines()
                .skip_while(|line| !line.contains(name.as_str()));
            let reason = lines.nth(1).unwrap_or_default();
            assert!(reason.contains("has no meaning here"), "{name}: {said}");
        }
    }
}
