//! COMMAND INFO about a command: ten fields, all from its row of the table.
//!
//! ```text
//! name, arity, flags, first key, last key, step, ACL categories, tips, key rules, subcommands
//! ```
//!
//! Not here: its documentation (`documentation`), which commands were asked for (`introspection`).

use std::ops::BitAnd;

use super::{KeySpec, access, category, flag};
use crate::command::Command;
use crate::command::spec::{Begin, Find};
use crate::request::Reply;

/// Writes the description of a command, those of its subcommands included.
pub(super) fn write(reply: &mut Reply<'_>, command: &Command) {
    let spec = command.spec;
    reply.array(10);
    reply.bulk(command.full_name.as_bytes());
    reply.integer(spec.arity.into());
    write_words(reply, names(flag::NAMES, spec.flags));
    for number in [command.first_key, command.last_key, command.key_step] {
        reply.integer(number.into());
    }
    write_words(reply, names(category::NAMES, category::of(spec)));
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

/// Names of the bits that are set, in the order of their table.
pub(super) fn names<B>(
    table: &'static [(B, &'static str)],
    set: B,
) -> impl Iterator<Item = &'static str> + Clone
where
    B: Copy + Default + PartialEq + BitAnd<Output = B> + 'static,
{
    table
        .iter()
        .filter(move |(bit, _)| set & *bit != B::default())
        .map(|&(_, name)| name)
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
    write_words(reply, names(access::NAMES, rule.access));
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
