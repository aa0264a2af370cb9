//! The server as scripts see it: [`Host`] runs their commands and says when they have to end. The types of a
//! command's arguments and of its reply are here, and nothing of Lua.

use std::fmt;

use resp::reply::Protocol;
use resp::request::Span;

/// The server, for the time of one run.
pub trait Host {
    /// Runs one command. Its reply, an error included, goes into `reply`, which is empty.
    fn call(&mut self, arguments: &Arguments<'_>, reply: &mut Captured) -> Called;

    /// Whether the script may go on. Asked about every 1,000 instructions, and during all that takes long.
    fn interrupt(&mut self) -> Interrupt;

    /// A line of `redis.log`.
    fn log(&mut self, level: Level, text: &[u8]);

    /// An error is a part of the result. `is_counted`: it is that of a command that [`Host::call`] has run.
    fn replied_error(&mut self, text: &[u8], is_counted: bool) {
        let _ = (text, is_counted);
    }

    /// Whether the user may run a command (`redis.acl_check_cmd`). `None`: there is no such command.
    fn may_call(&mut self, arguments: &Arguments<'_>) -> Option<bool> {
        let _ = arguments;
        Some(true)
    }
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Called {
    /// The reply is complete.
    Replied,
    /// The script ends here, and no `pcall` sees it.
    Stop,
}

/// The answer to [`Host::interrupt`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interrupt {
    /// The script goes on.
    Continue,
    /// The script ends here, and no `pcall` sees it.
    Stop,
}

/// The levels of `redis.log`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// `redis.LOG_DEBUG`, 0.
    Debug,
    /// `redis.LOG_VERBOSE`, 1.
    Verbose,
    /// `redis.LOG_NOTICE`, 2.
    Notice,
    /// `redis.LOG_WARNING`, 3.
    Warning,
}

/// The first keys of a run that [`Arguments::key`] knows.
pub const KNOWN_KEYS: usize = 16;

/// Arguments: one buffer, and where each of them lies in it.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    /// The bytes of all arguments.
    pub input: &'a [u8],
    /// Their places in `input`, the command's name first.
    pub spans: &'a [Span],
    /// For each argument: the place among the run's keys of the string that it was made of.
    known: &'a [Option<u32>],
}

impl<'a> Arguments<'a> {
    /// Arguments of a request: keys or values for a run.
    pub fn new(input: &'a [u8], spans: &'a [Span]) -> Arguments<'a> {
        Arguments {
            input,
            spans,
            known: &[],
        }
    }

    /// Arguments of a script.
    pub(crate) fn of_script(
        input: &'a [u8],
        spans: &'a [Span],
        known: &'a [Option<u32>],
    ) -> Arguments<'a> {
        Arguments {
            input,
            spans,
            known,
        }
    }

    /// The number of arguments.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `at`.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    pub fn get(&self, at: usize) -> &'a [u8] {
        self.spans[at].of(self.input)
    }

    /// The place among the keys of the run of an argument that is one of its first keys: its hash is known.
    /// An argument of equal bytes that the script has computed may have it, too.
    pub fn key(&self, at: usize) -> Option<usize> {
        let known = self.known.get(at).copied().flatten()?;
        Some(known as usize)
    }
}

/// The reply of a command: RESP, and the places of large values between its bytes.
#[derive(Default)]
pub struct Captured {
    /// The version of the protocol that the reply is written in. The script chooses (`redis.setresp`).
    pub protocol: Protocol,
    /// The reply without the large values.
    pub bytes: Vec<u8>,
    /// Large values in order of their places. Each follows the header of its bulk string.
    pub large: Vec<Large>,
}

/// A value that is not copied into the bytes of a reply.
pub struct Large {
    /// Its place: an offset in [`Captured::bytes`].
    pub at: usize,
    /// Its bytes.
    pub value: Box<dyn AsRef<[u8]>>,
}

impl Captured {
    /// Removes the reply, and keeps a buffer of ordinary size.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.large.clear();
        self.bytes.shrink_to(BUFFER_KEPT);
    }
}

/// Bytes of a buffer that is kept for the next command.
pub(crate) const BUFFER_KEPT: usize = 64 << 10;

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Captured { bytes, large, .. } = self;
        write!(f, "{} bytes, {} large values", bytes.len(), large.len())
    }
}
