//! `cluster SUBCOMMAND`: several servers that share the keys, as one thing: started, looked at, measured, stopped.
//!
//! | file | what |
//! |---|---|
//! | `table` | what a subcommand is made of, and all of them: parser, help, manual page and completions derive from it |
//! | `given` | the words behind `cluster`, taken apart by the table |
//! | `help` | `cluster --help` |
//! | `fleet` | the nodes that a directory or a file names |
//! | `rebalance` | `cluster rebalance` |
//!
//! A subcommand lives in a file of its own, with a constant `SUBCOMMAND` that [`table::SUBCOMMANDS`] lists. Other words behind `cluster`
//! (`SLOTS`, `INFO`, ...) are a command of the server.

mod fleet;
mod given;
mod help;
mod rebalance;
mod table;

use crate::failure::{Failure, Result};
use crate::flags::Options;

pub(crate) use given::{Given, Words, read};
pub(crate) use table::SUBCOMMANDS;
#[cfg(test)]
pub(crate) use {
    help::rows,
    table::{Flag, Subcommand},
};

/// Runs the subcommand that was asked for. `options` are the flags before `cluster`.
pub(crate) fn run(given: &Given, options: &Options) -> Result {
    let subcommand = table::find(given.subcommand.as_ref())
        .ok_or_else(|| Failure::other("there is no such subcommand"))?;
    (subcommand.run)(given, options)
}
