//! What Redis 8.2 and Valkey 9.1 have and Ferrite lacks, in the families that are here: commands, arguments
//! and flags of COMMAND, and the names of fields and subcommands that tools look for.
//!
//! A *lack* is a line that begins with what it is of (`command`, `argument`, `flag`, `INFO`, `CLIENT LIST`,
//! `MEMORY STATS`, `DEBUG`). Each has its reason in `reasons`. docs/compatibility.md holds the reasons between
//! two marks; the test fails when it holds others, and writes them with `UPDATE_DOCS=1`. `--nocapture` prints
//! the list.

mod arguments;
mod reasons;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use crate::support;

use arguments::{arguments, cover, tokens};
use reasons::{ABSENT_FAMILIES, REASONS};
use support::{Client, Proto, Server, Target, Value};

const SERVERS: [(Target, &str); 2] = [
    (Target::Redis8, "Redis 8.2.3"),
    (Target::Valkey, "Valkey 9.1.2"),
];

#[test]
fn what_later_releases_have_is_here_or_has_its_reason() {
    let ours = Described::of(Target::Ferrite { threads: 1 });
    assert!(ours.commands.len() > 300, "{}", ours.commands.len());
    let mut lacks: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (target, name) in SERVERS {
        for lack in ours.lacks_of(&Described::of(target)) {
            lacks.entry(lack).or_default().push(name);
        }
    }
    for (lack, servers) in &lacks {
        println!("{lack} ({})", servers.join(", "));
    }
    let has_reason = |lack: &str| {
        let mut patterns = REASONS.iter().flat_map(|(patterns, _)| *patterns);
        patterns.any(|pattern| is_like(pattern, lack))
    };
    let unexplained: Vec<&String> = lacks.keys().filter(|lack| !has_reason(lack)).collect();
    assert!(unexplained.is_empty(), "missing here: {unexplained:#?}");
    for pattern in REASONS.iter().flat_map(|(patterns, _)| *patterns) {
        assert!(
            lacks.keys().any(|lack| is_like(pattern, lack)),
            "nothing like that is missing: {pattern}"
        );
    }
    compare_with_documentation(&markdown(&lacks));
}

/// Whether a lack is meant by a pattern: the same, or with that beginning before a `*`.
fn is_like(pattern: &str, lack: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => lack.starts_with(beginning),
        None => pattern == lack,
    }
}

/// What a server tells about itself.
struct Described {
    /// What COMMAND DOCS says about commands and subcommands.
    commands: BTreeMap<String, Value>,
    /// The flags of COMMAND INFO.
    flags: BTreeMap<String, BTreeSet<String>>,
    /// Other names, with what they are of.
    names: BTreeSet<String>,
}

impl Described {
    fn of(target: Target) -> Described {
        let server = Server::start(target, &[]);
        let mut client = server.client_with(Proto::Resp3);
        for request in [
            "SET k v EX 1000",
            "GET k",
            "HSET h f v",
            "HEXPIRE h 1000 FIELDS 1 f",
        ] {
            client.ask(request);
        }
        let mut described = Described {
            commands: BTreeMap::new(),
            flags: BTreeMap::new(),
            names: BTreeSet::new(),
        };
        described.document(&client.ask("COMMAND DOCS"));
        described.describe(&client.ask("COMMAND"));
        described.name(&mut client);
        described
    }

    fn document(&mut self, commands: &Value) {
        for (name, description) in pairs(commands) {
            if let Some(subcommands) = field(description, "subcommands") {
                self.document(subcommands);
            }
            self.commands.insert(name, description.clone());
        }
    }

    fn describe(&mut self, commands: &Value) {
        for command in items(commands) {
            let fields = items(command);
            self.describe(&fields[9]);
            let flags = texts(&fields[2]).into_iter().collect();
            self.flags.insert(fields[0].text(), flags);
        }
    }

    fn name(&mut self, client: &mut Client) {
        for line in client.ask("INFO everything").text().lines() {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            // Those of a command have its name.
            if name.starts_with("cmdstat_") || name.starts_with("latency_percentiles_usec_") {
                continue;
            }
            self.names.insert(format!("INFO {name}"));
            for (part, _) in value.split(',').filter_map(|part| part.split_once('=')) {
                self.names.insert(format!("INFO {name} {part}"));
            }
        }
        for part in client.ask("CLIENT INFO").text().split_whitespace() {
            let name = part.split_once('=').map_or(part, |(name, _)| name);
            self.names.insert(format!("CLIENT LIST {name}"));
        }
        for (name, value) in pairs(&client.ask("MEMORY STATS")) {
            if let Value::Map(parts) = value {
                for (part, _) in parts {
                    let part = part.text();
                    self.names.insert(format!("MEMORY STATS {name} {part}"));
                }
            }
            self.names.insert(format!("MEMORY STATS {name}"));
        }
        // A line that is not indented begins with a subcommand, or with two words that are one.
        let help = client.ask("DEBUG HELP");
        for line in texts(&help).iter().skip(1) {
            if line.starts_with(' ') {
                continue;
            }
            let of_subcommand = |word: &&str| word.chars().all(|c| !c.is_ascii_lowercase());
            let words = line.split_whitespace().take_while(of_subcommand);
            let words: Vec<&str> = words
                .take_while(|word| !word.starts_with(['<', '[']))
                .collect();
            self.names.insert(format!("DEBUG {}", words.join(" ")));
        }
    }

