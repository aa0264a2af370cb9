//! Directives that are no settings here: those of redis.conf that this server has no use for, and misspelled
//! ones.
//!
//! A directive whose value asks for what this server does anyway, or that only tunes the inside of
//! redis-server, is accepted and kept for CONFIG GET. A value that would change what clients or operators see
//! is refused with the reason. `table` holds each directive once.

mod table;

use std::fmt;

use super::file::Directive;
use super::table::{Row, TABLE};
use super::value::parse_memory;
use table::GROUPS;

/// The most letters by which a name may differ from the one that is suggested for it.
const MAX_DISTANCE: usize = 2;

/// The most bytes of a value: it is kept for CONFIG GET, and clients may set it.
const MAX_VALUE_BYTES: usize = 4096;

/// The words that describe the user that every client is: it may do everything.
const WORDS_OF_DEFAULT_USER: &[&str] = &[
    "on",
    "nopass",
    "sanitize-payload",
    "skip-sanitize-payload",
    "~*",
    "allkeys",
    "&*",
    "allchannels",
    "+@all",
    "allcommands",
];

/// A directive of redis-server that is no setting here.
#[derive(Debug)]
pub(crate) struct Foreign {
    /// In lower case, as CONFIG GET names it.
    pub(crate) name: &'static str,
    /// A second name of the same.
    also: Option<&'static str>,
    /// As CONFIG GET of redis-server prints it.
    default: &'static str,
    shape: Shape,
    accepts: Accepts,
    /// Whether CONFIG GET shows it while it is not set.
    pub(super) is_shown: bool,
    /// Whether CONFIG SET may change it.
    pub(crate) mutable: bool,
}

/// Values of a directive in redis-server.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Flag,
    Number,
    /// Bytes, with an optional unit. Shown as bytes.
    Size,
    Word(&'static [&'static str]),
    Text,
}

/// Which of these values are accepted here.
#[derive(Clone, Copy, Debug)]
enum Accepts {
    All,
    Only(&'static [&'static str]),
    /// The description of the user `default` without a password or a limit.
    DefaultUser,
    Nothing,
}

/// Verdict on a directive that is no setting.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It is accepted and changes nothing; the value is as CONFIG GET shows it.
    Ignored {
        row: &'static Foreign,
        value: String,
        reason: &'static str,
    },
    /// It stops the start, for this reason.
    Refused(String),
}

