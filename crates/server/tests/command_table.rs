//! The table of commands against that of a real redis-server: what COMMAND INFO and COMMAND DOCS tell about
//! every command that both have. Clients route, retry and check arguments by it.
//!
//! A *fact* is one field about one command or subcommand. Words are not compared (summaries and the like are
//! Ferrite's own), nor is the order of what is a set. Where Ferrite differs on purpose, [`OURS`] says so.

use std::collections::BTreeMap;

use crate::support;

use support::{Proto, Server, Target, Value};

/// Facts in which Ferrite differs: it takes what later releases take (`later` compares with them), KEYS
/// without a pattern, or the fact is made of words.
const OURS: &[&str] = &[
    "bgsave arguments",
    "bgsave history",
    "bitcount arguments",
    "bitop arguments",
    "bitop history",
    "client|kill arguments",
    "client|kill history",
    "client|list arguments",
    "client|list history",
    "command|getkeys arity",
    "command|getkeys arguments",
    "command|getkeysandflags arity",
    "command|getkeysandflags arguments",
    "geohash arguments",
    "geopos arguments",
    "geosearch arguments",
    "geosearch history",
    "geosearchstore arguments",
    "geosearchstore history",
    "keys arity",
    "pfmerge arguments",
    "set arguments",
    "set history",
    "getset replaced_by",
    "hmset replaced_by",
    "hscan arguments",
    "hscan history",
    "shutdown arguments",
    "shutdown history",
    "xadd arguments",
    "xadd history",
    "xtrim arguments",
    "xtrim history",
    "zrank arity",
    "zrank arguments",
    "zrank history",
    "zrevrank arity",
    "zrevrank arguments",
    "zrevrank history",
    "zscan arguments",
    "zscan history",
];

type Facts = BTreeMap<String, String>;

#[test]
fn commands_are_described_as_redis_describes_them() {
    let redis = Server::start(Target::Redis, &[]);
    let ferrite = Server::start(Target::Ferrite { threads: 1 }, &[]);
    for proto in [Proto::Resp2, Proto::Resp3] {
        let (theirs, ours) = (facts(&redis, proto), facts(&ferrite, proto));
        assert!(ours.len() > 1000, "{proto:?}: {} facts", ours.len());
        let commands = |facts: &Facts| -> Vec<String> {
            let arities = facts.keys().filter_map(|fact| fact.strip_suffix(" arity"));
            arities.map(str::to_owned).collect()
        };
        let shared: Vec<String> = commands(&ours)
            .into_iter()
            .filter(|name| theirs.contains_key(&format!("{name} arity")))
            .collect();
        let of_shared = |fact: &&String| {
            let name = fact.split(' ').next().unwrap_or_default();
            shared
                .binary_search_by(|known| known.as_str().cmp(name))
                .is_ok()
        };
        let all = ours.keys().chain(theirs.keys()).filter(of_shared);
        let mut different: Vec<&str> = all
            .filter(|fact| ours.get(*fact) != theirs.get(*fact))
            .map(String::as_str)
            .collect();
        different.sort_unstable();
        different.dedup();
        let unexpected = different.iter().filter(|fact| !OURS.contains(fact));
        let lines: String = unexpected
            .map(|&fact| {
                let (our, their) = (ours.get(fact), theirs.get(fact));
                format!("{fact}\n  redis:   {their:?}\n  ferrite: {our:?}\n")
            })
            .collect();
        assert!(lines.is_empty(), "{proto:?}:\n{lines}");
        for fact in OURS {
            assert!(
                different.contains(fact),
                "{proto:?}: {fact} is the same by now"
            );
        }
    }
}

/// Commands that Redis 7.0 lacks have the flags that Redis 8.2 gives them, and their keys too.
#[test]
fn commands_of_later_releases_have_their_flags() {
    let ferrite = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = ferrite.client();
    for (names, flags, of_keys) in [
        (
            "HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HPERSIST",
            "fast write",
            "RW update",
        ),
        (
            "HTTL HPTTL HEXPIRETIME HPEXPIRETIME",
            "fast readonly",
            "RO access",
        ),
        ("HSETEX", "denyoom fast write", "RW update"),
        ("HGETEX", "fast write", "RW access update"),
        ("HGETDEL", "fast write", "RW access delete"),
        ("WAITAOF", "blocking", ""),
    ] {
        for name in names.split(' ') {
            let reply = client.ask(&format!("COMMAND INFO {name}"));
            let fields = items(&items(&reply)[0]);
            assert_eq!(words(&fields[2]), flags, "{name}");
            let rules = items(&fields[8]);
            let first = rules.first().map(|rule| pairs(rule).remove(0));
            let shown = first.map_or(String::new(), |(_, flags)| words(flags));
            assert_eq!(shown, of_keys, "{name}");
        }
    }
}

