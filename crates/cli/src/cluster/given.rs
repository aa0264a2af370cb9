//! A subcommand of `cluster` as it was typed.

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::Path;

use crate::failure::Failure;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(super) subcommand: &'static str,
    /// What help calls the words.
    pub(super) names: &'static [&'static str],
    pub(super) words: Vec<OsString>,
    pub(super) flags: Vec<(&'static str, OsString)>,
    /// Words for another program.
    pub(super) rest: Vec<OsString>,
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
        self.parse(self.names[at], &self.words[at], range)
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
