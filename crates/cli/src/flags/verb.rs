//! Commands of this program that work on files, once: parser, `--help`, shell completions and the manual page
//! derive from this table. Flags may stand before and behind them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::options::Mode;

/// A command that takes the path of a file.
pub(super) struct Verb {
    pub(super) name: &'static str,
    /// What `--help` says, as sentences.
    pub(super) summary: &'static str,
    mode: fn(PathBuf) -> Mode,
}

/// See the module.
pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "import",
        summary: "Writes the keys of an RDB file to the server, over those it has. Nothing is written if the \
                  file is damaged or holds what is not supported.",
        mode: Mode::Import,
    },
    Verb {
        name: "export",
        summary: "Saves all keys as an RDB file, reading them one after the other; of database -n or of all.",
        mode: Mode::Export,
    },
];

impl Verb {
    /// What to do with the words behind it.
    ///
    /// # Errors
    /// They are not the path of one file.
    pub(super) fn mode(&self, words: &[Vec<u8>]) -> Result<Mode, String> {
        match words {
            [path] if !path.is_empty() => Ok((self.mode)(OsStr::from_bytes(path).into())),
            _ => Err(format!("{0} takes one file: {0} FILE", self.name)),
        }
    }
}

/// The verb of this name.
pub(super) fn find(word: &[u8]) -> Option<&'static Verb> {
    VERBS.iter().find(|verb| verb.name.as_bytes() == word)
}
