//! What the flags set, with what holds where there are none.

use std::path::PathBuf;
use std::time::Duration;

use crate::access::Access;
use crate::cluster::Given;
use crate::connection::{Approach, Place};
use crate::format::{Format, Style};

/// What standard input is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A person, or commands, one a line.
    Commands,
    /// The last argument.
    LastArgument,
    /// The argument that stands where this word does.
    Tag(Vec<u8>),
}

/// What the modes share that go through all keys.
#[derive(Clone, Debug)]
pub(crate) struct KeyScan {
    pub(crate) pattern: Option<Vec<u8>>,
    /// How many keys a SCAN looks at, if not as many as the server likes.
    pub(crate) count: Option<u64>,
    /// Where to begin.
    pub(crate) cursor: u64,
    /// How many elements of a value MEMORY USAGE looks at, if not as many as the server likes.
    pub(crate) samples: Option<u64>,
    /// How many of the largest keys are listed.
    pub(crate) top: usize,
}

/// What the program does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Runs the command behind the flags; without one, whatever comes through standard input.
    Commands,
    Stat,
    Latency {
        is_history: bool,
    },
    LatencyDistribution,
    IntrinsicLatency(Duration),
    BigKeys,
    MemoryKeys,
    HotKeys,
    KeyStats,
    Scan,
    LruTest(u64),
    Pipe,
    Script(PathBuf),
    /// Writes what an RDB file holds.
    Import(PathBuf),
    /// Saves an RDB file, key by key.
    Export(PathBuf),
    /// Saves an RDB file as replicas get it.
    Replicate {
        path: PathBuf,
        has_functions_only: bool,
    },
    /// Shows what replicas are sent.
    Replica,
    /// Several servers at once.
    Cluster(Given),
    /// What cannot be done yet, and why.
    Missing(&'static str),
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) access: Access,
    pub(crate) mode: Mode,
    /// Of replies; what standard output is decides if absent.
    pub(crate) format: Option<Format>,
    pub(crate) element_delimiter: Vec<u8>,
    pub(crate) reply_delimiter: Vec<u8>,
    /// Messages that nobody asked for are shown; what standard output is decides if absent.
    pub(crate) shows_pushes: Option<bool>,
    /// How often a command runs, or how many lines a mode prints that would go on for ever; for ever if
    /// negative.
    pub(crate) repeat: Option<i64>,
    pub(crate) interval: Duration,
    pub(crate) input: Input,
    pub(crate) has_quoted_arguments: bool,
    /// An error reply goes to standard error and is the end.
    pub(crate) ends_at_errors: bool,
    /// Without a command: a PING instead of a prompt.
    pub(crate) is_unattended: bool,
    pub(crate) asks_password: bool,
    /// Nobody has to be told that others may see a password in the command line.
    pub(crate) allows_typed_password: bool,
    pub(crate) is_verbose: bool,
    pub(crate) has_colors: bool,
    pub(crate) keys: KeyScan,
    pub(crate) pipe_timeout: Duration,
    /// What an import or export cannot take along stays behind.
    pub(crate) skips_unsupported: bool,
    /// An import leaves keys alone that the server has.
    pub(crate) keeps_existing: bool,
}

impl Options {
    /// What holds without any flag.
    pub(crate) fn new() -> Options {
        Options {
            access: Access {
                place: Place::Port("127.0.0.1".to_owned(), 6379),
                approach: Approach::default(),
                user: None,
                password: None,
                database: 0,
                is_database_chosen: false,
                protocol: None,
                follows_redirections: false,
            },
            mode: Mode::Commands,
            format: None,
            element_delimiter: b"\n".to_vec(),
            reply_delimiter: b"\n".to_vec(),
            shows_pushes: None,
            repeat: None,
            interval: Duration::ZERO,
            input: Input::Commands,
            has_quoted_arguments: false,
            ends_at_errors: false,
            is_unattended: false,
            asks_password: false,
            allows_typed_password: false,
            is_verbose: false,
            has_colors: true,
            keys: KeyScan {
                pattern: None,
                count: None,
                cursor: 0,
                samples: None,
                top: 10,
            },
            pipe_timeout: Duration::from_secs(30),
            skips_unsupported: false,
            keeps_existing: false,
        }
    }

    /// The pause that was asked for, or the usual one.
    pub(crate) fn interval_or(&self, usual: Duration) -> Duration {
        if self.interval.is_zero() {
            usual
        } else {
            self.interval
        }
    }

    /// The form of replies where standard output is a terminal or not.
    pub(crate) fn style(&self, is_terminal: bool) -> Style {
        let usual = if is_terminal {
            Format::Standard
        } else {
            Format::Raw
        };
        Style {
            format: self.format.unwrap_or(usual),
            element_delimiter: self.element_delimiter.clone(),
            reply_delimiter: self.reply_delimiter.clone(),
        }
    }
}
