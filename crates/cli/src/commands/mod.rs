//! What is known about commands: names, arguments, and what they are for.
//!
//! | file | what |
//! |---|---|
//! | `builtin` | the table that is there without a server: `table.txt`, made from Ferrite's own |
//! | `learned` | what a server tells by COMMAND and COMMAND DOCS |
//! | `syntax` | arguments as text, and which of them a typed line has already |
//! | `help` | `help` as people see it |
//!
//! The one table of commands is the server's (`crates/server/src/command`); everything here derives from it
//! or from another server's, and nothing about a command is written down here.

mod builtin;
mod help;
mod learned;
mod syntax;

pub(crate) use help::help;
pub(crate) use syntax::{progress, text};

use std::collections::BTreeMap;

/// A command, or a subcommand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// In lower case; a subcommand's is two words.
    pub(crate) name: String,
    /// Words, its name included; negative: at least as many. 0 if nobody said.
    pub(crate) arity: i64,
    pub(crate) group: String,
    pub(crate) since: String,
    pub(crate) summary: String,
    pub(crate) complexity: String,
    /// Since which version it should not be used, and what to use instead.
    pub(crate) deprecated: Option<(String, String)>,
    pub(crate) keys: KeyRange,
    pub(crate) args: Vec<Arg>,
}

/// Where the keys of a command are: from `first` on (0: none), every `step`-th, to `last` (negative: from the
/// end).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) step: i64,
}

impl KeyRange {
    /// The indices of the keys among so many words.
    pub(crate) fn indices(self, words: usize) -> impl Iterator<Item = usize> {
        let count = i64::try_from(words).unwrap_or(i64::MAX);
        let last = if self.last < 0 {
            count + self.last
        } else {
            self.last.min(count - 1)
        };
        let last = if self.first > 0 { last } else { -1 };
        (self.first.max(0)..=last)
            .step_by(usize::try_from(self.step).unwrap_or(0).max(1))
            .filter_map(|at| usize::try_from(at).ok())
    }
}

/// An argument, as COMMAND DOCS describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arg {
    pub(crate) name: String,
    pub(crate) kind: ArgKind,
    /// The word that introduces it.
    pub(crate) token: Option<String>,
    pub(crate) is_optional: bool,
    pub(crate) is_multiple: bool,
    /// Each of several has the token in front.
    pub(crate) repeats_token: bool,
    /// Of a choice or a block.
    pub(crate) args: Vec<Arg>,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ArgKind {
    /// One word of whatever kind.
    #[default]
    Word,
    Key,
    /// Nothing but its token.
    PureToken,
    OneOf,
    Block,
}

impl ArgKind {
    /// From the name that COMMAND DOCS has for it. What is not known is a word.
    fn named(name: &str) -> ArgKind {
        match name {
            "key" => ArgKind::Key,
            "pure-token" => ArgKind::PureToken,
            "oneof" => ArgKind::OneOf,
            "block" => ArgKind::Block,
            _ => ArgKind::Word,
        }
    }
}

/// All commands that are known.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    commands: BTreeMap<String, Command>,
    /// Names of the server's settings, as far as it has told them.
    pub(crate) settings: Vec<String>,
    /// A server has told which commands it has, so that there are no others.
    pub(crate) is_complete: bool,
}

impl Catalog {
    /// What is known without a server.
    pub(crate) fn builtin() -> Catalog {
        let commands = builtin::commands();
        Catalog {
            commands: commands
                .map(|command| (command.name.clone(), command))
                .collect(),
            settings: Vec::new(),
            is_complete: false,
        }
    }

    /// All, by name, each followed by its subcommands.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Command> {
        self.commands.values()
    }

    /// The groups that commands belong to, by name.
    pub(crate) fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = self.all().map(|command| command.group.as_str()).collect();
        groups.sort_unstable();
        groups.dedup();
        groups.retain(|group| !group.is_empty());
        groups
    }

    /// The command that these words begin with, and how many of them are its name.
    pub(crate) fn find<W: AsRef<[u8]>>(&self, words: &[W]) -> Option<(&Command, usize)> {
        let word = |at: usize| {
            let word = std::str::from_utf8(words.get(at)?.as_ref()).ok()?;
            Some(word.to_ascii_lowercase())
        };
        let first = word(0)?;
        let sub = word(1).and_then(|second| self.commands.get(&format!("{first} {second}")));
        match sub {
            Some(command) => Some((command, 2)),
            None => self.commands.get(&first).map(|command| (command, 1)),
        }
    }

    /// The subcommands of a command.
    pub(crate) fn subcommands(&self, name: &str) -> impl Iterator<Item = &Command> {
        let prefix = format!("{} ", name.to_ascii_lowercase());
        self.all()
            .filter(move |command| command.name.starts_with(&prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_they_are() {
        let keys = |first, last, step, words| -> Vec<usize> {
            KeyRange { first, last, step }.indices(words).collect()
        };
        assert_eq!(keys(0, 0, 0, 3), []);
        assert_eq!(keys(1, 1, 1, 1), []);
        assert_eq!(keys(1, 1, 1, 3), [1]);
        assert_eq!(keys(1, -1, 1, 4), [1, 2, 3]);
        assert_eq!(keys(1, -1, 2, 5), [1, 3]);
        assert_eq!(keys(2, -1, 1, 2), []);
        assert_eq!(keys(1, -2, 1, 4), [1, 2]);
        assert_eq!(keys(1, 2, 1, 2), [1]);
    }

    #[test]
    fn commands_are_found_by_one_word_or_two() {
        let catalog = Catalog::builtin();
        let find = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let found = catalog.find(&words);
            found.map(|(command, count)| (command.name.clone(), count))
        };
        assert_eq!(find("GET k"), Some(("get".to_owned(), 1)));
        assert_eq!(find("Config GET port"), Some(("config get".to_owned(), 2)));
        assert_eq!(find("config nothing"), Some(("config".to_owned(), 1)));
        assert_eq!(find("nothing"), None);
        assert_eq!(catalog.find::<&str>(&[]), None);
        assert!(
            catalog
                .subcommands("CONFIG")
                .any(|command| command.name == "config set")
        );
        assert!(catalog.groups().contains(&"string"));
    }
}
