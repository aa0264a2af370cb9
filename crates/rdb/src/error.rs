//! What is wrong with a file, and where.

use std::fmt;
use std::io;

use crate::format::{NEWEST_VERSION, OLDEST_VERSION, VALKEY_VERSION};

/// What helps with what Valkey alone reads.
const VALKEY_COMMANDS: &str = "Let Valkey write commands in its place (CONFIG SET aof-use-rdb-preamble no, \
                               CONFIG SET appendonly yes), and start with these files";

/// Bytes of a key that a message repeats.
const KEY_SHOWN: usize = 64;

/// Why a file cannot be read on. Nothing that comes after it in the file is known.
#[derive(Debug)]
pub struct Error {
    /// Bytes from the beginning of the file to what is wrong.
    pub offset: u64,
    /// The key that was being read, if one was.
    pub key: Option<Vec<u8>>,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// The system could not read it.
    Io(io::Error),
    /// It ends where something should be.
    Truncated {
        /// What should be there.
        expected: &'static str,
    },
    /// It does not begin as RDB files do.
    NotRdb,
    /// It is of a version of Redis that this crate does not know.
    Version(u32),
    /// It is of a version of Valkey that this crate does not know.
    ValkeyVersion(u32),
    /// A key has a value of a type that has this number in files of Valkey, and is not known here.
    ValkeyType(u8),
    /// A cluster of Valkey was importing slots when it was written.
    SlotImport,
    /// Something is not what it has to be.
    Corrupt {
        /// What has to be there.
        expected: &'static str,
        /// What is there instead.
        found: String,
    },
    /// It is whole, but not what was written.
    Checksum {
        /// As the file says.
        stored: u64,
        /// Of what was read.
        computed: u64,
    },
    /// A key has a value of a type that is not supported.
    Type(&'static str),
    /// It holds a function of a release candidate of Redis 7.
    OldFunction,
    /// It holds data of a module of this name.
    Module(String),
}

impl From<Problem> for Error {
    /// A problem whose place is filled in by whoever knows it.
    fn from(problem: Problem) -> Error {
        Error {
            offset: 0,
            key: None,
            problem,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}", self.offset)?;
        if let Some(key) = &self.key {
            let shown = &key[..key.len().min(KEY_SHOWN)];
            let rest = if shown.len() < key.len() { "..." } else { "" };
            write!(f, ", key \"{}\"{rest}", shown.escape_ascii())?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Io(error) => write!(f, "cannot be read: {error}"),
            Problem::Truncated { expected } => {
                write!(f, "the file ends where {expected} should be")
            }
            Problem::NotRdb => write!(
                f,
                "this is no RDB file: it does not begin with REDIS or VALKEY and a version"
            ),
            Problem::Version(version) => write!(
                f,
                "RDB version {version} is not supported, only {OLDEST_VERSION} to {NEWEST_VERSION}, and \
                 {VALKEY_VERSION} of Valkey"
            ),
            Problem::ValkeyVersion(version) => write!(
                f,
                "RDB version {version} of Valkey is not supported, only {VALKEY_VERSION} (of Valkey 9.0 and \
                 9.1). {VALKEY_COMMANDS}"
            ),
            Problem::ValkeyType(code) => write!(
                f,
                "a value of type {code} of Valkey, which is not known here. {VALKEY_COMMANDS}, or remove its \
                 key there"
            ),
            Problem::SlotImport => write!(
                f,
                "an import of slots of a cluster of Valkey, which is not supported. Let Valkey save again \
                 when it has ended"
            ),
            Problem::Corrupt { expected, found } => {
                write!(f, "{expected} should be here, but it is {found}")
            }
            Problem::Checksum { stored, computed } => write!(
                f,
                "wrong checksum: the file says {stored:016x}, what was read has {computed:016x}"
            ),
            Problem::Type(name) => write!(f, "the value is a {name}, which is not supported"),
            Problem::OldFunction => write!(
                f,
                "the file holds a function of a release candidate of Redis 7, which is not supported"
            ),
            Problem::Module(name) => write!(
                f,
                "the file holds data of the module '{name}', and modules are not supported"
            ),
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
