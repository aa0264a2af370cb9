//! The words behind `cluster`, taken apart by the table.

use std::ffi::{OsStr, OsString};

use lexopt::{Arg, Parser};

use super::given::Given;
use super::help;
use super::subcommand::{Rest, Subcommand, SubcommandFlag};
use super::table::find;

/// What the words behind `cluster` are.
pub(crate) enum Words {
    /// A command of the server: all of them.
    Command(Vec<OsString>),
    /// Somebody asks for this help.
    Help(String),
    Subcommand(Given),
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
        names: subcommand.words,
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

fn find_flag(
    subcommand: &'static Subcommand,
    name: &str,
) -> Result<&'static SubcommandFlag, String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

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