impl Foreign {
    /// Every directive that is no setting here.
    pub(crate) fn all() -> impl Iterator<Item = &'static Foreign> {
        GROUPS.iter().flat_map(|group| group.rows)
    }

    /// The directive of a name in any case.
    pub(crate) fn find(name: &[u8]) -> Option<&'static Foreign> {
        Foreign::all().find(|row| {
            row.names()
                .any(|own| own.as_bytes().eq_ignore_ascii_case(name))
        })
    }

    /// Its names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.also)
    }

    /// Default in CONFIG GET of redis-server.
    pub(super) fn default(&self) -> &'static str {
        self.default
    }

    /// Whether its value is a password.
    pub(crate) fn is_secret(&self) -> bool {
        self.name.ends_with("pass") || self.name.ends_with("auth")
    }

    /// Why it changes nothing here.
    fn reason(&self) -> &'static str {
        let group = GROUPS
            .iter()
            .find(|group| group.rows.iter().any(|row| row.name == self.name));
        group.map_or("", |group| group.reason)
    }

    /// The value that words are, as CONFIG GET shows it.
    ///
    /// # Errors
    /// Why redis-server or this server refuses it.
    pub(crate) fn accept(&self, words: &[&str]) -> Result<String, String> {
        let value = words.join(" ");
        if value.len() > MAX_VALUE_BYTES {
            return Err(format!("argument has more than {MAX_VALUE_BYTES} bytes"));
        }
        let refuse = |takes: &dyn fmt::Display| {
            let (name, reason) = (self.name, self.reason());
            Err(format!("not possible here: {reason}; {name} takes {takes}"))
        };
        match self.accepts {
            Accepts::Nothing => Err(format!("not possible here: {}", self.reason())),
            Accepts::DefaultUser => match words {
                ["default", rules @ ..]
                    if rules.iter().all(|rule| {
                        WORDS_OF_DEFAULT_USER
                            .iter()
                            .any(|known| known.eq_ignore_ascii_case(rule))
                    }) =>
                {
                    Ok(value)
                }
                _ => refuse(&"'default on nopass ~* &* +@all'"),
            },
            Accepts::Only(values) => {
                if values
                    .iter()
                    .any(|known| known.eq_ignore_ascii_case(&value))
                {
                    Ok(value.to_ascii_lowercase())
                } else {
                    refuse(&Listed(values))
                }
            }
            Accepts::All => self.in_shape(words, value),
        }
    }

    /// The value in the form of CONFIG GET, if redis-server takes it. Errors are in its words.
    fn in_shape(&self, words: &[&str], value: String) -> Result<String, String> {
        match (self.shape, words) {
            (Shape::Text, _) => Ok(value),
            (_, [] | [_, _, ..]) => Err("wrong number of arguments".into()),
            (Shape::Flag, [word]) if is_one_of(word, &["yes", "no"]) => {
                Ok(value.to_ascii_lowercase())
            }
            (Shape::Flag, _) => Err("argument must be 'yes' or 'no'".into()),
            (Shape::Number, [word]) if word.parse::<i64>().is_ok() => Ok(value),
            (Shape::Number, _) => Err("argument couldn't be parsed into an integer".into()),
            (Shape::Size, [word]) => parse_memory(word)
                .map(|bytes| bytes.to_string())
                .ok_or_else(|| "argument must be a memory value".into()),
            (Shape::Word(known), [word]) if is_one_of(word, known) => {
                Ok(value.to_ascii_lowercase())
            }
            (Shape::Word(known), _) => Err(format!(
                "argument(s) must be one of the following: {}",
                known.join(", ")
            )),
        }
    }

    /// The values that are accepted, for the documentation.
    #[cfg(test)]
    pub(super) fn accepted(&self) -> String {
        match self.accepts {
            Accepts::All => "any".to_owned(),
            Accepts::Nothing => "none".to_owned(),
            Accepts::DefaultUser => "`default on nopass ~* &* +@all`".to_owned(),
            Accepts::Only(values) => values
                .iter()
                .map(|value| match *value {
                    "" => "`\"\"`".to_owned(),
                    value => format!("`{value}`"),
                })
                .collect::<Vec<_>>()
                .join(", "),
        }
    }

    /// The reasons and the directives that they hold for, for the documentation.
    #[cfg(test)]
    pub(super) fn groups() -> impl Iterator<Item = (&'static str, &'static [Foreign])> {
        GROUPS.iter().map(|group| (group.reason, group.rows))
    }
}

fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Values as a message names them.
struct Listed(&'static [&'static str]);

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, value) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { " or " };
            write!(f, "{separator}'{value}'")?;
        }
        Ok(())
    }
}

/// Verdict on a directive whose name is no setting.
pub(super) fn judge(directive: &Directive) -> Verdict {
    let Some(row) = Foreign::find(directive.name.as_bytes()) else {
        return Verdict::Refused(unknown(&directive.name));
    };
    if directive.words.is_empty() {
        return Verdict::Refused("wrong number of arguments".into());
    }
    let words: Vec<&str> = directive.words.iter().map(String::as_str).collect();
    match row.accept(&words) {
        Ok(value) => Verdict::Ignored {
            row,
            value,
            reason: row.reason(),
        },
        Err(wrong) => Verdict::Refused(wrong),
    }
}

/// Message about an unknown name, with the most similar known name.
fn unknown(name: &str) -> String {
    match closest(name) {
        Some(row) => format!("unknown directive; did you mean '{}'?", row.name),
        None => "unknown directive; ferrite-server --help lists all of them".into(),
    }
}

/// The setting whose name a misspelled one comes close to.
pub(super) fn closest(name: &str) -> Option<&'static Row> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let distance = |row: &Row| strsim::damerau_levenshtein(&name, row.name);
    TABLE
        .iter()
        .map(|row| (distance(row), row))
        // Of a short name, two letters are too much of it.
        .filter(|(distance, row)| *distance <= MAX_DISTANCE && distance * 3 <= row.name.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, row)| row)
}

#[cfg(test)]
mod tests {
    use super::super::file::{Place, read_line};
    use super::*;
    use std::collections::HashSet;

