//! What a subcommand is made of.

use super::given::Given;
use crate::failure::Result;
use crate::flags::Options;

/// A word behind `cluster`, with what may follow it.
pub(crate) struct Subcommand {
    pub(crate) name: &'static str,
    /// What has to follow, as help calls it.
    pub(crate) words: &'static [&'static str],
    /// What it does, as sentences.
    pub(crate) summary: &'static str,
    pub(crate) flags: &'static [SubcommandFlag],
    pub(crate) rest: Rest,
    /// Does it. Told the flags before `cluster` as well.
    pub(crate) run: fn(&Given, &Options) -> Result,
}

/// A flag of a subcommand.
pub(crate) struct SubcommandFlag {
    /// Without dashes.
    pub(crate) long: &'static str,
    /// What follows it, as help calls it; empty if nothing does.
    pub(crate) value: &'static str,
    /// What it means, as sentences.
    pub(crate) summary: &'static str,
}

/// Words that are for another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    /// What stands behind `--`, as help calls it.
    BehindDashes(&'static str),
    /// What stands behind the words that have to follow.
    Behind(&'static str),
}

impl Subcommand {
    /// How it is typed, without flags: `bench NODES|DIR REQUESTS CONNECTIONS`.
    pub(crate) fn usage(&self) -> String {
        let words = self.words.iter().map(|word| format!(" {word}"));
        let rest = match self.rest {
            Rest::Nothing => String::new(),
            Rest::BehindDashes(rest) => format!(" [-- {rest}...]"),
            Rest::Behind(rest) => format!(" [{rest}...]"),
        };
        format!("{}{}{rest}", self.name, words.collect::<String>())
    }
}
