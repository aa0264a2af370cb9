//! All commands that are known.

use std::collections::BTreeMap;

use super::builtin;
use super::command::Command;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    pub(super) commands: BTreeMap<String, Command>,
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
