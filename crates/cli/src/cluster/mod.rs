//! `cluster SUBCOMMAND`: several servers that share the keys, as one thing: started, looked at, measured,
//! stopped.
//!
//! | file | what |
//! |---|---|
//! | `table` | what a subcommand is made of, and all of them: parser, help, manual page and completions derive from it |
//! | `given` | the words behind `cluster`, taken apart by the table |
//! | `help` | `cluster --help` |
//! | `nodes` | the file of hosts |
//! | `ssh` | what runs on other machines |
//! | `deploy` | `cluster deploy` |
//! | `fleet` | the nodes that a directory or a file names |
//! | `probe` | what the nodes say of themselves |
//! | `local`, `launch` | `cluster local`; starting nodes, and waiting until they serve |
//! | `node_process`, `port_owner` | the process of a node on this machine; who uses a port |
//! | `status`, `bench`, `stop`, `rebalance` | the subcommands of these names |
//! | `columns` | tables for people |
//!
//! A subcommand lives in a file of its own, with a constant `SUBCOMMAND` that [`table::SUBCOMMANDS`] lists.
//! Other words behind `cluster` (`SLOTS`, `INFO`, ...) are a command of the server.

mod bench;
mod columns;
mod deploy;
mod fleet;
mod given;
mod help;
mod launch;
mod local;
mod node_process;
mod nodes;
mod port_owner;
mod probe;
mod rebalance;
mod ssh;
mod status;
mod stop;
mod table;

use std::path::PathBuf;
use std::time::Duration;

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

/// How long a node may take to serve, and to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Another program of Ferrite: the one beside this, else that of the PATH.
fn beside(program: &str) -> PathBuf {
    let own = sys::process::executable_path();
    let its = own.ok().map(|own| own.with_file_name(program));
    let its = its.filter(|path| path.is_file());
    its.unwrap_or_else(|| PathBuf::from(program))
}
