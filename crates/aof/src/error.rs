//! What is wrong with a file of commands, and where.

use std::fmt;
use std::io;

/// Why a file cannot be read on.
#[derive(Debug)]
pub struct Error {
    /// Bytes from the beginning of the file to what is wrong.
    pub offset: u64,
    /// Bytes from the beginning of the file to the command that was being read.
    pub command: u64,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// The system could not read it.
    Io(io::Error),
    /// It ends in the middle of a command, which is right as far as it goes.
    Torn,
    /// Something is not what it has to be.
    Corrupt {
        /// What has to be there.
        expected: &'static str,
        /// The byte that is there instead.
        found: u8,
    },
    /// A number is larger than any that redis-server writes.
    TooLarge {
        /// What it is the number of.
        what: &'static str,
    },
    /// The command is longer than the caller takes.
    TooLong {
        /// What the caller takes.
        limit: u64,
    },
}

impl Error {
    /// Whether the file ends in the middle of a command: a process or a machine has died while it was
    /// written.
    pub fn is_torn(&self) -> bool {
        matches!(self.problem, Problem::Torn)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Io(error) => write!(f, "cannot be read: {error}"),
            Problem::Torn => write!(f, "the file ends in the middle of a command"),
            Problem::Corrupt { expected, found } => {
                let found = found.escape_ascii();
                write!(f, "{expected} should be here, but it is '{found}'")
            }
            Problem::TooLarge { what } => write!(f, "{what} is too large a number"),
            Problem::TooLong { limit } => write!(f, "the command is longer than {limit} bytes"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Io(error) => Some(error),
            _ => None,
        }
    }
}
