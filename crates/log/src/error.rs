//! What can go wrong, in words that name what is wrong and what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a log could not be opened, checked, copied or read.
#[derive(Debug)]
pub enum Error {
    /// The operating system refused.
    Io {
        /// What was tried, as in "cannot open".
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another process uses the directory.
    Locked {
        /// The directory.
        directory: PathBuf,
        /// The number of that process, if its lock file tells.
        holder: Option<u32>,
    },
    /// There is no log in this directory.
    Missing(PathBuf),
    /// There is a log in this directory, where a backup should go.
    Taken(PathBuf),
    /// What is on disk is not what was written.
    Damage(Damage),
    /// What is on disk was written by a version that this one does not understand.
    Version(Damage),
    /// Options contradict each other.
    Options(&'static str),
    /// Appends are not accepted.
    Refused(Refusal),
}

/// What is wrong with a file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where in it, in bytes.
    pub offset: u64,
    /// What is wrong there.
    pub reason: String,
}

/// A directory as messages name it: who reads them may be in another.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path, error: io::Error) -> Error {
        Error::Io {
            what,
            path: path.to_owned(),
            error,
        }
    }

    pub(crate) fn version(file: &Path, offset: u64, reason: impl fmt::Display) -> Error {
        Error::Version(Damage {
            file: file.to_owned(),
            offset,
            reason: reason.to_string(),
        })
    }

    pub(crate) fn damage(file: &Path, offset: u64, reason: impl fmt::Display) -> Error {
        Error::Damage(Damage {
            file: file.to_owned(),
            offset,
            reason: reason.to_string(),
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { what, path, error } => write!(f, "{what} {}: {error}", path.display()),
            Error::Locked { directory, holder } => {
                write!(f, "{} is in use by another server", directory.display())?;
                match holder {
                    Some(pid) => write!(f, " (process {pid})"),
                    None => Ok(()),
                }
            }
            Error::Missing(directory) => write!(
                f,
                "there is no log in {0}: {0}/log is missing",
                directory.display()
            ),
            Error::Taken(directory) => write!(
                f,
                "there is a backup in {} already, which is left as it is: choose another name",
                directory.display()
            ),
            Error::Damage(damage) => write!(
                f,
                "{damage}; ferrite-server --repair-log takes out what is damaged and keeps it aside"
            ),
            Error::Version(damage) => {
                f.write_str(&damage.unknown())?;
                f.write_str("; start that version or a later one. Nothing was changed")
            }
            Error::Options(reason) => f.write_str(reason),
            Error::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl Damage {
    /// What is said of it if it is no damage, but of another version.
    pub(crate) fn unknown(&self) -> String {
        let (file, reason) = (self.file.display(), &self.reason);
        format!("{file} cannot be read at byte {}: {reason}", self.offset)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage {
            file,
            offset,
            reason,
        } = self;
        write!(
            f,
            "{} is damaged at byte {offset}: {reason}",
            file.display()
        )
    }
}

impl std::error::Error for Error {}

/// Why nothing may be appended now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A write or a sync failed. Nothing is accepted any more until the server starts again.
    Failed(Arc<str>),
    /// The disk is nearly full. This ends by itself when there is space again.
    Full(Arc<str>),
    /// The log has been closed.
    Closed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Failed(reason) | Refusal::Full(reason) => f.write_str(reason),
            Refusal::Closed => f.write_str("the log is closed"),
        }
    }
}

impl std::error::Error for Refusal {}

/// The result of what can go wrong with a log.
pub type Result<T> = std::result::Result<T, Error>;