    /// What this server lacks of what another has.
    fn lacks_of(&self, other: &Described) -> Vec<String> {
        let mut lacks = Vec::new();
        for (name, description) in &other.commands {
            let group = field(description, "group").map(Value::text);
            if group.is_none_or(|group| ABSENT_FAMILIES.iter().any(|(name, _)| *name == group)) {
                continue;
            }
            let Some(own) = self.commands.get(name) else {
                // Of a command that is missing its subcommands are, too.
                let container = name.split('|').next().unwrap_or(name);
                if container == name || self.commands.contains_key(container) {
                    lacks.push(format!("command {name}"));
                }
                continue;
            };
            let (own, theirs) = (arguments(own), arguments(description));
            let own_tokens: BTreeSet<&str> = tokens(&own).into_iter().collect();
            let missing: BTreeSet<&str> = tokens(&theirs).into_iter().collect();
            let missing: Vec<&&str> = missing.difference(&own_tokens).collect();
            lacks.extend(
                missing
                    .iter()
                    .map(|token| format!("argument {name} {token}")),
            );
            if missing.is_empty() && !cover(&own, &theirs) {
                lacks.push(format!("argument {name}: another form"));
            }
            let none = BTreeSet::new();
            let [own, theirs] = [self, other].map(|of| of.flags.get(name).unwrap_or(&none));
            let missing = theirs.difference(own);
            lacks.extend(missing.map(|flag| format!("flag {name} {flag}")));
        }
        lacks.extend(other.names.difference(&self.names).cloned());
        lacks
    }
}

/// The part of docs/compatibility.md.
fn markdown(lacks: &BTreeMap<String, Vec<&str>>) -> String {
    let mut text = String::from("Families that are not here:\n\n| family | why |\n|---|---|\n");
    for (family, why) in ABSENT_FAMILIES {
        let _ = writeln!(text, "| {family} | {why} |");
    }
    text.push_str(
        "\nWhat is not here in the other families:\n\n| what | of | why |\n|---|---|---|\n",
    );
    for (patterns, why) in REASONS {
        let of: BTreeSet<&str> = lacks
            .iter()
            .filter(|(lack, _)| patterns.iter().any(|pattern| is_like(pattern, lack)))
            .flat_map(|(_, servers)| servers.iter().copied())
            .collect();
        let of: Vec<&str> = of.into_iter().collect();
        let patterns: Vec<String> = patterns.iter().map(|name| format!("`{name}`")).collect();
        let (patterns, of) = (patterns.join(", "), of.join(", "));
        let _ = writeln!(text, "| {} | {of} | {why} |", patterns.replace('|', "\\|"));
    }
    text
}

fn compare_with_documentation(made: &str) {
    let (begin, end) = ("<!-- later: begin -->\n", "<!-- later: end -->\n");
    let path = format!("{}/../../docs/compatibility.md", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).expect("the documentation is there");
    let (before, rest) = text.split_once(begin).expect("the mark is there");
    let (found, after) = rest.split_once(end).expect("the mark is there");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, format!("{before}{begin}{made}{end}{after}"))
            .expect("the documentation can be written");
        return;
    }
    assert!(
        found == made,
        "docs/compatibility.md has other reasons; run this test with UPDATE_DOCS=1"
    );
}

/// A field of a map.
fn field<'a>(map: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Map(pairs) = map else {
        panic!("no map: {map:?}");
    };
    let found = pairs.iter().find(|(key, _)| key.text() == name);
    found.map(|(_, value)| value)
}

fn pairs(map: &Value) -> Vec<(String, &Value)> {
    let Value::Map(pairs) = map else {
        panic!("no map: {map:?}");
    };
    pairs
        .iter()
        .map(|(key, value)| (key.text(), value))
        .collect()
}

/// The elements of an array or a set.
fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) | Value::Set(items) => items,
        other => panic!("neither an array nor a set: {other:?}"),
    }
}

fn texts(value: &Value) -> Vec<String> {
    items(value).iter().map(Value::text).collect()
}