    /// Verdict on a line: its value, or the reason of the refusal.
    fn judged(line: &str) -> Result<String, String> {
        let directive = read_line(line.as_bytes(), Place::CommandLine);
        let directive = directive.expect("it is a line").expect("it is no comment");
        match judge(&directive) {
            Verdict::Ignored { value, reason, .. } => {
                assert!(!reason.is_empty(), "{line}");
                Ok(value)
            }
            Verdict::Refused(wrong) => Err(wrong),
        }
    }

    #[test]
    fn names_are_unique_and_none_is_a_setting() {
        let mut names = HashSet::new();
        for name in Foreign::all().flat_map(Foreign::names) {
            assert!(names.insert(name), "{name} twice");
            assert!(Row::find(name.as_bytes()).is_none(), "{name}");
            assert_eq!(name, name.to_ascii_lowercase());
        }
    }

    #[test]
    fn every_default_is_accepted() {
        for row in Foreign::all().filter(|row| row.is_shown) {
            let words: Vec<&str> = match row.default {
                "" => vec![""],
                default => default.split(' ').collect(),
            };
            assert_eq!(
                row.accept(&words).as_deref(),
                Ok(row.default),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn values_that_change_nothing_are_accepted() {
        for (line, value) in [
            ("list-compress-depth 2", "2"),
            ("lazyfree-lazy-eviction YES", "yes"),
            ("tls-cluster no", "no"),
            ("replicaof no one", "no one"),
            ("oom-score-adj-values 0 200 800", "0 200 800"),
            (
                "user default on nopass ~* &* +@all",
                "default on nopass ~* &* +@all",
            ),
            ("proc-title-template \"{title} x\"", "{title} x"),
            ("io-threads 4", "4"),
            ("supervised systemd", "systemd"),
            ("masterauth secret", "secret"),
            ("primaryauth secret", "secret"),
            ("tls-port 0", "0"),
        ] {
            assert_eq!(judged(line).as_deref(), Ok(value), "{line}");
        }
    }

    #[test]
    fn values_have_a_bound() {
        let row = Foreign::find(b"masterauth").expect("it is a directive of redis-server");
        let long = "x".repeat(MAX_VALUE_BYTES);
        assert_eq!(row.accept(&[&long]).as_deref(), Ok(long.as_str()));
        assert!(row.accept(&[&long, "y"]).is_err());
    }

    #[test]
    fn values_that_change_something_are_refused_with_the_reason() {
        for (line, wrong) in [
            (
                "tls-cluster yes",
                "not possible here: there is no TLS; tls-cluster takes 'no'",
            ),
            (
                "ReplicaOf 10.0.0.1 6379",
                "not possible here: there is no replication; replicaof takes '' or 'no one'",
            ),
            (
                "loadmodule /x.so",
                "not possible here: there are no modules",
            ),
            (
                "rename-command FLUSHALL \"\"",
                "not possible here: commands cannot be renamed",
            ),
            (
                "user default on nopass ~app:* +@all",
                "not possible here: there are no users; requirepass sets the password of all clients; user takes \
                 'default on nopass ~* &* +@all'",
            ),
            ("activedefrag maybe", "argument must be 'yes' or 'no'"),
            (
                "io-threads many",
                "argument couldn't be parsed into an integer",
            ),
            ("repl-backlog-size 1 mb", "wrong number of arguments"),
            (
                "sanitize-dump-payload all",
                "argument(s) must be one of the following: no, yes, clients",
            ),
            ("activedefrag", "wrong number of arguments"),
            ("prot 1", "unknown directive; did you mean 'port'?"),
            ("PORTS 1", "unknown directive; did you mean 'port'?"),
            (
                "max_memory 1",
                "unknown directive; did you mean 'maxmemory'?",
            ),
            (
                "tcp-keep-alive 1",
                "unknown directive; did you mean 'tcp-keepalive'?",
            ),
            (
                "slowlog-max-length 1",
                "unknown directive; ferrite-server --help lists all of them",
            ),
            (
                "ip 1",
                "unknown directive; ferrite-server --help lists all of them",
            ),
            (
                "\"\" 1",
                "unknown directive; ferrite-server --help lists all of them",
            ),
        ] {
            assert_eq!(judged(line).err().as_deref(), Some(wrong), "{line}");
        }
    }
}