/// The texts of a set, sorted.
fn words(set: &Value) -> String {
    let mut words: Vec<String> = items(set).iter().map(Value::text).collect();
    words.sort_unstable();
    words.join(" ")
}

/// Everything a server tells about its commands.
fn facts(server: &Server, proto: Proto) -> Facts {
    let mut client = server.client_with(proto);
    let mut facts = Facts::new();
    for description in items(&client.ask("COMMAND")) {
        describe(description, &mut facts);
    }
    for (name, documentation) in pairs(&client.ask("COMMAND DOCS")) {
        document(&name, documentation, &mut facts);
    }
    facts
}

/// Takes the ten fields of COMMAND INFO apart.
fn describe(description: &Value, facts: &mut Facts) {
    const FIELDS: [&str; 10] = [
        "name",
        "arity",
        "flags",
        "first",
        "last",
        "step",
        "categories",
        "tips",
        "rules",
        "subcommands",
    ];
    let fields = items(description);
    assert_eq!(fields.len(), FIELDS.len(), "{description:?}");
    let name = fields[0].text();
    for (field, value) in FIELDS.into_iter().zip(fields) {
        let text = match field {
            "flags" | "categories" | "tips" => {
                sorted(items(value).iter().map(|item| format!("{item:?}")))
            }
            "rules" => sorted(items(value).iter().map(describe_rule)),
            "subcommands" => {
                items(value).iter().for_each(|item| describe(item, facts));
                String::new()
            }
            _ => format!("{value:?}"),
        };
        facts.insert(
            format!("{name} {field}"),
            format!("{} {text}", shape(value)),
        );
    }
}

/// One key rule, without the words of its notes.
fn describe_rule(rule: &Value) -> String {
    let fields = pairs(rule).into_iter().map(|(field, value)| match &*field {
        "notes" => field,
        "flags" => format!(
            "flags {}",
            sorted(items(value).iter().map(|flag| format!("{flag:?}")))
        ),
        _ => format!("{field} {value:?}"),
    });
    fields.collect::<Vec<String>>().join(", ")
}

/// Takes the fields of COMMAND DOCS apart, without those that are words.
fn document(name: &str, documentation: &Value, facts: &mut Facts) {
    for (field, value) in pairs(documentation) {
        let text = match &*field {
            "summary" | "complexity" => continue,
            "history" => items(value)
                .iter()
                .map(|change| items(change)[0].text())
                .collect::<Vec<String>>()
                .join(" "),
            "subcommands" => {
                for (name, documentation) in pairs(value) {
                    document(&name, documentation, facts);
                }
                String::new()
            }
            _ => format!("{value:?}"),
        };
        facts.insert(
            format!("{name} {field}"),
            format!("{} {text}", shape(value)),
        );
    }
}

fn sorted(texts: impl Iterator<Item = String>) -> String {
    let mut texts: Vec<String> = texts.collect();
    texts.sort_unstable();
    texts.join(", ")
}

/// The type of a reply.
fn shape(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::Set(_) => "set",
        Value::Map(_) => "map",
        _ => "scalar",
    }
}

/// The elements of an array or a set.
fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) | Value::Set(items) => items,
        other => panic!("neither an array nor a set: {other:?}"),
    }
}

/// The pairs of a map, or of the array that RESP2 has in its place.
fn pairs(value: &Value) -> Vec<(String, &Value)> {
    match value {
        Value::Map(pairs) => pairs
            .iter()
            .map(|(key, value)| (key.text(), value))
            .collect(),
        Value::Array(items) => items
            .chunks_exact(2)
            .map(|pair| (pair[0].text(), &pair[1]))
            .collect(),
        other => panic!("no map: {other:?}"),
    }
}
