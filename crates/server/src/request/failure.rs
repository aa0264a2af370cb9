//! Error replies. Their texts are those of Redis: clients compare the first word, and people search for the
//! rest.

use std::borrow::Cow;

use keyspace::collection::run::Damage;

use crate::limits::ERROR_ECHO_BYTES;

/// Error reply, without the leading `-`. It may contain bytes of a request that are not UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) Cow<'static, [u8]>);

/// A script runs, or a function.
pub(crate) const fn busy(is_function: bool) -> Failure {
    match is_function {
        true => BUSY_FUNCTION,
        false => BUSY_SCRIPT,
    }
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Failure {
        let text = format!("IOERR a part of a collection in the log makes no sense ({damage:?})");
        Failure::new(text)
    }
}

impl Failure {
    /// The record of a value of so many bytes has no room on the disk.
    #[cold]
    pub(crate) fn no_space(value: usize) -> Failure {
        Failure::new(format!(
            "MISCONF Errors writing to the AOF file: there is no space for a value of {value} bytes"
        ))
    }

    /// Constant text.
    pub(crate) const fn of(text: &'static str) -> Failure {
        Failure(Cow::Borrowed(text.as_bytes()))
    }

    /// Formatted text.
    pub(crate) fn new(text: impl Into<String>) -> Failure {
        Failure(Cow::Owned(text.into().into_bytes()))
    }

    /// Text with an argument in its middle.
    pub(crate) fn about(before: &str, arg: &[u8], behind: &str) -> Failure {
        Failure(Cow::Owned(
            [before.as_bytes(), quoted(arg), behind.as_bytes()].concat(),
        ))
    }

    /// `ERR invalid expire time in 'name' command`.
    pub(crate) fn invalid_expire(command: &str) -> Failure {
        Failure::new(format!("ERR invalid expire time in '{command}' command"))
    }

    /// `ERR wrong number of arguments for 'name' command`.
    pub(crate) fn wrong_arity(command: &str) -> Failure {
        Failure::new(format!(
            "ERR wrong number of arguments for '{command}' command"
        ))
    }

    /// `ERR unknown subcommand or wrong number of arguments for 'sub'. Try NAME HELP.`
    pub(crate) fn wrong_subcommand(command: &str, subcommand: &[u8]) -> Failure {
        let before = "ERR unknown subcommand or wrong number of arguments for '";
        Failure::about(
            before,
            start(subcommand, ERROR_ECHO_BYTES),
            &format!("'. Try {command} HELP."),
        )
    }

    /// EXECABORT error of an EXEC that is refused for this reason; the transaction is over.
    pub(crate) fn of_exec(&self) -> Failure {
        let text = self.0.strip_prefix(b"ERR ").unwrap_or(&self.0);
        let before: &[u8] = b"EXECABORT Transaction discarded because of: ";
        Failure(Cow::Owned([before, text].concat()))
    }

    /// Code before the first space, the key of INFO errorstats.
    pub(crate) fn code(&self) -> &str {
        let code = self.0.split(|&byte| byte == b' ').next();
        code.and_then(|code| std::str::from_utf8(code).ok())
            .unwrap_or_default()
    }
}

/// The part of an argument that error texts repeat: up to its first zero byte.
pub(crate) fn quoted(arg: &[u8]) -> &[u8] {
    let end = arg.iter().position(|&byte| byte == 0).unwrap_or(arg.len());
    &arg[..end]
}

/// The first bytes of an argument, at most `most`.
pub(crate) fn start(arg: &[u8], most: usize) -> &[u8] {
    &arg[..arg.len().min(most)]
}

pub(crate) const LOADING: Failure = Failure::of("LOADING Redis is loading the dataset in memory");
const BUSY_SCRIPT: Failure = Failure::of(
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
);
const BUSY_FUNCTION: Failure = Failure::of(
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.",
);
pub(crate) const SYNTAX: Failure = Failure::of("ERR syntax error");
pub(crate) const NOT_AN_INTEGER: Failure =
    Failure::of("ERR value is not an integer or out of range");
pub(crate) const NOT_AN_INT32: Failure =
    Failure::of("ERR value is out of range, value must between -2147483648 and 2147483647");
pub(crate) const NOT_A_FLOAT: Failure = Failure::of("ERR value is not a valid float");
pub(crate) const WRONG_TYPE: Failure =
    Failure::of("WRONGTYPE Operation against a key holding the wrong kind of value");
pub(crate) const NO_SUCH_KEY: Failure = Failure::of("ERR no such key");
pub(crate) const OVERFLOW: Failure = Failure::of("ERR increment or decrement would overflow");
pub(crate) const TOO_LONG: Failure =
    Failure::of("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
pub(crate) const DB_INDEX: Failure = Failure::of("ERR DB index is out of range");
pub(crate) const NO_AUTH: Failure = Failure::of("NOAUTH Authentication required.");
pub(crate) const NO_MULTI: Failure = Failure::of("ERR Command not allowed inside a transaction");
pub(crate) const PROTECTED: Failure = Failure::of(
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
     local connection, otherwise you need to set this option in the configuration file, and then restart the server.",
);
pub(crate) const NO_MODULES: Failure = Failure::of(
    "ERR MODULE command not allowed: this server has no modules, and none can be loaded.",
);
pub(crate) const OUT_OF_MEMORY: Failure =
    Failure::of("OOM command not allowed when used memory > 'maxmemory'.");
pub(crate) const SNAPSHOT_FAILED: Failure = Failure::of(
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may \
     modify the data set are disabled, because this instance is configured to report errors during writes if RDB \
     snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.",
);
