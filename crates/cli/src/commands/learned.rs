//! What a server tells about its commands.
//!
//! COMMAND knows names, numbers of arguments and keys, and every server has it; COMMAND DOCS knows the rest.
//! A server that has only the first, or neither, leaves what was known before.

use std::collections::BTreeMap;

use resp::Value;

use super::catalog::Catalog;
use super::command::{Arg, ArgKind, Command, KeyRange};

impl Catalog {
    /// Takes over what a server has answered to COMMAND DOCS and COMMAND.
    pub(crate) fn learn(&mut self, docs: &Value, info: &Value) {
        let mut told = BTreeMap::new();
        for (name, doc) in pairs(docs) {
            document(name, doc, &mut told);
        }
        for (name, mut command) in told {
            if let Some(known) = self.commands.get(&name) {
                (command.arity, command.keys) = (known.arity, known.keys);
            }
            self.commands.insert(name, command);
        }
        let mut names = Vec::new();
        for entry in items(info) {
            describe(entry, &mut self.commands, &mut names);
        }
        if !names.is_empty() {
            self.commands.retain(|name, _| names.contains(name));
            self.is_complete = true;
        }
    }

    /// Takes over the names of settings from an answer to CONFIG GET.
    pub(crate) fn learn_settings(&mut self, settings: &Value) {
        let names = pairs(settings).into_iter().map(|(name, _)| own_name(name));
        self.settings = names.collect();
        self.settings.sort_unstable();
    }
}

/// Takes a command of COMMAND DOCS apart, and its subcommands.
fn document(name: &[u8], doc: &Value, told: &mut BTreeMap<String, Command>) {
    let mut command = Command {
        name: own_name(name),
        ..Command::default()
    };
    let mut deprecated = (None, String::new());
    for (field, value) in pairs(doc) {
        match field {
            b"summary" => command.summary = text(value),
            b"since" => command.since = text(value),
            b"group" => command.group = text(value),
            b"complexity" => command.complexity = text(value),
            b"deprecated_since" => deprecated.0 = Some(text(value)),
            b"replaced_by" => deprecated.1 = text(value),
            b"arguments" => command.args = items(value).iter().map(argument).collect(),
            b"subcommands" => {
                for (name, doc) in pairs(value) {
                    document(name, doc, told);
                }
            }
            _ => {}
        }
    }
    command.deprecated = deprecated.0.map(|since| (since, deprecated.1));
    told.insert(command.name.clone(), command);
}

fn argument(doc: &Value) -> Arg {
    let mut arg = Arg::default();
    for (field, value) in pairs(doc) {
        match field {
            b"name" => arg.name = text(value),
            b"type" => arg.kind = ArgKind::named(&text(value)),
            b"token" => arg.token = Some(text(value)),
            b"arguments" => arg.args = items(value).iter().map(argument).collect(),
            b"flags" => {
                for flag in items(value) {
                    match text(flag).as_str() {
                        "optional" => arg.is_optional = true,
                        "multiple" => arg.is_multiple = true,
                        "multiple_token" => arg.repeats_token = true,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    arg
}

/// Takes an entry of COMMAND apart: name, arity, flags, first and last key and step, and behind three more
/// the subcommands.
fn describe(entry: &Value, commands: &mut BTreeMap<String, Command>, names: &mut Vec<String>) {
    let entry = items(entry);
    let [
        name,
        Value::Integer(arity),
        _,
        Value::Integer(first),
        Value::Integer(last),
        Value::Integer(step),
        rest @ ..,
    ] = entry
    else {
        return;
    };
    let name = own_name(bytes(name));
    let command = commands.entry(name.clone()).or_insert_with(|| Command {
        name: name.clone(),
        ..Command::default()
    });
    command.arity = *arity;
    command.keys = KeyRange {
        first: *first,
        last: *last,
        step: *step,
    };
    names.push(name);
    for entry in rest.get(3).map_or(&[][..], items) {
        describe(entry, commands, names);
    }
}

/// `config|get` is `config get` here, as people type it.
fn own_name(name: &[u8]) -> String {
    String::from_utf8_lossy(name)
        .to_ascii_lowercase()
        .replace('|', " ")
}

fn bytes(value: &Value) -> &[u8] {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) | Value::Verbatim { text: bytes, .. } => bytes,
        _ => &[],
    }
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(bytes(value)).into_owned()
}

/// The elements of an array or a set; none of anything else.
fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) | Value::Set(items) => items,
        _ => &[],
    }
}

