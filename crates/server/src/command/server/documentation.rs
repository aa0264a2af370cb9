//! COMMAND DOCS about a command, all from its row of the table.
//!
//! An empty field is left out, so a map is counted before it is written: [`Fields`] does both.
//!
//! Not here: which commands were asked for (`introspection`).

use super::description::write_words;
use super::{Arg, ArgKind, Group, Spec, flag};
use crate::command::Command;
use crate::request::Reply;

/// A map whose length is known once its fields are.
struct Fields<'a> {
    fields: Vec<(&'static str, Field<'a>)>,
}

/// The value of a field.
enum Field<'a> {
    Text(&'a str),
    Number(i64),
    Words(Vec<&'static str>),
    History(&'static [(&'static str, &'static str)]),
    Args(&'static [Arg]),
    Subcommands(&'a [Command]),
}

impl<'a> Fields<'a> {
    fn new() -> Fields<'a> {
        Fields { fields: Vec::new() }
    }

    fn add(&mut self, name: &'static str, field: Field<'a>) {
        self.fields.push((name, field));
    }

    /// Adds a field if there is something to say.
    fn add_text(&mut self, name: &'static str, text: Option<&'a str>) {
        if let Some(text) = text {
            self.add(name, Field::Text(text));
        }
    }

    /// Adds a set of words if there is one.
    fn add_words(&mut self, name: &'static str, words: Vec<&'static str>) {
        if !words.is_empty() {
            self.add(name, Field::Words(words));
        }
    }

    fn write(self, reply: &mut Reply<'_>) {
        reply.map(self.fields.len());
        for (name, field) in self.fields {
            reply.bulk(name.as_bytes());
            match field {
                Field::Text(text) => reply.bulk(text.as_bytes()),
                Field::Number(number) => reply.integer(number),
                Field::Words(words) => write_words(reply, words.iter().copied()),
                Field::History(history) => write_history(reply, history),
                Field::Args(args) => write_args(reply, args),
                Field::Subcommands(subcommands) => {
                    reply.map(subcommands.len());
                    subcommands.iter().for_each(|command| write(reply, command));
                }
            }
        }
    }
}

/// Writes the name of a command and the map of its documentation, that of its subcommands included.
pub(super) fn write(reply: &mut Reply<'_>, command: &Command) {
    let spec = command.spec;
    let mut fields = Fields::new();
    fields.add("summary", Field::Text(spec.summary));
    fields.add("since", Field::Text(spec.since));
    fields.add("group", Field::Text(group_name(spec.group)));
    fields.add("complexity", Field::Text(spec.complexity));
    fields.add_words("doc_flags", doc_flags(spec));
    fields.add_text("deprecated_since", spec.deprecated.map(|(since, _)| since));
    fields.add_text("replaced_by", spec.deprecated.map(|(_, instead)| instead));
    if !spec.history.is_empty() {
        fields.add("history", Field::History(spec.history));
    }
    if !spec.args.is_empty() {
        fields.add("arguments", Field::Args(spec.args));
    }
    if !command.subcommands.is_empty() {
        fields.add("subcommands", Field::Subcommands(&command.subcommands));
    }
    reply.bulk(command.full_name.as_bytes());
    fields.write(reply);
}

/// The name of a group.
fn group_name(group: Group) -> &'static str {
    match group {
        Group::Generic => "generic",
        Group::String => "string",
        Group::Bitmap => "bitmap",
        Group::HyperLogLog => "hyperloglog",
        Group::List => "list",
        Group::Hash => "hash",
        Group::Set => "set",
        Group::SortedSet => "sorted-set",
        Group::Geo => "geo",
        Group::Stream => "stream",
        Group::Connection => "connection",
        Group::PubSub => "pubsub",
        Group::Server => "server",
        Group::Cluster => "cluster",
        Group::Transactions => "transactions",
        Group::Scripting => "scripting",
    }
}

fn doc_flags(spec: &Spec) -> Vec<&'static str> {
    let deprecated = spec.deprecated.map(|_| "deprecated");
    let system = spec.has(flag::SYSTEM).then_some("syscmd");
    deprecated.into_iter().chain(system).collect()
}

fn write_history(reply: &mut Reply<'_>, history: &[(&str, &str)]) {
    reply.set(history.len());
    for (version, change) in history {
        reply.array(2);
        reply.bulk(version.as_bytes());
        reply.bulk(change.as_bytes());
    }
}

fn write_args(reply: &mut Reply<'_>, args: &'static [Arg]) {
    reply.array(args.len());
    for arg in args {
        let mut fields = Fields::new();
        fields.add("name", Field::Text(arg.name));
        fields.add("type", Field::Text(kind_name(arg.kind)));
        if let Some(rule) = arg.key_spec {
            fields.add("key_spec_index", Field::Number(rule as i64));
        }
        fields.add_text("token", arg.token);
        fields.add_text("since", arg.since);
        fields.add_text("deprecated_since", arg.deprecated_since);
        fields.add_words("flags", arg_flags(arg));
        if !arg.args.is_empty() {
            fields.add("arguments", Field::Args(arg.args));
        }
        fields.write(reply);
    }
}

fn arg_flags(arg: &Arg) -> Vec<&'static str> {
    let flags = [
        (arg.optional, "optional"),
        (arg.multiple, "multiple"),
        (arg.multiple_token, "multiple_token"),
    ];
    flags
        .iter()
        .filter(|(set, _)| *set)
        .map(|&(_, name)| name)
        .collect()
}

/// The name of a kind of argument.
fn kind_name(kind: ArgKind) -> &'static str {
    match kind {
        ArgKind::String => "string",
        ArgKind::Integer => "integer",
        ArgKind::Double => "double",
        ArgKind::Key => "key",
        ArgKind::Pattern => "pattern",
        ArgKind::UnixTime => "unix-time",
        ArgKind::PureToken => "pure-token",
        ArgKind::OneOf => "oneof",
        ArgKind::Block => "block",
    }
}
