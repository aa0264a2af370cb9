//! The words behind `cluster`, taken apart by the table.

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::Path;

use lexopt::{Arg, Parser};

use super::help;
use super::table::{Flag, Rest, Subcommand, find};
use crate::failure::Failure;

/// What the words behind `cluster` are.
pub(crate) enum Words {
    /// A command of the server: all of them.
    Command(Vec<OsString>),
    /// Somebody asks for this help.
    Help(String),
    Subcommand(Given),
}

/// A subcommand as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(super) subcommand: &'static str,
    words: Vec<OsString>,
    flags: Vec<(&'static str, OsString)>,
    /// Words for another program.
    pub(super) rest: Vec<OsString>,
}

/// Takes the words behind `cluster` apart.
///
/// # Errors
/// In words for the person who typed them.
pub(crate) fn read(mut words: Vec<OsString>) -> Result<Words, String> {
    let Some(first) = words.first() else {
        return Ok(Words::Command(words));
    };
    if is_help(first) {
        return Ok(Words::Help(help::text(None)));
    }
    let Some(subcommand) = find(first) else {
        return Ok(Words::Command(words));
    };
    let mut given = Given {
        subcommand: subcommand.name,
        words: Vec::new(),
        flags: Vec::new(),
        rest: Vec::new(),
    };
    let mut words = words.split_off(1);
    if let Rest::BehindDashes(_) = subcommand.rest
        && let Some(dashes) = words.iter().position(|word| word == "--")
    {
        given.rest = words.split_off(dashes + 1);
    }
    let mut parser = Parser::from_args(words);
    let wrong = |text: String| format!("cluster {}: {text}", subcommand.name);
    while let Some(arg) = parser.next().map_err(|error| wrong(error.to_string()))? {
        match arg {
            Arg::Long("help") => return Ok(Words::Help(help::text(Some(subcommand)))),
            Arg::Long(name) => {
                let flag = find_flag(subcommand, name).map_err(wrong)?;
                let name = flag.long;
                let word = if flag.value.is_empty() {
                    OsString::new()
                } else {
                    let lacks = |_| wrong(format!("--{name} takes {}", flag.value));
                    parser.value().map_err(lacks)?
                };
                given.flags.push((flag.long, word));
            }
            Arg::Short('h') => return Ok(Words::Help(help::text(Some(subcommand)))),
            Arg::Short(letter) => {
                return Err(wrong(format!("there is no flag '-{letter}'")));
            }
            Arg::Value(word) => {
                given.words.push(word);
                if given.words.len() == subcommand.words.len()
                    && let Rest::Behind(_) = subcommand.rest
                {
                    let rest = parser.raw_args();
                    given.rest = rest.map_err(|error| wrong(error.to_string()))?.collect();
                    break;
                }
            }
        }
    }
    if given.words.len() != subcommand.words.len() {
        return Err(format!("Usage: ferrite-cli cluster {}", subcommand.usage()));
    }
    Ok(Words::Subcommand(given))
}

fn is_help(word: &OsStr) -> bool {
    word == "--help" || word == "-h"
}

fn find_flag(subcommand: &'static Subcommand, name: &str) -> Result<&'static Flag, String> {
    let flags = subcommand.flags.iter();
    let found = flags.clone().find(|flag| flag.long == name);
    found.ok_or_else(|| {
        let near = flags.map(|flag| (strsim::damerau_levenshtein(name, flag.long), flag.long));
        match near.min() {
            Some((..=2, near)) => format!("there is no flag '--{name}' (did you mean --{near}?)"),
            _ => format!("there is no flag '--{name}'"),
        }
    })
}

impl Given {
    /// Whether a flag was given.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.value(flag).is_some()
    }

    /// What was given with a flag; the last counts.
    pub(super) fn value(&self, flag: &str) -> Option<&OsStr> {
        let mut given = self.flags.iter().rev();
        given
            .find(|(name, _)| *name == flag)
            .map(|(_, word)| word.as_os_str())
    }

    /// The word at this place, as a path.
    pub(super) fn path(&self, at: usize) -> &Path {
        Path::new(&self.words[at])
    }

    /// The word at this place.
    pub(super) fn word(&self, at: usize) -> &OsStr {
        &self.words[at]
    }

    /// A number that was given with a flag.
    ///
    /// # Errors
    /// It is none of the range.
    pub(super) fn number(
        &self,
        flag: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Failure> {
        let word = |word| self.parse(&format!("--{flag}"), word, range);
        self.value(flag).map(word).transpose()
    }

    /// The word at this place, as a number.
    ///
    /// # Errors
    /// It is none of the range.
    pub(super) fn number_at(&self, at: usize, range: RangeInclusive<u64>) -> Result<u64, Failure> {
        let subcommand = find(self.subcommand.as_ref()).expect("it was found by the parser");
        self.parse(subcommand.words[at], &self.words[at], range)
    }

    fn parse(&self, what: &str, word: &OsStr, range: RangeInclusive<u64>) -> Result<u64, Failure> {
        let number = word.to_str().and_then(|word| word.parse().ok());
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                let (least, most) = (range.start(), range.end());
                self.wrong(&format!(
                    "{what} takes a number from {least} to {most}, not '{}'",
                    word.to_string_lossy()
                ))
            })
    }

    /// An error about how the subcommand was typed.
    pub(super) fn wrong(&self, text: &str) -> Failure {
        Failure::Other(format!("cluster {}: {text}", self.subcommand))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Words, String> {
        read(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn commands_of_the_server_stay_what_they_are() {
        for line in [
            "",
            "slots",
            "INFO",
            "help",
            "countkeysinslot -1",
            "REBALANCE x --plan",
        ] {
            let count = line.split_whitespace().count();
            let is_it = matches!(words(line), Ok(Words::Command(words)) if words.len() == count);
            assert!(is_it, "{line}");
        }
    }

    #[test]
    fn flags_stand_anywhere() {
        for line in ["rebalance x --plan", "rebalance --plan x"] {
            let Ok(Words::Subcommand(given)) = words(line) else {
                panic!("{line}");
            };
            assert_eq!((given.has("plan"), given.path(0)), (true, Path::new("x")));
        }
        assert!(matches!(words("--help"), Ok(Words::Help(_))));
        for line in ["rebalance --help", "rebalance -h", "local 3 --help"] {
            assert!(matches!(words(line), Ok(Words::Help(_))), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, expected) in [
            (
                "rebalance",
                "Usage: ferrite-cli cluster rebalance NODES|DIR",
            ),
            (
                "rebalance x y",
                "Usage: ferrite-cli cluster rebalance NODES|DIR",
            ),
            (
                "rebalance x --plna",
                "cluster rebalance: there is no flag '--plna' (did you mean --plan?)",
            ),
            (
                "rebalance x --colour",
                "cluster rebalance: there is no flag '--colour'",
            ),
            ("rebalance x -z", "cluster rebalance: there is no flag '-z'"),
        ] {
            let error = words(line).err().expect(line);
            assert_eq!(error, expected, "{line}");
        }
    }
}
