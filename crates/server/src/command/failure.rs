//! What a command answers when it cannot do what was asked. Texts are part of the protocol: clients switch
//! on the first word and people search for the rest, so they are those of Redis.

use std::borrow::Cow;

use crate::limits::ERROR_ECHO_BYTES;

/// An error reply, without the leading `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) Cow<'static, str>);

impl Failure {
    /// A fixed text.
    pub(crate) const fn of(text: &'static str) -> Failure {
        Failure(Cow::Borrowed(text))
    }

    /// A text made for the occasion.
    pub(crate) fn new(text: impl Into<String>) -> Failure {
        Failure(Cow::Owned(text.into()))
    }

    /// `ERR invalid expire time in 'name' command`.
    pub(crate) fn invalid_expire(command: &str) -> Failure {
        Failure::new(format!("ERR invalid expire time in '{command}' command"))
    }

    /// `ERR wrong number of arguments for 'name' command`.
    pub(crate) fn wrong_arity(command: &str) -> Failure {
        Failure::new(format!("ERR wrong number of arguments for '{command}' command"))
    }

    /// `ERR unknown subcommand or wrong number of arguments for 'sub'. Try NAME HELP.`
    pub(crate) fn wrong_subcommand(command: &str, subcommand: &[u8]) -> Failure {
        let echoed = quoted_start(subcommand, ERROR_ECHO_BYTES);
        Failure::new(format!(
            "ERR unknown subcommand or wrong number of arguments for '{echoed}'. Try {command} HELP."
        ))
    }

    /// The code before the first space, by which INFO errorstats counts.
    pub(crate) fn code(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }
}

/// An argument as error texts repeat it: up to its first zero byte, and what is no UTF-8 replaced.
pub(crate) fn quoted(arg: &[u8]) -> Cow<'_, str> {
    quoted_start(arg, arg.len())
}

/// The same of an argument's first bytes, `most` at most.
pub(crate) fn quoted_start(arg: &[u8], most: usize) -> Cow<'_, str> {
    let start = &arg[..arg.len().min(most)];
    let end = start.iter().position(|&byte| byte == 0).unwrap_or(start.len());
    String::from_utf8_lossy(&start[..end])
}

pub(crate) const SYNTAX: Failure = Failure::of("ERR syntax error");
pub(crate) const NOT_AN_INTEGER: Failure = Failure::of("ERR value is not an integer or out of range");
pub(crate) const NOT_AN_INT32: Failure =
    Failure::of("ERR value is out of range, value must between -2147483648 and 2147483647");
pub(crate) const NOT_A_FLOAT: Failure = Failure::of("ERR value is not a valid float");
pub(crate) const NO_SUCH_KEY: Failure = Failure::of("ERR no such key");
pub(crate) const OVERFLOW: Failure = Failure::of("ERR increment or decrement would overflow");
pub(crate) const TOO_LONG: Failure = Failure::of("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
pub(crate) const DB_INDEX: Failure = Failure::of("ERR DB index is out of range");
pub(crate) const NO_AUTH: Failure = Failure::of("NOAUTH Authentication required.");
pub(crate) const OUT_OF_MEMORY: Failure = Failure::of("OOM command not allowed when used memory > 'maxmemory'.");
