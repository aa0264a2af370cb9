//! COMMAND INFO about a command: ten fields, all from its row of the table.
//!
//! ```text
//! name, arity, flags, first key, last key, step, ACL categories, tips, key rules, subcommands
//! ```
//!
//! Not here: its documentation (`documentation`), which commands were asked for (`introspection`).

use super::{Group, KeySpec, Spec, flag};
use crate::command::Command;
use crate::command::spec::{Begin, Find};
use crate::request::Reply;

/// Writes the description of a command, those of its subcommands included.
pub(super) fn write(reply: &mut Reply<'_>, command: &Command) {
    let spec = command.spec;
    reply.array(10);
    reply.bulk(command.full_name.as_bytes());
    reply.integer(spec.arity.into());
    write_words(reply, flags(spec));
    for number in [command.first_key, command.last_key, command.key_step] {
        reply.integer(number.into());
    }
    write_words(reply, categories(spec).into_iter());
    reply.set(spec.tips.len());
    spec.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(spec.keys.len());
    spec.keys
        .iter()
        .for_each(|rule| write_key_rule(reply, rule));
    // Several subcommands are an array; that there is none is an empty set.
    match command.subcommands.len() {
        0 => reply.set(0),
        count => reply.array(count),
    }
    command
        .subcommands
        .iter()
        .for_each(|subcommand| write(reply, subcommand));
}

/// The names of a command's flags.
fn flags(spec: &Spec) -> impl Iterator<Item = &'static str> + Clone + use<> {
    let flags = spec.flags;
    flag::NAMES
        .iter()
        .filter(move |(bit, _)| flags & bit != 0)
        .map(|&(_, name)| name)
}

/// The ACL categories of a command: those of its row, and those that follow from its flags and its group.
pub(super) fn categories(spec: &Spec) -> Vec<&'static str> {
    let by_flag = [
        (flag::WRITE, "@write"),
        (flag::READONLY, "@read"),
        (flag::ADMIN, "@admin"),
        (flag::ADMIN, "@dangerous"),
        (flag::PUBSUB, "@pubsub"),
        (flag::BLOCKING, "@blocking"),
        (flag::FAST, "@fast"),
    ];
    let mut all: Vec<&'static str> = by_flag
        .iter()
        .filter(|(bit, _)| spec.has(*bit))
        .map(|&(_, name)| name)
        .collect();
    if !spec.has(flag::FAST) {
        all.push("@slow");
    }
    all.extend(category_of_group(spec));
    for category in spec.categories {
        if !all.contains(category) {
            all.push(category);
        }
    }
    all
}

/// The category that the commands of a group share. A container does nothing itself, so it has none; and a
/// generic command is about keys unless its row says that it is about the connection, as WAIT's does.
fn category_of_group(spec: &Spec) -> Option<&'static str> {
    if !spec.subcommands.is_empty() {
        return None;
    }
    match spec.group {
        Group::Generic if is_of_others(spec) => None,
        Group::Generic => Some("@keyspace"),
        Group::String => Some("@string"),
        Group::Bitmap => Some("@bitmap"),
        Group::HyperLogLog => Some("@hyperloglog"),
        Group::List => Some("@list"),
        Group::Hash => Some("@hash"),
        Group::Set => Some("@set"),
        Group::SortedSet => Some("@sortedset"),
        Group::Geo => Some("@geo"),
        Group::Connection => Some("@connection"),
        Group::Transactions => Some("@transaction"),
        Group::Server | Group::Cluster | Group::PubSub => None,
    }
}

/// Whether a generic command belongs to other categories: that of connections, or those of types.
fn is_of_others(spec: &Spec) -> bool {
    let others = ["@connection", "@list"];
    others.iter().any(|other| spec.categories.contains(other))
}

/// Writes a set of words.
pub(super) fn write_words<'w>(reply: &mut Reply<'_>, words: impl Iterator<Item = &'w str> + Clone) {
    reply.set(words.clone().count());
    words.for_each(|word| reply.simple(word));
}

fn write_key_rule(reply: &mut Reply<'_>, rule: &KeySpec) {
    reply.map(3 + usize::from(rule.notes.is_some()));
    if let Some(notes) = rule.notes {
        reply.bulk(b"notes");
        reply.bulk(notes.as_bytes());
    }
    reply.bulk(b"flags");
    write_words(reply, rule.flags.iter().copied());
    reply.bulk(b"begin_search");
    match rule.begin {
        Begin::Index(index) => write_search(reply, "index", &[("index", index)]),
        Begin::Keyword(word, from) => {
            write_search_header(reply, "keyword", 2);
            reply.bulk(b"keyword");
            reply.bulk(word.as_bytes());
            write_number(reply, "startfrom", from);
        }
        Begin::Unknown => write_search(reply, "unknown", &[]),
    }
    reply.bulk(b"find_keys");
    match rule.find {
        Find::Range { last, step, limit } => {
            let numbers = [("lastkey", last), ("keystep", step), ("limit", limit)];
            write_search(reply, "range", &numbers);
        }
        Find::Count { count, first, step } => {
            let numbers = [("keynumidx", count), ("firstkey", first), ("keystep", step)];
            write_search(reply, "keynum", &numbers);
        }
        Find::Unknown => write_search(reply, "unknown", &[]),
    }
}

/// Writes one half of a rule, all of whose parameters are numbers.
fn write_search(reply: &mut Reply<'_>, kind: &str, numbers: &[(&str, i32)]) {
    write_search_header(reply, kind, numbers.len());
    for &(name, number) in numbers {
        write_number(reply, name, number);
    }
}

fn write_search_header(reply: &mut Reply<'_>, kind: &str, parameters: usize) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(parameters);
}

fn write_number(reply: &mut Reply<'_>, name: &str, number: i32) {
    reply.bulk(name.as_bytes());
    reply.integer(number.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(spec: Spec) -> Vec<&'static str> {
        let mut all = categories(&spec);
        all.sort_unstable();
        all
    }

    #[test]
    fn categories_follow_from_flags_group_and_row() {
        let get = Spec {
            flags: flag::READONLY | flag::FAST,
            group: Group::String,
            ..Spec::BASE
        };
        assert_eq!(sorted(get), ["@fast", "@read", "@string"]);
        let keys = Spec {
            flags: flag::READONLY,
            categories: &["@dangerous"],
            ..Spec::BASE
        };
        assert_eq!(sorted(keys), ["@dangerous", "@keyspace", "@read", "@slow"]);
        let debug = Spec {
            flags: flag::ADMIN | flag::NOSCRIPT,
            group: Group::Server,
            ..Spec::BASE
        };
        assert_eq!(sorted(debug), ["@admin", "@dangerous", "@slow"]);
    }

    #[test]
    fn a_container_and_a_command_about_the_connection_are_not_about_keys() {
        let container = Spec {
            subcommands: &[Spec::BASE],
            ..Spec::BASE
        };
        assert_eq!(sorted(container), ["@slow"]);
        let wait = Spec {
            categories: &["@connection"],
            ..Spec::BASE
        };
        assert_eq!(sorted(wait), ["@connection", "@slow"]);
    }

    #[test]
    fn no_category_is_named_twice() {
        let row = Spec {
            flags: flag::ADMIN,
            categories: &["@admin", "@keyspace"],
            ..Spec::BASE
        };
        assert_eq!(sorted(row), ["@admin", "@dangerous", "@keyspace", "@slow"]);
    }
}
