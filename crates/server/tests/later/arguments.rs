//! Arguments of commands, as COMMAND DOCS describes them: whether one description allows all that another
//! does.
//!
//! Names are not compared, nor is the order of arguments: those that have no word of their own stand in the
//! same order in all servers.

use crate::support::Value;

use super::{field, items, texts};

/// An argument and those that it is made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Argument {
    kind: String,
    token: Option<String>,
    is_optional: bool,
    is_multiple: bool,
    parts: Vec<Argument>,
}

/// The arguments that a description of a command has.
pub(super) fn arguments(description: &Value) -> Vec<Argument> {
    let described = field(description, "arguments");
    described
        .map(|arguments| items(arguments).iter().map(read).collect())
        .unwrap_or_default()
}

fn read(value: &Value) -> Argument {
    let text = |name: &str| field(value, name).map(Value::text);
    let flags = field(value, "flags").map(texts).unwrap_or_default();
    let has = |flag: &str| flags.iter().any(|name| name == flag);
    let argument = Argument {
        // A time is a number to the parser.
        kind: match &*text("type").expect("an argument has a type") {
            "unix-time" => "integer".to_owned(),
            kind => kind.to_owned(),
        },
        token: text("token"),
        is_optional: has("optional"),
        is_multiple: has("multiple"),
        parts: arguments(value),
    };
    simplify(argument)
}

/// A block of one argument that has no word of its own is that argument.
fn simplify(mut argument: Argument) -> Argument {
    let is_shell = argument.kind == "block"
        && matches!(&*argument.parts, [part] if part.token.is_none() || argument.token.is_none());
    if !is_shell {
        return argument;
    }
    let part = argument.parts.remove(0);
    Argument {
        token: argument.token.or(part.token),
        is_optional: argument.is_optional || part.is_optional,
        is_multiple: argument.is_multiple || part.is_multiple,
        kind: part.kind,
        parts: part.parts,
    }
}

/// The words that arguments have.
pub(super) fn tokens(arguments: &[Argument]) -> Vec<&str> {
    let mut found = Vec::new();
    for argument in arguments {
        found.extend(argument.token.as_deref());
        found.extend(tokens(&argument.parts));
    }
    found
}

/// Whether whoever takes `ours` takes all that `theirs` allow.
pub(super) fn cover(ours: &[Argument], theirs: &[Argument]) -> bool {
    let ours: Vec<Argument> = ours.iter().flat_map(spread).collect();
    let mut left: Vec<&Argument> = ours.iter().collect();
    for (at, argument) in theirs.iter().enumerate() {
        match left.iter().position(|own| covers(own, argument)) {
            Some(at) => drop(left.remove(at)),
            None if is_loose(argument) => {
                // What excludes each other elsewhere may stand in any place here.
                let parts = argument.parts.iter().map(|part| Argument {
                    is_optional: true,
                    ..part.clone()
                });
                let parts: Vec<Argument> = parts.collect();
                let own: Vec<Argument> = left.iter().map(|&own| own.clone()).collect();
                return cover(&own, &[&parts, &theirs[at + 1..]].concat());
            }
            None => return false,
        }
    }
    left.iter().all(|own| own.is_optional)
}

/// Whether it may be left out, or consists of parts that may, and has neither a word nor repetitions.
fn is_loose(argument: &Argument) -> bool {
    let has_parts = matches!(&*argument.kind, "oneof" | "block");
    has_parts && argument.is_optional && argument.token.is_none() && !argument.is_multiple
}

/// The parts of a block that may be left out, each of which may.
fn spread(own: &Argument) -> Vec<Argument> {
    if !is_loose(own) || own.kind != "block" {
        return vec![own.clone()];
    }
    let parts = own.parts.iter().flat_map(spread);
    let optional = |part| Argument {
        is_optional: true,
        ..part
    };
    parts.map(optional).collect()
}

fn covers(own: &Argument, other: &Argument) -> bool {
    if (other.is_optional && !own.is_optional) || (other.is_multiple && !own.is_multiple) {
        return false;
    }
    if own.kind == "oneof" {
        if own.token != other.token && own.token.is_some() {
            return false;
        }
        let is_there = |part: &Argument| own.parts.iter().any(|own| covers(own, part));
        return match &*other.kind {
            "oneof" => own.token == other.token && other.parts.iter().all(is_there),
            _ => is_there(&Argument {
                is_optional: false,
                is_multiple: false,
                ..other.clone()
            }),
        };
    }
    own.kind == other.kind && own.token == other.token && cover(&own.parts, &other.parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(token: &str) -> Argument {
        Argument {
            kind: "pure-token".to_owned(),
            token: Some(token.to_owned()),
            ..Argument::default()
        }
    }

    fn of(kind: &str, parts: &[Argument]) -> Argument {
        Argument {
            kind: kind.to_owned(),
            parts: parts.to_vec(),
            ..Argument::default()
        }
    }

    fn optional(argument: Argument) -> Argument {
        Argument {
            is_optional: true,
            ..argument
        }
    }

    #[test]
    fn more_is_enough_and_less_is_not() {
        let one = [of("oneof", &[word("A")])];
        let both = [of("oneof", &[word("A"), word("B")])];
        assert!(cover(&both, &one));
        assert!(!cover(&one, &both));
        assert!(cover(&one, &[word("A")]));
        let [whole] = both;
        assert!(cover(&[optional(whole)], &[]));
        assert!(!cover(&one, &[]));
        let [whole] = one.clone();
        assert!(!cover(&one, &[optional(whole)]));
        let pair = [of("integer", &[]), optional(of("integer", &[]))];
        assert!(cover(&pair, &pair[..1]));
        assert!(!cover(&pair[..1], &pair));
        // In one block, or in one within the other.
        let flat = optional(of("block", &pair));
        let deep = optional(of(
            "block",
            &[pair[0].clone(), optional(of("block", &pair[..1]))],
        ));
        assert!(cover(&[deep], &[flat]));
    }
}
