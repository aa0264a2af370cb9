//! What ends a command or the program: operating errors, told once and where they are handled.
//!
//! An error *reply* is none of these, except where `-e` asks for it.

use std::fmt;
use std::io;

use resp::ReplyError;

/// The result of everything that talks or prints.
pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

/// Why something could not be done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection is of no more use.
    Broken(Broken),
    /// The person was told why already.
    Told,
    /// Nobody could find out what was asked, for this reason; the program ends with code 2.
    Unknown(String),
    /// The person pressed Ctrl-C.
    Interrupted,
    /// Standard output takes nothing more.
    Output(io::Error),
    /// Anything else, in words for standard error.
    Other(String),
}

/// How a connection came to its end.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The server closed it.
    Closed,
    /// The system reports an error.
    Io(io::Error),
    /// What came is no reply.
    Protocol(ReplyError),
}

impl Failure {
    /// A failure in words.
    pub(crate) fn other(text: impl Into<String>) -> Failure {
        Failure::Other(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Broken(broken) => write!(f, "Error: {broken}"),
            Failure::Told => f.write_str("failed"),
            Failure::Interrupted => f.write_str("interrupted"),
            Failure::Output(error) => write!(f, "Error writing to standard output: {error}"),
            Failure::Other(text) | Failure::Unknown(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Closed => f.write_str("Server closed the connection"),
            Broken::Io(error) => f.write_str(&reason(error)),
            Broken::Protocol(error) => write!(f, "Protocol error, {error}"),
        }
    }
}

/// What the system says, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Failure {
        Failure::Broken(broken)
    }
}

/// Of all that this program reads and writes, only standard output is written through plain I/O: the
/// connection has [`Broken`].
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}