/// The pairs of a map, or of the array that RESP2 has in its place.
fn pairs(value: &Value) -> Vec<(&[u8], &Value)> {
    match value {
        Value::Map(pairs) => pairs
            .iter()
            .map(|(key, value)| (bytes(key), value))
            .collect(),
        Value::Array(items) => items
            .chunks_exact(2)
            .map(|pair| (bytes(&pair[0]), &pair[1]))
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(reply: &str) -> Value {
        let reply = reply.replace('\n', "\r\n");
        let parsed = resp::parse_value(reply.as_bytes()).expect("a reply");
        parsed.expect("a whole reply").0
    }

    const INFO: &str = "*2\n\
        *10\n+lock\n:-2\n*0\n:1\n:1\n:1\n*0\n*0\n*0\n*0\n\
        *10\n+box\n:-2\n*0\n:0\n:0\n:0\n*0\n*0\n*0\n*1\n\
        *10\n+box|open\n:2\n*0\n:0\n:0\n:0\n*0\n*0\n*0\n*0\n";

    #[test]
    fn names_and_numbers_alone_will_do() {
        let mut catalog = Catalog::builtin();
        catalog.learn(&value("-ERR unknown subcommand\n"), &value(INFO));
        assert!(catalog.is_complete);
        let names: Vec<&str> = catalog.all().map(|command| command.name.as_str()).collect();
        assert_eq!(names, ["box", "box open", "lock"]);
        let (lock, _) = catalog.find(&["LOCK"]).expect("it was told");
        assert_eq!((lock.arity, lock.keys.first), (-2, 1));
    }

    #[test]
    fn documentation_is_read_from_maps_and_from_flat_arrays() {
        let map = "%1\n$4\nlock\n%3\n$7\nsummary\n$5\nLocks\n$5\ngroup\n$5\nlocks\n$9\narguments\n*2\n\
            %2\n$4\nname\n$1\nk\n$4\ntype\n$3\nkey\n\
            %4\n$4\nname\n$4\nwait\n$4\ntype\n$7\ninteger\n$5\ntoken\n$4\nWAIT\n$5\nflags\n~2\n+optional\n\
            +multiple\n";
        let flat = map
            .replace("%1", "*2")
            .replace("%3", "*6")
            .replace("%2", "*4")
            .replace("%4", "*8")
            .replace('~', "*");
        for docs in [map, flat.as_str()] {
            let mut catalog = Catalog::builtin();
            catalog.learn(&value(docs), &value(INFO));
            let (lock, _) = catalog.find(&["lock"]).expect("it was told");
            assert_eq!(
                (lock.summary.as_str(), lock.group.as_str()),
                ("Locks", "locks")
            );
            assert_eq!((lock.arity, lock.args.len()), (-2, 2));
            let wait = &lock.args[1];
            assert!(wait.is_optional && wait.is_multiple && !wait.repeats_token);
            assert_eq!(wait.token.as_deref(), Some("WAIT"));
        }
    }

    #[test]
    fn a_server_that_tells_nothing_changes_nothing() {
        let mut catalog = Catalog::builtin();
        let before = catalog.all().count();
        let refusal = value("-NOAUTH Authentication required.\n");
        catalog.learn(&refusal, &refusal);
        assert!(!catalog.is_complete);
        assert_eq!(catalog.all().count(), before);
    }
}
